/* What an arena keeps between uses: caps, trims, windows of runs, and what it gives back when a
 * limit would refuse somebody else. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/arena_state.h"
#include "memory/poison.h"

/* Marks the pages of retained blocks as free to take; each block counts once. Entered. */
static size_t soften(tn_arena *arena) {
    size_t given_bytes = 0;
    if (arena->allocator->source->kind != TN_SOURCE_SYSTEM) return 0;
    tn_ledger *next = NULL;
    for (tn_ledger *record = arena->pool.lru_oldest; record != NULL; record = next) {
        const uint32_t newer = record->link.links.lru_newer;
        next = newer == TN_RECORD_NONE ? NULL : tn_pool_record(&arena->pool, newer);
        if ((record->u.returned_at_run & TN_RETURNED_SOFTENED) != 0) continue;
        record->u.returned_at_run |= TN_RETURNED_SOFTENED;
        given_bytes += tn_page_source_system_soften(record->data, record->capacity_bytes);
    }
    return given_bytes;
}

/* Entered. What leaves the pool is in *inout_chain. */
static size_t trim_entered(tn_arena *arena, tn_trim_level level, tn_pool_chain *inout_chain) {
    if (level == TN_TRIM_SOFT) return soften(arena);
    tn_block_pool_shrink(&arena->pool, 0, false, inout_chain);
    if (tn_counter_get(&arena->pool.live_count) == 0) arena->pool.largest_capacity_bytes = 0;
    return (size_t)inout_chain->size_bytes;
}

/* Enters from any thread; false when an execution arena is in another thread's run. */
static bool enter_from_anywhere(tn_arena *arena) {
    if (arena->is_shared) {
        tn_arena_enter(arena);
        return true;
    }
    for (;;) {
        uint32_t seen = TN_CLAIM_IDLE;
        /* acquire: the pool is read next; seq_cst on failure: see request_trim */
        if (atomic_compare_exchange_strong(&arena->claim, &seen, TN_CLAIM_TAKEN)) return true;
        if (seen == TN_CLAIM_TAKEN) continue; /* for the length of one operation */
        /* relaxed: only our own value matters */
        return atomic_load_explicit(&arena->run_thread, memory_order_relaxed) ==
               (uintptr_t)pthread_self();
    }
}

/* Leaves and gives the chain's blocks up. An execution arena stays claimed meanwhile: its owner may
 * begin a run at any moment, and only the claim keeps it out. */
static void leave_from_anywhere(tn_arena *arena, const tn_pool_chain *chain) {
    if (arena->is_shared) {
        tn_arena_leave(arena);
        tn_arena_give_chain(arena, chain);
        return;
    }
    tn_arena_give_chain_entered(arena, chain);
    uint32_t seen = TN_CLAIM_TAKEN;
    /* in our own run the claim stays what it is */
    (void)atomic_compare_exchange_strong(&arena->claim, &seen, TN_CLAIM_IDLE);
}

size_t tn_arena_trim(tn_arena *arena, tn_trim_level level) {
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    if (!enter_from_anywhere(arena)) {
        /* seq_cst with end_run: either it sees the request, or the second try finds it idle */
        atomic_store(&arena->trim_request, (uint32_t)level + 1);
        if (!enter_from_anywhere(arena)) return 0;
        atomic_store(&arena->trim_request, 0);
    }
    const size_t given_bytes = trim_entered(arena, level, &chain);
    leave_from_anywhere(arena, &chain);
    return given_bytes;
}

size_t tn_arena_shrink(tn_arena *arena, uint64_t target_bytes) {
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    if (!enter_from_anywhere(arena)) return 0;
    tn_block_pool_shrink(&arena->pool, target_bytes, false, &chain);
    leave_from_anywhere(arena, &chain);
    return (size_t)chain.size_bytes;
}

static size_t reclaim(tn_reclaimer *reclaimer, size_t wanted_bytes, tn_trim_level level) {
    tn_arena *const arena = (tn_arena *)((char *)reclaimer - offsetof(tn_arena, reclaimer));
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    if (wanted_bytes == SIZE_MAX) return tn_arena_trim(arena, level);
    if (!enter_from_anywhere(arena)) return 0;
    const uint64_t retained_bytes = tn_pool_retained_bytes(&arena->pool);
    const uint64_t target_bytes = retained_bytes > wanted_bytes ? retained_bytes - wanted_bytes : 0;
    tn_block_pool_shrink(&arena->pool, target_bytes, true, &chain);
    leave_from_anywhere(arena, &chain);
    return (size_t)chain.size_bytes;
}

/* For who looks without entering: the two figures it follows from may be of different moments. */
static uint64_t retained_or_zero(uint64_t total, uint64_t live) {
    return total > live ? total - live : 0;
}

static void figures(const tn_reclaimer *reclaimer, tn_arena_figures *out) {
    const tn_arena *const arena =
        (const tn_arena *)((const char *)reclaimer - offsetof(tn_arena, reclaimer));
    out->live_bytes = tn_counter_get(&arena->pool.live_bytes);
    out->live_capacity_bytes = tn_counter_get(&arena->pool.live_capacity_bytes);
    out->retained_bytes =
        retained_or_zero(tn_counter_get(&arena->pool.total_bytes), out->live_capacity_bytes);
    out->leased_bytes = tn_counter_get(&arena->pool.leased_bytes);
    out->live_peak_bytes = tn_counter_get(&arena->pool.live_peak_bytes);
}

static tn_status check_options(const tn_arena_options *options, tn_error *err) {
    TN_REQUIRE(options->window_runs <= TN_SLAB_WINDOW_MAX, err, TN_INVALID_ARGUMENT,
               "a window of %u runs, at most %d are possible", options->window_runs,
               TN_SLAB_WINDOW_MAX);
    return TN_OK;
}

tn_status tn_arena_state_create(tn_allocator *allocator, const tn_arena_options *options,
                                bool is_shared, size_t state_bytes, void **out, tn_error *err) {
    tn_arena_options known;
    *out = NULL;
    TN_REQUIRE(allocator != NULL, err, TN_INVALID_ARGUMENT, "an arena needs an allocator");
    TN_TRY(tn_options_copy(&known, sizeof known, options, err));
    TN_TRY(check_options(&known, err));
    tn_arena *const arena = tn_node_take_metadata(allocator, state_bytes);
    if (arena == NULL) return tn_out_of_memory(allocator, state_bytes, state_bytes, err);
    arena->state_bytes = state_bytes;
    arena->is_shared = is_shared;
    arena->is_adaptive = known.is_adaptive;
    arena->window_runs = known.window_runs == 0 ? TN_RETENTION_WINDOW_RUNS : known.window_runs;
    arena->events = known.events;
    arena->owner_count = 1;
    arena->fault = allocator->root->fault;
    arena->allocator = tn_allocator_retain(allocator);
    tn_lock_init(&arena->lock);
    tn_block_pool_init(
        &arena->pool, known.has_retention_cap ? known.retention_cap_bytes : TN_RETENTION_UNLIMITED);
    arena->reclaimer.reclaim = reclaim;
    arena->reclaimer.figures = figures;
    arena->number = tn_reclaimer_register(&arena->reclaimer, allocator);
    *out = arena;
    return TN_OK;
}

size_t tn_arena_set_retention_cap(tn_arena *arena, uint64_t cap_bytes) {
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    tn_arena_enter(arena);
    tn_counter_set(&arena->pool.cap_bytes, cap_bytes);
    tn_block_pool_shrink(&arena->pool, cap_bytes, true, &chain);
    tn_arena_leave(arena);
    tn_arena_give_chain(arena, &chain);
    return (size_t)chain.size_bytes;
}

uint64_t tn_arena_retention_cap(const tn_arena *arena) {
    return tn_counter_get(&arena->pool.cap_bytes);
}

void tn_arena_reset_peak(tn_arena *arena) {
    tn_block_pool *const pool = &arena->pool;
    tn_arena_enter(arena);
    tn_counter_set(&pool->live_peak_bytes, tn_counter_get(&pool->live_bytes));
    tn_counter_set(&pool->live_capacity_peak_bytes, tn_counter_get(&pool->live_capacity_bytes));
    tn_counter_set(&pool->retained_peak_bytes, tn_pool_retained_bytes(pool));
    tn_arena_leave(arena);
}

void tn_arena_count_copy(tn_arena *arena, size_t size_bytes) {
    tn_arena_enter(arena);
    tn_counter_add(&arena->pool.copies, 1);
    tn_counter_add(&arena->pool.copied_bytes, size_bytes);
    tn_arena_leave(arena);
}

tn_allocator *tn_arena_allocator(const tn_arena *arena) {
    return arena->allocator;
}

void tn_arena_get_stats(const tn_arena *arena, tn_arena_stats *out) {
    const tn_block_pool *const pool = &arena->pool;
    const size_t struct_size =
        out->struct_size == 0 ? sizeof *out : tn_size_min(out->struct_size, sizeof *out);
    const uint64_t leased_count = tn_counter_get(&pool->leased_count);
    tn_arena_stats known;
    memset(&known, 0, sizeof known); /* padding too: callers compare */
    known.struct_size = struct_size;
    known.live_bytes = tn_counter_get(&pool->live_bytes);
    known.live_capacity_bytes = tn_counter_get(&pool->live_capacity_bytes);
    known.leased_bytes = tn_counter_get(&pool->leased_bytes);
    known.retained_bytes =
        retained_or_zero(tn_counter_get(&pool->total_bytes), known.live_capacity_bytes);
    known.live_peak_bytes = tn_counter_get(&pool->live_peak_bytes);
    known.live_capacity_peak_bytes = tn_counter_get(&pool->live_capacity_peak_bytes);
    known.retained_peak_bytes = tn_counter_get(&pool->retained_peak_bytes);
    known.allocated_count = tn_counter_get(&pool->live_count) - leased_count;
    known.leased_count = leased_count;
    known.retained_count =
        retained_or_zero(tn_counter_get(&pool->total_count), tn_counter_get(&pool->live_count));
    known.hits = tn_counter_get(&pool->hits);
    known.misses = tn_counter_get(&pool->misses);
    known.sys_allocs = tn_counter_get(&pool->sys_allocs);
    known.sys_frees = tn_counter_get(&pool->sys_frees);
    known.evictions = tn_counter_get(&pool->evictions);
    known.copies = tn_counter_get(&pool->copies);
    known.copied_bytes = tn_counter_get(&pool->copied_bytes);
    known.adopted = tn_counter_get(&pool->adopted);
    known.slab_bytes = atomic_load_explicit(&arena->slab_bytes, memory_order_relaxed);
    known.run_count = tn_counter_get(&pool->run_count);
    known.retention_cap_bytes = tn_counter_get(&pool->cap_bytes);
    known.is_adaptive = arena->is_adaptive;
    memcpy(out, &known, struct_size);
}

/* Waits for a trim at work; false when the arena is in a run. */
static bool claim_run(tn_arena *arena) {
    uint32_t seen = TN_CLAIM_IDLE;
    /* acquire: what the last holder did to the pool is seen */
    while (!atomic_compare_exchange_weak_explicit(&arena->claim, &seen, TN_CLAIM_RUN,
                                                  memory_order_acquire, memory_order_relaxed)) {
        if (seen == TN_CLAIM_RUN) return false;
        seen = TN_CLAIM_IDLE;
        (void)sched_yield();
    }
    return true;
}

tn_status tn_arena_begin_run(tn_arena *arena, tn_error *err) {
    if (arena->is_shared) return TN_OK;
    TN_REQUIRE(claim_run(arena), err, TN_BUSY, "the arena of allocator %s is in a run already",
               tn_allocator_name(arena->allocator));
    /* relaxed: read by the same thread only */
    atomic_store_explicit(&arena->run_thread, (uintptr_t)pthread_self(), memory_order_relaxed);
    arena->is_in_run = true;
    return TN_OK;
}

static void end_run_entered(tn_arena *arena, tn_pool_chain *inout_chain) {
    tn_counter_add(&arena->pool.run_count, 1);
    if (arena->is_adaptive) {
        tn_block_pool_expire(&arena->pool, arena->window_runs, inout_chain);
    }
}

void tn_arena_end_run(tn_arena *arena) {
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    if (arena->slab != NULL) tn_slab_end_run(arena->slab);
    tn_arena_enter(arena); /* free in an execution arena: the run is still going on */
    end_run_entered(arena, &chain);
    tn_arena_leave(arena);
    tn_arena_give_chain(arena, &chain);
    if (arena->is_shared || !arena->is_in_run) return;
    arena->is_in_run = false;
    atomic_store_explicit(&arena->run_thread, 0, memory_order_relaxed);
    /* seq_cst with tn_arena_trim: the request is looked for after the arena is idle */
    atomic_store(&arena->claim, TN_CLAIM_IDLE);
    const uint32_t request = atomic_exchange(&arena->trim_request, 0);
    if (request != 0) (void)tn_arena_trim(arena, (tn_trim_level)(request - 1));
}

void tn_arena_state_close(tn_arena *arena) {
    tn_pool_chain chain = TN_POOL_CHAIN_EMPTY;
    tn_arena_enter(arena);
    arena->is_closed = true;
    tn_counter_set(&arena->pool.cap_bytes, 0);
    tn_block_pool_shrink(&arena->pool, 0, false, &chain);
    tn_arena_leave(arena);
    tn_arena_give_chain(arena, &chain);
}
