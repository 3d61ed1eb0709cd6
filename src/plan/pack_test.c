/* Offsets: what lives together never overlaps, the bound is a bound, and cut rectangles of known
 * height come out close to it. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"

typedef struct fixture {
    tn_allocator *root;
    tn_bump scratch;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL || tn_allocator_create_root(NULL, &f->root, NULL) != TN_OK) return 1;
    f->scratch.allocator = f->root;
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    tn_bump_deinit(&f->scratch);
    const int left = tn_allocator_close(f->root, NULL) == TN_OK ? 0 : 1;
    tn_allocator_release(f->root);
    free(f);
    return left;
}

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void assert_no_overlap(const tn_pack_item *items, size_t count, size_t total_bytes) {
    for (size_t i = 0; i < count; i++) {
        assert_true(items[i].offset + items[i].size_bytes <= total_bytes);
        for (size_t k = i + 1; k < count; k++) {
            if (items[i].death < items[k].birth || items[k].death < items[i].birth) continue;
            assert_true(items[i].offset + items[i].size_bytes <= items[k].offset ||
                        items[k].offset + items[k].size_bytes <= items[i].offset);
        }
    }
}

static void pack_random_intervals_never_overlap(void **state) {
    fixture *f = *state;
    uint32_t seed = 1;
    for (int round = 0; round < 200; round++) {
        tn_pack_item items[120];
        const size_t count = next_random(&seed) % 120;
        for (size_t i = 0; i < count; i++) {
            const uint32_t birth = next_random(&seed) % 100;
            items[i] = (tn_pack_item){64 * (1 + next_random(&seed) % 50), birth,
                                      birth + next_random(&seed) % 20, 0};
        }
        size_t total_bytes = 0;
        size_t bound_bytes = 0;
        uint32_t peak_step = 0;

        ASSERT_OK(tn_pack_offsets(items, count, 120, &f->scratch, &total_bytes, &bound_bytes,
                                  &peak_step, NULL));

        assert_true(total_bytes >= bound_bytes);
        assert_no_overlap(items, count, total_bytes);
        tn_bump_reset(&f->scratch);
    }
}

static void pack_chain_of_equal_sizes_needs_two(void **state) {
    fixture *f = *state;
    tn_pack_item items[64];
    for (uint32_t i = 0; i < 64; i++) items[i] = (tn_pack_item){4096, i, i + 1, 0};
    size_t total_bytes = 0;
    size_t bound_bytes = 0;
    uint32_t peak_step = 0;

    ASSERT_OK(
        tn_pack_offsets(items, 64, 66, &f->scratch, &total_bytes, &bound_bytes, &peak_step, NULL));

    assert_int_equal(total_bytes, 2 * 4096);
    assert_int_equal(bound_bytes, 2 * 4096);
}

static void pack_nothing_needs_nothing(void **state) {
    fixture *f = *state;
    size_t total_bytes = 1;
    size_t bound_bytes = 1;
    uint32_t peak_step = 1;

    ASSERT_OK(
        tn_pack_offsets(NULL, 0, 5, &f->scratch, &total_bytes, &bound_bytes, &peak_step, NULL));

    assert_int_equal(total_bytes, 0);
    assert_int_equal(bound_bytes, 0);
}

static void pack_sizes_beyond_memory_are_an_overflow(void **state) {
    fixture *f = *state;
    tn_pack_item items[2] = {{SIZE_MAX / 2, 0, 1, 0}, {SIZE_MAX / 2, 0, 1, 0}};
    size_t total_bytes = 0;
    size_t bound_bytes = 0;
    uint32_t peak_step = 0;
    tn_error err;

    ASSERT_STATUS(TN_OVERFLOW, tn_pack_offsets(items, 2, 2, &f->scratch, &total_bytes, &bound_bytes,
                                               &peak_step, &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pack_random_intervals_never_overlap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pack_chain_of_equal_sizes_needs_two, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pack_nothing_needs_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pack_sizes_beyond_memory_are_an_overflow, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
