/* Scalar functions of kernels (codegen/libraries/scalar_functions.py), with NumPy's results.
 *
 * A kernel includes this file where it calls one of them. All are pure, and those that loops call in vector
 * lanes have no branches. Nothing here relies on flags: overflow goes through unsigned integers. What the C
 * library computes is called through builtins, so that its headers need not be read.
 */
#ifndef TACO_MATH_H
#define TACO_MATH_H

#include <stdbool.h>
#include <stdint.h>

#define TACO_PURE static inline __attribute__((always_inline, unused))

/* ---------------------------------------------------------------- integers */

#define TACO_DEFINE_SIGNED(bits)                                                                               \
    TACO_PURE int##bits##_t taco_abs_i##bits(int##bits##_t x)                                                  \
    {                                                                                                          \
        return (int##bits##_t)(x < 0 ? (uint##bits##_t)(0u - (uint##bits##_t)x) : (uint##bits##_t)x);          \
    }                                                                                                          \
    TACO_PURE int##bits##_t taco_sign_i##bits(int##bits##_t x)                                                 \
    {                                                                                                          \
        return (int##bits##_t)((x > 0) - (x < 0));                                                             \
    }                                                                                                          \
    /* The quotient rounded down, and what remains; the smallest number divided by -1 wraps. */                \
    TACO_PURE int##bits##_t taco_floor_divide_i##bits(int##bits##_t x, int##bits##_t y)                        \
    {                                                                                                          \
        const int##bits##_t divisor = (int##bits##_t)(y == 0 || y == -1 ? 1 : y);                              \
        const int##bits##_t quotient = (int##bits##_t)(x / divisor);                                           \
        const bool below = x % divisor != 0 && (x < 0) != (y < 0);                                             \
        const int##bits##_t found = (int##bits##_t)(quotient - below);                                         \
        return y == 0 ? 0 : y == -1 ? (int##bits##_t)(uint##bits##_t)(0u - (uint##bits##_t)x) : found;         \
    }                                                                                                          \
    TACO_PURE int##bits##_t taco_remainder_i##bits(int##bits##_t x, int##bits##_t y)                           \
    {                                                                                                          \
        const int##bits##_t divisor = (int##bits##_t)(y == 0 || y == -1 ? 1 : y);                              \
        const int##bits##_t left = (int##bits##_t)(x % divisor);                                               \
        return (int##bits##_t)(left != 0 && (left < 0) != (y < 0) ? left + y : left);                          \
    }                                                                                                          \
    TACO_PURE int##bits##_t taco_power_i##bits(int##bits##_t x, int##bits##_t y)                               \
    {                                                                                                          \
        if (y < 0)                                                                                             \
            return (int##bits##_t)(x == 1 ? 1 : x == -1 ? ((y & 1) != 0 ? -1 : 1) : 0);                        \
        return (int##bits##_t)taco_power_u##bits((uint##bits##_t)x, (uint##bits##_t)y);                        \
    }                                                                                                          \
    TACO_PURE int##bits##_t taco_left_shift_i##bits(int##bits##_t x, int##bits##_t y)                          \
    {                                                                                                          \
        return (int##bits##_t)taco_left_shift_u##bits((uint##bits##_t)x, (uint##bits##_t)y);                   \
    }                                                                                                          \
    TACO_PURE int##bits##_t taco_right_shift_i##bits(int##bits##_t x, int##bits##_t y)                         \
    {                                                                                                          \
        const uint##bits##_t by = (uint##bits##_t)y;                                                           \
        return (int##bits##_t)(x >> (by < bits ? by : bits - 1));                                              \
    }

#define TACO_DEFINE_UNSIGNED(bits)                                                                             \
    TACO_PURE uint##bits##_t taco_sign_u##bits(uint##bits##_t x)                                               \
    {                                                                                                          \
        return (uint##bits##_t)(x != 0);                                                                       \
    }                                                                                                          \
    TACO_PURE uint##bits##_t taco_floor_divide_u##bits(uint##bits##_t x, uint##bits##_t y)                     \
    {                                                                                                          \
        const uint##bits##_t quotient = (uint##bits##_t)(x / (uint##bits##_t)(y == 0 ? 1 : y));                \
        return y == 0 ? 0 : quotient;                                                                          \
    }                                                                                                          \
    TACO_PURE uint##bits##_t taco_remainder_u##bits(uint##bits##_t x, uint##bits##_t y)                        \
    {                                                                                                          \
        return (uint##bits##_t)(x % (uint##bits##_t)(y == 0 ? 1 : y));                                         \
    }                                                                                                          \
    static inline __attribute__((unused)) uint##bits##_t taco_power_u##bits(uint##bits##_t x, uint##bits##_t y)\
    {                                                                                                          \
        uint##bits##_t found = 1;                                                                              \
        for (uint64_t square = x; y != 0; y = (uint##bits##_t)(y >> 1), square *= square)                      \
            found = (uint##bits##_t)((y & 1) != 0 ? found * square : found);                                   \
        return found;                                                                                          \
    }                                                                                                          \
    TACO_PURE uint##bits##_t taco_left_shift_u##bits(uint##bits##_t x, uint##bits##_t y)                       \
    {                                                                                                          \
        const uint##bits##_t shifted = (uint##bits##_t)((uint64_t)x << (y & (bits - 1)));                      \
        return y < bits ? shifted : 0;                                                                         \
    }                                                                                                          \
    TACO_PURE uint##bits##_t taco_right_shift_u##bits(uint##bits##_t x, uint##bits##_t y)                      \
    {                                                                                                          \
        const uint##bits##_t shifted = (uint##bits##_t)(x >> (y & (bits - 1)));                                \
        return y < bits ? shifted : 0;                                                                         \
    }

/* Truths of numbers: whether they differ from 0, as a NaN does. */
#define TACO_DEFINE_TRUTHS(suffix, type)                                                                       \
    TACO_PURE bool taco_logical_and_##suffix(type x, type y)                                                   \
    {                                                                                                          \
        return (x != 0) & (y != 0);                                                                            \
    }                                                                                                          \
    TACO_PURE bool taco_logical_or_##suffix(type x, type y)                                                    \
    {                                                                                                          \
        return (x != 0) | (y != 0);                                                                            \
    }                                                                                                          \
    TACO_PURE bool taco_logical_xor_##suffix(type x, type y)                                                   \
    {                                                                                                          \
        return (x != 0) ^ (y != 0);                                                                            \
    }                                                                                                          \
    TACO_PURE bool taco_logical_not_##suffix(type x)                                                           \
    {                                                                                                          \
        return x == 0;                                                                                         \
    }

#define TACO_DEFINE_INTEGERS(bits)                                                                             \
    TACO_DEFINE_UNSIGNED(bits)                                                                                 \
    TACO_DEFINE_SIGNED(bits)                                                                                   \
    TACO_DEFINE_TRUTHS(i##bits, int##bits##_t)                                                                 \
    TACO_DEFINE_TRUTHS(u##bits, uint##bits##_t)                                                                \
    TACO_PURE int##bits##_t taco_invert_i##bits(int##bits##_t x)                                               \
    {                                                                                                          \
        return (int##bits##_t)~x;                                                                              \
    }                                                                                                          \
    TACO_PURE uint##bits##_t taco_invert_u##bits(uint##bits##_t x)                                             \
    {                                                                                                          \
        return (uint##bits##_t)~x;                                                                             \
    }

TACO_DEFINE_INTEGERS(8)
TACO_DEFINE_INTEGERS(16)
TACO_DEFINE_INTEGERS(32)
TACO_DEFINE_INTEGERS(64)

/* ---------------------------------------------------------------- real numbers, in terms of C's
 *
 * `fmin` and `fmax` take the other number where one is a NaN. A quotient is rounded down as NumPy does it:
 * from what fmod leaves, so that x = y * floor_divide(x, y) + remainder(x, y).
 */

#define TACO_DEFINE_REALS(suffix, type, end, largest)                                                          \
    TACO_DEFINE_TRUTHS(suffix, type)                                                                           \
    TACO_PURE bool taco_isnan_##suffix(type x)                                                                 \
    {                                                                                                          \
        return x != x;                                                                                         \
    }                                                                                                          \
    TACO_PURE bool taco_isinf_##suffix(type x)                                                                 \
    {                                                                                                          \
        return __builtin_fabs##end(x) > largest;                                                               \
    }                                                                                                          \
    TACO_PURE bool taco_isfinite_##suffix(type x)                                                              \
    {                                                                                                          \
        return __builtin_fabs##end(x) <= largest;                                                              \
    }                                                                                                          \
    TACO_PURE type taco_sign_##suffix(type x)                                                                  \
    {                                                                                                          \
        return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;                                                        \
    }                                                                                                          \
    TACO_PURE type taco_angle_##suffix(type x)                                                                 \
    {                                                                                                          \
        const type turn = __builtin_copysign##end((type)1, x) < 0 ? (type)3.14159265358979323846 : 0;          \
        return x != x ? x : turn;                                                                              \
    }                                                                                                          \
    TACO_PURE type taco_fmin_##suffix(type x, type y)                                                          \
    {                                                                                                          \
        return x <= y || y != y ? x : y;                                                                       \
    }                                                                                                          \
    TACO_PURE type taco_fmax_##suffix(type x, type y)                                                          \
    {                                                                                                          \
        return x >= y || y != y ? x : y;                                                                       \
    }                                                                                                          \
    static inline __attribute__((unused)) type taco_remainder_##suffix(type x, type y)                         \
    {                                                                                                          \
        const type left = __builtin_fmod##end(x, y);                                                           \
        if (left == 0)                                                                                         \
            return __builtin_copysign##end((type)0, y);                                                        \
        return left == left && (left < 0) != (y < 0) ? left + y : left;                                        \
    }                                                                                                          \
    static inline __attribute__((unused)) type taco_floor_divide_##suffix(type x, type y)                      \
    {                                                                                                          \
        if (y == 0)                                                                                            \
            return x / y;                                                                                      \
        const type left = __builtin_fmod##end(x, y);                                                           \
        const type quotient = (x - left) / y - (left != 0 && (left < 0) != (y < 0));                           \
        if (quotient == 0)                                                                                     \
            return __builtin_copysign##end((type)0, x / y);                                                    \
        const type down = __builtin_floor##end(quotient);                                                      \
        return quotient - down > (type)0.5 ? down + 1 : down;                                                  \
    }

TACO_DEFINE_REALS(f32, float, f, __FLT_MAX__)
TACO_DEFINE_REALS(f64, double, , __DBL_MAX__)

/* ---------------------------------------------------------------- elementary functions
 *
 * Polynomials where the machine multiplies and adds in one step, else the C library's functions: there, what is
 * lost in rounding cannot be told.
 */

#if defined(__FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__)

#define taco_fma_f32(x, y, z) __builtin_fmaf(x, y, z)
#define taco_fma_f64(x, y, z) __builtin_fma(x, y, z)

#include "taco_polynomials.h"

/* SHIFT      1.5 * 2**MANTISSA            WHOLE     2**MANTISSA
 * EPSILON    what x + x**2 is x below     LEAST     normal number; LIFT makes subnormal ones normal
 * EXP_0, EXP_INF   what exp is 0 below, and infinite above
 * LARGE, ERF_1     what exp(-x) and 1 - erf(x) are nothing beside 1 above
 * FAR        up to where sine and cosine are reduced in lanes */
#define TACO_SHIFT_f64 0x1.8p52
#define TACO_WHOLE_f64 0x1p52
#define TACO_EPSILON_f64 0x1p-54
#define TACO_LEAST_f64 0x1p-1022
#define TACO_LIFT_f64 0x1p54
#define TACO_LIFT_BY_3_f64 0x1p54
#define TACO_LIFTS_BY_3_f64 18
#define TACO_EXP_0_f64 -750.0
#define TACO_EXP_INF_f64 710.0
#define TACO_LARGE_f64 40.0
#define TACO_ERF_1_f64 6.0
#define TACO_ERF_SPLIT_f64 0.8125
#define TACO_FAR_f64 0x1p30
#define TACO_SHIFT_f32 0x1.8p23f
#define TACO_WHOLE_f32 0x1p23f
#define TACO_EPSILON_f32 0x1p-25f
#define TACO_LEAST_f32 0x1p-126f
#define TACO_LIFT_f32 0x1p25f
#define TACO_LIFT_BY_3_f32 0x1p24f
#define TACO_LIFTS_BY_3_f32 8
#define TACO_EXP_0_f32 -105.0f
#define TACO_EXP_INF_f32 89.0f
#define TACO_LARGE_f32 20.0f
#define TACO_ERF_1_f32 4.0f
#define TACO_ERF_SPLIT_f32 0.8125f
#define TACO_FAR_f32 0x1p17f

/* Sines and cosines of what is beyond FAR are the C library's. gcc takes a function of vectors for that of
 * scalars which is declared `simd`, by the name that the processor's ABI prescribes for it; here it looks at a
 * vector as a whole, and seldom at its lanes. Other compilers call the function for one lane after another. */
#if defined(TACO_SINES) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#define TACO_DEFINE_FAR(name, suffix, real, function)                                                          \
    real taco_##name##_or_far_##suffix(real, real) __attribute__((simd("notinbranch"), const, nothrow));       \
    static __attribute__((noinline, used)) real taco_far_##name##_##suffix(real x, real near)                  \
        __asm__("taco_" #name "_or_far_" #suffix);                                                             \
    static real taco_far_##name##_##suffix(real x, real near)                                                  \
    {                                                                                                          \
        return x > TACO_FAR_##suffix || x < -TACO_FAR_##suffix ? function(x) : near;                           \
    }

#define TACO_DEFINE_LANES(suffix, real, whole, isa, lanes)                                                     \
    typedef real taco_reals_##suffix##isa __attribute__((vector_size(lanes * sizeof(real))));                  \
    typedef whole taco_wholes_##suffix##isa __attribute__((vector_size(lanes * sizeof(real))));

#define TACO_DEFINE_FAR_LANES(name, suffix, whole, isa, lanes, function)                                       \
    static __attribute__((noinline, used)) taco_reals_##suffix##isa taco_far_##name##_##suffix##isa(           \
        taco_reals_##suffix##isa x, taco_reals_##suffix##isa near)                                             \
        __asm__("_ZGV" #isa "N" #lanes "vv_taco_" #name "_or_far_" #suffix);                                   \
    static taco_reals_##suffix##isa taco_far_##name##_##suffix##isa(                                           \
        taco_reals_##suffix##isa x, taco_reals_##suffix##isa near)                                             \
    {                                                                                                          \
        const taco_wholes_##suffix##isa far = (x > TACO_FAR_##suffix) | (x < -TACO_FAR_##suffix);              \
        whole any = 0;                                                                                         \
        for (int k = 0; k < lanes; k++)                                                                        \
            any |= far[k];                                                                                     \
        if (__builtin_expect(any != 0, 0))                                                                     \
            for (int k = 0; k < lanes; k++)                                                                    \
                near[k] = far[k] != 0 ? function(x[k]) : near[k];                                              \
        return near;                                                                                           \
    }

#define TACO_DEFINE_ALL_LANES(isa, doubles, floats)                                                            \
    TACO_DEFINE_LANES(f64, double, int64_t, isa, doubles)                                                      \
    TACO_DEFINE_LANES(f32, float, int32_t, isa, floats)                                                        \
    TACO_DEFINE_FAR_LANES(sin, f64, int64_t, isa, doubles, __builtin_sin)                                      \
    TACO_DEFINE_FAR_LANES(cos, f64, int64_t, isa, doubles, __builtin_cos)                                      \
    TACO_DEFINE_FAR_LANES(sin, f32, int32_t, isa, floats, __builtin_sinf)                                      \
    TACO_DEFINE_FAR_LANES(cos, f32, int32_t, isa, floats, __builtin_cosf)

#else

#define TACO_DEFINE_FAR(name, suffix, real, function)                                                          \
    static inline __attribute__((unused)) real taco_##name##_or_far_##suffix(real x, real near)                \
    {                                                                                                          \
        return x > TACO_FAR_##suffix || x < -TACO_FAR_##suffix ? function(x) : near;                           \
    }

#define TACO_DEFINE_ALL_LANES(isa, doubles, floats)

#endif

TACO_DEFINE_FAR(sin, f64, double, __builtin_sin)
TACO_DEFINE_FAR(cos, f64, double, __builtin_cos)
TACO_DEFINE_FAR(sin, f32, float, __builtin_sinf)
TACO_DEFINE_FAR(cos, f32, float, __builtin_cosf)
TACO_DEFINE_ALL_LANES(b, 2, 4)
#ifdef __AVX__
TACO_DEFINE_ALL_LANES(c, 4, 8)
#endif
#ifdef __AVX2__
TACO_DEFINE_ALL_LANES(d, 4, 8)
#endif
#ifdef __AVX512F__
TACO_DEFINE_ALL_LANES(e, 8, 16)
#endif

#define REAL double
#define BITS uint64_t
#define ITS(name) taco_##name##_f64
#define NUMBER(name) TACO_##name##_f64
#define BUILTIN(name) __builtin_##name
#define MANTISSA 52
#define BIAS 1023
#include "taco_elementary.h"
#undef REAL
#undef BITS
#undef ITS
#undef NUMBER
#undef BUILTIN
#undef MANTISSA
#undef BIAS
#define REAL float
#define BITS uint32_t
#define ITS(name) taco_##name##_f32
#define NUMBER(name) TACO_##name##_f32
#define BUILTIN(name) __builtin_##name##f
#define MANTISSA 23
#define BIAS 127
#include "taco_elementary.h"
#undef REAL
#undef BITS
#undef ITS
#undef NUMBER
#undef BUILTIN
#undef MANTISSA
#undef BIAS

#else

#define TACO_DEFINE_POLYNOMIALS(suffix, type, end)                                                             \
    TACO_PURE type taco_exp_##suffix(type x) { return __builtin_exp##end(x); }                                 \
    TACO_PURE type taco_expm1_##suffix(type x) { return __builtin_expm1##end(x); }                             \
    TACO_PURE type taco_log_##suffix(type x) { return __builtin_log##end(x); }                                 \
    TACO_PURE type taco_log1p_##suffix(type x) { return __builtin_log1p##end(x); }                             \
    TACO_PURE type taco_log2_##suffix(type x) { return __builtin_log2##end(x); }                               \
    TACO_PURE type taco_log10_##suffix(type x) { return __builtin_log10##end(x); }                             \
    TACO_PURE type taco_sin_##suffix(type x) { return __builtin_sin##end(x); }                                 \
    TACO_PURE type taco_cos_##suffix(type x) { return __builtin_cos##end(x); }                                 \
    TACO_PURE type taco_tanh_##suffix(type x) { return __builtin_tanh##end(x); }                               \
    TACO_PURE type taco_cbrt_##suffix(type x) { return __builtin_cbrt##end(x); }                               \
    TACO_PURE type taco_erf_##suffix(type x) { return __builtin_erf##end(x); }                                 \
    TACO_PURE type taco_sigmoid_##suffix(type x)                                                               \
    {                                                                                                          \
        const type e = __builtin_exp##end(-__builtin_fabs##end(x));                                            \
        return x < 0 ? e / (1 + e) : 1 / (1 + e);                                                              \
    }

TACO_DEFINE_POLYNOMIALS(f32, float, f)
TACO_DEFINE_POLYNOMIALS(f64, double, )

#endif

/* ---------------------------------------------------------------- complex numbers
 *
 * NumPy orders them by real part, then imaginary part. Functions that C lacks are made of those that it has,
 * by NumPy's formulas. (Kernels of CUDA have other functions of the names taco_multiply and taco_divide, for there
 * a complex number is two.)
 */

#define TACO_DEFINE_COMPLEX(suffix, type, real, part, end)                                                     \
    TACO_PURE bool taco_truth_##suffix(type z)                                                                 \
    {                                                                                                          \
        return (__real__ z != 0) | (__imag__ z != 0);                                                          \
    }                                                                                                          \
    TACO_PURE bool taco_logical_and_##suffix(type x, type y)                                                   \
    {                                                                                                          \
        return taco_truth_##suffix(x) & taco_truth_##suffix(y);                                                \
    }                                                                                                          \
    TACO_PURE bool taco_logical_or_##suffix(type x, type y)                                                    \
    {                                                                                                          \
        return taco_truth_##suffix(x) | taco_truth_##suffix(y);                                                \
    }                                                                                                          \
    TACO_PURE bool taco_logical_xor_##suffix(type x, type y)                                                   \
    {                                                                                                          \
        return taco_truth_##suffix(x) ^ taco_truth_##suffix(y);                                                \
    }                                                                                                          \
    TACO_PURE bool taco_logical_not_##suffix(type x)                                                           \
    {                                                                                                          \
        return !taco_truth_##suffix(x);                                                                        \
    }                                                                                                          \
    TACO_PURE bool taco_isnan_##suffix(type z)                                                                 \
    {                                                                                                          \
        return taco_isnan_##part(__real__ z) | taco_isnan_##part(__imag__ z);                                  \
    }                                                                                                          \
    TACO_PURE bool taco_isinf_##suffix(type z)                                                                 \
    {                                                                                                          \
        return taco_isinf_##part(__real__ z) | taco_isinf_##part(__imag__ z);                                  \
    }                                                                                                          \
    TACO_PURE bool taco_isfinite_##suffix(type z)                                                              \
    {                                                                                                          \
        return taco_isfinite_##part(__real__ z) & taco_isfinite_##part(__imag__ z);                            \
    }                                                                                                          \
    TACO_PURE type taco_make_##suffix(real x, real y)                                                          \
    {                                                                                                          \
        type z;                                                                                                \
        __real__ z = x;                                                                                        \
        __imag__ z = y;                                                                                        \
        return z;                                                                                              \
    }                                                                                                          \
    TACO_PURE type taco_multiply_##suffix(type a, type b)                                                      \
    {                                                                                                          \
        return a * b;                                                                                          \
    }                                                                                                          \
    TACO_PURE type taco_divide_##suffix(type a, type b)                                                        \
    {                                                                                                          \
        const real x = __builtin_fabs##end(__real__ b), y = __builtin_fabs##end(__imag__ b);                   \
        return x + y == 0 ? taco_make_##suffix(__real__ a / x, __imag__ a / x) : a / b;                        \
    }                                                                                                          \
    TACO_PURE bool taco_less_##suffix(type a, type b)                                                          \
    {                                                                                                          \
        const bool known = !taco_isnan_##part(__imag__ a) & !taco_isnan_##part(__imag__ b);                    \
        return ((__real__ a < __real__ b) & known) | ((__real__ a == __real__ b) & (__imag__ a < __imag__ b)); \
    }                                                                                                          \
    TACO_PURE bool taco_less_equal_##suffix(type a, type b)                                                    \
    {                                                                                                          \
        const bool known = !taco_isnan_##part(__imag__ a) & !taco_isnan_##part(__imag__ b);                    \
        return ((__real__ a < __real__ b) & known) | ((__real__ a == __real__ b) & (__imag__ a <= __imag__ b));\
    }                                                                                                          \
    TACO_PURE bool taco_greater_##suffix(type a, type b)                                                       \
    {                                                                                                          \
        return taco_less_##suffix(b, a);                                                                       \
    }                                                                                                          \
    TACO_PURE bool taco_greater_equal_##suffix(type a, type b)                                                 \
    {                                                                                                          \
        return taco_less_equal_##suffix(b, a);                                                                 \
    }                                                                                                          \
    TACO_PURE type taco_minimum_##suffix(type a, type b)                                                       \
    {                                                                                                          \
        return taco_isnan_##suffix(a) | taco_less_equal_##suffix(a, b) ? a : b;                                \
    }                                                                                                          \
    TACO_PURE type taco_maximum_##suffix(type a, type b)                                                       \
    {                                                                                                          \
        return taco_isnan_##suffix(a) | taco_less_equal_##suffix(b, a) ? a : b;                                \
    }                                                                                                          \
    TACO_PURE type taco_fmin_##suffix(type a, type b)                                                          \
    {                                                                                                          \
        return taco_isnan_##suffix(b) | taco_less_equal_##suffix(a, b) ? a : b;                                \
    }                                                                                                          \
    TACO_PURE type taco_fmax_##suffix(type a, type b)                                                          \
    {                                                                                                          \
        return taco_isnan_##suffix(b) | taco_less_equal_##suffix(b, a) ? a : b;                                \
    }                                                                                                          \
    TACO_PURE type taco_rint_##suffix(type z)                                                                  \
    {                                                                                                          \
        return taco_make_##suffix(__builtin_rint##end(__real__ z), __builtin_rint##end(__imag__ z));           \
    }                                                                                                          \
    static inline __attribute__((unused)) type taco_sign_##suffix(type z)                                      \
    {                                                                                                          \
        const real size = __builtin_cabs##end(z);                                                              \
        if (size == 0 || size != size)                                                                         \
            return taco_make_##suffix(size, size);                                                             \
        if (taco_isinf_##part(size)) {                                                                         \
            const bool x = taco_isinf_##part(__real__ z), y = taco_isinf_##part(__imag__ z);                   \
            const real one = __builtin_copysign##end((real)1, x ? __real__ z : __imag__ z), none = 0;          \
            return x && y ? taco_make_##suffix(__builtin_nan##end(""), __builtin_nan##end(""))                 \
                          : taco_make_##suffix(x ? one : none, x ? none : one);                                \
        }                                                                                                      \
        return taco_make_##suffix(__real__ z / size, __imag__ z / size);                                       \
    }                                                                                                          \
    static inline __attribute__((unused)) type taco_power_##suffix(type z, type y)                             \
    {                                                                                                          \
        const type one = taco_make_##suffix(1, 0);                                                             \
        const real x = __real__ y;                                                                             \
        if (!taco_truth_##suffix(y))                                                                           \
            return one;                                                                                        \
        if (!taco_truth_##suffix(z))                                                                           \
            return x > 0 ? taco_make_##suffix(0, 0) : taco_make_##suffix(__builtin_nan##end(""), __builtin_nan##end(""));\
        if (__imag__ y != 0 || __builtin_fabs##end(x) >= 100 || __builtin_trunc##end(x) != x)                  \
            return __builtin_cpow##end(z, y);                                                                  \
        type found = one, square = z;                                                                          \
        for (int n = x < 0 ? (int)-x : (int)x; n > 0; n >>= 1, square = taco_multiply_##suffix(square, square))\
            found = (n & 1) != 0 ? taco_multiply_##suffix(found, square) : found;                              \
        return x < 0 ? taco_divide_##suffix(one, found) : found;                                               \
    }                                                                                                          \
    TACO_PURE type taco_times_##suffix(type z, real factor)                                                    \
    {                                                                                                          \
        return taco_make_##suffix(__real__ z * factor, __imag__ z * factor);                                   \
    }                                                                                                          \
    TACO_PURE type taco_log2_##suffix(type z)                                                                  \
    {                                                                                                          \
        return taco_times_##suffix(__builtin_clog##end(z), (real)1.442695040888963407359924681002);            \
    }                                                                                                          \
    TACO_PURE type taco_log10_##suffix(type z)                                                                 \
    {                                                                                                          \
        return taco_times_##suffix(__builtin_clog##end(z), (real)0.434294481903251827651128918917);            \
    }                                                                                                          \
    TACO_PURE type taco_exp2_##suffix(type z)                                                                  \
    {                                                                                                          \
        return __builtin_cexp##end(taco_times_##suffix(z, (real)0.693147180559945309417232121458));            \
    }                                                                                                          \
    TACO_PURE type taco_log1p_##suffix(type z)                                                                 \
    {                                                                                                          \
        const real size = __builtin_hypot##end(__real__ z + 1, __imag__ z);                                    \
        return taco_make_##suffix(__builtin_log##end(size), __builtin_atan2##end(__imag__ z, __real__ z + 1)); \
    }                                                                                                          \
    TACO_PURE type taco_expm1_##suffix(type z)                                                                 \
    {                                                                                                          \
        const real x = __real__ z, y = __imag__ z, half = __builtin_sin##end(y / 2);                           \
        return taco_make_##suffix(__builtin_expm1##end(x) * __builtin_cos##end(y) - 2 * half * half,           \
                                  __builtin_exp##end(x) * __builtin_sin##end(y));                              \
    }

TACO_DEFINE_COMPLEX(c64, float _Complex, float, f32, f)
TACO_DEFINE_COMPLEX(c128, double _Complex, double, f64, )

#endif
