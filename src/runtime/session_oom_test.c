/* Every allocation of making, running and closing a session fails once: an error each time, nothing
 * lost, the tree at zero. The environment is a child of the test's allocator. */
#include "oom_sweep.h"
#include "session_fixture.h"

typedef struct scenario_ctx {
    onnx_model model; /* serialized */
    size_t output_count;
    uint32_t thread_count;
    bool is_strided;
} scenario_ctx;

static tn_status run_twice(tn_session *session, const scenario_ctx *ctx, tn_allocator *root) {
    float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const tn_shape shape = {2, {2, 3}};
    const int64_t strides[2] = {4, 8};
    tn_value *x = NULL;
    tn_status status = tn_tensor_create_borrowed(
        root, TN_DTYPE_F32, &shape, ctx->is_strided ? strides : NULL, data, NULL, NULL, &x, NULL);
    for (int run = 0; run < 2 && status == TN_OK; run++) {
        tn_value *out[4] = {NULL};
        const tn_feed feed = {"x", x};
        status = tn_session_run(session, &feed, 1, NULL, ctx->output_count, out, NULL);
        for (size_t i = 0; i < ctx->output_count; i++) {
            assert_true(status == TN_OK || out[i] == NULL);
            tn_tensor_release(out[i]);
        }
    }
    tn_tensor_release(x);
    return status;
}

static tn_status create_run_close(tn_allocator *root, void *arg) {
    const scenario_ctx *ctx = arg;
    const tn_environment_options options = {
        .struct_size = sizeof options, .parent = root, .thread_count = ctx->thread_count};
    tn_environment *environment = NULL;
    tn_model *model = NULL;
    tn_session *session = NULL;
    tn_status status = tn_environment_create(&options, &environment, NULL);
    if (status == TN_OK) {
        status = tn_model_load_bytes(tn_environment_allocator(environment), ctx->model.data,
                                     ctx->model.size_bytes, NULL, &model, NULL);
    }
    if (status == TN_OK) status = tn_session_create(environment, model, NULL, &session, NULL);
    if (status == TN_OK) status = run_twice(session, ctx, root);
    assert_true(session != NULL || status != TN_OK);
    tn_session_release(session);
    tn_model_release(model);
    tn_environment_release(environment);
    return status;
}

static const int64_t dims_2x3[] = {2, 3};
static const int64_t dims_3x2[] = {3, 2};

/* Weights that get packed, a view, a shared input, an output that needs a copy. */
static void build_planned(onnx_model *m) {
    static const float weights[6] = {1, 0, 2, 1, 3, 1};
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_initializer(m, "w", TN_DTYPE_F32, 2, dims_3x2, weights, sizeof weights);
    onnx_node(m, "MatMul", "x w", "p");
    onnx_node(m, "Relu", "p", "r");
    onnx_node(m, "Identity", "r", "same");
    onnx_output(m, "r", TN_DTYPE_F32, 2, (const int64_t[]){2, 2});
    onnx_output(m, "same", TN_DTYPE_F32, 2, (const int64_t[]){2, 2});
    onnx_end(m);
}

/* NonZero makes a size that depends on data; what follows is bound at run time. */
static void build_dynamic(onnx_model *m) {
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 2, dims_2x3);
    onnx_node(m, "NonZero", "x", "places");
    onnx_node(m, "Transpose", "places", "turned");
    onnx_node(m, "Shape", "turned", "shape");
    onnx_output(m, "turned", TN_DTYPE_I64, -1, NULL);
    onnx_output(m, "shape", TN_DTYPE_I64, 1, (const int64_t[]){2});
    onnx_end(m);
}

static void sweep(scenario_ctx *ctx) {
    assert_true(tn_oom_sweep_run(create_run_close, ctx, false) > 20);
    assert_true(tn_oom_sweep_run(create_run_close, ctx, true) > 20);
    onnx_free(&ctx->model);
}

static void planned_session_survives_every_allocation_failure(void **state) {
    (void)state;
    scenario_ctx ctx = {.output_count = 2, .thread_count = 1};
    build_planned(&ctx.model);
    sweep(&ctx);
}

static void staged_input_survives_every_allocation_failure(void **state) {
    (void)state;
    scenario_ctx ctx = {.output_count = 2, .thread_count = 1, .is_strided = true};
    build_planned(&ctx.model);
    sweep(&ctx);
}

static void threads_survive_every_allocation_failure(void **state) {
    (void)state;
    scenario_ctx ctx = {.output_count = 2, .thread_count = 3};
    build_planned(&ctx.model);
    sweep(&ctx);
}

static void dynamic_session_survives_every_allocation_failure(void **state) {
    (void)state;
    scenario_ctx ctx = {.output_count = 2, .thread_count = 1};
    build_dynamic(&ctx.model);
    sweep(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(planned_session_survives_every_allocation_failure),
        T(staged_input_survives_every_allocation_failure),
        T(threads_survive_every_allocation_failure),
        T(dynamic_session_survives_every_allocation_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
