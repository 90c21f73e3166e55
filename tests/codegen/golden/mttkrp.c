/* mttkrp, by hand */

#include "taco_runtime.h"

typedef double taco_float64x2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef double taco_float64x4 __attribute__((vector_size(32), aligned(8), may_alias));

int32_t mttkrp(
    const int32_t *restrict T2_pos,
    const int32_t *restrict T2_crd,
    const int32_t *restrict T3_pos,
    const int32_t *restrict T3_crd,
    const double *restrict T_vals,
    const double *restrict C_vals,
    const double *restrict D_vals,
    double *restrict M_vals,
    int64_t n_i,
    int64_t n_r)
{
    for (int64_t i = 0; i < n_i; i++) {
        for (int64_t r = 0; r < n_r - 31; r += 32) {
            taco_float64x4 M_vals_0 = *(taco_float64x4 *)&M_vals[i * n_r + r];
            taco_float64x4 M_vals_1 = *(taco_float64x4 *)&M_vals[i * n_r + r + 4];
            taco_float64x4 M_vals_2 = *(taco_float64x4 *)&M_vals[i * n_r + r + 8];
            taco_float64x4 M_vals_3 = *(taco_float64x4 *)&M_vals[i * n_r + r + 12];
            taco_float64x4 M_vals_4 = *(taco_float64x4 *)&M_vals[i * n_r + r + 16];
            taco_float64x4 M_vals_5 = *(taco_float64x4 *)&M_vals[i * n_r + r + 20];
            taco_float64x4 M_vals_6 = *(taco_float64x4 *)&M_vals[i * n_r + r + 24];
            taco_float64x4 M_vals_7 = *(taco_float64x4 *)&M_vals[i * n_r + r + 28];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                for (int64_t q = T3_pos[p]; q < T3_pos[p + 1]; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_0 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r]);
                    M_vals_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 4]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 4]);
                    M_vals_2 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 8]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 8]);
                    M_vals_3 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 12]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 12]);
                    M_vals_4 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 16]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 16]);
                    M_vals_5 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 20]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 20]);
                    M_vals_6 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 24]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 24]);
                    M_vals_7 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 28]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 28]);
                }
            }
            *(taco_float64x4 *)&M_vals[i * n_r + r] = M_vals_0;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 4] = M_vals_1;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 8] = M_vals_2;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 12] = M_vals_3;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 16] = M_vals_4;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 20] = M_vals_5;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 24] = M_vals_6;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 28] = M_vals_7;
        }
        const int64_t rest = n_r / 32 * 32;
        for (int64_t r = rest; r < n_r - 24; r += 32) {
            taco_float64x4 M_vals_0_1 = *(taco_float64x4 *)&M_vals[i * n_r + r];
            taco_float64x4 M_vals_1_1 = *(taco_float64x4 *)&M_vals[i * n_r + r + 4];
            taco_float64x4 M_vals_2_1 = *(taco_float64x4 *)&M_vals[i * n_r + r + 8];
            taco_float64x4 M_vals_3_1 = *(taco_float64x4 *)&M_vals[i * n_r + r + 12];
            taco_float64x4 M_vals_4_1 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 16)];
            taco_float64x4 M_vals_5_1 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 12)];
            taco_float64x4 M_vals_6_1 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 8)];
            taco_float64x4 M_vals_7_1 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                for (int64_t q = T3_pos[p]; q < T3_pos[p + 1]; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_0_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r]);
                    M_vals_1_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 4]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 4]);
                    M_vals_2_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 8]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 8]);
                    M_vals_3_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 12]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 12]);
                    M_vals_4_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 16)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 16)]);
                    M_vals_5_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 12)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 12)]);
                    M_vals_6_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 8)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 8)]);
                    M_vals_7_1 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 4)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 4)]);
                }
            }
            *(taco_float64x4 *)&M_vals[i * n_r + r] = M_vals_0_1;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 4] = M_vals_1_1;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 8] = M_vals_2_1;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 12] = M_vals_3_1;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 16)] = M_vals_4_1;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 12)] = M_vals_5_1;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 8)] = M_vals_6_1;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)] = M_vals_7_1;
        }
        const int64_t rest_1 = rest < n_r - 24 ? n_r : rest;
        for (int64_t r = rest_1; r < n_r - 16; r += 24) {
            taco_float64x4 M_vals_0_2 = *(taco_float64x4 *)&M_vals[i * n_r + r];
            taco_float64x4 M_vals_1_2 = *(taco_float64x4 *)&M_vals[i * n_r + r + 4];
            taco_float64x4 M_vals_2_2 = *(taco_float64x4 *)&M_vals[i * n_r + r + 8];
            taco_float64x4 M_vals_3_2 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 12)];
            taco_float64x4 M_vals_4_2 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 8)];
            taco_float64x4 M_vals_5_2 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                for (int64_t q = T3_pos[p]; q < T3_pos[p + 1]; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_0_2 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r]);
                    M_vals_1_2 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 4]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 4]);
                    M_vals_2_2 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 8]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 8]);
                    M_vals_3_2 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 12)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 12)]);
                    M_vals_4_2 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 8)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 8)]);
                    M_vals_5_2 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 4)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 4)]);
                }
            }
            *(taco_float64x4 *)&M_vals[i * n_r + r] = M_vals_0_2;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 4] = M_vals_1_2;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 8] = M_vals_2_2;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 12)] = M_vals_3_2;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 8)] = M_vals_4_2;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)] = M_vals_5_2;
        }
        const int64_t rest_2 = rest_1 < n_r - 16 ? n_r : rest_1;
        for (int64_t r = rest_2; r < n_r - 12; r += 16) {
            taco_float64x4 M_vals_0_3 = *(taco_float64x4 *)&M_vals[i * n_r + r];
            taco_float64x4 M_vals_1_3 = *(taco_float64x4 *)&M_vals[i * n_r + r + 4];
            taco_float64x4 M_vals_2_3 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 8)];
            taco_float64x4 M_vals_3_3 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                for (int64_t q = T3_pos[p]; q < T3_pos[p + 1]; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_0_3 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r]);
                    M_vals_1_3 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 4]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 4]);
                    M_vals_2_3 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 8)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 8)]);
                    M_vals_3_3 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 4)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 4)]);
                }
            }
            *(taco_float64x4 *)&M_vals[i * n_r + r] = M_vals_0_3;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 4] = M_vals_1_3;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 8)] = M_vals_2_3;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)] = M_vals_3_3;
        }
        const int64_t rest_3 = rest_2 < n_r - 12 ? n_r : rest_2;
        for (int64_t r = rest_3; r < n_r - 8; r += 12) {
            taco_float64x4 M_vals_0_4 = *(taco_float64x4 *)&M_vals[i * n_r + r];
            taco_float64x4 M_vals_1_4 = *(taco_float64x4 *)&M_vals[i * n_r + r + 4];
            taco_float64x4 M_vals_2_4 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                for (int64_t q = T3_pos[p]; q < T3_pos[p + 1]; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_0_4 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r]);
                    M_vals_1_4 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r + 4]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r + 4]);
                    M_vals_2_4 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 4)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 4)]);
                }
            }
            *(taco_float64x4 *)&M_vals[i * n_r + r] = M_vals_0_4;
            *(taco_float64x4 *)&M_vals[i * n_r + r + 4] = M_vals_1_4;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)] = M_vals_2_4;
        }
        const int64_t rest_4 = rest_3 < n_r - 8 ? n_r : rest_3;
        for (int64_t r = rest_4; r < n_r - 4; r += 8) {
            taco_float64x4 M_vals_0_5 = *(taco_float64x4 *)&M_vals[i * n_r + r];
            taco_float64x4 M_vals_1_5 = *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                for (int64_t q = T3_pos[p]; q < T3_pos[p + 1]; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_0_5 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r]);
                    M_vals_1_5 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + (n_r - 4)]) * (*(const taco_float64x4 *)&D_vals[l * n_r + (n_r - 4)]);
                }
            }
            *(taco_float64x4 *)&M_vals[i * n_r + r] = M_vals_0_5;
            *(taco_float64x4 *)&M_vals[i * n_r + (n_r - 4)] = M_vals_1_5;
        }
        const int64_t rest_5 = rest_4 < n_r - 4 ? n_r : rest_4;
        for (int64_t r = rest_5; r < n_r - 3; r += 4) {
            taco_float64x4 M_vals_0_6 = *(taco_float64x4 *)&M_vals[i * n_r + r];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                for (int64_t q = T3_pos[p]; q < T3_pos[p + 1]; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_0_6 += T_vals[q] * (*(const taco_float64x4 *)&C_vals[k * n_r + r]) * (*(const taco_float64x4 *)&D_vals[l * n_r + r]);
                }
            }
            *(taco_float64x4 *)&M_vals[i * n_r + r] = M_vals_0_6;
        }
        const int64_t rest_6 = rest_5 < n_r - 3 ? n_r : rest_5;
        for (int64_t r = rest_6; r < n_r - 1; r += 4) {
            taco_float64x2 M_vals_0_7 = *(taco_float64x2 *)&M_vals[i * n_r + r];
            taco_float64x2 M_vals_1_6 = *(taco_float64x2 *)&M_vals[i * n_r + (n_r - 2)];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                for (int64_t q = T3_pos[p]; q < T3_pos[p + 1]; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_0_7 += T_vals[q] * (*(const taco_float64x2 *)&C_vals[k * n_r + r]) * (*(const taco_float64x2 *)&D_vals[l * n_r + r]);
                    M_vals_1_6 += T_vals[q] * (*(const taco_float64x2 *)&C_vals[k * n_r + (n_r - 2)]) * (*(const taco_float64x2 *)&D_vals[l * n_r + (n_r - 2)]);
                }
            }
            *(taco_float64x2 *)&M_vals[i * n_r + r] = M_vals_0_7;
            *(taco_float64x2 *)&M_vals[i * n_r + (n_r - 2)] = M_vals_1_6;
        }
        const int64_t rest_7 = rest_6 < n_r - 1 ? n_r : rest_6;
        for (int64_t r = rest_7; r < n_r; r++) {
            double M_vals_8 = M_vals[i * n_r + r];
            for (int64_t p = T2_pos[i]; p < T2_pos[i + 1]; p++) {
                const int64_t k = T2_crd[p];
                int64_t rest_8 = T3_pos[p];
                const int64_t stop = T3_pos[p + 1];
                if (stop - rest_8 >= 64) {
                    const int64_t first = rest_8;
                    rest_8 = first + (stop - first) / 8 * 8;
                    double M_vals_8_1 = 0.0;
                    double M_vals_8_2 = 0.0;
                    double M_vals_8_3 = 0.0;
                    for (int64_t q = first; q < rest_8; q += 8) {
                        __builtin_prefetch(T_vals + q + 384);
                        __builtin_prefetch(T3_crd + q + 384);
                        M_vals_8 += T_vals[q] * C_vals[k * n_r + r] * D_vals[T3_crd[q] * n_r + r];
                        M_vals_8_1 += T_vals[q + 1] * C_vals[k * n_r + r] * D_vals[T3_crd[q + 1] * n_r + r];
                        M_vals_8_2 += T_vals[q + 2] * C_vals[k * n_r + r] * D_vals[T3_crd[q + 2] * n_r + r];
                        M_vals_8_3 += T_vals[q + 3] * C_vals[k * n_r + r] * D_vals[T3_crd[q + 3] * n_r + r];
                        M_vals_8 += T_vals[q + 4] * C_vals[k * n_r + r] * D_vals[T3_crd[q + 4] * n_r + r];
                        M_vals_8_1 += T_vals[q + 5] * C_vals[k * n_r + r] * D_vals[T3_crd[q + 5] * n_r + r];
                        M_vals_8_2 += T_vals[q + 6] * C_vals[k * n_r + r] * D_vals[T3_crd[q + 6] * n_r + r];
                        M_vals_8_3 += T_vals[q + 7] * C_vals[k * n_r + r] * D_vals[T3_crd[q + 7] * n_r + r];
                    }
                    M_vals_8 += M_vals_8_1 + M_vals_8_2 + M_vals_8_3;
                }
                for (int64_t q = rest_8; q < stop; q++) {
                    const int64_t l = T3_crd[q];
                    M_vals_8 += T_vals[q] * C_vals[k * n_r + r] * D_vals[l * n_r + r];
                }
            }
            M_vals[i * n_r + r] = M_vals_8;
        }
    }
    return 0;
}
