/* The memory layer: page sources, the allocator tree, buffers. Usable without the rest.
 *
 * Words (the same everywhere):
 *   charged   what counts against limits: requests of plain buffers, capacities of arena blocks
 *   slack     what the page source gave beyond what is charged (tails, chunks, records)
 *   held      charged + slack = bytes got from page sources
 *   mapped    file mappings, a source of their own, charged where they are used
 *
 * Ownership: allocators are shared by count (create/retain/release); a buffer is a value that
 *            carries one reference of its ledger.
 * Threads:   allocators are safe from any thread; a `tn_buffer` value belongs to one thread at a
 *            time, its count may be touched from any. */
#ifndef TENURE_MEMORY_H
#define TENURE_MEMORY_H

#include <stdbool.h>

#include <tenure/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_BUFFER_ALIGNMENT 64

typedef struct tn_allocator tn_allocator;
typedef struct tn_ledger tn_ledger;

typedef enum tn_trim_level {
    TN_TRIM_SOFT, /* pages are marked free and fall under pressure; resident size stays for now */
    TN_TRIM_HARD  /* pages go back now; resident size falls */
} tn_trim_level;

/* Counters of one page source. Units: bytes, calls. */
typedef struct tn_page_source_stats {
    size_t struct_size;
    uint64_t held_bytes;  /* got from the system and not given back, chunks included */
    uint64_t used_bytes;  /* handed out */
    uint64_t alloc_count; /* calls that got memory from the system */
    uint64_t free_count;  /* calls that gave memory back to the system */
    uint64_t mapping_count;
} tn_page_source_stats;

/* Where physical memory comes from. A caller's own source fills this table.
 * Ownership: the table and `ctx` must outlive every allocator that uses them.
 * Threads:   every function may be called from any thread at once. */
typedef struct tn_page_source {
    size_t struct_size;
    const char *name;
    void *ctx;
    /* `align` is a power of two; *actual_bytes >= size_bytes is what was really given. NULL: out of
     * memory. `flags` is zero today. */
    void *(*alloc)(void *ctx, size_t size_bytes, size_t align, unsigned flags,
                   size_t *actual_bytes);
    /* `size_bytes` and `align` are those of the request. */
    void (*free)(void *ctx, void *data, size_t size_bytes, size_t align);
    /* Optional, may be NULL. On failure returns NULL and the old block stays. */
    void *(*realloc)(void *ctx, void *data, size_t old_bytes, size_t new_bytes, size_t align,
                     size_t *actual_bytes);
    size_t (*trim)(void *ctx, tn_trim_level level);      /* optional; bytes given back */
    void (*stats)(void *ctx, tn_page_source_stats *out); /* optional */
} tn_page_source;

/* Points at which a fault injector is asked, before any free list or chunk is consulted. */
typedef enum tn_fault_point {
    TN_FAULT_BUFFER,
    TN_FAULT_METADATA,
    TN_FAULT_CHUNK,
    TN_FAULT_PAGE_SOURCE,
    TN_FAULT_MAPPING,
    TN_FAULT_THREAD
} tn_fault_point;

/* Test hook: `should_fail` answers true to make that allocation fail. Threads: any at once. */
typedef struct tn_fault_injector {
    void *ctx;
    bool (*should_fail)(void *ctx, tn_fault_point point);
} tn_fault_injector;

/* Zero is the default everywhere. */
typedef struct tn_allocator_options {
    size_t struct_size;
    const char *name;                  /* copied; NULL: "root" or "child" */
    uint64_t limit_bytes;              /* 0: no limit of its own */
    uint64_t reservation_bytes;        /* children only: held from the parent from creation */
    const tn_page_source *page_source; /* NULL: the parent's; at a root TENURE_PAGE_SOURCE, then
                                          "system" */
    const char *page_source_name;      /* roots: "system" or "libc"; wins over the environment */
    const tn_fault_injector *fault;    /* roots: copied; NULL: none */
} tn_allocator_options;

/* Makes a root allocator; it owns its page source's state.
 * Ownership: *out is new, release it with tn_allocator_release.
 * Errors:    TN_INVALID_ARGUMENT, TN_OUT_OF_MEMORY. */
TN_API TN_MUST_USE tn_status tn_allocator_create_root(const tn_allocator_options *options,
                                                      tn_allocator **out, tn_error *err);

/* Makes a child of `parent`; the child keeps its parent alive.
 * Errors: TN_LIMIT when the reservation does not fit, TN_CLOSED, TN_OUT_OF_MEMORY. */
TN_API TN_MUST_USE tn_status tn_allocator_create_child(tn_allocator *parent,
                                                       const tn_allocator_options *options,
                                                       tn_allocator **out, tn_error *err);

/* Adds a reference and returns `allocator`. Accepts NULL. Threads: any. */
TN_API tn_allocator *tn_allocator_retain(tn_allocator *allocator);

/* The last release closes; with anything outstanding it abandons. Accepts NULL. */
TN_API void tn_allocator_release(tn_allocator *allocator);

/* Ends use of `allocator`. Errors: TN_BUSY, with everything unchanged, while bytes are charged or
 * children are open; the message lists what is outstanding. TN_CLOSED the second time. */
TN_API TN_MUST_USE tn_status tn_allocator_close(tn_allocator *allocator, tn_error *err);

/* Closes whatever is outstanding: reservation 0, no new requests; charges stay until released. */
TN_API void tn_allocator_abandon(tn_allocator *allocator);

/* Raw memory of the library's own objects (records, tables, plans), 16-byte aligned, charged to
 * `allocator` with its request. NULL when refused or out of memory; realloc keeps the old block
 * then. free accepts NULL. Threads: any. */
TN_API void *tn_allocator_malloc(tn_allocator *allocator, size_t size_bytes);
TN_API void *tn_allocator_calloc(tn_allocator *allocator, size_t count, size_t size_bytes);
TN_API void *tn_allocator_realloc(tn_allocator *allocator, void *data, size_t size_bytes);
TN_API void tn_allocator_free(tn_allocator *allocator, void *data);

/* Charges bytes that come from elsewhere (a file mapping), check before add; a refusal changes
 * nothing, and `err` names the allocator that refused with the numbers of that moment. */
TN_API TN_MUST_USE tn_status tn_allocator_charge(tn_allocator *allocator, uint64_t size_bytes,
                                                 tn_error *err);
TN_API void tn_allocator_discharge(tn_allocator *allocator, uint64_t size_bytes);

/* The same for bytes of a file mapping: they count as charged and as `mapped`, never as held. */
TN_API TN_MUST_USE tn_status tn_allocator_charge_mapped(tn_allocator *allocator,
                                                        uint64_t size_bytes, tn_error *err);
TN_API void tn_allocator_discharge_mapped(tn_allocator *allocator, uint64_t size_bytes);

/* A view of bytes with one reference on their ledger. Slices are values. */
typedef struct tn_buffer {
    void *data; /* aligned to TN_BUFFER_ALIGNMENT; never NULL, also for size 0 */
    size_t size_bytes;
    tn_ledger *ledger;
} tn_buffer;

/* Gets `size_bytes` of uninitialised payload, aligned to `align` (0: TN_BUFFER_ALIGNMENT).
 * Ownership: *out holds one reference; give it back with tn_buffer_release.
 * Errors:    TN_LIMIT, TN_OUT_OF_MEMORY, TN_CLOSED, TN_INVALID_ARGUMENT (align). */
TN_API TN_MUST_USE tn_status tn_buffer_create(tn_allocator *allocator, size_t size_bytes,
                                              size_t align, tn_buffer *out, tn_error *err);
/* Adds a reference to the buffer's block; copies of the value share it, each release drops one.
 * Errors: TN_DEAD when the block was given back already. Threads: any. */
TN_API TN_MUST_USE tn_status tn_buffer_retain(const tn_buffer *buffer, tn_error *err);
/* Drops the reference and empties *buffer. Errors: TN_DEAD when it was already released. */
TN_API tn_status tn_buffer_release(tn_buffer *buffer);
/* A borrowing window: no reference of its own. Errors: TN_OUT_OF_RANGE. */
TN_API TN_MUST_USE tn_status tn_buffer_slice(const tn_buffer *buffer, size_t offset_bytes,
                                             size_t size_bytes, tn_buffer *out_borrowed,
                                             tn_error *err);

/* Figures of one node. All in bytes; sums of a node include its children where said. */
typedef struct tn_allocator_stats {
    size_t struct_size;
    char name[64];
    uint64_t limit_bytes; /* 0: none */
    uint64_t reservation_bytes;
    uint64_t charged_bytes; /* own and what the children hold, their unused reservations included */
    uint64_t own_bytes;     /* charged here, not in a child */
    uint64_t slack_bytes;   /* own and children's; a root's includes the chunks of its source */
    uint64_t mapped_bytes;  /* part of charged: file mappings, own and children's */
    uint64_t peak_bytes;    /* of charged */
    uint64_t refusal_count;
    /* Of the arenas that charge this node or one below it. */
    uint64_t live_bytes, live_capacity_bytes, retained_bytes, leased_bytes;
    uint64_t live_peak_bytes;
    uint64_t promised_bytes; /* part of charged: children's reservations not used yet */
    uint64_t external_bytes; /* part of charged: from tn_allocator_charge, no page source gave it */
    uint64_t held_bytes;     /* charged - promised - mapped - external + slack; at a root this is
                                what its page sources have from the system */
    uint64_t block_count;    /* buffers and arena blocks alive or retained, own and children's */
    uint64_t record_count;   /* live tn_allocator_malloc blocks, own and children's */
    bool is_closed;
} tn_allocator_stats;

/* Writes at most out->struct_size bytes (0: the whole struct). Threads: any. */
TN_API void tn_allocator_get_stats(const tn_allocator *allocator, tn_allocator_stats *out);
/* Counters of the page sources of the whole tree that `allocator` is in, added up. Writes at most
 * out->struct_size bytes (0: the whole struct). Threads: any. */
TN_API void tn_allocator_get_page_source_stats(const tn_allocator *allocator,
                                               tn_page_source_stats *out);
/* Lends the name; valid while `allocator` lives. */
TN_API const char *tn_allocator_name(const tn_allocator *allocator);
/* Lends the parent; NULL at a root. */
TN_API tn_allocator *tn_allocator_parent(const tn_allocator *allocator);
/* Bytes charged at and below `allocator` now, unused reservations of children included. */
TN_API uint64_t tn_allocator_charged(const tn_allocator *allocator);
/* Changes the limit for requests from now on; what is charged stays. 0: no limit. */
TN_API void tn_allocator_set_limit(tn_allocator *allocator, uint64_t limit_bytes);
/* Sets the peak to what is charged now. */
TN_API void tn_allocator_reset_peak(tn_allocator *allocator);

/* Calls `visit` for `allocator` and everything below it, parents first; stops when it answers
 * false. No library lock is held that `visit` may not take again through get_stats. */
typedef bool (*tn_allocator_visit_fn)(void *ctx, const tn_allocator *allocator, int depth);
TN_API void tn_allocator_visit(const tn_allocator *allocator, tn_allocator_visit_fn visit,
                               void *ctx);

/* Writes the tree as an indented table, NUL-terminated, at most `capacity_bytes`.
 * Returns the bytes that the whole text needs, NUL included. */
TN_API size_t tn_allocator_report(const tn_allocator *allocator, char *text, size_t capacity_bytes);

/* Proves that the numbers of a whole tree add up: every node's charge is its own plus what its
 * children hold, and charged (without mappings, promises and bytes from outside) + slack is what
 * the page sources hold. For tests and assertions; call it while no other thread allocates.
 * Errors: TN_INTERNAL naming what does not add up; TN_INVALID_ARGUMENT for a child. */
TN_API TN_MUST_USE tn_status tn_allocator_verify(const tn_allocator *root, tn_error *err);

/* Gives retained blocks of every arena at or below `allocator`, then of its page source, back.
 * Returns the bytes given back. Threads: any; busy arenas do it at the end of their run. */
TN_API size_t tn_allocator_trim(tn_allocator *allocator, tn_trim_level level);

#ifdef __cplusplus
}
#endif
#endif
