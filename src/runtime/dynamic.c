/* What is known only while it runs: values whose size depends on data.
 *
 * A dynamic step is inferred from the facts of the moment (every input's contents can be read now),
 * bound into memory that lives until the end of the run, and run like any other. Its outputs come
 * from the class arena, or from the I/O arena when they leave the run. */
#include <string.h>

#include "base/checked_size.h"
#include "plan/op_run.h"
#include "runtime/context_state.h"

#define FEW_OPERANDS 16

const tn_fact *tn_context_fact(const tn_context *context, uint32_t value) {
    const tn_plan_slot *slot = &context->bound->plan->slots[value];
    if (slot->dynamic_index == UINT32_MAX) return &slot->fact;
    return &context->dynamic[slot->dynamic_index].fact;
}

static tn_status allocate(tn_context *context, bool in_io_arena, size_t size_bytes,
                          tn_allocation_handle *out, tn_error *err) {
    if (in_io_arena) return tn_io_arena_allocate(context->session->io_arena, size_bytes, out, err);
    return tn_context_allocate(context, size_bytes, out, err);
}

tn_status tn_context_make_dynamic(tn_context *context, uint32_t value, const tn_fact *fact,
                                  void **out_data, tn_error *err) {
    const tn_plan_slot *slot = &context->bound->plan->slots[value];
    size_t size_bytes = 0;
    TN_TRY(tn_fact_size_bytes(fact, &size_bytes, err));
    if (slot->dynamic_index == UINT32_MAX) {
        TN_REQUIRE(size_bytes == slot->size_bytes, err, TN_INTERNAL,
                   "an output of %zu bytes was planned with %zu", size_bytes, slot->size_bytes);
        *out_data = context->values[value];
        return TN_OK;
    }
    tn_dynamic_value *dynamic = &context->dynamic[slot->dynamic_index];
    if (dynamic->handle.arena != NULL) (void)tn_allocation_handle_reset(&dynamic->handle);
    TN_TRY(allocate(context, slot->is_output, size_bytes, &dynamic->handle, err));
    dynamic->fact = *fact;
    dynamic->fact.data = NULL;
    dynamic->fact.is_constant = false;
    context->values[value] = dynamic->handle.data;
    *out_data = dynamic->handle.data;
    return TN_OK;
}

void tn_context_release_dynamic(tn_context *context, uint32_t root) {
    const uint32_t index = context->bound->plan->slots[root].dynamic_index;
    if (index == UINT32_MAX) return;
    tn_dynamic_value *dynamic = &context->dynamic[index];
    if (dynamic->handle.arena != NULL) (void)tn_allocation_handle_reset(&dynamic->handle);
}

void tn_context_release_all_dynamic(tn_context *context) {
    for (uint32_t i = 0; i < context->bound->plan->dynamic_value_count; i++) {
        tn_dynamic_value *dynamic = &context->dynamic[i];
        if (dynamic->handle.arena != NULL) {
            (void)tn_allocation_handle_reset(&dynamic->handle);
        }
    }
}

tn_status tn_context_make_temporary(tn_context *context, size_t size_bytes, void **out_data,
                                    tn_error *err) {
    if (context->temporary_count == context->temporary_capacity) {
        const uint32_t capacity = context->temporary_capacity * 2 + 8;
        tn_allocation_handle *grown = tn_allocator_realloc(
            context->session->plan_allocator, context->temporaries, capacity * sizeof *grown);
        TN_REQUIRE(grown != NULL, err, TN_OUT_OF_MEMORY, "a list of %u temporaries needs memory",
                   capacity);
        context->temporaries = grown;
        context->temporary_capacity = capacity;
    }
    tn_allocation_handle *handle = &context->temporaries[context->temporary_count];
    memset(handle, 0, sizeof *handle);
    TN_TRY(tn_context_allocate(context, size_bytes, handle, err));
    context->temporary_count++;
    *out_data = handle->data;
    return TN_OK;
}

void tn_context_release_temporaries(tn_context *context) {
    while (context->temporary_count > 0) {
        tn_allocation_handle *handle = &context->temporaries[--context->temporary_count];
        (void)tn_allocation_handle_reset(handle);
    }
}

tn_status tn_context_assign(tn_context *context, const tn_step *step, tn_error *err) {
    const tn_plan *plan = context->bound->plan;
    const uint32_t from = step->in[0];
    const uint32_t to = step->out[0];
    if (plan->slots[from].root == plan->slots[to].root) return TN_OK; /* written in place */
    const tn_fact fact = *tn_context_fact(context, from);
    void *data = NULL;
    TN_TRY(tn_context_make_dynamic(context, to, &fact, &data, err));
    size_t size_bytes = 0;
    TN_TRY(tn_fact_size_bytes(&fact, &size_bytes, err));
    if (size_bytes > 0) memcpy(data, context->values[from], size_bytes);
    context->copies++;
    context->copied_bytes += size_bytes;
    return TN_OK;
}

/* Facts of one dynamic node, contents included. */
typedef struct live_node {
    tn_node_facts facts;
    const tn_fact **inputs;
    tn_fact **outputs;
    tn_fact *all; /* inputs, then outputs */
} live_node;

static tn_status read_facts(tn_context *context, const tn_step *step, live_node *live,
                            tn_error *err) {
    const tn_ir_node *node = &context->bound->plan->ir->nodes[step->node];
    const size_t count = (size_t)node->input_count + node->output_count + 1;
    live->all = tn_bump_array(&context->run_bump, count, sizeof *live->all);
    live->inputs = tn_bump_array(&context->run_bump, count, sizeof *live->inputs);
    live->outputs = tn_bump_array(&context->run_bump, count, sizeof *live->outputs);
    TN_REQUIRE(live->all != NULL && live->inputs != NULL && live->outputs != NULL, err,
               TN_OUT_OF_MEMORY, "the facts of %zu values need memory", count);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == TN_NO_VALUE) continue;
        live->all[i] = *tn_context_fact(context, node->inputs[i]);
        if (live->all[i].data == NULL) live->all[i].data = context->values[node->inputs[i]];
        live->inputs[i] = &live->all[i];
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (step->out[i] == TN_NO_VALUE) continue;
        tn_fact *fact = &live->all[node->input_count + i];
        fact->shape.rank = TN_RANK_UNKNOWN;
        live->outputs[i] = fact;
    }
    live->facts = (tn_node_facts){.op = node->op,
                                  .params = node->params,
                                  .name = node->name_text,
                                  .opset = node->opset,
                                  .input_count = node->input_count,
                                  .output_count = node->output_count,
                                  .inputs = live->inputs,
                                  .outputs = live->outputs};
    return TN_OK;
}

/* A view has its input's address; only its shape is new. */
static bool set_view(tn_context *context, const tn_step *step, const live_node *live) {
    const tn_plan *plan = context->bound->plan;
    const tn_ir_node *node = &plan->ir->nodes[step->node];
    if ((node->op->flags & TN_OP_VIEW) == 0 || node->input_count == 0) return false;
    const uint32_t from = node->inputs[0];
    const uint32_t to = node->outputs[0];
    if (from == TN_NO_VALUE || plan->slots[from].root != plan->slots[to].root) return false;
    context->values[to] = context->values[from];
    const uint32_t dynamic = plan->slots[to].dynamic_index;
    if (dynamic != UINT32_MAX) {
        context->dynamic[dynamic].fact = *live->outputs[0];
        context->dynamic[dynamic].fact.data = NULL;
    }
    return true;
}

static tn_status make_outputs(tn_context *context, const tn_step *step, const live_node *live,
                              tn_error *err) {
    const tn_ir_node *node = &context->bound->plan->ir->nodes[step->node];
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (live->outputs[i] == NULL || !tn_fact_is_sized(live->outputs[i])) continue;
        if (i == 0) live->outputs[i]->layout = node->output_layout;
        void *data = NULL;
        TN_TRY(tn_context_make_dynamic(context, step->out[i], live->outputs[i], &data, err));
    }
    return TN_OK;
}

/* Runs the bound node with scratch from the class arena. */
static tn_status run_bound(tn_context *context, const tn_step *step, const tn_bound *bound,
                           tn_error *err) {
    const uint32_t packed_id = context->bound->plan->slot_count; /* one entry behind the table */
    const tn_ir_node *node = &context->bound->plan->ir->nodes[step->node];
    tn_step now = *step;
    uint32_t *in = tn_ir_make_operands(&context->run_bump, step->in, node->input_count);
    TN_REQUIRE(in != NULL, err, TN_OUT_OF_MEMORY, "the operands of %s need memory",
               node->name_text);
    if (bound->packed != NULL) {
        in[bound->variant.pack_input] = packed_id;
        context->values[packed_id] = (void *)(uintptr_t)bound->packed;
    }
    now.in = in;
    now.run = bound->variant.run;
    now.record = bound->record;
    now.phase_count = bound->variant.phase_count;
    memcpy(now.tile_counts, bound->variant.tile_counts, sizeof now.tile_counts);
    now.worker_scratch_stride = tn_align_up(bound->variant.worker_scratch_bytes, 64);
    void *shared = NULL;
    void *workers = NULL;
    const size_t worker_bytes = now.worker_scratch_stride * context->session->worker_count;
    TN_TRY(tn_context_make_temporary(context, bound->variant.shared_scratch_bytes, &shared, err));
    TN_TRY(tn_context_make_temporary(context, worker_bytes, &workers, err));
    return tn_context_run_tiles(context, &now, shared, workers, err);
}

tn_status tn_context_run_dynamic(tn_context *context, const tn_step *step, tn_error *err) {
    tn_session *session = context->session;
    const tn_ir *ir = context->bound->plan->ir;
    const tn_ir_node *node = &ir->nodes[step->node];
    live_node live;
    tn_bound bound;
    tn_status status = TN_OK;
    TN_TRY_GOTO(read_facts(context, step, &live, err), named);
    TN_TRY_GOTO(tn_op_check_types(&live.facts, err), named);
    TN_TRY_GOTO(node->op->infer(&live.facts, err), named);
    if (set_view(context, step, &live)) return TN_OK;
    TN_TRY_GOTO(make_outputs(context, step, &live, err), named);
    const tn_plan_options options = tn_session_plan_options(session);
    TN_TRY_GOTO(tn_plan_bind_node(ir, node, &live.facts, &options, &context->run_bump, &bound, err),
                named);
    status = run_bound(context, step, &bound, err);
    tn_context_release_temporaries(context);
    return status;

named:
    tn_error_prefix(err, node->name_text);
    tn_error_set_node(err, node->name_text);
    return status;
}
