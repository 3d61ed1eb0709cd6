/* The page sources: alignment, figures, what trims really give back, and how many mappings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "memory/page_source.h"
#include "memory/poison.h"
#include "memory/size_class.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1 << 20)

typedef struct source_fixture {
    void *ctx;
    tn_page_source table;
} source_fixture;

static source_fixture open_system(void) {
    source_fixture fixture = {.ctx = tn_page_source_system_create(NULL)};
    assert_non_null(fixture.ctx);
    fixture.table = tn_page_source_system_table(fixture.ctx);
    return fixture;
}

static tn_page_source_stats stats_of(const source_fixture *fixture) {
    tn_page_source_stats stats = {.struct_size = sizeof stats};
    fixture->table.stats(fixture->ctx, &stats);
    return stats;
}

static void *take(const source_fixture *fixture, size_t size_bytes, size_t align) {
    size_t actual_bytes = 0;
    void *const data = fixture->table.alloc(fixture->ctx, size_bytes, align, 0, &actual_bytes);
    assert_non_null(data);
    assert_true(actual_bytes >= size_bytes);
    assert_int_equal((uintptr_t)data % align, 0);
    return data;
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

static void system_gives_what_it_counts(void **state) {
    (void)state;
    const source_fixture fixture = open_system();
    size_t expected_bytes = 0;
    static void *blocks[400];
    for (uint32_t i = 0; i < 400; i++) {
        const size_t size_bytes = (size_t)(i + 1) * (i + 1) * 11;
        blocks[i] = take(&fixture, size_bytes, 64);
        memset(blocks[i], (int)i, size_bytes);
        expected_bytes += tn_block_capacity(size_bytes);
        assert_int_equal(stats_of(&fixture).used_bytes, expected_bytes);
        assert_true(stats_of(&fixture).held_bytes >= expected_bytes);
    }
    for (uint32_t i = 0; i < 400; i++) {
        const size_t size_bytes = (size_t)(i + 1) * (i + 1) * 11;
        const unsigned char *const bytes = blocks[i];
        assert_int_equal(bytes[0], (unsigned char)i);
        assert_int_equal(bytes[size_bytes - 1], (unsigned char)i);
        fixture.table.free(fixture.ctx, blocks[i], size_bytes, 64);
    }
    assert_int_equal(stats_of(&fixture).used_bytes, 0);
    (void)fixture.table.trim(fixture.ctx, TN_TRIM_HARD);
    assert_int_equal(stats_of(&fixture).held_bytes, TN_PAGE_BYTES); /* its own state */
    tn_page_source_system_destroy(fixture.ctx);
}

#define MANY_RUNS 20000

static void system_maps_seldom_however_many_blocks_live(void **state) {
    (void)state;
    const source_fixture fixture = open_system();
    void **const blocks = calloc(MANY_RUNS, sizeof *blocks);
    for (int i = 0; i < MANY_RUNS; i++) blocks[i] = take(&fixture, 64 * KIB, 64);

    assert_true(stats_of(&fixture).mapping_count <= MANY_RUNS / 120);
    for (int i = 0; i < MANY_RUNS; i += 2) {
        fixture.table.free(fixture.ctx, blocks[i], 64 * KIB, 64);
    }
    for (int i = 0; i < MANY_RUNS; i += 2) blocks[i] = take(&fixture, 64 * KIB, 64);
    assert_true(stats_of(&fixture).mapping_count <= MANY_RUNS / 120 + 2);
    for (int i = 0; i < MANY_RUNS; i++) {
        fixture.table.free(fixture.ctx, blocks[i], 64 * KIB, 64);
    }

    assert_true(stats_of(&fixture).mapping_count <= 3);
    free(blocks);
    tn_page_source_system_destroy(fixture.ctx);
}

static void system_gives_pages_of_freed_runs_back(void **state) {
    (void)state;
    const source_fixture fixture = open_system();
    void *blocks[20];
    for (int i = 0; i < 20; i++) {
        blocks[i] = take(&fixture, MIB, 64);
        memset(blocks[i], 1, MIB);
    }
    const size_t resident_before = resident_bytes();

    for (int i = 0; i < 20; i++) fixture.table.free(fixture.ctx, blocks[i], MIB, 64);

    const size_t resident_after = resident_bytes();
    assert_true(resident_before - resident_after > 19 * MIB);
    tn_page_source_system_destroy(fixture.ctx);
}

static void system_trim_gives_idle_pages_of_live_chunks_back(void **state) {
    (void)state;
    const source_fixture fixture = open_system();
    static void *blocks[3000];
    for (int i = 0; i < 3000; i++) {
        blocks[i] = take(&fixture, 4000, 64);
        memset(blocks[i], 1, 4000);
    }
    const size_t resident_before = resident_bytes();
    for (int i = 0; i < 3000; i++) {
        if (i % 300 != 0) fixture.table.free(fixture.ctx, blocks[i], 4000, 64);
    }

    const size_t given_bytes = fixture.table.trim(fixture.ctx, TN_TRIM_HARD);

    /* chunks without a live block went by themselves; of the others two spans in three go now */
    assert_true(given_bytes > 1000 * KIB);
    const size_t resident_after = resident_bytes();
    assert_true(resident_before - resident_after > 10 * MIB);
    assert_int_equal(fixture.table.trim(fixture.ctx, TN_TRIM_HARD), 0);
    for (int i = 0; i < 3000; i += 300) {
        assert_int_equal(((char *)blocks[i])[3999], 1);
        fixture.table.free(fixture.ctx, blocks[i], 4000, 64);
    }
    tn_page_source_system_destroy(fixture.ctx);
}

static void system_aligns_huge_blocks_and_asks_for_huge_pages(void **state) {
    (void)state;
    const source_fixture fixture = open_system();
    static const size_t sizes[] = {2 * MIB, 2 * MIB + 1, 7 * MIB + 12345, 64 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *const data = take(&fixture, sizes[i], 64);
        assert_int_equal((uintptr_t)data % (2 * MIB), 0);
        /* 2 MiB is an alignment, not a rounding */
        assert_int_equal(stats_of(&fixture).used_bytes, tn_block_capacity(sizes[i]));
        fixture.table.free(fixture.ctx, data, sizes[i], 64);
    }
    void *const aligned = take(&fixture, 100, 16 * MIB);
    fixture.table.free(fixture.ctx, aligned, 100, 16 * MIB);
    assert_int_equal(stats_of(&fixture).used_bytes, 0);
    tn_page_source_system_destroy(fixture.ctx);
}

static void system_refuses_what_no_machine_has(void **state) {
    (void)state;
    const source_fixture fixture = open_system();
    size_t actual_bytes = 0;

    assert_null(fixture.table.alloc(fixture.ctx, SIZE_MAX, 64, 0, &actual_bytes));
    assert_null(fixture.table.alloc(fixture.ctx, (size_t)1 << 47, 64, 0, &actual_bytes));

    assert_int_equal(stats_of(&fixture).used_bytes, 0);
    tn_page_source_system_destroy(fixture.ctx);
}

static void libc_counts_what_it_gave(void **state) {
    (void)state;
    source_fixture fixture = {.ctx = tn_page_source_libc_create(NULL)};
    fixture.table = tn_page_source_libc_table(fixture.ctx);
    void *const a = take(&fixture, 100, 64);
    void *const b = take(&fixture, 5000, 4096);

    assert_int_equal(stats_of(&fixture).used_bytes, 128 + 8192);
    fixture.table.free(fixture.ctx, a, 100, 64);
    fixture.table.free(fixture.ctx, b, 5000, 4096);

    assert_int_equal(stats_of(&fixture).used_bytes, 0);
    assert_int_equal(stats_of(&fixture).alloc_count, 2);
    assert_int_equal(stats_of(&fixture).free_count, 2);
    tn_page_source_libc_destroy(fixture.ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(system_gives_what_it_counts),
        T(system_maps_seldom_however_many_blocks_live),
        T(system_gives_pages_of_freed_runs_back),
        T(system_trim_gives_idle_pages_of_live_chunks_back),
        T(system_aligns_huge_blocks_and_asks_for_huge_pages),
        T(system_refuses_what_no_machine_has),
        T(libc_counts_what_it_gave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
