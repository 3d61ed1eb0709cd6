/* Memory limits from nothing to enough: every refusal is typed and names who refused with numbers,
 * changes nothing, and a larger limit lets the same session work. */
#include <string.h>

#include "session_fixture.h"

#define ROWS 48
#define COLS 48
#define RECORD_BYTES 1024

/* y = Relu(x w) transposed, so that there is a weight, a slab and an output. */
static void build(onnx_model *m) {
    static float weights[COLS * COLS];
    static const int64_t dims[] = {-1, COLS};
    static const int64_t weight_dims[] = {COLS, COLS};
    for (size_t i = 0; i < COLS * COLS; i++) weights[i] = (float)(i % 7) - 3.0F;
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 2, dims);
    onnx_initializer(m, "w", TN_DTYPE_F32, 2, weight_dims, weights, sizeof weights);
    onnx_node(m, "MatMul", "x w", "a");
    onnx_node(m, "Relu", "a", "b");
    onnx_node(m, "Transpose", "b", "y");
    onnx_output(m, "y", TN_DTYPE_F32, -1, NULL);
    onnx_end(m);
}

static void check_refusal(tn_status status, const tn_error *err, uint64_t limit_bytes) {
    if (status != TN_LIMIT)
        print_error("%llu: %s\n", (unsigned long long)limit_bytes, err->message);
    assert_int_equal(status, TN_LIMIT);
    assert_int_equal(err->code, TN_LIMIT);
    assert_true(err->allocator[0] != '\0');
    assert_non_null(strstr(err->message, err->allocator));
    assert_true(err->rounded_bytes > 0);
    assert_true(err->limit_bytes > 0);
    assert_true(err->used_bytes + err->rounded_bytes > err->limit_bytes);
}

static tn_status run(tn_session *session, tn_allocator *outside, tn_value **out, tn_error *err) {
    static float data[ROWS * COLS];
    tn_shape shape = {.rank = 2, .dims = {ROWS, COLS}};
    tn_value *x = NULL;
    for (size_t i = 0; i < ROWS * COLS; i++) data[i] = (float)(i % 11) - 5.0F;
    ASSERT_OK(
        tn_tensor_create_borrowed(outside, TN_DTYPE_F32, &shape, NULL, data, NULL, NULL, &x, NULL));
    const tn_feed feed = {"x", x};
    *out = NULL;
    const tn_status status = tn_session_run(session, &feed, 1, NULL, 1, out, err);
    assert_true((*out != NULL) == (status == TN_OK));
    tn_tensor_release(x);
    return status;
}

/* The whole life under an environment's limit. */
static tn_status live_within(uint64_t limit_bytes, const onnx_model *m, tn_allocator *outside,
                             tn_error *err) {
    tn_status status = TN_OK;
    tn_environment *environment = NULL;
    tn_model *model = NULL;
    tn_session *session = NULL;
    tn_value *y = NULL;
    const tn_environment_options options = {.struct_size = sizeof options,
                                            .parent = outside,
                                            .memory_limit_bytes = limit_bytes,
                                            .thread_count = 1};
    status = tn_environment_create(&options, &environment, err);
    if (status == TN_OK) {
        status = tn_model_load_bytes(tn_environment_allocator(environment), m->data, m->size_bytes,
                                     NULL, &model, err);
    }
    if (status == TN_OK) status = tn_session_create(environment, model, NULL, &session, err);
    if (status == TN_OK) status = run(session, outside, &y, err);
    tn_tensor_release(y);
    tn_session_release(session);
    tn_model_release(model);
    tn_environment_release(environment);
    return status;
}

static void environment_limit_of_any_size_is_a_typed_refusal(void **state) {
    (void)state;
    onnx_model m;
    tn_allocator *outside = NULL;
    tn_error err = {.code = TN_OK};
    size_t refused = 0;
    build(&m);
    ASSERT_OK(tn_allocator_create_root(NULL, &outside, NULL));

    for (uint64_t limit_bytes = 1;; limit_bytes += limit_bytes / 32 + 1) {
        memset(&err, 0, sizeof err);
        const tn_status status = live_within(limit_bytes, &m, outside, &err);
        assert_int_equal(tn_allocator_charged(outside), 0);
        if (status == TN_OK) break;
        check_refusal(status, &err, limit_bytes);
        refused++;
    }
    assert_true(refused > 50);
    tn_allocator_release(outside);
    onnx_free(&m);
}

static void session_limit_of_any_size_is_a_typed_refusal(void **state) {
    (void)state;
    onnx_model m;
    tn_error err = {.code = TN_OK};
    tn_value *y = NULL;
    size_t refused = 0;
    tn_session *session = NULL;
    build(&m);
    tn_environment *environment = NULL;
    const tn_environment_options options = {.struct_size = sizeof options, .thread_count = 1};
    ASSERT_OK(tn_environment_create(&options, &environment, NULL));
    tn_model *model = NULL;
    tn_allocator *allocator = tn_environment_allocator(environment);
    ASSERT_OK(tn_model_load_bytes(allocator, m.data, m.size_bytes, NULL, &model, NULL));
    ASSERT_OK(tn_session_create(environment, model, NULL, &session, NULL));
    ASSERT_OK(run(session, allocator, &y, &err));
    tn_tensor_release(y);
    y = NULL;
    tn_session_release(session); /* the model's packed weights stay as long as the model */
    session = NULL;
    const uint64_t loaded_bytes = tn_allocator_charged(allocator);

    for (uint64_t limit_bytes = 1;; limit_bytes += limit_bytes / 32 + 1) {
        const tn_session_options limited = {.struct_size = sizeof limited,
                                            .memory_limit_bytes = limit_bytes};
        memset(&err, 0, sizeof err);
        tn_status status = tn_session_create(environment, model, &limited, &session, &err);
        if (status == TN_OK) status = run(session, allocator, &y, &err);
        tn_tensor_release(y);
        y = NULL;
        tn_session_release(session);
        session = NULL;
        assert_int_equal(tn_allocator_charged(allocator), loaded_bytes);
        if (status == TN_OK) break;
        check_refusal(status, &err, limit_bytes);
        refused++;
    }
    assert_true(refused > 50);
    tn_model_release(model);
    tn_environment_release(environment);
    onnx_free(&m);
}

static void refused_run_leaves_a_session_that_a_larger_limit_serves(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    tn_error err = {.code = TN_OK};
    tn_value *first = NULL;
    tn_value *again = NULL;
    static const int64_t dims[] = {-1, COLS};
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims);
    onnx_node(&m, "Transpose", "x", "a");
    onnx_node(&m, "Softmax", "a", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, -1, NULL);
    fixture_open(&f, &m, NULL);
    tn_allocator *allocator = tn_environment_allocator(f.environment);
    ASSERT_OK(run(f.session, allocator, &first, &err));
    const tn_session_stats stats = fixture_stats(&f);
    const uint64_t least = stats.measured_peak_bytes - stats.shared_bytes;
    tn_tensor_release(first);
    first = NULL;
    (void)tn_session_trim(f.session, TN_TRIM_HARD);

    for (uint64_t less = 1; less < least / 4; less += less / 4 + 1) {
        ASSERT_OK(tn_session_set_memory_limit(f.session, least - less, NULL));
        const tn_status status = run(f.session, allocator, &again, &err);
        check_refusal(status, &err, least - less);
    }
    /* the records of results are charged beside what is measured */
    ASSERT_OK(tn_session_set_memory_limit(f.session, least + RECORD_BYTES, NULL));
    ASSERT_OK(run(f.session, allocator, &again, &err));

    tn_tensor_release(again);
    fixture_close(&f);
}

/* Folding is a favour: a constant too large for the limit is made by the run, or refused there. */
static void constant_above_the_limit_is_left_to_the_run(void **state) {
    (void)state;
    onnx_model m;
    tn_error err = {.code = TN_OK};
    tn_environment *environment = NULL;
    tn_model *model = NULL;
    tn_session *session = NULL;
    tn_value *y = NULL;
    static const int64_t three[] = {3};
    static const int64_t shape[] = {3, 1 << 20, 2};
    onnx_begin(&m, 13);
    onnx_initializer(&m, "s", TN_DTYPE_I64, 1, three, shape, sizeof shape);
    onnx_node(&m, "ConstantOfShape", "s", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, -1, NULL);
    onnx_end(&m);
    const tn_environment_options options = {
        .struct_size = sizeof options, .memory_limit_bytes = 4 << 20, .thread_count = 1};
    ASSERT_OK(tn_environment_create(&options, &environment, NULL));
    ASSERT_OK(tn_model_load_bytes(tn_environment_allocator(environment), m.data, m.size_bytes, NULL,
                                  &model, NULL));

    ASSERT_OK(tn_session_create(environment, model, NULL, &session, &err));
    const tn_status status = tn_session_run(session, NULL, 0, NULL, 1, &y, &err);

    check_refusal(status, &err, 4 << 20);
    assert_null(y);
    tn_session_release(session);
    tn_model_release(model);
    tn_environment_release(environment);
    onnx_free(&m);
}

static void options_without_their_size_are_read_whole(void **state) {
    (void)state;
    tn_environment *environment = NULL;
    tn_error err = {.code = TN_OK};
    const tn_environment_options tiny = {.struct_size = 0, .memory_limit_bytes = 1};
    const tn_environment_options large = {.struct_size = sizeof large + 8};

    check_refusal(tn_environment_create(&tiny, &environment, &err), &err, 1);
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_environment_create(&large, &environment, &err));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(environment_limit_of_any_size_is_a_typed_refusal),
        T(session_limit_of_any_size_is_a_typed_refusal),
        T(refused_run_leaves_a_session_that_a_larger_limit_serves),
        T(constant_above_the_limit_is_left_to_the_run),
        T(options_without_their_size_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
