#include <stdlib.h>
#include <string.h>

#include "op_case.h"
#include "session_fixture.h"

enum { ROWS = 5, COLS = 37 };

static float pattern[ROWS * COLS];

static size_t step_count(const session_fixture *f) {
    tn_plan_report *report = NULL;
    tn_plan_summary summary = {.struct_size = sizeof summary};
    ASSERT_OK(tn_session_plan(f->session, NULL, 0, &report, NULL));
    tn_plan_report_summary(report, &summary);
    tn_plan_report_destroy(report);
    return summary.step_count;
}

/* The model's outputs with fusion and without must have the same bits; with it there are `steps`
 * steps. */
static void check_same_bits(void (*build)(onnx_model *m), size_t output_count, size_t steps) {
    tn_value *results[2][2] = {{NULL, NULL}, {NULL, NULL}};
    session_fixture fixtures[2];
    fill_floats(pattern, ROWS * COLS, 7);
    for (int plain = 0; plain < 2; plain++) {
        onnx_model m;
        tn_session_options options = {.struct_size = sizeof options, .disable_fusion = plain != 0};
        onnx_begin(&m, 17);
        onnx_input(&m, "x", 1, 2, (const int64_t[]){ROWS, COLS});
        build(&m);
        fixture_open(&fixtures[plain], &m, &options);
        tn_value *x = fixture_tensor(&fixtures[plain], TN_DTYPE_F32, 2,
                                     (const int64_t[]){ROWS, COLS}, pattern);
        fixture_run(&fixtures[plain], x, output_count, results[plain]);
        tn_tensor_release(x);
    }
    assert_int_equal(step_count(&fixtures[0]), steps);
    for (size_t i = 0; i < output_count; i++) {
        const size_t size_bytes = tn_tensor_size_bytes(results[0][i]);
        assert_int_equal(size_bytes, tn_tensor_size_bytes(results[1][i]));
        assert_memory_equal(tn_tensor_borrow_data(results[0][i]),
                            tn_tensor_borrow_data(results[1][i]), size_bytes);
    }
    for (int plain = 0; plain < 2; plain++) {
        for (size_t i = 0; i < output_count; i++) tn_tensor_release(results[plain][i]);
        fixture_close(&fixtures[plain]);
    }
}

static void add_output(onnx_model *m, const char *name) {
    onnx_output(m, name, 1, 2, (const int64_t[]){ROWS, COLS});
}

static void add_scalar(onnx_model *m, const char *name, float value) {
    onnx_initializer(m, name, 1, 0, NULL, &value, sizeof value);
}

static void build_chain(onnx_model *m) {
    add_scalar(m, "c", 0.75F);
    onnx_node(m, "Mul", "x c", "a");
    onnx_node(m, "Tanh", "a", "b");
    onnx_node(m, "Sub", "c b", "d");
    onnx_node(m, "Exp", "d", "y");
    add_output(m, "y");
}

static void chain_keeps_every_bit(void **state) {
    (void)state;
    check_same_bits(build_chain, 1, 1);
}

/* x * sigmoid(x) + (x - mean-like row) * column: values read twice, broadcasts both ways. */
static void build_tree(onnx_model *m) {
    onnx_initializer(m, "row", 1, 2, (const int64_t[]){ROWS, 1}, pattern, ROWS * sizeof(float));
    onnx_initializer(m, "col", 1, 1, (const int64_t[]){COLS}, pattern, COLS * sizeof(float));
    onnx_node(m, "Abs", "x", "p");
    onnx_node(m, "Sigmoid", "p", "s");
    onnx_node(m, "Mul", "p s", "a");
    onnx_node(m, "Sub", "x row", "b");
    onnx_node(m, "Mul", "b col", "c");
    onnx_node(m, "Mul", "c c", "d");
    onnx_node(m, "Add", "a d", "y");
    add_output(m, "y");
}

static void tree_with_broadcasts_keeps_every_bit(void **state) {
    (void)state;
    check_same_bits(build_tree, 1, 1);
}

/* The middle value is an output too: it must be made. */
static void build_two_outputs(onnx_model *m) {
    add_scalar(m, "c", 2.0F);
    onnx_node(m, "Mul", "x c", "a");
    onnx_node(m, "Relu", "a", "y");
    onnx_node(m, "Neg", "y", "b");
    onnx_node(m, "Exp", "b", "z");
    add_output(m, "y");
    add_output(m, "z");
}

static void value_that_leaves_is_made(void **state) {
    (void)state;
    check_same_bits(build_two_outputs, 2, 2);
}

static void build_product(onnx_model *m) {
    onnx_initializer(m, "w", 1, 2, (const int64_t[]){COLS, 4}, pattern, 4 * COLS * sizeof(float));
    onnx_initializer(m, "bias", 1, 1, (const int64_t[]){4}, pattern, 4 * sizeof(float));
    onnx_node(m, "MatMul", "x w", "a");
    onnx_node(m, "Add", "a bias", "b");
    onnx_node(m, "Sigmoid", "b", "s");
    onnx_node(m, "Mul", "b s", "y");
    onnx_output(m, "y", 1, 2, (const int64_t[]){ROWS, 4});
}

static void epilogue_of_a_product_keeps_every_bit(void **state) {
    (void)state;
    check_same_bits(build_product, 1, 1);
}

/* Longer than a program holds. */
static void build_long_chain(onnx_model *m) {
    static const char *const ops[] = {"Tanh", "Neg", "Sigmoid", "Abs"};
    char from[8] = "x";
    for (int i = 0; i < 61; i++) {
        char to[8];
        (void)snprintf(to, sizeof to, i == 60 ? "y" : "v%d", i);
        onnx_node(m, ops[i % 4], from, to);
        memcpy(from, to, sizeof from);
    }
    add_output(m, "y");
}

static void chain_longer_than_a_program_is_cut(void **state) {
    (void)state;
    check_same_bits(build_long_chain, 1, 3);
}

static void program_of_a_model_is_refused(void **state) {
    (void)state;
    op_case c;
    const tn_op_table *const *tables;
    size_t table_count;
    memset(&c, 0, sizeof c);
    tables = tn_registry_tables(&table_count);
    const tn_op_def *row =
        tn_op_tables_find(tables, table_count, (tn_text){"tenure", 6},
                          (tn_text){"FusedElementwise", strlen("FusedElementwise")}, 1);
    assert_non_null(row);
    void *params = calloc(1, row->params_bytes);
    assert_non_null(params);
    const tn_check_context check = {.node = &c.node};

    ASSERT_STATUS(TN_UNSUPPORTED, row->check(&check, params));

    free(params);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(chain_keeps_every_bit),
        T(tree_with_broadcasts_keeps_every_bit),
        T(value_that_leaves_is_made),
        T(epilogue_of_a_product_keeps_every_bit),
        T(chain_longer_than_a_program_is_cut),
        T(program_of_a_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
