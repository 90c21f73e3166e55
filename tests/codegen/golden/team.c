/* team, by hand */

#include "taco_runtime.h"

int32_t team(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const double *restrict A_vals,
    taco_buffer *C2_pos_buffer,
    taco_buffer *C2_crd_buffer,
    taco_buffer *C_vals_buffer,
    int64_t n_i,
    int64_t n_j,
    int32_t threads)
{
    const int64_t pieces = (int64_t)threads * 2;
    taco_local_parts taco_parts C2_pos_parts;
    if (taco_unlikely(taco_split(&C2_pos_parts, C2_pos_buffer, pieces))) {
        return 1;
    }
    taco_local_parts taco_parts C2_crd_parts;
    if (taco_unlikely(taco_split(&C2_crd_parts, C2_crd_buffer, pieces))) {
        return 1;
    }
    taco_local_parts taco_parts C_vals_parts;
    if (taco_unlikely(taco_split(&C_vals_parts, C_vals_buffer, pieces))) {
        return 1;
    }
    int64_t next = 0;
    int32_t status = 0;
    #pragma omp parallel num_threads(threads) if (pieces > 1)
    {
        {
            taco_local bool *seen = taco_alloc(n_j, sizeof(bool));
            if (taco_unlikely(seen == NULL)) {
                taco_fail(&status, 1);
                goto stop;
            }
            for (int64_t piece = taco_next(&next); piece < pieces; piece = taco_next(&next)) {
                taco_buffer *const C2_pos_buffer = taco_part(&C2_pos_parts, piece);
                int32_t *restrict C2_pos = C2_pos_buffer->data;
                taco_buffer *const C2_crd_buffer = taco_part(&C2_crd_parts, piece);
                int32_t *restrict C2_crd = C2_crd_buffer->data;
                taco_buffer *const C_vals_buffer = taco_part(&C_vals_parts, piece);
                double *restrict C_vals = C_vals_buffer->data;
                const int64_t first = n_i * piece / ((int64_t)threads * 2);
                const int64_t last = n_i * (piece + 1) / ((int64_t)threads * 2);
                int64_t p_C = 0;
                if (taco_unlikely(last - first + 1 > C2_pos_buffer->capacity)) {
                    if (taco_grow(C2_pos_buffer, last - first + 1, sizeof(int32_t))) {
                        taco_fail(&status, 1);
                        goto stop;
                    }
                    C2_pos = C2_pos_buffer->data;
                }
                C2_pos[0] = 0;
                for (int64_t i = first; i < last; i++) {
                    for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                        const int64_t j = A2_crd[p];
                        seen[j] = j % 2 == 0;
                        const bool even = seen[j];
                        if (even) {
                            if (taco_unlikely(p_C + 1 > C2_crd_buffer->capacity)) {
                                if (taco_grow(C2_crd_buffer, p_C + 1, sizeof(int32_t))) {
                                    taco_fail(&status, 1);
                                    goto stop;
                                }
                                C2_crd = C2_crd_buffer->data;
                            }
                            C2_crd[p_C] = (int32_t)j;
                            if (taco_unlikely(p_C + 1 > C_vals_buffer->capacity)) {
                                if (taco_grow(C_vals_buffer, p_C + 1, sizeof(double))) {
                                    taco_fail(&status, 1);
                                    goto stop;
                                }
                                C_vals = C_vals_buffer->data;
                            }
                            C_vals[p_C] = A_vals[p];
                            p_C++;
                        }
                    }
                    C2_pos[i - first + 1] = (int32_t)p_C;
                }
                C2_pos_buffer->length = last - first + 1;
                C2_crd_buffer->length = p_C;
                C_vals_buffer->length = p_C;
            }
        }
        stop:;
    }
    if (status != 0) {
        return status;
    }
    if (taco_unlikely(taco_join_int32(&C2_pos_parts, &C2_crd_parts, threads))) {
        return 1;
    }
    if (taco_unlikely(taco_join(&C2_crd_parts, sizeof(int32_t), threads))) {
        return 1;
    }
    if (taco_unlikely(C2_crd_buffer->length > 1000)) {
        return 2;
    }
    if (taco_unlikely(taco_join(&C_vals_parts, sizeof(double), threads))) {
        return 1;
    }
    return 0;
}
