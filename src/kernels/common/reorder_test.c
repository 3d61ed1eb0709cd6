#include "blocked_case.h"

/* Runs one direction: blocked_run cuts or puts together the other side. */
static void check_shape(tn_shape shape, uint16_t block) {
    enum { LARGEST = 40 * 1024 };
    float *x = malloc(LARGEST * sizeof *x);
    assert_non_null(x);
    const size_t count = (size_t)shape.dims[0] * (size_t)shape.dims[1] * blocked_spatial(&shape);
    assert_true(count <= LARGEST);
    fill_floats(x, LARGEST, 5);
    for (uint32_t direction = 0; direction < 2; direction++) {
        op_case c;
        op_case_begin(&c, "Relu", 14); /* a case needs some row of the default domain */
        size_t table_count;
        const tn_op_table *const *tables = tn_registry_tables(&table_count);
        c.op = tn_op_tables_find(tables, table_count, (tn_text){"tenure", 6},
                                 (tn_text){"Reorder", 7}, 1);
        assert_non_null(c.op);
        op_case_input(&c, TN_DTYPE_F32, x, shape);

        assert_true(blocked_run(&c, &(blocked_query){.block = block, .skip = direction}));

        assert_floats(op_case_output(&c, 0), x, count, 0);
        op_case_end(&c);
    }
    free(x);
}

static void reorder_there_and_back_keeps_every_element(void **state) {
    (void)state;
    static const uint16_t blocks[] = {8, 16};
    for (size_t b = 0; b < TN_COUNTOF(blocks); b++) {
        check_shape(OP_SHAPE(1, 16, 4, 4), blocks[b]);
        check_shape(OP_SHAPE(2, 19, 5, 7), blocks[b]);
        check_shape(OP_SHAPE(1, 1, 1, 1), blocks[b]);
        check_shape(OP_SHAPE(3, 33, 17), blocks[b]);
        check_shape(OP_SHAPE(1, 17, 45, 47), blocks[b]);
        check_shape(OP_SHAPE(2, 8), blocks[b]);
    }
}

static void reorder_of_nothing_does_nothing(void **state) {
    (void)state;
    check_shape(OP_SHAPE(0, 16, 4, 4), 8);
    check_shape(OP_SHAPE(1, 16, 0, 4), 16);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(reorder_there_and_back_keeps_every_element),
        T(reorder_of_nothing_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
