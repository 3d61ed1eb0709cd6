/* The slab: one block per context, as large as the largest plan of its window. */
#include "memory/arena_fixture.h"

static void run_with(const arena_fixture *fixture, size_t size_bytes) {
    void *base = NULL;
    ASSERT_OK(tn_execution_arena_begin_run(fixture->execution, NULL));
    ASSERT_OK(tn_execution_arena_reserve_slab(fixture->execution, size_bytes, &base, NULL));
    assert_non_null(base);
    memset(base, 1, size_bytes);
    assert_int_equal(stats_of(fixture->arena).live_bytes, size_bytes);
    tn_execution_arena_end_run(fixture->execution);
    assert_int_equal(stats_of(fixture->arena).live_bytes, 0);
}

static void slab_is_live_in_a_run_and_retained_between(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);

    for (int run = 0; run < 10; run++) run_with(&fixture, 3 * MIB);

    const tn_arena_stats stats = stats_of(fixture.arena);
    assert_int_equal(stats.retained_bytes, 3 * MIB);
    assert_int_equal(stats.sys_allocs, 1);
    assert_int_equal(stats.hits, 9);
    assert_int_equal(stats.slab_bytes, 3 * MIB);
    assert_int_equal(stats.live_peak_bytes, 3 * MIB);
    fixture_deinit(&fixture);
}

static void slab_prefix_serves_far_smaller_plans(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);

    for (int run = 0; run < 100; run++) run_with(&fixture, run % 2 == 0 ? 16 * MIB : 10 * KIB);

    assert_int_equal(stats_of(fixture.arena).sys_allocs, 1);
    assert_int_equal(stats_of(fixture.arena).retained_bytes, 16 * MIB);
    fixture_deinit(&fixture);
}

static void slab_that_grows_never_exists_twice(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    tn_allocator_set_limit(fixture.node, 9 * MIB);
    run_with(&fixture, 5 * MIB);

    run_with(&fixture, 9 * MIB); /* fits only because the old one goes first */

    tn_allocator_stats node = {.struct_size = sizeof node};
    tn_allocator_get_stats(fixture.node, &node);
    assert_int_equal(node.peak_bytes, 9 * MIB);
    fixture_deinit(&fixture);
}

static void slab_shrinks_once_per_window_to_its_largest_plan(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    run_with(&fixture, 100 * MIB);
    for (int run = 1; run < TN_RETENTION_WINDOW_RUNS; run++) run_with(&fixture, 4 * MIB);
    assert_int_equal(stats_of(fixture.arena).retained_bytes, 100 * MIB);
    run_with(&fixture, 6 * MIB);
    for (int run = 1; run < TN_RETENTION_WINDOW_RUNS; run++) run_with(&fixture, 4 * MIB);
    const uint64_t sys_allocs = stats_of(fixture.arena).sys_allocs;

    for (int run = 0; run < 100; run++) run_with(&fixture, run % 2 == 0 ? 4 * MIB : 6 * MIB);

    assert_int_equal(stats_of(fixture.arena).retained_bytes, 6 * MIB);
    assert_int_equal(stats_of(fixture.arena).sys_allocs, sys_allocs + 1);
    fixture_deinit(&fixture);
}

static void slab_larger_in_one_run_is_busy(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    void *base = NULL;
    void *again = NULL;
    ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, NULL));
    ASSERT_OK(tn_execution_arena_reserve_slab(fixture.execution, 100 * KIB, &base, NULL));

    ASSERT_OK(tn_execution_arena_reserve_slab(fixture.execution, 50 * KIB, &again, NULL));
    assert_ptr_equal(again, base);
    ASSERT_STATUS(TN_BUSY,
                  tn_execution_arena_reserve_slab(fixture.execution, 101 * KIB, &again, NULL));

    assert_null(again);
    assert_int_equal(stats_of(fixture.arena).live_bytes, 100 * KIB);
    tn_execution_arena_end_run(fixture.execution);
    fixture_deinit(&fixture);
}

static void slab_obeys_trim_cap_and_reclaim(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    run_with(&fixture, 8 * MIB);
    assert_int_equal(tn_execution_arena_trim(fixture.execution, TN_TRIM_HARD), 8 * MIB);
    run_with(&fixture, 8 * MIB);
    assert_int_equal(tn_execution_arena_set_retention_cap(fixture.execution, 0), 8 * MIB);
    run_with(&fixture, 8 * MIB);
    assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);
    (void)tn_execution_arena_set_retention_cap(fixture.execution, TN_RETENTION_UNLIMITED);
    run_with(&fixture, 8 * MIB);
    tn_allocator_set_limit(fixture.root, 10 * MIB);
    tn_buffer buffer;

    ASSERT_OK(tn_buffer_create(fixture.root, 5 * MIB, 0, &buffer, NULL));

    assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);
    ASSERT_OK(tn_buffer_release(&buffer));
    run_with(&fixture, 8 * MIB);
    fixture_deinit(&fixture);
}

static void slab_lies_in_an_io_arena_too(void **state) {
    (void)state;
    arena_fixture fixture;
    tn_slab slab;
    void *first = NULL;
    void *base = NULL;
    fixture_init(&fixture, true);
    tn_slab_init(&slab, fixture.arena, 0);
    for (size_t run = 0; run < 5; run++) {
        ASSERT_OK(tn_arena_begin_run(fixture.arena, NULL));
        ASSERT_OK(tn_slab_reserve(&slab, 2 * MIB - run, &base, NULL));
        if (run == 0) first = base;
        assert_ptr_equal(base, first);
        tn_allocation_handle output = take(&fixture, 2 * MIB);
        assert_ptr_not_equal(output.data, base);
        give(&output);
        tn_slab_end_run(&slab);
        tn_arena_end_run(fixture.arena);
    }
    assert_int_equal(stats_of(fixture.arena).sys_allocs, 2);

    tn_slab_deinit(&slab);

    assert_int_equal(stats_of(fixture.arena).retained_bytes, 2 * MIB);
    fixture_deinit(&fixture);
}

static void second_run_of_one_arena_is_busy(void **state) {
    (void)state;
    tn_error err;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, &err));

    ASSERT_STATUS(TN_BUSY, tn_execution_arena_begin_run(fixture.execution, &err));
    assert_non_null(strstr(err.message, "execution"));
    ASSERT_STATUS(TN_BUSY, tn_arena_begin_run(fixture.arena, &err));

    tn_execution_arena_end_run(fixture.execution);
    ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, &err));
    tn_execution_arena_end_run(fixture.execution);
    fixture_deinit(&fixture);
}

static void end_of_a_run_by_its_common_name_gives_the_slab_back(void **state) {
    (void)state;
    void *base = NULL;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    ASSERT_OK(tn_arena_begin_run(fixture.arena, NULL));
    ASSERT_OK(tn_execution_arena_reserve_slab(fixture.execution, 5000, &base, NULL));

    tn_arena_end_run(fixture.arena);

    assert_int_equal(stats_of(fixture.arena).live_bytes, 0);
    assert_true(stats_of(fixture.arena).retained_bytes >= 5000);
    fixture_deinit(&fixture);
}

static void slab_of_zero_bytes_needs_no_block(void **state) {
    (void)state;
    arena_fixture fixture;
    void *base = NULL;
    fixture_init(&fixture, false);
    ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, NULL));

    ASSERT_OK(tn_execution_arena_reserve_slab(fixture.execution, 0, &base, NULL));

    assert_non_null(base);
    tn_execution_arena_end_run(fixture.execution);
    assert_int_equal(stats_of(fixture.arena).sys_allocs, 0);
    fixture_deinit(&fixture);
}

static void slab_past_the_limit_is_refused_and_the_next_run_works(void **state) {
    (void)state;
    arena_fixture fixture;
    void *base = NULL;
    fixture_init(&fixture, false);
    tn_allocator_set_limit(fixture.node, 8 * MIB);
    run_with(&fixture, 4 * MIB);

    ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, NULL));
    ASSERT_STATUS(TN_LIMIT,
                  tn_execution_arena_reserve_slab(fixture.execution, 8 * MIB + 1, &base, NULL));
    assert_null(base);
    tn_execution_arena_end_run(fixture.execution);

    run_with(&fixture, 8 * MIB);
    fixture_deinit(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(slab_is_live_in_a_run_and_retained_between),
        T(slab_prefix_serves_far_smaller_plans),
        T(slab_that_grows_never_exists_twice),
        T(slab_shrinks_once_per_window_to_its_largest_plan),
        T(slab_larger_in_one_run_is_busy),
        T(slab_obeys_trim_cap_and_reclaim),
        T(slab_lies_in_an_io_arena_too),
        T(second_run_of_one_arena_is_busy),
        T(end_of_a_run_by_its_common_name_gives_the_slab_back),
        T(slab_of_zero_bytes_needs_no_block),
        T(slab_past_the_limit_is_refused_and_the_next_run_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
