/*
 * C[i,j] = sum(k, A[i,k] * B[k,j]) with A: dd/float32, B: dd/float32, C: dd/float32/oo
 *
 * tiles of 128 by 128, depth 8, 8 by 8 a thread, 256 threads
 *   classes: rows i; columns j; depth k
 *   registers: 64 of sums, 16 of factors, 8 ahead, 40 others: 128 of 128 expected
 *   shared memory: (132 + 128) * 8 * 4 = 8320 of 49152 bytes
 *   copies: left along k, 8 threads side by side, 4 of padding; right along j; no bank twice
 *   reads: 0.25 of shared memory a product, 0.0156 of global memory
 */

#include <stdint.h>

static __device__ inline int64_t taco_lead(const void *array, int64_t size, int64_t bytes)
{
    return (int64_t)(-(uintptr_t)array & (uintptr_t)(bytes - 1)) / size;
}

typedef float4 taco_float32x4;

extern "C" __global__ void __launch_bounds__(256, 2) evaluate_1(
    float *__restrict__ C_vals,
    const float *__restrict__ A_vals,
    const float *__restrict__ B_vals,
    int64_t n_i,
    int64_t n_j,
    int64_t n_k,
    int64_t C1_stride,
    int64_t A1_stride,
    int64_t B1_stride)
{
    const int64_t tiles_across = (n_j + 127) / 128;
    const int64_t tiles_down = (n_i + 127) / 128;
    for (int64_t tile = blockIdx.x; tile < tiles_down * tiles_across; tile += gridDim.x) {
        const int64_t i0 = tile / tiles_across * 128;
        const int64_t j0 = tile % tiles_across * 128;
        const bool whole = i0 + 128 <= n_i && j0 + 128 <= n_j;
        __shared__ float left_tile[1056] __attribute__((aligned(16)));
        __shared__ float right_tile[1024] __attribute__((aligned(16)));
        __syncthreads();
        const int32_t t = threadIdx.x;
        const int32_t row = t / 64 * 32 + t % 32 / 8 * 4;
        const int32_t column = t / 32 % 2 * 64 + t % 8 * 4;
        float sums[64] __attribute__((aligned(16)));
        float left_ahead[4];
        float right_ahead[4];
        #pragma unroll 64
        for (int32_t n = 0; n < 64; n++) {
            sums[n] = 0.0f;
        }
        for (int64_t k0 = 0; k0 < n_k + 8; k0 += 8) {
            if (whole && k0 + 8 <= n_k) {
                #pragma unroll 4
                for (int32_t n = 0; n < 4; n++) {
                    left_ahead[n] = A_vals[(i0 + t / 8 + n * 32) * A1_stride + (k0 + t % 8)];
                    right_ahead[n] = B_vals[j0 + t % 128 + (k0 + t / 128 + n * 2) * B1_stride];
                }
            } else if (k0 < n_k) {
                #pragma unroll 4
                for (int32_t n = 0; n < 4; n++) {
                    const int64_t i = i0 + t / 8 + n * 32;
                    const int64_t k = k0 + t % 8;
                    left_ahead[n] = k < n_k ? A_vals[(i < n_i ? i : n_i - 1) * A1_stride + k] : 0.0f;
                    const int64_t j = j0 + t % 128;
                    const int64_t l = k0 + t / 128 + n * 2;
                    right_ahead[n] = l < n_k ? B_vals[(j < n_j ? j : n_j - 1) + l * B1_stride] : 0.0f;
                }
            }
            if (0 < k0) {
                #pragma unroll 8
                for (int32_t k = 0; k < 8; k++) {
                    float left_own[8];
                    float right_own[8];
                    #pragma unroll 8
                    for (int32_t n = 0; n < 8; n++) {
                        left_own[n] = left_tile[k * 132 + row + n / 4 * 16 + n % 4];
                        right_own[n] = right_tile[k * 128 + column + n / 4 * 32 + n % 4];
                    }
                    #pragma unroll 8
                    for (int32_t r = 0; r < 8; r++) {
                        #pragma unroll 8
                        for (int32_t c = 0; c < 8; c++) {
                            sums[r * 8 + c] += left_own[r] * right_own[c];
                        }
                    }
                }
            }
            __syncthreads();
            #pragma unroll 4
            for (int32_t n = 0; n < 4; n++) {
                left_tile[t % 8 * 132 + (t / 8 + n * 32)] = left_ahead[n];
                right_tile[(t / 128 + n * 2) * 128 + t % 128] = right_ahead[n];
            }
            __syncthreads();
        }
        if (whole && (C1_stride % 4 == 0 && taco_lead(C_vals, 4, 16) == 0)) {
            #pragma unroll 8
            for (int32_t r = 0; r < 8; r++) {
                const int64_t i = i0 + row + r / 4 * 16 + r % 4;
                #pragma unroll 2
                for (int32_t c = 0; c < 2; c++) {
                    const int64_t j = j0 + column + c * 32;
                    *(taco_float32x4 *)&C_vals[i * C1_stride + j] = *(taco_float32x4 *)&sums[r * 8 + c * 4];
                }
            }
        } else {
            #pragma unroll 8
            for (int32_t r = 0; r < 8; r++) {
                const int64_t i = i0 + row + r / 4 * 16 + r % 4;
                #pragma unroll 8
                for (int32_t c = 0; c < 8; c++) {
                    const int64_t j = j0 + column + c / 4 * 32 + c % 4;
                    if (i < n_i && j < n_j) {
                        C_vals[i * C1_stride + j] = sums[r * 8 + c];
                    }
                }
            }
        }
    }
}
