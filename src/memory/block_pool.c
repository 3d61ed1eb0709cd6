/* The free lists. Each class has a list of retained blocks, most recently returned first; a bitmap
 * says which lists are not empty; one more list through all retained blocks keeps the order of
 * return for evictions. Lists are links by index inside the records, so nothing is ever allocated.
 *
 * Below 64 KiB a block's capacity is its class, so the head of the list fits. Above, capacity is
 * the request rounded to pages and the class only chooses the list: the class of the request itself
 * is searched a bounded number of blocks deep for the tightest fit, larger classes give their head.
 *
 * Growing requests: a request larger than anything seen releases what is too small, oldest first,
 * until everything together is at most twice as large as it; and any miss releases too-small blocks
 * of classes that the last 16 requests did not touch. */
#include "memory/block_pool.h"

#include "base/checked_size.h"
#include "memory/block_pool_hot.h"

#define FITS_TRIED 32
#define WASTE_BOUND_STEP_BYTES ((size_t)1 << 20)

void tn_block_pool_init(tn_block_pool *pool, uint64_t cap_bytes) {
    tn_counter_set(&pool->cap_bytes, cap_bytes);
    pool->first_unused = TN_RECORD_NONE; /* all else is zero */
}

uint32_t tn_block_pool_next_chunk_records(const tn_block_pool *pool) {
    if (pool->chunk_count == TN_POOL_CHUNK_MAX) return 0;
    return (uint32_t)TN_POOL_FIRST_CHUNK_RECORDS << pool->chunk_count;
}

void tn_block_pool_add_chunk(tn_block_pool *pool, tn_ledger *records) {
    const uint32_t count = tn_block_pool_next_chunk_records(pool);
    const uint32_t first = count - TN_POOL_FIRST_CHUNK_RECORDS;
    pool->chunks[pool->chunk_count++] = records;
    for (uint32_t i = count; i > 0; i--) { /* so that low indices come first */
        tn_ledger *const record = &records[i - 1];
        record->index = first + i - 1;
        record->generation = 1;
        record->link.links.class_next = pool->first_unused;
        pool->first_unused = record->index;
    }
}

tn_ledger *tn_block_pool_pop_unused(tn_block_pool *pool) {
    tn_ledger *const record = tn_pool_record(pool, pool->first_unused);
    pool->first_unused = record->link.links.class_next;
    return record;
}

void tn_block_pool_push_unused(tn_block_pool *pool, tn_ledger *record) {
    record->generation++;
    record->data = NULL;
    record->kind = TN_LEDGER_UNUSED;
    record->state = TN_BLOCK_UNUSED;
    record->link.links.class_next = pool->first_unused;
    pool->first_unused = record->index;
}

/* The largest capacity that may serve a request. */
static size_t waste_bound(size_t size_bytes) {
    if (size_bytes >= WASTE_BOUND_STEP_BYTES) return size_bytes + size_bytes / 4;
    return 2 * tn_size_max(size_bytes, TN_CLASS_UNIT_BYTES);
}

/* First class in first..last with a retained block, or TN_CLASS_COUNT. */
static uint32_t find_class(tn_block_pool *pool, uint32_t first, uint32_t last) {
    uint64_t skipped = UINT64_MAX << (first % 64);
    for (uint32_t word = first / 64; word <= last / 64; word++) {
        for (uint64_t bits = pool->occupied[word] & skipped; bits != 0; bits &= bits - 1) {
            const uint32_t found = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (found > last) return TN_CLASS_COUNT;
            if (pool->class_head[found] != NULL) return found;
            pool->occupied[word] &= ~(bits & (~bits + 1));
        }
        skipped = UINT64_MAX;
    }
    return TN_CLASS_COUNT;
}

/* Tightest fit among the first blocks of one class, or NULL. */
static tn_ledger *fit_in_class(const tn_block_pool *pool, uint32_t class_index, size_t size_bytes,
                               size_t bound_bytes) {
    const size_t exact_bytes = tn_block_capacity(size_bytes);
    tn_ledger *best = NULL;
    tn_ledger *next = NULL;
    tn_ledger *record = pool->class_head[class_index];
    for (int tried = 0; record != NULL && tried < FITS_TRIED; record = next, tried++) {
        next = tn_pool_record_or_null(pool, record->link.links.class_next);
        if (record->capacity_bytes < size_bytes || record->capacity_bytes > bound_bytes) continue;
        if (best == NULL || record->capacity_bytes < best->capacity_bytes) best = record;
        if (best->capacity_bytes == exact_bytes) break;
    }
    return best;
}

tn_ledger *tn_block_pool_find(tn_block_pool *pool, size_t size_bytes) {
    const size_t bound_bytes = waste_bound(size_bytes);
    const uint32_t last_class = tn_size_class_floor(bound_bytes);
    uint32_t class_index = tn_size_class_ceil(size_bytes);
    if (size_bytes > TN_SMALL_MAX_BYTES) {
        /* blocks of the request's own size may lie one class below the one that always fits */
        class_index = tn_size_class_floor(tn_block_capacity(size_bytes));
    }
    while ((class_index = find_class(pool, class_index, last_class)) < TN_CLASS_COUNT) {
        tn_ledger *const fit = class_index < TN_SMALL_CLASS_COUNT
                                   ? pool->class_head[class_index]
                                   : fit_in_class(pool, class_index, size_bytes, bound_bytes);
        if (fit != NULL) return fit;
        class_index++;
    }
    return NULL;
}

bool tn_block_pool_take_given(tn_block_pool *pool, tn_ledger *record, uint32_t generation) {
    if (record->generation != generation || record->state != TN_BLOCK_RETAINED) return false;
    pool->tick++;
    tn_pool_unlink(pool, record);
    tn_counter_add(&pool->hits, 1);
    return true;
}

void tn_block_pool_discard(tn_block_pool *pool, tn_ledger *record, bool is_eviction,
                           tn_pool_chain *inout_chain) {
    record->state = TN_BLOCK_UNUSED;
    record->link.links.class_next = inout_chain->first;
    inout_chain->first = record->index;
    inout_chain->size_bytes += record->capacity_bytes;
    tn_counter_add(&pool->sys_frees, 1);
    tn_counter_subtract(&pool->total_bytes, record->capacity_bytes);
    tn_counter_subtract(&pool->total_count, 1);
    if (is_eviction) tn_counter_add(&pool->evictions, 1);
}

static void evict(tn_block_pool *pool, tn_ledger *record, bool is_eviction,
                  tn_pool_chain *inout_chain) {
    tn_pool_unlink(pool, record);
    tn_block_pool_discard(pool, record, is_eviction, inout_chain);
}

void tn_block_pool_shrink(tn_block_pool *pool, uint64_t target_bytes, bool is_eviction,
                          tn_pool_chain *inout_chain) {
    while (pool->lru_oldest != NULL && tn_pool_retained_bytes(pool) > target_bytes) {
        evict(pool, pool->lru_oldest, is_eviction, inout_chain);
    }
}

void tn_block_pool_drop_given(tn_block_pool *pool, tn_ledger *record, uint32_t generation,
                              tn_pool_chain *inout_chain) {
    if (record->generation != generation || record->state != TN_BLOCK_RETAINED) return;
    evict(pool, record, true, inout_chain);
}

static void release_idle_classes(tn_block_pool *pool, uint32_t below_class,
                                 tn_pool_chain *inout_chain) {
    uint32_t class_index = 0;
    if (below_class == 0) return;
    while ((class_index = find_class(pool, class_index, below_class - 1)) < TN_CLASS_COUNT) {
        const uint64_t age = pool->tick - pool->class_used_at[class_index];
        while (age > TN_POOL_RECENT_ALLOCATIONS && pool->class_head[class_index] != NULL) {
            evict(pool, pool->class_head[class_index], true, inout_chain);
        }
        class_index++;
    }
}

void tn_block_pool_replace_undersized(tn_block_pool *pool, size_t capacity_bytes,
                                      tn_pool_chain *inout_chain) {
    if (pool->lru_oldest == NULL) return;
    release_idle_classes(pool, tn_size_class_floor(capacity_bytes), inout_chain);
    if (capacity_bytes <= pool->largest_capacity_bytes) return;
    /* larger than all before it: every retained block is too small */
    const uint64_t live_bytes = tn_counter_get(&pool->live_capacity_bytes);
    const uint64_t target_bytes = live_bytes < capacity_bytes ? capacity_bytes - live_bytes : 0;
    tn_block_pool_shrink(pool, target_bytes, true, inout_chain);
}

void tn_block_pool_expire(tn_block_pool *pool, uint32_t window_runs, tn_pool_chain *inout_chain) {
    while (pool->lru_oldest != NULL) {
        tn_ledger *const oldest = pool->lru_oldest;
        const uint64_t returned_at_run = oldest->u.returned_at_run & ~TN_RETURNED_SOFTENED;
        if (returned_at_run + window_runs > tn_counter_get(&pool->run_count)) return;
        evict(pool, oldest, true, inout_chain);
    }
}

/* Walks the list of one class; false when a link or a record is wrong. */
static bool check_class(const tn_block_pool *pool, uint32_t class_index, uint64_t *inout_count) {
    uint32_t before = TN_RECORD_NONE;
    const tn_ledger *record = pool->class_head[class_index];
    const bool is_marked = (pool->occupied[class_index / 64] >> (class_index % 64) & 1) != 0;
    if (record != NULL && !is_marked) return false;
    while (record != NULL) {
        const tn_record_links links = record->link.links;
        if (links.class_prev != before || record->state != TN_BLOCK_RETAINED) return false;
        if (record->class_index != class_index || tn_ref_count_get(&record->refs) != 0)
            return false;
        before = record->index;
        record = tn_pool_record_or_null(pool, links.class_next);
        (*inout_count)++;
    }
    return true;
}

static bool check_lru(const tn_block_pool *pool, uint64_t expected_count) {
    uint64_t count = 0;
    const tn_ledger *before = NULL;
    for (const tn_ledger *at = pool->lru_oldest; at != NULL;) {
        if (tn_pool_record_or_null(pool, at->link.links.lru_older) != before) return false;
        before = at;
        at = tn_pool_record_or_null(pool, at->link.links.lru_newer);
        count++;
    }
    return before == pool->lru_newest && count == expected_count;
}

bool tn_block_pool_check(const tn_block_pool *pool) {
    uint64_t listed_count = 0;
    uint64_t live_bytes = 0;
    uint64_t live_capacity_bytes = 0;
    uint64_t retained_bytes = 0;
    uint64_t leased_bytes = 0;
    for (uint32_t i = 0; i < TN_CLASS_COUNT; i++) {
        if (!check_class(pool, i, &listed_count)) return false;
    }
    for (uint32_t i = 0; tn_pool_has_index(pool, i); i++) {
        const tn_ledger *const record = tn_pool_record(pool, i);
        if (record->index != i) return false;
        if (record->state == TN_BLOCK_RETAINED) retained_bytes += record->capacity_bytes;
        if (record->state != TN_BLOCK_LIVE && record->state != TN_BLOCK_LEASED) continue;
        live_bytes += record->u.size_bytes;
        live_capacity_bytes += record->capacity_bytes;
        if (record->state == TN_BLOCK_LEASED) leased_bytes += record->u.size_bytes;
    }
    return check_lru(pool, listed_count) && listed_count == tn_pool_retained_count(pool) &&
           live_bytes == tn_counter_get(&pool->live_bytes) &&
           live_capacity_bytes == tn_counter_get(&pool->live_capacity_bytes) &&
           retained_bytes == tn_pool_retained_bytes(pool) &&
           leased_bytes == tn_counter_get(&pool->leased_bytes);
}
