/* Sessions: made from a model and options, run from any thread, closed at once.
 *
 * A run checks a context out of a bounded pool, so it takes the session's lock twice and nothing
 * else that others wait for. Closing frees everything but the I/O blocks that leases still hold. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "kernels/registry.h"
#include "memory/tree.h"
#include "model/graph.h"
#include "runtime/context_state.h"

#define CONTENTS_PER_INPUT 64

static tn_status make_child(tn_allocator *parent, const char *name, uint64_t limit_bytes,
                            tn_allocator **out, tn_error *err) {
    const tn_allocator_options options = {
        .struct_size = sizeof options, .name = name, .limit_bytes = limit_bytes};
    return tn_allocator_create_child(parent, &options, out, err);
}

static const char *session_name(const tn_session_options *options, const tn_model *model,
                                char *text, size_t capacity) {
    if (options->name != NULL) return options->name;
    const tn_text graph = tn_model_graph(model)->name;
    if (tn_text_is_empty(graph)) return "session";
    (void)snprintf(text, capacity, "%.*s", tn_text_width(graph), graph.data);
    return text;
}

static tn_status make_nodes(tn_session *session, tn_error *err) {
    char text[64];
    tn_allocator *parent = session->environment->allocator;
    const char *name = session_name(&session->options, session->model, text, sizeof text);
    TN_TRY(make_child(parent, name, session->options.memory_limit_bytes, &session->allocator, err));
    TN_TRY(make_child(session->allocator, "weights", 0, &session->weights_allocator, err));
    TN_TRY(make_child(session->allocator, "execution", 0, &session->execution_allocator, err));
    TN_TRY(make_child(session->allocator, "io", 0, &session->io_allocator, err));
    return make_child(session->allocator, "plan", 0, &session->plan_allocator, err);
}

tn_arena_options tn_session_arena_options(const tn_session *session) {
    return (tn_arena_options){.struct_size = sizeof(tn_arena_options),
                              .has_retention_cap = session->options.retention == TN_RETENTION_NONE,
                              .retention_cap_bytes = 0,
                              .is_adaptive = session->options.retention == TN_RETENTION_ADAPTIVE,
                              .window_runs = session->options.retention_window};
}

static tn_status make_io_arena(tn_session *session, tn_error *err) {
    if (session->options.io_arena != NULL) {
        session->io_arena = tn_io_arena_retain(session->options.io_arena);
        TN_REQUIRE(session->io_arena != NULL, err, TN_DEAD, "the I/O arena is already released");
        return TN_OK;
    }
    const tn_arena_options options = tn_session_arena_options(session);
    return tn_io_arena_create(session->io_allocator, &options, &session->io_arena, err);
}

static tn_status make_pool(tn_session *session, tn_error *err) {
    const tn_environment *environment = session->environment;
    const uint32_t wanted = session->options.thread_count;
    session->worker_count = 1;
    if (wanted == 1) return TN_OK;
    if (wanted == 0 || wanted == environment->thread_count) {
        session->pool = environment->pool;
        session->worker_count = environment->pool == NULL ? 1 : environment->thread_count;
        return TN_OK;
    }
    TN_REQUIRE(wanted <= TN_MAX_WORKERS, err, TN_INVALID_ARGUMENT,
               "%u threads, at most %d make sense", wanted, TN_MAX_WORKERS);
    const tn_base_alloc memory = tn_environment_base_alloc(session->plan_allocator);
    TN_TRY(tn_thread_pool_create(&memory, wanted, &session->own_pool, err));
    session->pool = session->own_pool;
    session->worker_count = wanted;
    return TN_OK;
}

static char *copy_text(tn_session *session, tn_text text) {
    char *copy = tn_bump_get(&session->names, text.size_bytes + 1);
    if (copy != NULL && text.size_bytes > 0) memcpy(copy, text.data, text.size_bytes);
    return copy;
}

static tn_status declare_value(tn_session *session, const tn_graph_value_info *info,
                               tn_declared_value *out, tn_error *err) {
    out->name = copy_text(session, info->name);
    TN_REQUIRE(out->name != NULL, err, TN_OUT_OF_MEMORY, "names need memory");
    tn_value_info *value = &out->info;
    value->struct_size = sizeof *value;
    value->name = out->name;
    value->kind = info->type.kind == TN_KIND_UNKNOWN ? TN_KIND_TENSOR : info->type.kind;
    value->dtype = info->type.dtype;
    value->rank = info->type.rank;
    const tn_graph_type *element = info->type.element;
    if (element != NULL) {
        value->element_kind = element->kind;
        value->dtype = element->dtype;
    }
    for (int32_t d = 0; d < info->type.rank; d++) {
        const tn_graph_dim *dim = &info->type.dims[d];
        value->dims[d] = dim->value;
        if (tn_text_is_empty(dim->symbol)) continue;
        value->dim_symbols[d] = copy_text(session, dim->symbol);
        TN_REQUIRE(value->dim_symbols[d] != NULL, err, TN_OUT_OF_MEMORY, "names need memory");
        for (size_t i = 0; i < session->options.dim_override_count; i++) {
            const tn_dim_override *override = &session->options.dim_overrides[i];
            if (strcmp(override->symbol, value->dim_symbols[d]) == 0)
                value->dims[d] = override->value;
        }
    }
    return TN_OK;
}

static bool has_initializer(const tn_graph *graph, tn_text name) {
    for (size_t i = 0; i < graph->initializer_count; i++) {
        if (tn_text_equals(graph->initializers[i].name, name)) return true;
    }
    return false;
}

static tn_status declare_values(tn_session *session, tn_error *err) {
    const tn_graph *graph = tn_model_graph(session->model);
    session->input_count = graph->input_count;
    session->output_count = graph->output_count;
    session->inputs =
        tn_bump_array(&session->names, graph->input_count + 1, sizeof(tn_declared_value));
    session->outputs =
        tn_bump_array(&session->names, graph->output_count + 1, sizeof(tn_declared_value));
    TN_REQUIRE(session->inputs != NULL && session->outputs != NULL, err, TN_OUT_OF_MEMORY,
               "names need memory");
    for (size_t i = 0; i < graph->input_count; i++) {
        TN_TRY(declare_value(session, &graph->inputs[i], &session->inputs[i], err));
        session->inputs[i].has_default = has_initializer(graph, graph->inputs[i].name);
        session->has_defaults = session->has_defaults || session->inputs[i].has_default;
    }
    for (size_t i = 0; i < graph->output_count; i++) {
        TN_TRY(declare_value(session, &graph->outputs[i], &session->outputs[i], err));
    }
    session->signature_capacity = 2 + session->input_count * (1 + TN_MAX_RANK + CONTENTS_PER_INPUT);
    return TN_OK;
}

static tn_status collect_tables(tn_session *session, tn_error *err) {
    size_t count = 0;
    const tn_op_table *const *built_in = tn_registry_tables(&count);
    session->tables = tn_bump_array(&session->names, count + 1, sizeof *session->tables);
    TN_REQUIRE(session->tables != NULL, err, TN_OUT_OF_MEMORY, "the registry needs memory");
    for (size_t i = 0; i < count; i++) session->tables[i] = built_in[i];
    if (session->options.custom_ops != NULL) session->tables[count++] = session->options.custom_ops;
    session->table_count = count;
    return TN_OK;
}

static tn_status check_options(const tn_session_options *options, tn_error *err) {
    TN_REQUIRE(options->execution_arena == NULL || options->max_concurrent_runs <= 1, err,
               TN_INVALID_ARGUMENT,
               "a caller's execution arena means one run at a time, max_concurrent_runs is %u",
               options->max_concurrent_runs);
    TN_REQUIRE(options->execution_arena == NULL || options->execution_in_io_arena == NULL, err,
               TN_INVALID_ARGUMENT, "execution_arena and execution_in_io_arena exclude each other");
    return TN_OK;
}

/* The structural form of the usual feeds, made at load so that every fault is found here. */
static tn_status make_first_form(tn_session *session, tn_error *err) {
    tn_session_form *form = NULL;
    bool *fed = tn_bump_array(&session->names, session->input_count + 1, sizeof *fed);
    TN_REQUIRE(fed != NULL, err, TN_OUT_OF_MEMORY, "names need memory");
    return tn_session_form_for(session, fed, &form, err);
}

static tn_status fill_session(tn_session *session, tn_error *err) {
    TN_TRY(tn_environment_share_model(session->environment, session->model, &session->shared, err));
    TN_TRY(make_nodes(session, err));
    session->names.allocator = session->plan_allocator;
    tn_weights_init(&session->folded, session->weights_allocator);
    TN_TRY(make_io_arena(session, err));
    TN_TRY(make_pool(session, err));
    TN_TRY(declare_values(session, err));
    TN_TRY(collect_tables(session, err));
    TN_TRY(tn_session_fill_meta(session, err));
    return make_first_form(session, err);
}

tn_status tn_session_create(tn_environment *environment, tn_model *model,
                            const tn_session_options *options, tn_session **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_session *session = NULL;
    TN_REQUIRE(environment != NULL && model != NULL && out != NULL, err, TN_INVALID_ARGUMENT,
               "a session needs an environment, a model and a place for itself");
    *out = NULL;
    const uint64_t refusals = tn_tree_refusal_number(environment->allocator);
    session = tn_allocator_calloc(environment->allocator, 1, sizeof *session);
    TN_REQUIRE_GOTO(session != NULL, cleanup, err, TN_OUT_OF_MEMORY, "a session needs %zu bytes",
                    sizeof *session);
    tn_ref_count_init(&session->refs, 1);
    session->environment = tn_environment_retain(environment);
    session->model = tn_model_retain(model);
    (void)pthread_mutex_init(&session->mutex, NULL);
    (void)pthread_cond_init(&session->context_returned, NULL);
    TN_TRY_GOTO(tn_options_copy(&session->options, sizeof session->options, options, err), cleanup);
    if (session->options.retention_window == 0) session->options.retention_window = 16;
    if (session->options.execution_arena != NULL) session->options.max_concurrent_runs = 1;
    TN_TRY_GOTO(check_options(&session->options, err), cleanup);
    TN_TRY_GOTO(fill_session(session, err), cleanup);
    *out = session;
    session = NULL;

cleanup:
    tn_session_release(session);
    return tn_tree_explain(environment->allocator, refusals, status, err);
}

tn_session *tn_session_retain(tn_session *session) {
    if (session == NULL || !tn_ref_count_retain(&session->refs)) return NULL;
    return session;
}

/* Contexts of the pool: taken out of it under the lock, freed without it. */
static void free_contexts(tn_session *session) {
    (void)pthread_mutex_lock(&session->mutex);
    tn_context *context = session->all_contexts;
    session->all_contexts = NULL;
    session->idle_contexts = NULL;
    session->context_count = 0;
    (void)pthread_mutex_unlock(&session->mutex);
    while (context != NULL) {
        tn_context *next = context->next_all;
        tn_context_free(context);
        context = next;
    }
}

/* Everything but what is read without asking whether the session is closed: no run is going on any
 * more, but others may still look at figures. Idempotent. */
static void empty_session(tn_session *session) {
    free_contexts(session);
    (void)pthread_mutex_lock(&session->mutex);
    tn_session_drop_plans(session, 0);
    tn_session_drop_forms(session);
    tn_thread_pool *pool = session->own_pool;
    tn_shared_model *shared = session->shared;
    session->own_pool = NULL;
    session->pool = NULL;
    session->shared = NULL;
    (void)pthread_mutex_unlock(&session->mutex);
    tn_weights_deinit(&session->folded);
    if (session->io_arena != NULL && session->options.io_arena == NULL) {
        tn_io_arena_close(session->io_arena);
    }
    tn_thread_pool_destroy(pool);
    tn_environment_unshare_model(session->environment, shared);
}

void tn_session_release(tn_session *session) {
    bool was_last = false;
    if (session == NULL) return;
    if (!tn_ref_count_release(&session->refs, &was_last) || !was_last) return;
    empty_session(session);
    tn_io_arena_release(session->io_arena);
    tn_bump_deinit(&session->names);
    tn_allocator_release(session->plan_allocator);
    tn_allocator_release(session->io_allocator);
    tn_allocator_release(session->execution_allocator);
    tn_allocator_release(session->weights_allocator);
    tn_allocator_release(session->allocator);
    tn_model_release(session->model);
    (void)pthread_cond_destroy(&session->context_returned);
    (void)pthread_mutex_destroy(&session->mutex);
    tn_environment *environment = session->environment;
    tn_allocator_free(environment->allocator, session);
    tn_environment_release(environment);
}

/* Waits for runs that have begun, then gives everything back. */
void tn_session_close(tn_session *session) {
    if (session == NULL) return;
    (void)pthread_mutex_lock(&session->mutex);
    const bool was_closed = session->is_closed;
    session->is_closed = true;
    (void)pthread_cond_broadcast(&session->context_returned);
    while (session->busy_count > 0) {
        (void)pthread_cond_wait(&session->context_returned, &session->mutex);
    }
    (void)pthread_mutex_unlock(&session->mutex);
    if (!was_closed) empty_session(session);
}

tn_status tn_session_check_open(tn_session *session, tn_error *err) {
    (void)pthread_mutex_lock(&session->mutex);
    const bool is_closed = session->is_closed;
    (void)pthread_mutex_unlock(&session->mutex);
    TN_REQUIRE(!is_closed, err, TN_CLOSED, "the session is closed");
    return TN_OK;
}

static struct timespec deadline_after(uint64_t wait_ns) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t total_ns = (uint64_t)now.tv_nsec + wait_ns % 1000000000u;
    now.tv_sec += (time_t)(wait_ns / 1000000000u + total_ns / 1000000000u);
    now.tv_nsec = (long)(total_ns % 1000000000u);
    return now;
}

/* Waits until fewer than the allowed runs are going on. Mutex held. */
static tn_status wait_for_turn(tn_session *session, tn_error *err) {
    const uint32_t most = session->options.max_concurrent_runs;
    const uint64_t wait_ns = session->options.wait_for_memory_ns;
    if (most == 0) return TN_OK;
    const struct timespec deadline = deadline_after(wait_ns);
    while (session->busy_count >= most && !session->is_closed) {
        TN_REQUIRE(wait_ns > 0, err, TN_BUSY, "%u runs are going on, no more are allowed at once",
                   session->busy_count);
        const int waited =
            pthread_cond_timedwait(&session->context_returned, &session->mutex, &deadline);
        TN_REQUIRE(waited != ETIMEDOUT || session->busy_count < most, err, TN_TIMED_OUT,
                   "waited %llu ms for one of %u runs to end",
                   (unsigned long long)(wait_ns / 1000000u), session->busy_count);
    }
    return TN_OK;
}

static tn_status take_locked(tn_session *session, tn_context **out, tn_error *err) {
    TN_TRY(wait_for_turn(session, err));
    TN_REQUIRE(!session->is_closed, err, TN_CLOSED, "the session is closed");
    tn_context *context = session->idle_contexts;
    if (context != NULL) {
        session->idle_contexts = context->next_idle;
    } else {
        TN_TRY(tn_context_make(session, false, &context, err));
        context->next_all = session->all_contexts;
        session->all_contexts = context;
        session->context_count++;
    }
    session->busy_count++;
    *out = context;
    return TN_OK;
}

tn_status tn_session_take_context(tn_session *session, tn_context **out, tn_error *err) {
    (void)pthread_mutex_lock(&session->mutex);
    const tn_status status = take_locked(session, out, err);
    (void)pthread_mutex_unlock(&session->mutex);
    return status;
}

void tn_session_return_context(tn_session *session, tn_context *context) {
    (void)pthread_mutex_lock(&session->mutex);
    context->next_idle = session->idle_contexts;
    session->idle_contexts = context;
    session->busy_count--;
    const bool somebody_waits = session->options.max_concurrent_runs > 0 || session->is_closed;
    if (somebody_waits) (void)pthread_cond_broadcast(&session->context_returned);
    (void)pthread_mutex_unlock(&session->mutex);
}

size_t tn_session_find_input(const tn_session *session, const char *name) {
    for (size_t i = 0; i < session->input_count; i++) {
        if (strcmp(session->inputs[i].name, name) == 0) return i;
    }
    return SIZE_MAX;
}

size_t tn_session_find_output(const tn_session *session, const char *name) {
    for (size_t i = 0; i < session->output_count; i++) {
        if (strcmp(session->outputs[i].name, name) == 0) return i;
    }
    return SIZE_MAX;
}
