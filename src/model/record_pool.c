/* A bump allocator over blocks that double up to a bound. Records are never returned one by one: a
 * model is immutable and dies whole. Large requests get a block of their own, so that the open
 * block is not given up for them. */
#include "model/record_pool.h"

#include <assert.h>

#include "base/checked_size.h"
#include "base/error.h"

#define FIRST_BLOCK_BYTES 1024
#define LAST_BLOCK_BYTES ((size_t)64 * 1024)
#define RECORD_ALIGN sizeof(uint64_t)

struct tn_record_block {
    tn_record_block *older; /* owned; NULL in the first */
    uint64_t unused;        /* keeps what follows on the 16 bytes that the allocator promises */
};

void tn_record_pool_init(tn_record_pool *pool, tn_allocator *allocator) {
    *pool = (tn_record_pool){.allocator = allocator, .block_bytes = FIRST_BLOCK_BYTES};
}

bool tn_record_pool_check(const tn_record_pool *pool) {
    return pool->allocator != NULL && (pool->next == NULL || pool->blocks != NULL) &&
           (pool->next != NULL || pool->left_bytes == 0) && pool->left_bytes < LAST_BLOCK_BYTES &&
           pool->block_bytes >= FIRST_BLOCK_BYTES && pool->block_bytes <= LAST_BLOCK_BYTES;
}

void tn_record_pool_deinit(tn_record_pool *pool) {
    tn_record_block *block = pool->blocks;
    while (block != NULL) {
        tn_record_block *older = block->older;
        tn_allocator_free(pool->allocator, block);
        block = older;
    }
    *pool = (tn_record_pool){.allocator = pool->allocator, .block_bytes = FIRST_BLOCK_BYTES};
}

/* A new block with `size_bytes` behind its head; NULL when refused. */
static uint8_t *add_block(tn_record_pool *pool, size_t size_bytes) {
    size_t total_bytes = 0;
    if (!tn_size_add(size_bytes, sizeof(tn_record_block), &total_bytes)) return NULL;
    tn_record_block *block = tn_allocator_malloc(pool->allocator, total_bytes);
    if (block == NULL) {
        pool->refused_bytes = total_bytes;
        return NULL;
    }
    *block = (tn_record_block){.older = pool->blocks};
    pool->blocks = block;
    return (uint8_t *)(block + 1);
}

static size_t bytes_to_align(const uint8_t *address, size_t align) {
    return (size_t)(-(uintptr_t)address & (align - 1));
}

void *tn_record_pool_alloc_aligned(tn_record_pool *pool, size_t size_bytes, size_t align) {
    size_t padding_bytes = pool->next == NULL ? 0 : bytes_to_align(pool->next, align);
    size_t needed_bytes = 0;
    if (!tn_size_add(size_bytes, align, &needed_bytes)) return NULL;
    if (pool->next != NULL && padding_bytes <= pool->left_bytes &&
        size_bytes <= pool->left_bytes - padding_bytes) {
        uint8_t *data = pool->next + padding_bytes;
        pool->next = data + size_bytes;
        pool->left_bytes -= padding_bytes + size_bytes;
        assert(tn_record_pool_check(pool));
        return data;
    }
    if (needed_bytes > pool->block_bytes / 4) {
        uint8_t *data = add_block(pool, needed_bytes);
        return data == NULL ? NULL : data + bytes_to_align(data, align);
    }
    uint8_t *data = add_block(pool, pool->block_bytes);
    if (data == NULL) return NULL;
    padding_bytes = bytes_to_align(data, align);
    pool->next = data + padding_bytes + size_bytes;
    pool->left_bytes = pool->block_bytes - padding_bytes - size_bytes;
    pool->block_bytes = tn_size_min(pool->block_bytes * 2, LAST_BLOCK_BYTES);
    assert(tn_record_pool_check(pool));
    return data + padding_bytes;
}

void *tn_record_pool_alloc(tn_record_pool *pool, size_t count, size_t size_bytes) {
    size_t total_bytes = 0;
    if (!tn_size_mul(count, size_bytes, &total_bytes)) return NULL;
    return tn_record_pool_alloc_aligned(pool, total_bytes, RECORD_ALIGN);
}

tn_status tn_record_refusal(tn_allocator *allocator, size_t size_bytes, tn_error *err) {
    /* asking again without memory behind it tells a limit, with its numbers, from exhaustion */
    TN_TRY(tn_allocator_charge(allocator, size_bytes, err));
    tn_allocator_discharge(allocator, size_bytes);
    (void)tn_error_set(err, TN_OUT_OF_MEMORY, "no memory for %zu bytes of model records",
                       size_bytes);
    if (err != NULL) err->requested_bytes = size_bytes;
    return TN_OUT_OF_MEMORY;
}

tn_status tn_record_pool_refusal(tn_record_pool *pool, size_t count, size_t size_bytes,
                                 tn_error *err) {
    size_t total_bytes = 0;
    TN_REQUIRE(tn_size_mul(count, size_bytes, &total_bytes), err, TN_OVERFLOW,
               "%zu records of %zu bytes are more than a size can hold", count, size_bytes);
    return tn_record_refusal(pool->allocator, tn_size_max(total_bytes, pool->refused_bytes), err);
}
