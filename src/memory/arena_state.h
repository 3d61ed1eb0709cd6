/* The state of an arena of either kind. It lives until the arena has no owner any more and its last
 * live block has come back.
 *
 * An I/O arena is entered through its lock. An execution arena is entered by claiming it: one word
 * says whether it is idle, claimed for one operation (its owner's, or a trim from elsewhere), or in
 * a run. In a run its owner enters for free; nobody else can. No lock or claim is held while the
 * tree or the page source is asked for anything, so that a reclaim may come back to this arena. */
#ifndef TN_MEMORY_ARENA_STATE_H
#define TN_MEMORY_ARENA_STATE_H

#include <tenure/arena.h>

#include "base/event_stream.h"
#include "memory/block_pool.h"
#include "memory/tree.h"

typedef enum tn_claim { TN_CLAIM_IDLE, TN_CLAIM_TAKEN, TN_CLAIM_RUN } tn_claim;

struct tn_arena {
    bool is_shared; /* an I/O arena */
    bool is_in_run; /* execution arena: read and written by its owner only */
    bool is_adaptive;
    bool is_closed;                /* no new blocks */
    bool is_orphaned;              /* no owner; dies with the last block */
    tn_lock lock;                  /* shared arenas only */
    _Atomic uint32_t claim;        /* execution arenas only: tn_claim */
    _Atomic uint32_t trim_request; /* level + 1 of a trim that came during a run; 0: none */
    _Atomic uintptr_t run_thread;  /* pthread_self of the run's owner */
    const tn_fault_injector *fault;
    struct tn_event_stream *events; /* borrowed, may be NULL */
    uint32_t number;                /* among the arenas of its tree, from 1 */
    uint32_t window_runs;
    uint32_t return_count;   /* returns that have left but still give blocks up */
    uint32_t owner_count;    /* references of an I/O arena */
    tn_allocator *allocator; /* one reference */
    size_t state_bytes;      /* of the allocation this is the head of */
    tn_block_pool pool;
    tn_reclaimer reclaimer;
    tn_slab *slab;               /* borrowed; an execution arena's own, ended with its runs */
    _Atomic uint64_t slab_bytes; /* capacity of the slab, for figures */
};

/* `state_bytes` may be more than sizeof(tn_arena): the caller's struct begins with it. */
tn_status tn_arena_state_create(tn_allocator *allocator, const tn_arena_options *options,
                                bool is_shared, size_t state_bytes, void **out, tn_error *err);
/* No new blocks, nothing retained from now on; what is live stays. */
void tn_arena_state_close(tn_arena *arena);
/* Ends the owner's use: trims, cap 0, no new blocks; frees the state now or with its last block. */
void tn_arena_state_orphan(tn_arena *arena);

/* Puts the live block of a handle back and empties the handle. `discard` sends it to the page
 * source. Errors: TN_DEAD, TN_BUSY (exported). */
tn_status tn_arena_return(tn_arena *arena, tn_allocation_handle *handle, bool discard);

/* Makes a given retained block live again, if it is still there, without the waste bound. */
bool tn_arena_revive(tn_arena *arena, tn_ledger *block, uint32_t generation, size_t size_bytes,
                     tn_allocation_handle *out);
/* Sends a given retained block to the page source, if it is still there. */
void tn_arena_drop_retained(tn_arena *arena, tn_ledger *block, uint32_t generation);
/* Changes the logical size of a live block within its capacity. */
void tn_arena_resize_live(tn_arena *arena, tn_allocation_handle *handle, size_t size_bytes);

void tn_arena_enter(tn_arena *arena);
void tn_arena_leave(tn_arena *arena);
/* Gives the blocks of a chain to the page source, then their records back. Not entered. */
void tn_arena_give_chain(tn_arena *arena, const tn_pool_chain *chain);
/* The same, entered. */
void tn_arena_give_chain_entered(tn_arena *arena, const tn_pool_chain *chain);
/* The record of a live handle, or NULL. Entered. */
tn_ledger *tn_arena_find(tn_arena *arena, const tn_allocation_handle *handle);
/* An unused record, growing the records if need be; NULL: out of memory. Not entered. */
tn_ledger *tn_arena_take_record(tn_arena *arena);
void tn_arena_give_record(tn_arena *arena, tn_ledger *record);
/* `size_bytes` is the record's: given apart, because reading it back from the record right after it
 * was written there costs as much as the rest of a hit. */
void tn_arena_fill_handle(tn_arena *arena, const tn_ledger *record, size_t size_bytes,
                          tn_allocation_handle *out);

/* Records an event of a block; `events` is not NULL. */
void tn_arena_note(tn_arena *arena, tn_event_kind kind, const tn_ledger *record, size_t size_bytes);

/* Checks lists and counters; for assertions and tests. Entered. */
bool tn_arena_check(const tn_arena *arena);

#endif
