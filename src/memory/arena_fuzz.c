/* Handles, leases and buffers in any order, good or bad: whatever the bytes say, every call answers
 * with a status, no block is lost, and the tree adds up at the end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tenure/arena.h>

#include "memory/arena_state.h"

#define SLOTS 8

typedef struct fuzz_state {
    tn_allocator *root;
    tn_execution_arena *execution;
    tn_io_arena *io;
    tn_allocation_handle handles[SLOTS]; /* live, stale copies, or empty */
    tn_io_lease *leases[SLOTS];          /* one reference each, or NULL */
    tn_buffer buffers[SLOTS];
    bool is_in_run;
} fuzz_state;

static void must(bool condition) {
    if (!condition) abort();
}

static tn_arena *choose_arena(const fuzz_state *state, uint8_t choice) {
    return choice % 2 == 0 ? tn_execution_arena_as_arena(state->execution)
                           : tn_io_arena_as_arena(state->io);
}

/* A slot that owns its block must not be overwritten; a copy may. */
static bool is_owner(const tn_allocation_handle *handle) {
    if (handle->arena == NULL || handle->block == NULL) return false;
    return handle->block->state == TN_BLOCK_LIVE && handle->block->generation == handle->generation;
}

static void step_handles(fuzz_state *state, uint8_t op, uint8_t a, uint8_t b) {
    tn_allocation_handle *const to = &state->handles[a % SLOTS];
    tn_allocation_handle *const from = &state->handles[b % SLOTS];
    switch (op % 5) {
        case 0:
            if (is_owner(to)) break;
            (void)!tn_arena_allocate(choose_arena(state, b), (size_t)b << (a % 14), to, NULL);
            if (to->data != NULL) memset(to->data, b, to->size_bytes);
            break;
        case 1:
            (void)tn_allocation_handle_reset(to);
            break;
        case 2:
            (void)!tn_arena_free(choose_arena(state, b), to, NULL);
            break;
        case 3:
            (void)!tn_allocation_handle_move(to, from, NULL);
            break;
        default: /* a copy by hand: the second use must be refused */
            if (!is_owner(to)) *to = *from;
            break;
    }
}

static void step_leases(fuzz_state *state, uint8_t op, uint8_t a, uint8_t b) {
    tn_allocation_handle *const handle = &state->handles[a % SLOTS];
    tn_io_lease **const lease = &state->leases[b % SLOTS];
    tn_buffer *const buffer = &state->buffers[b % SLOTS];
    switch (op % 5) {
        case 0:
            if (*lease == NULL) (void)!tn_io_arena_export(state->io, handle, lease, NULL);
            break;
        case 1:
            tn_io_lease_release(*lease);
            *lease = NULL;
            break;
        case 2:
            if (!is_owner(handle)) (void)!tn_io_lease_export_handle(lease, handle, NULL);
            break;
        case 3:
            if (*lease != NULL && buffer->ledger == NULL) tn_io_lease_get_buffer(*lease, buffer);
            break;
        default:
            if (buffer->ledger != NULL) {
                (void)tn_buffer_release(buffer);
            } else {
                (void)!tn_allocation_handle_release(handle, buffer, NULL);
            }
            break;
    }
}

static void step_settings(fuzz_state *state, uint8_t op, uint8_t a, uint8_t b) {
    tn_arena *const arena = choose_arena(state, a);
    void *base = NULL;
    switch (op % 7) {
        case 0:
            (void)tn_arena_trim(arena, b % 2 == 0 ? TN_TRIM_HARD : TN_TRIM_SOFT);
            break;
        case 1:
            (void)tn_arena_set_retention_cap(arena, b == 255 ? TN_RETENTION_UNLIMITED : b * 1000u);
            break;
        case 2:
            (void)tn_arena_shrink(arena, b * 1000u);
            break;
        case 3:
            must(tn_execution_arena_begin_run(state->execution, NULL) ==
                 (state->is_in_run ? TN_BUSY : TN_OK));
            state->is_in_run = true;
            (void)!tn_execution_arena_reserve_slab(state->execution, (size_t)b * 997, &base, NULL);
            break;
        case 4:
            if (state->is_in_run) tn_execution_arena_end_run(state->execution);
            state->is_in_run = false;
            break;
        case 5:
            tn_allocator_set_limit(state->root, b == 0 ? 0 : b * 20000u);
            break;
        default:
            (void)tn_allocator_trim(state->root, TN_TRIM_HARD);
            break;
    }
}

static void give_everything_back(fuzz_state *state) {
    if (state->is_in_run) tn_execution_arena_end_run(state->execution);
    for (int i = 0; i < SLOTS; i++) {
        (void)tn_allocation_handle_reset(&state->handles[i]);
        tn_io_lease_release(state->leases[i]);
        if (state->buffers[i].ledger != NULL) (void)tn_buffer_release(&state->buffers[i]);
    }
    must(tn_allocator_verify(state->root, NULL) == TN_OK);
    must(tn_arena_check(tn_execution_arena_as_arena(state->execution)));
    must(tn_arena_check(tn_io_arena_as_arena(state->io)));
    tn_execution_arena_destroy(state->execution);
    tn_io_arena_release(state->io);
    must(tn_allocator_charged(state->root) == 0);
    must(tn_allocator_close(state->root, NULL) == TN_OK);
    tn_allocator_release(state->root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
    fuzz_state state = {0};
    must(tn_allocator_create_root(NULL, &state.root, NULL) == TN_OK);
    must(tn_execution_arena_create(state.root, NULL, &state.execution, NULL) == TN_OK);
    must(tn_io_arena_create(state.root, NULL, &state.io, NULL) == TN_OK);
    for (size_t at = 0; at + 3 <= size_bytes; at += 3) {
        const uint8_t op = data[at];
        if (op < 100) {
            step_handles(&state, op, data[at + 1], data[at + 2]);
        } else if (op < 200) {
            step_leases(&state, op, data[at + 1], data[at + 2]);
        } else {
            step_settings(&state, op, data[at + 1], data[at + 2]);
        }
    }
    give_everything_back(&state);
    return 0;
}
