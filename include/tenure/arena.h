/* Arenas: memory that one run gives back and the next one takes again.
 *
 * An execution arena serves intermediates and workspaces of one context, an I/O arena graph outputs
 * and owned input staging. Both keep what is returned (up to a cap) on free lists by size class and
 * hand it out again only for requests of about its size: capacity <= 2 x request below 1 MiB,
 * <= 1.25 x request from there on. On a hit nothing is allocated, charged or asked of the system.
 *
 * Words:     live      held by a handle, a buffer or a lease (logical bytes)
 *            leased    the exported part of live
 *            retained  capacity of free blocks kept for reuse; never part of live
 * Ownership: a handle is a movable value with the first reference of its block and is returned
 *            exactly once. A lease is shared by count. Both keep the arena's state (not the arena)
 *            alive: an arena may be destroyed or released before them.
 * Charges:   an arena charges its allocator for the capacity of every block, live or retained.
 * Threads:   an execution arena is used by one thread at a time; a trim or a reclaim may come from
 *            any thread. An I/O arena and leases are safe from any thread. A handle belongs to one
 *            thread at a time. */
#ifndef TENURE_ARENA_H
#define TENURE_ARENA_H

#include <tenure/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Either arena, where a caller does not care which (single-arena mode). */
typedef struct tn_arena tn_arena;
typedef struct tn_execution_arena tn_execution_arena;
typedef struct tn_io_arena tn_io_arena;
typedef struct tn_io_lease tn_io_lease;
struct tn_event_stream;

#define TN_RETENTION_UNLIMITED UINT64_MAX
#define TN_RETENTION_WINDOW_RUNS 16

/* Zero is the default everywhere. */
typedef struct tn_arena_options {
    size_t struct_size;
    bool has_retention_cap;         /* false: no cap, retention_cap_bytes is not read */
    uint64_t retention_cap_bytes;   /* 0 keeps nothing */
    bool is_adaptive;               /* blocks that no run of the window used are given back */
    uint32_t window_runs;           /* of adaptive retention and the slab; 0: 16 */
    struct tn_event_stream *events; /* borrowed, may be NULL; must outlive the arena's state */
} tn_arena_options;

/* One live block, by value. Zero is the empty handle. Copying it by hand makes two handles for one
 * block, of which the second to be used gets TN_DEAD while the arena's state lives (it may end with
 * its last block): move handles with tn_allocation_handle_move. */
typedef struct tn_allocation_handle {
    void *data;            /* aligned to TN_BUFFER_ALIGNMENT; never NULL while the handle is live */
    size_t size_bytes;     /* as requested; nothing behind it may be touched */
    size_t capacity_bytes; /* what the block could hold; 0 for a request of 0 bytes */
    tn_arena *arena;       /* borrowed; its state lives at least as long as this handle */
    tn_ledger *block;      /* its record; NULL for a request of 0 bytes */
    uint32_t generation;   /* of the record when the block was handed out */
} tn_allocation_handle;

/* Figures of one arena. Units: bytes and counts. */
typedef struct tn_arena_stats {
    size_t struct_size;
    uint64_t live_bytes;
    uint64_t live_capacity_bytes;
    uint64_t leased_bytes; /* part of live_bytes */
    uint64_t retained_bytes;
    uint64_t live_peak_bytes;
    uint64_t live_capacity_peak_bytes;
    uint64_t retained_peak_bytes;
    uint64_t allocated_count; /* live and not leased */
    uint64_t leased_count;
    uint64_t retained_count;
    uint64_t hits;         /* requests served from a free list */
    uint64_t misses;       /* requests that needed the page source */
    uint64_t sys_allocs;   /* blocks got from the page source */
    uint64_t sys_frees;    /* blocks given back to it */
    uint64_t evictions;    /* part of sys_frees: the cap, the window or a miss asked for it */
    uint64_t copies;       /* payload copies that the user of the arena reported */
    uint64_t copied_bytes; /* of those */
    uint64_t adopted;      /* foreign blocks taken in without a copy */
    uint64_t slab_bytes;   /* capacity of the slab, live or retained; 0: none */
    uint64_t run_count;
    uint64_t retention_cap_bytes; /* TN_RETENTION_UNLIMITED: none */
    bool is_adaptive;
} tn_arena_stats;

/* ---- handles ---- */

/* Returns the block to its arena and empties `handle`; never allocates.
 * Errors:  TN_DEAD when the handle is empty or its block was returned before; nothing changes.
 * Threads: the arena's rule. */
TN_API tn_status tn_allocation_handle_reset(tn_allocation_handle *handle);

/* Gives up the handle without returning the block: its reference passes to a buffer, whose last
 * release returns the block.
 * Ownership: *handle is emptied; *out holds one reference.
 * Errors:    TN_DEAD; *handle and *out are unchanged then. */
TN_API TN_MUST_USE tn_status tn_allocation_handle_release(tn_allocation_handle *handle,
                                                          tn_buffer *out, tn_error *err);

/* Moves `from` into the empty `to`. Errors: TN_BUSY when `to` is live: it would leak. */
TN_API TN_MUST_USE tn_status tn_allocation_handle_move(tn_allocation_handle *to,
                                                       tn_allocation_handle *from, tn_error *err);

/* False for an empty handle and for NULL. */
TN_API bool tn_allocation_handle_is_live(const tn_allocation_handle *handle);

/* ---- what both arenas can do ---- */

/* Gets a block of at least `size_bytes`, contents undefined. Zero bytes take no block.
 * Ownership: *out is live; return it with tn_allocation_handle_reset.
 * Errors:    TN_LIMIT after everything retained below the refusing allocator was given back,
 *            TN_OUT_OF_MEMORY, TN_CLOSED. *out is empty then. */
TN_API TN_MUST_USE tn_status tn_arena_allocate(tn_arena *arena, size_t size_bytes,
                                               tn_allocation_handle *out, tn_error *err);
/* As tn_allocation_handle_reset, but only into `arena`. Errors: TN_INVALID_ARGUMENT when the block
 * is another arena's; TN_DEAD. Both arenas and the handle are unchanged then. */
TN_API TN_MUST_USE tn_status tn_arena_free(tn_arena *arena, tn_allocation_handle *handle,
                                           tn_error *err);
/* Gives back retained blocks: hard to the page source, soft marks their pages as free to take and
 * keeps the blocks. Live and leased blocks are not touched. Returns the bytes; 0 the second time.
 * Threads: any; while a run is going on in an execution arena it happens at that run's end and
 * the answer is 0. */
TN_API size_t tn_arena_trim(tn_arena *arena, tn_trim_level level);
/* Gives back least recently used retained blocks until at most `target_bytes` are retained.
 * Returns the bytes. Threads: as tn_arena_trim. */
TN_API size_t tn_arena_shrink(tn_arena *arena, uint64_t target_bytes);
/* Returns the bytes evicted at once. Threads: the arena's rule. */
TN_API size_t tn_arena_set_retention_cap(tn_arena *arena, uint64_t cap_bytes);
/* TN_RETENTION_UNLIMITED: none. Threads: any. */
TN_API uint64_t tn_arena_retention_cap(const tn_arena *arena);
/* Sets the peaks to what is live and retained now. Threads: the arena's rule. */
TN_API void tn_arena_reset_peak(tn_arena *arena);
/* Writes at most out->struct_size bytes (0: the whole struct). Threads: any. */
TN_API void tn_arena_get_stats(const tn_arena *arena, tn_arena_stats *out);
/* Counts one payload copy that could not be avoided. Threads: the arena's rule. */
TN_API void tn_arena_count_copy(tn_arena *arena, size_t size_bytes);
/* Begins a run: an execution arena then takes no lock until its end, and belongs to the calling
 * thread. Runs of an I/O arena may overlap.
 * Errors: TN_BUSY when an execution arena is in a run already; nothing changes. */
TN_API TN_MUST_USE tn_status tn_arena_begin_run(tn_arena *arena, tn_error *err);
/* Ends it: an execution arena gives its slab back and honours trims that came meanwhile; blocks
 * that the window did not use go. */
TN_API void tn_arena_end_run(tn_arena *arena);
/* Lends the allocator that the arena charges; borrowed from `arena`. */
TN_API tn_allocator *tn_arena_allocator(const tn_arena *arena);

/* ---- execution arena ---- */

/* Makes an arena that charges `allocator`.
 * Ownership: *out is new, one owner; destroy it with tn_execution_arena_destroy. It keeps
 *            `allocator` alive.
 * Errors:    TN_INVALID_ARGUMENT, TN_LIMIT, TN_OUT_OF_MEMORY, TN_CLOSED. */
TN_API TN_MUST_USE tn_status tn_execution_arena_create(tn_allocator *allocator,
                                                       const tn_arena_options *options,
                                                       tn_execution_arena **out, tn_error *err);
/* Gives retained blocks back; blocks still live go to the page source when they are returned.
 * Accepts NULL. */
TN_API void tn_execution_arena_destroy(tn_execution_arena *arena);
/* The same object under its common name; borrowed. */
TN_API tn_arena *tn_execution_arena_as_arena(tn_execution_arena *arena);
/* The calls of the same name of tn_arena. */
TN_API TN_MUST_USE tn_status tn_execution_arena_allocate(tn_execution_arena *arena,
                                                         size_t size_bytes,
                                                         tn_allocation_handle *out, tn_error *err);
TN_API size_t tn_execution_arena_trim(tn_execution_arena *arena, tn_trim_level level);
TN_API size_t tn_execution_arena_shrink(tn_execution_arena *arena, uint64_t target_bytes);
TN_API size_t tn_execution_arena_set_retention_cap(tn_execution_arena *arena, uint64_t cap_bytes);
TN_API void tn_execution_arena_reset_peak(tn_execution_arena *arena);
TN_API void tn_execution_arena_get_stats(const tn_execution_arena *arena, tn_arena_stats *out);
TN_API TN_MUST_USE tn_status tn_execution_arena_begin_run(tn_execution_arena *arena, tn_error *err);
TN_API void tn_execution_arena_end_run(tn_execution_arena *arena);
/* tn_slab_reserve on the arena's own slab; end_run gives it back. */
TN_API TN_MUST_USE tn_status tn_execution_arena_reserve_slab(tn_execution_arena *arena,
                                                             size_t size_bytes, void **out_base,
                                                             tn_error *err);

/* ---- slab ---- */

#define TN_SLAB_WINDOW_MAX 64

/* The one block in which a plan places all values of known size. Not bound by the waste bound: it
 * is as large as the largest plan of its window, smaller plans use its prefix. Live during a run
 * with the plan's bytes as logical size; between runs a retained block of its arena, subject to
 * cap, trim and reclaim like any other. Fields are private. */
typedef struct tn_slab {
    tn_arena *arena;             /* borrowed */
    tn_allocation_handle handle; /* live during a run, empty between runs */
    tn_ledger *retained_block;   /* waits among the retained ones between runs; NULL: none */
    uint32_t retained_generation;
    size_t retained_capacity_bytes;
    size_t shrunk_to_bytes; /* what the next block should have; 0: what is asked */
    uint32_t window_runs;
    uint32_t run_index;
    size_t window_bytes[TN_SLAB_WINDOW_MAX]; /* largest reserve of the last runs */
} tn_slab;

/* Prepares a slab over `arena`, without memory yet. `window_runs` 0: the arena's; at most
 * TN_SLAB_WINDOW_MAX. */
TN_API void tn_slab_init(tn_slab *slab, tn_arena *arena, uint32_t window_runs);
/* Makes `size_bytes` live and lends the base, from the page source `system` aligned to a page
 * from 64 KiB and to 2 MiB from 2 MiB on; contents undefined. A second call in one run may ask for
 * less or the same. Ownership: *out_base is borrowed until tn_slab_end_run. Errors:    TN_BUSY when
 * the run already has a smaller slab; those of tn_arena_allocate. */
TN_API TN_MUST_USE tn_status tn_slab_reserve(tn_slab *slab, size_t size_bytes, void **out_base,
                                             tn_error *err);
/* Gives the slab back to its arena's free list; shrinks it at most once per window. */
TN_API void tn_slab_end_run(tn_slab *slab);
/* Gives up whatever the slab holds. */
TN_API void tn_slab_deinit(tn_slab *slab);

/* ---- I/O arena ---- */

/* Makes an arena that charges `allocator`.
 * Ownership: *out is new and holds one reference; release it with tn_io_arena_release. The last
 *            release trims it and sets its cap to 0; its state, and with it the allocator (named
 *            and charged), dies with the last lease or handle.
 * Errors:    TN_INVALID_ARGUMENT, TN_LIMIT, TN_OUT_OF_MEMORY, TN_CLOSED. */
TN_API TN_MUST_USE tn_status tn_io_arena_create(tn_allocator *allocator,
                                                const tn_arena_options *options, tn_io_arena **out,
                                                tn_error *err);
/* Adds a reference and returns `arena`. Accepts NULL. Threads: any. */
TN_API tn_io_arena *tn_io_arena_retain(tn_io_arena *arena);
/* Drops a reference; see tn_io_arena_create. Accepts NULL. Threads: any. */
TN_API void tn_io_arena_release(tn_io_arena *arena);
/* What the last release does, while other references remain: no new blocks (TN_CLOSED), nothing
 * retained from now on. */
TN_API void tn_io_arena_close(tn_io_arena *arena);
/* The same object under its common name; borrowed. */
TN_API tn_arena *tn_io_arena_as_arena(tn_io_arena *arena);
/* The calls of the same name of tn_arena. */
TN_API TN_MUST_USE tn_status tn_io_arena_allocate(tn_io_arena *arena, size_t size_bytes,
                                                  tn_allocation_handle *out, tn_error *err);
TN_API size_t tn_io_arena_trim(tn_io_arena *arena, tn_trim_level level);
TN_API size_t tn_io_arena_shrink(tn_io_arena *arena, uint64_t target_bytes);
TN_API size_t tn_io_arena_set_retention_cap(tn_io_arena *arena, uint64_t cap_bytes);
TN_API void tn_io_arena_reset_peak(tn_io_arena *arena);
TN_API void tn_io_arena_get_stats(const tn_io_arena *arena, tn_arena_stats *out);
TN_API void tn_io_arena_begin_run(tn_io_arena *arena);
TN_API void tn_io_arena_end_run(tn_io_arena *arena);

/* Takes in memory that comes from elsewhere, without a copy. It is live, counted as adopted,
 * charged with its size, and never on a free list: when the last owner lets go, `release` is called
 * once, in that owner's thread. Errors: TN_INVALID_ARGUMENT (NULL data or release), TN_LIMIT,
 * TN_OUT_OF_MEMORY, TN_CLOSED; the caller keeps the memory then. */
typedef struct tn_foreign_memory {
    void *data;
    size_t size_bytes;
    void (*release)(void *ctx, void *data, size_t size_bytes);
    void *ctx;
} tn_foreign_memory;
TN_API TN_MUST_USE tn_status tn_io_arena_adopt(tn_io_arena *arena, const tn_foreign_memory *foreign,
                                               tn_allocation_handle *out, tn_error *err);

/* ---- leases ---- */

/* Turns a live block into a lease, address unchanged, nothing copied or allocated.
 * Ownership: on success the handle is emptied and *out holds one reference; release it with
 *            tn_io_lease_release.
 * Errors:    TN_INVALID_ARGUMENT when the block is another arena's, TN_DEAD, TN_BUSY when it is
 *            exported already. The handle is unchanged then. */
TN_API TN_MUST_USE tn_status tn_io_arena_export(tn_io_arena *arena, tn_allocation_handle *handle,
                                                tn_io_lease **out, tn_error *err);
/* Adds a reference and returns `lease`. Threads: any. */
TN_API tn_io_lease *tn_io_lease_retain(tn_io_lease *lease);
/* Drops a reference; the last one returns the block to its arena. Accepts NULL. Never allocates.
 * Threads: any. */
TN_API void tn_io_lease_release(tn_io_lease *lease);
/* Lends the leased bytes; valid while `lease` has a reference. Never NULL. */
TN_API void *tn_io_lease_data(const tn_io_lease *lease);
/* Logical size, and what the block could hold. */
TN_API size_t tn_io_lease_size_bytes(const tn_io_lease *lease);
TN_API size_t tn_io_lease_capacity_bytes(const tn_io_lease *lease);
/* Makes a buffer over the leased bytes.
 * Ownership: *out has a reference of its own; release it with tn_buffer_release. */
TN_API void tn_io_lease_get_buffer(tn_io_lease *lease, tn_buffer *out);
/* Turns the only reference of a lease back into a handle: same block, same address.
 * Ownership: on success *take_lease is NULL and *out is live.
 * Errors:    TN_BUSY when others hold the lease; TN_DEAD for NULL; TN_UNSUPPORTED for a lease of
 *            zero bytes, which has no block. Nothing changes then. */
TN_API TN_MUST_USE tn_status tn_io_lease_export_handle(tn_io_lease **take_lease,
                                                       tn_allocation_handle *out, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
