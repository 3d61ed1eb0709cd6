/* What every body computes, once for all instruction sets: vectors in, a vector out, `p` the
 * params. Included after one of the vector_*.h and vector_math_template.h. NaN goes through unless
 * the operator says otherwise. */
#ifndef TN_KERNELS_BODIES_H
#define TN_KERNELS_BODIES_H

#define UNARY(name) static inline vf body_##name(vf x, const float *p)
#define BINARY(name) static inline vf body_##name(vf a, vf b)
#define NO_PARAMS (void)p

UNARY(NEG) {
    NO_PARAMS;
    return (vf)((vi)x ^ vi_set(INT32_MIN));
}

UNARY(ABS) {
    NO_PARAMS;
    return vf_abs(x);
}

UNARY(SQRT) {
    NO_PARAMS;
    return vf_sqrt(x);
}

UNARY(RECIPROCAL) {
    NO_PARAMS;
    return vf_set(1.0F) / x;
}

UNARY(FLOOR) {
    NO_PARAMS;
    return vf_floor(x);
}

UNARY(CEIL) {
    NO_PARAMS;
    return vf_ceil(x);
}

UNARY(ROUND) {
    NO_PARAMS;
    return vf_round(x);
}

UNARY(SIGN) {
    NO_PARAMS;
    const vf zero = vf_set(0.0F);
    const vf y = vf_select(vm_lt(zero, x), vf_set(1.0F), zero);
    const vf z = vf_select(vm_lt(x, zero), vf_set(-1.0F), y);
    return vf_select(vm_ne(x, x), x, z);
}

#define VECTOR_UNARY(name, function) \
    UNARY(name) {                    \
        NO_PARAMS;                   \
        return function(x);          \
    }
VECTOR_UNARY(EXP, vf_exp)
VECTOR_UNARY(LOG, vf_log)
VECTOR_UNARY(ERF, vf_erf)
VECTOR_UNARY(SIN, vf_sin)
VECTOR_UNARY(COS, vf_cos)
VECTOR_UNARY(TANH, vf_tanh)
#undef VECTOR_UNARY

#define LANES_UNARY(name, function)   \
    UNARY(name) {                     \
        NO_PARAMS;                    \
        return vf_lanes(x, function); \
    }
LANES_UNARY(TAN, tanf)
LANES_UNARY(ASIN, asinf)
LANES_UNARY(ACOS, acosf)
LANES_UNARY(ATAN, atanf)
LANES_UNARY(SINH, sinhf)
LANES_UNARY(COSH, coshf)
LANES_UNARY(ASINH, asinhf)
LANES_UNARY(ACOSH, acoshf)
LANES_UNARY(ATANH, atanhf)
#undef LANES_UNARY

UNARY(RELU) {
    NO_PARAMS;
    return vf_max_raw(vf_set(0.0F), x);
}

/* exp of the negative side only, so that small results are not lost to an infinite divisor. */
static inline vf sigmoid(vf x) {
    const vf one = vf_set(1.0F);
    const vf e = vf_exp(body_NEG(vf_abs(x), NULL));
    return vf_select(vm_lt(x, vf_set(0.0F)), e, one) / (one + e);
}

UNARY(SIGMOID) {
    NO_PARAMS;
    return sigmoid(x);
}

UNARY(SOFTPLUS) {
    NO_PARAMS;
    const vf e = vf_exp(body_NEG(vf_abs(x), NULL));
    return vf_max_raw(vf_set(0.0F), x) + vf_log1p_positive(e);
}

UNARY(SOFTSIGN) {
    NO_PARAMS;
    return x / (vf_set(1.0F) + vf_abs(x));
}

UNARY(HARD_SWISH) {
    NO_PARAMS;
    const vf line = x * vf_set(1.0F / 6.0F) + vf_set(0.5F);
    return x * vf_clamp(line, vf_set(0.0F), vf_set(1.0F));
}

/* tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2); from 20 on it is 1. */
UNARY(MISH) {
    NO_PARAMS;
    const vf e = vf_exp(vf_min_raw(vf_set(20.0F), x));
    const vf n = e * (e + vf_set(2.0F));
    return x * (n / (n + vf_set(2.0F)));
}

UNARY(GELU) {
    NO_PARAMS;
    const vf cdf = vf_set(1.0F) + vf_erf(x * vf_set(0.70710678F));
    return (vf_set(0.5F) * x) * cdf;
}

UNARY(GELU_TANH) {
    NO_PARAMS;
    const vf cubic = x + vf_set(0.044715F) * (x * x * x);
    const vf cdf = vf_set(1.0F) + vf_tanh(vf_set(0.79788456F) * cubic);
    return (vf_set(0.5F) * x) * cdf;
}

/* The high bound wins when the bounds cross. */
UNARY(CLIP) {
    return vf_min_raw(vf_set(p[1]), vf_max_raw(vf_set(p[0]), x));
}

UNARY(LEAKY_RELU) {
    return vf_select(vm_lt(x, vf_set(0.0F)), x * vf_set(p[0]), x);
}

UNARY(ELU) {
    return vf_select(vm_lt(x, vf_set(0.0F)), vf_set(p[0]) * vf_expm1(x), x);
}

UNARY(SELU) {
    const vf y = vf_select(vm_le(x, vf_set(0.0F)), vf_set(p[0]) * vf_expm1(x), x);
    return vf_set(p[1]) * y;
}

UNARY(HARD_SIGMOID) {
    return vf_clamp(x * vf_set(p[0]) + vf_set(p[1]), vf_set(0.0F), vf_set(1.0F));
}

UNARY(THRESHOLDED_RELU) {
    return vf_select(vm_le(x, vf_set(p[0])), vf_set(0.0F), x);
}

UNARY(CELU) {
    const vf alpha = vf_set(p[0]);
    return vf_select(vm_lt(x, vf_set(0.0F)), alpha * vf_expm1(x / alpha), x);
}

UNARY(SWISH) {
    return x * sigmoid(x * vf_set(p[0]));
}

UNARY(SHRINK) {
    const vf limit = vf_set(p[0]);
    const vf high = vf_select(vm_lt(limit, x), x - vf_set(p[1]), vf_set(0.0F));
    const vf low = vf_select(vm_lt(x, body_NEG(limit, NULL)), x + vf_set(p[1]), high);
    return vf_select(vm_ne(x, x), x, low);
}

BINARY(ADD) {
    return a + b;
}

BINARY(SUB) {
    return a - b;
}

BINARY(MUL) {
    return a * b;
}

BINARY(DIV) {
    return a / b;
}

/* Squares and square roots, the usual exponents, avoid the call; each element decides for itself,
 * so its neighbours do not matter. */
BINARY(POW) {
    const vm is_square = vm_eq(b, vf_set(2.0F));
    if (vm_all(is_square)) return a * a;
    const vm is_root = vm_eq(b, vf_set(0.5F));
    const vf root =
        vf_select(vm_eq(a, vf_set(-INFINITY)), vf_set(INFINITY), vf_sqrt(a + vf_set(0.0F)));
    if (vm_all(is_root)) return root;
    const vf y = vf_select(is_square, a * a, vf_lanes2(a, b, powf));
    return vf_select(is_root, root, y);
}

BINARY(MAX) {
    return vf_select(vm_ne(a, a), a, vf_max_raw(a, b));
}

BINARY(MIN) {
    return vf_select(vm_ne(a, a), a, vf_min_raw(a, b));
}

BINARY(FMOD) {
    return vf_lanes2(a, b, fmodf);
}

BINARY(PRELU) {
    return vf_select(vm_lt(a, vf_set(0.0F)), a * b, a);
}

#undef UNARY
#undef BINARY
#undef NO_PARAMS

#endif
