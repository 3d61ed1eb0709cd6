/* What both arenas share: taking blocks, taking them back, giving them up. The hot path (a request
 * that a retained block serves, and its return) enters once, changes a few links and counters, and
 * leaves. Everything slow (a miss, an eviction's unmapping, growth of the records) happens outside.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/arena_state.h"
#include "memory/block_pool_hot.h"
#include "memory/fault.h"
#include "memory/poison.h"

static void claim_contended(tn_arena *arena) {
    uint32_t seen = TN_CLAIM_IDLE;
    /* acquire: what the last holder did to the pool is seen */
    while (!atomic_compare_exchange_weak_explicit(&arena->claim, &seen, TN_CLAIM_TAKEN,
                                                  memory_order_acquire, memory_order_relaxed)) {
        seen = TN_CLAIM_IDLE;
        (void)sched_yield(); /* a trim from another thread is at work, for a moment */
    }
}

static inline void claim(tn_arena *arena) {
    uint32_t seen = TN_CLAIM_IDLE;
    if (!atomic_compare_exchange_strong_explicit(&arena->claim, &seen, TN_CLAIM_TAKEN,
                                                 memory_order_acquire, memory_order_relaxed)) {
        claim_contended(arena);
    }
}

static inline void enter(tn_arena *arena) {
    if (arena->is_shared) {
        tn_lock_acquire(&arena->lock);
    } else if (!arena->is_in_run) {
        claim(arena);
    }
}

static inline void leave(tn_arena *arena) {
    if (arena->is_shared) {
        tn_lock_release(&arena->lock);
    } else if (!arena->is_in_run) {
        /* release: pairs with the acquire of the next claim */
        atomic_store_explicit(&arena->claim, TN_CLAIM_IDLE, memory_order_release);
    }
}

void tn_arena_note(tn_arena *arena, tn_event_kind kind, const tn_ledger *record,
                   size_t size_bytes) {
    const tn_event event = {.bytes = size_bytes,
                            .kind = (uint32_t)kind,
                            .arena = arena->number,
                            .class_index = record->class_index,
                            .value = record->index,
                            .run = (uint32_t)tn_counter_get(&arena->pool.run_count)};
    tn_event_record(arena->events, &event);
}

static inline void note(tn_arena *arena, tn_event_kind kind, const tn_ledger *record,
                        size_t size_bytes) {
    if (arena->events != NULL) tn_arena_note(arena, kind, record, size_bytes);
}

void tn_arena_enter(tn_arena *arena) {
    enter(arena);
}

void tn_arena_leave(tn_arena *arena) {
    leave(arena);
}

/* A rough last use, for reclaims that choose among arenas. */
static inline void touch(tn_arena *arena) {
    const uint64_t tick = atomic_load_explicit(&arena->allocator->root->tick, memory_order_relaxed);
    atomic_store_explicit(&arena->reclaimer.last_use, tick, memory_order_relaxed);
}

static tn_block_request block_request(size_t size_bytes, size_t capacity_bytes) {
    return (tn_block_request){.requested_bytes = size_bytes,
                              .charged_bytes = capacity_bytes,
                              .source_bytes = capacity_bytes,
                              .align = TN_BUFFER_ALIGNMENT,
                              .is_exact = true};
}

static void give_blocks(tn_arena *arena, const tn_pool_chain *chain) {
    for (uint32_t index = chain->first; index != TN_RECORD_NONE;) {
        tn_ledger *const record = tn_pool_record(&arena->pool, index);
        const tn_block_request request = block_request(0, record->capacity_bytes);
        index = record->link.links.class_next;
        note(arena, TN_EVENT_BLOCK_SYS_FREE, record, record->capacity_bytes);
        tn_unpoison(record->data, record->capacity_bytes);
        tn_node_give_block(arena->allocator, &request, record->data, record->capacity_bytes, NULL);
    }
}

/* Entered. */
static void recycle_records(tn_arena *arena, const tn_pool_chain *chain) {
    for (uint32_t index = chain->first; index != TN_RECORD_NONE;) {
        tn_ledger *const record = tn_pool_record(&arena->pool, index);
        index = record->link.links.class_next;
        tn_block_pool_push_unused(&arena->pool, record);
    }
}

void tn_arena_give_chain(tn_arena *arena, const tn_pool_chain *chain) {
    if (chain->first == TN_RECORD_NONE) return;
    give_blocks(arena, chain);
    enter(arena);
    recycle_records(arena, chain);
    leave(arena);
}

void tn_arena_give_chain_entered(tn_arena *arena, const tn_pool_chain *chain) {
    give_blocks(arena, chain);
    recycle_records(arena, chain);
}

tn_ledger *tn_arena_take_record(tn_arena *arena) {
    tn_ledger *record = NULL;
    enter(arena);
    while (!tn_block_pool_has_unused(&arena->pool)) {
        const uint32_t chunk_count = arena->pool.chunk_count;
        const size_t size_bytes =
            tn_block_pool_next_chunk_records(&arena->pool) * sizeof(tn_ledger);
        leave(arena);
        tn_ledger *const records =
            size_bytes == 0 ? NULL : tn_node_take_metadata(arena->allocator, size_bytes);
        if (records == NULL) return NULL;
        enter(arena);
        if (arena->pool.chunk_count != chunk_count) { /* another thread was faster */
            leave(arena);
            tn_node_give_metadata(arena->allocator, records, size_bytes);
            enter(arena);
        } else {
            tn_block_pool_add_chunk(&arena->pool, records);
        }
    }
    record = tn_block_pool_pop_unused(&arena->pool);
    leave(arena);
    return record;
}

void tn_arena_give_record(tn_arena *arena, tn_ledger *record) {
    enter(arena);
    tn_block_pool_push_unused(&arena->pool, record);
    leave(arena);
}

void tn_arena_fill_handle(tn_arena *arena, const tn_ledger *record, size_t size_bytes,
                          tn_allocation_handle *out) {
    out->data = record->data;
    out->size_bytes = size_bytes;
    out->capacity_bytes = record->capacity_bytes;
    out->arena = arena;
    out->block = (tn_ledger *)(uintptr_t)record; /* a handle is a right to change it */
    out->generation = record->generation;
}

/* Makes a record that is on no list live. Entered. */
static inline void make_live(tn_arena *arena, tn_ledger *record, size_t size_bytes) {
    tn_block_pool_set_live(&arena->pool, record, size_bytes);
    /* relaxed by nature: nobody else can see the record yet */
    tn_ref_count_init(&record->refs, 1);
    tn_unpoison(record->data, size_bytes);
    tn_poison((char *)record->data + size_bytes, record->capacity_bytes - size_bytes);
}

/* What a miss costs: a record, room under the limits, a block from the source. Not entered. */
static tn_status make_block(tn_arena *arena, size_t size_bytes, tn_allocation_handle *out,
                            tn_error *err) {
    const size_t capacity_bytes = tn_block_capacity(size_bytes);
    const tn_block_request request = block_request(size_bytes, capacity_bytes);
    void *data = NULL;
    size_t actual_bytes = 0;
    tn_ledger *const record = tn_arena_take_record(arena);
    if (record == NULL) {
        return tn_out_of_memory(arena->allocator, size_bytes, capacity_bytes, err);
    }
    const tn_status status =
        tn_node_take_block(arena->allocator, &request, &data, &actual_bytes, err);
    if (status != TN_OK) {
        tn_arena_give_record(arena, record);
        return status;
    }
    enter(arena);
    record->data = data;
    record->capacity_bytes = capacity_bytes;
    record->owner = arena;
    record->kind = TN_LEDGER_ARENA;
    record->class_index = (uint16_t)tn_size_class_floor(capacity_bytes);
    tn_counter_add(&arena->pool.sys_allocs, 1);
    tn_counter_add(&arena->pool.total_bytes, capacity_bytes);
    tn_counter_add(&arena->pool.total_count, 1);
    if (capacity_bytes > arena->pool.largest_capacity_bytes) {
        arena->pool.largest_capacity_bytes = capacity_bytes;
    }
    make_live(arena, record, size_bytes);
    tn_arena_fill_handle(arena, record, size_bytes, out);
    note(arena, TN_EVENT_BLOCK_MISS, record, size_bytes);
    leave(arena);
    return TN_OK;
}

static tn_status miss(tn_arena *arena, size_t size_bytes, tn_allocation_handle *out,
                      tn_error *err) {
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    enter(arena);
    const bool is_closed = arena->is_closed;
    tn_block_pool_replace_undersized(&arena->pool, tn_block_capacity(size_bytes), &chain);
    leave(arena);
    tn_arena_give_chain(arena, &chain);
    TN_REQUIRE(!is_closed, err, TN_CLOSED, "the arena of allocator %s is closed",
               tn_allocator_name(arena->allocator));
    return make_block(arena, size_bytes, out, err);
}

tn_status tn_arena_allocate(tn_arena *arena, size_t size_bytes, tn_allocation_handle *out,
                            tn_error *err) {
    if (tn_fault_hits(arena->fault, TN_FAULT_BUFFER)) {
        memset(out, 0, sizeof *out);
        return tn_out_of_memory(arena->allocator, size_bytes, size_bytes, err);
    }
    if (size_bytes - 1 >= TN_MAX_BLOCK_BYTES) { /* zero wraps around */
        memset(out, 0, sizeof *out);
        TN_REQUIRE(size_bytes == 0, err, TN_OUT_OF_MEMORY, "no machine has %zu bytes", size_bytes);
        out->data = tn_empty_data();
        out->arena = arena;
        return TN_OK;
    }
    enter(arena);
    tn_ledger *const record = tn_block_pool_take(&arena->pool, size_bytes);
    if (record != NULL) {
        make_live(arena, record, size_bytes);
        tn_arena_fill_handle(arena, record, size_bytes, out);
        note(arena, TN_EVENT_BLOCK_HIT, record, size_bytes);
        leave(arena);
        return TN_OK;
    }
    leave(arena);
    memset(out, 0, sizeof *out);
    return miss(arena, size_bytes, out, err);
}

tn_ledger *tn_arena_find(tn_arena *arena, const tn_allocation_handle *handle) {
    tn_ledger *const record = handle->block;
    (void)arena; /* records stay where they are while it lives */
    const bool is_held = record->state == TN_BLOCK_LIVE || record->state == TN_BLOCK_LEASED;
    return is_held && record->generation == handle->generation ? record : NULL;
}

static void destroy_state(tn_arena *arena) {
    tn_allocator *const allocator = arena->allocator;
    const size_t state_bytes = arena->state_bytes;
    tn_reclaimer_unregister(&arena->reclaimer);
    for (uint32_t i = 0; i < arena->pool.chunk_count; i++) {
        tn_node_give_metadata(allocator, arena->pool.chunks[i],
                              ((size_t)TN_POOL_FIRST_CHUNK_RECORDS << i) * sizeof(tn_ledger));
    }
    tn_node_give_metadata(allocator, arena, state_bytes);
    tn_allocator_release(allocator);
}

static bool is_dead(const tn_arena *arena) {
    return arena->is_orphaned && arena->return_count == 0 &&
           tn_counter_get(&arena->pool.live_count) == 0;
}

/* An adopted block goes to whoever lent it. Entered on entry, not on return. */
__attribute__((noinline)) static void give_adopted(tn_arena *arena, tn_ledger *record) {
    const tn_record_foreign foreign = record->link.foreign;
    void *const data = record->data;
    const size_t size_bytes = record->capacity_bytes;
    tn_allocator *const allocator = tn_allocator_retain(arena->allocator);
    tn_block_pool_unset_live(&arena->pool, record);
    tn_counter_subtract(&arena->pool.total_bytes, size_bytes);
    tn_counter_subtract(&arena->pool.total_count, 1);
    tn_block_pool_push_unused(&arena->pool, record);
    const bool dies = is_dead(arena);
    leave(arena);
    if (dies) destroy_state(arena);
    foreign.release(foreign.ctx, data, size_bytes);
    tn_allocator_discharge(allocator, size_bytes);
    tn_allocator_release(allocator);
}

/* Gives up what a return made superfluous. Entered on entry, not on return; the arena may be gone
 * then. `return_count` keeps its state for us while another thread returns its last live block. */
__attribute__((noinline)) static void leave_with_chain(tn_arena *arena,
                                                       const tn_pool_chain *chain) {
    arena->return_count++;
    leave(arena);
    give_blocks(arena, chain);
    enter(arena);
    recycle_records(arena, chain);
    arena->return_count--;
    const bool dies = is_dead(arena);
    leave(arena);
    if (dies) destroy_state(arena);
}

/* Takes a block off the live ones. Entered on entry, not on return; the arena may be gone then. */
static inline void put_back(tn_arena *arena, tn_ledger *record, bool discard) {
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    if (record->kind == TN_LEDGER_ADOPTED) {
        give_adopted(arena, record);
        return;
    }
    note(arena, TN_EVENT_BLOCK_RETURN, record, record->u.size_bytes);
    tn_debug_fill(record->data, record->u.size_bytes);
    tn_poison(record->data, record->capacity_bytes);
    tn_block_pool_unset_live(&arena->pool, record);
    if (discard) {
        tn_block_pool_discard(&arena->pool, record, true, &chain);
    } else {
        tn_block_pool_put(&arena->pool, record, &chain);
    }
    touch(arena);
    if (chain.first != TN_RECORD_NONE) {
        leave_with_chain(arena, &chain);
        return;
    }
    leave(arena); /* what is retained is not orphaned: an orphan's cap is 0 */
}

void tn_arena_state_orphan(tn_arena *arena) {
    tn_arena_state_close(arena);
    tn_arena_enter(arena);
    arena->is_orphaned = true;
    const bool dies = is_dead(arena);
    tn_arena_leave(arena);
    if (dies) destroy_state(arena);
}

tn_status tn_arena_return(tn_arena *arena, tn_allocation_handle *handle, bool discard) {
    if (handle->block == NULL) { /* zero bytes: there is no block */
        memset(handle, 0, sizeof *handle);
        return TN_OK;
    }
    enter(arena);
    tn_ledger *const record = tn_arena_find(arena, handle);
    if (record == NULL || record->state != TN_BLOCK_LIVE) {
        leave(arena);
        return record == NULL ? TN_DEAD : TN_BUSY;
    }
    /* relaxed by nature: a live handle is its block's only reference */
    tn_ref_count_init(&record->refs, 0);
    memset(handle, 0, sizeof *handle);
    put_back(arena, record, discard);
    return TN_OK;
}

void tn_arena_take_back(tn_ledger *ledger) {
    tn_arena *const arena = ledger->owner;
    enter(arena);
    put_back(arena, ledger, false);
}

tn_status tn_allocation_handle_reset(tn_allocation_handle *handle) {
    if (handle == NULL || handle->arena == NULL) return TN_DEAD;
    return tn_arena_return(handle->arena, handle, false);
}

tn_status tn_arena_free(tn_arena *arena, tn_allocation_handle *handle, tn_error *err) {
    TN_REQUIRE(handle->arena != NULL, err, TN_DEAD, "the handle was returned already");
    TN_REQUIRE(handle->arena == arena, err, TN_INVALID_ARGUMENT,
               "a block of %zu bytes of allocator %s given to an arena of allocator %s",
               handle->size_bytes, tn_allocator_name(handle->arena->allocator),
               tn_allocator_name(arena->allocator));
    const tn_status status = tn_arena_return(arena, handle, false);
    return status == TN_OK ? TN_OK
                           : tn_error_set(err, status, "the block of allocator %s is %s",
                                          tn_allocator_name(arena->allocator),
                                          status == TN_DEAD ? "returned already" : "exported");
}

bool tn_allocation_handle_is_live(const tn_allocation_handle *handle) {
    return handle != NULL && handle->arena != NULL;
}

tn_status tn_allocation_handle_move(tn_allocation_handle *to, tn_allocation_handle *from,
                                    tn_error *err) {
    if (to == from) return TN_OK;
    TN_REQUIRE(to->arena == NULL, err, TN_BUSY, "the handle moved to still has %zu bytes",
               to->size_bytes);
    *to = *from;
    memset(from, 0, sizeof *from);
    return TN_OK;
}

tn_status tn_allocation_handle_release(tn_allocation_handle *handle, tn_buffer *out,
                                       tn_error *err) {
    tn_arena *const arena = handle->arena;
    TN_REQUIRE(arena != NULL, err, TN_DEAD, "the handle was returned already");
    if (handle->block == NULL) {
        *out = (tn_buffer){.data = handle->data, .ledger = tn_empty_ledger()};
        memset(handle, 0, sizeof *handle);
        return TN_OK;
    }
    enter(arena);
    tn_ledger *const record = tn_arena_find(arena, handle);
    const bool is_live = record != NULL && record->state == TN_BLOCK_LIVE;
    if (is_live) record->generation++; /* copies of the handle are stale now */
    leave(arena);
    TN_REQUIRE(is_live, err, TN_DEAD, "the block was returned or exported already");
    *out = (tn_buffer){.data = handle->data, .size_bytes = handle->size_bytes, .ledger = record};
    memset(handle, 0, sizeof *handle);
    return TN_OK;
}

bool tn_arena_revive(tn_arena *arena, tn_ledger *block, uint32_t generation, size_t size_bytes,
                     tn_allocation_handle *out) {
    enter(arena);
    const bool is_there =
        !arena->is_closed && tn_block_pool_take_given(&arena->pool, block, generation);
    if (is_there) {
        make_live(arena, block, size_bytes);
        tn_arena_fill_handle(arena, block, size_bytes, out);
        note(arena, TN_EVENT_BLOCK_HIT, block, size_bytes);
    }
    leave(arena);
    return is_there;
}

void tn_arena_drop_retained(tn_arena *arena, tn_ledger *block, uint32_t generation) {
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    enter(arena);
    tn_block_pool_drop_given(&arena->pool, block, generation, &chain);
    leave(arena);
    tn_arena_give_chain(arena, &chain);
}

void tn_arena_resize_live(tn_arena *arena, tn_allocation_handle *handle, size_t size_bytes) {
    enter(arena);
    tn_ledger *const record = tn_arena_find(arena, handle);
    assert(record != NULL && size_bytes <= record->capacity_bytes);
    tn_counter_subtract(&arena->pool.live_bytes, record->u.size_bytes);
    tn_counter_add(&arena->pool.live_bytes, size_bytes);
    tn_counter_raise(&arena->pool.live_peak_bytes, tn_counter_get(&arena->pool.live_bytes));
    record->u.size_bytes = size_bytes;
    tn_unpoison(record->data, size_bytes);
    handle->size_bytes = size_bytes;
    leave(arena);
}

bool tn_arena_check(const tn_arena *arena) {
    return tn_block_pool_check(&arena->pool);
}
