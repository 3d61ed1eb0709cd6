/* An environment, a model written by onnx_builder, a session, and short words for tensors. */
#ifndef TN_TESTS_SESSION_FIXTURE_H
#define TN_TESTS_SESSION_FIXTURE_H

#include <string.h>
#include <tenure/tenure.h>

#include "harness.h"
#include "onnx_builder.h"

typedef struct session_fixture {
    tn_environment *environment;
    tn_model *model;
    tn_session *session;
} session_fixture;

/* Builds the session of `m`, which it frees. `options` may be NULL. */
static inline void fixture_open(session_fixture *f, onnx_model *m,
                                const tn_session_options *options) {
    tn_error err = {.code = TN_OK};
    const tn_environment_options environment = {.struct_size = sizeof environment,
                                                .thread_count = 1};
    memset(f, 0, sizeof *f);
    onnx_end(m);
    ASSERT_OK(tn_environment_create(&environment, &f->environment, &err));
    ASSERT_OK(tn_model_load_bytes(tn_environment_allocator(f->environment), m->data, m->size_bytes,
                                  NULL, &f->model, &err));
    const tn_status status =
        tn_session_create(f->environment, f->model, options, &f->session, &err);
    if (status != TN_OK) print_error("%s\n", err.message);
    assert_int_equal(status, TN_OK);
    onnx_free(m);
}

/* Closes everything; nothing may be left in the tree unless results are still held. */
static inline void fixture_close(session_fixture *f) {
    tn_session_close(f->session);
    tn_session_release(f->session);
    tn_model_release(f->model);
    tn_environment_release(f->environment);
}

static inline tn_value *fixture_tensor(const session_fixture *f, tn_dtype dtype, int rank,
                                       const int64_t *dims, void *data) {
    tn_shape shape = {.rank = rank};
    tn_value *value = NULL;
    for (int i = 0; i < rank; i++) shape.dims[i] = dims[i];
    ASSERT_OK(tn_tensor_create_borrowed(tn_environment_allocator(f->environment), dtype, &shape,
                                        NULL, data, NULL, NULL, &value, NULL));
    return value;
}

/* One feed named "x", all outputs. */
static inline void fixture_run(const session_fixture *f, tn_value *x, size_t output_count,
                               tn_value **out) {
    const tn_feed feed = {"x", x};
    tn_error err = {.code = TN_OK};
    for (size_t i = 0; i < output_count; i++) out[i] = NULL;
    const tn_status status = tn_session_run(f->session, &feed, 1, NULL, output_count, out, &err);
    if (status != TN_OK) print_error("%s\n", err.message);
    assert_int_equal(status, TN_OK);
}

static inline tn_arena_stats fixture_io(const session_fixture *f) {
    tn_arena_stats stats = {.struct_size = sizeof stats};
    tn_io_arena_get_stats(tn_session_io_arena(f->session), &stats);
    return stats;
}

static inline tn_session_stats fixture_stats(const session_fixture *f) {
    tn_session_stats stats = {.struct_size = sizeof stats};
    tn_session_get_stats(f->session, &stats);
    return stats;
}

static inline const float *floats_of(const tn_value *value) {
    return tn_tensor_borrow_data(value);
}

static inline bool same_floats(const tn_value *value, const float *expected, size_t count) {
    return tn_tensor_size_bytes(value) == count * sizeof *expected &&
           memcmp(tn_tensor_borrow_data(value), expected, count * sizeof *expected) == 0;
}

#endif
