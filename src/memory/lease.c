/* Leases: a live I/O block seen from outside. A lease is the block's own record, so exporting,
 * sharing and releasing allocate nothing, and the last release can come from any thread. */
#include <string.h>

#include "base/error.h"
#include "memory/arena_state.h"

static tn_ledger *ledger_of(const tn_io_lease *lease) {
    return (tn_ledger *)(uintptr_t)lease; /* the opaque type's only meaning */
}

static tn_io_lease *lease_of(tn_ledger *ledger) {
    return (tn_io_lease *)(void *)ledger;
}

tn_status tn_io_arena_export(tn_io_arena *arena, tn_allocation_handle *handle, tn_io_lease **out,
                             tn_error *err) {
    tn_arena *const state = tn_io_arena_as_arena(arena);
    *out = NULL;
    TN_REQUIRE(handle->arena != NULL, err, TN_DEAD, "the handle was returned already");
    TN_REQUIRE(handle->arena == state, err, TN_INVALID_ARGUMENT,
               "a block of %zu bytes of another arena cannot be exported by this one",
               handle->size_bytes);
    if (handle->block == NULL) {
        *out = lease_of(tn_empty_ledger());
        memset(handle, 0, sizeof *handle);
        return TN_OK;
    }
    tn_arena_enter(state);
    tn_ledger *const record = tn_arena_find(state, handle);
    const bool is_live = record != NULL && record->state == TN_BLOCK_LIVE;
    if (is_live) {
        record->state = TN_BLOCK_LEASED;
        tn_counter_add(&state->pool.leased_count, 1);
        tn_counter_add(&state->pool.leased_bytes, record->u.size_bytes);
        if (state->events != NULL) {
            tn_arena_note(state, TN_EVENT_BLOCK_EXPORT, record, record->u.size_bytes);
        }
    }
    tn_arena_leave(state);
    TN_REQUIRE(record != NULL, err, TN_DEAD, "the block was returned already");
    TN_REQUIRE(is_live, err, TN_BUSY, "the block is exported already");
    *out = lease_of(record);
    memset(handle, 0, sizeof *handle);
    return TN_OK;
}

tn_io_lease *tn_io_lease_retain(tn_io_lease *lease) {
    if (lease == NULL) return NULL;
    tn_ledger *const ledger = ledger_of(lease);
    if (ledger->kind == TN_LEDGER_EMPTY) return lease;
    return tn_ref_count_retain(&ledger->refs) ? lease : NULL;
}

void tn_io_lease_release(tn_io_lease *lease) {
    if (lease != NULL) (void)tn_ledger_release(ledger_of(lease));
}

void *tn_io_lease_data(const tn_io_lease *lease) {
    const tn_ledger *const ledger = ledger_of(lease);
    return ledger->kind == TN_LEDGER_EMPTY ? tn_empty_data() : ledger->data;
}

size_t tn_io_lease_size_bytes(const tn_io_lease *lease) {
    return ledger_of(lease)->u.size_bytes;
}

size_t tn_io_lease_capacity_bytes(const tn_io_lease *lease) {
    return ledger_of(lease)->capacity_bytes;
}

void tn_io_lease_get_buffer(tn_io_lease *lease, tn_buffer *out) {
    (void)tn_io_lease_retain(lease);
    *out = (tn_buffer){.data = tn_io_lease_data(lease),
                       .size_bytes = tn_io_lease_size_bytes(lease),
                       .ledger = ledger_of(lease)};
}

tn_status tn_io_lease_export_handle(tn_io_lease **take_lease, tn_allocation_handle *out,
                                    tn_error *err) {
    TN_REQUIRE(*take_lease != NULL, err, TN_DEAD, "no lease to turn into a handle");
    tn_ledger *const record = ledger_of(*take_lease);
    TN_REQUIRE(record->kind != TN_LEDGER_EMPTY, err, TN_UNSUPPORTED,
               "a lease of zero bytes has no block and no arena");
    TN_REQUIRE(tn_ref_count_get(&record->refs) == 1, err, TN_BUSY, "%u owners hold the lease",
               tn_ref_count_get(&record->refs));
    tn_arena *const state = record->owner;
    tn_arena_enter(state);
    record->state = TN_BLOCK_LIVE;
    record->generation++; /* handles from before the export are stale */
    tn_counter_subtract(&state->pool.leased_count, 1);
    tn_counter_subtract(&state->pool.leased_bytes, record->u.size_bytes);
    tn_arena_fill_handle(state, record, record->u.size_bytes, out);
    tn_arena_leave(state);
    *take_lease = NULL;
    return TN_OK;
}
