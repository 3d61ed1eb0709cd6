/* From a caller's feeds and names to a request that the executor understands: all that can be wrong
 * with them is said here, before any kernel runs. */
#include <string.h>

#include "base/error.h"
#include "memory/tree.h"
#include "plan/op_def.h"
#include "runtime/context_state.h"

static tn_status check_feed(const tn_session *session, size_t index, const tn_tensor *tensor,
                            tn_error *err) {
    const tn_declared_value *declared = &session->inputs[index];
    const tn_value_info *info = &declared->info;
    const tn_shape *shape = tn_tensor_borrow_shape(tensor);
    char wanted[160];
    char given[160];
    TN_REQUIRE(info->kind == TN_KIND_TENSOR, err, TN_UNSUPPORTED,
               "input '%s' is not a tensor, which runs do not take yet", declared->name);
    TN_REQUIRE(info->dtype == TN_DTYPE_NONE || info->dtype == tn_tensor_dtype(tensor), err,
               TN_INVALID_ARGUMENT, "input '%s' wants %s, got %s", declared->name,
               tn_dtype_name(info->dtype), tn_dtype_name(tn_tensor_dtype(tensor)));
    if (info->rank < 0) return TN_OK;
    tn_shape declared_shape = {.rank = info->rank};
    bool fits = info->rank == shape->rank;
    for (int32_t d = 0; d < info->rank; d++) {
        declared_shape.dims[d] = info->dims[d];
        fits = fits && (info->dims[d] < 0 || info->dims[d] == shape->dims[d]);
    }
    TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT, "input '%s' wants shape %s, got %s", declared->name,
               tn_shape_text(&declared_shape, wanted, sizeof wanted),
               tn_shape_text(shape, given, sizeof given));
    return TN_OK;
}

/* Every input without a default must be there. */
static tn_status check_complete(const tn_session *session, const tn_tensor *const *feeds,
                                tn_error *err) {
    for (size_t i = 0; i < session->input_count; i++) {
        TN_REQUIRE(feeds[i] != NULL || session->inputs[i].has_default, err, TN_INVALID_ARGUMENT,
                   "input '%s' is not fed", session->inputs[i].name);
    }
    return TN_OK;
}

static tn_status place_feeds(tn_context *context, const tn_feed *feeds, size_t feed_count,
                             tn_error *err) {
    tn_session *session = context->session;
    memset(context->feeds, 0, session->input_count * sizeof *context->feeds);
    for (size_t i = 0; i < feed_count; i++) {
        TN_REQUIRE(feeds[i].name != NULL, err, TN_INVALID_ARGUMENT, "feed %zu has no name", i);
        TN_REQUIRE(feeds[i].value != NULL, err, TN_INVALID_ARGUMENT, "input '%s' is fed nothing",
                   feeds[i].name);
        const size_t index = tn_session_find_input(session, feeds[i].name);
        TN_REQUIRE(index != SIZE_MAX, err, TN_INVALID_ARGUMENT, "the model has no input '%s'",
                   feeds[i].name);
        TN_REQUIRE(context->feeds[index] == NULL, err, TN_INVALID_ARGUMENT,
                   "input '%s' is fed twice", feeds[i].name);
        TN_TRY(check_feed(session, index, feeds[i].value, err));
        context->feeds[index] = feeds[i].value;
    }
    return check_complete(session, context->feeds, err);
}

static void count_run(tn_session *session, const tn_context *context, tn_status status) {
    tn_session_counters *counters = &session->counters;
    /* relaxed: figures for reports, ordered by nothing */
    atomic_fetch_add_explicit(status == TN_OK ? &counters->run_count : &counters->failed_run_count,
                              1, memory_order_relaxed);
    if (context->copies == 0) return;
    atomic_fetch_add_explicit(&counters->payload_copies, context->copies, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->copied_bytes, context->copied_bytes, memory_order_relaxed);
}

#define FEW_OUTPUTS 16

/* Arrays by declared position for the outputs that the caller names in an order of its own. */
typedef struct output_map {
    tn_value *few_values[FEW_OUTPUTS];
    bool few_wanted[FEW_OUTPUTS];
    tn_value **values;
    bool *wanted;
    void *memory; /* owned when there are many */
} output_map;

static tn_status map_create(const tn_session *session, output_map *map, tn_error *err) {
    memset(map, 0, sizeof *map);
    map->values = map->few_values;
    map->wanted = map->few_wanted;
    if (session->output_count <= FEW_OUTPUTS) return TN_OK;
    const size_t item_bytes = sizeof *map->values + sizeof *map->wanted;
    map->memory = tn_allocator_calloc(session->plan_allocator, session->output_count, item_bytes);
    TN_REQUIRE(map->memory != NULL, err, TN_OUT_OF_MEMORY, "a list of %zu outputs needs memory",
               session->output_count);
    map->values = map->memory;
    map->wanted = (bool *)(map->values + session->output_count);
    return TN_OK;
}

static tn_status map_fill(const tn_session *session, output_map *map, const char *const *names,
                          size_t count, tn_value *const *given, tn_error *err) {
    if (names == NULL) {
        TN_REQUIRE(count == session->output_count, err, TN_INVALID_ARGUMENT,
                   "room for %zu outputs, the model has %zu", count, session->output_count);
    }
    for (size_t i = 0; i < count; i++) {
        TN_REQUIRE(names == NULL || names[i] != NULL, err, TN_INVALID_ARGUMENT,
                   "wanted output %zu has no name", i);
        const size_t index = names == NULL ? i : tn_session_find_output(session, names[i]);
        TN_REQUIRE(index != SIZE_MAX, err, TN_INVALID_ARGUMENT, "the model has no output '%s'",
                   names[i]);
        TN_REQUIRE(!map->wanted[index], err, TN_INVALID_ARGUMENT, "output '%s' is asked for twice",
                   session->outputs[index].name);
        map->wanted[index] = true;
        map->values[index] = given[i];
    }
    return TN_OK;
}

static void map_read(const tn_session *session, const output_map *map, const char *const *names,
                     size_t count, tn_value **out) {
    for (size_t i = 0; i < count; i++) {
        out[i] = map->values[names == NULL ? i : tn_session_find_output(session, names[i])];
    }
}

static tn_status run_once(tn_session *session, const tn_feed *feeds, size_t feed_count,
                          const char *const *output_names, size_t output_count,
                          tn_value **out_values, tn_error *err) {
    tn_status status = TN_OK;
    tn_context *context = NULL;
    output_map map;
    TN_TRY(tn_session_take_context(session, &context, err));
    context->copies = 0;
    status = map_create(session, &map, err);
    if (status == TN_OK) {
        status = map_fill(session, &map, output_names, output_count, out_values, err);
    }
    if (status == TN_OK) status = place_feeds(context, feeds, feed_count, err);
    if (status == TN_OK) {
        const tn_run_request request = {context->feeds, map.values, map.wanted};
        status = tn_context_execute(context, &request, err);
    }
    if (status == TN_OK) map_read(session, &map, output_names, output_count, out_values);
    count_run(session, context, status);
    tn_allocator_free(session->plan_allocator, map.memory);
    tn_session_return_context(session, context);
    return status;
}

tn_status tn_session_run(tn_session *session, const tn_feed *feeds, size_t feed_count,
                         const char *const *output_names, size_t output_count,
                         tn_value **out_values, tn_error *err) {
    TN_REQUIRE(session != NULL && (feeds != NULL || feed_count == 0) &&
                   (out_values != NULL || output_count == 0),
               err, TN_INVALID_ARGUMENT, "a run needs a session, feeds and room for outputs");
    const uint64_t refusals = tn_tree_refusal_number(session->environment->allocator);
    const tn_status status =
        run_once(session, feeds, feed_count, output_names, output_count, out_values, err);
    return tn_tree_explain(session->environment->allocator, refusals, status, err);
}

tn_status tn_context_create(tn_session *session, tn_context **out, tn_error *err) {
    TN_REQUIRE(session != NULL && out != NULL, err, TN_INVALID_ARGUMENT,
               "a context needs a session and a place for itself");
    *out = NULL;
    const uint64_t refusals = tn_tree_refusal_number(session->environment->allocator);
    (void)pthread_mutex_lock(&session->mutex);
    tn_status status = TN_OK;
    if (session->is_closed) {
        status = tn_error_set(err, TN_CLOSED, "the session is closed");
    } else {
        status = tn_context_make(session, true, out, err);
        if (status == TN_OK) session->context_count++;
    }
    (void)pthread_mutex_unlock(&session->mutex);
    return tn_tree_explain(session->environment->allocator, refusals, status, err);
}

void tn_context_destroy(tn_context *context) {
    if (context == NULL) return;
    tn_session *session = context->session;
    tn_context_free(context);
    tn_session_release(session);
}

tn_status tn_context_set(tn_context *context, const char *name, tn_value *value, tn_error *err) {
    const size_t index = tn_session_find_input(context->session, name);
    TN_REQUIRE(index != SIZE_MAX, err, TN_INVALID_ARGUMENT, "the model has no input '%s'", name);
    if (value != NULL) TN_TRY(check_feed(context->session, index, value, err));
    tn_value *held = tn_tensor_retain(value);
    TN_REQUIRE(held != NULL || value == NULL, err, TN_DEAD, "the value is already released");
    tn_tensor_release(context->held_inputs[index]);
    context->held_inputs[index] = held;
    return TN_OK;
}

/* Counts the run as one of the session's, so that closing waits for it. */
static tn_status begin_own_run(tn_context *context, tn_error *err) {
    tn_session *session = context->session;
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&session->mutex);
    if (session->is_closed) {
        status = tn_error_set(err, TN_CLOSED, "the session is closed");
    } else {
        session->busy_count++;
    }
    (void)pthread_mutex_unlock(&session->mutex);
    return status;
}

static void end_own_run(tn_context *context) {
    tn_session *session = context->session;
    (void)pthread_mutex_lock(&session->mutex);
    session->busy_count--;
    (void)pthread_cond_broadcast(&session->context_returned);
    (void)pthread_mutex_unlock(&session->mutex);
}

static tn_status run_held(tn_context *context, tn_error *err) {
    tn_session *session = context->session;
    output_map map;
    for (size_t i = 0; i < session->input_count; i++) context->feeds[i] = context->held_inputs[i];
    TN_TRY(check_complete(session, context->feeds, err));
    TN_TRY(map_create(session, &map, err));
    for (size_t i = 0; i < session->output_count; i++) map.wanted[i] = true;
    const tn_run_request request = {context->feeds, map.values, map.wanted};
    const tn_status status = tn_context_execute(context, &request, err);
    for (size_t i = 0; status == TN_OK && i < session->output_count; i++) {
        tn_tensor_release(context->held_outputs[i]);
        context->held_outputs[i] = map.values[i];
    }
    count_run(session, context, status);
    tn_allocator_free(session->plan_allocator, map.memory);
    return status;
}

tn_status tn_context_run(tn_context *context, tn_error *err) {
    /* acquire and release: what one run wrote is seen by the next one's thread */
    TN_REQUIRE(!atomic_flag_test_and_set_explicit(&context->is_busy, memory_order_acquire), err,
               TN_BUSY, "the context is running on another thread");
    const tn_allocator *allocator = context->session->environment->allocator;
    const uint64_t refusals = tn_tree_refusal_number(allocator);
    tn_status status = begin_own_run(context, err);
    if (status == TN_OK) {
        status = run_held(context, err);
        end_own_run(context);
    }
    atomic_flag_clear_explicit(&context->is_busy, memory_order_release);
    return tn_tree_explain(allocator, refusals, status, err);
}

tn_status tn_context_get(tn_context *context, const char *name, tn_value **out, tn_error *err) {
    const size_t index = tn_session_find_output(context->session, name);
    *out = NULL;
    TN_REQUIRE(index != SIZE_MAX, err, TN_INVALID_ARGUMENT, "the model has no output '%s'", name);
    TN_REQUIRE(context->held_outputs[index] != NULL, err, TN_INVALID_ARGUMENT,
               "output '%s' has no value yet", name);
    *out = tn_tensor_retain(context->held_outputs[index]);
    return TN_OK;
}

void tn_context_clear(tn_context *context) {
    tn_context_drop(context);
}
