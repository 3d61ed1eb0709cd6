/* Vector primitives on 8 floats with AVX2. The same names as in vector_portable.h. */
#ifndef TN_KERNELS_VECTOR_AVX2_H
#define TN_KERNELS_VECTOR_AVX2_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define TN_VECTOR_LEN 8

typedef float vf __attribute__((vector_size(32)));
typedef int32_t vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32)));
typedef __m256 vm; /* all ones where true */

static inline vf vf_load(const float *from) {
    return (vf)_mm256_loadu_ps(from);
}

static inline void vf_store(float *to, vf value) {
    _mm256_storeu_ps(to, (__m256)value);
}

static inline void vf_stream(float *to, vf value) {
    _mm256_stream_ps(to, (__m256)value);
}

/* Makes streamed stores visible before what follows. */
static inline void vf_stream_end(void) {
    _mm_sfence();
}

static inline vf vf_set(float value) {
    return (vf)_mm256_set1_ps(value);
}

static inline vi vi_set(int32_t value) {
    return (vi)_mm256_set1_epi32(value);
}

static inline vm vm_lt(vf a, vf b) {
    return _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ);
}

static inline vm vm_le(vf a, vf b) {
    return _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LE_OQ);
}

static inline vm vm_eq(vf a, vf b) {
    return _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_OQ);
}

static inline vm vm_ne(vf a, vf b) {
    return _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_NEQ_UQ);
}

static inline int vm_all(vm mask) {
    return _mm256_movemask_ps(mask) == 0xff;
}

static inline vf vf_select(vm mask, vf a, vf b) {
    return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, mask);
}

/* a > b ? a : b: the second one when either is NaN. */
static inline vf vf_max_raw(vf a, vf b) {
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
}

static inline vf vf_min_raw(vf a, vf b) {
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
}

/* a * b + c, rounded once. */
static inline vf vf_fma(vf a, vf b, vf c) {
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

static inline vf vf_sqrt(vf x) {
    return (vf)_mm256_sqrt_ps((__m256)x);
}

static inline vf vf_round(vf x) {
    return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf vf_floor(vf x) {
    return (vf)_mm256_floor_ps((__m256)x);
}

static inline vf vf_ceil(vf x) {
    return (vf)_mm256_ceil_ps((__m256)x);
}

#endif
