/* Conversions of single elements between f32 and the 16-bit floats, exact one way and rounded to
 * nearest even the other. */
#ifndef TN_KERNELS_HALF_H
#define TN_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float tn_f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t tn_f32_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float tn_f32_from_bf16(uint16_t half) {
    return tn_f32_from_bits((uint32_t)half << 16);
}

static inline uint16_t tn_bf16_from_f32(float value) {
    const uint32_t bits = tn_f32_to_bits(value);
    if (value != value) return (uint16_t)((bits >> 16) | 0x40u); /* stays a NaN */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Exponent and mantissa are moved into place and rescaled by 2^112, which makes subnormals right.
 */
static inline float tn_f32_from_f16(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t body = (uint32_t)(half & 0x7fffu) << 13;
    if (body >= 0x0f800000u) return tn_f32_from_bits(sign | 0x70000000u | body);
    return tn_f32_from_bits(sign | tn_f32_to_bits(tn_f32_from_bits(body) * 0x1p112F));
}

static inline uint16_t tn_f16_from_f32(float value) {
    const uint32_t bits = tn_f32_to_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t body = bits & 0x7fffffffu;
    if (body > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (body >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* rounds to infinity */
    if (body < 0x38800000u) { /* subnormal: the addition rounds at the right bit */
        const float shifted = tn_f32_from_bits(body) + 0.5F;
        return (uint16_t)(sign | (tn_f32_to_bits(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = body + 0xfffu + ((body >> 13) & 1u) - 0x38000000u;
    return (uint16_t)(sign | (rounded >> 13));
}

#endif
