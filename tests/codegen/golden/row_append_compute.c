/* row_append_compute, by hand */

#include "taco_runtime.h"

int32_t row_append_compute(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const double *restrict A_vals,
    const int32_t *restrict B2_pos,
    const int32_t *restrict B2_crd,
    const double *restrict B_vals,
    taco_buffer *C_vals_buffer,
    int64_t n_i)
{
    double *restrict C_vals = C_vals_buffer->data;
    // C[i,j] = A[i,j] + B[i,j]
    int64_t p_C = 0;
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
            double value = 0.0;
            if (in_a) {
                value += A_vals[p];
            }
            if (in_b) {
                value += B_vals[q];
            }
            if (taco_unlikely(p_C + 1 > C_vals_buffer->capacity)) {
                if (taco_grow(C_vals_buffer, p_C + 1, sizeof(double))) {
                    return 1;
                }
                C_vals = C_vals_buffer->data;
            }
            C_vals[p_C] = value;
            p_C++;
            if (in_a) {
                p++;
            }
            if (in_b) {
                q++;
            }
        }
        while (p < p_end) {
            if (taco_unlikely(p_C + 1 > C_vals_buffer->capacity)) {
                if (taco_grow(C_vals_buffer, p_C + 1, sizeof(double))) {
                    return 1;
                }
                C_vals = C_vals_buffer->data;
            }
            C_vals[p_C] = A_vals[p];
            p_C++;
            p++;
        }
        while (q < q_end) {
            if (taco_unlikely(p_C + 1 > C_vals_buffer->capacity)) {
                if (taco_grow(C_vals_buffer, p_C + 1, sizeof(double))) {
                    return 1;
                }
                C_vals = C_vals_buffer->data;
            }
            C_vals[p_C] = B_vals[q];
            p_C++;
            q++;
        }
    }
    C_vals_buffer->length = p_C;
    return 0;
}
