/* spmm, by hand */

#include "taco_runtime.h"

typedef double taco_float64x2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef double taco_float64x4 __attribute__((vector_size(32), aligned(8), may_alias));

int32_t spmm(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const double *restrict A_vals,
    const double *restrict B_vals,
    double *restrict C_vals,
    int64_t n_i,
    int64_t n_k)
{
    for (int64_t i = 0; i < n_i; i++) {
        for (int64_t k = 0; k < n_k - 31; k += 32) {
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
                C_vals_0 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k]);
                C_vals_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 4]);
                C_vals_2 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 8]);
                C_vals_3 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 12]);
                C_vals_4 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 16]);
                C_vals_5 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 20]);
                C_vals_6 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 24]);
                C_vals_7 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 28]);
            }
            *(taco_float64x4 *)&C_vals[i * n_k + k] = C_vals_0;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 4] = C_vals_1;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 8] = C_vals_2;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 12] = C_vals_3;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 16] = C_vals_4;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 20] = C_vals_5;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 24] = C_vals_6;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 28] = C_vals_7;
        }
        const int64_t rest = n_k / 32 * 32;
        for (int64_t k = rest; k < n_k - 24; k += 32) {
            taco_float64x4 C_vals_0_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_1_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_2_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_3_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_4_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_5_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_6_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_7_1 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                const int64_t j = A2_crd[p];
                C_vals_0_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k]);
                C_vals_1_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 4]);
                C_vals_2_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 8]);
                C_vals_3_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 12]);
                C_vals_4_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 16)]);
                C_vals_5_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 12)]);
                C_vals_6_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 8)]);
                C_vals_7_1 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 4)]);
            }
            *(taco_float64x4 *)&C_vals[i * n_k + k] = C_vals_0_1;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 4] = C_vals_1_1;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 8] = C_vals_2_1;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 12] = C_vals_3_1;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 16)] = C_vals_4_1;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 12)] = C_vals_5_1;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 8)] = C_vals_6_1;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 4)] = C_vals_7_1;
        }
        const int64_t rest_1 = rest < n_k - 24 ? n_k : rest;
        for (int64_t k = rest_1; k < n_k - 16; k += 24) {
            taco_float64x4 C_vals_0_2 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_1_2 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_2_2 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_3_2 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_4_2 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_5_2 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                const int64_t j = A2_crd[p];
                C_vals_0_2 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k]);
                C_vals_1_2 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 4]);
                C_vals_2_2 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 8]);
                C_vals_3_2 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 12)]);
                C_vals_4_2 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 8)]);
                C_vals_5_2 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 4)]);
            }
            *(taco_float64x4 *)&C_vals[i * n_k + k] = C_vals_0_2;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 4] = C_vals_1_2;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 8] = C_vals_2_2;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 12)] = C_vals_3_2;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 8)] = C_vals_4_2;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 4)] = C_vals_5_2;
        }
        const int64_t rest_2 = rest_1 < n_k - 16 ? n_k : rest_1;
        for (int64_t k = rest_2; k < n_k - 12; k += 16) {
            taco_float64x4 C_vals_0_3 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_1_3 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_2_3 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_3_3 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                const int64_t j = A2_crd[p];
                C_vals_0_3 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k]);
                C_vals_1_3 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 4]);
                C_vals_2_3 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 8)]);
                C_vals_3_3 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 4)]);
            }
            *(taco_float64x4 *)&C_vals[i * n_k + k] = C_vals_0_3;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 4] = C_vals_1_3;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 8)] = C_vals_2_3;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 4)] = C_vals_3_3;
        }
        const int64_t rest_3 = rest_2 < n_k - 12 ? n_k : rest_2;
        for (int64_t k = rest_3; k < n_k - 8; k += 12) {
            taco_float64x4 C_vals_0_4 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_1_4 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_2_4 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                const int64_t j = A2_crd[p];
                C_vals_0_4 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k]);
                C_vals_1_4 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k + 4]);
                C_vals_2_4 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 4)]);
            }
            *(taco_float64x4 *)&C_vals[i * n_k + k] = C_vals_0_4;
            *(taco_float64x4 *)&C_vals[i * n_k + k + 4] = C_vals_1_4;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 4)] = C_vals_2_4;
        }
        const int64_t rest_4 = rest_3 < n_k - 8 ? n_k : rest_3;
        for (int64_t k = rest_4; k < n_k - 4; k += 8) {
            taco_float64x4 C_vals_0_5 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            taco_float64x4 C_vals_1_5 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                const int64_t j = A2_crd[p];
                C_vals_0_5 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k]);
                C_vals_1_5 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + (n_k - 4)]);
            }
            *(taco_float64x4 *)&C_vals[i * n_k + k] = C_vals_0_5;
            *(taco_float64x4 *)&C_vals[i * n_k + (n_k - 4)] = C_vals_1_5;
        }
        const int64_t rest_5 = rest_4 < n_k - 4 ? n_k : rest_4;
        for (int64_t k = rest_5; k < n_k - 3; k += 4) {
            taco_float64x4 C_vals_0_6 = (taco_float64x4){0.0, 0.0, 0.0, 0.0};
            for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                const int64_t j = A2_crd[p];
                C_vals_0_6 += A_vals[p] * (*(const taco_float64x4 *)&B_vals[j * n_k + k]);
            }
            *(taco_float64x4 *)&C_vals[i * n_k + k] = C_vals_0_6;
        }
        const int64_t rest_6 = rest_5 < n_k - 3 ? n_k : rest_5;
        for (int64_t k = rest_6; k < n_k - 1; k += 4) {
            taco_float64x2 C_vals_0_7 = (taco_float64x2){0.0, 0.0};
            taco_float64x2 C_vals_1_6 = (taco_float64x2){0.0, 0.0};
            for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                const int64_t j = A2_crd[p];
                C_vals_0_7 += A_vals[p] * (*(const taco_float64x2 *)&B_vals[j * n_k + k]);
                C_vals_1_6 += A_vals[p] * (*(const taco_float64x2 *)&B_vals[j * n_k + (n_k - 2)]);
            }
            *(taco_float64x2 *)&C_vals[i * n_k + k] = C_vals_0_7;
            *(taco_float64x2 *)&C_vals[i * n_k + (n_k - 2)] = C_vals_1_6;
        }
        const int64_t rest_7 = rest_6 < n_k - 1 ? n_k : rest_6;
        for (int64_t k = rest_7; k < n_k; k++) {
            double C_vals_8 = 0.0;
            int64_t rest_8 = A2_pos[i];
            const int64_t stop = A2_pos[i + 1];
            if (stop - rest_8 >= 64) {
                const int64_t first = rest_8;
                rest_8 = first + (stop - first) / 8 * 8;
                double C_vals_8_1 = 0.0;
                double C_vals_8_2 = 0.0;
                double C_vals_8_3 = 0.0;
                for (int64_t p = first; p < rest_8; p += 8) {
                    __builtin_prefetch(A_vals + p + 384);
                    __builtin_prefetch(A2_crd + p + 384);
                    C_vals_8 += A_vals[p] * B_vals[A2_crd[p] * n_k + k];
                    C_vals_8_1 += A_vals[p + 1] * B_vals[A2_crd[p + 1] * n_k + k];
                    C_vals_8_2 += A_vals[p + 2] * B_vals[A2_crd[p + 2] * n_k + k];
                    C_vals_8_3 += A_vals[p + 3] * B_vals[A2_crd[p + 3] * n_k + k];
                    C_vals_8 += A_vals[p + 4] * B_vals[A2_crd[p + 4] * n_k + k];
                    C_vals_8_1 += A_vals[p + 5] * B_vals[A2_crd[p + 5] * n_k + k];
                    C_vals_8_2 += A_vals[p + 6] * B_vals[A2_crd[p + 6] * n_k + k];
                    C_vals_8_3 += A_vals[p + 7] * B_vals[A2_crd[p + 7] * n_k + k];
                }
                C_vals_8 += C_vals_8_1 + C_vals_8_2 + C_vals_8_3;
            }
            for (int64_t p = rest_8; p < stop; p++) {
                const int64_t j = A2_crd[p];
                C_vals_8 += A_vals[p] * B_vals[j * n_k + k];
            }
            C_vals[i * n_k + k] = C_vals_8;
        }
    }
    return 0;
}
