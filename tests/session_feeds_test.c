/* What callers may hand to a run, right and wrong: types, ranks, empty and strided tensors, one
 * tensor twice, given outputs that overlap, defaults fed or not, branches that differ. */
#include <math.h>
#include <string.h>

#include "session_fixture.h"

static const int64_t two_by_three[] = {2, 3};

/* y = x + x2 over [N, 3]. */
static void build_sum(onnx_model *m) {
    static const int64_t dims[] = {-1, 3};
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 2, dims);
    onnx_input(m, "x2", TN_DTYPE_F32, 2, dims);
    onnx_node(m, "Add", "x x2", "y");
    onnx_node(m, "Sub", "x x2", "z");
    onnx_output(m, "y", TN_DTYPE_F32, 2, dims);
    onnx_output(m, "z", TN_DTYPE_F32, 2, dims);
}

static tn_status run_two(const session_fixture *f, tn_value *x, tn_value *x2, tn_value **out,
                         tn_error *err) {
    const tn_feed feeds[] = {{"x", x}, {"x2", x2}};
    return tn_session_run(f->session, feeds, 2, NULL, 2, out, err);
}

static void wrong_feeds_are_refused_and_change_nothing(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6] = {1, 2, 3, 4, 5, 6};
    double doubles[6] = {0};
    const int64_t wrong_dim[] = {2, 2};
    tn_value *out[2] = {NULL, NULL};
    tn_error err = {.code = TN_OK};
    build_sum(&m);
    fixture_open(&f, &m, NULL);
    tn_value *good = fixture_tensor(&f, TN_DTYPE_F32, 2, two_by_three, data);
    tn_value *wrong[] = {fixture_tensor(&f, TN_DTYPE_F64, 2, two_by_three, doubles),
                         fixture_tensor(&f, TN_DTYPE_F32, 1, two_by_three, data),
                         fixture_tensor(&f, TN_DTYPE_F32, 0, NULL, data),
                         fixture_tensor(&f, TN_DTYPE_F32, 2, wrong_dim, data), NULL};

    for (size_t i = 0; i < 5; i++) {
        ASSERT_STATUS(TN_INVALID_ARGUMENT, run_two(&f, good, wrong[i], out, &err));
        assert_non_null(strstr(err.message, "x2"));
        assert_null(out[0]);
        assert_null(out[1]);
        tn_tensor_release(wrong[i]);
    }
    const tn_feed twice[] = {{"x", good}, {"x2", good}, {"x", good}};
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_session_run(f.session, twice, 3, NULL, 2, out, &err));
    const tn_feed nameless[] = {{"x", good}, {NULL, good}};
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_session_run(f.session, nameless, 2, NULL, 2, out, &err));
    const tn_feed unknown[] = {{"x", good}, {"x2", good}, {"w", good}};
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_session_run(f.session, unknown, 3, NULL, 2, out, &err));
    const char *no_name[] = {"y", NULL};
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_session_run(f.session, twice, 2, no_name, 2, out, &err));
    ASSERT_OK(run_two(&f, good, good, out, &err));
    assert_float_equal(floats_of(out[0])[5], 12.0F, 0.0F);

    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    tn_tensor_release(good);
    fixture_close(&f);
}

static void negative_and_zero_strides_are_honoured(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6] = {1, 2, 3, 4, 5, 6};
    const tn_shape shape = {.rank = 2, .dims = {2, 3}};
    const int64_t backwards[] = {-12, -4};
    const int64_t repeated[] = {0, 4};
    tn_value *reversed = NULL;
    tn_value *row = NULL;
    tn_value *out[2] = {NULL, NULL};
    build_sum(&m);
    fixture_open(&f, &m, NULL);
    tn_allocator *allocator = tn_environment_allocator(f.environment);
    ASSERT_OK(tn_tensor_create_borrowed(allocator, TN_DTYPE_F32, &shape, backwards, &data[5], NULL,
                                        NULL, &reversed, NULL));
    ASSERT_OK(tn_tensor_create_borrowed(allocator, TN_DTYPE_F32, &shape, repeated, data, NULL, NULL,
                                        &row, NULL));

    ASSERT_OK(run_two(&f, reversed, row, out, NULL));

    const float sums[] = {7, 7, 7, 4, 4, 4};
    const float differences[] = {5, 3, 1, 2, 0, -2};
    assert_true(same_floats(out[0], sums, 6));
    assert_true(same_floats(out[1], differences, 6));
    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    tn_tensor_release(reversed);
    tn_tensor_release(row);
    fixture_close(&f);
}

static void empty_tensors_and_nan_are_ordinary(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[3] = {NAN, INFINITY, -INFINITY};
    const int64_t none[] = {0, 3};
    const int64_t one[] = {1, 3};
    const tn_shape shape = {.rank = 2, .dims = {0, 3}};
    const int64_t strides[] = {-12, 4};
    tn_value *out[2] = {NULL, NULL};
    tn_value *strided = NULL;
    build_sum(&m);
    fixture_open(&f, &m, NULL);
    tn_value *empty = fixture_tensor(&f, TN_DTYPE_F32, 2, none, NULL);
    tn_value *odd = fixture_tensor(&f, TN_DTYPE_F32, 2, one, data);
    ASSERT_OK(tn_tensor_create_borrowed(tn_environment_allocator(f.environment), TN_DTYPE_F32,
                                        &shape, strides, NULL, NULL, NULL, &strided, NULL));

    ASSERT_OK(run_two(&f, empty, strided, out, NULL));
    assert_int_equal(tn_tensor_size_bytes(out[0]), 0);
    assert_int_equal(tn_tensor_borrow_shape(out[1])->dims[1], 3);
    assert_non_null(tn_tensor_borrow_data(out[0]));
    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    out[0] = out[1] = NULL;
    ASSERT_OK(run_two(&f, odd, odd, out, NULL));
    assert_true(isnan(floats_of(out[0])[0]));
    assert_true(isinf(floats_of(out[0])[1]));
    assert_true(isnan(floats_of(out[1])[1]));

    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    tn_tensor_release(empty);
    tn_tensor_release(strided);
    tn_tensor_release(odd);
    fixture_close(&f);
}

/* Given outputs that share memory with each other or with an input: results as if they did not, or
 * a refusal; never a silent mixture. */
static void given_outputs_that_overlap_are_never_mixed(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[12] = {1, 2, 3, 4, 5, 6};
    float other[6] = {10, 20, 30, 40, 50, 60};
    tn_error err = {.code = TN_OK};
    build_sum(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, two_by_three, data);
    tn_value *x2 = fixture_tensor(&f, TN_DTYPE_F32, 2, two_by_three, other);
    tn_value *shifted = fixture_tensor(&f, TN_DTYPE_F32, 2, two_by_three, data + 1);
    tn_value *outputs[][2] = {{x, NULL}, {x2, x2}, {x, x2}, {shifted, NULL}};

    for (size_t i = 0; i < 4; i++) {
        tn_value *out[2] = {outputs[i][0], outputs[i][1]};
        const float before[6] = {1, 2, 3, 4, 5, 6};
        memcpy(data, before, sizeof before);
        const float tens[6] = {10, 20, 30, 40, 50, 60};
        memcpy(other, tens, sizeof tens);
        const tn_status status = run_two(&f, x, x2, out, &err);
        if (status == TN_OK) {
            const float sums[] = {11, 22, 33, 44, 55, 66};
            const float differences[] = {-9, -18, -27, -36, -45, -54};
            assert_ptr_not_equal(tn_tensor_borrow_data(out[0]), tn_tensor_borrow_data(out[1]));
            assert_true(same_floats(out[0], sums, 6));
            assert_true(same_floats(out[1], differences, 6));
        } else {
            assert_int_equal(status, TN_INVALID_ARGUMENT);
            assert_memory_equal(data, before, sizeof before);
            assert_memory_equal(other, tens, sizeof tens);
        }
        for (size_t k = 0; k < 2; k++) {
            if (out[k] != outputs[i][k]) tn_tensor_release(out[k]);
        }
    }

    tn_tensor_release(x);
    tn_tensor_release(x2);
    tn_tensor_release(shifted);
    fixture_close(&f);
}

static void model_without_inputs_and_with_unused_ones_runs(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    const float weights[6] = {1, -2, 3, -4, 5, -6};
    const float relu[6] = {1, 0, 3, 0, 5, 0};
    tn_value *out[1] = {NULL};
    onnx_begin(&m, 13);
    onnx_initializer(&m, "w", TN_DTYPE_F32, 2, two_by_three, weights, sizeof weights);
    onnx_node(&m, "Relu", "w", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 2, two_by_three);
    fixture_open(&f, &m, NULL);
    ASSERT_OK(tn_session_run(f.session, NULL, 0, NULL, 1, out, NULL));
    assert_true(same_floats(out[0], relu, 6));
    tn_tensor_release(out[0]);
    fixture_close(&f);

    float unused[6] = {0};
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, two_by_three);
    onnx_initializer(&m, "w", TN_DTYPE_F32, 2, two_by_three, weights, sizeof weights);
    onnx_node(&m, "Relu", "w", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 2, two_by_three);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, two_by_three, unused);
    fixture_run(&f, x, 1, out);
    assert_true(same_floats(out[0], relu, 6));
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

/* An initializer that is also an input, of which each run may feed another. */
static void defaults_are_fed_or_not_in_any_order(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    const float a[3] = {1, 2, 3};
    const float b[3] = {10, 20, 30};
    float fed[3] = {100, 200, 300};
    const int64_t three[] = {3};
    tn_value *out[1];
    onnx_begin(&m, 13);
    onnx_input(&m, "a", TN_DTYPE_F32, 1, three);
    onnx_input(&m, "b", TN_DTYPE_F32, 1, three);
    onnx_initializer(&m, "a", TN_DTYPE_F32, 1, three, a, sizeof a);
    onnx_initializer(&m, "b", TN_DTYPE_F32, 1, three, b, sizeof b);
    onnx_node(&m, "Add", "a b", "s");
    onnx_node(&m, "Neg", "s", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 1, three);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 1, three, fed);

    for (unsigned round = 0; round < 12; round++) {
        const unsigned mask = (round * 7) % 4;
        tn_feed feeds[2];
        size_t count = 0;
        if ((mask & 1u) != 0) feeds[count++] = (tn_feed){"a", x};
        if ((mask & 2u) != 0) feeds[count++] = (tn_feed){"b", x};
        out[0] = NULL;
        ASSERT_OK(tn_session_run(f.session, feeds, count, NULL, 1, out, NULL));
        for (size_t i = 0; i < 3; i++) {
            const float left = (mask & 1u) != 0 ? fed[i] : a[i];
            const float right = (mask & 2u) != 0 ? fed[i] : b[i];
            assert_float_equal(floats_of(out[0])[i], -(left + right), 0.0F);
        }
        tn_tensor_release(out[0]);
    }

    tn_tensor_release(x);
    fixture_close(&f);
}

/* A default of another shape than the input declares: what kernels were planned for must be what
 * they read. */
static void default_of_another_shape_is_taken_as_it_is_or_refused(void **state) {
    (void)state;
    onnx_model m;
    tn_error err = {.code = TN_OK};
    tn_environment *environment = NULL;
    tn_model *model = NULL;
    tn_session *session = NULL;
    tn_value *y = NULL;
    const float weights[2] = {1, 2};
    const int64_t two[] = {2};
    const int64_t many[] = {4096};
    onnx_begin(&m, 13);
    onnx_input(&m, "w", TN_DTYPE_F32, 1, many);
    onnx_initializer(&m, "w", TN_DTYPE_F32, 1, two, weights, sizeof weights);
    onnx_node(&m, "Neg", "w", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 1, many);
    onnx_end(&m);
    const tn_environment_options options = {.struct_size = sizeof options, .thread_count = 1};
    ASSERT_OK(tn_environment_create(&options, &environment, NULL));
    ASSERT_OK(tn_model_load_bytes(tn_environment_allocator(environment), m.data, m.size_bytes, NULL,
                                  &model, NULL));
    tn_status status = tn_session_create(environment, model, NULL, &session, &err);
    if (status == TN_OK) status = tn_session_run(session, NULL, 0, NULL, 1, &y, &err);
    if (status == TN_OK) {
        assert_int_equal(tn_tensor_size_bytes(y), sizeof weights);
        assert_float_equal(floats_of(y)[1], -2.0F, 0.0F);
    } else {
        assert_true(status == TN_INVALID_MODEL || status == TN_INVALID_ARGUMENT);
    }
    tn_tensor_release(y);
    tn_session_release(session);
    tn_model_release(model);
    tn_environment_release(environment);
    onnx_free(&m);
}

/* A branch of one node; `name` is what it gives. */
static onnx_bytes branch_of(const char *op, const char *inputs, const char *name) {
    onnx_bytes graph = {0};
    onnx_text_field(&graph, 2, name);
    onnx_node_in(&graph, op, inputs, name);
    onnx_value_info(&graph, 12, name, TN_DTYPE_F32, -1, NULL);
    return graph;
}

/* if c: x (captured), else: Transpose(x); shapes and liveness differ between both sides. */
static void branches_of_other_shapes_capture_and_nest(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6] = {1, 2, 3, 4, 5, 6};
    bool flags[2] = {false, false};
    const float straight[6] = {-1, -2, -3, -4, -5, -6};
    const float turned[6] = {1, 4, 2, 5, 3, 6};
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, two_by_three);
    onnx_input(&m, "c", TN_DTYPE_BOOL, 0, NULL);
    onnx_input(&m, "d", TN_DTYPE_BOOL, 0, NULL);
    onnx_bytes inner_then = branch_of("Neg", "x", "n");
    onnx_bytes inner_else = branch_of("Identity", "x", "i");
    onnx_bytes inner;
    onnx_node_begin(&inner, "If", "d", "in");
    onnx_attribute_graph(&inner, "then_branch", &inner_then);
    onnx_attribute_graph(&inner, "else_branch", &inner_else);
    onnx_bytes then_graph = {0};
    onnx_text_field(&then_graph, 2, "outer");
    onnx_node_end(&then_graph, &inner);
    onnx_value_info(&then_graph, 12, "in", TN_DTYPE_F32, -1, NULL);
    onnx_bytes else_graph = branch_of("Transpose", "x", "t");
    onnx_bytes outer;
    onnx_node_begin(&outer, "If", "c", "y");
    onnx_attribute_graph(&outer, "then_branch", &then_graph);
    onnx_attribute_graph(&outer, "else_branch", &else_graph);
    onnx_node_end(&m.graph, &outer);
    onnx_node(&m, "Relu", "y", "z");
    onnx_output(&m, "y", TN_DTYPE_F32, -1, NULL);
    onnx_output(&m, "z", TN_DTYPE_F32, -1, NULL);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, two_by_three, data);
    tn_value *c = fixture_tensor(&f, TN_DTYPE_BOOL, 0, NULL, &flags[0]);
    tn_value *d = fixture_tensor(&f, TN_DTYPE_BOOL, 0, NULL, &flags[1]);

    for (unsigned round = 0; round < 16; round++) {
        tn_value *out[2] = {NULL, NULL};
        flags[0] = ((round * 5) & 1u) != 0;
        flags[1] = ((round * 3) & 2u) != 0;
        const tn_feed feeds[] = {{"x", x}, {"c", c}, {"d", d}};
        ASSERT_OK(tn_session_run(f.session, feeds, 3, NULL, 2, out, NULL));
        const float *expected = !flags[0] ? turned : flags[1] ? straight : data;
        assert_true(same_floats(out[0], expected, 6));
        assert_ptr_not_equal(tn_tensor_borrow_data(out[0]), data);
        assert_int_equal(tn_tensor_borrow_shape(out[0])->dims[0], flags[0] ? 2 : 3);
        assert_float_equal(floats_of(out[1])[1], expected[1] > 0 ? expected[1] : 0, 0.0F);
        tn_tensor_release(out[0]);
        tn_tensor_release(out[1]);
    }

    tn_tensor_release(x);
    tn_tensor_release(c);
    tn_tensor_release(d);
    fixture_close(&f);
}

static void strings_outlive_their_session_and_their_input(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    const int64_t three[] = {3};
    tn_value *out[1];
    char text[] = "changed later";
    tn_string strings[3] = {{text, 7}, {"", 0}, {"third", 5}};
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_STRING, 1, three);
    onnx_node(&m, "Identity", "x", "y");
    onnx_output(&m, "y", TN_DTYPE_STRING, 1, three);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_STRING, 1, three, strings);
    fixture_run(&f, x, 1, out);
    tn_tensor_release(x);
    memset(text, '?', sizeof text - 1);
    memset(strings, 0, sizeof strings);
    fixture_close(&f);

    const tn_string *kept = tn_tensor_borrow_data(out[0]);
    assert_int_equal(kept[0].size_bytes, 7);
    assert_memory_equal(kept[0].data, "changed", 7);
    assert_int_equal(kept[1].size_bytes, 0);
    assert_memory_equal(kept[2].data, "third", 5);
    tn_tensor_release(out[0]);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(wrong_feeds_are_refused_and_change_nothing),
        T(negative_and_zero_strides_are_honoured),
        T(empty_tensors_and_nan_are_ordinary),
        T(given_outputs_that_overlap_are_never_mixed),
        T(model_without_inputs_and_with_unused_ones_runs),
        T(defaults_are_fed_or_not_in_any_order),
        T(default_of_another_shape_is_taken_as_it_is_or_refused),
        T(branches_of_other_shapes_capture_and_nest),
        T(strings_outlive_their_session_and_their_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
