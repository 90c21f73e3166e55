/* spmm_32, by hand */

#include "taco_runtime.h"

typedef double taco_float64x4 __attribute__((vector_size(32), aligned(8), may_alias));

int32_t spmm_32(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const double *restrict A_vals,
    const double *restrict B_vals,
    double *restrict C_vals,
    int64_t n_i)
{
    for (int64_t i = 0; i < n_i; i++) {
        taco_float64x4 C_vals_0 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
        taco_float64x4 C_vals_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
        taco_float64x4 C_vals_2 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
        taco_float64x4 C_vals_3 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
        taco_float64x4 C_vals_4 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
        taco_float64x4 C_vals_5 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
        taco_float64x4 C_vals_6 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
        taco_float64x4 C_vals_7 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
        for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
            const int64_t j = A2_crd[p];
            C_vals_0 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * 32]);
            C_vals_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * 32 + 4]);
            C_vals_2 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * 32 + 8]);
            C_vals_3 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * 32 + 12]);
            C_vals_4 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * 32 + 16]);
            C_vals_5 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * 32 + 20]);
            C_vals_6 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * 32 + 24]);
            C_vals_7 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * 32 + 28]);
        }
        *(taco_float64x4 *)&C_vals[i * 32] = C_vals_0;
        *(taco_float64x4 *)&C_vals[i * 32 + 4] = C_vals_1;
        *(taco_float64x4 *)&C_vals[i * 32 + 8] = C_vals_2;
        *(taco_float64x4 *)&C_vals[i * 32 + 12] = C_vals_3;
        *(taco_float64x4 *)&C_vals[i * 32 + 16] = C_vals_4;
        *(taco_float64x4 *)&C_vals[i * 32 + 20] = C_vals_5;
        *(taco_float64x4 *)&C_vals[i * 32 + 24] = C_vals_6;
        *(taco_float64x4 *)&C_vals[i * 32 + 28] = C_vals_7;
    }
    return 0;
}
