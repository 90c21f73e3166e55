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
#define TACO_SQRT_HALF_f32 0x1.6a09e6p-1f
#define TACO_CBRT_2_f32 0x1.428a3p+0f
#define TACO_CBRT_HALF_f32 0x1.965feap-1f

/* exp: (exp(x) - 1 - x - x**2 / 2) / x**3 */
TACO_PURE double taco_exp_near_f64(double x)
{
    double p = 0x1.1f92f6c2ebe33p-29;
    p = taco_fma_f64(p, x, 0x1.af5e993ae004fp-26);
    p = taco_fma_f64(p, x, 0x1.27e4c79e48261p-22);
    p = taco_fma_f64(p, x, 0x1.71ddf86d7b30ep-19);
    p = taco_fma_f64(p, x, 0x1.a01a01af7688bp-16);
    p = taco_fma_f64(p, x, 0x1.a01a01afd8b4p-13);
    p = taco_fma_f64(p, x, 0x1.6c16c16c14a47p-10);
    p = taco_fma_f64(p, x, 0x1.111111110f6d6p-7);
    p = taco_fma_f64(p, x, 0x1.5555555555559p-5);
    p = taco_fma_f64(p, x, 0x1.5555555555559p-3);
    return p;
}
TACO_PURE float taco_exp_near_f32(float x)
{
    float p = 0x1.a18986p-13f;
    p = taco_fma_f32(p, x, 0x1.6d40fcp-10f);
    p = taco_fma_f32(p, x, 0x1.1110a4p-7f);
    p = taco_fma_f32(p, x, 0x1.5554f2p-5f);
    p = taco_fma_f32(p, x, 0x1.555556p-3f);
    return p;
}

/* log: (log((1 + s) / (1 - s)) - 2 * s) / s**3 with x = s**2 */
TACO_PURE double taco_log_near_f64(double x)
{
    double p = 0x1.2f0568a84ffb1p-3;
    p = taco_fma_f64(p, x, 0x1.39a1ba314aa2fp-3);
    p = taco_fma_f64(p, x, 0x1.74663eedf6e1dp-3);
    p = taco_fma_f64(p, x, 0x1.c71c52093ed37p-3);
    p = taco_fma_f64(p, x, 0x1.24924941f151bp-2);
    p = taco_fma_f64(p, x, 0x1.999999997fdb3p-2);
    p = taco_fma_f64(p, x, 0x1.5555555555592p-1);
    return p;
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
    double p = 0x1.5d8104ae794c6p-33;
    p = taco_fma_f64(p, x, -0x1.ae5e29aaa51b7p-26);
    p = taco_fma_f64(p, x, 0x1.71de352c79d77p-19);
    p = taco_fma_f64(p, x, -0x1.a01a019bbd96ep-13);
    p = taco_fma_f64(p, x, 0x1.111111110f5f3p-7);
    p = taco_fma_f64(p, x, -0x1.5555555555547p-3);
    return p;
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
    double p = -0x1.8f9ae780cc7a2p-37;
    p = taco_fma_f64(p, x, 0x1.1ee9c6d196e5fp-29);
    p = taco_fma_f64(p, x, -0x1.27e4f7d4f0096p-22);
    p = taco_fma_f64(p, x, 0x1.a01a019c6ac54p-16);
    p = taco_fma_f64(p, x, -0x1.6c16c16c14ec2p-10);
    p = taco_fma_f64(p, x, 0x1.555555555554ap-5);
    return p;
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
    double p = 0x1.31f4459bf248ep-34;
    p = taco_fma_f64(p, x, -0x1.45a88f8147666p-30);
    p = taco_fma_f64(p, x, 0x1.fb227d8466babp-27);
    p = taco_fma_f64(p, x, -0x1.5f61d5b011ddcp-23);
    p = taco_fma_f64(p, x, 0x1.b9e5b2b13b928p-20);
    p = taco_fma_f64(p, x, -0x1.f4d250d20f8cbp-17);
    p = taco_fma_f64(p, x, 0x1.f9a326a7b6d9ap-14);
    p = taco_fma_f64(p, x, -0x1.c02db3feb5d2fp-11);
    p = taco_fma_f64(p, x, 0x1.565bcd0e658ebp-8);
    p = taco_fma_f64(p, x, -0x1.b82ce31288a38p-6);
    p = taco_fma_f64(p, x, 0x1.ce2f21a042bep-4);
    p = taco_fma_f64(p, x, -0x1.812746b0379e7p-2);
    p = taco_fma_f64(p, x, 0x1.06eba8214db69p-3);
    return p;
}
TACO_PURE float taco_erf_near_f32(float x)
{
    float p = 0x1.7d63c4p-14f;
    p = taco_fma_f32(p, x, -0x1.b2d31p-11f);
    p = taco_fma_f32(p, x, 0x1.55a0d4p-8f);
    p = taco_fma_f32(p, x, -0x1.b82248p-6f);
    p = taco_fma_f32(p, x, 0x1.ce2ed8p-4f);
    p = taco_fma_f32(p, x, -0x1.812746p-2f);
    p = taco_fma_f32(p, x, 0x1.06eba8p-3f);
    return p;
}

/* erfc: -log(erfc(x)) - x**2 */
TACO_PURE double taco_erfc_near_f64(double x)
{
    double p = -0x1.d2c7d2af95f29p-40;
    p = taco_fma_f64(p, x, 0x1.4042c41ca7994p-34);
    p = taco_fma_f64(p, x, -0x1.9bc014bf46a73p-30);
    p = taco_fma_f64(p, x, 0x1.495cb03b9547p-26);
    p = taco_fma_f64(p, x, -0x1.6ec6258fe6257p-23);
    p = taco_fma_f64(p, x, 0x1.2cb45da0abdb2p-20);
    p = taco_fma_f64(p, x, -0x1.74dc41354627p-18);
    p = taco_fma_f64(p, x, 0x1.5e4d19c2d09cbp-16);
    p = taco_fma_f64(p, x, -0x1.e093d8c2a5c35p-15);
    p = taco_fma_f64(p, x, 0x1.99f10aa5395a5p-14);
    p = taco_fma_f64(p, x, -0x1.0aa2f99e0d0aap-18);
    p = taco_fma_f64(p, x, -0x1.2bd87d209d281p-11);
    p = taco_fma_f64(p, x, 0x1.bb5ca13eec033p-10);
    p = taco_fma_f64(p, x, -0x1.bda3256f19a27p-13);
    p = taco_fma_f64(p, x, -0x1.3951ee8b608a9p-6);
    p = taco_fma_f64(p, x, 0x1.a4f1b0444532fp-4);
    p = taco_fma_f64(p, x, -0x1.7419a76826f45p-2);
    p = taco_fma_f64(p, x, 0x1.20dd71161bfa3p+0);
    p = taco_fma_f64(p, x, 0x1.79335cfa75f5ep-26);
    return p;
}
TACO_PURE float taco_erfc_near_f32(float x)
{
    float p = 0x1.42e318p-16f;
    p = taco_fma_f32(p, x, -0x1.b1a70ep-12f);
    p = taco_fma_f32(p, x, 0x1.0ae25ep-8f);
    p = taco_fma_f32(p, x, -0x1.9769d4p-6f);
    p = taco_fma_f32(p, x, 0x1.b9f5f8p-4f);
    p = taco_fma_f32(p, x, -0x1.771c62p-2f);
    p = taco_fma_f32(p, x, 0x1.211d6ep+0f);
    p = taco_fma_f32(p, x, -0x1.2b368ep-13f);
    return p;
}

/* cbrt: x**(-1/3) */
TACO_PURE double taco_cbrt_near_f64(double x)
{
    double p = 0x1.2719181555ecbp-1;
    p = taco_fma_f64(p, x, -0x1.1d6f0c1eb857fp+1);
    p = taco_fma_f64(p, x, 0x1.c0a4c3fc5e67dp+1);
    p = taco_fma_f64(p, x, -0x1.7a4d2f8719583p+1);
    p = taco_fma_f64(p, x, 0x1.0d526d9c043p+1);
    return p;
}
TACO_PURE float taco_cbrt_near_f32(float x)
{
    float p = -0x1.01b48p-1f;
    p = taco_fma_f32(p, x, 0x1.99f4bep+0f);
    p = taco_fma_f32(p, x, -0x1.053e76p+1f);
    p = taco_fma_f32(p, x, 0x1.f151dap+0f);
    return p;
}
