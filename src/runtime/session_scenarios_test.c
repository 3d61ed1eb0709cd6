/* Further scenarios of the two arenas: branches and functions, shared arenas, contexts, bindings,
 * failures in the middle, workspaces of workers. */
#include <pthread.h>

#include "kernels/registry.h"
#include "plan/op_run.h"
#include "session_fixture.h"

static const int64_t dims_2x3[] = {2, 3};
static const int64_t dims_3x2[] = {3, 2};
static const float six[6] = {1, 2, 3, 4, 5, 6};
static const float six_transposed[6] = {1, 4, 2, 5, 3, 6};

static tn_value *six_tensor(const session_fixture *f, float *data) {
    memcpy(data, six, sizeof six);
    return fixture_tensor(f, TN_DTYPE_F32, 2, dims_2x3, data);
}

/* y = If(mean(x) > 0) then Transpose(Neg(x)) else Transpose(x). */
static void add_if(onnx_model *m, const char *output) {
    onnx_bytes mean;
    onnx_bytes node;
    onnx_initializer(m, "zero", TN_DTYPE_F32, 0, NULL, (const float[]){0}, sizeof(float));
    onnx_node_begin(&mean, "ReduceMean", "x", "mean");
    onnx_attribute_int(&mean, "keepdims", 0);
    onnx_node_end(&m->graph, &mean);
    onnx_node(m, "Greater", "mean zero", "condition");
    onnx_bytes then_graph = {0};
    onnx_bytes else_graph = {0};
    onnx_text_field(&then_graph, 2, "then");
    onnx_node_in(&then_graph, "Neg", "x", "negative");
    onnx_node_in(&then_graph, "Transpose", "negative", "then_y");
    onnx_value_info(&then_graph, 12, "then_y", TN_DTYPE_F32, 2, dims_3x2);
    onnx_text_field(&else_graph, 2, "else");
    onnx_node_in(&else_graph, "Transpose", "x", "else_y");
    onnx_value_info(&else_graph, 12, "else_y", TN_DTYPE_F32, 2, dims_3x2);
    onnx_node_begin(&node, "If", "condition", output);
    onnx_attribute_graph(&node, "then_branch", &then_graph);
    onnx_attribute_graph(&node, "else_branch", &else_graph);
    onnx_node_end(&m->graph, &node);
}

static void scenario_65_branch_output_is_written_into_io(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims_2x3);
    add_if(&m, "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 2, dims_3x2);
    fixture_open(&f, &m, NULL);
    tn_value *x = six_tensor(&f, data);

    fixture_run(&f, x, 1, out);
    assert_true(floats_of(out[0])[1] == -4);
    tn_tensor_release(out[0]);
    for (int i = 0; i < 6; i++) data[i] = -data[i];
    fixture_run(&f, x, 1, out);
    assert_true(floats_of(out[0])[1] == -4); /* the other branch: Transpose(-six) */

    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    assert_int_equal(fixture_stats(&f).execution_live_bytes, 0);
    assert_int_equal(fixture_io(&f).live_bytes, sizeof six);
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_71_branch_value_crosses_into_execution(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims_2x3);
    add_if(&m, "y");
    onnx_node(&m, "Transpose", "y", "z");
    onnx_output(&m, "z", TN_DTYPE_F32, 2, dims_2x3);
    fixture_open(&f, &m, NULL);
    tn_value *x = six_tensor(&f, data);

    fixture_run(&f, x, 1, out);

    assert_true(floats_of(out[0])[0] == -1);
    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    assert_int_equal(fixture_io(&f).live_bytes, sizeof six);
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_70_function_called_twice(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    onnx_bytes body = {0};
    onnx_bytes node;
    onnx_begin(&m, 13);
    onnx_node_begin(&node, "Neg", "a", "n");
    onnx_message_field(&body, 7, &node);
    onnx_node_begin(&node, "Transpose", "n", "b");
    onnx_message_field(&body, 7, &node);
    onnx_function(&m, "local", "flip", "a", "b", &body);
    onnx_import(&m.imports, 8, "local", 1);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims_2x3);
    for (int i = 0; i < 2; i++) {
        onnx_node_begin(&node, "flip", i == 0 ? "x" : "once", i == 0 ? "once" : "twice");
        onnx_text_field(&node, 7, "local");
        onnx_node_end(&m.graph, &node);
    }
    onnx_output(&m, "twice", TN_DTYPE_F32, 2, dims_2x3);
    fixture_open(&f, &m, NULL);
    tn_value *x = six_tensor(&f, data);

    fixture_run(&f, x, 1, out);

    assert_true(same_floats(out[0], six, 6));
    assert_int_equal(fixture_stats(&f).payload_copies, 0);
    assert_int_equal(fixture_io(&f).live_bytes, sizeof six);
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

/* LSTM with Y and Y_c but no Y_h: slots still map. */
static void scenario_35_left_out_output_between_two(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    onnx_bytes node;
    float weights[16];
    float data[2] = {0.5F, -0.25F};
    tn_value *out[2];
    static const int64_t dims_x[] = {2, 1, 1};
    static const int64_t dims_w[] = {1, 4, 1};
    static const int64_t dims_y[] = {2, 1, 1, 1};
    static const int64_t dims_c[] = {1, 1, 1};
    for (int i = 0; i < 16; i++) weights[i] = 0.1F * (float)(i + 1);
    onnx_begin(&m, 14);
    onnx_input(&m, "x", TN_DTYPE_F32, 3, dims_x);
    onnx_initializer(&m, "w", TN_DTYPE_F32, 3, dims_w, weights, 4 * sizeof(float));
    onnx_initializer(&m, "r", TN_DTYPE_F32, 3, dims_w, weights + 4, 4 * sizeof(float));
    onnx_node_begin(&node, "LSTM", "x w r", "y - c");
    onnx_attribute_int(&node, "hidden_size", 1);
    onnx_node_end(&m.graph, &node);
    onnx_output(&m, "y", TN_DTYPE_F32, 4, dims_y);
    onnx_output(&m, "c", TN_DTYPE_F32, 3, dims_c);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 3, dims_x, data);

    fixture_run(&f, x, 2, out);

    assert_int_equal(tn_tensor_borrow_shape(out[0])->rank, 4);
    assert_int_equal(tn_tensor_borrow_shape(out[1])->rank, 3);
    assert_int_equal(fixture_io(&f).leased_count, 2);
    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_37_workspace_stays_out_of_io(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    static const int64_t dims[] = {64, 64};
    static float data[64 * 64];
    tn_value *out[1];
    for (int i = 0; i < 64 * 64; i++) data[i] = (float)(i % 7);
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims);
    onnx_node(&m, "MatMul", "x x", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 2, dims);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims, data);

    fixture_run(&f, x, 1, out);

    assert_true(fixture_stats(&f).workspace_peak_bytes > 0);
    assert_true(fixture_stats(&f).execution_peak_bytes >= fixture_stats(&f).workspace_peak_bytes);
    assert_int_equal(fixture_io(&f).live_bytes, sizeof data);
    assert_int_equal(fixture_io(&f).retained_bytes, 0);
    tn_tensor_release(out[0]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_40_kernel_failure_in_the_middle(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    static const int64_t dims_index[] = {1};
    float data[6];
    int64_t index[1] = {5};
    tn_error err;
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_input(&m, "i", TN_DTYPE_I64, 1, dims_index);
    onnx_node(&m, "Transpose", "x", "t");
    onnx_node(&m, "Gather", "t i", "row");
    onnx_node(&m, "Neg", "row", "y");
    onnx_output(&m, "t", TN_DTYPE_F32, 2, dims_3x2);
    onnx_output(&m, "y", TN_DTYPE_F32, 2, (const int64_t[]){1, 2});
    fixture_open(&f, &m, NULL);
    tn_value *x = six_tensor(&f, data);
    tn_value *i = fixture_tensor(&f, TN_DTYPE_I64, 1, dims_index, index);
    const tn_feed feeds[] = {{"x", x}, {"i", i}};
    tn_value *out[2] = {NULL, NULL};

    const tn_status status = tn_session_run(f.session, feeds, 2, NULL, 2, out, &err);

    assert_int_not_equal(status, TN_OK);
    assert_non_null(strstr(err.node, "Gather"));
    assert_null(out[0]);
    assert_null(out[1]);
    assert_int_equal(fixture_io(&f).live_bytes, 0);
    assert_int_equal(fixture_stats(&f).execution_live_bytes, 0);
    index[0] = 2;
    ASSERT_OK(tn_session_run(f.session, feeds, 2, NULL, 2, out, &err));
    assert_true(floats_of(out[1])[0] == -3 && floats_of(out[1])[1] == -6);
    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    tn_tensor_release(x);
    tn_tensor_release(i);
    fixture_close(&f);
}

static void build_transpose(onnx_model *m) {
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_node(m, "Transpose", "x", "y");
    onnx_output(m, "y", TN_DTYPE_F32, 2, dims_3x2);
}

static void scenario_41_roles_are_decided_once(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    build_transpose(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = six_tensor(&f, data);

    for (int run = 0; run < 5; run++) {
        fixture_run(&f, x, 1, out);
        tn_tensor_release(out[0]);
    }

    assert_int_equal(fixture_stats(&f).plan_misses, 1);
    assert_int_equal(fixture_stats(&f).plan_count, 1);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_46_49_context_clear_leaves_inputs_and_results(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    tn_context *context = NULL;
    tn_value *y = NULL;
    tn_error err;
    float data[6];
    build_transpose(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = six_tensor(&f, data);
    ASSERT_OK(tn_context_create(f.session, &context, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_context_run(context, &err)); /* nothing set */
    ASSERT_OK(tn_context_set(context, "x", x, NULL));
    ASSERT_OK(tn_context_run(context, NULL));
    ASSERT_OK(tn_context_get(context, "y", &y, NULL));

    tn_context_clear(context);

    assert_true(same_floats(y, six_transposed, 6));
    assert_memory_equal(data, six, sizeof six);
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_context_run(context, &err));
    tn_context_destroy(context);
    tn_tensor_release(x);
    fixture_close(&f);
    assert_true(same_floats(y, six_transposed, 6));
    assert_memory_equal(data, six, sizeof six);
    tn_tensor_release(y);
}

static void scenario_56_two_owners_of_one_result(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[1];
    build_transpose(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = six_tensor(&f, data);
    fixture_run(&f, x, 1, out);
    tn_value *second = tn_tensor_retain(out[0]);

    tn_tensor_release(out[0]);

    assert_int_equal(fixture_io(&f).leased_count, 1);
    assert_true(same_floats(second, six_transposed, 6));
    tn_tensor_release(second);
    assert_int_equal(fixture_io(&f).leased_count, 0);
    assert_int_equal(fixture_io(&f).live_bytes, 0);
    tn_tensor_release(x);
    fixture_close(&f);
}

typedef struct shared_job {
    tn_session *session;
    tn_value *x;
    bool is_right;
} shared_job;

static void *run_shared(void *arg) {
    shared_job *job = arg;
    job->is_right = true;
    for (int run = 0; run < 300; run++) {
        const tn_feed feed = {"x", job->x};
        tn_value *out[1] = {NULL};
        if (tn_session_run(job->session, &feed, 1, NULL, 1, out, NULL) != TN_OK) {
            job->is_right = false;
            return NULL;
        }
        job->is_right = job->is_right && same_floats(out[0], six_transposed, 6);
        tn_tensor_release(out[0]);
    }
    return NULL;
}

static void scenario_73_two_sessions_share_an_io_arena(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    tn_io_arena *arena = NULL;
    tn_session *sessions[2] = {NULL, NULL};
    pthread_t threads[2];
    shared_job jobs[2];
    float data[6];
    build_transpose(&m);
    fixture_open(&f, &m, NULL);
    ASSERT_OK(tn_io_arena_create(tn_environment_allocator(f.environment), NULL, &arena, NULL));
    const tn_session_options options = {.struct_size = sizeof options, .io_arena = arena};
    tn_value *x = six_tensor(&f, data);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(tn_session_create(f.environment, f.model, &options, &sessions[i], NULL));
        jobs[i] = (shared_job){sessions[i], x, false};
    }

    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_shared, &jobs[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(jobs[i].is_right);
    }

    tn_arena_stats stats = {.struct_size = sizeof stats};
    tn_io_arena_get_stats(arena, &stats);
    assert_int_equal(stats.live_bytes, 0);
    assert_int_equal(stats.hits + stats.misses, 600);
    for (int i = 0; i < 2; i++) tn_session_release(sessions[i]);
    tn_io_arena_release(arena);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void single_arena_mode_uses_one_io_arena_for_all(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    tn_io_arena *arena = NULL;
    tn_session *session = NULL;
    float data[6];
    build_transpose(&m);
    onnx_node(&m, "Neg", "y", "n");
    onnx_node(&m, "Transpose", "n", "z");
    onnx_output(&m, "z", TN_DTYPE_F32, 2, dims_2x3);
    fixture_open(&f, &m, NULL);
    ASSERT_OK(tn_io_arena_create(tn_environment_allocator(f.environment), NULL, &arena, NULL));
    const tn_session_options options = {.struct_size = sizeof options,
                                        .io_arena = arena,
                                        .execution_in_io_arena = arena,
                                        .disable_fusion = true};
    ASSERT_OK(tn_session_create(f.environment, f.model, &options, &session, NULL));
    tn_value *x = six_tensor(&f, data);
    const tn_feed feed = {"x", x};
    for (int run = 0; run < 3; run++) {
        tn_value *out[2] = {NULL, NULL};
        ASSERT_OK(tn_session_run(session, &feed, 1, NULL, 2, out, NULL));
        assert_true(floats_of(out[1])[0] == -1);
        tn_tensor_release(out[0]);
        tn_tensor_release(out[1]);
    }

    tn_arena_stats stats = {.struct_size = sizeof stats};
    tn_io_arena_get_stats(arena, &stats);
    assert_int_equal(stats.live_bytes, 0);
    assert_true(stats.sys_allocs <= 3); /* slab and two outputs, once */
    tn_session_release(session);
    tn_io_arena_release(arena);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void scenario_75_workers_scratch_comes_from_execution(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    static const int64_t dims[] = {256, 256};
    float *data = calloc(256 * 256, sizeof *data);
    tn_value *out[1];
    assert_non_null(data);
    const tn_session_options options = {.struct_size = sizeof options, .thread_count = 4};
    onnx_begin(&m, 13);
    onnx_input(&m, "x", TN_DTYPE_F32, 2, dims);
    onnx_node(&m, "MatMul", "x x", "y");
    onnx_output(&m, "y", TN_DTYPE_F32, 2, dims);
    fixture_open(&f, &m, &options);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 2, dims, data);

    for (int run = 0; run < 3; run++) {
        fixture_run(&f, x, 1, out);
        tn_tensor_release(out[0]);
    }

    const tn_session_stats stats = fixture_stats(&f);
    assert_true(stats.workspace_peak_bytes > 0);
    assert_int_equal(stats.execution_live_bytes, 0);
    assert_true(stats.execution_peak_bytes >= stats.workspace_peak_bytes);
    tn_tensor_release(x);
    free(data);
    fixture_close(&f);
}

/* For every node that a plan keeps, the query names the arena that the run uses. */
static void scenario_94_allocator_for_output_is_what_runs_do(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    float data[6];
    tn_value *out[2];
    tn_plan_arena arena = TN_PLAN_DYNAMIC;
    tn_error err;
    const tn_session_options options = {.struct_size = sizeof options, .disable_fusion = true};
    build_transpose(&m);
    onnx_node(&m, "Transpose", "y", "inner");
    onnx_node(&m, "Transpose", "inner", "z");
    onnx_output(&m, "z", TN_DTYPE_F32, 2, dims_3x2);
    fixture_open(&f, &m, &options);
    tn_value *x = six_tensor(&f, data);
    fixture_run(&f, x, 2, out);

    ASSERT_OK(tn_session_allocator_for_output(f.session, "Transpose_y", 0, &arena, NULL));
    assert_int_equal(arena, TN_PLAN_IO);
    ASSERT_OK(tn_session_allocator_for_output(f.session, "Transpose_inner", 0, &arena, NULL));
    assert_int_equal(arena, TN_PLAN_EXECUTION);
    ASSERT_OK(tn_session_allocator_for_output(f.session, "Transpose_z", 0, &arena, NULL));
    assert_int_equal(arena, TN_PLAN_IO);
    ASSERT_STATUS(TN_INVALID_ARGUMENT,
                  tn_session_allocator_for_output(f.session, "nobody", 0, &arena, &err));
    assert_int_equal(fixture_io(&f).leased_count, 2);
    tn_tensor_release(out[0]);
    tn_tensor_release(out[1]);
    tn_tensor_release(x);
    fixture_close(&f);
}

static void *get_from_allocator(void *ctx, size_t size_bytes) {
    tn_buffer *buffers = ctx;
    for (int i = 1; i < 16; i++) {
        if (buffers[i].ledger != NULL) continue;
        tn_allocator *allocator = buffers[0].data;
        return tn_buffer_create(allocator, size_bytes, 64, &buffers[i], NULL) == TN_OK
                   ? buffers[i].data
                   : NULL;
    }
    return NULL;
}

/* A kernel on its own, with memory of an allocator that the caller names. */
static void scenario_98_standalone_kernel_uses_the_given_allocator(void **state) {
    (void)state;
    size_t table_count = 0;
    tn_allocator *root = NULL;
    tn_buffer buffers[16] = {{0}};
    const tn_op_table *const *tables = tn_registry_tables(&table_count);
    const tn_op_def *op =
        tn_op_tables_find(tables, table_count, (tn_text){"", 0}, (tn_text){"Neg", 3}, 13);
    assert_non_null(op);
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    buffers[0].data = root;
    _Alignas(16) char params[256] = {0};
    assert_true(op->params_bytes <= sizeof params);
    const tn_check_context check = {.opset = 13, .input_count = 1, .output_count = 1};
    if (op->check != NULL) ASSERT_OK(op->check(&check, params));
    const tn_fact x = {
        .kind = TN_KIND_TENSOR, .dtype = TN_DTYPE_F32, .shape = {2, {2, 3}}, .data = six};
    tn_fact y = {.shape = {.rank = TN_RANK_UNKNOWN}};
    const tn_fact *inputs[] = {&x};
    tn_fact *outputs[] = {&y};
    const tn_node_facts node = {.op = op,
                                .params = params,
                                .name = "alone",
                                .opset = 13,
                                .input_count = 1,
                                .output_count = 1,
                                .inputs = inputs,
                                .outputs = outputs};
    const tn_op_call call = {
        .node = &node, .variant_index = -1, .memory = {buffers, get_from_allocator}};

    ASSERT_OK(tn_op_run(&call, NULL));

    assert_true(((const float *)y.data)[5] == -6);
    assert_true(tn_allocator_charged(root) >= sizeof six);
    for (int i = 1; i < 16; i++) {
        if (buffers[i].ledger != NULL) (void)tn_buffer_release(&buffers[i]);
    }
    assert_int_equal(tn_allocator_charged(root), 0);
    ASSERT_OK(tn_allocator_close(root, NULL));
    tn_allocator_release(root);
}

static void scenario_99_binding_owns_what_it_binds(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    tn_io_binding *binding = NULL;
    tn_value *y = NULL;
    float data[6];
    build_transpose(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = six_tensor(&f, data);
    ASSERT_OK(tn_io_binding_create(f.session, &binding, NULL));
    ASSERT_OK(tn_io_binding_bind_input(binding, "x", x, NULL));
    tn_tensor_release(x); /* the binding keeps it */
    ASSERT_OK(tn_io_binding_bind_output(binding, "y", NULL, NULL));

    ASSERT_OK(tn_io_binding_run(binding, NULL));

    assert_int_equal(fixture_io(&f).leased_count, 1); /* owned by the binding until taken */
    ASSERT_OK(tn_io_binding_output(binding, 0, &y, NULL));
    tn_io_binding_destroy(binding);
    assert_true(same_floats(y, six_transposed, 6));
    tn_tensor_release(y);
    assert_int_equal(fixture_io(&f).live_bytes, 0);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(scenario_35_left_out_output_between_two),
        T(scenario_37_workspace_stays_out_of_io),
        T(scenario_40_kernel_failure_in_the_middle),
        T(scenario_41_roles_are_decided_once),
        T(scenario_46_49_context_clear_leaves_inputs_and_results),
        T(scenario_56_two_owners_of_one_result),
        T(scenario_65_branch_output_is_written_into_io),
        T(scenario_70_function_called_twice),
        T(scenario_71_branch_value_crosses_into_execution),
        T(scenario_73_two_sessions_share_an_io_arena),
        T(scenario_75_workers_scratch_comes_from_execution),
        T(scenario_94_allocator_for_output_is_what_runs_do),
        T(scenario_98_standalone_kernel_uses_the_given_allocator),
        T(scenario_99_binding_owns_what_it_binds),
        T(single_arena_mode_uses_one_io_arena_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
