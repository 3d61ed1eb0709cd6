/* exp, log, erf, tanh, sine and cosine on vectors, from primitives that every vector_*.h defines:
 * so fused and own kernels
 * give the same bits. Where the processor has it, vf_fma rounds once.
 *
 * Each reduces its argument and evaluates a polynomial; the coefficients are weighted minimax fits
 * over the reduced range, made with Lawson's algorithm in double precision. Errors, measured by the
 * unit test over the whole range: at most 2 units in the last place. */
#ifndef TN_KERNELS_VECTOR_MATH_H
#define TN_KERNELS_VECTOR_MATH_H

#define VF_ROUND_MAGIC 0x1.8p23F /* added, it leaves the nearest integer in the low bits */
#define VF_LN2_HIGH 0x1.63p-1F   /* few bits, so that small multiples are exact */
#define VF_LN2_LOW -0x1.bd0106p-13F

static inline vf vf_abs(vf x) {
    return (vf)((vi)x & vi_set(INT32_MAX));
}

static inline vf vf_copy_sign(vf size, vf sign) {
    return (vf)(((vi)size & vi_set(INT32_MAX)) | ((vi)sign & vi_set(INT32_MIN)));
}

/* x or the nearer bound; NaN stays NaN. */
static inline vf vf_clamp(vf x, vf low, vf high) {
    return vf_max_raw(low, vf_min_raw(high, x));
}

/* 2^n for n in [-126, 127]. */
static inline vf vf_pow2(vi n) {
    return (vf)((vu)(n + vi_set(127)) << 23);
}

/* exp(r) - 1 = r + r^2 P(r) on |r| <= ln(2) / 2. */
static inline vf vf_exp_reduced(vf r) {
    vf p = vf_set(1.395047910e-03F);
    p = vf_fma(p, r, vf_set(8.368883752e-03F));
    p = vf_fma(p, r, vf_set(4.166620598e-02F));
    p = vf_fma(p, r, vf_set(1.666651889e-01F));
    p = vf_fma(p, r, vf_set(0.5F));
    return vf_fma(r * r, p, r);
}

/* exp(x) = y * 2^n with y near 1. */
static inline vf vf_exp_split(vf x, vi *out_n) {
    const vf shifted = vf_fma(x, vf_set(0x1.715476p0F), vf_set(VF_ROUND_MAGIC));
    const vf whole = shifted - vf_set(VF_ROUND_MAGIC);
    vf r = vf_fma(whole, vf_set(-VF_LN2_HIGH), x);
    r = vf_fma(whole, vf_set(-VF_LN2_LOW), r);
    *out_n = (vi)shifted - (vi)vf_set(VF_ROUND_MAGIC);
    return vf_set(1.0F) + vf_exp_reduced(r);
}

/* For |x| <= 87 only: neither the result nor its scale can leave the normal range. */
static inline vf vf_exp_narrow(vf x) {
    vi n;
    const vf y = vf_exp_split(x, &n);
    return y * vf_pow2(n);
}

/* Scaled in two steps, so that subnormal results and those next to infinity are right. */
static inline vf vf_exp(vf x) {
    const vf clamped = vf_clamp(x, vf_set(-104.0F), vf_set(89.0F));
    vi n;
    const vf y = vf_exp_split(clamped, &n);
    const vi half = n >> 1;
    const vf scaled = (y * vf_pow2(half)) * vf_pow2(n - half);
    return vf_select(vm_ne(x, x), x, scaled);
}

static inline vf vf_expm1(vf x) {
    const vm is_small = vm_lt(vf_abs(x), vf_set(0.34F));
    return vf_select(is_small, vf_exp_reduced(x), vf_exp(x) - vf_set(1.0F));
}

/* x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2 / 2 + f^3 P(f). */
static inline vf vf_log(vf x) {
    const vm is_tiny = vm_lt(x, vf_set(0x1p-126F));
    const vf normal = vf_select(is_tiny, x * vf_set(0x1p23F), x);
    const vi e = (vi)((vu)normal - (vu)vi_set(0x3f3504f3)) >> 23; /* may wrap below zero */
    const vf m = (vf)((vu)normal - ((vu)e << 23));
    /* e as a float: in the low bits of a number of known exponent */
    vf scale = (vf)(e + (vi)vf_set(VF_ROUND_MAGIC)) - vf_set(VF_ROUND_MAGIC);
    scale = scale - vf_select(is_tiny, vf_set(23.0F), vf_set(0.0F));
    const vf f = m - vf_set(1.0F);
    vf p = vf_set(6.915367975e-02F);
    p = vf_fma(p, f, vf_set(-1.178980765e-01F));
    p = vf_fma(p, f, vf_set(1.187297631e-01F));
    p = vf_fma(p, f, vf_set(-1.238434848e-01F));
    p = vf_fma(p, f, vf_set(1.421865809e-01F));
    p = vf_fma(p, f, vf_set(-1.666925082e-01F));
    p = vf_fma(p, f, vf_set(2.000222661e-01F));
    p = vf_fma(p, f, vf_set(-2.499998660e-01F));
    p = vf_fma(p, f, vf_set(3.333331044e-01F));
    const vf square = f * f;
    vf y = f * square * p;
    y = y + scale * vf_set(VF_LN2_LOW);
    y = y - vf_set(0.5F) * square;
    y = (f + y) + scale * vf_set(VF_LN2_HIGH);
    y = vf_select(vm_eq(x, vf_set(INFINITY)), x, y);
    y = vf_select(vm_eq(x, vf_set(0.0F)), vf_set(-INFINITY), y);
    return vf_select(vm_le(vf_set(0.0F), x), y, vf_set(NAN));
}

/* log(1 + x) for x >= 0: what rounding 1 + x lost is put back. */
static inline vf vf_log1p_positive(vf x) {
    const vf sum = vf_set(1.0F) + x;
    const vf lost = x - (sum - vf_set(1.0F));
    const vf y = vf_log(sum) + lost / sum;
    return vf_select(vm_eq(x, vf_set(INFINITY)), x, y);
}

/* x + x^3 P(x^2) below 5/8, 1 - 2 / (exp(2x) + 1) above. */
static inline vf vf_tanh(vf x) {
    const vf size = vf_abs(x);
    const vf s = x * x;
    vf p = vf_set(-5.721629880e-03F);
    p = vf_fma(p, s, vf_set(2.065521840e-02F));
    p = vf_fma(p, s, vf_set(-5.374514459e-02F));
    p = vf_fma(p, s, vf_set(1.333151517e-01F));
    p = vf_fma(p, s, vf_set(-3.333328508e-01F));
    const vf small = vf_fma(x, s * p, x);
    const vf limited = vf_min_raw(vf_set(10.0F), size); /* from 9.02 on the result is 1 */
    const vf e = vf_exp_narrow(limited + limited);
    const vf large = vf_set(1.0F) - vf_set(2.0F) / (e + vf_set(1.0F));
    return vf_copy_sign(vf_select(vm_lt(size, vf_set(0.625F)), small, large), x);
}

/* x + x P(x^2) below 0.92, 1 - exp(-Q(x)) above, where Q fits -log(erfc(x)). */
static inline vf vf_erf(vf x) {
    const vf size = vf_abs(x);
    const vf s = x * x;
    vf p = vf_set(8.215423704e-05F);
    p = vf_fma(p, s, vf_set(-8.105965118e-04F));
    p = vf_fma(p, s, vf_set(5.197797167e-03F));
    p = vf_fma(p, s, vf_set(-2.685810429e-02F));
    p = vf_fma(p, s, vf_set(1.128367255e-01F));
    p = vf_fma(p, s, vf_set(-3.761263229e-01F));
    p = vf_fma(p, s, vf_set(1.283791665e-01F));
    const vf small = vf_fma(x, p, x);
    const vf a = vf_min_raw(vf_set(4.0F), size);
    vf q = vf_set(2.109505168e-05F);
    q = vf_fma(q, a, vf_set(-4.344626323e-04F));
    q = vf_fma(q, a, vf_set(4.171063103e-03F));
    q = vf_fma(q, a, vf_set(-2.511942757e-02F));
    q = vf_fma(q, a, vf_set(1.082800897e-01F));
    q = vf_fma(q, a, vf_set(6.333469061e-01F));
    q = vf_fma(q, a, vf_set(1.129514931e+00F));
    q = vf_fma(q, a, vf_set(-1.746844511e-04F));
    const vf large = vf_set(1.0F) - vf_exp_narrow(vf_set(0.0F) - q);
    return vf_select(vm_lt(size, vf_set(0.92F)), small, vf_copy_sign(large, x));
}

/* One function of the C library on every element. */
static inline vf vf_lanes(vf x, float (*function)(float)) {
    float lanes[TN_VECTOR_LEN];
    vf_store(lanes, x);
    for (int i = 0; i < TN_VECTOR_LEN; i++) lanes[i] = function(lanes[i]);
    return vf_load(lanes);
}

static inline vf vf_lanes2(vf a, vf b, float (*function)(float, float)) {
    float lanes_a[TN_VECTOR_LEN];
    float lanes_b[TN_VECTOR_LEN];
    vf_store(lanes_a, a);
    vf_store(lanes_b, b);
    for (int i = 0; i < TN_VECTOR_LEN; i++) lanes_a[i] = function(lanes_a[i], lanes_b[i]);
    return vf_load(lanes_a);
}

/* Sine of x + quarter * pi / 2 for |x| < 2^20, in double: the reduction by pi / 2 in two parts is
 * exact enough there, and the Taylor polynomials are good to 2e-9 on |r| <= pi / 4. The loop has no
 * branch, so the compiler makes vectors of it. */
static inline vf vf_sine(vf x, int32_t quarter) {
    float lanes[TN_VECTOR_LEN];
    vf_store(lanes, x);
    for (int i = 0; i < TN_VECTOR_LEN; i++) {
        const double v = (double)lanes[i];
        const double whole = (v * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52;
        const int32_t n = (int32_t)whole + quarter;
        const double r = (v - whole * 0x1.921fb544p0) - whole * 0x1.0b4611a626331p-34;
        const double s = r * r;
        const double sine =
            r + r * s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880))));
        const double cosine =
            1.0 + s * (-0.5 + s * (1.0 / 24 +
                                   s * (-1.0 / 720 + s * (1.0 / 40320 + s * (-1.0 / 3628800)))));
        const double odd = (double)(n & 1);
        const double sign = (double)(1 - (n & 2));
        lanes[i] = (float)(sign * (odd * cosine + (1.0 - odd) * sine));
    }
    return vf_load(lanes);
}

static inline float sine_far(float x) {
    return (float)sin((double)x);
}

static inline float cosine_far(float x) {
    return (float)cos((double)x);
}

static inline vf vf_sin(vf x) {
    const vm is_near = vm_lt(vf_abs(x), vf_set(0x1p20F));
    const vf part = vf_sine(vf_select(is_near, x, vf_set(0.0F)), 0);
    const vf near = vf_select(vm_eq(x, vf_set(0.0F)), x, part);
    return vm_all(is_near) ? near : vf_select(is_near, near, vf_lanes(x, sine_far));
}

static inline vf vf_cos(vf x) {
    const vm is_near = vm_lt(vf_abs(x), vf_set(0x1p20F));
    const vf near = vf_sine(vf_select(is_near, x, vf_set(0.0F)), 1);
    return vm_all(is_near) ? near : vf_select(is_near, near, vf_lanes(x, cosine_far));
}

#endif
