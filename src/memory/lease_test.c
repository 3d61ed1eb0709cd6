/* Exported blocks: who holds them, when they return, and that everything else may die first. */
#include <stdlib.h>

#include "memory/arena_fixture.h"
#include "oom_sweep.h"

static tn_io_lease *export_block(const arena_fixture *fixture, size_t size_bytes) {
    tn_allocation_handle handle = take(fixture, size_bytes);
    tn_io_lease *lease = NULL;
    ASSERT_OK(tn_io_arena_export(fixture->io, &handle, &lease, NULL));
    return lease;
}

static void scenario_27_export_moves_the_count_to_leased(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_allocation_handle handle = take(&fixture, 1000);
    void *const address = handle.data;
    tn_io_lease *lease = NULL;

    ASSERT_OK(tn_io_arena_export(fixture.io, &handle, &lease, NULL));

    assert_false(tn_allocation_handle_is_live(&handle));
    assert_ptr_equal(tn_io_lease_data(lease), address);
    assert_int_equal(tn_io_lease_size_bytes(lease), 1000);
    assert_int_equal(tn_io_lease_capacity_bytes(lease), 1024);
    tn_arena_stats stats = stats_of(fixture.arena);
    assert_int_equal(stats.live_bytes, 1000);
    assert_int_equal(stats.leased_bytes, 1000);
    assert_int_equal(stats.allocated_count, 0);
    assert_int_equal(stats.leased_count, 1);
    fixture_check(&fixture);
    tn_io_lease_release(lease);
    stats = stats_of(fixture.arena);
    assert_int_equal(stats.live_bytes, 0);
    assert_int_equal(stats.leased_bytes, 0);
    assert_int_equal(stats.retained_bytes, 1024);
    assert_int_equal(stats.copies, 0);
    fixture_deinit(&fixture);
}

static void leased_block_can_be_neither_freed_nor_exported(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_allocation_handle handle = take(&fixture, 1000);
    tn_allocation_handle copy = handle;
    tn_io_lease *lease = NULL;
    tn_io_lease *second = NULL;
    tn_buffer buffer;
    ASSERT_OK(tn_io_arena_export(fixture.io, &handle, &lease, NULL));

    ASSERT_STATUS(TN_BUSY, tn_io_arena_export(fixture.io, &copy, &second, NULL));
    ASSERT_STATUS(TN_BUSY, tn_allocation_handle_reset(&copy));
    ASSERT_STATUS(TN_BUSY, tn_arena_free(fixture.arena, &copy, NULL));
    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_release(&copy, &buffer, NULL));
    ASSERT_STATUS(TN_DEAD, tn_io_arena_export(fixture.io, &handle, &second, NULL));

    assert_null(second);
    assert_int_equal(stats_of(fixture.arena).leased_count, 1);
    tn_io_lease_release(lease);
    ASSERT_STATUS(TN_DEAD, tn_io_arena_export(fixture.io, &copy, &second, NULL));
    fixture_deinit(&fixture);
}

static void scenario_20_leased_blocks_survive_cap_and_trim(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_io_lease *const lease = export_block(&fixture, 300 * KIB);
    memset(tn_io_lease_data(lease), 9, 300 * KIB);

    (void)tn_io_arena_set_retention_cap(fixture.io, 0);
    (void)tn_io_arena_trim(fixture.io, TN_TRIM_HARD);
    (void)tn_allocator_trim(fixture.root, TN_TRIM_HARD);

    assert_int_equal(((char *)tn_io_lease_data(lease))[300 * KIB - 1], 9);
    tn_io_lease_release(lease);
    assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);
    fixture_deinit(&fixture);
}

#define HELD 100

static void scenario_52_hundred_held_outputs(void **state) {
    (void)state;
    const tn_arena_options options = {.has_retention_cap = true, .retention_cap_bytes = 10 * KIB};
    arena_fixture fixture;
    fixture_init_with(&fixture, true, NULL, &options);
    tn_io_lease *leases[HELD];
    for (int run = 0; run < HELD; run++) {
        leases[run] = export_block(&fixture, 1000);
        memset(tn_io_lease_data(leases[run]), run, 1000);
    }

    assert_int_equal(stats_of(fixture.arena).leased_count, HELD);
    assert_int_equal(stats_of(fixture.arena).live_bytes, HELD * 1000);
    for (int run = 0; run < HELD; run++) {
        const char *const bytes = tn_io_lease_data(leases[run]);
        for (int i = 0; i < 1000; i++) assert_int_equal(bytes[i], run);
        tn_io_lease_release(leases[run]);
    }

    assert_true(stats_of(fixture.arena).retained_bytes <= 10 * KIB);
    assert_int_equal(stats_of(fixture.arena).live_bytes, 0);
    fixture_deinit(&fixture);
}

static void scenario_56_two_exports_of_one_block_return_it_once(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_io_lease *const first = export_block(&fixture, 500);
    tn_buffer view;

    tn_io_lease *const second = tn_io_lease_retain(first);
    tn_io_lease_get_buffer(second, &view);
    assert_ptr_equal(view.data, tn_io_lease_data(first));
    tn_io_lease_release(first);
    ((char *)tn_io_lease_data(second))[499] = 3;
    tn_io_lease_release(second);
    assert_int_equal(((char *)view.data)[499], 3);
    assert_int_equal(stats_of(fixture.arena).leased_count, 1);
    ASSERT_OK(tn_buffer_release(&view));

    assert_int_equal(stats_of(fixture.arena).leased_count, 0);
    assert_int_equal(stats_of(fixture.arena).retained_count, 1);
    fixture_deinit(&fixture);
}

static void scenario_63_64_a_block_is_free_only_after_its_last_owner(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_io_lease *leases[8];
    for (int i = 0; i < 8; i++) leases[i] = export_block(&fixture, 64 * KIB);
    for (int i = 0; i < 8; i++) (void)tn_io_lease_retain(leases[i]);

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++) {
            fixture_check(&fixture); /* no record with owners is on a list, none is counted twice */
            tn_io_lease_release(leases[i]);
            const uint64_t expected = round == 0 ? 0 : (uint64_t)i + 1;
            assert_int_equal(stats_of(fixture.arena).retained_count, expected);
        }
    }

    fixture_deinit(&fixture);
}

static void scenario_91_orphaned_node_keeps_name_and_charge(void **state) {
    (void)state;
    char text[4096];
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_io_lease *const lease = export_block(&fixture, 3 * MIB);
    memset(tn_io_lease_data(lease), 4, 3 * MIB);
    warm(&fixture, 5 * MIB);

    tn_io_arena_release(fixture.io); /* the session's last owner */
    tn_allocator_release(fixture.node);

    assert_int_equal(tn_allocator_charged(fixture.root), 3 * MIB);
    (void)tn_allocator_report(fixture.root, text, sizeof text);
    assert_non_null(strstr(text, "io"));
    ASSERT_STATUS(TN_BUSY, tn_allocator_close(fixture.root, NULL));
    assert_int_equal(((char *)tn_io_lease_data(lease))[3 * MIB - 1], 4);
    ASSERT_OK(tn_allocator_verify(fixture.root, NULL));
    tn_io_lease_release(lease);
    assert_int_equal(tn_allocator_charged(fixture.root), 0);
    ASSERT_OK(tn_allocator_verify(fixture.root, NULL));
    ASSERT_OK(tn_allocator_close(fixture.root, NULL));
    tn_allocator_release(fixture.root);
}

static void scenario_53_lease_outlives_arena_and_tree(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_io_lease *const small = export_block(&fixture, 100);
    tn_io_lease *const large = export_block(&fixture, 300 * KIB);
    tn_io_arena_release(fixture.io);
    tn_allocator_release(fixture.node);
    tn_allocator_release(fixture.root);

    memset(tn_io_lease_data(small), 1, 100);
    memset(tn_io_lease_data(large), 1, 300 * KIB);

    tn_io_lease_release(large);
    assert_int_equal(((char *)tn_io_lease_data(small))[99], 1);
    tn_io_lease_release(small); /* the leak checker sees whether all of it is gone */
}

static void closed_arena_gives_no_blocks_and_keeps_none(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_io_lease *const lease = export_block(&fixture, 1000);
    tn_allocation_handle handle;
    warm(&fixture, 5000);
    (void)tn_io_arena_retain(fixture.io);
    tn_io_arena_release(fixture.io);

    tn_io_arena_close(fixture.io);

    assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);
    ASSERT_STATUS(TN_CLOSED, tn_io_arena_allocate(fixture.io, 10, &handle, NULL));
    tn_io_lease_release(lease);
    assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);
    fixture_deinit(&fixture);
}

static void scenario_93_lease_turns_back_into_a_handle(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_allocation_handle handle = take(&fixture, 700);
    tn_allocation_handle stale = handle;
    void *const address = handle.data;
    tn_io_lease *lease = NULL;
    ASSERT_OK(tn_io_arena_export(fixture.io, &handle, &lease, NULL));
    tn_io_lease *other = tn_io_lease_retain(lease);

    ASSERT_STATUS(TN_BUSY, tn_io_lease_export_handle(&lease, &handle, NULL));
    assert_non_null(lease);
    tn_io_lease_release(other);
    ASSERT_OK(tn_io_lease_export_handle(&lease, &handle, NULL));

    assert_null(lease);
    assert_ptr_equal(handle.data, address);
    assert_int_equal(stats_of(fixture.arena).leased_count, 0);
    assert_int_equal(stats_of(fixture.arena).allocated_count, 1);
    ASSERT_STATUS(TN_DEAD, tn_allocation_handle_reset(&stale));
    ASSERT_STATUS(TN_DEAD, tn_io_lease_export_handle(&lease, &stale, NULL));
    give(&handle);
    fixture_deinit(&fixture);
}

static void scenario_95_staging_block_is_reused_across_runs(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    void *address = NULL;
    for (int run = 0; run < 50; run++) {
        tn_allocation_handle input = take(&fixture, 600 * KIB);
        memset(input.data, run, 600 * KIB);
        if (run > 0) assert_ptr_equal(input.data, address);
        address = input.data;
        give(&input);
    }
    assert_int_equal(stats_of(fixture.arena).sys_allocs, 1);
    assert_int_equal(stats_of(fixture.arena).copies, 0);
    fixture_deinit(&fixture);
}

typedef struct foreign_state {
    int release_count;
    void *data;
    size_t size_bytes;
} foreign_state;

static void count_release(void *ctx, void *data, size_t size_bytes) {
    foreign_state *const seen = ctx;
    seen->release_count++;
    seen->data = data;
    seen->size_bytes = size_bytes;
}

static void scenario_96_adopted_storage_is_released_once(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    char storage[300];
    foreign_state seen = {0};
    const tn_foreign_memory foreign = {
        .data = storage, .size_bytes = sizeof storage, .release = count_release, .ctx = &seen};
    tn_allocation_handle handle;
    tn_io_lease *lease = NULL;

    ASSERT_OK(tn_io_arena_adopt(fixture.io, &foreign, &handle, NULL));
    assert_ptr_equal(handle.data, storage);
    assert_int_equal(stats_of(fixture.arena).live_bytes, sizeof storage);
    assert_int_equal(stats_of(fixture.arena).adopted, 1);
    assert_int_equal(tn_allocator_charged(fixture.node), sizeof storage);
    fixture_check(&fixture);
    ASSERT_OK(tn_io_arena_export(fixture.io, &handle, &lease, NULL));
    tn_io_lease *const second = tn_io_lease_retain(lease);
    tn_io_lease_release(lease);
    assert_int_equal(seen.release_count, 0);
    tn_io_lease_release(second);

    assert_int_equal(seen.release_count, 1);
    assert_ptr_equal(seen.data, storage);
    assert_int_equal(seen.size_bytes, sizeof storage);
    assert_int_equal(stats_of(fixture.arena).retained_count, 0);
    assert_int_equal(stats_of(fixture.arena).copies, 0);
    assert_int_equal(tn_allocator_charged(fixture.node), 0);
    fixture_deinit(&fixture);
}

static void adopt_that_fails_leaves_the_memory_with_the_caller(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    char storage[300];
    foreign_state seen = {0};
    tn_foreign_memory foreign = {
        .data = storage, .size_bytes = sizeof storage, .release = count_release, .ctx = &seen};
    tn_allocation_handle handle;

    tn_allocator_set_limit(fixture.node, 299);
    ASSERT_STATUS(TN_LIMIT, tn_io_arena_adopt(fixture.io, &foreign, &handle, NULL));
    tn_allocator_set_limit(fixture.node, 0);
    foreign.data = NULL;
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_io_arena_adopt(fixture.io, &foreign, &handle, NULL));
    foreign.data = storage;
    tn_io_arena_close(fixture.io);
    ASSERT_STATUS(TN_CLOSED, tn_io_arena_adopt(fixture.io, &foreign, &handle, NULL));

    assert_int_equal(seen.release_count, 0);
    assert_int_equal(tn_allocator_charged(fixture.node), 0);
    fixture_deinit(&fixture);
}

static void adopted_storage_outlives_its_arena(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    char storage[64];
    foreign_state seen = {0};
    const tn_foreign_memory foreign = {
        .data = storage, .size_bytes = sizeof storage, .release = count_release, .ctx = &seen};
    tn_allocation_handle handle;
    ASSERT_OK(tn_io_arena_adopt(fixture.io, &foreign, &handle, NULL));

    tn_io_arena_release(fixture.io);
    tn_allocator_release(fixture.node);
    give(&handle);

    assert_int_equal(seen.release_count, 1);
    assert_int_equal(tn_allocator_charged(fixture.root), 0);
    ASSERT_OK(tn_allocator_close(fixture.root, NULL));
    tn_allocator_release(fixture.root);
}

static void lease_of_zero_bytes_is_harmless(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    tn_io_lease *lease = export_block(&fixture, 0);
    tn_allocation_handle handle;

    assert_non_null(tn_io_lease_data(lease));
    assert_int_equal(tn_io_lease_size_bytes(lease), 0);
    assert_ptr_equal(tn_io_lease_retain(lease), lease);
    ASSERT_STATUS(TN_UNSUPPORTED, tn_io_lease_export_handle(&lease, &handle, NULL));
    tn_io_lease_release(lease);
    tn_io_lease_release(lease);
    tn_io_lease_release(NULL);
    assert_null(tn_io_lease_retain(NULL));

    assert_int_equal(stats_of(fixture.arena).leased_count, 0);
    fixture_deinit(&fixture);
}

static tn_status export_and_adopt(tn_allocator *root, void *ctx) {
    static char storage[100];
    foreign_state *const seen = ctx;
    const tn_foreign_memory foreign = {
        .data = storage, .size_bytes = sizeof storage, .release = count_release, .ctx = seen};
    tn_io_arena *io = NULL;
    tn_allocation_handle handle = {0};
    tn_allocation_handle adopted = {0};
    tn_io_lease *lease = NULL;
    const int released_before = seen->release_count;
    tn_status status = tn_io_arena_create(root, NULL, &io, NULL);
    if (status == TN_OK) status = tn_io_arena_allocate(io, 4 * MIB, &handle, NULL);
    if (status == TN_OK) status = tn_io_arena_export(io, &handle, &lease, NULL);
    if (status == TN_OK) status = tn_io_arena_adopt(io, &foreign, &adopted, NULL);
    const bool is_adopted = tn_allocation_handle_is_live(&adopted);
    if (is_adopted) give(&adopted);
    if (tn_allocation_handle_is_live(&handle)) give(&handle);
    tn_io_arena_release(io);
    tn_io_lease_release(lease); /* after the arena, and never failing */
    assert_int_equal(seen->release_count - released_before, is_adopted);
    return status;
}

static void every_allocation_failure_leaves_leases_whole(void **state) {
    (void)state;
    foreign_state seen = {0};
    assert_true(tn_oom_sweep_run(export_and_adopt, &seen, false) > 4);
    assert_true(tn_oom_sweep_run(export_and_adopt, &seen, true) > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(scenario_27_export_moves_the_count_to_leased),
        T(leased_block_can_be_neither_freed_nor_exported),
        T(scenario_20_leased_blocks_survive_cap_and_trim),
        T(scenario_52_hundred_held_outputs),
        T(scenario_56_two_exports_of_one_block_return_it_once),
        T(scenario_63_64_a_block_is_free_only_after_its_last_owner),
        T(scenario_91_orphaned_node_keeps_name_and_charge),
        T(scenario_53_lease_outlives_arena_and_tree),
        T(closed_arena_gives_no_blocks_and_keeps_none),
        T(scenario_93_lease_turns_back_into_a_handle),
        T(scenario_95_staging_block_is_reused_across_runs),
        T(scenario_96_adopted_storage_is_released_once),
        T(adopt_that_fails_leaves_the_memory_with_the_caller),
        T(adopted_storage_outlives_its_arena),
        T(lease_of_zero_bytes_is_harmless),
        T(every_allocation_failure_leaves_leases_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
