/* The I/O arena: the common state behind a lock, shared by count, and adoption of foreign memory.
 */
#include <string.h>

#include "base/error.h"
#include "memory/arena_state.h"
#include "memory/block_pool_hot.h"
#include "memory/fault.h"

struct tn_io_arena {
    tn_arena state;
};

tn_status tn_io_arena_create(tn_allocator *allocator, const tn_arena_options *options,
                             tn_io_arena **out, tn_error *err) {
    void *made = NULL;
    *out = NULL;
    TN_TRY(tn_arena_state_create(allocator, options, true, sizeof(tn_io_arena), &made, err));
    *out = made;
    return TN_OK;
}

tn_io_arena *tn_io_arena_retain(tn_io_arena *arena) {
    if (arena == NULL) return NULL;
    tn_arena_enter(&arena->state);
    arena->state.owner_count++;
    tn_arena_leave(&arena->state);
    return arena;
}

void tn_io_arena_release(tn_io_arena *arena) {
    if (arena == NULL) return;
    tn_arena_enter(&arena->state);
    const bool is_last = --arena->state.owner_count == 0;
    tn_arena_leave(&arena->state);
    if (is_last) tn_arena_state_orphan(&arena->state);
}

void tn_io_arena_close(tn_io_arena *arena) {
    if (arena != NULL) tn_arena_state_close(&arena->state);
}

tn_arena *tn_io_arena_as_arena(tn_io_arena *arena) {
    return &arena->state;
}

tn_status tn_io_arena_allocate(tn_io_arena *arena, size_t size_bytes, tn_allocation_handle *out,
                               tn_error *err) {
    return tn_arena_allocate(&arena->state, size_bytes, out, err);
}

size_t tn_io_arena_trim(tn_io_arena *arena, tn_trim_level level) {
    return tn_arena_trim(&arena->state, level);
}

size_t tn_io_arena_shrink(tn_io_arena *arena, uint64_t target_bytes) {
    return tn_arena_shrink(&arena->state, target_bytes);
}

size_t tn_io_arena_set_retention_cap(tn_io_arena *arena, uint64_t cap_bytes) {
    return tn_arena_set_retention_cap(&arena->state, cap_bytes);
}

void tn_io_arena_reset_peak(tn_io_arena *arena) {
    tn_arena_reset_peak(&arena->state);
}

void tn_io_arena_get_stats(const tn_io_arena *arena, tn_arena_stats *out) {
    tn_arena_get_stats(&arena->state, out);
}

void tn_io_arena_begin_run(tn_io_arena *arena) {
    (void)arena; /* runs may overlap, and only their ends are counted */
}

void tn_io_arena_end_run(tn_io_arena *arena) {
    tn_arena_end_run(&arena->state);
}

static void fill_adopted(tn_arena *arena, tn_ledger *record, const tn_foreign_memory *foreign) {
    const size_t class_bytes =
        foreign->size_bytes < TN_CLASS_UNIT_BYTES ? TN_CLASS_UNIT_BYTES : foreign->size_bytes;
    record->data = foreign->data;
    record->capacity_bytes = foreign->size_bytes;
    record->owner = arena;
    record->kind = TN_LEDGER_ADOPTED;
    record->class_index = (uint16_t)tn_size_class_floor(class_bytes);
    record->link.foreign = (tn_record_foreign){.release = foreign->release, .ctx = foreign->ctx};
    tn_ref_count_init(&record->refs, 1);
}

tn_status tn_io_arena_adopt(tn_io_arena *arena, const tn_foreign_memory *foreign,
                            tn_allocation_handle *out, tn_error *err) {
    tn_arena *const state = &arena->state;
    memset(out, 0, sizeof *out);
    TN_REQUIRE(foreign->data != NULL && foreign->release != NULL, err, TN_INVALID_ARGUMENT,
               "foreign memory needs an address and a release function");
    TN_REQUIRE(foreign->size_bytes <= TN_MAX_BLOCK_BYTES, err, TN_INVALID_ARGUMENT,
               "no machine has %zu bytes", foreign->size_bytes);
    if (tn_fault_hits(state->fault, TN_FAULT_BUFFER)) {
        return tn_out_of_memory(state->allocator, foreign->size_bytes, foreign->size_bytes, err);
    }
    tn_ledger *const record = tn_arena_take_record(state);
    if (record == NULL) {
        return tn_out_of_memory(state->allocator, sizeof *record, sizeof *record, err);
    }
    tn_status status = tn_allocator_charge(state->allocator, foreign->size_bytes, err);
    if (status != TN_OK) {
        tn_arena_give_record(state, record);
        return status;
    }
    tn_arena_enter(state);
    if (!state->is_closed) {
        fill_adopted(state, record, foreign);
        tn_counter_add(&state->pool.adopted, 1);
        tn_counter_add(&state->pool.total_bytes, foreign->size_bytes);
        tn_counter_add(&state->pool.total_count, 1);
        tn_block_pool_set_live(&state->pool, record, foreign->size_bytes);
        tn_arena_fill_handle(state, record, foreign->size_bytes, out);
        tn_arena_leave(state);
        return TN_OK;
    }
    tn_block_pool_push_unused(&state->pool, record);
    tn_arena_leave(state);
    tn_allocator_discharge(state->allocator, foreign->size_bytes);
    return tn_error_set(err, TN_CLOSED, "the arena of allocator %s is closed",
                        tn_allocator_name(state->allocator));
}
