/* The execution arena: the common state used by one thread at a time, and a slab. */
#include "base/error.h"
#include "memory/arena_state.h"

struct tn_execution_arena {
    tn_arena state; /* first: it outlives this as the head of the same allocation */
    tn_slab slab;
};

tn_status tn_execution_arena_create(tn_allocator *allocator, const tn_arena_options *options,
                                    tn_execution_arena **out, tn_error *err) {
    void *made = NULL;
    *out = NULL;
    TN_TRY(
        tn_arena_state_create(allocator, options, false, sizeof(tn_execution_arena), &made, err));
    tn_execution_arena *const arena = made;
    tn_slab_init(&arena->slab, &arena->state, 0);
    arena->state.slab = &arena->slab;
    *out = arena;
    return TN_OK;
}

void tn_execution_arena_destroy(tn_execution_arena *arena) {
    if (arena == NULL) return;
    arena->state.slab = NULL;
    tn_slab_deinit(&arena->slab);
    tn_arena_state_orphan(&arena->state);
}

tn_arena *tn_execution_arena_as_arena(tn_execution_arena *arena) {
    return &arena->state;
}

tn_status tn_execution_arena_allocate(tn_execution_arena *arena, size_t size_bytes,
                                      tn_allocation_handle *out, tn_error *err) {
    return tn_arena_allocate(&arena->state, size_bytes, out, err);
}

size_t tn_execution_arena_trim(tn_execution_arena *arena, tn_trim_level level) {
    return tn_arena_trim(&arena->state, level);
}

size_t tn_execution_arena_shrink(tn_execution_arena *arena, uint64_t target_bytes) {
    return tn_arena_shrink(&arena->state, target_bytes);
}

size_t tn_execution_arena_set_retention_cap(tn_execution_arena *arena, uint64_t cap_bytes) {
    return tn_arena_set_retention_cap(&arena->state, cap_bytes);
}

void tn_execution_arena_reset_peak(tn_execution_arena *arena) {
    tn_arena_reset_peak(&arena->state);
}

void tn_execution_arena_get_stats(const tn_execution_arena *arena, tn_arena_stats *out) {
    tn_arena_get_stats(&arena->state, out);
}

tn_status tn_execution_arena_begin_run(tn_execution_arena *arena, tn_error *err) {
    return tn_arena_begin_run(&arena->state, err);
}

void tn_execution_arena_end_run(tn_execution_arena *arena) {
    tn_arena_end_run(&arena->state);
}

tn_status tn_execution_arena_reserve_slab(tn_execution_arena *arena, size_t size_bytes,
                                          void **out_base, tn_error *err) {
    return tn_slab_reserve(&arena->slab, size_bytes, out_base, err);
}
