/* Exponential, logistic function and hyperbolic tangent of f32, written without branches so that
 * loops over them become vector code; the same bits with every instruction set. */
#ifndef TN_KERNELS_EXP_LANE_H
#define TN_KERNELS_EXP_LANE_H

#include <stdint.h>
#include <string.h>

/* exp(x) within 2 ulp: 2^n times a polynomial on [-ln2 / 2, ln2 / 2]. 2^n is applied as two
 * factors, so that small results go through the subnormals to 0 and large ones to infinity without
 * a branch; NaN stays. */
static inline float tn_exp_lane(float x) {
    const float low = -104.5F;
    const float high = 89.0F;
    const float shift = 12582912.0F; /* adding it rounds to a whole number in the low bits */
    const float at_least = x < low ? low : x;
    const float clamped = at_least > high ? high : at_least;
    const float shifted = clamped * 1.44269504F + shift;
    const float n = shifted - shift;
    const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    int32_t exponent;
    memcpy(&exponent, &shifted, sizeof exponent);
    exponent -= 0x4b400000;
    const int32_t half = exponent >> 1;
    const int32_t first_bits = (int32_t)((uint32_t)(half + 127) << 23);
    const int32_t second_bits = (int32_t)((uint32_t)(exponent - half + 127) << 23);
    float first;
    float second;
    memcpy(&first, &first_bits, sizeof first);
    memcpy(&second, &second_bits, sizeof second);
    return p * first * second;
}

/* 1 / (1 + exp(-x)). */
static inline float tn_sigmoid_lane(float x) {
    return 1.0F / (1.0F + tn_exp_lane(-x));
}

/* tanh(x): odd polynomial near 0, where the exponential form would lose digits. */
static inline float tn_tanh_lane(float x) {
    const float magnitude = x < 0.0F ? -x : x;
    const float far_exp = tn_exp_lane(2.0F * magnitude);
    const float far = 1.0F - 2.0F / (far_exp + 1.0F);
    const float s = x * x;
    float p = -5.70498872745e-3F;
    p = p * s + 2.06390887954e-2F;
    p = p * s - 5.37397155531e-2F;
    p = p * s + 1.33314422036e-1F;
    p = p * s - 3.33332819422e-1F;
    const float near = p * s * x + x;
    const float signed_far = x < 0.0F ? -far : far;
    return magnitude > 0.625F ? signed_far : near;
}

#endif
