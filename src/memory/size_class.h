/* Size classes shared by the page source and the block pool: multiples of 64 bytes up to 512, then
 * eight classes per doubling, so that rounding up wastes at most 12.5 % from 512 bytes on. */
#ifndef TN_MEMORY_SIZE_CLASS_H
#define TN_MEMORY_SIZE_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_CLASS_UNIT_BYTES ((size_t)64)
#define TN_CLASS_COUNT 320 /* the last class is 256 TiB */
#define TN_PAGE_BYTES ((size_t)4096)
#define TN_HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Classes below this one are carved from chunks; what rounds to 64 KiB or more is page-granular. */
#define TN_SMALL_CLASS_COUNT 63
#define TN_SMALL_MAX_BYTES ((size_t)61440)

/* No single request above this is tried: no machine has it, and sums of it cannot overflow. */
#define TN_MAX_BLOCK_BYTES ((size_t)1 << 47)

static inline uint32_t tn_log2_floor(uint64_t value) {
    return 63u - (uint32_t)__builtin_clzll(value);
}

/* The smallest class whose size is at least `size_bytes` (1 .. TN_MAX_BLOCK_BYTES). */
static inline uint32_t tn_size_class_ceil(size_t size_bytes) {
    const uint64_t units_less_one = (size_bytes - 1) / TN_CLASS_UNIT_BYTES;
    const uint32_t shift = units_less_one < 8 ? 0 : tn_log2_floor(units_less_one) - 3;
    return 8 * shift + (uint32_t)(units_less_one >> shift);
}

/* The largest class whose size is at most `capacity_bytes` (64 .. TN_MAX_BLOCK_BYTES). */
static inline uint32_t tn_size_class_floor(size_t capacity_bytes) {
    const uint64_t units = capacity_bytes / TN_CLASS_UNIT_BYTES;
    const uint32_t shift = units < 8 ? 0 : tn_log2_floor(units) - 3;
    return 8 * shift + (uint32_t)(units >> shift) - 1;
}

static inline size_t tn_size_class_bytes(uint32_t class_index) {
    const uint32_t shift = class_index < 16 ? 0 : class_index / 8 - 1;
    return ((size_t)(class_index - 8 * shift + 1) << shift) * TN_CLASS_UNIT_BYTES;
}

/* What a request of `size_bytes` (1 .. TN_MAX_BLOCK_BYTES) really gets: its class when small, whole
 * pages otherwise. */
static inline size_t tn_block_capacity(size_t size_bytes) {
    if (size_bytes <= TN_SMALL_MAX_BYTES)
        return tn_size_class_bytes(tn_size_class_ceil(size_bytes));
    return (size_bytes + TN_PAGE_BYTES - 1) & ~(TN_PAGE_BYTES - 1);
}

#endif
