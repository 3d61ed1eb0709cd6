/* A bump allocator for records that live and die together: an intermediate form, a plan. Memory
 * comes from an allocator in chunks, so it is charged; nothing is freed alone. */
#ifndef TN_PLAN_BUMP_H
#define TN_PLAN_BUMP_H

#include <tenure/memory.h>

typedef struct tn_bump_chunk tn_bump_chunk;

/* One thread at a time. Zero-initialise, set `allocator`, then use; deinit frees all. */
typedef struct tn_bump {
    tn_allocator *allocator; /* borrowed */
    tn_bump_chunk *chunks;   /* owned, newest first */
    tn_bump_chunk *spare;    /* owned, kept by reset */
    size_t used_bytes;       /* asked for since the last reset */
} tn_bump;

/* Zeroed memory, aligned to 64 from 64 bytes on, else to 16; NULL when refused. */
void *tn_bump_get(tn_bump *bump, size_t size_bytes);

/* The same for `count` elements; NULL also when the product overflows. */
void *tn_bump_array(tn_bump *bump, size_t count, size_t size_bytes);

/* Forgets everything, keeps the chunks. */
void tn_bump_reset(tn_bump *bump);
void tn_bump_deinit(tn_bump *bump);

#endif
