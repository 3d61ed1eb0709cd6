#include <math.h>
#include <string.h>

#include "op_case.h"
#include "plan/passes.h"
#include "session_fixture.h"

enum { CHANNELS = 5, SIDE = 4, IN_CHANNELS = 2, OUTPUT = CHANNELS * SIDE * SIDE };

static const int64_t x_dims[] = {1, IN_CHANNELS, SIDE, SIDE};
static const int64_t y_dims[] = {1, CHANNELS, SIDE, SIDE};

typedef void (*build_fn)(onnx_model *m);

static void add_floats(onnx_model *m, const char *name, int rank, const int64_t *dims,
                       uint32_t seed) {
    float values[64];
    size_t count = 1;
    for (int i = 0; i < rank; i++) count *= (size_t)dims[i];
    assert_true(count <= TN_COUNTOF(values));
    fill_floats(values, count, seed);
    for (size_t i = 0; i < count; i++) values[i] += 1.5F; /* variances and divisors above zero */
    onnx_initializer(m, name, 1, rank, dims, values, count * sizeof *values);
}

static void add_channel_floats(onnx_model *m, const char *name, uint32_t seed) {
    add_floats(m, name, 1, (const int64_t[]){CHANNELS}, seed);
}

static void add_column(onnx_model *m, const char *name, uint32_t seed) {
    add_floats(m, name, 3, (const int64_t[]){CHANNELS, 1, 1}, seed);
}

/* x to c. */
static void add_convolution(onnx_model *m, bool has_bias) {
    add_floats(m, "w", 4, (const int64_t[]){CHANNELS, IN_CHANNELS, 1, 1}, 1);
    if (has_bias) add_channel_floats(m, "b", 2);
    onnx_node(m, "Conv", has_bias ? "x w b" : "x w", "c");
}

static void begin(onnx_model *m, build_fn build) {
    onnx_begin(m, 17);
    onnx_input(m, "x", 1, 4, x_dims);
    build(m);
    onnx_output(m, "y", 1, 4, y_dims);
}

/* Nodes of the main graph after folding; allocators and model are the fixture's. */
static uint32_t count_folded_nodes(const session_fixture *f) {
    tn_ir *ir = NULL;
    tn_error err = {.code = TN_OK};
    size_t table_count = 0;
    uint32_t live = 0;
    const tn_op_table *const *tables = tn_registry_tables(&table_count);
    tn_allocator *allocator = tn_environment_allocator(f->environment);
    const tn_ir_options options = {.allocator = allocator,
                                   .weights_allocator = allocator,
                                   .tables = tables,
                                   .table_count = table_count,
                                   .worker_count = 1};
    const tn_pass_options passes = {.disable_fusion = false};
    ASSERT_OK(tn_ir_create(f->model, &options, &ir, &err));
    ASSERT_OK(tn_ir_fold(ir, 1024, &err));
    ASSERT_OK(tn_pass_fold_affine(ir, &passes, &err));
    for (uint32_t i = 0; i < ir->blocks[ir->main_block].node_count; i++) {
        live += !ir->nodes[ir->blocks[ir->main_block].nodes[i]].is_dead;
    }
    tn_ir_destroy(ir);
    return live;
}

/* With folding `nodes` are left, and the results are those without it. */
static void check(build_fn build, uint32_t nodes) {
    tn_value *y[2] = {NULL, NULL};
    session_fixture fixtures[2];
    float x[IN_CHANNELS * SIDE * SIDE];
    fill_floats(x, TN_COUNTOF(x), 3);
    for (int plain = 0; plain < 2; plain++) {
        onnx_model m;
        const tn_session_options options = {.struct_size = sizeof options,
                                            .disable_fusion = plain != 0};
        begin(&m, build);
        fixture_open(&fixtures[plain], &m, &options);
        tn_value *input = fixture_tensor(&fixtures[plain], TN_DTYPE_F32, 4, x_dims, x);
        fixture_run(&fixtures[plain], input, 1, &y[plain]);
        tn_tensor_release(input);
    }

    assert_int_equal(count_folded_nodes(&fixtures[0]), nodes);
    assert_floats(floats_of(y[0]), floats_of(y[1]), OUTPUT, 1e-5);

    for (int plain = 0; plain < 2; plain++) {
        tn_tensor_release(y[plain]);
        fixture_close(&fixtures[plain]);
    }
}

static void build_normalized(onnx_model *m) {
    add_convolution(m, false);
    add_channel_floats(m, "scale", 4);
    add_channel_floats(m, "shift", 5);
    add_channel_floats(m, "mean", 6);
    add_channel_floats(m, "var", 7);
    add_column(m, "factor", 8);
    add_column(m, "term", 9);
    onnx_node(m, "BatchNormalization", "c scale shift mean var", "n");
    onnx_node(m, "Mul", "n factor", "p");
    onnx_node(m, "Add", "term p", "y");
}

static void normalization_factor_and_term_fold(void **state) {
    (void)state;
    check(build_normalized, 1);
}

static void build_biased(onnx_model *m) {
    add_convolution(m, true);
    add_column(m, "term", 4);
    add_column(m, "divisor", 5);
    add_floats(m, "factor", 0, NULL, 6);
    onnx_node(m, "Sub", "c term", "s");
    onnx_node(m, "Div", "s divisor", "d");
    onnx_node(m, "Mul", "factor d", "y");
}

static void term_divisor_and_scalar_fold_into_the_bias_too(void **state) {
    (void)state;
    check(build_biased, 1);
}

/* c - x and c / x are no scale and shift of x, for one of them not even linear. */
static void build_reversed(onnx_model *m) {
    add_convolution(m, true);
    add_column(m, "term", 4);
    onnx_node(m, "Sub", "term c", "s");
    onnx_node(m, "Div", "term s", "y");
}

static void reversed_operands_stay(void **state) {
    (void)state;
    check(build_reversed, 3);
}

/* One number per column of the image. */
static void build_along_width(onnx_model *m) {
    add_convolution(m, true);
    add_floats(m, "row", 1, (const int64_t[]){SIDE}, 4);
    onnx_node(m, "Mul", "c row", "y");
}

static void factor_along_the_width_stays(void **state) {
    (void)state;
    check(build_along_width, 2);
}

static void build_read_twice(onnx_model *m) {
    add_convolution(m, true);
    add_column(m, "factor", 4);
    onnx_node(m, "Mul", "c factor", "p");
    onnx_node(m, "Add", "p c", "y");
}

static void result_that_others_read_stays(void **state) {
    (void)state;
    check(build_read_twice, 3);
}

/* Weights of zero: folded, they would be 0 * infinity. */
static void build_zero_divisor(onnx_model *m) {
    static const float zeros[CHANNELS * IN_CHANNELS] = {0};
    add_channel_floats(m, "b", 2);
    onnx_initializer(m, "w", 1, 4, (const int64_t[]){CHANNELS, IN_CHANNELS, 1, 1}, zeros,
                     sizeof zeros);
    onnx_initializer(m, "zero", 1, 0, NULL, zeros, sizeof *zeros);
    onnx_node(m, "Conv", "x w b", "c");
    onnx_node(m, "Div", "c zero", "y");
}

static void division_by_zero_stays_infinite(void **state) {
    (void)state;
    check(build_zero_divisor, 2);
}

/* The rank of x is not declared, so nobody has compared the bias with the weights yet. */
static void short_bias_behind_an_unknown_rank_is_not_read(void **state) {
    onnx_model m;
    session_fixture f;
    (void)state;
    onnx_begin(&m, 17);
    onnx_input(&m, "x", 1, -1, NULL);
    add_floats(&m, "w", 4, (const int64_t[]){CHANNELS, IN_CHANNELS, 1, 1}, 1);
    add_floats(&m, "b", 1, (const int64_t[]){1}, 2);
    add_channel_floats(&m, "scale", 4);
    add_channel_floats(&m, "shift", 5);
    onnx_node(&m, "Conv", "x w b", "c");
    onnx_node(&m, "BatchNormalization", "c scale shift shift scale", "y");
    onnx_output(&m, "y", 1, -1, NULL);
    fixture_open(&f, &m, NULL);

    assert_int_equal(count_folded_nodes(&f), 2);

    float x[IN_CHANNELS * SIDE * SIDE] = {0};
    tn_error err = {.code = TN_OK};
    tn_value *y = NULL;
    tn_value *input = fixture_tensor(&f, TN_DTYPE_F32, 4, x_dims, x);
    const tn_feed feed = {"x", input};
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_session_run(f.session, &feed, 1, NULL, 1, &y, &err));
    assert_null(y);
    tn_tensor_release(input);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalization_factor_and_term_fold),
        cmocka_unit_test(term_divisor_and_scalar_fold_into_the_bias_too),
        cmocka_unit_test(reversed_operands_stay),
        cmocka_unit_test(factor_along_the_width_stays),
        cmocka_unit_test(result_that_others_read_stays),
        cmocka_unit_test(division_by_zero_stays_infinite),
        cmocka_unit_test(short_bias_behind_an_unknown_rank_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
