/* Free lists by size class over the records of an arena's blocks: which retained block serves a
 * request, and which goes when room is needed. A data structure only: no lock, no system call, no
 * charge; its owner does those around it.
 *
 * Cost: taking and putting back are O(1) however many blocks are retained. */
#ifndef TN_MEMORY_BLOCK_POOL_H
#define TN_MEMORY_BLOCK_POOL_H

#include <stdatomic.h>

#include "memory/ledger.h"
#include "memory/size_class.h"

#define TN_POOL_BITMAP_WORDS (TN_CLASS_COUNT / 64)
#define TN_POOL_CHUNK_MAX 26 /* chunk k has 64 << k records: over four billion in all */
#define TN_POOL_FIRST_CHUNK_RECORDS 64
#define TN_POOL_RECENT_ALLOCATIONS 16

/* Written by the arena's owner alone (or under its lock), read by anybody. */
typedef _Atomic uint64_t tn_pool_counter;

typedef struct tn_block_pool {
    uint64_t occupied[TN_POOL_BITMAP_WORDS]; /* classes that may have a retained block */
    uint64_t tick;                           /* requests so far */
    tn_ledger *lru_oldest;
    tn_ledger *lru_newest;
    uint32_t first_unused; /* list of unused records through class_next */
    uint32_t chunk_count;
    uint64_t largest_capacity_bytes; /* of any block made since nothing was left */
    tn_pool_counter cap_bytes;
    tn_pool_counter run_count;
    tn_pool_counter live_bytes;
    tn_pool_counter live_capacity_bytes;
    tn_pool_counter total_bytes; /* capacity of all blocks: live, retained and adopted */
    tn_pool_counter leased_bytes;
    tn_pool_counter live_peak_bytes;
    tn_pool_counter live_capacity_peak_bytes;
    tn_pool_counter retained_peak_bytes;
    tn_pool_counter live_count; /* leased ones included */
    tn_pool_counter leased_count;
    tn_pool_counter total_count;
    tn_pool_counter hits;
    tn_pool_counter misses;
    tn_pool_counter sys_allocs;
    tn_pool_counter sys_frees;
    tn_pool_counter evictions;
    tn_pool_counter copies;
    tn_pool_counter copied_bytes;
    tn_pool_counter adopted;
    tn_ledger *chunks[TN_POOL_CHUNK_MAX]; /* owned by the arena */
    tn_ledger *class_head[TN_CLASS_COUNT];
    uint64_t class_used_at[TN_CLASS_COUNT]; /* tick of the last block taken from or made for it */
} tn_block_pool;

static inline uint64_t tn_counter_get(const tn_pool_counter *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* relaxed, and no read-modify-write: there is one writer, others only look */
static inline void tn_counter_add(tn_pool_counter *counter, uint64_t amount) {
    atomic_store_explicit(counter, tn_counter_get(counter) + amount, memory_order_relaxed);
}

static inline void tn_counter_subtract(tn_pool_counter *counter, uint64_t amount) {
    atomic_store_explicit(counter, tn_counter_get(counter) - amount, memory_order_relaxed);
}

static inline void tn_counter_set(tn_pool_counter *counter, uint64_t value) {
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* What is retained is not counted but follows: a hit or a return then changes one figure less. */
static inline uint64_t tn_pool_retained_bytes(const tn_block_pool *pool) {
    return tn_counter_get(&pool->total_bytes) - tn_counter_get(&pool->live_capacity_bytes);
}

static inline uint64_t tn_pool_retained_count(const tn_block_pool *pool) {
    return tn_counter_get(&pool->total_count) - tn_counter_get(&pool->live_count);
}

static inline void tn_counter_raise(tn_pool_counter *peak, uint64_t value) {
    if (value > tn_counter_get(peak)) atomic_store_explicit(peak, value, memory_order_relaxed);
}

/* Chunk k begins at index 64 * (2^k - 1). */
static inline tn_ledger *tn_pool_record(const tn_block_pool *pool, uint32_t index) {
    const uint64_t shifted = (uint64_t)index + TN_POOL_FIRST_CHUNK_RECORDS;
    const uint32_t chunk = tn_log2_floor(shifted) - 6;
    return &pool->chunks[chunk][shifted - ((uint64_t)TN_POOL_FIRST_CHUNK_RECORDS << chunk)];
}

static inline bool tn_pool_has_index(const tn_block_pool *pool, uint32_t index) {
    const uint64_t count = TN_POOL_FIRST_CHUNK_RECORDS * ((UINT64_C(1) << pool->chunk_count) - 1);
    return index < count;
}

/* A chain of records that have left the pool and whose blocks go back to the page source. */
typedef struct tn_pool_chain {
    uint32_t first; /* through class_next */
    uint64_t size_bytes;
} tn_pool_chain;

#define TN_POOL_CHAIN_EMPTY ((tn_pool_chain){.first = TN_RECORD_NONE})

void tn_block_pool_init(tn_block_pool *pool, uint64_t cap_bytes);

/* Records of the next chunk, and its installation; the memory is zeroed and the arena's to free. */
uint32_t tn_block_pool_next_chunk_records(const tn_block_pool *pool);
void tn_block_pool_add_chunk(tn_block_pool *pool, tn_ledger *records);
static inline bool tn_block_pool_has_unused(const tn_block_pool *pool) {
    return pool->first_unused != TN_RECORD_NONE;
}
tn_ledger *tn_block_pool_pop_unused(tn_block_pool *pool);
/* Makes every handle on the record stale. */
void tn_block_pool_push_unused(tn_block_pool *pool, tn_ledger *record);

/* The smallest retained block that fits `size_bytes` within the waste bound, still on its lists;
 * NULL: none. */
tn_ledger *tn_block_pool_find(tn_block_pool *pool, size_t size_bytes);
/* Takes one given retained block; false when it is not there any more. */
bool tn_block_pool_take_given(tn_block_pool *pool, tn_ledger *record, uint32_t generation);

/* Sends one given retained block to the page source, if it is still there. */
void tn_block_pool_drop_given(tn_block_pool *pool, tn_ledger *record, uint32_t generation,
                              tn_pool_chain *inout_chain);

/* Before a new block of `capacity_bytes` is made: releases blocks that were too small. */
void tn_block_pool_replace_undersized(tn_block_pool *pool, size_t capacity_bytes,
                                      tn_pool_chain *inout_chain);
/* Sends a block that is on no list to the page source. */
void tn_block_pool_discard(tn_block_pool *pool, tn_ledger *record, bool is_eviction,
                           tn_pool_chain *inout_chain);

/* Releases least recently returned blocks until `retained <= target_bytes`. */
void tn_block_pool_shrink(tn_block_pool *pool, uint64_t target_bytes, bool is_eviction,
                          tn_pool_chain *inout_chain);
/* Releases blocks that no run of the last `window_runs` returned. */
void tn_block_pool_expire(tn_block_pool *pool, uint32_t window_runs, tn_pool_chain *inout_chain);

/* Checks every list and counter against the records. Cost: O(records). */
bool tn_block_pool_check(const tn_block_pool *pool);

#endif
