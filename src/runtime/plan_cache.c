/* Structural forms and sized plans of a session.
 *
 * A signature is what a plan depends on: type and shape of every fed input, and the contents of
 * small integer inputs when those decide shapes. A context compares its own last signature first,
 * so a repeated one takes no lock; the rest is a short list in order of use, bounded. */
#include <string.h>

#include "base/checked_size.h"
#include "runtime/session_state.h"
#include "kernels/registry.h"
#include "plan/passes.h"

#define FOLD_LIMIT_BYTES ((size_t)64 * 1024 * 1024)
#define CONTENT_LIMIT_ELEMS 64
#define MAX_FORMS 8

static tn_status get_packed(void *ctx, const tn_ir *ir, const tn_ir_node *node,
                            const tn_pack_context *pack, const void **out_data) {
    tn_session *session = ctx;
    const uint32_t value = node->inputs[pack->variant->pack_input];
    const bool is_inner = ir->values[value].is_inner_constant || ir->values[value].tensor == NULL;
    tn_weights *weights = is_inner ? &session->folded : &session->shared->packed;
    TN_TRY(tn_weights_get_packed(weights, pack, out_data));
    /* a weight that only this node reads is now needed in its packed form alone: counted once */
    if (!is_inner && ir->values[value].use_count == 1) {
        tn_model_drop_tensor(session->model, ir->values[value].tensor);
    }
    return TN_OK;
}

static tn_status get_aligned(void *ctx, const void *data, size_t size_bytes, bool is_inner,
                             const void **out_data, tn_error *err) {
    tn_session *session = ctx;
    tn_weights *weights = is_inner ? &session->folded : &session->shared->packed;
    return tn_weights_get_aligned(weights, data, size_bytes, out_data, err);
}

tn_plan_options tn_session_plan_options(tn_session *session) {
    return (tn_plan_options){.allocator = session->plan_allocator,
                             .pack = {session, get_packed, get_aligned},
                             .disable_in_place = session->options.disable_in_place,
                             .disable_reuse = session->options.disable_reuse,
                             .exact_only = session->options.exact_only};
}

static bool contents_count(const tn_tensor *tensor) {
    const tn_dtype dtype = tn_tensor_dtype(tensor);
    const unsigned bits = tn_dtype_bits(dtype);
    const bool is_integer =
        dtype == TN_DTYPE_I64 || dtype == TN_DTYPE_I32 || dtype == TN_DTYPE_BOOL;
    return is_integer && tn_tensor_borrow_strides(tensor) == NULL &&
           tn_tensor_size_bytes(tensor) <= (size_t)CONTENT_LIMIT_ELEMS * (bits / 8);
}

static uint32_t add_contents(const tn_tensor *tensor, int64_t *out) {
    const size_t item_bytes = tn_dtype_bits(tn_tensor_dtype(tensor)) / 8;
    const size_t count = tn_tensor_size_bytes(tensor) / item_bytes;
    for (size_t i = 0; i < count; i++) {
        out[i] = 0;
        memcpy(&out[i], (const char *)tn_tensor_borrow_data(tensor) + i * item_bytes, item_bytes);
    }
    return (uint32_t)count;
}

/* Numbers that tell plans apart; the form goes first, since other forms are other plans. */
static uint32_t make_signature(const tn_session *session, const tn_session_form *form,
                               const tn_tensor *const *feeds, int64_t *out) {
    uint32_t count = 0;
    out[count++] = (int64_t)(uintptr_t)form;
    for (size_t i = 0; i < session->input_count; i++) {
        if (feeds[i] == NULL) continue;
        const tn_shape *shape = tn_tensor_borrow_shape(feeds[i]);
        out[count++] = (int64_t)tn_tensor_dtype(feeds[i]) << 32 | shape->rank;
        for (int32_t d = 0; d < shape->rank; d++) out[count++] = shape->dims[d];
        if (form->uses_contents && contents_count(feeds[i])) {
            count += add_contents(feeds[i], out + count);
        }
    }
    return count;
}

static bool is_plan_of(const tn_cached_plan *plan, const int64_t *signature, uint32_t count) {
    return plan->signature_count == count &&
           memcmp(plan->signature, signature, count * sizeof *signature) == 0;
}

static void destroy_cached(tn_session *session, tn_cached_plan *cached) {
    tn_plan_destroy(cached->plan);
    tn_allocator_free(session->plan_allocator, cached);
}

/* Unlinks the least recently used plans that no context uses until `keep_count` are left. */
void tn_session_drop_plans(tn_session *session, uint32_t keep_count) {
    uint32_t seen = 0;
    tn_cached_plan **link = &session->plans;
    while (*link != NULL) {
        tn_cached_plan *cached = *link;
        seen++;
        if (seen <= keep_count || cached->use_count > 0) {
            link = &cached->next;
            continue;
        }
        *link = cached->next;
        session->plan_count--;
        if (session->last_plan == cached) session->last_plan = NULL;
        destroy_cached(session, cached);
    }
}

void tn_session_drop_forms(tn_session *session) {
    while (session->forms != NULL) {
        tn_session_form *form = session->forms;
        session->forms = form->next;
        tn_ir_destroy(form->ir);
        tn_allocator_free(session->plan_allocator, form);
    }
}

static tn_status run_passes(tn_session *session, tn_ir *ir, tn_error *err) {
    TN_TRY(tn_ir_fold(ir, FOLD_LIMIT_BYTES, err));
    const tn_pass_options passes = {.disable_fusion = session->options.disable_fusion,
                                    .exact_only = session->options.exact_only};
    return tn_ir_run_passes(ir, &passes, err);
}

static tn_status create_form(tn_session *session, const bool *fed, tn_session_form **out,
                             tn_error *err) {
    tn_status status = TN_OK;
    const size_t record_bytes = sizeof **out + session->input_count * sizeof *fed;
    tn_session_form *form = tn_allocator_calloc(session->plan_allocator, 1, record_bytes);
    TN_REQUIRE(form != NULL, err, TN_OUT_OF_MEMORY, "a plan needs %zu bytes", record_bytes);
    form->fed_inputs = (bool *)(form + 1);
    memcpy(form->fed_inputs, fed, session->input_count * sizeof *fed);
    const tn_ir_options options = {.allocator = session->plan_allocator,
                                   .weights_allocator = session->weights_allocator,
                                   .tables = session->tables,
                                   .table_count = session->table_count,
                                   .cpu = session->environment->cpu,
                                   .worker_count = session->worker_count,
                                   .fed_inputs = form->fed_inputs};
    TN_TRY_GOTO(tn_ir_create(session->model, &options, &form->ir, err), cleanup);
    TN_TRY_GOTO(run_passes(session, form->ir, err), cleanup);
    form->next = session->forms;
    session->forms = form;
    *out = form;
    form = NULL;

cleanup:
    if (form != NULL) tn_ir_destroy(form->ir);
    tn_allocator_free(session->plan_allocator, form);
    return status;
}

tn_status tn_session_form_for(tn_session *session, const bool *fed, tn_session_form **out,
                              tn_error *err) {
    uint32_t count = 0;
    for (tn_session_form *form = session->forms; form != NULL; form = form->next) {
        count++;
        if (memcmp(form->fed_inputs, fed, session->input_count * sizeof *fed) == 0) {
            *out = form;
            return TN_OK;
        }
    }
    TN_REQUIRE(count < MAX_FORMS, err, TN_UNSUPPORTED,
               "runs feed more than %d different sets of inputs that have defaults", MAX_FORMS);
    return create_form(session, fed, out, err);
}

tn_status tn_session_make_plan(tn_session *session, const tn_session_form *form,
                               const tn_plan_input *inputs, tn_allocator *allocator, tn_plan **out,
                               tn_error *err) {
    tn_plan_options options = tn_session_plan_options(session);
    options.allocator = allocator;
    return tn_plan_create(form->ir, inputs, &options, out, err);
}

static void describe_inputs(const tn_session *session, const tn_tensor *const *feeds,
                            bool with_contents, tn_plan_input *inputs) {
    for (size_t i = 0; i < session->input_count; i++) {
        memset(&inputs[i], 0, sizeof inputs[i]);
        if (feeds[i] == NULL) continue;
        inputs[i].dtype = tn_tensor_dtype(feeds[i]);
        inputs[i].shape = *tn_tensor_borrow_shape(feeds[i]);
        if (with_contents && contents_count(feeds[i])) {
            inputs[i].data = tn_tensor_borrow_data(feeds[i]);
        }
    }
}

/* Decides once per form whether contents of small integer inputs belong to the signature: they do
 * when knowing them leaves fewer values without a size. */
static tn_status make_probed(tn_session *session, tn_session_form *form,
                             const tn_tensor *const *feeds, tn_plan_input *inputs, tn_plan **out,
                             tn_error *err) {
    tn_allocator *allocator = session->plan_allocator;
    describe_inputs(session, feeds, form->uses_contents, inputs);
    TN_TRY(tn_session_make_plan(session, form, inputs, allocator, out, err));
    if (form->is_probed) return TN_OK;
    form->is_probed = true;
    if ((*out)->is_complete) return TN_OK;
    tn_plan *informed = NULL;
    describe_inputs(session, feeds, true, inputs);
    if (tn_session_make_plan(session, form, inputs, allocator, &informed, NULL) != TN_OK) {
        return TN_OK;
    }
    if (informed->dynamic_value_count >= (*out)->dynamic_value_count) {
        tn_plan_destroy(informed);
        return TN_OK;
    }
    form->uses_contents = true;
    tn_plan_destroy(*out);
    *out = informed;
    return TN_OK;
}

static tn_status add_plan(tn_session *session, tn_session_form *form, const tn_tensor *const *feeds,
                          int64_t *signature, tn_cached_plan **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_plan *plan = NULL;
    tn_cached_plan *cached = NULL;
    tn_allocator *allocator = session->plan_allocator;
    tn_plan_input *inputs =
        tn_allocator_calloc(allocator, session->input_count + 1, sizeof *inputs);
    TN_REQUIRE_GOTO(inputs != NULL, cleanup, err, TN_OUT_OF_MEMORY, "a plan needs memory");
    TN_TRY_GOTO(make_probed(session, form, feeds, inputs, &plan, err), cleanup);
    const uint32_t count = make_signature(session, form, feeds, signature);
    cached = tn_allocator_calloc(allocator, 1, sizeof *cached + count * sizeof *signature);
    TN_REQUIRE_GOTO(cached != NULL, cleanup, err, TN_OUT_OF_MEMORY, "a plan needs memory");
    cached->signature = (int64_t *)(cached + 1);
    memcpy(cached->signature, signature, count * sizeof *signature);
    cached->signature_count = count;
    cached->form = form;
    cached->plan = plan;
    plan = NULL;
    cached->size_bytes = cached->plan->bump.used_bytes + sizeof *cached;
    cached->next = session->plans;
    session->plans = cached;
    session->plan_count++;
    *out = cached;
    if (session->plan_count > TN_MAX_CACHED_PLANS) {
        cached->use_count++;
        tn_session_drop_plans(session, TN_MAX_CACHED_PLANS);
        cached->use_count--;
    }

cleanup:
    tn_plan_destroy(plan);
    tn_allocator_free(allocator, inputs);
    return status;
}

static tn_cached_plan *find_and_move_first(tn_session *session, const int64_t *signature,
                                           uint32_t count) {
    for (tn_cached_plan **link = &session->plans; *link != NULL; link = &(*link)->next) {
        tn_cached_plan *cached = *link;
        if (!is_plan_of(cached, signature, count)) continue;
        *link = cached->next;
        cached->next = session->plans;
        session->plans = cached;
        return cached;
    }
    return NULL;
}

static tn_status form_of_feeds(tn_session *session, const tn_tensor *const *feeds,
                               tn_session_form **out, tn_error *err) {
    if (!session->has_defaults && session->forms != NULL) {
        *out = session->forms;
        return TN_OK;
    }
    bool *fed = tn_allocator_calloc(session->plan_allocator, session->input_count + 1, sizeof *fed);
    TN_REQUIRE(fed != NULL, err, TN_OUT_OF_MEMORY, "a plan needs memory");
    for (size_t i = 0; i < session->input_count; i++) {
        fed[i] = session->inputs[i].has_default && feeds[i] != NULL;
    }
    const tn_status status = tn_session_form_for(session, fed, out, err);
    tn_allocator_free(session->plan_allocator, fed);
    return status;
}

static tn_status find_locked(tn_session *session, const tn_tensor *const *feeds, int64_t *signature,
                             tn_cached_plan *hint, tn_cached_plan **out, tn_error *err) {
    tn_session_form *form = NULL;
    TN_TRY(form_of_feeds(session, feeds, &form, err));
    const uint32_t count = make_signature(session, form, feeds, signature);
    tn_cached_plan *cached = find_and_move_first(session, signature, count);
    if (cached == NULL) {
        atomic_fetch_add_explicit(&session->counters.plan_misses, 1, memory_order_relaxed);
        TN_TRY(add_plan(session, form, feeds, signature, &cached, err));
    } else {
        atomic_fetch_add_explicit(&session->counters.plan_hits, 1, memory_order_relaxed);
    }
    session->last_plan = cached;
    if (cached != hint) cached->use_count++;
    *out = cached;
    return TN_OK;
}

tn_status tn_session_find_plan(tn_session *session, const tn_tensor *const *feeds,
                               int64_t *signature, tn_cached_plan *hint, tn_cached_plan **out,
                               tn_error *err) {
    if (hint != NULL && !session->has_defaults) {
        const uint32_t count = make_signature(session, hint->form, feeds, signature);
        if (is_plan_of(hint, signature, count)) {
            *out = hint;
            return TN_OK;
        }
    }
    (void)pthread_mutex_lock(&session->mutex);
    const tn_status status = find_locked(session, feeds, signature, hint, out, err);
    (void)pthread_mutex_unlock(&session->mutex);
    return status;
}

void tn_session_unuse_plan(tn_session *session, tn_cached_plan *plan) {
    (void)pthread_mutex_lock(&session->mutex);
    plan->use_count--;
    (void)pthread_mutex_unlock(&session->mutex);
}
