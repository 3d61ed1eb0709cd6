/* Sessions and the two arenas: routing, inputs, lifetimes of results. Tests are named after the
 * scenario of the arena design that they show. */
#include <pthread.h>

#include "session_fixture.h"

static const int64_t dims_2x3[] = {2, 3};
static const int64_t dims_3x2[] = {3, 2};
static const int64_t dims_4x2[] = {4, 2};
static const int64_t dims_2x2[] = {2, 2};

static const float six[6] = {1, 2, 3, 4, 5, 6};
static const float six_transposed[6] = {1, 4, 2, 5, 3, 6};

/* y = Transpose(x), z = Transpose(y) with z alone an output. */
static void build_two_transposes(onnx_model *m) {
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_node(m, "Transpose", "x", "y");
    onnx_node(m, "Transpose", "y", "z");
    onnx_output(m, "z", TN_DTYPE_F32, 2, dims_2x3);
}

static void scenario_32_output_in_io_intermediate_in_execution(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    tn_plan_arena arena = TN_PLAN_DYNAMIC;
    memcpy(data, six, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);

    fixture_run(&f, x, 1, out);

    assert_true(same_floats(out[0], six, 6));
    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    assert_int_equal(fixture_io(&f).live_bytes, sizeof six);
    assert_int_equal(fixture_stats(&f).execution_peak_bytes, 64);
    ASSERT_OK(tn_session_allocator_for_output(f.session, "Transpose_y", 0, &arena, NULL));
    assert_int_equal(arena, TN_PLAN_EXECUTION);
    ASSERT_OK(tn_session_allocator_for_output(f.session, "Transpose_z", 0, &arena, NULL));
    assert_int_equal(arena, TN_PLAN_IO);
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

/* Split(x) -> a, b on the inner axis, so that it is no view; `final` is an output, the other one
 * goes through a Transpose. */
static void run_mixed_split(const char *final, const char *inner, uint32_t final_slot) {
    onnx_model m;
    session_fixture f;
    onnx_bytes split;
    float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    tn_value *out[2];
    tn_plan_arena arena = TN_PLAN_DYNAMIC;
    const int64_t dims_2x4[] = {2, 4};
    onnx_begin(&m, 11);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims_2x4);
    onnx_node_begin(&split, "Split", "x", "a b");
    onnx_attribute_int(&split, "axis", 1);
    onnx_node_end(&m.graph, &split);
    onnx_node(&m, "Transpose", inner, "t");
    onnx_output(&m, final, TN_DTYPE_F32, 2, dims_2x2);
    onnx_output(&m, "t", TN_DTYPE_F32, 2, dims_2x2);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x4, data);

    fixture_run(&f, x, 2, out);

    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    ASSERT_OK(tn_session_allocator_for_output(f.session, "Split_a b", final_slot, &arena, NULL));
    assert_int_equal(arena, TN_PLAN_IO);
    ASSERT_OK(
        tn_session_allocator_for_output(f.session, "Split_a b", 1 - final_slot, &arena, NULL));
    assert_int_equal(arena, TN_PLAN_EXECUTION);
    const float first[4] = {0, 1, 4, 5};
    const float second[4] = {2, 3, 6, 7};
    assert_true(same_floats(out[0], final_slot == 0 ? first : second, 4));
    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_33_mixed_node_final_then_intermediate(void **state) {
    (void)state;
    run_mixed_split("a", "b", 0);
}

static void scenario_34_mixed_node_intermediate_then_final(void **state) {
    (void)state;
    run_mixed_split("b", "a", 1);
}

static void scenario_36_output_that_others_read_stays_in_io(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[2];
    memcpy(data, six, sizeof data);
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_node(&m, "Transpose", "x", "y");
    onnx_node(&m, "Transpose", "y", "z");
    onnx_output(&m, "y", TN_DTYPE_F32, 2, dims_3x2);
    onnx_output(&m, "z", TN_DTYPE_F32, 2, dims_2x3);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);

    fixture_run(&f, x, 2, out);

    assert_true(same_floats(out[0], six_transposed, 6));
    assert_true(same_floats(out[1], six, 6));
    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    tn_tensor_release(x);
    fixture_close(&f);
}

/* The same value twice, an input, and a weight as outputs: each needs one planned copy. */
static void scenario_38_aliased_outputs_get_one_copy_each(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[4];
    memcpy(data, six, sizeof data);
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_initializer(&m, "w", TN_DTYPE_F32, 2, dims_2x3, six, sizeof six);
    onnx_node(&m, "Transpose", "x", "y");
    onnx_node(&m, "Identity", "y", "same");
    onnx_output(&m, "y", TN_DTYPE_F32, 2, dims_3x2);
    onnx_output(&m, "same", TN_DTYPE_F32, 2, dims_3x2);
    onnx_output(&m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_output(&m, "w", TN_DTYPE_F32, 2, dims_2x3);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);

    fixture_run(&f, x, 4, out);

    assert_int_equal(fixture_stats(&f).payload_copies, 3);
    assert_true(same_floats(out[0], six_transposed, 6));
    assert_true(same_floats(out[1], six_transposed, 6));
    assert_true(same_floats(out[2], six, 6));
    assert_true(same_floats(out[3], six, 6));
    for (int i = 0; i < 4; i++) {
        assert_ptr_not_equal(tn_tensor_borrow_data(out[i]), data);
        for (int k = 0; k < i; k++) {
            assert_ptr_not_equal(tn_tensor_borrow_data(out[i]), tn_tensor_borrow_data(out[k]));
        }
    }
    memset(tn_tensor_borrow_data(out[3]), 0, sizeof six); /* a result may be written to */
    for (int i = 0; i < 4; i++) tn_tensor_release(out[i]);
    fixture_run(&f, x, 4, out);
    assert_true(same_floats(out[3], six, 6));
    for (int i = 0; i < 4; i++) tn_tensor_release(out[i]);
    tn_tensor_release(x);
    fixture_close(&f);
}

/* Reshape of an intermediate as output: its producer writes into the I/O block. */
static void scenario_42_reshaped_output_needs_no_copy(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    const int64_t target[1] = {6};
    const int64_t dims_1[1] = {1};
    memcpy(data, six, sizeof data);
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_initializer(&m, "shape", TN_DTYPE_I64, 1, dims_1, target, sizeof target);
    onnx_node(&m, "Transpose", "x", "y");
    onnx_node(&m, "Reshape", "y shape", "z");
    onnx_output(&m, "z", TN_DTYPE_F32, 1, target);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);

    fixture_run(&f, x, 1, out);

    assert_true(same_floats(out[0], six_transposed, 6));
    assert_int_equal(tn_tensor_borrow_shape(out[0])->rank, 1);
    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_44_dense_input_is_borrowed(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    memcpy(data, six, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);

    fixture_run(&f, x, 1, out);

    assert_int_equal(fixture_io(&f).allocated_count + fixture_io(&f).leased_count, 1);
    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    assert_memory_equal(data, six, sizeof six);
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_45_strided_input_is_staged_once(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    tn_value *x = NULL;
    memcpy(data, six_transposed, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    const tn_shape shape = {2, {2, 3}};
    const int64_t strides[2] = {sizeof(float), 2 * sizeof(float)};
    ASSERT_OK(tn_tensor_create_borrowed(tn_environment_allocator(f.environment), TN_DTYPE_F32,
                                        &shape, strides, data, NULL, NULL, &x, NULL));

    for (int run = 0; run < 5; run++) {
        fixture_run(&f, x, 1, out);
        assert_true(same_floats(out[0], six, 6));
        tn_tensor_release(out[0]);
    }

    assert_int_equal(fixture_stats(&f).payload_copies, 5);
    assert_int_equal(fixture_io(&f).sys_allocs, 2); /* the staging block and the output, once */
    assert_int_equal(fixture_io(&f).live_bytes, 0);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_47_changed_input_is_seen_old_output_is_not_changed(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *first[1];
    tn_value *second[1];
    memcpy(data, six, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);
    fixture_run(&f, x, 1, first);

    data[0] = 100;
    fixture_run(&f, x, 1, second);

    assert_true(same_floats(first[0], six, 6));
    assert_true(floats_of(second[0])[0] == 100);
    assert_ptr_not_equal(tn_tensor_borrow_data(first[0]), tn_tensor_borrow_data(second[0]));
    tn_tensor_release(first[0]);
    tn_tensor_release(second[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_48_given_output_is_written_into(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    float result[8] = {0};
    tn_error err;
    memcpy(data, six, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);
    tn_value *y = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, result);
    tn_value *wrong = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_4x2, result);
    tn_value *out[1] = {y};
    const tn_feed feed = {"x", x};

    ASSERT_OK(tn_session_run(f.session, &feed, 1, NULL, 1, out, NULL));

    assert_ptr_equal(out[0], y);
    assert_memory_equal(result, six, sizeof six);
    assert_int_equal(fixture_io(&f).sys_allocs, 0);
    out[0] = wrong;
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_session_run(f.session, &feed, 1, NULL, 1, out, &err));
    assert_non_null(strstr(err.message, "[4, 2]"));
    assert_ptr_equal(out[0], wrong);
    tn_tensor_release(wrong);
    tn_tensor_release(y);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_50_51_outputs_are_apart_and_reused_after_release(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[2][1];
    memcpy(data, six, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);
    fixture_run(&f, x, 1, out[0]);
    const void *first = tn_tensor_borrow_data(out[0][0]);

    fixture_run(&f, x, 1, out[1]);
    assert_ptr_not_equal(tn_tensor_borrow_data(out[1][0]), first);
    tn_tensor_release(out[0][0]);
    const uint64_t sys_allocs = fixture_io(&f).sys_allocs;
    fixture_run(&f, x, 1, out[0]);

    assert_ptr_equal(tn_tensor_borrow_data(out[0][0]), first);
    assert_int_equal(fixture_io(&f).sys_allocs, sys_allocs);
    tn_tensor_release(out[0][0]);
    tn_tensor_release(out[1][0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_52_a_hundred_held_outputs(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *held[100];
    memcpy(data, six, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);
    for (int i = 0; i < 100; i++) {
        data[0] = (float)i;
        fixture_run(&f, x, 1, &held[i]);
    }

    assert_int_equal(fixture_io(&f).leased_count, 100);
    assert_int_equal(fixture_io(&f).live_bytes, 100 * sizeof six);
    for (int i = 0; i < 100; i++) {
        assert_true(floats_of(held[i])[0] == (float)i);
        tn_tensor_release(held[i]);
    }
    assert_int_equal(fixture_io(&f).live_bytes, 0);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_53_output_outlives_everything(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    memcpy(data, six, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);
    fixture_run(&f, x, 1, out);
    tn_tensor_release(x);

    fixture_close(&f);

    assert_true(same_floats(out[0], six, 6));
    tn_tensor_release(out[0]);
}

static void scenario_91_close_with_live_leases_is_allowed(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    tn_error err;
    memcpy(data, six, sizeof data);
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_2x3, data);
    fixture_run(&f, x, 1, out);
    tn_allocator *root = tn_allocator_retain(tn_environment_allocator(f.environment));

    tn_session_close(f.session);

    const tn_feed feed = {"x", x};
    tn_value *none[1] = {NULL};
    ASSERT_STATUS(TN_CLOSED, tn_session_run(f.session, &feed, 1, NULL, 1, none, &err));
    tn_tensor_release(x);
    fixture_close(&f);
    assert_true(tn_allocator_charged(root) >= sizeof six);
    assert_true(same_floats(out[0], six, 6));
    tn_tensor_release(out[0]);
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

static void scenario_95_session_makes_the_input_buffer(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    tn_io_binding *binding = NULL;
    tn_value *x = NULL;
    tn_value *y = NULL;
    const tn_shape shape = {2, {2, 3}};
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    ASSERT_OK(tn_io_binding_create(f.session, &binding, NULL));
    ASSERT_OK(tn_io_binding_make_input(binding, "x", TN_DTYPE_F32, &shape, &x, NULL));
    ASSERT_OK(tn_io_binding_bind_output(binding, "z", NULL, NULL));
    memcpy(tn_tensor_borrow_data(x), six, sizeof six);

    for (int run = 0; run < 3; run++) {
        ASSERT_OK(tn_io_binding_run(binding, NULL));
        ASSERT_OK(tn_io_binding_output(binding, 0, &y, NULL));
        assert_true(same_floats(y, six, 6));
        tn_tensor_release(y);
    }

    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    tn_tensor_release(x);
    tn_io_binding_destroy(binding);
    assert_int_equal(fixture_io(&f).live_bytes, 0);
    fixture_close(&f);
}

static void missing_input_is_reported_before_any_kernel(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    tn_value *out[1] = {NULL};
    tn_error err;
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);

    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_session_run(f.session, NULL, 0, NULL, 1, out, &err));

    assert_non_null(strstr(err.message, "'x'"));
    assert_null(out[0]);
    fixture_close(&f);
}

static void wrong_type_and_shape_are_named(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    double data[6] = {0};
    tn_value *out[1] = {NULL};
    tn_error err;
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);
    tn_value *doubles = fixture_tensor(&f, TN_DTYPE_F64, 2, dims_2x3, data);
    tn_value *turned = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_3x2, data);
    const tn_feed wrong_type = {"x", doubles};
    const tn_feed wrong_shape = {"x", turned};

    ASSERT_STATUS(TN_INVALID_ARGUMENT,
                  tn_session_run(f.session, &wrong_type, 1, NULL, 1, out, &err));
    assert_non_null(strstr(err.message, "double"));
    ASSERT_STATUS(TN_INVALID_ARGUMENT,
                  tn_session_run(f.session, &wrong_shape, 1, NULL, 1, out, &err));
    assert_non_null(strstr(err.message, "[3, 2]"));

    tn_tensor_release(doubles);
    tn_tensor_release(turned);
    fixture_close(&f);
}

typedef struct thread_job {
    const session_fixture *fixture;
    float first;
    bool is_right;
} thread_job;

static void *run_many(void *arg) {
    thread_job *job = arg;
    float data[6];
    memcpy(data, six, sizeof data);
    data[0] = job->first;
    tn_value *x = fixture_tensor(job->fixture, TN_DTYPE_F32, 2, dims_2x3, data);
    job->is_right = true;
    for (int i = 0; i < 200; i++) {
        const tn_feed feed = {"x", x};
        tn_value *out[1] = {NULL};
        if (tn_session_run(job->fixture->session, &feed, 1, NULL, 1, out, NULL) != TN_OK) {
            job->is_right = false;
            break;
        }
        job->is_right = job->is_right && floats_of(out[0])[0] == job->first;
        tn_tensor_release(out[0]);
    }
    tn_tensor_release(x);
    return NULL;
}

static void scenario_74_concurrent_runs_of_one_session(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    pthread_t threads[8];
    thread_job jobs[8];
    build_two_transposes(&m);
    fixture_open(&f, &m, NULL);

    for (int i = 0; i < 8; i++) {
        jobs[i] = (thread_job){&f, (float)(i + 10), false};
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &jobs[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(jobs[i].is_right);
    }

    assert_int_equal(fixture_stats(&f).run_count, 8 * 200);
    assert_int_equal(fixture_io(&f).live_bytes, 0);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(scenario_32_output_in_io_intermediate_in_execution),
        T(scenario_33_mixed_node_final_then_intermediate),
        T(scenario_34_mixed_node_intermediate_then_final),
        T(scenario_36_output_that_others_read_stays_in_io),
        T(scenario_38_aliased_outputs_get_one_copy_each),
        T(scenario_42_reshaped_output_needs_no_copy),
        T(scenario_44_dense_input_is_borrowed),
        T(scenario_45_strided_input_is_staged_once),
        T(scenario_47_changed_input_is_seen_old_output_is_not_changed),
        T(scenario_48_given_output_is_written_into),
        T(scenario_50_51_outputs_are_apart_and_reused_after_release),
        T(scenario_52_a_hundred_held_outputs),
        T(scenario_53_output_outlives_everything),
        T(scenario_74_concurrent_runs_of_one_session),
        T(scenario_91_close_with_live_leases_is_allowed),
        T(scenario_95_session_makes_the_input_buffer),
        T(missing_input_is_reported_before_any_kernel),
        T(wrong_type_and_shape_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
