/* Made by benchmarks/polynomials.py: minimax polynomials, and constants. Included by taco_math.h. */

/* Numbers in parts: the first parts times whole numbers are exact. */
#define TACO_LN2_1_f64 0x1.62e42fefa4p-1
#define TACO_LN2_2_f64 -0x1.8432a1b0e2634p-43
#define TACO_HALF_PI_1_f64 0x1.921fb54442d18p+0
#define TACO_HALF_PI_2_f64 0x1.1a62633145c07p-54
#define TACO_HALF_PI_3_f64 -0x1.f1976b7ed8fbcp-110
#define TACO_LOG2_E_1_f64 0x1.71547652b82fep+0
#define TACO_LOG2_E_2_f64 0x1.777d0ffda0d24p-56
#define TACO_LOG10_E_1_f64 0x1.bcb7b1526e50ep-2
#define TACO_LOG10_E_2_f64 0x1.95355baaafad3p-57
#define TACO_LOG10_2_1_f64 0x1.34413509f8p-2
#define TACO_LOG10_2_2_f64 -0x1.80433b83b532ap-44
#define TACO_PER_LN2_f64 0x1.71547652b82fep+0
#define TACO_PER_HALF_PI_f64 0x1.45f306dc9c883p-1
#define TACO_QUARTER_OF_ERFC_f64 0x1.a07890f6b2ba1p-1
#define TACO_SQRT_HALF_f64 0x1.6a09e667f3bcdp-1
#define TACO_CBRT_2_f64 0x1.428a2f98d728bp+0
#define TACO_CBRT_HALF_f64 0x1.965fea53d6e3dp-1
#define TACO_LN2_1_f32 0x1.62e4p-1f
#define TACO_LN2_2_f32 0x1.7f7d1cp-20f
#define TACO_HALF_PI_1_f32 0x1.921fb6p+0f
#define TACO_HALF_PI_2_f32 -0x1.777a5cp-25f
#define TACO_HALF_PI_3_f32 -0x1.ee59dap-50f
#define TACO_LOG2_E_1_f32 0x1.715476p+0f
#define TACO_LOG2_E_2_f32 0x1.4ae0cp-26f
#define TACO_LOG10_E_1_f32 0x1.bcb7b2p-2f
#define TACO_LOG10_E_2_f32 -0x1.5b235ep-27f
#define TACO_LOG10_2_1_f32 0x1.344p-2f
#define TACO_LOG10_2_2_f32 0x1.3509f8p-18f
#define TACO_PER_LN2_f32 0x1.715476p+0f
#define TACO_PER_HALF_PI_f32 0x1.45f306p-1f
#define TACO_QUARTER_OF_ERFC_f32 0x1.a0789p-1f
#define TACO_SQRT_HALF_f32 0x1.6a09e6p-1f
#define TACO_CBRT_2_f32 0x1.428a3p+0f
#define TACO_CBRT_HALF_f32 0x1.965feap-1f

/* exp: (exp(x) - 1 - x - x**2 / 2) / x**3 */
TACO_PURE double taco_exp_near_f64(double x)
{
    const double z = x * x;
    double even = 0x1.ad202c4d38e12p-26;
    even = taco_fma_f64(even, z, 0x1.71df554f232ecp-19);
    even = taco_fma_f64(even, z, 0x1.a01a011c123ap-13);
    even = taco_fma_f64(even, z, 0x1.11111111288c4p-7);
    even = taco_fma_f64(even, z, 0x1.5555555555501p-3);
    double odd = 0x1.289f991469577p-22;
    odd = taco_fma_f64(odd, z, 0x1.a019ab200c002p-16);
    odd = taco_fma_f64(odd, z, 0x1.6c16c17cc6fcfp-10);
    odd = taco_fma_f64(odd, z, 0x1.55555555531fcp-5);
    return taco_fma_f64(odd, x, even);
}
TACO_PURE float taco_exp_near_f32(float x)
{
    const float z = x * x;
    float even = 0x1.122f9cp-7f;
    even = taco_fma_f32(even, z, 0x1.5554a4p-3f);
    float odd = 0x1.6b6e3ep-10f;
    odd = taco_fma_f32(odd, z, 0x1.555688p-5f);
    return taco_fma_f32(odd, x, even);
}

/* exp2: (2**x - 1) / x */
TACO_PURE double taco_exp2_near_f64(double x)
{
    const double z = x * x;
    double even = 0x1.e79bab47e1fdp-32;
    even = taco_fma_f64(even, z, 0x1.b5267ce41e973p-24);
    even = taco_fma_f64(even, z, 0x1.ffcbfba9816b5p-17);
    even = taco_fma_f64(even, z, 0x1.5d87fe78cd6bfp-10);
    even = taco_fma_f64(even, z, 0x1.c6b08d7049fe8p-5);
    even = taco_fma_f64(even, z, 0x1.62e42fefa39efp-1);
    double odd = 0x1.e61b4f29b508fp-28;
    odd = taco_fma_f64(odd, z, 0x1.62bfc79d9a64bp-20);
    odd = taco_fma_f64(odd, z, 0x1.4309130ed8a78p-13);
    odd = taco_fma_f64(odd, z, 0x1.3b2ab6fba011bp-7);
    odd = taco_fma_f64(odd, z, 0x1.ebfbdff82c5a4p-3);
    return taco_fma_f64(odd, x, even);
}
TACO_PURE float taco_exp2_near_f32(float x)
{
    const float z = x * x;
    float even = 0x1.5f3e54p-10f;
    even = taco_fma_f32(even, z, 0x1.c6aee8p-5f);
    even = taco_fma_f32(even, z, 0x1.62e43p-1f);
    float odd = 0x1.41fbb6p-13f;
    odd = taco_fma_f32(odd, z, 0x1.3b2d4cp-7f);
    odd = taco_fma_f32(odd, z, 0x1.ebfbdcp-3f);
    return taco_fma_f32(odd, x, even);
}

/* log: (log((1 + s) / (1 - s)) - 2 * s) / s**3 with x = s**2 */
TACO_PURE double taco_log_near_f64(double x)
{
    const double z = x * x;
    double even = 0x1.2f0568a84ffb1p-3;
    even = taco_fma_f64(even, z, 0x1.74663eedf6e1dp-3);
    even = taco_fma_f64(even, z, 0x1.24924941f151bp-2);
    even = taco_fma_f64(even, z, 0x1.5555555555592p-1);
    double odd = 0x1.39a1ba314aa2fp-3;
    odd = taco_fma_f64(odd, z, 0x1.c71c52093ed37p-3);
    odd = taco_fma_f64(odd, z, 0x1.999999997fdb3p-2);
    return taco_fma_f64(odd, x, even);
}
TACO_PURE float taco_log_near_f32(float x)
{
    float p = 0x1.31e2f4p-2f;
    p = taco_fma_f32(p, x, 0x1.995ebap-2f);
    p = taco_fma_f32(p, x, 0x1.55557ap-1f);
    return p;
}

/* sin: (sin(r) - r) / r**3 with x = r**2 */
TACO_PURE double taco_sin_near_f64(double x)
{
    const double z = x * x;
    double even = -0x1.ae5e29aaa51b7p-26;
    even = taco_fma_f64(even, z, -0x1.a01a019bbd96ep-13);
    even = taco_fma_f64(even, z, -0x1.5555555555547p-3);
    double odd = 0x1.5d8104ae794c6p-33;
    odd = taco_fma_f64(odd, z, 0x1.71de352c79d77p-19);
    odd = taco_fma_f64(odd, z, 0x1.111111110f5f3p-7);
    return taco_fma_f64(odd, x, even);
}
TACO_PURE float taco_sin_near_f32(float x)
{
    float p = -0x1.992c34p-13f;
    p = taco_fma_f32(p, x, 0x1.1106fcp-7f);
    p = taco_fma_f32(p, x, -0x1.555544p-3f);
    return p;
}

/* cos: (cos(r) - 1 + r**2 / 2) / r**4 with x = r**2 */
TACO_PURE double taco_cos_near_f64(double x)
{
    const double z = x * x;
    double even = 0x1.1ee9c6d196e5fp-29;
    even = taco_fma_f64(even, z, 0x1.a01a019c6ac54p-16);
    even = taco_fma_f64(even, z, 0x1.555555555554ap-5);
    double odd = -0x1.8f9ae780cc7a2p-37;
    odd = taco_fma_f64(odd, z, -0x1.27e4f7d4f0096p-22);
    odd = taco_fma_f64(odd, z, -0x1.6c16c16c14ec2p-10);
    return taco_fma_f64(odd, x, even);
}
TACO_PURE float taco_cos_near_f32(float x)
{
    float p = 0x1.99e366p-16f;
    p = taco_fma_f32(p, x, -0x1.6c0c22p-10f);
    p = taco_fma_f32(p, x, 0x1.55554ap-5f);
    return p;
}

/* erf: erf(r) / r - 1 with x = r**2 */
TACO_PURE double taco_erf_near_f64(double x)
{
    const double z = x * x;
    double even = 0x1.eabeae831c82ap-27;
    even = taco_fma_f64(even, z, 0x1.b9d11fcc19aa9p-20);
    even = taco_fma_f64(even, z, 0x1.f9a31d207649bp-14);
    even = taco_fma_f64(even, z, 0x1.565bcd0d96af4p-8);
    even = taco_fma_f64(even, z, 0x1.ce2f21a042b6p-4);
    even = taco_fma_f64(even, z, 0x1.06eba8214db69p-3);
    double odd = -0x1.f3e85f7c70facp-31;
    odd = taco_fma_f64(odd, z, -0x1.5e5ceffc2f1dp-23);
    odd = taco_fma_f64(odd, z, -0x1.f4d13e857ed67p-17);
    odd = taco_fma_f64(odd, z, -0x1.c02db3c6f1403p-11);
    odd = taco_fma_f64(odd, z, -0x1.b82ce312851a3p-6);
    odd = taco_fma_f64(odd, z, -0x1.812746b0379e6p-2);
    return taco_fma_f64(odd, x, even);
}
TACO_PURE float taco_erf_near_f32(float x)
{
    const float z = x * x;
    float even = 0x1.4ce564p-8f;
    even = taco_fma_f32(even, z, 0x1.ce277cp-4f);
    even = taco_fma_f32(even, z, 0x1.06eba8p-3f);
    float odd = -0x1.549154p-11f;
    odd = taco_fma_f32(odd, z, -0x1.b7637ap-6f);
    odd = taco_fma_f32(odd, z, -0x1.81272cp-2f);
    return taco_fma_f32(odd, x, even);
}

/* erfc: (-log2(erfc(c + x)) - 2) / x with erfc(c) = 1 / 4 */
TACO_PURE double taco_erfc_near_f64(double x)
{
    const double z = x * x;
    double even = 0x1.6abc0df33f07p-42;
    even = taco_fma_f64(even, z, 0x1.73dd7f33c06e8p-33);
    even = taco_fma_f64(even, z, 0x1.840c977b6ff1cp-27);
    even = taco_fma_f64(even, z, 0x1.c4e6e9b708d7fp-23);
    even = taco_fma_f64(even, z, 0x1.4ab48ca5bfd1dp-21);
    even = taco_fma_f64(even, z, -0x1.41adcd7b17845p-16);
    even = taco_fma_f64(even, z, -0x1.e65654d854b1dp-14);
    even = taco_fma_f64(even, z, 0x1.a2753392ac64ap-9);
    even = taco_fma_f64(even, z, 0x1.2616f3998b5c3p-4);
    even = taco_fma_f64(even, z, 0x1.ae141dc79f9p+1);
    double odd = -0x1.7b4d007783eecp-37;
    odd = taco_fma_f64(odd, z, -0x1.c6b884306f0acp-30);
    odd = taco_fma_f64(odd, z, -0x1.e6ceea9d92839p-25);
    odd = taco_fma_f64(odd, z, -0x1.24a27a382aa4bp-21);
    odd = taco_fma_f64(odd, z, 0x1.59072bf9a1a24p-19);
    odd = taco_fma_f64(odd, z, 0x1.18c2304c90f09p-14);
    odd = taco_fma_f64(odd, z, -0x1.02675dbbd3191p-12);
    odd = taco_fma_f64(odd, z, -0x1.1b832cd1fc1b9p-6);
    odd = taco_fma_f64(odd, z, 0x1.2df84796a3468p+0);
    return taco_fma_f64(odd, x, even);
}
TACO_PURE float taco_erfc_near_f32(float x)
{
    const float z = x * x;
    float even = 0x1.95bc4cp-9f;
    even = taco_fma_f32(even, z, 0x1.25ced6p-4f);
    even = taco_fma_f32(even, z, 0x1.ae1418p+1f);
    float odd = -0x1.3b7aaep-12f;
    odd = taco_fma_f32(odd, z, -0x1.192dfp-6f);
    odd = taco_fma_f32(odd, z, 0x1.2df92p+0f);
    return taco_fma_f32(odd, x, even);
}

/* cbrt: x**(-1/3) */
TACO_PURE double taco_cbrt_near_f64(double x)
{
    const double z = x * x;
    double even = 0x1.2719181555ecbp-1;
    even = taco_fma_f64(even, z, 0x1.c0a4c3fc5e67dp+1);
    even = taco_fma_f64(even, z, 0x1.0d526d9c043p+1);
    double odd = -0x1.1d6f0c1eb857fp+1;
    odd = taco_fma_f64(odd, z, -0x1.7a4d2f8719583p+1);
    return taco_fma_f64(odd, x, even);
}
TACO_PURE float taco_cbrt_near_f32(float x)
{
    const float z = x * x;
    float even = 0x1.99f4bep+0f;
    even = taco_fma_f32(even, z, 0x1.f151dap+0f);
    float odd = -0x1.01b48p-1f;
    odd = taco_fma_f32(odd, z, -0x1.053e76p+1f);
    return taco_fma_f32(odd, x, even);
}
