/* Names of CUDA for kernel text that a C compiler reads: the device side of the emulated device.
 *
 * The text is the very same that nvcc reads. Each name is a macro or a function of cuda_emulation.c;
 * accesses to memory are not written here at all: the compiler calls back before each of them
 * (-fsanitize=thread), with the address, the size and the place.
 */
#ifndef CUDA_EMULATION_H
#define CUDA_EMULATION_H
#pragma GCC system_header /* warnings are for the kernels' text */

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_operations.h"

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define CUDA_EMULATED 1

/* A gap before each variable, so that a step beyond one is not a step into the next. Its name tells
 * the line. */
#define EMULATED_JOIN2(a, b) a##b
#define EMULATED_JOIN(a, b) EMULATED_JOIN2(a, b)
#define EMULATED_IN(name)                                                                         \
    static char EMULATED_JOIN(EMULATED_JOIN(emulated_gap_, __LINE__),                             \
                              EMULATED_JOIN(_, __COUNTER__))[256]                                 \
        __attribute__((section(name), used, aligned(64)));                                        \
    static __attribute__((section(name), used, aligned(16)))
#define __shared__ EMULATED_IN("emulated_shared")
#define __constant__ EMULATED_IN("emulated_constant")

typedef struct { unsigned x, y, z; } uint3;
typedef uint3 dim3;

#define EMULATED_VECTORS(type, name)                                                              \
    typedef struct __attribute__((aligned(2 * sizeof(type)))) { type x, y; } name##2;             \
    typedef struct { type x, y, z; } name##3_packed;                                              \
    typedef struct __attribute__((aligned(sizeof(type) > 4 ? 16 : 4 * sizeof(type)))) {           \
        type x, y, z, w;                                                                          \
    } name##4;                                                                                    \
    static inline name##2 make_##name##2(type x, type y) { return (name##2){x, y}; }              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                          \
    {                                                                                             \
        return (name##4){x, y, z, w};                                                             \
    }
EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(unsigned, uint)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(unsigned short, ushort)
EMULATED_VECTORS(signed char, char)
EMULATED_VECTORS(unsigned char, uchar)
EMULATED_VECTORS(long long, longlong)
EMULATED_VECTORS(unsigned long long, ulonglong)
typedef float3_packed float3;
typedef double3_packed double3;
typedef int3_packed int3;
static inline float3 make_float3(float x, float y, float z) { return (float3){x, y, z}; }
static inline double3 make_double3(double x, double y, double z) { return (double3){x, y, z}; }
static inline int3 make_int3(int x, int y, int z) { return (int3){x, y, z}; }
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return (uint3){x, y, z}; }

#pragma GCC visibility push(hidden)
/* Constant for a thread, which is all that the text can see of them. */
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
extern unsigned char emulated_dynamic_shared[];
#define warpSize 32

/* ---------------------------------------------------------------- synchronisation */

int emulated_barrier(int operation, int predicate, unsigned site, unsigned line);
uint64_t emulated_warp(
    int operation, unsigned mask, uint64_t bits, int by, int width, unsigned line);

#define EMULATED_BARRIER(operation, predicate)                                                    \
    emulated_barrier(operation, predicate, __COUNTER__, __LINE__)
#define __syncthreads() ((void)EMULATED_BARRIER(EMULATED_SYNC, 0))
#define __syncthreads_count(predicate) EMULATED_BARRIER(EMULATED_COUNT_TRUE, (predicate) != 0)
#define __syncthreads_and(predicate) EMULATED_BARRIER(EMULATED_ALL_TRUE, (predicate) != 0)
#define __syncthreads_or(predicate) EMULATED_BARRIER(EMULATED_ANY_TRUE, (predicate) != 0)

#define __syncwarp(...)                                                                           \
    ((void)emulated_warp(EMULATED_SYNC, 0xffffffffu __VA_OPT__(&(__VA_ARGS__)), 0, 0, 32, __LINE__))
#define EMULATED_MOVE(operation, mask, value, by, ...)                                            \
    __extension__({                                                                               \
        union { __typeof__((value) + 0) value_; uint64_t bits_; } emulated_moved = {0};           \
        emulated_moved.value_ = (value);                                                          \
        emulated_moved.bits_ = emulated_warp(operation, mask, emulated_moved.bits_, (int)(by),    \
                                             32 __VA_OPT__(-32 + (__VA_ARGS__)), __LINE__);       \
        emulated_moved.value_;                                                                    \
    })
#define __shfl_sync(mask, value, lane, ...)                                                       \
    EMULATED_MOVE(EMULATED_SHUFFLE, mask, value, lane __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_up_sync(mask, value, by, ...)                                                      \
    EMULATED_MOVE(EMULATED_UP, mask, value, by __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_down_sync(mask, value, by, ...)                                                    \
    EMULATED_MOVE(EMULATED_DOWN, mask, value, by __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_xor_sync(mask, value, by, ...)                                                     \
    EMULATED_MOVE(EMULATED_XOR, mask, value, by __VA_OPT__(, ) __VA_ARGS__)

#define EMULATED_VOTE(operation, mask, bits) emulated_warp(operation, mask, bits, 0, 32, __LINE__)
#define __ballot_sync(mask, predicate)                                                            \
    ((unsigned)EMULATED_VOTE(EMULATED_BALLOT, mask, (predicate) != 0))
#define __all_sync(mask, predicate) ((int)EMULATED_VOTE(EMULATED_ALL, mask, (predicate) != 0))
#define __any_sync(mask, predicate) ((int)EMULATED_VOTE(EMULATED_ANY, mask, (predicate) != 0))
#define EMULATED_BITS(value)                                                                      \
    __extension__({                                                                               \
        union { __typeof__((value) + 0) value_; uint64_t bits_; } emulated_as_bits = {0};         \
        emulated_as_bits.value_ = (value);                                                        \
        emulated_as_bits.bits_;                                                                   \
    })
#define __match_any_sync(mask, value)                                                             \
    ((unsigned)EMULATED_VOTE(EMULATED_MATCH_ANY, mask, EMULATED_BITS(value)))
#define EMULATED_REDUCE(mask, value, for_signed, for_unsigned)                                    \
    _Generic((value),                                                                             \
        int: (int)EMULATED_VOTE(for_signed, mask, (uint64_t)(int64_t)(value)),                    \
        unsigned: (unsigned)EMULATED_VOTE(for_unsigned, mask, (uint64_t)(value)))
#define __reduce_add_sync(mask, value) EMULATED_REDUCE(mask, value, EMULATED_ADD, EMULATED_ADD)
#define __reduce_min_sync(mask, value)                                                            \
    EMULATED_REDUCE(mask, value, EMULATED_MIN_SIGNED, EMULATED_MIN_UNSIGNED)
#define __reduce_max_sync(mask, value)                                                            \
    EMULATED_REDUCE(mask, value, EMULATED_MAX_SIGNED, EMULATED_MAX_UNSIGNED)
#define EMULATED_REDUCE_BITS(operation, mask, value)                                              \
    _Generic((value), unsigned: (unsigned)EMULATED_VOTE(operation, mask, (uint64_t)(value)))
#define __reduce_and_sync(mask, value) EMULATED_REDUCE_BITS(EMULATED_AND, mask, value)
#define __reduce_or_sync(mask, value) EMULATED_REDUCE_BITS(EMULATED_OR, mask, value)
#define __reduce_xor_sync(mask, value) EMULATED_REDUCE_BITS(EMULATED_XOR_ALL, mask, value)
/* The least that the hardware may answer: lanes need not run together. */
unsigned __activemask(void);

void emulated_fence(void);
#define __threadfence() emulated_fence()
#define __threadfence_system() emulated_fence()
#define __threadfence_block() __asm__ volatile("" ::: "memory")
#define __nanosleep(ns) ((void)(ns))
void __trap(void);
void *emulated_copy(void *to, const void *from, size_t bytes);
void *emulated_fill(void *to, int byte, size_t bytes);
#define memcpy(to, from, bytes) emulated_copy(to, from, bytes)
#define memset(to, byte, bytes) emulated_fill(to, byte, bytes)

/* ---------------------------------------------------------------- atomics */

/* The types that CUDA has each of them for; another is an error of the compiler. */
#define EMULATED_I32(X) X(int, i32)
#define EMULATED_U32(X) X(unsigned, u32)
#define EMULATED_I64(X) X(long long, i64)
#define EMULATED_U64(X) X(unsigned long long, u64)
#define EMULATED_F32(X) X(float, f32)
#define EMULATED_F64(X) X(double, f64)
#define EMULATED_INTEGERS(X) EMULATED_I32(X) EMULATED_U32(X) EMULATED_U64(X)
#define EMULATED_ADDED(X) EMULATED_INTEGERS(X) EMULATED_F32(X) EMULATED_F64(X)
#define EMULATED_SUBTRACTED(X) EMULATED_I32(X) EMULATED_U32(X)
#define EMULATED_EXCHANGED(X) EMULATED_INTEGERS(X) EMULATED_F32(X)
#define EMULATED_ORDERED(X) EMULATED_INTEGERS(X) EMULATED_I64(X)

#define EMULATED_DECLARE_add(T, n) T emulated_add_##n(T *place, T value);
#define EMULATED_DECLARE_sub(T, n) T emulated_sub_##n(T *place, T value);
#define EMULATED_DECLARE_exchange(T, n) T emulated_exchange_##n(T *place, T value);
#define EMULATED_DECLARE_min(T, n) T emulated_min_##n(T *place, T value);
#define EMULATED_DECLARE_max(T, n) T emulated_max_##n(T *place, T value);
#define EMULATED_DECLARE_and(T, n) T emulated_and_##n(T *place, T value);
#define EMULATED_DECLARE_or(T, n) T emulated_or_##n(T *place, T value);
#define EMULATED_DECLARE_xor(T, n) T emulated_xor_##n(T *place, T value);
#define EMULATED_DECLARE_cas(T, n) T emulated_cas_##n(T *place, T expected, T value);
EMULATED_ADDED(EMULATED_DECLARE_add)
EMULATED_SUBTRACTED(EMULATED_DECLARE_sub)
EMULATED_EXCHANGED(EMULATED_DECLARE_exchange)
EMULATED_ORDERED(EMULATED_DECLARE_min)
EMULATED_ORDERED(EMULATED_DECLARE_max)
EMULATED_INTEGERS(EMULATED_DECLARE_and)
EMULATED_INTEGERS(EMULATED_DECLARE_or)
EMULATED_INTEGERS(EMULATED_DECLARE_xor)
EMULATED_INTEGERS(EMULATED_DECLARE_cas)
unsigned short emulated_cas_u16(unsigned short *place, unsigned short expected, unsigned short value);
unsigned emulated_increment_u32(unsigned *place, unsigned limit);
unsigned emulated_decrement_u32(unsigned *place, unsigned limit);
#pragma GCC visibility pop

#define EMULATED_BY_TYPE(name)                                                                    \
    int *: emulated_##name##_i32, unsigned *: emulated_##name##_u32,                              \
    unsigned long long *: emulated_##name##_u64
#define atomicAdd(place, value)                                                                   \
    _Generic((place), EMULATED_BY_TYPE(add), float *: emulated_add_f32,                    \
             double *: emulated_add_f64)(place, value)
#define atomicSub(place, value)                                                                   \
    _Generic((place), int *: emulated_sub_i32, unsigned *: emulated_sub_u32)(place, value)
#define atomicExch(place, value)                                                                  \
    _Generic((place), EMULATED_BY_TYPE(exchange), float *: emulated_exchange_f32)(place,   \
                                                                                         value)
#define atomicMin(place, value)                                                                   \
    _Generic((place), EMULATED_BY_TYPE(min), long long *: emulated_min_i64)(place, value)
#define atomicMax(place, value)                                                                   \
    _Generic((place), EMULATED_BY_TYPE(max), long long *: emulated_max_i64)(place, value)
#define atomicAnd(place, value) _Generic((place), EMULATED_BY_TYPE(and))(place, value)
#define atomicOr(place, value) _Generic((place), EMULATED_BY_TYPE(or))(place, value)
#define atomicXor(place, value) _Generic((place), EMULATED_BY_TYPE(xor))(place, value)
#define atomicCAS(place, expected, value)                                                         \
    _Generic((place), EMULATED_BY_TYPE(cas), unsigned short *: emulated_cas_u16)(          \
        place, expected, value)
#define atomicInc(place, limit) _Generic((place), unsigned *: emulated_increment_u32)(place, limit)
#define atomicDec(place, limit) _Generic((place), unsigned *: emulated_decrement_u32)(place, limit)

/* ---------------------------------------------------------------- arithmetic */

#define __ldg(place) (*(place))
#define __ldcg(place) (*(place))
#define __ldcs(place) (*(place))
#define __stcg(place, value) ((void)(*(place) = (value)))
#define __stcs(place, value) ((void)(*(place) = (value)))

#define EMULATED_LESS(a, b, less, single, twice)                                                  \
    __extension__({                                                                               \
        __typeof__((a) + (b)) emulated_a = (a), emulated_b = (b);                                 \
        _Generic(emulated_a, float: single((float)emulated_a, (float)emulated_b),                 \
                 double: twice((double)emulated_a, (double)emulated_b),                           \
                 default: emulated_a less emulated_b ? emulated_a : emulated_b);                  \
    })
#define min(a, b) EMULATED_LESS(a, b, <, fminf, fmin)
#define max(a, b) EMULATED_LESS(a, b, >, fmaxf, fmax)

#define abs(x)                                                                                    \
    _Generic((x), float: fabsf, double: fabs, long: labs, long long: llabs, default: abs)(x)

#define EMULATED_CAST(name, from, to)                                                             \
    static inline to name(from value)                                                             \
    {                                                                                             \
        union { from given; to cast; } both = {value};                                            \
        return both.cast;                                                                         \
    }
EMULATED_CAST(__float_as_int, float, int)
EMULATED_CAST(__float_as_uint, float, unsigned)
EMULATED_CAST(__int_as_float, int, float)
EMULATED_CAST(__uint_as_float, unsigned, float)
EMULATED_CAST(__double_as_longlong, double, long long)
EMULATED_CAST(__longlong_as_double, long long, double)

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x)
{
    unsigned result = 0;
    for (int i = 0; i < 32; i++)
        result |= (x >> i & 1u) << (31 - i);
    return result;
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

static inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
#define __fdividef(a, b) ((float)(a) / (float)(b))
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
#define __fmaf_rn(a, b, c) fmaf(a, b, c)
#define __fma_rn(a, b, c) fma(a, b, c)
#define __fsqrt_rn(x) sqrtf(x)
#define __dsqrt_rn(x) sqrt(x)
#define __frcp_rn(x) (1.0f / (float)(x))

/* Products and sums that are not to become one operation. */
#define EMULATED_ROUNDED(name, type, operator)                                                    \
    static inline type name(type a, type b)                                                       \
    {                                                                                             \
        type result = a operator b;                                                               \
        __asm__("" : "+m"(result));                                                               \
        return result;                                                                            \
    }
EMULATED_ROUNDED(__fadd_rn, float, +)
EMULATED_ROUNDED(__fsub_rn, float, -)
EMULATED_ROUNDED(__fmul_rn, float, *)
EMULATED_ROUNDED(__fdiv_rn, float, /)
EMULATED_ROUNDED(__dadd_rn, double, +)
EMULATED_ROUNDED(__dsub_rn, double, -)
EMULATED_ROUNDED(__dmul_rn, double, *)
EMULATED_ROUNDED(__ddiv_rn, double, /)

/* What a function returns, as a structure, right into memory (y[i] = f(x[i])) is a write that the
   compiler calls out only where the function is part of its caller. */
#define inline inline __attribute__((always_inline))

#endif
