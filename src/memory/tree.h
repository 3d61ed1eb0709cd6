/* Inside of the allocator tree. One lock per root guards every node, counter and list below it;
 * the arenas' hot paths never take it. Order of locks: arena, then tree, then page source. */
#ifndef TN_MEMORY_TREE_H
#define TN_MEMORY_TREE_H

#include <tenure/memory.h>

#include "memory/ledger.h"
#include "memory/lock.h"
#include "memory/page_source.h"

#define TN_NODE_NAME_BYTES 64

/* What an arena tells about itself. Units: bytes. */
typedef struct tn_arena_figures {
    uint64_t live_bytes;
    uint64_t live_capacity_bytes;
    uint64_t retained_bytes;
    uint64_t leased_bytes;
    uint64_t live_peak_bytes;
} tn_arena_figures;

/* Hung on a node by whoever retains memory it could do without.
 * Threads: the callbacks run with no lock of the tree held. */
typedef struct tn_reclaimer {
    /* Gives back at least `wanted_bytes` of retained blocks if it can, the least recently used
     * first; with SIZE_MAX all of them, and if busy at the end of its run. Returns the bytes. */
    size_t (*reclaim)(struct tn_reclaimer *reclaimer, size_t wanted_bytes, tn_trim_level level);
    void (*figures)(const struct tn_reclaimer *reclaimer, tn_arena_figures *out);
    tn_allocator *node;        /* borrowed; stays while this is registered */
    _Atomic uint64_t last_use; /* tick of the tree at its last use */
    struct tn_reclaimer *next; /* guarded by the tree lock, as all below */
    struct tn_reclaimer *prev;
    uint32_t pin_count; /* callbacks in flight; it cannot be unregistered meanwhile */
    uint64_t tried_in;  /* the pass that has asked it already */
} tn_reclaimer;

typedef struct tn_record_chunk {
    struct tn_record_chunk *next;
    size_t actual_bytes;
    size_t size_bytes;
    tn_ledger records[];
} tn_record_chunk;

/* The last request of a tree that a limit refused, for those who only saw NULL. */
typedef struct tn_refusal {
    uint64_t number; /* how many there were; 0: none yet */
    uint64_t requested_bytes;
    uint64_t charged_bytes;
    uint64_t used_bytes;
    uint64_t limit_bytes;
    char path[TN_ERROR_NAME_BYTES];
} tn_refusal;

/* What the nodes of one tree share. */
typedef struct tn_root {
    tn_lock lock;
    tn_refusal last_refusal; /* under the lock */
    tn_source first_source;  /* built in or the caller's; further ones are children's */
    tn_fault_injector fault_copy;
    const tn_fault_injector *fault; /* &fault_copy or NULL */
    size_t actual_bytes;            /* of this struct */
    uint64_t metadata_bytes;        /* got from sources for nodes and records */
    tn_record_chunk *record_chunks; /* owned; given back with the root */
    tn_ledger *free_records;
    uint32_t next_chunk_records; /* doubles up to a bound */
    uint32_t node_count;
    uint32_t reclaimer_number; /* of the last one registered */
    uint64_t reclaim_pass;
    _Atomic uint64_t tick;
} tn_root;

struct tn_allocator {
    tn_root *root;
    tn_allocator *parent; /* NULL at the root */
    tn_allocator *first_child;
    tn_allocator *last_child;
    tn_allocator *prev_sibling;
    tn_allocator *next_sibling;
    tn_source *source; /* borrowed from the root */
    tn_reclaimer *reclaimers;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t reservation_bytes;
    uint64_t used_bytes; /* own charges + what the children hold from here */
    uint64_t peak_bytes; /* of used_bytes */
    uint64_t own_charged_bytes;
    uint64_t own_external_bytes; /* part of own_charged_bytes that no source gave */
    uint64_t own_mapped_bytes;   /* part of own_external_bytes: file mappings */
    uint64_t own_held_bytes;     /* got from the source for this node's blocks */
    uint64_t refusal_count;
    size_t actual_bytes; /* of this struct */
    uint32_t handle_count;
    uint32_t block_count; /* buffers and arena blocks */
    uint32_t raw_count;   /* tn_allocator_malloc */
    uint32_t child_count;
    uint32_t reclaimer_count;
    uint32_t pin_count; /* walks that stand on this node */
    bool is_closed;     /* no new requests */
    char name[TN_NODE_NAME_BYTES];
};

/* Copies options whose struct may be older (shorter) than ours; the rest is zero.
 * Errors: TN_INVALID_ARGUMENT when `struct_size` is neither 0 (taken as ours) nor within it. */
tn_status tn_options_copy(void *out, size_t size_bytes, const void *options, tn_error *err);

/* ---- under the tree lock ---- */

/* Adds `size_bytes` at `node` and above, or changes nothing and returns the node that refuses. */
tn_allocator *tn_node_try_add(tn_allocator *node, uint64_t size_bytes);
void tn_node_subtract(tn_allocator *node, uint64_t size_bytes);
/* Does nothing while anything keeps `node`; else frees it, then looks at its parent. Returns the
 * root's state when its last node went: the caller destroys it after leaving the lock. */
tn_root *tn_node_collect(tn_allocator *node);
bool tn_node_is_at_or_below(const tn_allocator *node, const tn_allocator *top);

/* ---- without the tree lock ---- */

void tn_root_destroy(tn_root *root);

/* Writes "root/session/io" into `out`. Any thread: names and parents never change. */
void tn_node_path(const tn_allocator *node, char *out, size_t capacity_bytes);

/* How many requests limits have refused in the tree of `node`. */
uint64_t tn_tree_refusal_number(const tn_allocator *node);

/* TN_OUT_OF_MEMORY becomes TN_LIMIT, with who refused and the numbers, when a limit has refused
 * since `number` was read: tn_allocator_malloc can only say NULL. Any other status is returned as
 * it is. The node that `err` names stays. */
tn_status tn_tree_explain(const tn_allocator *node, uint64_t number, tn_status status,
                          tn_error *err);

/* Charges after asking reclaimers; the only way in which a request meets limits.
 * `requested_bytes` is what the user asked for, for the message. The caller's own arena is asked
 * like the others, so it must be in order when this is called.
 * Errors: TN_LIMIT, TN_CLOSED. */
typedef enum tn_charge_unit {
    TN_CHARGE_BYTES, /* bytes only */
    TN_CHARGE_BLOCK, /* a buffer's or an arena's block */
    TN_CHARGE_RAW    /* an object of the library */
} tn_charge_unit;

typedef struct tn_charge {
    uint64_t size_bytes;
    uint64_t requested_bytes;
    uint64_t held_bytes; /* what the page source gives for it */
    tn_charge_unit unit;
    bool is_external;
    bool is_mapped;
    tn_ledger *record; /* discharge only: goes back to the root's unused records */
} tn_charge;
tn_status tn_node_charge(tn_allocator *node, const tn_charge *charge, tn_error *err);
void tn_node_discharge(tn_allocator *node, const tn_charge *charge);

/* Asks the reclaimers at or below `top`, least recently used first, for `wanted_bytes`. */
size_t tn_node_reclaim(tn_allocator *top, size_t wanted_bytes);

/* Returns a number, from 1, that no other reclaimer of this tree has had. */
uint32_t tn_reclaimer_register(tn_reclaimer *reclaimer, tn_allocator *node);
/* Waits for callbacks in flight. */
void tn_reclaimer_unregister(tn_reclaimer *reclaimer);

/* One block of an allocator: charge, then physical memory; a failure leaves neither.
 * Errors: TN_LIMIT, TN_CLOSED, TN_OUT_OF_MEMORY. */
typedef struct tn_block_request {
    size_t requested_bytes; /* of the user, for messages */
    size_t charged_bytes;
    size_t source_bytes; /* asked from the source */
    size_t align;
    bool is_exact; /* counts as held what it asks for, whatever the source rounds up to */
    bool is_raw;   /* the library's own object, not a buffer or an arena's block */
} tn_block_request;
tn_status tn_node_take_block(tn_allocator *node, const tn_block_request *request, void **out_data,
                             size_t *out_actual_bytes, tn_error *err);
/* `record` goes back to the root's unused records; NULL: there is none. */
void tn_node_give_block(tn_allocator *node, const tn_block_request *request, void *data,
                        size_t actual_bytes, tn_ledger *record);

/* A record for a plain block, from the root's chunks. NULL: out of memory. */
tn_ledger *tn_node_take_record(tn_allocator *node);
void tn_node_give_record(tn_allocator *node, tn_ledger *record);
void tn_root_push_record(tn_root *root, tn_ledger *record); /* under the lock */

/* Memory of an arena's own records: slack, not charged. NULL: out of memory. */
void *tn_node_take_metadata(tn_allocator *node, size_t size_bytes);
void tn_node_give_metadata(tn_allocator *node, void *data, size_t size_bytes);

tn_status tn_out_of_memory(const tn_allocator *node, size_t requested_bytes, size_t rounded_bytes,
                           tn_error *err);

#endif
