/* A reference count that refuses resurrection and over-release. */
#ifndef TN_BASE_REF_COUNT_H
#define TN_BASE_REF_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_ref_count {
    _Atomic uint32_t count;
} tn_ref_count;

static inline void tn_ref_count_init(tn_ref_count *refs, uint32_t initial) {
    atomic_init(&refs->count, initial);
}

/* Adds one reference; false, and no change, when the count is already zero. */
static inline bool tn_ref_count_retain(tn_ref_count *refs) {
    /* relaxed: the caller holds a reference, so nothing needs to be ordered by this one */
    uint32_t seen = atomic_load_explicit(&refs->count, memory_order_relaxed);
    do {
        if (seen == 0) return false;
    } while (!atomic_compare_exchange_weak_explicit(&refs->count, &seen, seen + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Drops one reference and writes whether it was the last; false when there was none to drop. */
static inline bool tn_ref_count_release(tn_ref_count *refs, bool *out_was_last) {
    uint32_t seen = atomic_load_explicit(&refs->count, memory_order_relaxed);
    do {
        if (seen == 0) return false;
        /* acq_rel: our writes happen before the destruction that the last owner does */
    } while (!atomic_compare_exchange_weak_explicit(&refs->count, &seen, seen - 1,
                                                    memory_order_acq_rel, memory_order_relaxed));
    *out_was_last = seen == 1;
    return true;
}

static inline uint32_t tn_ref_count_get(const tn_ref_count *refs) {
    return atomic_load_explicit(&refs->count, memory_order_acquire);
}

#endif
