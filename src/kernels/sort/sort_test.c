/* TopK, Unique, NonMaxSuppression and the keys that they order by. */
#include "op_case.h"

#include "kernels/sort/sort_key.h"

#define INTS(...) ((const int64_t[]){__VA_ARGS__})

static void keys_order_like_numbers(void **state) {
    (void)state;
    const float floats[] = {-INFINITY, -1.5F, -1e-40F, 0.0F, 1e-40F, 2.0F, INFINITY, NAN};
    const int64_t ints[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    for (size_t i = 1; i < TN_COUNTOF(floats); i++) {
        assert_true(tn_sort_key(floats, TN_DTYPE_F32, i - 1) <
                    tn_sort_key(floats, TN_DTYPE_F32, i));
    }
    for (size_t i = 1; i < TN_COUNTOF(ints); i++) {
        assert_true(tn_sort_key(ints, TN_DTYPE_I64, i - 1) < tn_sort_key(ints, TN_DTYPE_I64, i));
    }
}

static void keys_of_both_zeros_and_all_nans_are_equal(void **state) {
    (void)state;
    const float zeros[] = {0.0F, -0.0F};
    const float nans[] = {NAN, -NAN};
    assert_true(tn_sort_key(zeros, TN_DTYPE_F32, 0) == tn_sort_key(zeros, TN_DTYPE_F32, 1));
    assert_true(tn_sort_key(nans, TN_DTYPE_F32, 0) == tn_sort_key(nans, TN_DTYPE_F32, 1));
}

static void sort_of_every_length_is_in_order(void **state) {
    (void)state;
    enum { MOST = 70 };
    tn_sort_entry entries[MOST];
    tn_sort_entry scratch[MOST];
    for (size_t count = 0; count <= MOST; count++) {
        for (size_t i = 0; i < count; i++) entries[i] = (tn_sort_entry){i * 7919 % 13, i};
        tn_sort_entries(entries, scratch, count);
        for (size_t i = 1; i < count; i++) {
            assert_true(tn_sort_before(&entries[i - 1], &entries[i]));
        }
    }
}

static void heap_keeps_the_first_entries(void **state) {
    (void)state;
    tn_sort_entry kept[5];
    tn_sort_entry scratch[5];
    size_t count = 0;
    for (size_t i = 0; i < 100; i++) {
        const tn_sort_entry entry = {i * 37 % 101, i};
        tn_sort_offer(kept, &count, 5, &entry);
    }
    tn_sort_entries(kept, scratch, count);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < 5; i++) assert_true(kept[i].key <= 5 && kept[i].key >= i);
}

static void topk_prefers_the_lower_index(void **state) {
    (void)state;
    op_case c;
    static const float data[5] = {2, 7, 7, 1, 7};
    op_case_begin(&c, "TopK", 11);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(5));
    op_case_input(&c, TN_DTYPE_I64, INTS(3), OP_SHAPE(1));
    op_case_set_outputs(&c, 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), (const float[]){7, 7, 7}, 3, 0);
    assert_memory_equal(op_case_output(&c, 1), INTS(1, 2, 4), 24);
    op_case_end(&c);
}

static void topk_smallest_along_outer_axis(void **state) {
    (void)state;
    op_case c;
    static const float data[6] = {3, 1, 2, 5, 1, 4};
    op_case_begin(&c, "TopK", 11);
    op_case_set_int(&c, "axis", 0);
    op_case_set_int(&c, "largest", 0);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3, 2));
    op_case_input(&c, TN_DTYPE_I64, INTS(2), OP_SHAPE(1));
    op_case_set_outputs(&c, 2);

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_floats(op_case_output(&c, 0), (const float[]){1, 1, 2, 4}, 4, 0);
    assert_memory_equal(op_case_output(&c, 1), INTS(2, 0, 1, 2), 32);
    op_case_end(&c);
}

static void topk_refuses_more_than_there_is(void **state) {
    (void)state;
    const int64_t bad[] = {6, -1, INT64_MAX};
    static const float data[5];
    for (size_t i = 0; i < TN_COUNTOF(bad); i++) {
        op_case c;
        op_case_begin(&c, "TopK", 10);
        op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(5));
        op_case_input(&c, TN_DTYPE_I64, &bad[i], OP_SHAPE(1));
        op_case_set_outputs(&c, 2);
        ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
        op_case_end(&c);
    }
}

static void unique_unsorted_keeps_first_occurrence(void **state) {
    (void)state;
    op_case c;
    static const float data[6] = {2, 1, 1, 3, 4, 3};
    op_case_begin(&c, "Unique", 11);
    op_case_set_int(&c, "sorted", 0);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(6));
    op_case_set_outputs(&c, 4);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), (const float[]){2, 1, 3, 4}, 4, 0);
    assert_memory_equal(op_case_output(&c, 1), INTS(0, 1, 3, 4), 32);
    assert_memory_equal(op_case_output(&c, 2), INTS(0, 1, 1, 2, 3, 2), 48);
    assert_memory_equal(op_case_output(&c, 3), INTS(1, 2, 2, 1), 32);
    op_case_end(&c);
}

static void unique_rows_compare_as_wholes(void **state) {
    (void)state;
    op_case c;
    static const float data[6] = {2, 3, 1, 9, 2, 3};
    op_case_begin(&c, "Unique", 11);
    op_case_set_int(&c, "axis", 0);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2, 2));
    assert_floats(op_case_output(&c, 0), (const float[]){1, 9, 2, 3}, 4, 0);
    op_case_end(&c);
}

static void unique_of_nothing_is_nothing(void **state) {
    (void)state;
    op_case c;
    static const float data[1];
    op_case_begin(&c, "Unique", 11);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(0));
    op_case_set_outputs(&c, 4);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(0));
    assert_shape(&c, 3, OP_SHAPE(0));
    op_case_end(&c);
}

/* Two equal boxes and one apart. */
static void begin_nms(op_case *c, const int64_t *most, const float *iou, const float *score) {
    static const float boxes[12] = {0, 0, 1, 1, 1, 1, 0, 0, 0, 5, 1, 6};
    static const float scores[3] = {0.5F, 0.5F, 0.9F};
    op_case_begin(c, "NonMaxSuppression", 11);
    op_case_input(c, TN_DTYPE_F32, boxes, OP_SHAPE(1, 3, 4));
    op_case_input(c, TN_DTYPE_F32, scores, OP_SHAPE(1, 1, 3));
    if (most == NULL) return;
    op_case_input(c, TN_DTYPE_I64, most, OP_SHAPE(1));
    op_case_input(c, TN_DTYPE_F32, iou, OP_SHAPE(1));
    op_case_input(c, TN_DTYPE_F32, score, OP_SHAPE(1));
}

static void nms_drops_what_overlaps(void **state) {
    (void)state;
    op_case c;
    const int64_t most = 5;
    const float iou = 0.5F;
    const float score = 0.0F;
    begin_nms(&c, &most, &iou, &score);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2, 3));
    assert_memory_equal(op_case_output(&c, 0), INTS(0, 0, 2, 0, 0, 0), 48);
    op_case_end(&c);
}

static void nms_score_must_be_above_the_threshold(void **state) {
    (void)state;
    op_case c;
    const int64_t most = 5;
    const float iou = 0.5F;
    const float score = 0.9F;
    begin_nms(&c, &most, &iou, &score);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(0, 3));
    op_case_end(&c);
}

static void nms_without_a_limit_selects_none(void **state) {
    (void)state;
    op_case c;
    begin_nms(&c, NULL, NULL, NULL);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(0, 3));
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(keys_order_like_numbers),          T(keys_of_both_zeros_and_all_nans_are_equal),
        T(sort_of_every_length_is_in_order), T(heap_keeps_the_first_entries),
        T(topk_prefers_the_lower_index),     T(topk_smallest_along_outer_axis),
        T(topk_refuses_more_than_there_is),  T(unique_unsorted_keeps_first_occurrence),
        T(unique_rows_compare_as_wholes),    T(unique_of_nothing_is_nothing),
        T(nms_drops_what_overlaps),          T(nms_score_must_be_above_the_threshold),
        T(nms_without_a_limit_selects_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
