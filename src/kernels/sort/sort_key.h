/* Ordering numbers of any type as unsigned integers, and sorting entries by such keys. */
#ifndef TN_KERNELS_SORT_SORT_KEY_H
#define TN_KERNELS_SORT_SORT_KEY_H

#include "plan/op_def.h"

typedef struct tn_sort_entry {
    uint64_t key;
    uint64_t index;
} tn_sort_entry;

/* A key that orders like the value: -0 equals 0, all NaNs are one value above infinity. Numbers and
 * bool only; 0 for other types. */
uint64_t tn_sort_key(const void *data, tn_dtype dtype, size_t index);

/* Whether `a` comes before `b`: smaller key, then smaller index. */
static inline bool tn_sort_before(const tn_sort_entry *a, const tn_sort_entry *b) {
    return a->key != b->key ? a->key < b->key : a->index < b->index;
}

/* Sorts by key, then index. Shapes: entries and scratch [count]. */
void tn_sort_entries(tn_sort_entry *entries, tn_sort_entry *scratch, size_t count);

/* The key function of `dtype`; NULL for types that have no order here. */
typedef uint64_t (*tn_sort_key_fn)(const void *data, size_t index);
tn_sort_key_fn tn_sort_key_of(tn_dtype dtype);

/* Whether a heap of `count` out of `keep` entries would take `entry`: most are turned away here. */
static inline bool tn_sort_wants(const tn_sort_entry *kept, size_t count, size_t keep,
                                 const tn_sort_entry *entry) {
    return count < keep || (keep != 0 && tn_sort_before(entry, &kept[0]));
}

/* Keeps the `keep` first of a stream: offers one entry to the heap `kept` of *count entries. */
void tn_sort_offer(tn_sort_entry *kept, size_t *count, size_t keep, const tn_sort_entry *entry);

#endif
