/* Elementary functions in vector lanes, for one type. taco_math.h includes this file once for double and once
 * for float, with the names REAL, BITS, ITS, NUMBER, BUILTIN, MANTISSA and BIAS defined for it.
 *
 * There are no branches, only choices between two values, so that compilers make vectors of loops around. What
 * is beyond a bound is mostly chosen last: of an argument that is replaced first, gcc 12 computes both cases. Each
 * function reduces its argument to where a polynomial is near (taco_polynomials.h), and carries what is lost
 * in rounding (`lost`, `low`) to the last addition. A result is at most 1 unit in the last place (ulp) from the
 * exact one; benchmarks/ulps.py measures how far.
 */

#define FMA ITS(fma)
#define POWER_OF_2(exponent) ITS(number)((BITS)(exponent) << MANTISSA) /* `exponent` has the bias in it */
#define SHIFT NUMBER(SHIFT) /* added to a small number, it makes it whole, in the last bits of the sum */

TACO_PURE BITS ITS(bits)(REAL x)
{
    BITS bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

TACO_PURE REAL ITS(number)(BITS bits)
{
    REAL x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* A positive number with the sign of x. */
TACO_PURE REAL ITS(signed)(REAL size, REAL x)
{
    return ITS(number)(ITS(bits)(size) | (ITS(bits)(x) & ITS(bits)((REAL)-0.0)));
}

/* high + low divided by divisor + rest. */
TACO_PURE REAL ITS(quotient)(REAL high, REAL low, REAL divisor, REAL rest)
{
    const REAL inverse = 1 / divisor, first = high * inverse;
    return FMA(FMA(-first, divisor, high) + FMA(-first, rest, low), inverse, first);
}

/* ---------------------------------------------------------------- exponentials
 *
 * x = n log(2) + r + lost. exp(x) = 2**n (1 + r + beyond). n stands in the last bits of a sum, as an exponent.
 */

typedef struct {
    BITS n; /* n + bias in the last bits, of which POWER_OF_2 drops those above */
    REAL whole, r, beyond; /* n, and what is left */
} ITS(step);

TACO_PURE ITS(step) ITS(step_of_exp)(REAL x, BITS bias)
{
    const REAL shift = SHIFT + bias, shifted = FMA(x, NUMBER(PER_LN2), shift), n = shifted - shift;
    const REAL high = FMA(-n, NUMBER(LN2_1), x), r = FMA(-n, NUMBER(LN2_2), high);
    const REAL lost = FMA(-n, NUMBER(LN2_2), high - r);
    const REAL square = r * r, rest = FMA(square * r, ITS(exp_near)(r), FMA(lost, r, lost));
    const ITS(step) step = {ITS(bits)(shifted), n, r, FMA(square, (REAL)0.5, rest)};
    return step;
}

/* y * 2**n in two steps, of which the first is exact; n is biased twice. */
TACO_PURE REAL ITS(scaled)(REAL y, BITS n)
{
    return y * POWER_OF_2(n >> 1) * POWER_OF_2(n - (n >> 1));
}

/* The same without `lost`: of r, what is exact is added last. */
TACO_PURE REAL ITS(exp)(REAL x)
{
    const REAL shift = SHIFT + 2 * BIAS, shifted = FMA(x, NUMBER(PER_LN2), shift), n = shifted - shift;
    const REAL high = FMA(-n, NUMBER(LN2_1), x), low = n * NUMBER(LN2_2), r = high - low;
    const REAL more = high + FMA(r * r, FMA(r, ITS(exp_near)(r), (REAL)0.5), -low);
    const BITS whole = ITS(bits)(shifted), half = whole >> 1;
    const REAL power = POWER_OF_2(half), found = FMA(power, more, power) * POWER_OF_2(whole - half);
    const REAL finite = n > BIAS + 1 ? BUILTIN(inf)() : found;
    return x < NUMBER(EXP_0) ? 0 : finite;
}

TACO_PURE REAL ITS(expm1)(REAL x)
{
    const ITS(step) step = ITS(step_of_exp)(x, BIAS - 1);
    const REAL half = POWER_OF_2(step.n), whole = half - (REAL)0.5;
    const REAL high = FMA(half, step.r, whole), low = FMA(half, step.r, whole - high);
    const REAL lost = (half - whole) - (REAL)0.5; /* where the power is large */
    const REAL found = 2 * (high + FMA(half, step.beyond, low + lost));
    const REAL finite = step.whole > BIAS + 1 ? BUILTIN(inf)() : found;
    const REAL near = x < -NUMBER(LARGE) ? -1 : finite;
    return x * x < NUMBER(EPSILON) * NUMBER(EPSILON) ? x : near;
}

/* -e / (2 + e) with e = exp(-2 |x|) - 1 */
TACO_PURE REAL ITS(tanh)(REAL x)
{
    const REAL size = 2 * BUILTIN(fabs)(x);
    const ITS(step) step = ITS(step_of_exp)(-size, BIAS);
    const REAL power = POWER_OF_2(step.n), below = power - 1, above = power + 1;
    const REAL r = step.r + step.beyond, more = (step.r - r) + step.beyond;
    const REAL lost = (1 - above) + power, less = power - (1 + below); /* where the power is small */
    const REAL high = FMA(power, r, below), low = FMA(power, more, FMA(power, r, below - high)) + less;
    const REAL sum = FMA(power, r, above), rest = FMA(power, more, FMA(power, r, above - sum)) + lost;
    const REAL found = -ITS(quotient)(high, low, sum, rest);
    return ITS(signed)(size > NUMBER(LARGE) ? 1 : found, x);
}

/* e / (1 + e) with e = exp(-|x|), or 1 / (1 + e) */
TACO_PURE REAL ITS(sigmoid)(REAL x)
{
    const REAL size = BUILTIN(fabs)(x);
    const ITS(step) step = ITS(step_of_exp)(size > -NUMBER(EXP_0) ? NUMBER(EXP_0) : -size, 2 * BIAS);
    const REAL r = step.r + step.beyond, more = (step.r - r) + step.beyond;
    const REAL high = 1 + r, low = ((1 - high) + r) + more;
    const REAL power = size < NUMBER(LARGE) ? POWER_OF_2(step.n - BIAS) : 0; /* 1 + e is 1 beyond */
    const REAL sum = FMA(power, high, 1), rest = FMA(power, low, FMA(power, high, 1 - sum));
    const REAL found = ITS(quotient)(x < 0 ? high : 1, x < 0 ? low : 0, sum, rest);
    return ITS(scaled)(found, x < 0 ? step.n : 2 * BIAS);
}

/* A polynomial for small numbers, else 1 - 2**-y with y = 2 + v erfc_near(v), and -y = n + rest. */
TACO_PURE REAL ITS(erf)(REAL x)
{
    const REAL size = BUILTIN(fabs)(x), square = size * size;
    const REAL small = FMA(size, ITS(erf_near)(square), size);
    const REAL v = size - NUMBER(QUARTER_OF_ERFC), slope = ITS(erfc_near)(v), shift = SHIFT + (BIAS - 2);
    const REAL shifted = FMA(-v, slope, shift), rest = FMA(-v, slope, shift - shifted);
    const REAL power = POWER_OF_2(ITS(bits)(shifted)), part = power * rest;
    const REAL large = FMA(-part, ITS(exp2_near)(rest), 1 - power);
    const REAL found = size < NUMBER(ERF_SPLIT) ? small : large;
    return ITS(signed)(square > NUMBER(ERF_1) * NUMBER(ERF_1) ? 1 : found, x);
}

/* ---------------------------------------------------------------- logarithms
 *
 * x = 2**k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and log(1 + f) = f - (h - s (h + R)) with
 * s = f / (2 + f), h = f**2 / 2 and a polynomial R = s**2 p(s**2) (FreeBSD's e_log.c).
 */

typedef struct {
    REAL k, f;
    BITS exponent; /* k + BIAS */
} ITS(binary);

TACO_PURE ITS(binary) ITS(binary_of)(REAL x)
{
    const BITS least = ITS(bits)(NUMBER(SQRT_HALF)), above = ITS(bits)(x) + (ITS(bits)(1) - least);
    const BITS exponent = above >> MANTISSA, mantissa = above & (((BITS)1 << MANTISSA) - 1);
    const REAL k = ITS(number)(exponent | ITS(bits)(NUMBER(WHOLE))) - (NUMBER(WHOLE) + BIAS);
    const ITS(binary) found = {k, ITS(number)(mantissa + least) - 1, exponent};
    return found;
}

/* The same, also where x is subnormal. */
TACO_PURE ITS(binary) ITS(binary_of_any)(REAL x)
{
    const bool small = x < NUMBER(LEAST);
    ITS(binary) found = ITS(binary_of)(small ? x * NUMBER(LIFT) : x);
    found.k = small ? found.k - (MANTISSA + 2) : found.k;
    return found;
}

/* What the logarithm of x is, `found` where x is positive and finite. */
TACO_PURE REAL ITS(log_of_any)(REAL x, REAL found)
{
    const REAL infinity = BUILTIN(inf)();
    const REAL positive = x < infinity ? found : x;
    const REAL defined = x < 0 ? BUILTIN(nan)("") : positive;
    return x == 0 ? -infinity : defined;
}

/* log(1 + f) - f; where `lost` is known to be missing of f, log(1 + f + lost) - f. */
TACO_PURE REAL ITS(log_more)(REAL f, REAL lost)
{
    const REAL s = f / (2 + f), z = s * s, h = (REAL)0.5 * f * f;
    return FMA(s, FMA(ITS(log_near)(z), z, h), lost) - h;
}

/* k log(2) + f + more */
TACO_PURE REAL ITS(log_sum)(REAL k, REAL f, REAL more)
{
    const REAL whole = k * NUMBER(LN2_1), sum = whole + f;
    return sum + (FMA(k, NUMBER(LN2_2), (whole - sum) + f) + more);
}

TACO_PURE REAL ITS(log)(REAL x)
{
    const ITS(binary) b = ITS(binary_of_any)(x);
    return ITS(log_of_any)(x, ITS(log_sum)(b.k, b.f, ITS(log_more)(b.f, 0)));
}

TACO_PURE REAL ITS(log1p)(REAL x)
{
    const REAL above = 1 + x, missing = BUILTIN(fabs)(x) < 1 ? x - (above - 1) : 1 - (above - x);
    const ITS(binary) b = ITS(binary_of)(above);
    const REAL lost = missing * (REAL)0.5 * POWER_OF_2(2 * BIAS + 1 - b.exponent); /* 2**-k missing */
    const REAL f = b.f + lost, rest = (b.f - f) + lost;
    const REAL found = ITS(log_sum)(b.k, f, ITS(log_more)(f, FMA(-f, rest, rest)));
    const REAL small = BUILTIN(fabs)(x) < NUMBER(EPSILON) ? x : found;
    return ITS(log_of_any)(above, small);
}

/* whole + (log(1 + f)) (scale_1 + scale_2) + part */
TACO_PURE REAL ITS(log_scaled)(REAL whole, REAL part, REAL f, REAL scale_1, REAL scale_2)
{
    const REAL s = f / (2 + f), z = s * s, h = (REAL)0.5 * f * f, high = f - h;
    const REAL low = FMA(s, FMA(ITS(log_near)(z), z, h), (f - high) - h);
    const REAL product = high * scale_1, sum = whole + product;
    const REAL rest = FMA(high, scale_1, -product) + FMA(high, scale_2, low * scale_1);
    return sum + (((whole - sum) + product) + (part + rest));
}

TACO_PURE REAL ITS(log2)(REAL x)
{
    const ITS(binary) b = ITS(binary_of_any)(x);
    return ITS(log_of_any)(x, ITS(log_scaled)(b.k, 0, b.f, NUMBER(LOG2_E_1), NUMBER(LOG2_E_2)));
}

TACO_PURE REAL ITS(log10)(REAL x)
{
    const ITS(binary) b = ITS(binary_of_any)(x);
    const REAL whole = b.k * NUMBER(LOG10_2_1), part = b.k * NUMBER(LOG10_2_2);
    return ITS(log_of_any)(x, ITS(log_scaled)(whole, part, b.f, NUMBER(LOG10_E_1), NUMBER(LOG10_E_2)));
}

/* ---------------------------------------------------------------- sine and cosine
 *
 * |x| = n pi/2 + r + lost for |x| up to FAR (Cody and Waite 1980); those beyond are looked at one by one.
 */

TACO_PURE REAL ITS(sine)(REAL size, BITS turned, BITS sign)
{
    const REAL shifted = FMA(size, NUMBER(PER_HALF_PI), SHIFT), n = shifted - SHIFT;
    const REAL first = FMA(-n, NUMBER(HALF_PI_1), size);
    const REAL second = n * NUMBER(HALF_PI_2), r = first - second;
    const REAL lost = FMA(-n, NUMBER(HALF_PI_3), ((first - r) - second) - FMA(n, NUMBER(HALF_PI_2), -second));
    const REAL z = r * r, h = (REAL)0.5 * z, less = 1 - h;
    const REAL sine = r + FMA(r * z, ITS(sin_near)(z), FMA(-h, lost, lost));
    const REAL cosine = less + (((1 - less) - h) + FMA(z * z, ITS(cos_near)(z), -r * lost));
    const BITS quadrant = ITS(bits)(shifted) + turned;
    const REAL found = (quadrant & 1) != 0 ? cosine : sine;
    return ITS(number)(ITS(bits)(found) ^ sign ^ ((quadrant & 2) << (8 * sizeof(REAL) - 2)));
}

TACO_PURE REAL ITS(sin)(REAL x)
{
    const REAL size = BUILTIN(fabs)(x);
    return ITS(sin_or_far)(x, ITS(sine)(size, 0, ITS(bits)(x) ^ ITS(bits)(size)));
}

TACO_PURE REAL ITS(cos)(REAL x)
{
    return ITS(cos_or_far)(x, ITS(sine)(BUILTIN(fabs)(x), 1, 0));
}

/* ---------------------------------------------------------------- cube root
 *
 * x = m 2**(3 q) with m from 1/4 to 2; z near m**(-1/3) is bettered, then y = m z**2, by what m - y**3 is.
 */

TACO_PURE REAL ITS(cbrt)(REAL x)
{
    const REAL size = BUILTIN(fabs)(x);
    const bool small = size < NUMBER(LEAST);
    const BITS bits = ITS(bits)(small ? size * NUMBER(LIFT_BY_3) : size), half = (BITS)(BIAS - 1) << MANTISSA;
    const REAL mantissa = ITS(number)((bits & (((BITS)1 << MANTISSA) - 1)) | half);
    const REAL exponent = ITS(number)((bits >> MANTISSA) | ITS(bits)(NUMBER(WHOLE))) - (NUMBER(WHOLE) + BIAS - 1);
    const REAL shifted = FMA(exponent, (REAL)(1 / 3.0), SHIFT), left = FMA(-3, shifted - SHIFT, exponent);
    const REAL m = mantissa * (left > 0 ? 2 : left < 0 ? (REAL)0.5 : 1);
    const REAL factor = left > 0 ? NUMBER(CBRT_HALF) : left < 0 ? NUMBER(CBRT_2) : 1;
    const REAL near = ITS(cbrt_near)(mantissa) * factor, h = FMA(-m * near, near * near, 1);
    const REAL more = FMA(FMA((REAL)(14 / 81.0), h, (REAL)(2 / 9.0)), h, (REAL)(1 / 3.0));
    const REAL z = FMA(near * h, more, near), y = m * z * z, square = y * y;
    const REAL error = FMA(-FMA(y, y, -square), y, FMA(-square, y, m));
    const REAL root = FMA(error * (REAL)(1 / 3.0), z * z, y);
    const BITS q = ITS(bits)(shifted) - ITS(bits)(SHIFT) - (small ? (BITS)NUMBER(LIFTS_BY_3) : 0);
    const REAL found = ITS(signed)(root * POWER_OF_2(q + BIAS), x);
    const REAL positive = size > 0 ? found : x;
    return size < BUILTIN(inf)() ? positive : x;
}

#undef FMA
#undef POWER_OF_2
#undef SHIFT
