/* Chunks double up to a bound, so that a small plan stays small and a large one takes few calls. */
#include "plan/bump.h"

#include <string.h>

#include "base/checked_size.h"

#define FIRST_CHUNK_BYTES ((size_t)4096)
#define LAST_CHUNK_BYTES ((size_t)256 * 1024)

struct tn_bump_chunk {
    tn_bump_chunk *next;
    size_t size_bytes; /* of data */
    size_t used_bytes;
    char *data; /* 64-byte aligned, behind this header */
};

static tn_bump_chunk *chunk_create(tn_allocator *allocator, size_t size_bytes) {
    size_t total_bytes = 0;
    if (!tn_size_add(size_bytes, sizeof(tn_bump_chunk) + 64, &total_bytes)) return NULL;
    tn_bump_chunk *chunk = tn_allocator_malloc(allocator, total_bytes);
    if (chunk == NULL) return NULL;
    chunk->next = NULL;
    chunk->size_bytes = size_bytes;
    chunk->used_bytes = 0;
    chunk->data = (char *)(((uintptr_t)(chunk + 1) + 63) & ~(uintptr_t)63);
    return chunk;
}

static void *chunk_take(tn_bump_chunk *chunk, size_t size_bytes, size_t align) {
    const size_t start = tn_align_up(chunk->used_bytes, align);
    if (start > chunk->size_bytes || chunk->size_bytes - start < size_bytes) return NULL;
    chunk->used_bytes = start + size_bytes;
    return chunk->data + start;
}

/* A spare chunk that is large enough, or a new one, becomes the first of the list. */
static tn_bump_chunk *add_chunk(tn_bump *bump, size_t size_bytes) {
    tn_bump_chunk *chunk = bump->spare;
    if (chunk != NULL && chunk->size_bytes >= size_bytes) {
        bump->spare = chunk->next;
    } else {
        size_t wanted = bump->chunks == NULL ? FIRST_CHUNK_BYTES : bump->chunks->size_bytes * 2;
        wanted = tn_size_min(wanted, LAST_CHUNK_BYTES);
        chunk = chunk_create(bump->allocator, tn_size_max(wanted, size_bytes));
        if (chunk == NULL) return NULL;
    }
    chunk->next = bump->chunks;
    bump->chunks = chunk;
    return chunk;
}

void *tn_bump_get(tn_bump *bump, size_t size_bytes) {
    const size_t align = size_bytes >= 64 ? 64 : 16;
    void *data = NULL;
    if (size_bytes > SIZE_MAX / 2) return NULL;
    if (bump->chunks != NULL) data = chunk_take(bump->chunks, size_bytes, align);
    if (data == NULL) {
        tn_bump_chunk *chunk = add_chunk(bump, size_bytes + align);
        if (chunk == NULL) return NULL;
        data = chunk_take(chunk, size_bytes, align);
    }
    bump->used_bytes += size_bytes;
    memset(data, 0, size_bytes);
    return data;
}

void *tn_bump_array(tn_bump *bump, size_t count, size_t size_bytes) {
    size_t total_bytes = 0;
    if (!tn_size_mul(count, size_bytes, &total_bytes)) return NULL;
    return tn_bump_get(bump, total_bytes);
}

void tn_bump_reset(tn_bump *bump) {
    while (bump->chunks != NULL) {
        tn_bump_chunk *chunk = bump->chunks;
        bump->chunks = chunk->next;
        chunk->used_bytes = 0;
        chunk->next = bump->spare;
        bump->spare = chunk;
    }
    bump->used_bytes = 0;
}

void tn_bump_deinit(tn_bump *bump) {
    tn_bump_reset(bump);
    while (bump->spare != NULL) {
        tn_bump_chunk *chunk = bump->spare;
        bump->spare = chunk->next;
        tn_allocator_free(bump->allocator, chunk);
    }
}
