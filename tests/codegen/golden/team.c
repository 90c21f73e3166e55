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
    const taco_output outputs[] = {
        {C2_pos_buffer, sizeof(int32_t), 1, 0},
        {C2_crd_buffer, sizeof(int32_t), -1, 1000},
        {C_vals_buffer, sizeof(double), -1, 0},
    };
    taco_local_team taco_team team;
    if (taco_unlikely(taco_gather(&team, outputs, 3, pieces))) {
        return 1;
    }
    int32_t status = 0;
    #pragma omp parallel num_threads(threads) if (pieces > 1)
    {
        {
            taco_local bool *seen = taco_alloc(n_j, sizeof(bool));
            if (taco_unlikely(seen == NULL)) {
                taco_fail(&status, 1);
                goto stop;
            }
            for (int64_t piece = taco_take(&team); piece < pieces; piece = taco_take(&team)) {
                taco_buffer *const C2_pos_buffer = taco_part(&team, piece, 0);
                int32_t *restrict C2_pos = C2_pos_buffer->data;
                taco_buffer *const C2_crd_buffer = taco_part(&team, piece, 1);
                int32_t *restrict C2_crd = C2_crd_buffer->data;
                taco_buffer *const C_vals_buffer = taco_part(&team, piece, 2);
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
                const int failed = taco_give(&team, piece);
                if (taco_unlikely(failed)) {
                    taco_fail(&status, failed);
                    goto stop;
                }
            }
        }
        stop:;
    }
    if (status != 0) {
        return status;
    }
    taco_finish(&team);
    return 0;
}
