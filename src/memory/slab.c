/* The slab: one block of an arena that every plan of a context uses from its start. Between runs it
 * waits among the retained blocks, remembered by record and generation, so that cap, trim and
 * reclaim treat it like any other and its absence is noticed. It grows when a plan is larger, and
 * shrinks when a whole window of runs did not need its size; both mean giving the old block up
 * first, so two slabs never exist at once. */
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/arena_state.h"

void tn_slab_init(tn_slab *slab, tn_arena *arena, uint32_t window_runs) {
    memset(slab, 0, sizeof *slab);
    slab->arena = arena;
    slab->window_runs = window_runs == 0 ? arena->window_runs : window_runs;
    if (slab->window_runs > TN_SLAB_WINDOW_MAX) slab->window_runs = TN_SLAB_WINDOW_MAX;
}

static size_t largest_of_window(const tn_slab *slab) {
    size_t largest_bytes = 0;
    for (uint32_t i = 0; i < slab->window_runs; i++) {
        largest_bytes = tn_size_max(largest_bytes, slab->window_bytes[i]);
    }
    return largest_bytes;
}

static void forget(tn_slab *slab) {
    slab->retained_block = NULL;
    slab->retained_capacity_bytes = 0;
}

/* The waiting block, if it is still there and large enough; else it is given up. */
static bool revive(tn_slab *slab, size_t size_bytes) {
    if (slab->retained_block == NULL) return false;
    const bool is_live = size_bytes <= slab->retained_capacity_bytes &&
                         tn_arena_revive(slab->arena, slab->retained_block,
                                         slab->retained_generation, size_bytes, &slab->handle);
    if (!is_live)
        tn_arena_drop_retained(slab->arena, slab->retained_block, slab->retained_generation);
    forget(slab);
    return is_live;
}

static tn_status allocate(tn_slab *slab, size_t size_bytes, tn_error *err) {
    /* after a shrink: what the window needed, so that it is not grown again plan by plan */
    const size_t hoped_bytes = tn_size_max(size_bytes, slab->shrunk_to_bytes);
    slab->shrunk_to_bytes = 0;
    if (hoped_bytes > size_bytes &&
        tn_arena_allocate(slab->arena, hoped_bytes, &slab->handle, NULL) == TN_OK) {
        tn_arena_resize_live(slab->arena, &slab->handle, size_bytes);
        return TN_OK;
    }
    return tn_arena_allocate(slab->arena, size_bytes, &slab->handle, err);
}

tn_status tn_slab_reserve(tn_slab *slab, size_t size_bytes, void **out_base, tn_error *err) {
    *out_base = NULL;
    if (slab->handle.arena == NULL) {
        if (size_bytes == 0) {
            *out_base = tn_empty_data();
            return TN_OK;
        }
        if (!revive(slab, size_bytes)) TN_TRY(allocate(slab, size_bytes, err));
    } else if (size_bytes > slab->handle.size_bytes) {
        TN_REQUIRE(size_bytes <= slab->handle.capacity_bytes, err, TN_BUSY,
                   "the run's slab has %zu bytes and cannot become %zu",
                   slab->handle.capacity_bytes, size_bytes);
        tn_arena_resize_live(slab->arena, &slab->handle, size_bytes);
    }
    /* relaxed: a figure */
    atomic_store_explicit(&slab->arena->slab_bytes, slab->handle.capacity_bytes,
                          memory_order_relaxed);
    *out_base = slab->handle.data;
    return TN_OK;
}

/* Notes the run in the window; true when the window has passed without a need for this size. */
static bool is_oversized(tn_slab *slab) {
    slab->window_bytes[slab->run_index] = slab->handle.arena == NULL ? 0 : slab->handle.size_bytes;
    slab->run_index = (slab->run_index + 1) % slab->window_runs;
    if (slab->run_index != 0 || slab->handle.arena == NULL) return false;
    const size_t largest_bytes = largest_of_window(slab);
    if (slab->handle.capacity_bytes <= tn_block_capacity(largest_bytes)) return false;
    slab->shrunk_to_bytes = largest_bytes;
    return true;
}

void tn_slab_end_run(tn_slab *slab) {
    const bool discard = is_oversized(slab);
    tn_allocation_handle *const handle = &slab->handle;
    if (handle->arena == NULL) return;
    slab->retained_block = discard ? NULL : handle->block;
    slab->retained_generation = handle->generation + 1; /* returning makes the old one stale */
    slab->retained_capacity_bytes = handle->capacity_bytes;
    (void)tn_arena_return(slab->arena, handle, discard);
    if (discard) {
        forget(slab);
        atomic_store_explicit(&slab->arena->slab_bytes, 0, memory_order_relaxed);
    }
}

void tn_slab_deinit(tn_slab *slab) {
    if (slab->arena == NULL) return;
    if (slab->handle.arena != NULL) {
        (void)tn_arena_return(slab->arena, &slab->handle, true);
    } else if (slab->retained_block != NULL) {
        tn_arena_drop_retained(slab->arena, slab->retained_block, slab->retained_generation);
    }
    memset(slab, 0, sizeof *slab);
}
