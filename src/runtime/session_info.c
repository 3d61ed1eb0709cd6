/* What a session tells about itself: declared values, metadata, figures, trimming. */
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "kernels/registry.h"
#include "model/graph.h"
#include "runtime/context_state.h"

size_t tn_session_input_count(const tn_session *session) {
    return session->input_count;
}

size_t tn_session_output_count(const tn_session *session) {
    return session->output_count;
}

size_t tn_session_overridable_count(const tn_session *session) {
    size_t count = 0;
    for (size_t i = 0; i < session->input_count; i++) count += session->inputs[i].has_default;
    return count;
}

static void copy_info(const tn_value_info *info, tn_value_info *out) {
    const size_t size_bytes =
        out->struct_size == 0 ? sizeof *out : tn_size_min(out->struct_size, sizeof *out);
    memcpy(out, info, size_bytes);
    out->struct_size = size_bytes;
}

tn_status tn_session_input_info(const tn_session *session, size_t index, tn_value_info *out,
                                tn_error *err) {
    TN_REQUIRE(index < session->input_count, err, TN_OUT_OF_RANGE, "input %zu of %zu", index,
               session->input_count);
    copy_info(&session->inputs[index].info, out);
    return TN_OK;
}

tn_status tn_session_output_info(const tn_session *session, size_t index, tn_value_info *out,
                                 tn_error *err) {
    TN_REQUIRE(index < session->output_count, err, TN_OUT_OF_RANGE, "output %zu of %zu", index,
               session->output_count);
    copy_info(&session->outputs[index].info, out);
    return TN_OK;
}

tn_status tn_session_overridable_info(const tn_session *session, size_t index, tn_value_info *out,
                                      tn_error *err) {
    size_t seen = 0;
    for (size_t i = 0; i < session->input_count; i++) {
        if (!session->inputs[i].has_default || seen++ != index) continue;
        copy_info(&session->inputs[i].info, out);
        return TN_OK;
    }
    return tn_error_set(err, TN_OUT_OF_RANGE, "overridable input %zu of %zu", index, seen);
}

static const char *keep_text(tn_session *session, tn_text text) {
    char *copy = tn_bump_get(&session->names, text.size_bytes + 1);
    if (copy != NULL && text.size_bytes > 0) memcpy(copy, text.data, text.size_bytes);
    return copy;
}

tn_status tn_session_fill_meta(tn_session *session, tn_error *err) {
    const tn_model_info *info = tn_model_get_info(session->model);
    tn_model_meta *meta = &session->meta;
    tn_bump *names = &session->names;
    const char **domains = tn_bump_array(names, info->opset_count + 1, sizeof *domains);
    int64_t *versions = tn_bump_array(names, info->opset_count + 1, sizeof *versions);
    const char **keys = tn_bump_array(names, info->property_count + 1, sizeof *keys);
    const char **values = tn_bump_array(names, info->property_count + 1, sizeof *values);
    bool is_whole = domains != NULL && versions != NULL && keys != NULL && values != NULL;
    for (size_t i = 0; is_whole && i < info->opset_count; i++) {
        domains[i] = keep_text(session, info->opsets[i].domain);
        versions[i] = info->opsets[i].version;
        is_whole = domains[i] != NULL;
    }
    for (size_t i = 0; is_whole && i < info->property_count; i++) {
        keys[i] = keep_text(session, info->properties[i].key);
        values[i] = keep_text(session, info->properties[i].value);
        is_whole = keys[i] != NULL && values[i] != NULL;
    }
    *meta = (tn_model_meta){.struct_size = sizeof *meta,
                            .producer_name = keep_text(session, info->producer_name),
                            .producer_version = keep_text(session, info->producer_version),
                            .graph_name = keep_text(session, tn_model_graph(session->model)->name),
                            .domain = keep_text(session, info->domain),
                            .doc_string = keep_text(session, info->doc_string),
                            .model_version = info->model_version,
                            .ir_version = info->ir_version,
                            .opset_count = info->opset_count,
                            .property_count = info->property_count,
                            .opset_domains = domains,
                            .opset_versions = versions,
                            .property_keys = keys,
                            .property_values = values};
    is_whole = is_whole && meta->producer_name != NULL && meta->producer_version != NULL &&
               meta->graph_name != NULL && meta->domain != NULL && meta->doc_string != NULL;
    TN_REQUIRE(is_whole, err, TN_OUT_OF_MEMORY, "metadata needs memory");
    return TN_OK;
}

void tn_session_meta(const tn_session *session, tn_model_meta *out) {
    const size_t size_bytes =
        out->struct_size == 0 ? sizeof *out : tn_size_min(out->struct_size, sizeof *out);
    memcpy(out, &session->meta, size_bytes);
    out->struct_size = size_bytes;
}

tn_allocator *tn_session_allocator(const tn_session *session) {
    return session->allocator;
}

tn_io_arena *tn_session_io_arena(const tn_session *session) {
    return session->io_arena;
}

static void add_execution(const tn_session *session, tn_session_stats *stats) {
    for (const tn_context *c = session->all_contexts; c != NULL; c = c->next_all) {
        tn_arena_stats arena = {.struct_size = sizeof arena};
        tn_arena_get_stats(c->arena, &arena);
        stats->execution_live_bytes += arena.live_bytes;
        stats->execution_peak_bytes += arena.live_peak_bytes;
        stats->execution_retained_bytes += arena.retained_bytes;
        if (session->options.execution_arena != NULL ||
            session->options.execution_in_io_arena != NULL) {
            return;
        }
    }
}

/* Metadata with only the newest sized plan kept: what a fresh session would charge. */
static uint64_t metadata_of(const tn_session *session, const tn_cached_plan *kept) {
    uint64_t bytes = tn_allocator_charged(session->plan_allocator);
    for (const tn_cached_plan *p = session->plans; p != NULL; p = p->next) {
        if (p != kept) bytes -= tn_size_min(p->size_bytes, bytes);
    }
    return bytes;
}

static void add_io(const tn_session *session, tn_session_stats *stats) {
    tn_arena_stats arena = {.struct_size = sizeof arena};
    if (session->io_arena == NULL) return;
    tn_io_arena_get_stats(session->io_arena, &arena);
    stats->io_live_bytes = arena.live_bytes;
    stats->io_peak_bytes = arena.live_peak_bytes;
    stats->io_leased_bytes = arena.leased_bytes;
    stats->io_retained_bytes = arena.retained_bytes;
}

static void add_plan(const tn_session *session, tn_session_stats *stats) {
    const tn_cached_plan *last = session->last_plan;
    stats->plan_metadata_bytes = metadata_of(session, last);
    if (last == NULL) return;
    stats->workspace_peak_bytes = last->plan->workspace_peak_bytes;
    stats->execution_lower_bound_bytes = last->plan->lower_bound_bytes;
    stats->prediction_complete = last->plan->is_complete;
    const uint64_t fixed = stats->weights_bytes + stats->shared_bytes + stats->plan_metadata_bytes;
    stats->predicted_peak_bytes = fixed + last->plan->slab_bytes + last->plan->io_bytes;
    stats->measured_peak_bytes = fixed + stats->execution_peak_bytes + stats->io_peak_bytes;
}

void tn_session_get_stats(const tn_session *session, tn_session_stats *out) {
    tn_session *locked = (tn_session *)(uintptr_t)session; /* a lock is not part of the value */
    const tn_session_counters *counters = &session->counters;
    tn_session_stats stats = {.struct_size = sizeof stats};
    stats.run_count = atomic_load_explicit(&counters->run_count, memory_order_relaxed);
    stats.failed_run_count =
        atomic_load_explicit(&counters->failed_run_count, memory_order_relaxed);
    stats.payload_copies = atomic_load_explicit(&counters->payload_copies, memory_order_relaxed);
    stats.copied_bytes = atomic_load_explicit(&counters->copied_bytes, memory_order_relaxed);
    stats.plan_hits = atomic_load_explicit(&counters->plan_hits, memory_order_relaxed);
    stats.plan_misses = atomic_load_explicit(&counters->plan_misses, memory_order_relaxed);
    (void)pthread_mutex_lock(&locked->mutex);
    stats.plan_count = session->plan_count;
    stats.context_count = session->context_count;
    stats.weights_bytes = tn_allocator_charged(session->weights_allocator);
    tn_allocator_stats shared = {.struct_size = sizeof shared};
    tn_allocator_get_stats(tn_model_allocator(session->model), &shared);
    stats.shared_bytes = shared.charged_bytes;
    stats.weights_mapped_bytes = shared.mapped_bytes;
    add_execution(session, &stats);
    add_io(session, &stats);
    add_plan(session, &stats);
    (void)pthread_mutex_unlock(&locked->mutex);
    const size_t size_bytes =
        out->struct_size == 0 ? sizeof stats : tn_size_min(out->struct_size, sizeof stats);
    memcpy(out, &stats, size_bytes);
    out->struct_size = size_bytes;
}

void tn_session_reset_counters(tn_session *session) {
    tn_session_counters *counters = &session->counters;
    _Atomic uint64_t *const all[] = {&counters->run_count,      &counters->failed_run_count,
                                     &counters->payload_copies, &counters->copied_bytes,
                                     &counters->plan_hits,      &counters->plan_misses};
    for (size_t i = 0; i < TN_COUNTOF(all); i++) {
        atomic_store_explicit(all[i], 0, memory_order_relaxed);
    }
    (void)pthread_mutex_lock(&session->mutex);
    for (tn_context *c = session->idle_contexts; c != NULL; c = c->next_idle) {
        tn_arena_reset_peak(c->arena);
    }
    if (session->io_arena != NULL) tn_io_arena_reset_peak(session->io_arena);
    (void)pthread_mutex_unlock(&session->mutex);
}

/* Idle contexts give up the plan they hold on to, so that the cache can drop it. */
static void unbind_idle(tn_session *session) {
    for (tn_context *c = session->idle_contexts; c != NULL; c = c->next_idle) {
        if (c->bound == NULL) continue;
        c->bound->use_count--;
        c->bound = NULL;
        c->slab = NULL;
    }
}

size_t tn_session_trim(tn_session *session, tn_trim_level level) {
    size_t given_bytes = 0;
    (void)pthread_mutex_lock(&session->mutex);
    if (!session->is_closed) {
        for (tn_context *c = session->all_contexts; c != NULL; c = c->next_all) {
            given_bytes += tn_arena_trim(c->arena, level);
        }
        given_bytes += tn_io_arena_trim(session->io_arena, level);
        unbind_idle(session);
        tn_session_drop_plans(session, 1);
    }
    (void)pthread_mutex_unlock(&session->mutex);
    /* chunks of small objects that have become empty belong to the page source */
    tn_allocator *root = session->environment->allocator;
    return given_bytes + tn_allocator_trim(root, level);
}

tn_status tn_session_set_memory_limit(tn_session *session, uint64_t limit_bytes, tn_error *err) {
    TN_TRY(tn_session_check_open(session, err));
    tn_allocator_set_limit(session->allocator, limit_bytes);
    return TN_OK;
}

size_t tn_session_report(const tn_session *session, char *text, size_t capacity_bytes) {
    return tn_allocator_report(session->allocator, text, capacity_bytes);
}

size_t tn_op_count(void) {
    size_t table_count = 0;
    size_t count = 0;
    const tn_op_table *const *tables = tn_registry_tables(&table_count);
    for (size_t t = 0; t < table_count; t++) count += tables[t]->count;
    return count;
}

tn_status tn_op_get(size_t index, tn_op_info *out, tn_error *err) {
    size_t table_count = 0;
    const size_t wanted = index;
    const tn_op_table *const *tables = tn_registry_tables(&table_count);
    for (size_t t = 0; t < table_count; t++) {
        if (index >= tables[t]->count) {
            index -= tables[t]->count;
            continue;
        }
        const tn_op_def *row = &tables[t]->rows[index];
        *out = (tn_op_info){.struct_size = sizeof *out,
                            .name = row->name,
                            .domain = row->domain == NULL ? "" : row->domain,
                            .since_version = row->since_version,
                            .until_version = row->until_version,
                            .input_types = row->input_types == NULL ? 0 : row->input_types[0],
                            .notes = row->notes};
        return TN_OK;
    }
    return tn_error_set(err, TN_OUT_OF_RANGE, "operator %zu of %zu", wanted, tn_op_count());
}

size_t tn_model_node_count(const tn_model *model) {
    return tn_model_graph(model)->node_count;
}

tn_status tn_model_node_info(const tn_model *model, size_t index, tn_node_info *out,
                             tn_error *err) {
    const tn_graph *graph = tn_model_graph(model);
    TN_REQUIRE(index < graph->node_count, err, TN_OUT_OF_RANGE, "node %zu of %zu", index,
               graph->node_count);
    const tn_graph_node *node = &graph->nodes[index];
    *out = (tn_node_info){.struct_size = sizeof *out,
                          .name = node->name.data,
                          .op_type = node->op_type.data,
                          .domain = node->domain.data,
                          .name_bytes = node->name.size_bytes,
                          .op_type_bytes = node->op_type.size_bytes,
                          .domain_bytes = node->domain.size_bytes,
                          .input_count = node->input_count,
                          .output_count = node->output_count};
    return TN_OK;
}

uint64_t tn_model_weight_bytes(const tn_model *model) {
    const tn_graph *graph = tn_model_graph(model);
    uint64_t bytes = 0;
    for (size_t i = 0; i < graph->initializer_count; i++) {
        bytes += graph->initializers[i].size_bytes;
    }
    return bytes;
}

size_t tn_model_missing_ops(const tn_model *model, char *text, size_t capacity_bytes) {
    tn_error err;
    tn_ir *ir = NULL;
    size_t table_count = 0;
    const tn_op_table *const *tables = tn_registry_tables(&table_count);
    const tn_ir_options options = {.allocator = tn_model_allocator(model),
                                   .weights_allocator = tn_model_allocator(model),
                                   .tables = tables,
                                   .table_count = table_count,
                                   .cpu = TN_CPU_PORTABLE,
                                   .worker_count = 1};
    const tn_status status = tn_ir_create(model, &options, &ir, &err);
    tn_ir_destroy(ir);
    const char *said = status == TN_OK ? "" : err.message;
    const size_t needed = strlen(said) + 1;
    if (capacity_bytes > 0) {
        const size_t kept = tn_size_min(needed, capacity_bytes) - 1;
        memcpy(text, said, kept);
        text[kept] = '\0';
    }
    return needed;
}
