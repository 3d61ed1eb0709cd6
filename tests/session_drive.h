/* Takes a model from bytes as far as it goes: load, session, plan, run twice and once more without
 * reuse. What the three runs give must agree to the bit, what was planned must cover what was used,
 * an error must have words, and nothing may be left in the tree. Serves the fuzz target and the
 * probe of hostile models. */
#ifndef TN_TESTS_SESSION_DRIVE_H
#define TN_TESTS_SESSION_DRIVE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenure/tenure.h>

#define DRIVE_MAX_VALUES 64
#define DRIVE_MAX_FEED_BYTES ((size_t)1 << 20)

typedef struct drive_result {
    const char *stage; /* "load", "session", "plan" or "run": the last one that was begun */
    tn_status status;
    tn_error err;
    uint64_t left_bytes; /* charged after everything is released */
    const char *fault;   /* what must not happen; NULL: nothing */
} drive_result;

typedef struct drive_feeds {
    size_t count;
    tn_feed feeds[DRIVE_MAX_VALUES];
    tn_plan_shape shapes[DRIVE_MAX_VALUES];
    tn_value *values[DRIVE_MAX_VALUES];
} drive_feeds;

static inline void drive_note(drive_result *result, const char *fault) {
    if (result->fault == NULL) result->fault = fault;
}

static inline void drive_free(void *ctx, void *data) {
    (void)ctx;
    free(data);
}

/* Small numbers of either sign, so that indices and axes are often in range. */
static inline void drive_fill(void *data, tn_dtype dtype, size_t elems, size_t size_bytes) {
    static const char text[] = "ab c1";
    memset(data, 0, size_bytes);
    for (size_t i = 0; i < elems; i++) {
        const int number = (int)((i + 2) % 5) - 1;
        if (dtype == TN_DTYPE_F32) ((float *)data)[i] = (float)number * 0.5f;
        if (dtype == TN_DTYPE_F64) ((double *)data)[i] = (double)number * 0.5;
        if (dtype == TN_DTYPE_I64) ((int64_t *)data)[i] = number;
        if (dtype == TN_DTYPE_I32) ((int32_t *)data)[i] = number;
        if (dtype == TN_DTYPE_BOOL) ((bool *)data)[i] = number > 0;
        if (dtype == TN_DTYPE_U8 || dtype == TN_DTYPE_I8)
            ((unsigned char *)data)[i] = (unsigned char)(i % 7);
        if (dtype == TN_DTYPE_STRING) ((tn_string *)data)[i] = (tn_string){text, i % sizeof text};
    }
}

/* A tensor for one declared input; unknown dims are 2, an unknown rank is 1. */
static inline bool drive_make(tn_allocator *allocator, const tn_value_info *info, tn_shape *shape,
                              tn_value **out) {
    size_t size_bytes = 0;
    size_t elems = 0;
    if (info->kind != TN_KIND_TENSOR || info->dtype == TN_DTYPE_NONE) return false;
    shape->rank = info->rank < 0 ? 1 : info->rank;
    for (int32_t i = 0; i < shape->rank; i++) {
        shape->dims[i] = info->rank < 0 || info->dims[i] < 0 ? 2 : info->dims[i];
    }
    if (tn_shape_size_bytes(shape, info->dtype, &size_bytes, NULL) != TN_OK ||
        tn_shape_len_elems(shape, &elems, NULL) != TN_OK || size_bytes > DRIVE_MAX_FEED_BYTES) {
        return false;
    }
    void *data = malloc(size_bytes + (size_bytes == 0));
    if (data == NULL) abort();
    drive_fill(data, info->dtype, elems, size_bytes);
    if (tn_tensor_create_borrowed(allocator, info->dtype, shape, NULL, data, drive_free, NULL, out,
                                  NULL) != TN_OK) {
        free(data);
        return false;
    }
    return true;
}

static inline bool drive_make_feeds(tn_session *session, tn_allocator *allocator,
                                    drive_feeds *feeds) {
    const size_t count = tn_session_input_count(session);
    memset(feeds, 0, sizeof *feeds);
    if (count > DRIVE_MAX_VALUES) return false;
    for (size_t i = 0; i < count; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (tn_session_input_info(session, i, &info, NULL) != TN_OK) abort();
        tn_plan_shape *shape = &feeds->shapes[i];
        if (!drive_make(allocator, &info, &shape->shape, &feeds->values[i])) return false;
        shape->input_name = info.name;
        shape->data = tn_tensor_borrow_data(feeds->values[i]);
        feeds->feeds[i] = (tn_feed){info.name, feeds->values[i]};
        feeds->count = i + 1;
    }
    return true;
}

static inline void drive_release(tn_value **values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tn_tensor_release(values[i]);
        values[i] = NULL;
    }
}

static inline bool drive_same(const tn_value *a, const tn_value *b) {
    const tn_shape *shape = tn_tensor_borrow_shape(a);
    if (tn_tensor_dtype(a) != tn_tensor_dtype(b)) return false;
    if (shape->rank != tn_tensor_borrow_shape(b)->rank) return false;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] != tn_tensor_borrow_shape(b)->dims[i]) return false;
    }
    if (tn_tensor_dtype(a) == TN_DTYPE_STRING) return true;
    return memcmp(tn_tensor_borrow_data(a), tn_tensor_borrow_data(b), tn_tensor_size_bytes(a)) == 0;
}

/* Runs once; with `expected` the outputs must be the same, else they are kept in `out`. */
static inline tn_status drive_run(tn_session *session, const drive_feeds *feeds,
                                  tn_value **expected, tn_value **out, drive_result *result) {
    const size_t count = tn_session_output_count(session);
    memset(out, 0, DRIVE_MAX_VALUES * sizeof *out);
    const tn_status status =
        tn_session_run(session, feeds->feeds, feeds->count, NULL, count, out, &result->err);
    for (size_t i = 0; i < count; i++) {
        if ((out[i] != NULL) != (status == TN_OK)) drive_note(result, "output without success");
        if (status != TN_OK || expected == NULL) continue;
        if (!drive_same(expected[i], out[i])) drive_note(result, "runs differ");
    }
    return status;
}

static inline void drive_check_stats(const tn_session *session, drive_result *result) {
    tn_session_stats stats = {.struct_size = sizeof stats};
    tn_session_get_stats(session, &stats);
    if (stats.prediction_complete && stats.measured_peak_bytes > stats.predicted_peak_bytes) {
        drive_note(result, "measured peak over predicted peak");
    }
}

/* A session that reuses nothing and poisons what it releases must give the same. */
static inline void drive_compare(tn_environment *environment, tn_model *model,
                                 const drive_feeds *feeds, tn_value **expected,
                                 drive_result *result) {
    const tn_session_options options = {.struct_size = sizeof options,
                                        .disable_reuse = true,
                                        .disable_in_place = true,
                                        .poison = true};
    tn_session *session = NULL;
    tn_value *out[DRIVE_MAX_VALUES];
    if (tn_session_create(environment, model, &options, &session, NULL) != TN_OK) return;
    (void)drive_run(session, feeds, expected, out, result);
    drive_release(out, tn_session_output_count(session));
    tn_session_close(session);
    tn_session_release(session);
}

static inline tn_status drive_runs(tn_environment *environment, tn_model *model,
                                   tn_session *session, const drive_feeds *feeds,
                                   bool is_repeatable, drive_result *result) {
    tn_value *first[DRIVE_MAX_VALUES];
    tn_value *second[DRIVE_MAX_VALUES];
    const size_t count = tn_session_output_count(session);
    if (count > DRIVE_MAX_VALUES) return TN_OK;
    const tn_status status = drive_run(session, feeds, NULL, first, result);
    if (status == TN_OK) {
        drive_check_stats(session, result);
        tn_error *err = &result->err;
        (void)drive_run(session, feeds, is_repeatable ? first : NULL, second, result);
        if (is_repeatable) drive_compare(environment, model, feeds, first, result);
        drive_release(second, count);
        err->code = TN_OK;
    }
    drive_release(first, count);
    return status;
}

/* Loops may go on for 2^63 rounds, and random operators differ by right. */
static inline bool drive_contains(const void *data, size_t size_bytes, const char *word) {
    return memmem(data, size_bytes, word, strlen(word)) != NULL;
}

static inline tn_status drive_session(tn_environment *environment, tn_model *model,
                                      const void *data, size_t size_bytes, drive_result *result) {
    tn_session *session = NULL;
    tn_plan_report *plan = NULL;
    drive_feeds feeds;
    result->stage = "session";
    tn_status status = tn_session_create(environment, model, NULL, &session, &result->err);
    if (status != TN_OK) return status;

    if (drive_make_feeds(session, tn_environment_allocator(environment), &feeds)) {
        result->stage = "plan";
        status = tn_session_plan(session, feeds.shapes, feeds.count, &plan, &result->err);
        if (!drive_contains(data, size_bytes, "Loop")) {
            result->stage = "run";
            const bool is_random = drive_contains(data, size_bytes, "Random") ||
                                   drive_contains(data, size_bytes, "Bernoulli") ||
                                   drive_contains(data, size_bytes, "Multinomial") ||
                                   drive_contains(data, size_bytes, "Dropout");
            status = drive_runs(environment, model, session, &feeds, !is_random, result);
        }
    }
    drive_release(feeds.values, DRIVE_MAX_VALUES);
    tn_plan_report_destroy(plan);
    tn_session_close(session);
    tn_session_release(session);
    return status;
}

/* `limit_bytes` is the environment's. */
static inline void drive_model(const void *data, size_t size_bytes, uint64_t limit_bytes,
                               drive_result *result) {
    tn_allocator *root = NULL;
    tn_environment *environment = NULL;
    tn_model *model = NULL;
    memset(result, 0, sizeof *result);
    if (tn_allocator_create_root(NULL, &root, NULL) != TN_OK) abort();
    const tn_environment_options options = {.struct_size = sizeof options,
                                            .parent = root,
                                            .memory_limit_bytes = limit_bytes,
                                            .thread_count = 1,
                                            .log_level = TN_LOG_OFF};
    if (tn_environment_create(&options, &environment, NULL) != TN_OK) abort();

    result->stage = "load";
    result->status = tn_model_load_bytes(tn_environment_allocator(environment), data, size_bytes,
                                         NULL, &model, &result->err);
    if (result->status == TN_OK) {
        result->status = drive_session(environment, model, data, size_bytes, result);
    }
    if (result->status != TN_OK &&
        (result->err.code != result->status || result->err.message[0] == '\0')) {
        drive_note(result, "an error without words");
    }
    if (result->status == TN_INTERNAL) drive_note(result, "an error of our own");
    if (result->status == TN_OUT_OF_MEMORY) drive_note(result, "out of memory below the limit");
    tn_model_release(model);
    tn_environment_close(environment);
    tn_environment_release(environment);
    result->left_bytes = tn_allocator_charged(root);
    if (result->left_bytes != 0) drive_note(result, "bytes left behind");
    tn_allocator_release(root);
}

#endif
