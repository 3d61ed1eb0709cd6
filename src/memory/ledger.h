/* The record of one block: where it is, whose it is, and the only reference count it has. 64 bytes,
 * in chunks whose addresses never change while their owner lives, so that a count can be looked at
 * after its block has gone. A handle, a lease, a buffer and a share each hold one reference.
 *
 * Plain and foreign blocks belong to an allocator; arena blocks to an arena core, which links the
 * records of retained blocks by index. */
#ifndef TN_MEMORY_LEDGER_H
#define TN_MEMORY_LEDGER_H

#include <tenure/memory.h>

#include "base/ref_count.h"

typedef enum tn_ledger_kind {
    TN_LEDGER_UNUSED = 0,
    TN_LEDGER_PLAIN,   /* owner: tn_allocator; bytes from its page source */
    TN_LEDGER_ARENA,   /* owner: tn_arena; bytes from its allocator's page source */
    TN_LEDGER_ADOPTED, /* owner: tn_arena; bytes from elsewhere with a release callback */
    TN_LEDGER_EMPTY    /* no owner, no bytes, never counted */
} tn_ledger_kind;

typedef enum tn_ledger_state {
    TN_BLOCK_UNUSED = 0,
    TN_BLOCK_LIVE,    /* held by a handle or a buffer */
    TN_BLOCK_LEASED,  /* live and exported */
    TN_BLOCK_RETAINED /* on a free list */
} tn_ledger_state;

#define TN_RECORD_NONE UINT32_MAX
#define TN_RETURNED_SOFTENED (UINT64_C(1) << 63) /* its pages were marked as free to take */

typedef struct tn_record_links { /* indices of records, TN_RECORD_NONE ends a list */
    uint32_t lru_older;
    uint32_t lru_newer;
    uint32_t class_prev;
    uint32_t class_next;
} tn_record_links;

typedef struct tn_record_foreign {
    void (*release)(void *ctx, void *data, size_t size_bytes);
    void *ctx;
} tn_record_foreign;

struct tn_ledger {
    void *data;
    size_t capacity_bytes; /* plain: what the source gave; arena: charged capacity */
    union {
        size_t size_bytes; /* live: logical size; charged by plain blocks */
        uint64_t
            returned_at_run; /* retained: the run that gave it back, and TN_RETURNED_SOFTENED */
    } u;
    void *owner; /* borrowed; it stays while it has blocks */
    tn_ref_count refs;
    uint32_t generation; /* goes up with every return, so that stale handles show */
    union {
        tn_record_links links;     /* arena blocks, and the free list of unused records */
        tn_record_foreign foreign; /* adopted blocks */
        struct tn_ledger *next;    /* unused plain records */
        uint64_t align;            /* plain blocks */
    } link;
    uint32_t index; /* arena: of this record */
    uint16_t class_index;
    uint8_t kind;  /* tn_ledger_kind */
    uint8_t state; /* tn_ledger_state */
};

_Static_assert(sizeof(tn_ledger) == 64, "a block's record is one cache line");

/* The data of every request of zero bytes: aligned, never NULL, never read or written. */
void *tn_empty_data(void);
/* The one ledger behind all of them; retaining and releasing it does nothing. */
tn_ledger *tn_empty_ledger(void);

/* Drops one reference of `ledger`, whatever its kind; the last one gives the block back.
 * Errors: TN_DEAD when there was none. Threads: any; never allocates. */
tn_status tn_ledger_release(tn_ledger *ledger);

/* The last reference of an arena block has gone. */
void tn_arena_take_back(tn_ledger *ledger);

#endif
