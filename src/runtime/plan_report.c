/* Plans for people: made for given shapes without running, printed as a table or as CSV.
 *
 * A report copies what it shows, so it outlives its session. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/tree.h"
#include "runtime/context_state.h"

struct tn_plan_report {
    tn_bump bump; /* everything below */
    tn_allocator *allocator;
    tn_plan_summary summary;
    tn_plan_value *values;
    tn_plan_step *steps;
};

static const char *keep(tn_bump *bump, const char *data, size_t size_bytes) {
    char *copy = tn_bump_get(bump, size_bytes + 1);
    if (copy != NULL && size_bytes > 0) memcpy(copy, data, size_bytes);
    return copy;
}

static tn_plan_arena arena_of(const tn_plan *plan, uint32_t value) {
    const tn_plan_slot *slot = &plan->slots[value];
    if (slot->root != value) return TN_PLAN_ALIAS;
    switch (slot->place) {
        case TN_PLACE_CONSTANT:
            return TN_PLAN_WEIGHT;
        case TN_PLACE_INPUT:
            return TN_PLAN_INPUT;
        case TN_PLACE_IO:
            return TN_PLAN_IO;
        case TN_PLACE_DYNAMIC:
            return TN_PLAN_DYNAMIC;
        case TN_PLACE_NONE:
        case TN_PLACE_SLAB:
            break;
    }
    return TN_PLAN_EXECUTION;
}

static bool is_shown(const tn_plan *plan, uint32_t value) {
    const tn_plan_slot *slot = &plan->slots[value];
    const tn_plan_slot *root = &plan->slots[slot->root];
    if (root->place == TN_PLACE_NONE || root->birth == UINT32_MAX) return false;
    return !(slot->place == TN_PLACE_CONSTANT && value >= plan->ir->value_count);
}

static bool copy_value(tn_plan_report *report, const tn_plan *plan, uint32_t v) {
    const tn_plan_slot *slot = &plan->slots[v];
    const tn_plan_slot *root = &plan->slots[slot->root];
    const tn_ir *ir = plan->ir;
    tn_plan_value *value = &report->values[report->summary.value_count++];
    const tn_text name = v < ir->value_count ? ir->values[v].name : (tn_text){"copy", 4};
    *value =
        (tn_plan_value){.struct_size = sizeof *value,
                        .name = keep(&report->bump, name.data, name.size_bytes),
                        .dtype = slot->fact.dtype,
                        .shape = slot->fact.shape,
                        .layout_block = slot->fact.layout.block,
                        .birth = root->birth,
                        .death = root->death,
                        .offset_bytes = slot->root == v ? slot->slab_offset : slot->root_offset,
                        .arena = arena_of(plan, v)};
    size_t size_bytes = slot->size_bytes;
    if (tn_fact_is_sized(&slot->fact)) (void)tn_fact_size_bytes(&slot->fact, &size_bytes, NULL);
    value->size_bytes = size_bytes;
    if (slot->root != v && slot->root < ir->value_count) {
        const tn_text root_name = ir->values[slot->root].name;
        value->alias_of = keep(&report->bump, root_name.data, root_name.size_bytes);
    }
    return value->name != NULL;
}

static bool copy_workspace(tn_plan_report *report, const tn_plan *plan, uint32_t s) {
    const tn_step *step = &plan->steps[s];
    if (step->scratch_bytes == 0) return true;
    tn_plan_value *value = &report->values[report->summary.value_count++];
    const char *node = step->node == TN_NO_NODE ? "?" : plan->ir->nodes[step->node].name_text;
    char text[192];
    (void)snprintf(text, sizeof text, "%.150s (workspace)", node);
    *value = (tn_plan_value){.struct_size = sizeof *value,
                             .name = keep(&report->bump, text, strlen(text)),
                             .dtype = TN_DTYPE_U8,
                             .shape = {1, {(int64_t)step->scratch_bytes}},
                             .size_bytes = step->scratch_bytes,
                             .birth = s,
                             .death = s,
                             .offset_bytes = step->shared_scratch_offset,
                             .arena = TN_PLAN_EXECUTION,
                             .is_workspace = true};
    return value->name != NULL;
}

static const char *step_kind_name(tn_step_kind kind) {
    static const char *const names[] = {[TN_STEP_KERNEL] = "kernel",
                                        [TN_STEP_COPY] = "copy",
                                        [TN_STEP_ASSIGN] = "assign",
                                        [TN_STEP_BRANCH] = "branch",
                                        [TN_STEP_JUMP] = "jump"};
    return names[kind];
}

static bool copy_step(tn_plan_report *report, const tn_plan *plan, uint32_t s) {
    const tn_step *step = &plan->steps[s];
    const tn_ir_node *node = step->node == TN_NO_NODE ? NULL : &plan->ir->nodes[step->node];
    const char *name = node == NULL ? step_kind_name(step->kind) : node->name_text;
    tn_plan_step *out = &report->steps[report->summary.step_count++];
    *out = (tn_plan_step){.struct_size = sizeof *out,
                          .name = keep(&report->bump, name, strlen(name)),
                          .op = node == NULL || step->kind != TN_STEP_KERNEL
                                    ? step_kind_name(step->kind)
                                    : node->op->name,
                          .variant = step->variant_name == NULL ? "" : step->variant_name,
                          .workspace_bytes = step->scratch_bytes,
                          .cost_ns = step->cost_ns,
                          .rewrite_class = (int)step->rewrite_class};
    return out->name != NULL;
}

static tn_status fill_report(tn_plan_report *report, tn_session *session, const tn_plan *plan,
                             tn_error *err) {
    const size_t most = (size_t)plan->slot_count + plan->step_count + 1;
    report->values = tn_bump_array(&report->bump, most, sizeof *report->values);
    report->steps = tn_bump_array(&report->bump, plan->step_count + 1u, sizeof *report->steps);
    bool is_whole = report->values != NULL && report->steps != NULL;
    for (uint32_t v = 0; is_whole && v < plan->slot_count; v++) {
        if (is_shown(plan, v)) is_whole = copy_value(report, plan, v);
    }
    for (uint32_t s = 0; is_whole && s < plan->step_count; s++) {
        is_whole = copy_workspace(report, plan, s) && copy_step(report, plan, s);
    }
    TN_REQUIRE(is_whole, err, TN_OUT_OF_MEMORY, "the plan's report needs memory");
    tn_session_stats stats = {.struct_size = sizeof stats};
    tn_session_get_stats(session, &stats);
    tn_plan_summary *summary = &report->summary;
    summary->struct_size = sizeof *summary;
    summary->execution_bytes = plan->slab_bytes;
    summary->lower_bound_bytes = plan->lower_bound_bytes;
    summary->io_bytes = plan->io_bytes;
    summary->weights_bytes = stats.weights_bytes + stats.shared_bytes;
    summary->metadata_bytes = stats.plan_metadata_bytes;
    summary->workspace_peak_bytes = plan->workspace_peak_bytes;
    summary->is_complete = plan->is_complete;
    summary->copy_count = plan->copy_count;
    summary->predicted_peak_bytes = summary->execution_bytes + summary->io_bytes +
                                    summary->weights_bytes + summary->metadata_bytes;
    return TN_OK;
}

static bool shape_is_known(const tn_shape *shape) {
    for (int32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] < 0) return false;
    }
    return shape->rank >= 0;
}

/* Declared shapes, replaced by the caller's where given. */
static tn_status fill_inputs(const tn_session *session, const tn_plan_shape *shapes, size_t count,
                             tn_plan_input *inputs, bool *fed, tn_error *err) {
    for (size_t i = 0; i < session->input_count; i++) {
        const tn_value_info *info = &session->inputs[i].info;
        inputs[i].dtype = info->dtype;
        inputs[i].shape.rank = info->rank;
        for (int32_t d = 0; d < info->rank; d++) inputs[i].shape.dims[d] = info->dims[d];
    }
    for (size_t i = 0; i < count; i++) {
        const size_t index = tn_session_find_input(session, shapes[i].input_name);
        TN_REQUIRE(index != SIZE_MAX, err, TN_INVALID_ARGUMENT, "the model has no input '%s'",
                   shapes[i].input_name);
        inputs[index].shape = shapes[i].shape;
        inputs[index].data = shapes[i].data;
        fed[index] = session->inputs[index].has_default;
    }
    for (size_t i = 0; i < session->input_count; i++) {
        char text[160];
        if (session->inputs[i].has_default && !fed[i]) continue;
        TN_REQUIRE(shape_is_known(&inputs[i].shape), err, TN_INVALID_ARGUMENT,
                   "input '%s' has shape %s: say what it is", session->inputs[i].name,
                   tn_shape_text(&inputs[i].shape, text, sizeof text));
    }
    return TN_OK;
}

static tn_status plan_locked(tn_session *session, const tn_plan_input *inputs, const bool *fed,
                             tn_plan **out, tn_error *err) {
    tn_session_form *form = NULL;
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&session->mutex);
    status = session->is_closed ? tn_error_set(err, TN_CLOSED, "the session is closed")
                                : tn_session_form_for(session, fed, &form, err);
    if (status == TN_OK) {
        status = tn_session_make_plan(session, form, inputs, session->plan_allocator, out, err);
    }
    (void)pthread_mutex_unlock(&session->mutex);
    return status;
}

tn_status tn_session_plan(tn_session *session, const tn_plan_shape *shapes, size_t shape_count,
                          tn_plan_report **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_plan *plan = NULL;
    tn_plan_report *report = NULL;
    TN_REQUIRE(session != NULL && out != NULL, err, TN_INVALID_ARGUMENT,
               "a plan needs a session and a place for itself");
    *out = NULL;
    tn_allocator *allocator = session->environment->allocator;
    const uint64_t refusals = tn_tree_refusal_number(allocator);
    tn_bump scratch = {.allocator = allocator};
    tn_plan_input *inputs = tn_bump_array(&scratch, session->input_count + 1, sizeof *inputs);
    bool *fed = tn_bump_array(&scratch, session->input_count + 1, sizeof *fed);
    report = tn_allocator_calloc(allocator, 1, sizeof *report);
    TN_REQUIRE_GOTO(inputs != NULL && fed != NULL && report != NULL, cleanup, err, TN_OUT_OF_MEMORY,
                    "the plan's report needs memory");
    report->allocator = tn_allocator_retain(allocator);
    report->bump.allocator = allocator;
    TN_TRY_GOTO(fill_inputs(session, shapes, shape_count, inputs, fed, err), cleanup);
    TN_TRY_GOTO(plan_locked(session, inputs, fed, &plan, err), cleanup);
    TN_TRY_GOTO(fill_report(report, session, plan, err), cleanup);
    *out = report;
    report = NULL;

cleanup:
    tn_plan_destroy(plan);
    tn_bump_deinit(&scratch);
    tn_plan_report_destroy(report);
    return tn_tree_explain(allocator, refusals, status, err);
}

void tn_plan_report_destroy(tn_plan_report *report) {
    if (report == NULL) return;
    tn_allocator *allocator = report->allocator;
    tn_bump_deinit(&report->bump);
    tn_allocator_free(allocator, report);
    tn_allocator_release(allocator);
}

void tn_plan_report_summary(const tn_plan_report *report, tn_plan_summary *out) {
    const size_t size_bytes =
        out->struct_size == 0 ? sizeof *out : tn_size_min(out->struct_size, sizeof *out);
    memcpy(out, &report->summary, size_bytes);
    out->struct_size = size_bytes;
}

tn_status tn_plan_report_value(const tn_plan_report *report, size_t index, tn_plan_value *out,
                               tn_error *err) {
    TN_REQUIRE(index < report->summary.value_count, err, TN_OUT_OF_RANGE, "value %zu of %zu", index,
               report->summary.value_count);
    *out = report->values[index];
    return TN_OK;
}

tn_status tn_plan_report_step(const tn_plan_report *report, size_t index, tn_plan_step *out,
                              tn_error *err) {
    TN_REQUIRE(index < report->summary.step_count, err, TN_OUT_OF_RANGE, "step %zu of %zu", index,
               report->summary.step_count);
    *out = report->steps[index];
    return TN_OK;
}

/* Text that knows how long it would have been. */
typedef struct text_writer {
    char *text;
    size_t capacity;
    size_t used;
} text_writer;

static void put(text_writer *writer, const char *format, ...) TN_PRINTF(2, 3);

static void put(text_writer *writer, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const size_t room = writer->used < writer->capacity ? writer->capacity - writer->used : 0;
    const int wrote = vsnprintf(room > 0 ? writer->text + writer->used : NULL, room, format, args);
    va_end(args);
    if (wrote > 0) writer->used += (size_t)wrote;
}

static const char *arena_name(const tn_plan_value *value) {
    static const char *const names[] = {
        [TN_PLAN_EXECUTION] = "execution", [TN_PLAN_IO] = "io",
        [TN_PLAN_INPUT] = "input",         [TN_PLAN_WEIGHT] = "weight",
        [TN_PLAN_ALIAS] = "alias",         [TN_PLAN_DYNAMIC] = "dynamic"};
    return value->is_workspace ? "workspace" : names[value->arena];
}

static void put_summary(text_writer *writer, const tn_plan_summary *s) {
    const double waste =
        s->lower_bound_bytes == 0
            ? 0.0
            : 100.0 * ((double)s->execution_bytes / (double)s->lower_bound_bytes - 1);
    put(writer, "predicted peak  %12llu bytes%s\n", (unsigned long long)s->predicted_peak_bytes,
        s->is_complete ? "" : "  (partial: some sizes depend on data)");
    put(writer, "  weights       %12llu\n", (unsigned long long)s->weights_bytes);
    put(writer, "  execution     %12llu  lower bound %llu, waste %.1f %%, workspace at most %llu\n",
        (unsigned long long)s->execution_bytes, (unsigned long long)s->lower_bound_bytes, waste,
        (unsigned long long)s->workspace_peak_bytes);
    put(writer, "  io            %12llu  planned copies %zu\n", (unsigned long long)s->io_bytes,
        s->copy_count);
    put(writer, "  plan          %12llu\n\n", (unsigned long long)s->metadata_bytes);
}

static void put_values(text_writer *writer, const tn_plan_report *report) {
    put(writer, "%-9s %6s %6s %12s %12s  %-8s %-24s %s\n", "arena", "birth", "death", "offset",
        "bytes", "type", "shape", "value");
    for (size_t i = 0; i < report->summary.value_count; i++) {
        const tn_plan_value *v = &report->values[i];
        char shape[160];
        if (v->arena == TN_PLAN_WEIGHT) continue;
        put(writer, "%-9s %6u %6u %12llu %12llu  %-8s %-24s %s", arena_name(v), v->birth, v->death,
            (unsigned long long)v->offset_bytes, (unsigned long long)v->size_bytes,
            v->is_workspace ? "" : tn_dtype_name(v->dtype),
            v->is_workspace ? "" : tn_shape_text(&v->shape, shape, sizeof shape), v->name);
        if (v->layout_block != 0) put(writer, " (blocked by %u)", v->layout_block);
        if (v->alias_of != NULL) put(writer, " in %s", v->alias_of);
        put(writer, "\n");
    }
}

static void put_steps(text_writer *writer, const tn_plan_report *report) {
    static const char *const classes[] = {"exact", "reassociated", "approximate"};
    put(writer, "\n%5s  %-20s %-28s %-13s %12s  %s\n", "step", "operator", "kernel", "rewrite",
        "workspace", "node");
    for (size_t i = 0; i < report->summary.step_count; i++) {
        const tn_plan_step *s = &report->steps[i];
        put(writer, "%5zu  %-20s %-28s %-13s %12llu  %s\n", i, s->op, s->variant,
            classes[s->rewrite_class], (unsigned long long)s->workspace_bytes, s->name);
    }
}

size_t tn_plan_report_text(const tn_plan_report *report, char *text, size_t capacity_bytes) {
    text_writer writer = {text, capacity_bytes, 0};
    put_summary(&writer, &report->summary);
    put_values(&writer, report);
    put_steps(&writer, report);
    return writer.used + 1;
}

size_t tn_plan_report_csv(const tn_plan_report *report, char *text, size_t capacity_bytes) {
    text_writer writer = {text, capacity_bytes, 0};
    put(&writer, "id,lower,upper,size,offset\n");
    for (size_t i = 0; i < report->summary.value_count; i++) {
        const tn_plan_value *v = &report->values[i];
        if (v->arena != TN_PLAN_EXECUTION) continue;
        put(&writer, "%zu,%u,%u,%llu,%llu\n", i, v->birth, v->death + 1,
            (unsigned long long)v->size_bytes, (unsigned long long)v->offset_bytes);
    }
    return writer.used + 1;
}

tn_status tn_session_allocator_for_output(const tn_session *session, const char *node_name,
                                          uint32_t slot, tn_plan_arena *out, tn_error *err) {
    tn_session *locked = (tn_session *)(uintptr_t)session; /* a lock is not part of the value */
    tn_status status =
        tn_error_set(err, TN_INVALID_ARGUMENT, "no planned node is named '%s'", node_name);
    (void)pthread_mutex_lock(&locked->mutex);
    const tn_plan *plan = session->last_plan == NULL ? NULL : session->last_plan->plan;
    for (uint32_t s = 0; plan != NULL && s < plan->step_count; s++) {
        const tn_step *step = &plan->steps[s];
        if (step->kind != TN_STEP_KERNEL || slot >= step->out_count) continue;
        if (strcmp(plan->ir->nodes[step->node].name_text, node_name) != 0) continue;
        if (step->out[slot] == TN_NO_VALUE) continue;
        *out = arena_of(plan, plan->slots[step->out[slot]].root);
        status = TN_OK;
        break;
    }
    (void)pthread_mutex_unlock(&locked->mutex);
    return status;
}
