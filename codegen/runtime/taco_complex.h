/* Complex numbers where the language has none: kernels of CUDA have two parts, z.x and z.y, for each.
 *
 * Functions of this file are defined in the text of kernels that call them (codegen/libraries/header_functions.py),
 * beside those of taco_math.h that are made of them. It says nothing that C and C++ read otherwise. The parts of
 * results are C's for infinities, NaN and zeros of either sign (ISO C, annex G); a product is (ac - bd) + (ad + bc) i
 * and a quotient Smith's, as in kernels in C. What is more than arithmetic is computed in double.
 */
#define TACO_DEFINE_PAIRS(suffix, type, real, end)                                                             \
    static inline type taco_make_##suffix(real x, real y)                                                      \
    {                                                                                                          \
        type z;                                                                                                \
        z.x = x;                                                                                               \
        z.y = y;                                                                                               \
        return z;                                                                                              \
    }                                                                                                          \
    static inline type taco_add_##suffix(type a, type b)                                                       \
    {                                                                                                          \
        return taco_make_##suffix(a.x + b.x, a.y + b.y);                                                       \
    }                                                                                                          \
    static inline type taco_subtract_##suffix(type a, type b)                                                  \
    {                                                                                                          \
        return taco_make_##suffix(a.x - b.x, a.y - b.y);                                                       \
    }                                                                                                          \
    static inline type taco_negative_##suffix(type a)                                                          \
    {                                                                                                          \
        return taco_make_##suffix(-a.x, -a.y);                                                                 \
    }                                                                                                          \
    static inline type taco_multiply_##suffix(type a, type b)                                                  \
    {                                                                                                          \
        return taco_make_##suffix(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                               \
    }                                                                                                          \
    static inline type taco_divide_##suffix(type a, type b)                                                    \
    {                                                                                                          \
        const real x = fabs##end(b.x), y = fabs##end(b.y);                                                     \
        if (x + y == 0)                                                                                        \
            return taco_make_##suffix(a.x / x, a.y / x);                                                       \
        const bool steep = x < y;                                                                              \
        const real ratio = steep ? b.x / b.y : b.y / b.x;                                                      \
        const real size = steep ? b.x * ratio + b.y : b.x + b.y * ratio;                                       \
        if (steep)                                                                                             \
            return taco_make_##suffix((a.x * ratio + a.y) / size, (a.y * ratio - a.x) / size);                 \
        return taco_make_##suffix((a.x + a.y * ratio) / size, (a.y - a.x * ratio) / size);                     \
    }                                                                                                          \
    static inline bool taco_equal_##suffix(type a, type b)                                                     \
    {                                                                                                          \
        return a.x == b.x && a.y == b.y;                                                                       \
    }                                                                                                          \
    static inline bool taco_not_equal_##suffix(type a, type b)                                                 \
    {                                                                                                          \
        return a.x != b.x || a.y != b.y;                                                                       \
    }                                                                                                          \
    static inline real taco_creal_##suffix(type z)                                                             \
    {                                                                                                          \
        return z.x;                                                                                            \
    }                                                                                                          \
    static inline real taco_cimag_##suffix(type z)                                                             \
    {                                                                                                          \
        return z.y;                                                                                            \
    }                                                                                                          \
    static inline type taco_conj_##suffix(type z)                                                              \
    {                                                                                                          \
        return taco_make_##suffix(z.x, -z.y);                                                                  \
    }                                                                                                          \
    static inline real taco_cabs_##suffix(type z)                                                              \
    {                                                                                                          \
        return hypot##end(z.x, z.y);                                                                           \
    }                                                                                                          \
    static inline real taco_carg_##suffix(type z)                                                              \
    {                                                                                                          \
        return atan2##end(z.y, z.x);                                                                           \
    }

TACO_DEFINE_PAIRS(c64, float2, float, f)
TACO_DEFINE_PAIRS(c128, double2, double, )

static inline double2 taco_widen(float2 z)
{
    return taco_make_c128(z.x, z.y);
}

static inline float2 taco_narrow(double2 z)
{
    return taco_make_c64((float)z.x, (float)z.y);
}

/* ---------------------------------------------------------------- roots, exponentials and logarithms */

static inline double2 taco_csqrt_c128(double2 z)
{
    if (isinf(z.y))
        return taco_make_c128(fabs(z.y), z.y);
    if (z.x == 0 && z.y == 0)
        return taco_make_c128(0, z.y);
    if (isinf(z.x)) {
        const double none = copysign(z.y - z.y, z.y); /* 0, or a NaN */
        return z.x < 0 ? taco_make_c128(fabs(none), copysign(z.x, z.y)) : taco_make_c128(z.x, none);
    }
    /* Near 1, so that nothing overflows and nothing small is lost: the root of 4**n z is 2**n that of z. */
    const double size = fmax(fabs(z.x), fabs(z.y));
    const double scale = size > 0x1p1000 ? 0x1p-60 : size < 0x1p-900 ? 0x1p120 : 1;
    const double root_of_scale = size > 0x1p1000 ? 0x1p30 : size < 0x1p-900 ? 0x1p-60 : 1;
    const double x = z.x * scale, y = z.y * scale, root = sqrt((fabs(x) + hypot(x, y)) * 0.5);
    const double larger = root * root_of_scale, smaller = y / (2 * root) * root_of_scale;
    return x < 0 ? taco_make_c128(fabs(smaller), copysign(larger, y)) : taco_make_c128(larger, smaller);
}

static inline double2 taco_cexp_c128(double2 z)
{
    if (z.y == 0)
        return taco_make_c128(exp(z.x), z.y);
    if (isinf(z.x) && !isfinite(z.y))
        return z.x < 0 ? taco_make_c128(0, copysign(0.0, z.y)) : taco_make_c128(z.x, z.y - z.y);
    /* In two steps, of which the first does not overflow where the second does not. */
    const bool large = z.x > 709;
    const double first = exp(large ? z.x / 2 : z.x), second = large ? first : 1;
    return taco_make_c128(first * cos(z.y) * second, first * sin(z.y) * second);
}

/* What is lost in rounding a + b. */
static inline double taco_lost(double a, double b)
{
    const double sum = __dadd_rn(a, b), second = __dadd_rn(sum, -a);
    return __dadd_rn(__dadd_rn(a, -__dadd_rn(sum, -second)), __dadd_rn(b, -second));
}

/* log |z|: near 1, of |z|**2 - 1 = (m - 1)**2 + 2 (m - 1) + n**2 for the larger part m and the smaller n. */
static inline double taco_log_of_size(double2 z)
{
    const double x = fabs(z.x), y = fabs(z.y), m = fmax(x, y), n = fmin(x, y);
    if (!isfinite(x) || !isfinite(y))
        return isinf(x) || isinf(y) ? INFINITY : x + y;
    if (m > 0x1p1000 || m < 0x1p-900) {
        const double scale = m > 1 ? 0x1p-100 : 0x1p150, log_of_scale = m > 1 ? 100 : -150;
        return log(hypot(x * scale, y * scale)) + log_of_scale * 0.693147180559945309417232121458;
    }
    const double size = hypot(x, y);
    if (size < 0.5 || size > 2)
        return log(size);
    const double d = m - 1, square = d * d, of_n = n * n, sum = __dadd_rn(2 * d, of_n);
    const double rest = fma(d, d, -square) + fma(n, n, -of_n) + taco_lost(2 * d, of_n) + taco_lost(sum, square);
    return 0.5 * log1p(__dadd_rn(sum, square) + rest);
}

static inline double2 taco_clog_c128(double2 z)
{
    return taco_make_c128(taco_log_of_size(z), atan2(z.y, z.x));
}

static inline double2 taco_cpow_c128(double2 z, double2 y)
{
    return taco_cexp_c128(taco_multiply_c128(y, taco_clog_c128(z)));
}

/* ---------------------------------------------------------------- hyperbolic and trigonometric functions
 *
 * sin z = -i sinh iz, cos z = cosh iz, tan z = -i tanh iz.
 */

/* cosh x cos y + i sinh x sin y */
static inline double2 taco_ccosh_c128(double2 z)
{
    const double x = z.x, y = z.y;
    if (y == 0)
        return taco_make_c128(cosh(x), isnan(x) ? y : copysign(1.0, x) * y);
    if (x == 0)
        return taco_make_c128(cos(y), isfinite(y) ? x * sin(y) : x);
    if (isinf(x) && !isfinite(y))
        return taco_make_c128(INFINITY, y - y);
    const bool large = fabs(x) > 709; /* exp |x| / 2 in two steps */
    const double half = exp(fabs(x) / 2);
    if (large)
        return taco_make_c128(0.5 * half * cos(y) * half, copysign(0.5, x) * half * sin(y) * half);
    return taco_make_c128(cosh(x) * cos(y), sinh(x) * sin(y));
}

/* sinh x cos y + i cosh x sin y */
static inline double2 taco_csinh_c128(double2 z)
{
    const double x = z.x, y = z.y;
    if (y == 0)
        return taco_make_c128(sinh(x), y);
    if (x == 0)
        return taco_make_c128(x, sin(y));
    if (isinf(x) && !isfinite(y))
        return taco_make_c128(x, y - y);
    const bool large = fabs(x) > 709;
    const double half = exp(fabs(x) / 2);
    if (large)
        return taco_make_c128(copysign(0.5, x) * half * cos(y) * half, 0.5 * half * sin(y) * half);
    return taco_make_c128(sinh(x) * cos(y), cosh(x) * sin(y));
}

/* With t = tan y, s = sinh x, b = 1 + t**2: (b s sqrt(1 + s**2) + i t) / (1 + b s**2) (Kahan 1987). */
static inline double2 taco_ctanh_c128(double2 z)
{
    const double x = z.x, y = z.y;
    if (isinf(x))
        return taco_make_c128(copysign(1.0, x), copysign(0.0, isfinite(y) ? sin(y) * cos(y) : y));
    if (y == 0 || isnan(x))
        return taco_make_c128(tanh(x), y == 0 ? y : x);
    if (!isfinite(y))
        return taco_make_c128(x == 0 ? x : y - y, y - y);
    if (fabs(x) > 22) {
        const double small = exp(-fabs(x));
        return taco_make_c128(copysign(1.0, x), 4 * sin(y) * cos(y) * small * small);
    }
    const double t = tan(y), b = 1 + t * t, s = sinh(x), size = 1 + b * s * s;
    return taco_make_c128(b * sqrt(1 + s * s) * s / size, t / size);
}

static inline double2 taco_swap(double2 z)
{
    return taco_make_c128(z.y, z.x);
}

static inline double2 taco_csin_c128(double2 z)
{
    return taco_swap(taco_csinh_c128(taco_swap(z)));
}

static inline double2 taco_ccos_c128(double2 z)
{
    return taco_ccosh_c128(taco_make_c128(-z.y, z.x));
}

static inline double2 taco_ctan_c128(double2 z)
{
    return taco_swap(taco_ctanh_c128(taco_swap(z)));
}

/* ---------------------------------------------------------------- inverse functions
 *
 * Of Kahan (1987, Branch cuts for complex elementary functions), which cancel nothing: with a = sqrt(1 - z) and
 * b = sqrt(1 + z),
 *
 *     asin z = atan(x / re(a b)) + i asinh(im(conj(a) b))
 *     acos z = 2 atan(re a / re b) + i asinh(im(conj(b) a))
 *
 * Beyond 2**53, asinh z = log 2z.
 */

static inline bool taco_far(double2 z)
{
    return fabs(z.x) > 0x1p53 || fabs(z.y) > 0x1p53;
}

/* Where an odd function is z, for z**3 is less than is lost in rounding. */
static inline bool taco_near(double2 z)
{
    return fabs(z.x) < 0x1p-28 && fabs(z.y) < 0x1p-28;
}

static inline double2 taco_casinh_c128(double2 z)
{
    const double x = z.x, y = z.y;
    if (isnan(x) && !isinf(y))
        return taco_make_c128(x, y == 0 ? y : x);
    if (isnan(y))
        return taco_make_c128(isinf(x) ? x : y, y);
    if (isnan(x))
        return taco_make_c128(fabs(y), x);
    if (taco_far(z)) {
        const double size = taco_log_of_size(z) + 0.693147180559945309417232121458;
        return taco_make_c128(copysign(size, x), copysign(atan2(fabs(y), fabs(x)), y));
    }
    if (taco_near(z))
        return z;
    /* -i asin(iz), iz = -y + i x */
    const double2 a = taco_csqrt_c128(taco_make_c128(1 + y, -x)), b = taco_csqrt_c128(taco_make_c128(1 - y, x));
    const double real = asinh(a.x * b.y - a.y * b.x), imag = atan2(y, a.x * b.x - a.y * b.y);
    return taco_make_c128(copysign(fabs(real), x), copysign(fabs(imag), y));
}

static inline double2 taco_cacos_c128(double2 z)
{
    const double x = z.x, y = z.y;
    if (isnan(x) || isnan(y)) {
        if (isinf(x))
            return taco_make_c128(y, -INFINITY);
        if (isinf(y))
            return taco_make_c128(x, -y);
        return taco_make_c128(x == 0 ? 1.57079632679489661923132169164 : x + y, x + y);
    }
    if (taco_far(z)) {
        const double size = taco_log_of_size(z) + 0.693147180559945309417232121458;
        return taco_make_c128(fabs(atan2(y, x)), copysign(size, -y));
    }
    const double2 a = taco_csqrt_c128(taco_make_c128(1 - x, -y)), b = taco_csqrt_c128(taco_make_c128(1 + x, y));
    return taco_make_c128(2 * atan2(a.x, b.x), copysign(asinh(b.x * a.y - b.y * a.x), -y));
}

static inline double2 taco_cacosh_c128(double2 z)
{
    const double2 w = taco_cacos_c128(z);
    if (isnan(w.x))
        return taco_make_c128(isnan(w.y) ? w.y : fabs(w.y), w.x);
    return taco_make_c128(fabs(w.y), isnan(w.y) ? w.x : copysign(w.x, z.y));
}

/* log(1 + 4 x / ((1 - x)**2 + y**2)) / 4 + i atan(2 y / ((1 - x) (1 + x) - y**2)) / 2 */
static inline double2 taco_catanh_c128(double2 z)
{
    const double x = fabs(z.x), y = fabs(z.y), half_pi = 1.57079632679489661923132169164;
    if (z.y == 0 && x <= 1)
        return taco_make_c128(atanh(z.x), z.y);
    if (z.x == 0)
        return taco_make_c128(z.x, atan(z.y));
    if (isinf(x) || isinf(y))
        return taco_make_c128(copysign(0.0, z.x), isnan(y) ? y : copysign(half_pi, z.y));
    if (isnan(x) || isnan(y))
        return taco_make_c128(x + y, x + y);
    if (taco_far(z)) {
        const double size = hypot(x * 0.5, y * 0.5);
        return taco_make_c128(copysign(x * 0.5 / size * 0.5 / size, z.x), copysign(half_pi, z.y));
    }
    if (taco_near(z))
        return z;
    const double less = 1 - x, apart = less * less + (y < 0x1p-511 ? 0 : y * y);
    const double real = x == 1 && y < 0x1p-52 ? (0.693147180559945309417232121458 - log(y)) / 2
                                              : log1p(4 * x / apart) / 4;
    const double imag = atan2(2 * y, less * (1 + x) - (y < 0x1p-52 ? 0 : y * y)) / 2;
    return taco_make_c128(copysign(real, z.x), copysign(imag, z.y));
}

static inline double2 taco_casin_c128(double2 z)
{
    return taco_swap(taco_casinh_c128(taco_swap(z)));
}

static inline double2 taco_catan_c128(double2 z)
{
    return taco_swap(taco_catanh_c128(taco_swap(z)));
}

#define TACO_DEFINE_NARROW(name)                                                                               \
    static inline float2 taco_##name##_c64(float2 z)                                                           \
    {                                                                                                          \
        return taco_narrow(taco_##name##_c128(taco_widen(z)));                                                 \
    }

TACO_DEFINE_NARROW(csqrt)
TACO_DEFINE_NARROW(cexp)
TACO_DEFINE_NARROW(clog)
TACO_DEFINE_NARROW(ccosh)
TACO_DEFINE_NARROW(csinh)
TACO_DEFINE_NARROW(ctanh)
TACO_DEFINE_NARROW(ccos)
TACO_DEFINE_NARROW(csin)
TACO_DEFINE_NARROW(ctan)
TACO_DEFINE_NARROW(cacosh)
TACO_DEFINE_NARROW(casinh)
TACO_DEFINE_NARROW(catanh)
TACO_DEFINE_NARROW(cacos)
TACO_DEFINE_NARROW(casin)
TACO_DEFINE_NARROW(catan)

static inline float2 taco_cpow_c64(float2 z, float2 y)
{
    return taco_narrow(taco_cpow_c128(taco_widen(z), taco_widen(y)));
}
