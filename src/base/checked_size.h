/* Checked arithmetic for sizes and dimensions. Every product or sum that comes from outside goes
 * through here; each function returns false on overflow and leaves *out alone then. */
#ifndef TN_BASE_CHECKED_SIZE_H
#define TN_BASE_CHECKED_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tn_size_add(size_t a, size_t b, size_t *out) {
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

static inline bool tn_size_mul(size_t a, size_t b, size_t *out) {
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

/* Rounds `size` up to a multiple of `align`, a power of two. */
static inline bool tn_size_align(size_t size, size_t align, size_t *out) {
    size_t sum;
    if (!tn_size_add(size, align - 1, &sum)) return false;
    *out = sum & ~(align - 1);
    return true;
}

static inline size_t tn_size_max(size_t a, size_t b) {
    return a > b ? a : b;
}

static inline size_t tn_size_min(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Rounds up without a check, for sizes already proved small. `align` is a power of two. */
static inline size_t tn_align_up(size_t size, size_t align) {
    return (size + align - 1) & ~(align - 1);
}

static inline bool tn_i64_add(int64_t a, int64_t b, int64_t *out) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

static inline bool tn_i64_sub(int64_t a, int64_t b, int64_t *out) {
    int64_t difference;
    if (__builtin_sub_overflow(a, b, &difference)) return false;
    *out = difference;
    return true;
}

static inline bool tn_i64_mul(int64_t a, int64_t b, int64_t *out) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

static inline int64_t tn_i64_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline int64_t tn_i64_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

#endif
