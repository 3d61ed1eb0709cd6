/* Vector primitives on four floats with the compiler's vector extensions only. vector_avx2.h and
 * vector_avx512.h define the same names; exactly one of the three is included. */
#ifndef TN_KERNELS_VECTOR_PORTABLE_H
#define TN_KERNELS_VECTOR_PORTABLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define TN_VECTOR_LEN 4

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef vi vm; /* all ones where true */

static inline vf vf_load(const float *from) {
    vf value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void vf_store(float *to, vf value) {
    memcpy(to, &value, sizeof value);
}

/* No store here bypasses the caches. */
static inline void vf_stream(float *to, vf value) {
    vf_store(to, value);
}

static inline void vf_stream_end(void) {}

static inline vf vf_set(float value) {
    return (vf){value, value, value, value};
}

static inline vi vi_set(int32_t value) {
    return (vi){value, value, value, value};
}

static inline vm vm_lt(vf a, vf b) {
    return a < b;
}

static inline vm vm_le(vf a, vf b) {
    return a <= b;
}

static inline vm vm_eq(vf a, vf b) {
    return a == b;
}

static inline vm vm_ne(vf a, vf b) {
    return a != b;
}

static inline int vm_all(vm mask) {
    return (mask[0] & mask[1] & mask[2] & mask[3]) != 0;
}

static inline vf vf_select(vm mask, vf a, vf b) {
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}

/* a > b ? a : b: the second one when either is NaN. */
static inline vf vf_max_raw(vf a, vf b) {
    return vf_select(a > b, a, b);
}

static inline vf vf_min_raw(vf a, vf b) {
    return vf_select(a < b, a, b);
}

/* a * b + c, rounded twice. */
static inline vf vf_fma(vf a, vf b, vf c) {
    return a * b + c;
}

static inline vf vf_sqrt(vf x) {
    return (vf){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}

/* To nearest even. Adding 2^23 leaves no fraction; from there on numbers are whole already. */
static inline vf vf_round(vf x) {
    const vf limit = vf_set(0x1p23F);
    const vi sign = (vi)x & vi_set(INT32_MIN);
    const vf size = (vf)((vi)x & vi_set(INT32_MAX));
    const vf whole = (size + limit) - limit;
    return vf_select(size < limit, (vf)((vi)whole | sign), x);
}

static inline vf vf_floor(vf x) {
    const vf near = vf_round(x);
    const vf low = vf_select(near > x, near - vf_set(1.0F), near);
    return (vf)((vi)low | ((vi)x & vi_set(INT32_MIN)));
}

static inline vf vf_ceil(vf x) {
    const vf near = vf_round(x);
    const vf high = vf_select(near < x, near + vf_set(1.0F), near);
    return (vf)((vi)high | ((vi)x & vi_set(INT32_MIN)));
}

#endif
