/* Vector primitives on 16 floats with AVX-512. The same names as in vector_portable.h. */
#ifndef TN_KERNELS_VECTOR_AVX512_H
#define TN_KERNELS_VECTOR_AVX512_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define TN_VECTOR_LEN 16

typedef float vf __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
typedef __mmask16 vm; /* one bit per element */

static inline vf vf_load(const float *from) {
    return (vf)_mm512_loadu_ps(from);
}

static inline void vf_store(float *to, vf value) {
    _mm512_storeu_ps(to, (__m512)value);
}

static inline void vf_stream(float *to, vf value) {
    _mm512_stream_ps(to, (__m512)value);
}

/* Makes streamed stores visible before what follows. */
static inline void vf_stream_end(void) {
    _mm_sfence();
}

static inline vf vf_set(float value) {
    return (vf)_mm512_set1_ps(value);
}

static inline vi vi_set(int32_t value) {
    return (vi)_mm512_set1_epi32(value);
}

static inline vm vm_lt(vf a, vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
}

static inline vm vm_le(vf a, vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ);
}

static inline vm vm_eq(vf a, vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
}

static inline vm vm_ne(vf a, vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ);
}

static inline int vm_all(vm mask) {
    return mask == 0xffff;
}

static inline vf vf_select(vm mask, vf a, vf b) {
    return (vf)_mm512_mask_blend_ps(mask, (__m512)b, (__m512)a);
}

/* a > b ? a : b: the second one when either is NaN. */
static inline vf vf_max_raw(vf a, vf b) {
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
}

static inline vf vf_min_raw(vf a, vf b) {
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
}

/* a * b + c, rounded once. */
static inline vf vf_fma(vf a, vf b, vf c) {
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

static inline vf vf_sqrt(vf x) {
    return (vf)_mm512_sqrt_ps((__m512)x);
}

static inline vf vf_round(vf x) {
    return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf vf_floor(vf x) {
    return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

static inline vf vf_ceil(vf x) {
    return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}

#endif
