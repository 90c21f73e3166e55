/* row_append_structure, by hand */

#include "taco_runtime.h"

int32_t row_append_structure(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const int32_t *restrict B2_pos,
    const int32_t *restrict B2_crd,
    int32_t *restrict C2_pos,
    taco_buffer *C2_crd_buffer,
    int64_t n_i)
{
    int32_t *restrict C2_crd = C2_crd_buffer->data;
    // C[i,j] = A[i,j] + B[i,j]
    int64_t p_C = 0;
    C2_pos[0] = 0;
    for (int64_t i = 0; i < n_i; i++) {
        int64_t p = A2_pos[i];
        const int64_t p_end = A2_pos[i + 1];
        int64_t q = B2_pos[i];
        const int64_t q_end = B2_pos[i + 1];
        while (p < p_end && q < q_end) {
            const int64_t j_A = A2_crd[p];
            const int64_t j_B = B2_crd[q];
            const int64_t j = taco_min_i64(j_A, j_B);
            const bool in_a = j_A == j;
            const bool in_b = j_B == j;
            if (taco_unlikely(p_C + 1 > C2_crd_buffer->capacity)) {
                if (taco_grow(C2_crd_buffer, p_C + 1, sizeof(int32_t))) {
                    return 1;
                }
                C2_crd = C2_crd_buffer->data;
            }
            C2_crd[p_C] = (int32_t)j;
            p_C++;
            if (in_a) {
                p++;
            }
            if (in_b) {
                q++;
            }
        }
        while (p < p_end) {
            if (taco_unlikely(p_C + 1 > C2_crd_buffer->capacity)) {
                if (taco_grow(C2_crd_buffer, p_C + 1, sizeof(int32_t))) {
                    return 1;
                }
                C2_crd = C2_crd_buffer->data;
            }
            C2_crd[p_C] = A2_crd[p];
            p_C++;
            p++;
        }
        while (q < q_end) {
            if (taco_unlikely(p_C + 1 > C2_crd_buffer->capacity)) {
                if (taco_grow(C2_crd_buffer, p_C + 1, sizeof(int32_t))) {
                    return 1;
                }
                C2_crd = C2_crd_buffer->data;
            }
            C2_crd[p_C] = B2_crd[q];
            p_C++;
            q++;
        }
        C2_pos[i + 1] = (int32_t)p_C;
    }
    C2_crd_buffer->length = p_C;
    return 0;
}
