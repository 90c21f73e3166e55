/* workspace, by hand */

#include "taco_runtime.h"

int32_t workspace(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const double *restrict A_vals,
    const int32_t *restrict B2_pos,
    const int32_t *restrict B2_crd,
    const double *restrict B_vals,
    taco_buffer *C2_crd_buffer,
    taco_buffer *C_vals_buffer,
    int64_t n_j)
{
    int32_t *restrict C2_crd = C2_crd_buffer->data;
    double *restrict C_vals = C_vals_buffer->data;
    taco_local double *w = taco_alloc_zero(n_j, sizeof(double));
    if (taco_unlikely(w == NULL)) {
        return 1;
    }
    taco_local bool *seen = taco_alloc_zero(n_j, sizeof(bool));
    if (taco_unlikely(seen == NULL)) {
        return 1;
    }
    taco_local_buffer taco_buffer cols_buffer = {0};
    if (taco_unlikely(taco_grow(&cols_buffer, 4, sizeof(int32_t)))) {
        return 1;
    }
    int32_t *restrict cols = cols_buffer.data;
    if (taco_unlikely(n_j > cols_buffer.capacity)) {
        if (taco_grow(&cols_buffer, n_j, sizeof(int32_t))) {
            return 1;
        }
        cols = cols_buffer.data;
    }
    int64_t count = 0;
    for (int64_t p = A2_pos[0]; p < A2_pos[1]; p++) {
        const int64_t k = A2_crd[p];
        for (int64_t q = B2_pos[k]; q < B2_pos[k + 1]; q++) {
            const int64_t j = B2_crd[q];
            if (!seen[j]) {
                seen[j] = true;
                cols[count] = (int32_t)j;
                count++;
            }
            w[j] += A_vals[p] * B_vals[q];
        }
    }
    taco_sort_int32(cols, count);
    if (taco_unlikely(count > C2_crd_buffer->capacity)) {
        if (taco_grow(C2_crd_buffer, count, sizeof(int32_t))) {
            return 1;
        }
        C2_crd = C2_crd_buffer->data;
    }
    if (taco_unlikely(count > C_vals_buffer->capacity)) {
        if (taco_grow(C_vals_buffer, count, sizeof(double))) {
            return 1;
        }
        C_vals = C_vals_buffer->data;
    }
    for (int64_t r = 0; r < count; r++) {
        const int64_t j = cols[r];
        C2_crd[r] = (int32_t)j;
        C_vals[r] = w[j];
    }
    C2_crd_buffer->length = count;
    C_vals_buffer->length = count;
    return 0;
}
