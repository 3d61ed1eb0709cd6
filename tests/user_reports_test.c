/* What users of other runtimes suffered from, as tests: memory that grows from run to run, is kept
 * after an outlier or a close, results that die with their session. Counts of bytes, faults and
 * blocks; nothing here is timed. */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "session_fixture.h"

#define MIB ((size_t)1 << 20)

/* shadow memory and quarantines are resident too: accounts are still exact */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

static size_t resident_bytes(void) {
    unsigned long pages = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &pages, &resident), 2);
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static long minor_faults(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

/* x[n] -> six Sin in a row, all kept; then u = u + d5 ... + d0; mean of all. Least need: seven
 * values, six when additions work in place. */
static void build_ushape(onnx_model *m) {
    static const int64_t dims[] = {-1};
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 1, dims);
    onnx_node(m, "Sin", "x", "d0");
    onnx_node(m, "Sin", "d0", "d1");
    onnx_node(m, "Sin", "d1", "d2");
    onnx_node(m, "Sin", "d2", "d3");
    onnx_node(m, "Sin", "d3", "d4");
    onnx_node(m, "Sin", "d4", "d5");
    onnx_node(m, "Add", "d5 d5", "u5");
    onnx_node(m, "Add", "u5 d4", "u4");
    onnx_node(m, "Add", "u4 d3", "u3");
    onnx_node(m, "Add", "u3 d2", "u2");
    onnx_node(m, "Add", "u2 d1", "u1");
    onnx_node(m, "Add", "u1 d0", "u0");
    onnx_bytes mean;
    onnx_node_begin(&mean, "ReduceMean", "u0", "y");
    onnx_attribute_int(&mean, "keepdims", 0);
    onnx_node_end(&m->graph, &mean);
    onnx_output(m, "y", TN_DTYPE_F32, 0, NULL);
}

static float *make_floats(size_t count) {
    float *data = malloc(count * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) data[i] = (float)(i % 1000) / 500.0F - 1.0F;
    return data;
}

static tn_value *vector_of(const session_fixture *f, float *data, size_t count) {
    const int64_t dims[] = {(int64_t)count};
    return fixture_tensor(f, TN_DTYPE_F32, 1, dims, data);
}

static float run_ushape(const session_fixture *f, float *data, size_t count) {
    tn_value *out[1];
    tn_value *x = vector_of(f, data, count);
    fixture_run(f, x, 1, out);
    const float result = floats_of(out[0])[0];
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    return result;
}

static void check_second_run_needs_no_more(size_t size_bytes) {
    onnx_model m;
    session_fixture f;
    const size_t count = size_bytes / sizeof(float);
    const tn_session_options options = {.struct_size = sizeof options, .disable_fusion = true};
    build_ushape(&m);
    fixture_open(&f, &m, &options);
    float *data = make_floats(count);
    const size_t base_bytes = resident_bytes();

    const float first = run_ushape(&f, data, count);
    const uint64_t retained = fixture_stats(&f).execution_retained_bytes;
    const long faults_before = minor_faults();
    for (int run = 2; run <= 12; run++) {
        assert_true(run_ushape(&f, data, count) == first);
        assert_int_equal(fixture_stats(&f).execution_retained_bytes, retained);
    }

    assert_true(fixture_stats(&f).execution_peak_bytes <= 6 * size_bytes + 64 * 1024);
    if (!IS_SANITIZED) {
        assert_true(minor_faults() - faults_before <= 11 * 64);
        assert_true(resident_bytes() <= base_bytes + 7 * size_bytes + 4 * MIB);
    }
    free(data);
    fixture_close(&f);
}

static void t1_second_run_is_not_larger(void **state) {
    (void)state;
    check_second_run_needs_no_more(4 * MIB);
    check_second_run_needs_no_more(16 * MIB);
    check_second_run_needs_no_more(33 * MIB);
}

typedef struct trim_job {
    tn_session *session;
    size_t given_bytes;
} trim_job;

static void *trim_session(void *arg) {
    trim_job *job = arg;
    job->given_bytes = tn_session_trim(job->session, TN_TRIM_HARD);
    return NULL;
}

static void t2_outlier_is_given_back_by_a_trim_from_another_thread(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 4, 8, 16, 33, 20, 10, 5, 1, 1, 1, 1};
    onnx_model m;
    session_fixture f;
    pthread_t thread;
    const tn_session_options options = {.struct_size = sizeof options, .disable_fusion = true};
    build_ushape(&m);
    fixture_open(&f, &m, &options);
    float *data = make_floats(33 * MIB / sizeof(float));
    const float small = run_ushape(&f, data, MIB / sizeof(float));
    (void)tn_session_trim(f.session, TN_TRIM_HARD);
    const size_t base_bytes = resident_bytes();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        (void)run_ushape(&f, data, sizes[i] * MIB / sizeof(float));
    }
    if (!IS_SANITIZED) assert_true(resident_bytes() <= base_bytes + 7 * 33 * MIB + 4 * MIB);

    trim_job job = {f.session, 0};
    assert_int_equal(pthread_create(&thread, NULL, trim_session, &job), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);

    assert_true(job.given_bytes >= 6 * 33 * MIB);
    assert_int_equal(fixture_stats(&f).execution_retained_bytes, 0);
    if (!IS_SANITIZED) assert_true(resident_bytes() <= base_bytes + 2 * MIB);
    assert_true(run_ushape(&f, data, MIB / sizeof(float)) == small);
    free(data);
    fixture_close(&f);
}

static void an_outlier_is_forgotten_after_a_window_of_runs(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    const tn_session_options options = {.struct_size = sizeof options, .disable_fusion = true};
    build_ushape(&m);
    fixture_open(&f, &m, &options);
    float *data = make_floats(16 * MIB / sizeof(float));
    (void)run_ushape(&f, data, 16 * MIB / sizeof(float));

    for (int run = 0; run < 40; run++) (void)run_ushape(&f, data, MIB / sizeof(float));

    assert_true(fixture_stats(&f).execution_retained_bytes <= 6 * MIB + 64 * 1024);
    free(data);
    fixture_close(&f);
}

/* Four MatMul and Relu with 1 MiB of weights each: 50 times load, run, close. */
static void build_mlp(onnx_model *m, const float *weights) {
    static const int64_t dims_w[] = {512, 512};
    static const int64_t dims_x[] = {1, 512};
    static const char *const names[] = {"x", "r0", "r1", "r2", "r3"};
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 2, dims_x);
    for (int i = 0; i < 4; i++) {
        char weight[16];
        char inputs[48];
        char product[16];
        (void)snprintf(weight, sizeof weight, "w%d", i);
        (void)snprintf(inputs, sizeof inputs, "%s w%d", names[i], i);
        (void)snprintf(product, sizeof product, "p%d", i);
        onnx_initializer(m, weight, TN_DTYPE_F32, 2, dims_w, weights, 512 * 512 * sizeof(float));
        onnx_node(m, "MatMul", inputs, product);
        onnx_node(m, "Relu", product, names[i + 1]);
    }
    onnx_output(m, "r3", TN_DTYPE_F32, 2, dims_x);
}

static void t3_reloading_leaves_nothing_behind(void **state) {
    (void)state;
    static const int64_t dims_x[] = {1, 512};
    float *weights = make_floats(512 * 512);
    float *data = make_floats(512);
    size_t base_bytes = 0;
    for (int cycle = 0; cycle < 50; cycle++) {
        onnx_model m;
        session_fixture f;
        tn_value *out[1];
        build_mlp(&m, weights);
        fixture_open(&f, &m, NULL);
        tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims_x, data);
        fixture_run(&f, x, 1, out);
        tn_tensor_release(out[0]);
        tn_tensor_release(x);
        tn_allocator *root = tn_allocator_retain(tn_environment_allocator(f.environment));
        fixture_close(&f);
        assert_int_equal(tn_allocator_charged(root), 0);
        tn_allocator_release(root);
        if (cycle == 0) base_bytes = resident_bytes();
        if (!IS_SANITIZED) assert_true(resident_bytes() <= base_bytes + 2 * MIB);
    }
    free(data);
    free(weights);
}

enum { T5_RUNS = 50, T5_ELEMS = 1024 };

/* Keeps results of 50 runs, closes everything, fills memory, and looks at them again. */
static void check_results_outlive(onnx_model *m, bool without_fusion, size_t output_count,
                                  bool depends_on_input) {
    session_fixture f;
    tn_value *kept[T5_RUNS][2];
    float saved[T5_RUNS][2][T5_ELEMS];
    float data[T5_ELEMS];
    const tn_session_options options = {.struct_size = sizeof options,
                                        .disable_fusion = without_fusion};
    fixture_open(&f, m, &options);
    for (int run = 0; run < T5_RUNS; run++) {
        for (int i = 0; i < T5_ELEMS; i++) data[i] = (float)(run * 7 + i) * 0.25F;
        tn_value *x = vector_of(&f, data, T5_ELEMS);
        fixture_run(&f, x, output_count, kept[run]);
        for (size_t o = 0; o < output_count; o++) {
            memcpy(saved[run][o], tn_tensor_borrow_data(kept[run][o]),
                   tn_tensor_size_bytes(kept[run][o]));
            assert_ptr_not_equal(tn_tensor_borrow_data(kept[run][o]), data);
        }
        assert_true(data[3] == (float)(run * 7 + 3) * 0.25F);
        tn_tensor_release(x);
    }
    const tn_arena_stats io = fixture_io(&f);
    assert_int_equal(io.leased_count, T5_RUNS * output_count);
    fixture_close(&f);

    float *fill = make_floats(8 * MIB);
    for (int run = 0; run < T5_RUNS; run++) {
        for (size_t o = 0; o < output_count; o++) {
            const size_t size_bytes = tn_tensor_size_bytes(kept[run][o]);
            assert_memory_equal(tn_tensor_borrow_data(kept[run][o]), saved[run][o], size_bytes);
            if (run > 0 && depends_on_input) {
                assert_memory_not_equal(saved[run][o], saved[run - 1][o], size_bytes);
            }
        }
    }
    for (int run = 0; run < T5_RUNS; run++) {
        for (size_t o = 0; o < output_count; o++) tn_tensor_release(kept[run][o]);
    }
    free(fill);
}

static const int64_t dims_t5[] = {T5_ELEMS};

static void begin_t5(onnx_model *m) {
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 1, dims_t5);
}

static void check_t5_models(bool without_fusion) {
    onnx_model m;
    static const float weight[T5_ELEMS] = {1, 2, 3};
    static const int64_t target[] = {32, 32};
    static const int64_t dims_2[] = {2};

    begin_t5(&m); /* a */
    onnx_node(&m, "Sin", "x", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 1, dims_t5);
    check_results_outlive(&m, without_fusion, 1, true);

    begin_t5(&m); /* b */
    onnx_node(&m, "Identity", "x", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 1, dims_t5);
    check_results_outlive(&m, without_fusion, 1, true);

    begin_t5(&m); /* c */
    onnx_initializer(&m, "y", TN_DTYPE_F32, 1, dims_t5, weight, sizeof weight);
    onnx_output(&m, "y", TN_DTYPE_F32, 1, dims_t5);
    check_results_outlive(&m, without_fusion, 1, false);

    begin_t5(&m); /* d */
    onnx_initializer(&m, "shape", TN_DTYPE_I64, 1, dims_2, target, sizeof target);
    onnx_node(&m, "Reshape", "x shape", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 2, target);
    check_results_outlive(&m, without_fusion, 1, true);

    begin_t5(&m); /* e */
    onnx_node(&m, "Sin", "x", "y");
    onnx_node(&m, "Identity", "y", "z");
    onnx_output(&m, "y", TN_DTYPE_F32, 1, dims_t5);
    onnx_output(&m, "z", TN_DTYPE_F32, 1, dims_t5);
    check_results_outlive(&m, without_fusion, 2, true);

    begin_t5(&m); /* g */
    onnx_node(&m, "Split", "x", "y z");
    static const int64_t half[] = {T5_ELEMS / 2};
    onnx_output(&m, "y", TN_DTYPE_F32, 1, half);
    onnx_output(&m, "z", TN_DTYPE_F32, 1, half);
    check_results_outlive(&m, without_fusion, 2, true);
}

/* f: If returns an outer value; both branches name it. */
static void check_t5_if(bool without_fusion) {
    onnx_model m;
    onnx_bytes node;
    begin_t5(&m);
    onnx_initializer(&m, "zero", TN_DTYPE_F32, 0, NULL, (const float[]){0}, sizeof(float));
    onnx_bytes mean;
    onnx_node_begin(&mean, "ReduceMean", "x", "mean");
    onnx_attribute_int(&mean, "keepdims", 0);
    onnx_node_end(&m.graph, &mean);
    onnx_node(&m, "Greater", "mean zero", "condition");
    onnx_node(&m, "Sin", "x", "sine");
    onnx_bytes branches[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        onnx_text_field(&branches[i], 2, i == 0 ? "then" : "else");
        onnx_value_info(&branches[i], 12, i == 0 ? "sine" : "x", TN_DTYPE_F32, 1, dims_t5);
    }
    onnx_node_begin(&node, "If", "condition", "y");
    onnx_attribute_graph(&node, "then_branch", &branches[0]);
    onnx_attribute_graph(&node, "else_branch", &branches[1]);
    onnx_node_end(&m.graph, &node);
    onnx_output(&m, "y", TN_DTYPE_F32, 1, dims_t5);
    check_results_outlive(&m, without_fusion, 1, true);
}

static void t5_results_outlive_everything(void **state) {
    (void)state;
    check_t5_models(false);
    check_t5_models(true);
    check_t5_if(false);
    check_t5_if(true);
}

static void t8_conv3d_scratch_is_bounded(void **state) {
    (void)state;
    static const int64_t dims_x[] = {1, 8, 48, 96, 96};
    static const int64_t dims_w[] = {16, 8, 3, 3, 3};
    static const int64_t dims_y[] = {1, 16, 48, 96, 96};
    static const int64_t pads[] = {1, 1, 1, 1, 1, 1};
    static const uint32_t thread_counts[] = {1, 2, 8};
    const size_t x_elems = (size_t)8 * 48 * 96 * 96;
    float *data = make_floats(x_elems);
    float *weights = make_floats(16 * 8 * 27);
    float *expected = NULL;
    for (size_t t = 0; t < 3; t++) {
        onnx_model m;
        onnx_bytes conv;
        session_fixture f;
        tn_value *out[1];
        const tn_session_options options = {.struct_size = sizeof options,
                                            .thread_count = thread_counts[t]};
        onnx_begin(&m, 13);
        onnx_input(&m, "x", TN_DTYPE_F32, 5, dims_x);
        onnx_initializer(&m, "w", TN_DTYPE_F32, 5, dims_w, weights, 16 * 8 * 27 * sizeof(float));
        onnx_node_begin(&conv, "Conv", "x w", "y");
        onnx_attribute_ints(&conv, "pads", pads, 6);
        onnx_node_end(&m.graph, &conv);
        onnx_output(&m, "y", TN_DTYPE_F32, 5, dims_y);
        fixture_open(&f, &m, &options);
        tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 5, dims_x, data);
        fixture_run(&f, x, 1, out);

        assert_true(fixture_stats(&f).workspace_peak_bytes <= 8 * MIB * thread_counts[t]);
        assert_true(fixture_stats(&f).execution_peak_bytes <= 8 * MIB * thread_counts[t]);
        if (expected == NULL) {
            expected = malloc(tn_tensor_size_bytes(out[0]));
            assert_non_null(expected);
            memcpy(expected, tn_tensor_borrow_data(out[0]), tn_tensor_size_bytes(out[0]));
        }
        assert_memory_equal(expected, tn_tensor_borrow_data(out[0]), tn_tensor_size_bytes(out[0]));
        tn_tensor_release(out[0]);
        tn_tensor_release(x);
        fixture_close(&f);
    }
    free(expected);
    free(weights);
    free(data);
}

typedef struct t11_job {
    const session_fixture *fixture;
    size_t count;
    float expected;
    bool is_right;
} t11_job;

static void *run_t11(void *arg) {
    t11_job *job = arg;
    float *data = make_floats(job->count);
    job->is_right = true;
    for (int run = 0; run < 200; run++) {
        job->is_right =
            job->is_right && run_ushape(job->fixture, data, job->count) == job->expected;
    }
    free(data);
    return NULL;
}

/* Eight threads, each with a shape of its own; at most two runs at a time, the others wait. */
static void t11_threads_share_a_session(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    pthread_t threads[8];
    t11_job jobs[8];
    const tn_session_options options = {.struct_size = sizeof options,
                                        .disable_fusion = true,
                                        .max_concurrent_runs = 2,
                                        .wait_for_memory_ns = 60000000000u};
    build_ushape(&m);
    fixture_open(&f, &m, &options);
    for (size_t i = 0; i < 8; i++) {
        const size_t count = 1000 * (i + 1);
        float *data = make_floats(count);
        jobs[i] = (t11_job){&f, count, run_ushape(&f, data, count), false};
        free(data);
    }

    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_t11, &jobs[i]), 0);
    }
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(jobs[i].is_right);
    }

    const tn_session_stats stats = fixture_stats(&f);
    assert_true(stats.context_count <= 2);
    assert_true(stats.execution_peak_bytes <= 2 * (6 * 8000 * sizeof(float) + 4096));
    assert_int_equal(stats.io_live_bytes, 0);
    fixture_close(&f);
}

static void t13_large_output_costs_its_pages_once(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    tn_value *out[1];
    static const int64_t dims[] = {-1};
    const size_t count = 64 * MIB / sizeof(float);
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 1, dims);
    onnx_node(&m, "Sin", "x", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 1, dims);
    fixture_open(&f, &m, NULL);
    float *data = make_floats(count);
    tn_value *x = vector_of(&f, data, count);
    fixture_run(&f, x, 1, out);
    tn_tensor_release(out[0]);

    const long before = minor_faults();
    for (int run = 0; run < 7; run++) {
        fixture_run(&f, x, 1, out);
        tn_tensor_release(out[0]);
    }

    if (!IS_SANITIZED) assert_true(minor_faults() - before < 256);
    assert_int_equal(fixture_io(&f).sys_allocs, 1);
    tn_tensor_release(x);
    free(data);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(t1_second_run_is_not_larger),
        T(t2_outlier_is_given_back_by_a_trim_from_another_thread),
        T(an_outlier_is_forgotten_after_a_window_of_runs),
        T(t3_reloading_leaves_nothing_behind),
        T(t5_results_outlive_everything),
        T(t8_conv3d_scratch_is_bounded),
        T(t11_threads_share_a_session),
        T(t13_large_output_costs_its_pages_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
