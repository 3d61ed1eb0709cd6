/* The hot path of the block pool: a request that a retained block serves, and its return. Inline,
 * against the rule of five lines, because the calls alone would cost as much as the work;
 * everything that is rare is in block_pool.c. */
#ifndef TN_MEMORY_BLOCK_POOL_HOT_H
#define TN_MEMORY_BLOCK_POOL_HOT_H

#include "memory/block_pool.h"

static inline tn_ledger *tn_pool_record_or_null(const tn_block_pool *pool, uint32_t index) {
    return index == TN_RECORD_NONE ? NULL : tn_pool_record(pool, index);
}

/* Heads and ends of lists are pointers, and the bitmap's bits are cleared only when a search finds
 * an empty list: what the next request waits for is then one pointer written by the last return. */
static inline void tn_pool_link(tn_block_pool *pool, tn_ledger *record) {
    const uint32_t class_index = record->class_index;
    const uint64_t bit = UINT64_C(1) << (class_index % 64);
    tn_ledger *const head = pool->class_head[class_index];
    tn_record_links *const links = &record->link.links;
    links->class_prev = TN_RECORD_NONE;
    links->class_next = TN_RECORD_NONE;
    if (head != NULL) {
        links->class_next = head->index;
        head->link.links.class_prev = record->index;
    }
    pool->class_head[class_index] = record;
    if ((pool->occupied[class_index / 64] & bit) == 0) pool->occupied[class_index / 64] |= bit;

    tn_ledger *const newest = pool->lru_newest;
    links->lru_newer = TN_RECORD_NONE;
    links->lru_older = TN_RECORD_NONE;
    if (newest != NULL) {
        links->lru_older = newest->index;
        newest->link.links.lru_newer = record->index;
    } else {
        pool->lru_oldest = record;
    }
    pool->lru_newest = record;
}

/* The links are read one by one: they were written one by one a moment ago, and a single wider load
 * would have to wait for those writes to leave the core. */
static inline void tn_pool_unlink(tn_block_pool *pool, tn_ledger *record) {
    const volatile tn_record_links *const links = &record->link.links;
    tn_ledger *const class_next = tn_pool_record_or_null(pool, links->class_next);
    const uint32_t class_prev = links->class_prev;
    tn_ledger *const older = tn_pool_record_or_null(pool, links->lru_older);
    tn_ledger *const newer = tn_pool_record_or_null(pool, links->lru_newer);
    if (class_prev == TN_RECORD_NONE) {
        pool->class_head[record->class_index] = class_next;
    } else {
        tn_pool_record(pool, class_prev)->link.links.class_next = links->class_next;
    }
    if (class_next != NULL) class_next->link.links.class_prev = class_prev;
    if (older == NULL) {
        pool->lru_oldest = newer;
    } else {
        older->link.links.lru_newer = links->lru_newer;
    }
    if (newer == NULL) {
        pool->lru_newest = older;
    } else {
        newer->link.links.lru_older = links->lru_older;
    }
}

/* Takes the smallest retained block that fits `size_bytes` within the waste bound off its lists;
 * NULL: a miss. Counts the request. */
static inline tn_ledger *tn_block_pool_take(tn_block_pool *pool, size_t size_bytes) {
    pool->tick++;
    tn_ledger *fit = NULL;
    /* a block of the request's own class is the tightest there is, and within any waste bound */
    if (size_bytes <= TN_SMALL_MAX_BYTES) fit = pool->class_head[tn_size_class_ceil(size_bytes)];
    if (fit == NULL) fit = tn_block_pool_find(pool, size_bytes);
    if (fit == NULL) {
        tn_counter_add(&pool->misses, 1);
        return NULL;
    }
    tn_pool_unlink(pool, fit);
    tn_counter_add(&pool->hits, 1);
    return fit;
}

/* Counts a block as live: one that was made for a miss, or that left the lists. */
static inline void tn_block_pool_set_live(tn_block_pool *pool, tn_ledger *record,
                                          size_t size_bytes) {
    record->u.size_bytes = size_bytes;
    record->state = TN_BLOCK_LIVE;
    pool->class_used_at[record->class_index] = pool->tick;
    tn_counter_add(&pool->live_count, 1);
    tn_counter_add(&pool->live_bytes, size_bytes);
    tn_counter_add(&pool->live_capacity_bytes, record->capacity_bytes);
    tn_counter_raise(&pool->live_peak_bytes, tn_counter_get(&pool->live_bytes));
    tn_counter_raise(&pool->live_capacity_peak_bytes, tn_counter_get(&pool->live_capacity_bytes));
}

/* A live block comes back: handles on it are stale. */
static inline void tn_block_pool_unset_live(tn_block_pool *pool, tn_ledger *record) {
    if (record->state == TN_BLOCK_LEASED) {
        tn_counter_subtract(&pool->leased_count, 1);
        tn_counter_subtract(&pool->leased_bytes, record->u.size_bytes);
    }
    tn_counter_subtract(&pool->live_count, 1);
    tn_counter_subtract(&pool->live_bytes, record->u.size_bytes);
    tn_counter_subtract(&pool->live_capacity_bytes, record->capacity_bytes);
    record->generation++;
}

/* A block that is not live any more goes on the free lists, then the cap is enforced. */
static inline void tn_block_pool_put(tn_block_pool *pool, tn_ledger *record,
                                     tn_pool_chain *inout_chain) {
    const uint64_t cap_bytes = tn_counter_get(&pool->cap_bytes);
    if (record->capacity_bytes > cap_bytes) {
        /* it can never be kept; what is kept shall not suffer for it */
        tn_block_pool_discard(pool, record, true, inout_chain);
        return;
    }
    record->state = TN_BLOCK_RETAINED;
    record->u.returned_at_run = tn_counter_get(&pool->run_count);
    tn_pool_link(pool, record);
    if (tn_pool_retained_bytes(pool) > cap_bytes) {
        tn_block_pool_shrink(pool, cap_bytes, true, inout_chain);
    }
    tn_counter_raise(&pool->retained_peak_bytes, tn_pool_retained_bytes(pool));
}

#endif
