/* What the tests of the arenas share: a root with one arena of either kind over a child of it. */
#ifndef TN_MEMORY_ARENA_FIXTURE_H
#define TN_MEMORY_ARENA_FIXTURE_H

#include <string.h>

#include <tenure/arena.h>

#include "harness.h"
#include "memory/arena_state.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1 << 20)

typedef struct arena_fixture {
    tn_allocator *root;
    tn_allocator *node;
    tn_execution_arena *execution; /* one of the two */
    tn_io_arena *io;
    tn_arena *arena;
} arena_fixture;

static inline void fixture_init_with(arena_fixture *fixture, bool is_io,
                                     const tn_allocator_options *root_options,
                                     const tn_arena_options *options) {
    const tn_allocator_options named = {.name = is_io ? "io" : "execution"};
    memset(fixture, 0, sizeof *fixture);
    ASSERT_OK(tn_allocator_create_root(root_options, &fixture->root, NULL));
    ASSERT_OK(tn_allocator_create_child(fixture->root, &named, &fixture->node, NULL));
    if (is_io) {
        ASSERT_OK(tn_io_arena_create(fixture->node, options, &fixture->io, NULL));
        fixture->arena = tn_io_arena_as_arena(fixture->io);
    } else {
        ASSERT_OK(tn_execution_arena_create(fixture->node, options, &fixture->execution, NULL));
        fixture->arena = tn_execution_arena_as_arena(fixture->execution);
    }
}

static inline void fixture_init(arena_fixture *fixture, bool is_io) {
    fixture_init_with(fixture, is_io, NULL, NULL);
}

static inline tn_arena_stats stats_of(const tn_arena *arena) {
    tn_arena_stats stats = {.struct_size = sizeof stats};
    tn_arena_get_stats(arena, &stats);
    return stats;
}

/* Lists, counters, and the tree: what is live or retained is what the node is charged for. */
static inline void fixture_check(const arena_fixture *fixture) {
    tn_error err;
    const tn_arena_stats stats = stats_of(fixture->arena);
    tn_arena_enter(fixture->arena);
    assert_true(tn_arena_check(fixture->arena));
    tn_arena_leave(fixture->arena);
    if (tn_allocator_verify(fixture->root, &err) != TN_OK) fail_msg("%s", err.message);
    assert_int_equal(stats.live_capacity_bytes + stats.retained_bytes,
                     tn_allocator_charged(fixture->node));
}

/* Everything must have come back. */
static inline void fixture_deinit(arena_fixture *fixture) {
    tn_error err;
    fixture_check(fixture);
    assert_int_equal(stats_of(fixture->arena).live_bytes, 0);
    tn_execution_arena_destroy(fixture->execution);
    tn_io_arena_release(fixture->io);
    if (tn_allocator_close(fixture->node, &err) != TN_OK) fail_msg("%s", err.message);
    tn_allocator_release(fixture->node);
    assert_int_equal(tn_allocator_charged(fixture->root), 0);
    if (tn_allocator_verify(fixture->root, &err) != TN_OK) fail_msg("%s", err.message);
    if (tn_allocator_close(fixture->root, &err) != TN_OK) fail_msg("%s", err.message);
    tn_allocator_release(fixture->root);
}

static inline tn_allocation_handle take(const arena_fixture *fixture, size_t size_bytes) {
    tn_allocation_handle handle;
    ASSERT_OK(tn_arena_allocate(fixture->arena, size_bytes, &handle, NULL));
    return handle;
}

static inline void give(tn_allocation_handle *handle) {
    ASSERT_OK(tn_allocation_handle_reset(handle));
}

/* Takes and gives back at once, so that a block of this size is retained. */
static inline void warm(const arena_fixture *fixture, size_t size_bytes) {
    tn_allocation_handle handle = take(fixture, size_bytes);
    give(&handle);
}

/* Runs `body` once over each kind of arena. */
static inline void for_both_arenas(void (*body)(arena_fixture *fixture)) {
    for (int is_io = 0; is_io < 2; is_io++) {
        arena_fixture fixture;
        fixture_init(&fixture, is_io == 1);
        body(&fixture);
        fixture_deinit(&fixture);
    }
}

#endif
