/* Making and freeing sized plans, and binding one node: choose the cheapest variant that fits the
 * layouts that the structural passes decided, pack its weight, fill its record. */
#include "plan/plan.h"

#include <string.h>

#include "base/checked_size.h"
#include "plan/op_run.h"
#include "plan/planner.h"

static bool fits(const tn_variant *variant, const tn_ir_node *node,
                 const tn_plan_options *options) {
    if (variant->input_layout.block != node->input_layout.block) return false;
    if (variant->output_layout.block != node->output_layout.block) return false;
    if (node->epilogue != NULL && !variant->takes_epilogue) return false;
    return !options->exact_only || variant->rewrite_class == TN_REWRITE_EXACT;
}

static tn_status choose(const tn_ir *ir, const tn_ir_node *node, const tn_node_facts *facts,
                        const tn_plan_options *options, tn_variant *out, tn_error *err) {
    tn_variant variants[TN_MAX_VARIANTS];
    memset(variants, 0, sizeof variants);
    uint32_t count = 0;
    const tn_variant_query query = {.node = facts,
                                    .cpu = ir->cpu,
                                    .worker_count = ir->worker_count,
                                    .scratch_limit_bytes = SIZE_MAX,
                                    .preferred_block = node->output_layout.block != 0
                                                           ? node->output_layout.block
                                                           : node->input_layout.block,
                                    .epilogue = node->epilogue};
    TN_TRY(node->op->variants(&query, variants, &count, err));
    const tn_variant *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!fits(&variants[i], node, options)) continue;
        if (best == NULL || variants[i].cost_ns < best->cost_ns) best = &variants[i];
    }
    const tn_dtype dtype =
        tn_node_input(facts, 0) == NULL ? TN_DTYPE_NONE : tn_node_input(facts, 0)->dtype;
    TN_REQUIRE(best != NULL, err, TN_UNSUPPORTED, "%s has no kernel for %s with these options",
               node->op->name, dtype == TN_DTYPE_NONE ? "no input" : tn_dtype_name(dtype));
    *out = *best;
    return TN_OK;
}

tn_status tn_plan_bind_node(const tn_ir *ir, const tn_ir_node *node, const tn_node_facts *facts,
                            const tn_plan_options *options, tn_bump *bump, tn_bound *out,
                            tn_error *err) {
    memset(out, 0, sizeof *out);
    TN_TRY(choose(ir, node, facts, options, &out->variant, err));
    if (out->variant.phase_count == 0) out->variant.phase_count = 1;
    for (uint32_t p = 0; p < out->variant.phase_count; p++) {
        if (out->variant.tile_counts[p] == 0) out->variant.tile_counts[p] = 1;
    }
    if (out->variant.pack_format != 0) {
        const tn_pack_context pack = {facts, &out->variant, ir->cpu, err};
        TN_TRY(options->pack.get(options->pack.ctx, ir, node, &pack, &out->packed));
    }
    const tn_bind_context bind = {.node = facts,
                                  .variant = &out->variant,
                                  .cpu = ir->cpu,
                                  .worker_count = ir->worker_count,
                                  .epilogue = node->epilogue,
                                  .first_epilogue_input = node->first_epilogue_input,
                                  .nontemporal = false,
                                  .err = err};
    out->record = node->params;
    if (node->op->bind == NULL) return TN_OK;
    const size_t record_bytes =
        node->op->record_size != NULL ? node->op->record_size(&bind) : node->op->record_bytes;
    void *record = tn_bump_get(bump, tn_size_max(record_bytes, 64));
    TN_REQUIRE(record != NULL, err, TN_OUT_OF_MEMORY, "the record of %s needs %zu bytes",
               node->name_text, record_bytes);
    TN_TRY(node->op->bind(&bind, record));
    out->record = record;
    return TN_OK;
}

tn_status tn_planner_no_memory(tn_planner *planner) {
    return tn_error_set(planner->err, TN_OUT_OF_MEMORY,
                        "the sized plan needs more memory than it may have (%zu bytes so far)",
                        planner->plan->bump.used_bytes);
}

uint32_t tn_planner_add_slot(tn_planner *planner, const tn_fact *fact) {
    tn_plan *plan = planner->plan;
    if (plan->slot_count == planner->slot_capacity) {
        const uint32_t capacity = planner->slot_capacity * 2 + 16;
        tn_plan_slot *grown = tn_bump_array(&plan->bump, capacity, sizeof *grown);
        if (grown == NULL) return TN_NO_VALUE;
        memcpy(grown, plan->slots, plan->slot_count * sizeof *grown);
        plan->slots = grown;
        planner->slot_capacity = capacity;
    }
    tn_plan_slot *slot = &plan->slots[plan->slot_count];
    memset(slot, 0, sizeof *slot);
    slot->fact = *fact;
    slot->root = plan->slot_count;
    return plan->slot_count++;
}

tn_step *tn_planner_add_step(tn_planner *planner, tn_step_kind kind) {
    tn_plan *plan = planner->plan;
    if (plan->step_count == planner->step_capacity) {
        const uint32_t capacity = planner->step_capacity * 2 + 16;
        tn_step *grown = tn_bump_array(&plan->bump, capacity, sizeof *grown);
        if (grown == NULL) return NULL;
        if (plan->step_count > 0) memcpy(grown, plan->steps, plan->step_count * sizeof *grown);
        plan->steps = grown;
        planner->step_capacity = capacity;
    }
    tn_step *step = &plan->steps[plan->step_count++];
    memset(step, 0, sizeof *step);
    step->kind = kind;
    step->node = TN_NO_NODE;
    step->phase_count = 1;
    return step;
}

static tn_status start_slots(tn_planner *planner) {
    tn_plan *plan = planner->plan;
    const tn_ir *ir = planner->ir;
    planner->slot_capacity = ir->value_count + ir->value_count / 4 + 8;
    planner->step_capacity = ir->node_count + 8;
    plan->slots = tn_bump_array(&plan->bump, planner->slot_capacity, sizeof *plan->slots);
    plan->steps = tn_bump_array(&plan->bump, planner->step_capacity, sizeof *plan->steps);
    if (plan->slots == NULL || plan->steps == NULL) return tn_planner_no_memory(planner);
    plan->slot_count = ir->value_count;
    for (uint32_t v = 0; v < ir->value_count; v++) {
        tn_plan_slot *slot = &plan->slots[v];
        const tn_ir_value *value = &ir->values[v];
        slot->root = v;
        slot->fact = value->fact;
        if (value->role == TN_IR_CONSTANT) {
            slot->place = TN_PLACE_CONSTANT;
            slot->data = value->fact.data;
        } else if (value->role == TN_IR_INPUT) {
            const tn_plan_input *input = &planner->inputs[value->input_index];
            slot->place = TN_PLACE_INPUT;
            slot->fact.kind = TN_KIND_TENSOR;
            slot->fact.dtype = input->dtype;
            slot->fact.shape = input->shape;
            slot->fact.data = input->data;
        } else {
            slot->fact = (tn_fact){.shape = {.rank = TN_RANK_UNKNOWN}};
        }
    }
    return TN_OK;
}

tn_status tn_plan_create(tn_ir *ir, const tn_plan_input *inputs, const tn_plan_options *options,
                         tn_plan **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_planner planner = {.ir = ir, .inputs = inputs, .options = options, .err = err};
    *out = NULL;
    planner.scratch.allocator = options->allocator;
    planner.trial.allocator = options->allocator;
    tn_plan *plan = tn_allocator_calloc(options->allocator, 1, sizeof *plan);
    TN_REQUIRE(plan != NULL, err, TN_OUT_OF_MEMORY, "a plan needs %zu bytes to begin with",
               sizeof *plan);
    plan->bump.allocator = options->allocator;
    plan->ir = ir;
    planner.plan = plan;
    TN_TRY_GOTO(start_slots(&planner), cleanup);
    TN_TRY_GOTO(tn_planner_walk(&planner), cleanup);
    TN_TRY_GOTO(tn_planner_place(&planner), cleanup);

    *out = plan;
    plan = NULL;

cleanup:
    tn_bump_deinit(&planner.scratch);
    tn_bump_deinit(&planner.trial);
    tn_plan_destroy(plan);
    return status;
}

void tn_plan_destroy(tn_plan *plan) {
    if (plan == NULL) return;
    tn_allocator *allocator = plan->bump.allocator;
    tn_bump_deinit(&plan->bump);
    tn_allocator_free(allocator, plan);
}
