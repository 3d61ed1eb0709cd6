/* The arenas' rules: reuse, waste, caps, order of release, figures. Tests are named after the
 * numbered scenarios of the arenas' requirements. */
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>

#include "memory/arena_fixture.h"
#include "memory/poison.h"
#include "memory/size_class.h"
#include "oom_sweep.h"

static void size_classes_are_tight_and_ordered(void **state) {
    (void)state;
    for (uint32_t c = 0; c < TN_CLASS_COUNT - 8; c++) {
        const size_t bytes = tn_size_class_bytes(c);
        assert_int_equal(tn_size_class_ceil(bytes), c);
        assert_int_equal(tn_size_class_floor(bytes), c);
        assert_int_equal(tn_size_class_ceil(bytes + 1), c + 1);
        assert_int_equal(tn_size_class_floor(bytes + 63), c);
        /* at most 12.5 % is lost to rounding from 512 bytes on */
        if (bytes >= 512) assert_true((tn_size_class_bytes(c + 1) - bytes) * 8 <= bytes);
    }
    assert_int_equal(tn_size_class_bytes(TN_SMALL_CLASS_COUNT), 65536);
    assert_int_equal(tn_size_class_bytes(TN_SMALL_CLASS_COUNT - 1), TN_SMALL_MAX_BYTES);
}

static void reuse_keeps_address_and_capacity(arena_fixture *fixture) {
    tn_allocation_handle a = take(fixture, 64);
    void *const address = a.data;
    give(&a);

    tn_allocation_handle b = take(fixture, 32);

    assert_ptr_equal(b.data, address);
    assert_int_equal(b.size_bytes, 32);
    assert_int_equal(b.capacity_bytes, 64);
    assert_int_equal(stats_of(fixture->arena).retained_bytes, 0);
    assert_int_equal(stats_of(fixture->arena).sys_allocs, 1);
    give(&b);
}

static void scenario_01_reuse_keeps_address_and_capacity(void **state) {
    (void)state;
    for_both_arenas(reuse_keeps_address_and_capacity);
}

static void smallest_class_that_fits_is_used(arena_fixture *fixture) {
    tn_allocation_handle small = take(fixture, 1024);
    tn_allocation_handle large = take(fixture, 1536);
    void *const small_address = small.data;
    give(&small);
    give(&large); /* the larger one is the most recent */

    tn_allocation_handle again = take(fixture, 1000);

    assert_ptr_equal(again.data, small_address);
    assert_int_equal(stats_of(fixture->arena).retained_bytes, 1536);
    give(&again);
}

static void scenario_02_smallest_class_that_fits_is_used(void **state) {
    (void)state;
    for_both_arenas(smallest_class_that_fits_is_used);
}

static void most_recent_of_equals_is_used(arena_fixture *fixture) {
    tn_allocation_handle a = take(fixture, 200 * KIB);
    tn_allocation_handle b = take(fixture, 200 * KIB);
    void *const last = a.data;
    give(&b);
    give(&a);

    tn_allocation_handle again = take(fixture, 200 * KIB);

    assert_ptr_equal(again.data, last);
    give(&again);
}

static void scenario_02_most_recent_of_equals_is_used(void **state) {
    (void)state;
    for_both_arenas(most_recent_of_equals_is_used);
}

static void all_too_small_gets_a_new_block(arena_fixture *fixture) {
    warm(fixture, 100);
    warm(fixture, 1000);

    tn_allocation_handle large = take(fixture, 10000);

    memset(large.data, 1, 10000);
    assert_true(large.capacity_bytes >= 10000);
    fixture_check(fixture);
    const tn_arena_stats stats = stats_of(fixture->arena);
    assert_int_equal(stats.sys_allocs, 3);
    assert_int_equal(stats.sys_allocs - stats.sys_frees,
                     stats.retained_count + stats.allocated_count);
    give(&large);
}

static void scenario_03_all_too_small_gets_a_new_block(void **state) {
    (void)state;
    for_both_arenas(all_too_small_gets_a_new_block);
}

#if defined(TN_HAS_ASAN)
#define GROWING_STEPS 1500 /* poisoning what is retained takes time in proportion to its size */
#else
#define GROWING_STEPS 10000
#endif

static void scenario_04_growing_requests_stay_bounded(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    for (size_t n = 1; n <= GROWING_STEPS; n++) {
        tn_allocation_handle handle = take(&fixture, n * 4 * KIB);
        const tn_arena_stats stats = stats_of(fixture.arena);
        assert_true(stats.live_capacity_bytes + stats.retained_bytes <= 2 * n * 4 * KIB);
        give(&handle);
        assert_true(stats_of(fixture.arena).retained_bytes <= 2 * n * 4 * KIB);
    }
    fixture_deinit(&fixture);
}

static void scenario_04_idle_classes_go_with_the_next_miss(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    warm(&fixture, 8 * MIB);
    warm(&fixture, 1000);
    for (int i = 0; i < 17; i++) warm(&fixture, 3 * MIB);

    warm(&fixture, 6 * MIB); /* a miss: 3 MiB was used lately, 1000 bytes not, 8 MiB fits larger */

    assert_int_equal(stats_of(fixture.arena).retained_bytes, 17 * MIB);
    fixture_deinit(&fixture);
}

static void waste_bound_keeps_large_blocks(arena_fixture *fixture) {
    warm(fixture, 400 * MIB);
    tn_allocation_handle tiny = take(fixture, 4);

    assert_true(tiny.capacity_bytes <= 128);
    assert_int_equal(stats_of(fixture->arena).retained_bytes, 400 * MIB);
    tn_allocation_handle large = take(fixture, 400 * MIB);
    assert_int_equal(stats_of(fixture->arena).hits, 1);

    give(&large);
    give(&tiny);
}

static void scenario_05_waste_bound_keeps_large_blocks(void **state) {
    (void)state;
    for_both_arenas(waste_bound_keeps_large_blocks);
}

static void waste_bound_is_exact(arena_fixture *fixture) {
    static const struct {
        size_t retained_bytes;
        size_t request_bytes;
        bool is_hit;
    } cases[] = {
        {2048, 1024, true},
        {2048, 1023, false},
        {128 * KIB, 64 * KIB, true},
        {128 * KIB, 64 * KIB - 1, false},
        {5 * MIB, 4 * MIB, true},
        {5 * MIB + 4 * KIB, 4 * MIB, false},
        {2 * MIB - 4 * KIB, 1 * MIB - 2 * KIB, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)tn_arena_trim(fixture->arena, TN_TRIM_HARD);
        warm(fixture, cases[i].retained_bytes);
        const uint64_t hits_before = stats_of(fixture->arena).hits;
        warm(fixture, cases[i].request_bytes);
        assert_int_equal(stats_of(fixture->arena).hits - hits_before, cases[i].is_hit);
    }
}

static void scenario_05_waste_bound_is_exact(void **state) {
    (void)state;
    for_both_arenas(waste_bound_is_exact);
}

static void zero_bytes_take_no_block(arena_fixture *fixture) {
    warm(fixture, 64);
    const tn_arena_stats before = stats_of(fixture->arena);

    tn_allocation_handle a = take(fixture, 0);
    tn_allocation_handle b = take(fixture, 0);

    assert_non_null(a.data);
    assert_ptr_equal(a.data, b.data);
    assert_int_equal((uintptr_t)a.data % TN_BUFFER_ALIGNMENT, 0);
    assert_true(tn_allocation_handle_is_live(&a));
    const tn_arena_stats after = stats_of(fixture->arena);
    assert_memory_equal(&before, &after, sizeof before);
    give(&a);
    ASSERT_OK(tn_arena_free(fixture->arena, &b, NULL));
    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_reset(&a));
}

static void scenario_06_zero_bytes_take_no_block(void **state) {
    (void)state;
    for_both_arenas(zero_bytes_take_no_block);
}

static void absurd_sizes_are_refused(arena_fixture *fixture) {
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 64, SIZE_MAX / 2 + 1, (size_t)1 << 48};
    const tn_arena_stats before = stats_of(fixture->arena);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tn_allocation_handle handle;
        ASSERT_STATUS(TN_OUT_OF_MEMORY, tn_arena_allocate(fixture->arena, sizes[i], &handle, NULL));
        assert_false(tn_allocation_handle_is_live(&handle));
    }
    const tn_arena_stats after = stats_of(fixture->arena);
    assert_memory_equal(&before, &after, sizeof before);
}

static void scenario_07_absurd_sizes_are_refused(void **state) {
    (void)state;
    for_both_arenas(absurd_sizes_are_refused);
}

static void every_class_is_aligned(arena_fixture *fixture) {
    for (uint32_t c = 0; tn_size_class_bytes(c) <= 8 * MIB; c++) {
        const size_t size_bytes = tn_size_class_bytes(c);
        for (size_t less = 0; less < 2; less++) {
            tn_allocation_handle handle = take(fixture, size_bytes - less);
            const uintptr_t address = (uintptr_t)handle.data;
            assert_int_equal(address % TN_BUFFER_ALIGNMENT, 0);
            if (size_bytes >= 64 * KIB) assert_int_equal(address % (4 * KIB), 0);
            if (size_bytes - less >= 2 * MIB) assert_int_equal(address % (2 * MIB), 0);
            give(&handle);
        }
        (void)tn_arena_trim(fixture->arena, TN_TRIM_HARD);
    }
}

static void scenario_08_every_class_is_aligned(void **state) {
    (void)state;
    for_both_arenas(every_class_is_aligned);
}

static void double_free_is_dead(arena_fixture *fixture) {
    tn_allocation_handle handle = take(fixture, 100);
    tn_allocation_handle copy = handle;
    give(&handle);
    const tn_arena_stats before = stats_of(fixture->arena);

    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_reset(&handle));
    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_reset(&copy));
    tn_allocation_handle again = take(fixture, 100); /* the same slot, another generation */
    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_reset(&copy));
    ASSERT_STATUS(TN_DEAD, tn_arena_free(fixture->arena, &copy, NULL));
    tn_buffer buffer;
    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_release(&copy, &buffer, NULL));

    assert_int_equal(stats_of(fixture->arena).live_bytes, 100);
    give(&again);
    assert_int_equal(stats_of(fixture->arena).retained_bytes, before.retained_bytes);
    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_reset(NULL));
}

static void scenario_09_double_free_is_dead(void **state) {
    (void)state;
    for_both_arenas(double_free_is_dead);
}

static void scenario_11_foreign_arena_is_refused(void **state) {
    (void)state;
    arena_fixture a;
    arena_fixture b;
    tn_error err;
    fixture_init(&a, false);
    fixture_init(&b, true);
    tn_allocation_handle handle = take(&a, 100);
    const tn_arena_stats a_before = stats_of(a.arena);
    const tn_arena_stats b_before = stats_of(b.arena);
    tn_io_lease *lease = NULL;

    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_arena_free(b.arena, &handle, &err));
    assert_non_null(strstr(err.message, "execution"));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_io_arena_export(b.io, &handle, &lease, &err));

    assert_null(lease);
    assert_true(tn_allocation_handle_is_live(&handle));
    const tn_arena_stats a_after = stats_of(a.arena);
    const tn_arena_stats b_after = stats_of(b.arena);
    assert_memory_equal(&a_before, &a_after, sizeof a_before);
    assert_memory_equal(&b_before, &b_after, sizeof b_before);
    ASSERT_OK(tn_arena_free(a.arena, &handle, &err));
    fixture_deinit(&a);
    fixture_deinit(&b);
}

typedef struct system_fault {
    int failures_left;
    int asked;
} system_fault;

static bool fail_page_source(void *ctx, tn_fault_point point) {
    system_fault *const fault = ctx;
    if (point != TN_FAULT_PAGE_SOURCE || fault->failures_left == 0) return false;
    fault->asked++;
    fault->failures_left--;
    return true;
}

static void scenario_12_system_failure_trims_once_and_retries(void **state) {
    (void)state;
    for (int is_io = 0; is_io < 2; is_io++) {
        system_fault fault = {0};
        const tn_fault_injector injector = {.ctx = &fault, .should_fail = fail_page_source};
        const tn_allocator_options options = {.fault = &injector};
        arena_fixture fixture;
        fixture_init_with(&fixture, is_io == 1, &options, NULL);
        tn_allocation_handle live = take(&fixture, 1000);
        memset(live.data, 42, 1000);
        warm(&fixture, 2 * MIB);
        warm(&fixture, 3 * MIB);

        fault.failures_left = 1;
        tn_allocation_handle large = take(&fixture, 4 * MIB);
        assert_int_equal(fault.asked, 1);
        assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);
        give(&large);

        fault = (system_fault){.failures_left = 1000};
        tn_error err;
        ASSERT_STATUS(TN_OUT_OF_MEMORY, tn_arena_allocate(fixture.arena, 6 * MIB, &large, &err));
        assert_int_equal(fault.asked, 2);
        assert_int_equal(err.requested_bytes, 6 * MIB);
        assert_non_null(strstr(err.allocator, is_io == 1 ? "root/io" : "root/execution"));
        fault.failures_left = 0;

        for (int i = 0; i < 1000; i++) assert_int_equal(((char *)live.data)[i], 42);
        fixture_check(&fixture);
        give(&live);
        fixture_deinit(&fixture);
    }
}

#define MANY 5000

static void five_thousand_live_blocks(arena_fixture *fixture) {
    tn_allocation_handle *const handles = calloc(MANY, sizeof *handles);
    for (size_t i = 0; i < MANY; i++) {
        handles[i] = take(fixture, 64 + i % 4000);
        memset(handles[i].data, (int)(i % 251), 8);
    }
    assert_int_equal(stats_of(fixture->arena).allocated_count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(((unsigned char *)handles[i].data)[7], i % 251);
        give(&handles[i]);
    }
    free(handles);
}

static void scenario_13_five_thousand_live_blocks(void **state) {
    (void)state;
    for_both_arenas(five_thousand_live_blocks);
}

static void cap_of_the_second_evicts_the_first(arena_fixture *fixture) {
    (void)tn_arena_set_retention_cap(fixture->arena, 100 * KIB);
    tn_allocation_handle first = take(fixture, 96 * KIB);
    tn_allocation_handle second = take(fixture, 100 * KIB);
    void *const address = second.data;
    give(&first);
    give(&second);

    assert_int_equal(stats_of(fixture->arena).retained_bytes, 100 * KIB);
    assert_int_equal(stats_of(fixture->arena).evictions, 1);
    tn_allocation_handle again = take(fixture, 100 * KIB);
    assert_ptr_equal(again.data, address);
    give(&again);
}

static void scenario_15_cap_of_the_second_evicts_the_first(void **state) {
    (void)state;
    for_both_arenas(cap_of_the_second_evicts_the_first);
}

static void reuse_makes_a_block_most_recent(arena_fixture *fixture) {
    tn_allocation_handle a = take(fixture, 64 * KIB);
    tn_allocation_handle b = take(fixture, 256 * KIB);
    give(&a);
    give(&b);
    a = take(fixture, 64 * KIB);
    give(&a);

    (void)tn_arena_set_retention_cap(fixture->arena, 64 * KIB);

    assert_int_equal(stats_of(fixture->arena).retained_bytes, 64 * KIB);
    const uint64_t hits = stats_of(fixture->arena).hits;
    warm(fixture, 64 * KIB);
    assert_int_equal(stats_of(fixture->arena).hits, hits + 1);
}

static void scenario_16_reuse_makes_a_block_most_recent(void **state) {
    (void)state;
    for_both_arenas(reuse_makes_a_block_most_recent);
}

static void lower_cap_evicts_oldest_first(arena_fixture *fixture) {
    tn_allocation_handle handles[4];
    static const size_t sizes[] = {64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB};
    for (int i = 0; i < 4; i++) handles[i] = take(fixture, sizes[i]);
    for (int i = 0; i < 4; i++) give(&handles[i]);

    assert_int_equal(tn_arena_set_retention_cap(fixture->arena, 800 * KIB), 192 * KIB);

    assert_int_equal(stats_of(fixture->arena).retained_bytes, 768 * KIB);
    assert_int_equal(stats_of(fixture->arena).evictions, 2);
    assert_int_equal(tn_arena_set_retention_cap(fixture->arena, 800 * KIB), 0);
}

static void scenario_17_lower_cap_evicts_oldest_first(void **state) {
    (void)state;
    for_both_arenas(lower_cap_evicts_oldest_first);
}

static void cap_zero_keeps_nothing(arena_fixture *fixture) {
    (void)tn_arena_set_retention_cap(fixture->arena, 0);
    for (int i = 0; i < 3; i++) {
        tn_allocation_handle handle = take(fixture, 100);
        memset(handle.data, 1, 100);
        give(&handle);
        assert_int_equal(stats_of(fixture->arena).retained_bytes, 0);
        assert_int_equal(tn_allocator_charged(fixture->node), 0);
    }
    assert_int_equal(stats_of(fixture->arena).sys_frees, 3);
}

static void scenario_18_cap_zero_keeps_nothing(void **state) {
    (void)state;
    for_both_arenas(cap_zero_keeps_nothing);
}

static void oversized_return_spares_the_rest(arena_fixture *fixture) {
    (void)tn_arena_set_retention_cap(fixture->arena, 64 * MIB);
    tn_allocation_handle large = take(fixture, 65 * MIB);
    warm(fixture, 40 * MIB);

    give(&large);

    assert_int_equal(stats_of(fixture->arena).retained_bytes, 40 * MIB);
    assert_int_equal(stats_of(fixture->arena).sys_frees, 1);
}

static void scenario_19_oversized_return_spares_the_rest(void **state) {
    (void)state;
    for_both_arenas(oversized_return_spares_the_rest);
}

static void live_blocks_survive_cap_and_trim(arena_fixture *fixture) {
    tn_allocation_handle handle = take(fixture, 100 * KIB);
    memset(handle.data, 5, 100 * KIB);
    warm(fixture, 300 * KIB);

    (void)tn_arena_set_retention_cap(fixture->arena, 0);
    (void)tn_arena_trim(fixture->arena, TN_TRIM_HARD);
    (void)tn_arena_trim(fixture->arena, TN_TRIM_SOFT);
    (void)tn_arena_shrink(fixture->arena, 0);

    for (size_t i = 0; i < 100 * KIB; i += 1000) assert_int_equal(((char *)handle.data)[i], 5);
    assert_int_equal(stats_of(fixture->arena).live_bytes, 100 * KIB);
    give(&handle);
}

static void scenario_20_live_blocks_survive_cap_and_trim(void **state) {
    (void)state;
    for_both_arenas(live_blocks_survive_cap_and_trim);
}

static size_t resident_bytes(void) {
    char text[128] = {0};
    unsigned long long total = 0;
    unsigned long long resident = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    (void)fclose(file);
    assert_int_equal(sscanf(text, "%llu %llu", &total, &resident), 2);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void trim_returns_what_is_retained(arena_fixture *fixture) {
    tn_allocation_handle a = take(fixture, 30 * MIB);
    tn_allocation_handle b = take(fixture, MIB);
    memset(a.data, 1, 30 * MIB);
    memset(b.data, 1, MIB);
    give(&a);
    give(&b);
    const size_t resident_before = resident_bytes();

    assert_int_equal(tn_arena_trim(fixture->arena, TN_TRIM_HARD), 31 * MIB);

    const size_t resident_after = resident_bytes();
    assert_true(resident_before - resident_after > 29 * MIB);
    assert_int_equal(tn_arena_trim(fixture->arena, TN_TRIM_HARD), 0);
    assert_int_equal(tn_allocator_charged(fixture->node), 0);
    warm(fixture, MIB);
}

static void scenario_21_trim_returns_what_is_retained(void **state) {
    (void)state;
    for_both_arenas(trim_returns_what_is_retained);
}

static void soft_trim_counts_each_block_once(arena_fixture *fixture) {
    warm(fixture, 3 * MIB);
    warm(fixture, 128 * KIB);

    assert_int_equal(tn_arena_trim(fixture->arena, TN_TRIM_SOFT), 3 * MIB + 128 * KIB);

    assert_int_equal(tn_arena_trim(fixture->arena, TN_TRIM_SOFT), 0);
    assert_int_equal(stats_of(fixture->arena).retained_bytes, 3 * MIB + 128 * KIB);
    warm(fixture, 3 * MIB);
    assert_int_equal(tn_arena_trim(fixture->arena, TN_TRIM_SOFT), 3 * MIB);
    assert_int_equal(tn_arena_trim(fixture->arena, TN_TRIM_HARD), 3 * MIB + 128 * KIB);
}

static void scenario_21_soft_trim_counts_each_block_once(void **state) {
    (void)state;
    for_both_arenas(soft_trim_counts_each_block_once);
}

static void scenario_22_arenas_do_not_touch_each_other(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    tn_io_arena *io = NULL;
    ASSERT_OK(tn_io_arena_create(fixture.root, NULL, &io, NULL));
    tn_arena *const io_arena = tn_io_arena_as_arena(io);
    tn_allocation_handle held[50];
    warm(&fixture, MIB);
    for (int i = 0; i < 50; i++) ASSERT_OK(tn_arena_allocate(io_arena, MIB, &held[i], NULL));

    assert_int_equal(stats_of(fixture.arena).retained_bytes, MIB);
    for (int i = 0; i < 50; i++) give(&held[i]);
    warm(&fixture, 100 * MIB);
    assert_int_equal(stats_of(io_arena).retained_bytes, 50 * MIB);
    (void)tn_execution_arena_trim(fixture.execution, TN_TRIM_HARD);
    assert_int_equal(stats_of(io_arena).retained_bytes, 50 * MIB);
    assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);

    tn_io_arena_release(io);
    fixture_deinit(&fixture);
}

static void scenario_23_default_cap_is_unlimited(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);

    assert_true(tn_arena_retention_cap(fixture.arena) == TN_RETENTION_UNLIMITED);
    (void)tn_arena_set_retention_cap(fixture.arena, 12345);
    assert_int_equal(tn_arena_retention_cap(fixture.arena), 12345);
    assert_int_equal(stats_of(fixture.arena).retention_cap_bytes, 12345);

    fixture_deinit(&fixture);
    const tn_arena_options options = {.has_retention_cap = true, .retention_cap_bytes = 7};
    fixture_init_with(&fixture, false, NULL, &options);
    assert_int_equal(tn_arena_retention_cap(fixture.arena), 7);
    fixture_deinit(&fixture);
}

static void one_off_then_trim_then_steady(arena_fixture *fixture) {
    for (int i = 0; i < 3; i++) warm(fixture, 2 * MIB);
    warm(fixture, 80 * MIB);
    (void)tn_arena_trim(fixture->arena, TN_TRIM_HARD);
    warm(fixture, 2 * MIB);
    const uint64_t sys_allocs = stats_of(fixture->arena).sys_allocs;

    for (int i = 0; i < 100; i++) warm(fixture, 2 * MIB);

    assert_int_equal(stats_of(fixture->arena).sys_allocs, sys_allocs);
    assert_int_equal(stats_of(fixture->arena).retained_bytes, 2 * MIB);
}

static void scenario_24_one_off_then_trim_then_steady(void **state) {
    (void)state;
    for_both_arenas(one_off_then_trim_then_steady);
}

static void adaptive_window_forgets_an_outlier(void **state) {
    (void)state;
    const tn_arena_options options = {.is_adaptive = true};
    for (int is_io = 0; is_io < 2; is_io++) {
        arena_fixture fixture;
        fixture_init_with(&fixture, is_io == 1, NULL, &options);
        for (int run = 0; run < 60; run++) {
            tn_allocation_handle handles[10];
            const int count = run == 20 ? 10 : 2;
            ASSERT_OK(tn_arena_begin_run(fixture.arena, NULL));
            for (int i = 0; i < count; i++) handles[i] = take(&fixture, 100 * KIB);
            if (run == 20) warm(&fixture, 50 * MIB);
            for (int i = 0; i < count; i++) give(&handles[i]);
            tn_arena_end_run(fixture.arena);
            const tn_arena_stats stats = stats_of(fixture.arena);
            if (run >= 20 && run < 20 + 15) assert_true(stats.retained_bytes > 50 * MIB);
            if (run >= 20 + TN_RETENTION_WINDOW_RUNS) {
                assert_int_equal(stats.retained_bytes, 200 * KIB);
            }
            if (run > 20) assert_int_equal(stats.sys_allocs, 11);
        }
        fixture_deinit(&fixture);
    }
}

static void figures_follow_live_and_peak(arena_fixture *fixture) {
    tn_allocation_handle a = take(fixture, 10);
    tn_allocation_handle b = take(fixture, 20);
    assert_int_equal(stats_of(fixture->arena).live_bytes, 30);
    assert_int_equal(stats_of(fixture->arena).live_peak_bytes, 30);

    give(&a);

    assert_int_equal(stats_of(fixture->arena).live_bytes, 20);
    assert_int_equal(stats_of(fixture->arena).live_peak_bytes, 30);
    tn_arena_reset_peak(fixture->arena);
    assert_int_equal(stats_of(fixture->arena).live_peak_bytes, 20);
    give(&b);
}

static void scenario_25_figures_follow_live_and_peak(void **state) {
    (void)state;
    for_both_arenas(figures_follow_live_and_peak);
}

static void logical_size_and_capacity_are_apart(arena_fixture *fixture) {
    warm(fixture, 64);
    tn_allocation_handle handle = take(fixture, 32);

    const tn_arena_stats stats = stats_of(fixture->arena);
    assert_int_equal(stats.live_bytes, 32);
    assert_int_equal(stats.live_capacity_bytes, 64);

    give(&handle);
}

static void scenario_26_logical_size_and_capacity_are_apart(void **state) {
    (void)state;
    for_both_arenas(logical_size_and_capacity_are_apart);
}

static void retained_is_never_live(arena_fixture *fixture) {
    for (int i = 0; i < 10; i++) warm(fixture, (size_t)1000 << i);

    const tn_arena_stats stats = stats_of(fixture->arena);

    assert_int_equal(stats.live_bytes, 0);
    assert_int_equal(stats.live_peak_bytes, (size_t)1000 << 9);
    assert_true(stats.retained_bytes > 0);
    tn_allocator_stats node = {.struct_size = sizeof node};
    tn_allocator_get_stats(fixture->root, &node); /* combined view: the sum, each under its name */
    assert_int_equal(node.retained_bytes, stats.retained_bytes);
    assert_int_equal(node.live_bytes, 0);
    assert_int_equal(node.live_peak_bytes, stats.live_peak_bytes);
}

static void scenario_28_retained_is_never_live(void **state) {
    (void)state;
    for_both_arenas(retained_is_never_live);
}

static void counters_are_exact(arena_fixture *fixture) {
    tn_allocation_handle a = take(fixture, 64 * KIB);  /* miss */
    tn_allocation_handle b = take(fixture, 256 * KIB); /* miss */
    give(&a);
    give(&b);
    a = take(fixture, 64 * KIB); /* hit */
    give(&a);
    a = take(fixture, 1000); /* miss */
    tn_arena_count_copy(fixture->arena, 1000);
    give(&a);
    (void)tn_arena_set_retention_cap(fixture->arena, 100 * KIB); /* 256 KiB goes */
    (void)tn_arena_trim(fixture->arena, TN_TRIM_HARD);           /* 64 KiB and 1000 go */

    const tn_arena_stats stats = stats_of(fixture->arena);

    assert_int_equal(stats.hits, 1);
    assert_int_equal(stats.misses, 3);
    assert_int_equal(stats.sys_allocs, 3);
    assert_int_equal(stats.sys_frees, 3);
    assert_int_equal(stats.evictions, 1);
    assert_int_equal(stats.copies, 1);
    assert_int_equal(stats.copied_bytes, 1000);
    assert_int_equal(stats.retained_count, 0);
    assert_int_equal(stats.retained_peak_bytes, 321 * KIB);
}

static void scenario_31_counters_are_exact(void **state) {
    (void)state;
    for_both_arenas(counters_are_exact);
}

static void limit_refuses_after_retained_blocks_are_gone(arena_fixture *fixture) {
    tn_error err;
    tn_allocator_set_limit(fixture->node, 10 * MIB);
    tn_allocation_handle live = take(fixture, 3 * MIB);
    tn_allocation_handle second = take(fixture, 4 * MIB);
    give(&second);

    second = take(fixture, 7 * MIB); /* 3 + 7 fit once the 4 retained are given back */
    tn_allocation_handle third;
    ASSERT_STATUS(TN_LIMIT, tn_arena_allocate(fixture->arena, 1, &third, &err));

    assert_int_equal(err.limit_bytes, 10 * MIB);
    assert_int_equal(err.used_bytes, 10 * MIB);
    assert_int_equal(err.requested_bytes, 1);
    assert_int_equal(err.rounded_bytes, 64);
    fixture_check(fixture);
    give(&live);
    give(&second);
}

static void scenario_92_limit_refuses_after_retained_blocks_are_gone(void **state) {
    (void)state;
    for_both_arenas(limit_refuses_after_retained_blocks_are_gone);
}

static void scenario_92_reclaim_takes_the_least_recently_used_arena(void **state) {
    (void)state;
    const tn_allocator_options options = {.limit_bytes = 20 * MIB};
    arena_fixture fixture;
    fixture_init_with(&fixture, false, &options, NULL);
    tn_io_arena *io = NULL;
    ASSERT_OK(tn_io_arena_create(fixture.root, NULL, &io, NULL));
    warm(&fixture, 8 * MIB);
    tn_allocation_handle handle;
    ASSERT_OK(tn_io_arena_allocate(io, 8 * MIB, &handle, NULL));
    give(&handle);
    tn_buffer buffer;

    ASSERT_OK(tn_buffer_create(fixture.root, 6 * MIB, 0, &buffer, NULL));

    assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);
    assert_int_equal(stats_of(tn_io_arena_as_arena(io)).retained_bytes, 8 * MIB);
    ASSERT_OK(tn_buffer_release(&buffer));
    tn_io_arena_release(io);
    fixture_deinit(&fixture);
}

static void shrink_stops_at_its_target(arena_fixture *fixture) {
    tn_allocation_handle handles[4];
    for (int i = 0; i < 4; i++) handles[i] = take(fixture, MIB);
    void *const newest = handles[3].data;
    for (int i = 0; i < 4; i++) give(&handles[i]);

    assert_int_equal(tn_arena_shrink(fixture->arena, 2 * MIB + 1), 2 * MIB);
    assert_int_equal(tn_arena_shrink(fixture->arena, MIB), MIB);

    handles[0] = take(fixture, MIB);
    assert_ptr_equal(handles[0].data, newest);
    assert_int_equal(tn_arena_shrink(fixture->arena, 0), 0);
    give(&handles[0]);
    assert_int_equal(stats_of(fixture->arena).evictions, 0);
}

static void scenario_97_shrink_stops_at_its_target(void **state) {
    (void)state;
    for_both_arenas(shrink_stops_at_its_target);
}

static void move_takes_only_into_empty_handles(arena_fixture *fixture) {
    tn_allocation_handle a = take(fixture, 100);
    tn_allocation_handle b = take(fixture, 200);
    tn_allocation_handle empty = {0};
    void *const address = a.data;

    ASSERT_STATUS(TN_BUSY, tn_allocation_handle_move(&b, &a, NULL));
    ASSERT_OK(tn_allocation_handle_move(&empty, &a, NULL));

    assert_ptr_equal(empty.data, address);
    assert_false(tn_allocation_handle_is_live(&a));
    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_reset(&a));
    give(&empty);
    give(&b);
}

static void handle_move_takes_only_into_empty_handles(void **state) {
    (void)state;
    for_both_arenas(move_takes_only_into_empty_handles);
}

static void release_passes_the_reference_to_a_buffer(arena_fixture *fixture) {
    tn_allocation_handle handle = take(fixture, 100);
    void *const address = handle.data;
    tn_buffer buffer;
    tn_buffer second;

    ASSERT_OK(tn_allocation_handle_release(&handle, &buffer, NULL));
    assert_false(tn_allocation_handle_is_live(&handle));
    assert_ptr_equal(buffer.data, address);
    ASSERT_OK(tn_buffer_retain(&buffer, NULL));
    second = buffer;
    ASSERT_OK(tn_buffer_release(&buffer));
    assert_int_equal(stats_of(fixture->arena).live_bytes, 100);
    ASSERT_OK(tn_buffer_release(&second));

    assert_int_equal(stats_of(fixture->arena).live_bytes, 0);
    assert_int_equal(stats_of(fixture->arena).retained_count, 1);
    handle = take(fixture, 0);
    ASSERT_OK(tn_allocation_handle_release(&handle, &buffer, NULL));
    ASSERT_OK(tn_buffer_release(&buffer));
}

static void handle_release_passes_the_reference_to_a_buffer(void **state) {
    (void)state;
    for_both_arenas(release_passes_the_reference_to_a_buffer);
}

static void arena_destroyed_before_its_blocks_waits_for_them(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_execution_arena *arena = NULL;
    tn_allocation_handle handle;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    ASSERT_OK(tn_execution_arena_create(root, NULL, &arena, NULL));
    ASSERT_OK(tn_execution_arena_allocate(arena, 1000, &handle, NULL));

    tn_execution_arena_destroy(arena);
    memset(handle.data, 1, 1000);
    assert_int_equal(tn_allocator_charged(root), 1024);
    give(&handle);

    assert_int_equal(tn_allocator_charged(root), 0);
    ASSERT_OK(tn_allocator_verify(root, NULL));
    ASSERT_OK(tn_allocator_close(root, NULL));
    tn_allocator_release(root);
    tn_execution_arena_destroy(NULL);
}

static void options_out_of_range_are_refused(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_execution_arena *arena = NULL;
    tn_io_arena *io = NULL;
    const tn_arena_options too_wide = {.window_runs = TN_SLAB_WINDOW_MAX + 1};
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_execution_arena_create(NULL, NULL, &arena, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_execution_arena_create(root, &too_wide, &arena, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_io_arena_create(root, &too_wide, &io, NULL));

    assert_null(arena);
    assert_null(io);
    tn_allocator_release(root);
}

static void *alloc_stream(void *ctx, size_t size_bytes) {
    (void)ctx;
    return malloc(size_bytes);
}

static void free_stream(void *ctx, void *data) {
    (void)ctx;
    free(data);
}

static void events_tell_what_an_arena_did(void **state) {
    (void)state;
    static const uint32_t expected[] = {
        TN_EVENT_BLOCK_MISS,   TN_EVENT_BLOCK_RETURN, TN_EVENT_BLOCK_HIT,
        TN_EVENT_BLOCK_EXPORT, TN_EVENT_BLOCK_RETURN, TN_EVENT_BLOCK_SYS_FREE,
    };
    const tn_base_alloc alloc = {.alloc = alloc_stream, .free = free_stream};
    tn_event_stream *stream = NULL;
    tn_event seen[16];
    uint64_t position = 0;
    tn_io_lease *lease = NULL;
    arena_fixture fixture;
    ASSERT_OK(tn_event_stream_create(&alloc, 16, &stream, NULL));
    const tn_arena_options options = {.events = stream};
    fixture_init_with(&fixture, true, NULL, &options);

    warm(&fixture, 1000);
    tn_allocation_handle handle = take(&fixture, 900);
    ASSERT_OK(tn_io_arena_export(fixture.io, &handle, &lease, NULL));
    tn_io_lease_release(lease);
    (void)tn_io_arena_trim(fixture.io, TN_TRIM_HARD);

    assert_int_equal(tn_event_stream_read(stream, &position, seen, 16, NULL), 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(seen[i].kind, expected[i]);
        assert_int_equal(seen[i].arena, 1);
    }
    assert_int_equal(seen[0].bytes, 1000);
    assert_int_equal(seen[2].bytes, 900);
    assert_int_equal(seen[5].bytes, 1024);
    fixture_deinit(&fixture);
    tn_event_stream_destroy(stream);
}

static tn_status use_arenas(tn_allocator *root, void *ctx) {
    tn_execution_arena *execution = NULL;
    tn_io_arena *io = NULL;
    tn_allocation_handle handles[4] = {0};
    void *base = NULL;
    (void)ctx;
    tn_status status = tn_execution_arena_create(root, NULL, &execution, NULL);
    if (status == TN_OK) status = tn_io_arena_create(root, NULL, &io, NULL);
    if (status == TN_OK)
        status = tn_execution_arena_allocate(execution, 3 * MIB, &handles[0], NULL);
    if (status == TN_OK) status = tn_io_arena_allocate(io, 1000, &handles[1], NULL);
    if (status == TN_OK) status = tn_execution_arena_reserve_slab(execution, MIB, &base, NULL);
    if (status == TN_OK) {
        give(&handles[0]); /* so that the next one is a hit: it is a fault point all the same */
        status = tn_execution_arena_allocate(execution, 3 * MIB, &handles[0], NULL);
    }
    if (status == TN_OK) status = tn_io_arena_allocate(io, 100 * KIB, &handles[2], NULL);
    for (int i = 0; i < 4; i++) {
        if (tn_allocation_handle_is_live(&handles[i])) give(&handles[i]);
    }
    if (execution != NULL) tn_execution_arena_end_run(execution);
    tn_execution_arena_destroy(execution);
    tn_io_arena_release(io);
    return status;
}

static void every_allocation_failure_leaves_the_arenas_unchanged(void **state) {
    (void)state;
    assert_true(tn_oom_sweep_run(use_arenas, NULL, false) > 10);
    assert_true(tn_oom_sweep_run(use_arenas, NULL, true) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(size_classes_are_tight_and_ordered),
        T(scenario_01_reuse_keeps_address_and_capacity),
        T(scenario_02_smallest_class_that_fits_is_used),
        T(scenario_02_most_recent_of_equals_is_used),
        T(scenario_03_all_too_small_gets_a_new_block),
        T(scenario_04_growing_requests_stay_bounded),
        T(scenario_04_idle_classes_go_with_the_next_miss),
        T(scenario_05_waste_bound_keeps_large_blocks),
        T(scenario_05_waste_bound_is_exact),
        T(scenario_06_zero_bytes_take_no_block),
        T(scenario_07_absurd_sizes_are_refused),
        T(scenario_08_every_class_is_aligned),
        T(scenario_09_double_free_is_dead),
        T(scenario_11_foreign_arena_is_refused),
        T(scenario_12_system_failure_trims_once_and_retries),
        T(scenario_13_five_thousand_live_blocks),
        T(scenario_15_cap_of_the_second_evicts_the_first),
        T(scenario_16_reuse_makes_a_block_most_recent),
        T(scenario_17_lower_cap_evicts_oldest_first),
        T(scenario_18_cap_zero_keeps_nothing),
        T(scenario_19_oversized_return_spares_the_rest),
        T(scenario_20_live_blocks_survive_cap_and_trim),
        T(scenario_21_trim_returns_what_is_retained),
        T(scenario_21_soft_trim_counts_each_block_once),
        T(scenario_22_arenas_do_not_touch_each_other),
        T(scenario_23_default_cap_is_unlimited),
        T(scenario_24_one_off_then_trim_then_steady),
        T(adaptive_window_forgets_an_outlier),
        T(scenario_25_figures_follow_live_and_peak),
        T(scenario_26_logical_size_and_capacity_are_apart),
        T(scenario_28_retained_is_never_live),
        T(scenario_31_counters_are_exact),
        T(scenario_92_limit_refuses_after_retained_blocks_are_gone),
        T(scenario_92_reclaim_takes_the_least_recently_used_arena),
        T(scenario_97_shrink_stops_at_its_target),
        T(handle_move_takes_only_into_empty_handles),
        T(handle_release_passes_the_reference_to_a_buffer),
        T(arena_destroyed_before_its_blocks_waits_for_them),
        T(options_out_of_range_are_refused),
        T(events_tell_what_an_arena_did),
        T(every_allocation_failure_leaves_the_arenas_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
