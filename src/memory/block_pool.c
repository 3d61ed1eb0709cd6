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

#define FITS_TRIED 32
#define WASTE_BOUND_STEP_BYTES ((size_t)1 << 20)

void tn_block_pool_init(tn_block_pool *pool, uint64_t cap_bytes) {
    tn_counter_set(&pool->cap_bytes, cap_bytes);
    pool->lru_oldest = TN_RECORD_NONE;
    pool->lru_newest = TN_RECORD_NONE;
    pool->first_unused = TN_RECORD_NONE;
    for (uint32_t i = 0; i < TN_CLASS_COUNT; i++) pool->class_head[i] = TN_RECORD_NONE;
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

static void link_retained(tn_block_pool *pool, tn_ledger *record) {
    const uint32_t index = record->index;
    const uint32_t class_index = record->class_index;
    const uint32_t head = pool->class_head[class_index];
    tn_record_links *const links = &record->link.links;
    links->class_prev = TN_RECORD_NONE;
    links->class_next = head;
    if (head != TN_RECORD_NONE) tn_pool_record(pool, head)->link.links.class_prev = index;
    pool->class_head[class_index] = index;
    pool->occupied[class_index / 64] |= UINT64_C(1) << (class_index % 64);

    const uint32_t newest = pool->lru_newest;
    links->lru_newer = TN_RECORD_NONE;
    links->lru_older = newest;
    if (newest != TN_RECORD_NONE) {
        tn_pool_record(pool, newest)->link.links.lru_newer = index;
    } else {
        pool->lru_oldest = index;
    }
    pool->lru_newest = index;
}

static void unlink_retained(tn_block_pool *pool, tn_ledger *record) {
    const tn_record_links links = record->link.links;
    const uint32_t class_index = record->class_index;
    if (links.class_prev != TN_RECORD_NONE) {
        tn_pool_record(pool, links.class_prev)->link.links.class_next = links.class_next;
    } else {
        pool->class_head[class_index] = links.class_next;
        if (links.class_next == TN_RECORD_NONE) {
            pool->occupied[class_index / 64] &= ~(UINT64_C(1) << (class_index % 64));
        }
    }
    if (links.class_next != TN_RECORD_NONE) {
        tn_pool_record(pool, links.class_next)->link.links.class_prev = links.class_prev;
    }
    if (links.lru_older != TN_RECORD_NONE) {
        tn_pool_record(pool, links.lru_older)->link.links.lru_newer = links.lru_newer;
    } else {
        pool->lru_oldest = links.lru_newer;
    }
    if (links.lru_newer != TN_RECORD_NONE) {
        tn_pool_record(pool, links.lru_newer)->link.links.lru_older = links.lru_older;
    } else {
        pool->lru_newest = links.lru_older;
    }
    tn_counter_subtract(&pool->retained_bytes, record->capacity_bytes);
    tn_counter_subtract(&pool->retained_count, 1);
}

/* The largest capacity that may serve a request. */
static size_t waste_bound(size_t size_bytes) {
    if (size_bytes >= WASTE_BOUND_STEP_BYTES) return size_bytes + size_bytes / 4;
    return 2 * tn_size_max(size_bytes, TN_CLASS_UNIT_BYTES);
}

/* First class in first..last with a retained block, or TN_CLASS_COUNT. */
static uint32_t find_class(const tn_block_pool *pool, uint32_t first, uint32_t last) {
    for (uint32_t word = first / 64; word <= last / 64; word++) {
        uint64_t bits = pool->occupied[word];
        if (word == first / 64) bits &= UINT64_MAX << (first % 64);
        if (bits == 0) continue;
        const uint32_t found = word * 64 + (uint32_t)__builtin_ctzll(bits);
        return found <= last ? found : TN_CLASS_COUNT;
    }
    return TN_CLASS_COUNT;
}

/* Tightest fit among the first blocks of one class, or NULL. */
static tn_ledger *fit_in_class(const tn_block_pool *pool, uint32_t class_index, size_t size_bytes,
                               size_t bound_bytes) {
    const size_t exact_bytes = tn_block_capacity(size_bytes);
    tn_ledger *best = NULL;
    uint32_t index = pool->class_head[class_index];
    for (int tried = 0; index != TN_RECORD_NONE && tried < FITS_TRIED; tried++) {
        tn_ledger *const record = tn_pool_record(pool, index);
        index = record->link.links.class_next;
        if (record->capacity_bytes < size_bytes || record->capacity_bytes > bound_bytes) continue;
        if (best == NULL || record->capacity_bytes < best->capacity_bytes) best = record;
        if (best->capacity_bytes == exact_bytes) break;
    }
    return best;
}

static tn_ledger *find_fit(const tn_block_pool *pool, size_t size_bytes) {
    const size_t bound_bytes = waste_bound(size_bytes);
    const uint32_t last_class = tn_size_class_floor(bound_bytes);
    uint32_t class_index = tn_size_class_ceil(size_bytes);
    if (size_bytes > TN_SMALL_MAX_BYTES) {
        /* blocks of the request's own size may lie one class below the one that always fits */
        class_index = tn_size_class_floor(tn_block_capacity(size_bytes));
    }
    while ((class_index = find_class(pool, class_index, last_class)) < TN_CLASS_COUNT) {
        tn_ledger *const fit = class_index < TN_SMALL_CLASS_COUNT
                                   ? tn_pool_record(pool, pool->class_head[class_index])
                                   : fit_in_class(pool, class_index, size_bytes, bound_bytes);
        if (fit != NULL) return fit;
        class_index++;
    }
    return NULL;
}

tn_ledger *tn_block_pool_take(tn_block_pool *pool, size_t size_bytes) {
    pool->tick++;
    tn_ledger *const fit = find_fit(pool, size_bytes);
    if (fit == NULL) {
        tn_counter_add(&pool->misses, 1);
        return NULL;
    }
    unlink_retained(pool, fit);
    tn_counter_add(&pool->hits, 1);
    return fit;
}

bool tn_block_pool_take_slot(tn_block_pool *pool, uint32_t index, uint32_t generation) {
    if (!tn_pool_has_index(pool, index)) return false;
    tn_ledger *const record = tn_pool_record(pool, index);
    if (record->generation != generation || record->state != TN_BLOCK_RETAINED) return false;
    pool->tick++;
    unlink_retained(pool, record);
    tn_counter_add(&pool->hits, 1);
    return true;
}

void tn_block_pool_set_live(tn_block_pool *pool, tn_ledger *record, size_t size_bytes) {
    record->u.size_bytes = size_bytes;
    record->state = TN_BLOCK_LIVE;
    pool->class_used_at[record->class_index] = pool->tick;
    if (record->kind == TN_LEDGER_ARENA && record->capacity_bytes > pool->largest_capacity_bytes) {
        pool->largest_capacity_bytes = record->capacity_bytes;
    }
    tn_counter_add(&pool->live_count, 1);
    tn_counter_add(&pool->live_bytes, size_bytes);
    tn_counter_add(&pool->live_capacity_bytes, record->capacity_bytes);
    tn_counter_raise(&pool->live_peak_bytes, tn_counter_get(&pool->live_bytes));
    tn_counter_raise(&pool->live_capacity_peak_bytes, tn_counter_get(&pool->live_capacity_bytes));
}

void tn_block_pool_unset_live(tn_block_pool *pool, tn_ledger *record) {
    if (record->state == TN_BLOCK_LEASED) {
        tn_counter_subtract(&pool->leased_count, 1);
        tn_counter_subtract(&pool->leased_bytes, record->u.size_bytes);
    }
    tn_counter_subtract(&pool->live_count, 1);
    tn_counter_subtract(&pool->live_bytes, record->u.size_bytes);
    tn_counter_subtract(&pool->live_capacity_bytes, record->capacity_bytes);
    record->generation++;
}

void tn_block_pool_discard(tn_block_pool *pool, tn_ledger *record, bool is_eviction,
                           tn_pool_chain *inout_chain) {
    record->state = TN_BLOCK_UNUSED;
    record->link.links.class_next = inout_chain->first;
    inout_chain->first = record->index;
    inout_chain->size_bytes += record->capacity_bytes;
    tn_counter_add(&pool->sys_frees, 1);
    if (is_eviction) tn_counter_add(&pool->evictions, 1);
}

static void evict(tn_block_pool *pool, tn_ledger *record, bool is_eviction,
                  tn_pool_chain *inout_chain) {
    unlink_retained(pool, record);
    tn_block_pool_discard(pool, record, is_eviction, inout_chain);
}

void tn_block_pool_shrink(tn_block_pool *pool, uint64_t target_bytes, bool is_eviction,
                          tn_pool_chain *inout_chain) {
    while (pool->lru_oldest != TN_RECORD_NONE &&
           tn_counter_get(&pool->retained_bytes) > target_bytes) {
        evict(pool, tn_pool_record(pool, pool->lru_oldest), is_eviction, inout_chain);
    }
}

void tn_block_pool_drop_slot(tn_block_pool *pool, uint32_t index, uint32_t generation,
                             tn_pool_chain *inout_chain) {
    if (!tn_pool_has_index(pool, index)) return;
    tn_ledger *const record = tn_pool_record(pool, index);
    if (record->generation != generation || record->state != TN_BLOCK_RETAINED) return;
    evict(pool, record, true, inout_chain);
}

void tn_block_pool_put(tn_block_pool *pool, tn_ledger *record, tn_pool_chain *inout_chain) {
    const uint64_t cap_bytes = tn_counter_get(&pool->cap_bytes);
    if (record->capacity_bytes > cap_bytes) {
        /* it can never be kept; what is kept shall not suffer for it */
        tn_block_pool_discard(pool, record, true, inout_chain);
        return;
    }
    record->state = TN_BLOCK_RETAINED;
    record->u.returned_at_run = tn_counter_get(&pool->run_count);
    link_retained(pool, record);
    tn_counter_add(&pool->retained_count, 1);
    tn_counter_add(&pool->retained_bytes, record->capacity_bytes);
    if (tn_counter_get(&pool->retained_bytes) > cap_bytes) {
        tn_block_pool_shrink(pool, cap_bytes, true, inout_chain);
    }
    tn_counter_raise(&pool->retained_peak_bytes, tn_counter_get(&pool->retained_bytes));
}

static void release_idle_classes(tn_block_pool *pool, uint32_t below_class,
                                 tn_pool_chain *inout_chain) {
    uint32_t class_index = 0;
    if (below_class == 0) return;
    while ((class_index = find_class(pool, class_index, below_class - 1)) < TN_CLASS_COUNT) {
        const uint64_t age = pool->tick - pool->class_used_at[class_index];
        while (age > TN_POOL_RECENT_ALLOCATIONS &&
               pool->class_head[class_index] != TN_RECORD_NONE) {
            evict(pool, tn_pool_record(pool, pool->class_head[class_index]), true, inout_chain);
        }
        class_index++;
    }
}

void tn_block_pool_replace_undersized(tn_block_pool *pool, size_t capacity_bytes,
                                      tn_pool_chain *inout_chain) {
    if (pool->lru_oldest == TN_RECORD_NONE) return;
    release_idle_classes(pool, tn_size_class_floor(capacity_bytes), inout_chain);
    if (capacity_bytes <= pool->largest_capacity_bytes) return;
    /* larger than all before it: every retained block is too small */
    const uint64_t live_bytes = tn_counter_get(&pool->live_capacity_bytes);
    const uint64_t target_bytes = live_bytes < capacity_bytes ? capacity_bytes - live_bytes : 0;
    tn_block_pool_shrink(pool, target_bytes, true, inout_chain);
}

void tn_block_pool_expire(tn_block_pool *pool, uint32_t window_runs, tn_pool_chain *inout_chain) {
    while (pool->lru_oldest != TN_RECORD_NONE) {
        tn_ledger *const oldest = tn_pool_record(pool, pool->lru_oldest);
        const uint64_t returned_at_run = oldest->u.returned_at_run & ~TN_RETURNED_SOFTENED;
        if (returned_at_run + window_runs > tn_counter_get(&pool->run_count)) return;
        evict(pool, oldest, true, inout_chain);
    }
}

/* Walks the list of one class; false when a link or a record is wrong. */
static bool check_class(const tn_block_pool *pool, uint32_t class_index, uint64_t *inout_count) {
    uint32_t before = TN_RECORD_NONE;
    uint32_t index = pool->class_head[class_index];
    const bool is_marked = (pool->occupied[class_index / 64] >> (class_index % 64) & 1) != 0;
    if (is_marked != (index != TN_RECORD_NONE)) return false;
    while (index != TN_RECORD_NONE) {
        if (!tn_pool_has_index(pool, index)) return false;
        const tn_ledger *const record = tn_pool_record(pool, index);
        if (record->link.links.class_prev != before || record->state != TN_BLOCK_RETAINED) {
            return false;
        }
        if (record->class_index != class_index || tn_ref_count_get(&record->refs) != 0)
            return false;
        before = index;
        index = record->link.links.class_next;
        (*inout_count)++;
    }
    return true;
}

static bool check_lru(const tn_block_pool *pool, uint64_t expected_count) {
    uint64_t count = 0;
    uint32_t before = TN_RECORD_NONE;
    uint32_t index = pool->lru_oldest;
    while (index != TN_RECORD_NONE) {
        const tn_ledger *const record = tn_pool_record(pool, index);
        if (record->link.links.lru_older != before) return false;
        before = index;
        index = record->link.links.lru_newer;
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
    return check_lru(pool, listed_count) && listed_count == tn_counter_get(&pool->retained_count) &&
           live_bytes == tn_counter_get(&pool->live_bytes) &&
           live_capacity_bytes == tn_counter_get(&pool->live_capacity_bytes) &&
           retained_bytes == tn_counter_get(&pool->retained_bytes) &&
           leased_bytes == tn_counter_get(&pool->leased_bytes);
}
