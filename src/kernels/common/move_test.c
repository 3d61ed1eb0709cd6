#include "kernels/common/move.h"

#include <string.h>

#include "harness.h"
#include "kernels/common/index_walk.h"

enum { SIDE = 41, CAPACITY = SIDE * SIDE * 16 };

static void fill_bytes(unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(i * 131 + i / 251);
}

/* The definition: one element at a time. */
static void move_slowly(const int64_t *dims, const int64_t *src, const int64_t *dst, int32_t rank,
                        size_t elem_bytes, const unsigned char *from, unsigned char *to) {
    size_t count = 1;
    for (int32_t i = 0; i < rank; i++) count *= (size_t)dims[i];
    for (size_t at = 0; at < count; at++) {
        size_t rest = at;
        int64_t from_offset = 0;
        int64_t to_offset = 0;
        for (int32_t i = rank - 1; i >= 0; i--) {
            const int64_t index = (int64_t)(rest % (size_t)dims[i]);
            rest /= (size_t)dims[i];
            from_offset += index * src[i];
            to_offset += index * dst[i];
        }
        memcpy(to + to_offset, from + from_offset, elem_bytes);
    }
}

static void check_move(const int64_t *dims, const int64_t *src, const int64_t *dst, int32_t rank,
                       size_t elem_bytes) {
    static unsigned char from[CAPACITY];
    static unsigned char expected[CAPACITY];
    static unsigned char seen[CAPACITY];
    tn_move move;
    fill_bytes(from, sizeof from);
    memset(expected, 0xAA, sizeof expected);
    memset(seen, 0xAA, sizeof seen);
    tn_move_start(&move, elem_bytes);
    for (int32_t i = 0; i < rank; i++) tn_move_add_axis(&move, dims[i], src[i], dst[i]);
    tn_move_finish(&move);

    move_slowly(dims, src, dst, rank, elem_bytes, from, expected);
    for (uint32_t tile = move.tile_count; tile-- > 0;) {
        tn_move_run(&move, from, seen, tile, tile + 1);
    }

    assert_memory_equal(seen, expected, sizeof seen);
}

static void move_transposed_of_every_width_matches_the_definition(void **state) {
    (void)state;
    for (int64_t bytes = 1; bytes <= 16; bytes *= 2) {
        const int64_t dims[] = {SIDE, SIDE};
        const int64_t src[] = {bytes, SIDE * bytes};
        const int64_t dst[] = {SIDE * bytes, bytes};
        check_move(dims, src, dst, 2, (size_t)bytes);
    }
}

static void move_of_short_last_axis_matches_the_definition(void **state) {
    (void)state;
    /* [3, n] to [n, 3] */
    const int64_t dims[] = {200, 3};
    const int64_t src[] = {4, 800};
    const int64_t dst[] = {12, 4};
    check_move(dims, src, dst, 2, 4);
}

static void move_that_repeats_matches_the_definition(void **state) {
    (void)state;
    const int64_t dims[] = {7, 5, 11};
    const int64_t src[] = {0, 4, 0};
    const int64_t dst[] = {220, 44, 4};
    check_move(dims, src, dst, 3, 4);
}

static void move_of_rows_with_odd_length_matches_the_definition(void **state) {
    (void)state;
    const int64_t dims[] = {3, 5, 7};
    const int64_t src[] = {7, 21, 1};
    const int64_t dst[] = {35, 7, 1};
    check_move(dims, src, dst, 3, 1);
}

static void move_with_negative_stride_matches_the_definition(void **state) {
    (void)state;
    static unsigned char from[24];
    unsigned char to[24];
    tn_move move;
    fill_bytes(from, sizeof from);
    tn_move_start(&move, 4);
    tn_move_add_axis(&move, 6, -4, 4);
    move.src_offset = 20;
    tn_move_finish(&move);

    tn_move_run(&move, from, to, 0, move.tile_count);

    for (int32_t i = 0; i < 6; i++) assert_memory_equal(to + 4 * i, from + 20 - 4 * i, 4);
}

static void move_of_dense_box_becomes_one_run(void **state) {
    (void)state;
    tn_move move;
    tn_move_start(&move, 4);
    tn_move_add_axis(&move, 8, 480, 480);
    tn_move_add_axis(&move, 1, 99, 7);
    tn_move_add_axis(&move, 10, 48, 48);
    tn_move_add_axis(&move, 12, 4, 4);

    tn_move_finish(&move);

    assert_int_equal(move.rank, 1);
    assert_int_equal(move.strip_axis_len, 8 * 480);
}

static void move_of_nothing_touches_nothing(void **state) {
    (void)state;
    tn_move move;
    tn_move_start(&move, 4);
    tn_move_add_axis(&move, INT64_MAX, 4, 4);
    tn_move_add_axis(&move, 0, 4, 4);
    tn_move_finish(&move);

    tn_move_run(&move, NULL, NULL, 0, move.tile_count);

    assert_int_equal(move.unit_count, 0);
    assert_int_equal(move.tile_count, 1);
}

static void large_move_has_tiles_that_cover_it_once(void **state) {
    (void)state;
    enum { LEN = 1 << 20 };
    tn_move move;
    tn_move_init_bytes(&move, LEN);
    unsigned char *from = test_malloc(LEN);
    unsigned char *to = test_malloc(LEN);
    fill_bytes(from, LEN);
    memset(to, 0, LEN);

    assert_true(move.tile_count > 1);
    for (uint32_t tile = 0; tile < move.tile_count; tile++) {
        tn_move_run(&move, from, to, tile, tile + 1);
    }

    assert_memory_equal(from, to, LEN);
    test_free(from);
    test_free(to);
}

static void walk_seek_equals_that_many_steps(void **state) {
    (void)state;
    const int64_t dims[] = {3, 4, 5};
    const int64_t a[] = {100, -7, 3};
    const int64_t b[] = {0, 1, 1000};
    tn_walk stepped = {.rank = 3, .dims = dims, .strides_a = a, .strides_b = b};
    tn_walk sought = stepped;
    tn_walk_seek(&stepped, 0);
    for (size_t at = 0; at < 60; at++) {
        tn_walk_seek(&sought, at);
        assert_int_equal(stepped.offset_a, sought.offset_a);
        assert_int_equal(stepped.offset_b, sought.offset_b);
        tn_walk_next(&stepped);
    }
    assert_int_equal(stepped.offset_a, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(move_transposed_of_every_width_matches_the_definition),
        T(move_of_short_last_axis_matches_the_definition),
        T(move_that_repeats_matches_the_definition),
        T(move_of_rows_with_odd_length_matches_the_definition),
        T(move_with_negative_stride_matches_the_definition),
        T(move_of_dense_box_becomes_one_run),
        T(move_of_nothing_touches_nothing),
        T(large_move_has_tiles_that_cover_it_once),
        T(walk_seek_equals_that_many_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
