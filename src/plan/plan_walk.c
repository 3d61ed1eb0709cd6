/* The walk that makes the steps of a sized plan.
 *
 * Nodes are visited in running order, branches in line: then, jump, else. Each node is inferred
 * from exact facts. What is known already (shape arithmetic) is computed here and now; what only
 * looks at bytes in another way becomes an alias; the rest becomes a step with a bound kernel. */
#include <string.h>

#include "base/checked_size.h"
#include "plan/constant.h"
#include "plan/op_run.h"
#include "plan/planner.h"

#define FEW_OPERANDS 64
#define KNOWN_LIMIT_BYTES ((size_t)4096)

typedef struct walk_frame {
    uint32_t block;
    uint32_t next;
    uint32_t control; /* node whose branch this is; TN_NO_NODE for the main block */
    uint32_t branch;  /* 0 then, 1 else */
    bool is_decided;  /* the condition is known: no branch, no jump */
    uint32_t branch_step;
    uint32_t jump_step;
} walk_frame;

typedef struct walk {
    tn_planner *planner;
    walk_frame frames[TN_MAX_BRANCH_DEPTH];
    uint32_t frame_count;
} walk;

/* Facts of the node being planned. */
typedef struct node_view {
    tn_node_facts facts;
    const tn_fact **inputs;
    tn_fact **outputs;
    const tn_fact *few_inputs[FEW_OPERANDS];
    tn_fact *few_outputs[FEW_OPERANDS];
} node_view;

static tn_plan_slot *slot_of(const tn_planner *planner, uint32_t value) {
    return &planner->plan->slots[value];
}

static tn_status view_node(tn_planner *planner, const tn_ir_node *node, node_view *view) {
    view->inputs = view->few_inputs;
    view->outputs = view->few_outputs;
    if (node->input_count > FEW_OPERANDS || node->output_count > FEW_OPERANDS) {
        view->inputs =
            tn_bump_array(&planner->scratch, node->input_count + 1u, sizeof *view->inputs);
        view->outputs =
            tn_bump_array(&planner->scratch, node->output_count + 1u, sizeof *view->outputs);
        if (view->inputs == NULL || view->outputs == NULL) return tn_planner_no_memory(planner);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        view->inputs[i] =
            node->inputs[i] == TN_NO_VALUE ? NULL : &slot_of(planner, node->inputs[i])->fact;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t value = node->outputs[i];
        const bool is_wanted = value != TN_NO_VALUE && (planner->ir->values[value].use_count > 0 ||
                                                        i < node->op->min_outputs);
        view->outputs[i] = is_wanted ? &slot_of(planner, value)->fact : NULL;
    }
    view->facts = (tn_node_facts){.op = node->op,
                                  .params = node->params,
                                  .name = node->name_text,
                                  .opset = node->opset,
                                  .input_count = node->input_count,
                                  .output_count = node->output_count,
                                  .inputs = view->inputs,
                                  .outputs = view->outputs};
    return TN_OK;
}

static tn_status name_error(tn_planner *planner, const tn_ir_node *node, tn_status status) {
    if (status != TN_OK) {
        tn_error_set_node(planner->err, node->name_text);
        tn_error_prefix(planner->err, node->name_text);
    }
    return status;
}

static bool inputs_are_sized(const node_view *view) {
    for (uint32_t i = 0; i < view->facts.input_count; i++) {
        if (view->inputs[i] != NULL && !tn_fact_is_sized(view->inputs[i])) return false;
    }
    return true;
}

static bool outputs_are_sized(const node_view *view) {
    for (uint32_t i = 0; i < view->facts.output_count; i++) {
        if (view->outputs[i] != NULL && !tn_fact_is_sized(view->outputs[i])) return false;
    }
    return true;
}

static bool inputs_are_known(const node_view *view) {
    if ((view->facts.op->flags & TN_OP_SHAPE_ONLY) != 0) return inputs_are_sized(view);
    for (uint32_t i = 0; i < view->facts.input_count; i++) {
        const tn_fact *fact = view->inputs[i];
        if (fact == NULL) continue;
        if (fact->data == NULL || !tn_fact_is_sized(fact)) return false;
        if (!tn_constant_is_aligned(fact->data, fact->dtype)) return false;
    }
    return true;
}

static bool outputs_are_small(const node_view *view) {
    for (uint32_t i = 0; i < view->facts.output_count; i++) {
        size_t size_bytes = 0;
        if (view->outputs[i] == NULL) continue;
        if (tn_fact_size_bytes(view->outputs[i], &size_bytes, NULL) != TN_OK) return false;
        if (size_bytes > KNOWN_LIMIT_BYTES) return false;
    }
    return true;
}

static void *get_trial(void *ctx, size_t size_bytes) {
    tn_planner *planner = ctx;
    return tn_bump_get(&planner->trial, tn_size_max(size_bytes, 64));
}

/* Runs the node now and keeps its outputs in the plan. */
static tn_status run_now(tn_planner *planner, const tn_ir_node *node, node_view *view) {
    const tn_op_call call = {.node = &view->facts,
                             .cpu = planner->ir->cpu,
                             .worker_count = 1,
                             .variant_index = -1,
                             .memory = {planner, get_trial},
                             .output_limit_bytes = 0};
    const tn_status status = tn_op_run(&call, planner->err);
    if (status != TN_OK) return name_error(planner, node, status);
    for (uint32_t i = 0; i < node->output_count; i++) {
        tn_fact *fact = view->outputs[i];
        if (fact == NULL) continue;
        size_t size_bytes = 0;
        TN_TRY(tn_fact_size_bytes(fact, &size_bytes, planner->err));
        void *kept = tn_bump_get(&planner->plan->bump, tn_size_max(size_bytes, 16));
        if (kept == NULL) return tn_planner_no_memory(planner);
        if (size_bytes > 0) memcpy(kept, fact->data, size_bytes);
        fact->data = kept;
        tn_plan_slot *slot = slot_of(planner, node->outputs[i]);
        slot->place = TN_PLACE_CONSTANT;
        slot->data = kept;
        slot->size_bytes = size_bytes;
    }
    tn_bump_reset(&planner->trial);
    return TN_OK;
}

/* `to` shares the storage of `from`, `offset_bytes` behind its start. */
static void make_alias(tn_planner *planner, uint32_t to, uint32_t from, size_t offset_bytes) {
    tn_plan_slot *alias = slot_of(planner, to);
    const tn_plan_slot *source = slot_of(planner, from);
    alias->root = source->root;
    alias->root_offset = source->root_offset + offset_bytes;
    alias->place = source->place;
    alias->data = source->data == NULL ? NULL : (const char *)source->data + offset_bytes;
}

static bool take_view(tn_planner *planner, const tn_ir_node *node, node_view *view) {
    if ((node->op->flags & TN_OP_VIEW) == 0 || node->input_count == 0) return false;
    if (view->inputs[0] == NULL || view->outputs[0] == NULL) return false;
    if (view->inputs[0]->layout.block != 0) return false;
    for (uint32_t i = 1; i < node->output_count; i++) {
        if (view->outputs[i] != NULL) return false;
    }
    make_alias(planner, node->outputs[0], node->inputs[0], 0);
    view->outputs[0]->data = view->inputs[0]->data;
    view->outputs[0]->is_constant = view->inputs[0]->is_constant;
    return true;
}

/* Outputs as runs of input 0's bytes; model outputs are written by the kernel instead, so that they
 * need no copy later. */
static bool take_leading_views(tn_planner *planner, const tn_ir_node *node, node_view *view) {
    if ((node->op->flags & TN_OP_VIEW_LEADING) == 0 || node->op->view_offset == NULL) return false;
    if (view->inputs[0] == NULL || view->inputs[0]->layout.block != 0) return false;
    size_t offset_bytes = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (view->outputs[i] == NULL) continue;
        if (planner->ir->values[node->outputs[i]].output_count > 0) return false;
        if (!node->op->view_offset(&view->facts, i, &offset_bytes)) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (view->outputs[i] == NULL) continue;
        (void)node->op->view_offset(&view->facts, i, &offset_bytes);
        make_alias(planner, node->outputs[i], node->inputs[0], offset_bytes);
    }
    return true;
}

static void mark_dynamic(tn_planner *planner, uint32_t value) {
    tn_plan_slot *slot = slot_of(planner, value);
    if (slot->place != TN_PLACE_DYNAMIC) planner->plan->dynamic_count++;
    slot->place = TN_PLACE_DYNAMIC;
    slot->is_output = planner->ir->values[value].output_count > 0;
}

/* Gives every output a place; those without a size are dynamic. */
static tn_status place_outputs(tn_planner *planner, const tn_ir_node *node, const node_view *view) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (view->outputs[i] == NULL) continue;
        tn_plan_slot *slot = slot_of(planner, node->outputs[i]);
        if (slot->root != node->outputs[i]) continue;
        if (!tn_fact_is_sized(view->outputs[i])) {
            mark_dynamic(planner, node->outputs[i]);
            continue;
        }
        slot->place = TN_PLACE_SLAB;
        const tn_status status =
            tn_fact_size_bytes(view->outputs[i], &slot->size_bytes, planner->err);
        if (status != TN_OK) return name_error(planner, node, status);
    }
    return TN_OK;
}

static tn_status align_constant(tn_planner *planner, uint32_t value) {
    tn_plan_slot *slot = slot_of(planner, value);
    if (tn_constant_is_aligned(slot->data, slot->fact.dtype)) return TN_OK;
    const tn_pack_source *pack = &planner->options->pack;
    const void *aligned = NULL;
    size_t size_bytes = 0;
    TN_TRY(tn_fact_size_bytes(&slot->fact, &size_bytes, planner->err));
    const bool is_inner = value >= planner->ir->value_count ||
                          planner->ir->values[value].is_inner_constant ||
                          planner->ir->values[value].tensor == NULL;
    TN_TRY(pack->align(pack->ctx, slot->data, size_bytes, is_inner, &aligned, planner->err));
    slot->data = aligned;
    slot->fact.data = aligned;
    return TN_OK;
}

/* The node's list of outputs, or a copy in which those that nobody wants are left out. */
static tn_status set_outputs(tn_planner *planner, const tn_ir_node *node, const node_view *view,
                             tn_step *step) {
    bool all_wanted = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        all_wanted = all_wanted && (view->outputs[i] != NULL || node->outputs[i] == TN_NO_VALUE);
    }
    step->out = node->outputs;
    step->out_count = node->output_count;
    if (all_wanted) return TN_OK;
    uint32_t *out = tn_ir_make_operands(&planner->plan->bump, NULL, node->output_count);
    if (out == NULL) return tn_planner_no_memory(planner);
    for (uint32_t i = 0; i < node->output_count; i++) {
        out[i] = view->outputs[i] == NULL ? TN_NO_VALUE : node->outputs[i];
    }
    step->out = out;
    return TN_OK;
}

/* Operands of the step: the node's own lists, or a copy where a packed weight takes a place. */
static tn_status set_operands(tn_planner *planner, const tn_ir_node *node, const node_view *view,
                              tn_step *step, const tn_bound *bound) {
    step->in = node->inputs;
    step->in_count = node->input_count;
    TN_TRY(set_outputs(planner, node, view, step));
    const uint8_t packed = bound->packed == NULL ? UINT8_MAX : bound->variant.pack_input;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t value = node->inputs[i];
        if (i == packed || value == TN_NO_VALUE) continue;
        if (i == 0 && (node->op->flags & TN_OP_UNALIGNED_WEIGHTS) != 0) continue;
        if (slot_of(planner, value)->place != TN_PLACE_CONSTANT) continue;
        TN_TRY(align_constant(planner, value));
    }
    if (bound->packed == NULL) return TN_OK;
    uint32_t *in = tn_ir_make_operands(&planner->plan->bump, node->inputs, node->input_count);
    const uint32_t slot =
        tn_planner_add_slot(planner, &slot_of(planner, node->inputs[packed])->fact);
    if (in == NULL || slot == TN_NO_VALUE) return tn_planner_no_memory(planner);
    in[packed] = slot;
    slot_of(planner, slot)->place = TN_PLACE_CONSTANT;
    slot_of(planner, slot)->data = bound->packed;
    step->in = in;
    return TN_OK;
}

static void set_kernel(const tn_planner *planner, tn_step *step, const tn_bound *bound) {
    step->run = bound->variant.run;
    step->record = bound->record;
    step->phase_count = bound->variant.phase_count;
    step->variant_name = bound->variant.name;
    step->cost_ns = bound->variant.cost_ns;
    step->rewrite_class = bound->variant.rewrite_class;
    uint32_t most_tiles = 1;
    for (uint32_t p = 0; p < step->phase_count; p++) {
        step->tile_counts[p] = bound->variant.tile_counts[p];
        if (step->tile_counts[p] > most_tiles) most_tiles = step->tile_counts[p];
    }
    const uint32_t workers =
        most_tiles < planner->ir->worker_count ? most_tiles : planner->ir->worker_count;
    step->worker_scratch_stride = tn_align_up(bound->variant.worker_scratch_bytes, 64);
    step->worker_scratch_offset = tn_align_up(bound->variant.shared_scratch_bytes, 64);
    step->scratch_bytes = step->worker_scratch_offset + step->worker_scratch_stride * workers;
}

/* A step whose inputs are not all sized: the executor infers and binds it. */
static tn_status add_dynamic_step(tn_planner *planner, uint32_t index, const node_view *view) {
    const tn_ir_node *node = &planner->ir->nodes[index];
    TN_TRY(place_outputs(planner, node, view));
    tn_step *step = tn_planner_add_step(planner, TN_STEP_KERNEL);
    if (step == NULL) return tn_planner_no_memory(planner);
    step->node = index;
    step->is_dynamic = true;
    step->variant_name = "chosen at run time";
    const tn_bound nothing = {.packed = NULL};
    return set_operands(planner, node, view, step, &nothing);
}

static tn_status add_kernel_step(tn_planner *planner, uint32_t index, node_view *view) {
    const tn_ir_node *node = &planner->ir->nodes[index];
    tn_bound bound;
    TN_TRY(place_outputs(planner, node, view));
    const tn_status status = tn_plan_bind_node(planner->ir, node, &view->facts, planner->options,
                                               &planner->plan->bump, &bound, planner->err);
    if (status != TN_OK) return name_error(planner, node, status);
    tn_step *step = tn_planner_add_step(planner, TN_STEP_KERNEL);
    if (step == NULL) return tn_planner_no_memory(planner);
    step->node = index;
    step->makes_outputs = !outputs_are_sized(view);
    set_kernel(planner, step, &bound);
    return set_operands(planner, node, view, step, &bound);
}

static void reset_outputs(const node_view *view) {
    for (uint32_t i = 0; i < view->facts.output_count; i++) {
        if (view->outputs[i] == NULL) continue;
        *view->outputs[i] = (tn_fact){.shape = {.rank = TN_RANK_UNKNOWN}};
    }
}

static void set_output_layout(const tn_ir_node *node, const node_view *view) {
    if (node->output_count > 0 && view->outputs[0] != NULL) {
        view->outputs[0]->layout = node->output_layout;
    }
}

static tn_status plan_sized_node(tn_planner *planner, uint32_t index) {
    const tn_ir_node *node = &planner->ir->nodes[index];
    node_view view;
    TN_TRY(view_node(planner, node, &view));
    reset_outputs(&view);
    tn_status status = tn_op_check_types(&view.facts, planner->err);
    if (status == TN_OK) status = node->op->infer(&view.facts, planner->err);
    if (status != TN_OK) return name_error(planner, node, status);
    set_output_layout(node, &view);

    const bool is_sized = outputs_are_sized(&view);
    const bool is_data_dependent = (node->op->flags & TN_OP_DATA_DEPENDENT) != 0;
    if (!inputs_are_sized(&view) || (!is_sized && !is_data_dependent)) {
        /* a view's bytes are known to be its input's; only its shape is found at run time */
        (void)take_view(planner, node, &view);
        return add_dynamic_step(planner, index, &view);
    }
    if (is_sized && take_view(planner, node, &view)) return TN_OK;
    const bool is_plain = node->input_layout.block == 0 && node->output_layout.block == 0;
    const bool is_pure = is_plain && (node->op->flags & TN_OP_FOLDABLE) != 0 &&
                         node->input_count <= TN_OP_RUN_MAX_OPERANDS;
    if (is_pure && is_sized && inputs_are_known(&view) && outputs_are_small(&view)) {
        return run_now(planner, node, &view);
    }
    if (is_sized && take_leading_views(planner, node, &view)) return TN_OK;
    return add_kernel_step(planner, index, &view);
}

static bool is_about_the_node(tn_status status) {
    return status == TN_INVALID_MODEL || status == TN_INVALID_ARGUMENT ||
           status == TN_UNSUPPORTED || status == TN_OUT_OF_RANGE || status == TN_OVERFLOW;
}

/* A node of a branch that may never be taken cannot fail the plan: shapes that do not fit there are
 * an error only if the run gets there, so it is left to the run. */
static tn_status plan_node(tn_planner *planner, uint32_t index, bool may_be_skipped) {
    const uint32_t step_count = planner->plan->step_count;
    const tn_status status = plan_sized_node(planner, index);
    if (!may_be_skipped || !is_about_the_node(status)) return status;
    node_view view;
    planner->plan->step_count = step_count;
    tn_bump_reset(&planner->trial);
    TN_TRY(view_node(planner, &planner->ir->nodes[index], &view));
    reset_outputs(&view);
    return add_dynamic_step(planner, index, &view);
}

static bool is_in_undecided_branch(const walk *w) {
    for (uint32_t i = 0; i < w->frame_count; i++) {
        if (w->frames[i].control != TN_NO_NODE && !w->frames[i].is_decided) return true;
    }
    return false;
}

static tn_status push(walk *w, const walk_frame *frame) {
    TN_REQUIRE(w->frame_count < TN_MAX_BRANCH_DEPTH, w->planner->err, TN_INVALID_MODEL,
               "branches are nested deeper than %d", TN_MAX_BRANCH_DEPTH);
    w->frames[w->frame_count++] = *frame;
    return TN_OK;
}

static tn_status start_control(walk *w, uint32_t index) {
    tn_planner *planner = w->planner;
    const tn_ir_node *node = &planner->ir->nodes[index];
    const uint32_t condition = node->inputs[0];
    const tn_fact *fact = &slot_of(planner, condition)->fact;
    TN_REQUIRE(fact->dtype == TN_DTYPE_BOOL || fact->dtype == TN_DTYPE_NONE, planner->err,
               TN_INVALID_MODEL, "the condition of %s is not bool", node->name_text);
    walk_frame frame = {.control = index, .block = node->blocks[0]};
    if (fact->data != NULL && tn_fact_is_sized(fact) && tn_fact_len_elems(fact) == 1) {
        frame.is_decided = true;
        frame.branch = *(const uint8_t *)fact->data != 0 ? 0 : 1;
        frame.block = node->blocks[frame.branch];
        return push(w, &frame);
    }
    tn_step *step = tn_planner_add_step(planner, TN_STEP_BRANCH);
    if (step == NULL) return tn_planner_no_memory(planner);
    step->node = index;
    step->in = node->inputs;
    step->in_count = 1;
    frame.branch_step = planner->plan->step_count - 1;
    return push(w, &frame);
}

static tn_status add_assign(tn_planner *planner, uint32_t node_index, const uint32_t *from,
                            const uint32_t *to) {
    tn_step *step = tn_planner_add_step(planner, TN_STEP_ASSIGN);
    if (step == NULL) return tn_planner_no_memory(planner);
    step->node = node_index;
    step->in = from;
    step->in_count = 1;
    step->out = to;
    step->out_count = 1;
    return TN_OK;
}

/* The control node's outputs take the branch's results. */
static tn_status finish_branch(walk *w, const walk_frame *frame) {
    tn_planner *planner = w->planner;
    const tn_ir_node *node = &planner->ir->nodes[frame->control];
    const tn_ir_block *block = &planner->ir->blocks[frame->block];
    TN_REQUIRE(block->output_count >= node->output_count, planner->err, TN_INVALID_MODEL,
               "%s has %u outputs, its branch makes %u", node->name_text, node->output_count,
               block->output_count);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t to = node->outputs[i];
        if (to == TN_NO_VALUE || planner->ir->values[to].use_count == 0) continue;
        const uint32_t from = block->outputs[i];
        const tn_fact *fact = &slot_of(planner, from)->fact;
        if (frame->is_decided) slot_of(planner, to)->fact = *fact;
        if (frame->is_decided && tn_fact_is_sized(fact)) {
            make_alias(planner, to, from, 0);
        } else {
            if (frame->is_decided) mark_dynamic(planner, to);
            TN_TRY(add_assign(planner, frame->control, &block->outputs[i], &node->outputs[i]));
        }
    }
    return TN_OK;
}

static bool same_shape(const tn_shape *a, const tn_shape *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* After both branches: an output has a size when both agree on it, else it is dynamic. */
static tn_status finish_control(walk *w, const walk_frame *frame) {
    tn_planner *planner = w->planner;
    const tn_ir_node *node = &planner->ir->nodes[frame->control];
    const tn_ir_block *then_block = &planner->ir->blocks[node->blocks[0]];
    const tn_ir_block *else_block = &planner->ir->blocks[node->blocks[1]];
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t to = node->outputs[i];
        if (to == TN_NO_VALUE || planner->ir->values[to].use_count == 0) continue;
        const tn_fact *a = &slot_of(planner, then_block->outputs[i])->fact;
        const tn_fact *b = &slot_of(planner, else_block->outputs[i])->fact;
        tn_plan_slot *slot = slot_of(planner, to);
        slot->fact = (tn_fact){.kind = a->kind, .dtype = a->dtype, .shape = a->shape};
        if (tn_fact_is_sized(a) && tn_fact_is_sized(b) && same_shape(&a->shape, &b->shape) &&
            a->dtype == b->dtype) {
            slot->place = TN_PLACE_SLAB;
            TN_TRY(tn_fact_size_bytes(&slot->fact, &slot->size_bytes, planner->err));
            continue;
        }
        if (a->shape.rank != b->shape.rank) slot->fact.shape.rank = TN_RANK_UNKNOWN;
        for (int32_t d = 0; d < slot->fact.shape.rank; d++) {
            if (a->shape.dims[d] != b->shape.dims[d]) slot->fact.shape.dims[d] = TN_DIM_UNKNOWN;
        }
        if (a->dtype != b->dtype) slot->fact.shape.rank = TN_RANK_UNKNOWN;
        mark_dynamic(planner, to);
    }
    return TN_OK;
}

static tn_status finish_frame(walk *w) {
    tn_planner *planner = w->planner;
    const walk_frame frame = w->frames[--w->frame_count];
    if (frame.control == TN_NO_NODE) return TN_OK;
    TN_TRY(finish_branch(w, &frame));
    if (frame.is_decided) return TN_OK;
    if (frame.branch == 0) {
        tn_step *jump = tn_planner_add_step(planner, TN_STEP_JUMP);
        if (jump == NULL) return tn_planner_no_memory(planner);
        walk_frame other = frame;
        other.branch = 1;
        other.block = planner->ir->nodes[frame.control].blocks[1];
        other.next = 0;
        other.jump_step = planner->plan->step_count - 1;
        planner->plan->steps[frame.branch_step].target = planner->plan->step_count;
        return push(w, &other);
    }
    planner->plan->steps[frame.jump_step].target = planner->plan->step_count;
    return finish_control(w, &frame);
}

tn_status tn_planner_walk(tn_planner *planner) {
    walk w = {.planner = planner};
    const walk_frame start = {.block = planner->ir->main_block, .control = TN_NO_NODE};
    TN_TRY(push(&w, &start));
    while (w.frame_count > 0) {
        walk_frame *frame = &w.frames[w.frame_count - 1];
        const tn_ir_block *block = &planner->ir->blocks[frame->block];
        if (frame->next == block->node_count) {
            TN_TRY(finish_frame(&w));
            continue;
        }
        const uint32_t index = block->nodes[frame->next++];
        if ((planner->ir->nodes[index].op->flags & TN_OP_CONTROL) != 0) {
            TN_TRY(start_control(&w, index));
        } else {
            TN_TRY(plan_node(planner, index, is_in_undecided_branch(&w)));
        }
    }
    return TN_OK;
}
