/* Memory for the many small records of one model: given out front to back from few blocks, all
 * returned at once.
 *
 * Ownership: what it hands out lives until tn_record_pool_deinit.
 * Threads:   one thread at a time. */
#ifndef TN_MODEL_RECORD_POOL_H
#define TN_MODEL_RECORD_POOL_H

#include <tenure/memory.h>

typedef struct tn_record_block tn_record_block;

typedef struct tn_record_pool {
    tn_allocator *allocator; /* borrowed from the caller of init */
    tn_record_block *blocks; /* owned, newest first */
    uint8_t *next;           /* first free byte of the open block; NULL before the first request */
    size_t left_bytes;       /* free bytes behind next */
    size_t block_bytes;      /* size of the next block to open */
    size_t refused_bytes;    /* of the last block that the allocator refused */
} tn_record_pool;

/* Prepares an empty pool over `allocator`, which it borrows; takes no memory yet. */
void tn_record_pool_init(tn_record_pool *pool, tn_allocator *allocator);

/* True when the pool's fields agree with each other. */
bool tn_record_pool_check(const tn_record_pool *pool);

/* Returns every block. Accepts a zeroed pool. */
void tn_record_pool_deinit(tn_record_pool *pool);

/* Gives `count` uninitialised records of `size_bytes` each, aligned for any record; NULL when the
 * product overflows or the allocator refuses. A count of 0 gives an address that holds nothing. */
void *tn_record_pool_alloc(tn_record_pool *pool, size_t count, size_t size_bytes);

/* The same for payload of `size_bytes`, aligned to `align`, a power of two. */
void *tn_record_pool_alloc_aligned(tn_record_pool *pool, size_t size_bytes, size_t align);

/* Writes why `allocator` gave NULL for `size_bytes`, and returns it: TN_LIMIT with the allocator
 * that refused, or TN_OUT_OF_MEMORY. */
tn_status tn_record_refusal(tn_allocator *allocator, size_t size_bytes, tn_error *err);

/* Writes why a request for `count` records of `size_bytes` got NULL, and returns it: TN_OVERFLOW,
 * TN_LIMIT with the refusing allocator, or TN_OUT_OF_MEMORY. */
tn_status tn_record_pool_refusal(tn_record_pool *pool, size_t count, size_t size_bytes,
                                 tn_error *err);

#endif
