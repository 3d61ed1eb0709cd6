/* Where every value lies and for how long.
 *
 * Storage is a set of roots: values that share bytes (views, in-place results, branch results)
 * point to one root through `slots[].root`. Merging is legal only where the rules below say so;
 * each merge keeps offset 0, so offsets of views stay valid. After merging, the first write and
 * last read of every root over the linear step order are its interval, and the slab offsets follow.
 */
#include <string.h>

#include "base/checked_size.h"
#include "plan/planner.h"

static uint32_t find_root(tn_plan *plan, uint32_t value) {
    while (plan->slots[value].root != value) {
        /* halving keeps chains short without a second pass */
        plan->slots[value].root = plan->slots[plan->slots[value].root].root;
        value = plan->slots[value].root;
    }
    return value;
}

static void touch(tn_plan *plan, uint32_t value, uint32_t step, bool is_write) {
    if (value == TN_NO_VALUE) return;
    tn_plan_slot *root = &plan->slots[find_root(plan, value)];
    if (is_write && step < root->birth) root->birth = step;
    if (step > root->death) root->death = step;
    if (root->birth == UINT32_MAX) root->birth = step;
}

/* Intervals of all roots as merged so far. */
static void measure_lives(tn_planner *planner) {
    tn_plan *plan = planner->plan;
    for (uint32_t v = 0; v < plan->slot_count; v++) {
        plan->slots[v].birth = UINT32_MAX;
        plan->slots[v].death = 0;
    }
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const tn_step *step = &plan->steps[s];
        for (uint32_t i = 0; i < step->in_count; i++) touch(plan, step->in[i], s, false);
        for (uint32_t i = 0; i < step->out_count; i++) touch(plan, step->out[i], s, true);
    }
    const tn_ir_block *main_block = &planner->ir->blocks[planner->ir->main_block];
    for (uint32_t i = 0; i < main_block->output_count; i++) {
        touch(plan, main_block->outputs[i], plan->step_count, false);
    }
}

static uint32_t branch_step_of(const tn_plan *plan, uint32_t assign_step) {
    const uint32_t node = plan->steps[assign_step].node;
    for (uint32_t s = assign_step; s-- > 0;) {
        if (plan->steps[s].kind == TN_STEP_BRANCH && plan->steps[s].node == node) return s;
    }
    return assign_step;
}

/* A branch's result is written straight into the control node's output when it is made in the
 * branch, nothing reads it later, and it is no window of something larger. */
static void merge_branch_results(tn_planner *planner) {
    tn_plan *plan = planner->plan;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const tn_step *step = &plan->steps[s];
        if (step->kind != TN_STEP_ASSIGN) continue;
        const uint32_t to = step->out[0];
        const uint32_t from = find_root(plan, step->in[0]);
        const tn_plan_slot *source = &plan->slots[step->in[0]];
        if (plan->slots[find_root(plan, to)].place != TN_PLACE_SLAB) continue;
        if (plan->slots[from].place != TN_PLACE_SLAB || source->root_offset != 0) continue;
        if (plan->slots[from].size_bytes != plan->slots[to].size_bytes) continue;
        if (plan->slots[from].birth <= branch_step_of(plan, s)) continue;
        if (plan->slots[from].death != s || source->fact.layout.block != 0) continue;
        plan->slots[from].root = find_root(plan, to);
    }
}

static tn_status add_copy(tn_planner *planner, uint32_t value, uint32_t output) {
    tn_plan *plan = planner->plan;
    const tn_fact fact = plan->slots[value].fact;
    const uint32_t copy = tn_planner_add_slot(planner, &fact);
    uint32_t *ids = tn_bump_array(&plan->bump, 2, sizeof *ids);
    tn_step *step = tn_planner_add_step(planner, TN_STEP_COPY);
    if (copy == TN_NO_VALUE || ids == NULL || step == NULL) return tn_planner_no_memory(planner);
    tn_plan_slot *slot = &plan->slots[copy];
    slot->fact.data = NULL;
    slot->fact.is_constant = false;
    ids[0] = value;
    ids[1] = copy;
    step->in = ids;
    step->in_count = 1;
    step->out = ids + 1;
    step->out_count = 1;
    plan->outputs[output] = (tn_plan_output){copy, true};
    plan->copy_count++;
    if (!tn_fact_is_sized(&fact)) {
        slot->place = TN_PLACE_DYNAMIC;
        slot->is_output = true;
        plan->dynamic_count++;
        return TN_OK;
    }
    slot->place = TN_PLACE_IO;
    slot->io_index = output;
    TN_TRY(tn_fact_size_bytes(&slot->fact, &slot->size_bytes, planner->err));
    plan->copy_bytes += slot->size_bytes;
    return TN_OK;
}

/* Output `output` takes the storage of `value` when it has one of its own that no other output
 * took; what is an input, a weight, a window, or taken already gets the one copy that is needed. */
static tn_status place_output(tn_planner *planner, uint32_t output, uint32_t value) {
    tn_plan *plan = planner->plan;
    const uint32_t root = find_root(plan, value);
    tn_plan_slot *slot = &plan->slots[root];
    const bool is_whole = plan->slots[value].root_offset == 0;
    if (slot->place == TN_PLACE_SLAB && is_whole) {
        size_t size_bytes = 0;
        TN_TRY(tn_fact_size_bytes(&plan->slots[value].fact, &size_bytes, planner->err));
        if (size_bytes == slot->size_bytes) {
            slot->place = TN_PLACE_IO;
            slot->io_index = output;
            plan->outputs[output] = (tn_plan_output){value, false};
            return TN_OK;
        }
    }
    if (slot->place == TN_PLACE_DYNAMIC && is_whole) {
        bool is_taken = false;
        for (uint32_t i = 0; i < output; i++) {
            is_taken = is_taken || find_root(plan, plan->outputs[i].value) == root;
        }
        if (!is_taken) {
            slot->is_output = true;
            plan->outputs[output] = (tn_plan_output){value, false};
            return TN_OK;
        }
    }
    return add_copy(planner, value, output);
}

static tn_status place_model_outputs(tn_planner *planner) {
    tn_plan *plan = planner->plan;
    const tn_ir_block *main_block = &planner->ir->blocks[planner->ir->main_block];
    plan->output_count = main_block->output_count;
    plan->outputs = tn_bump_array(&plan->bump, plan->output_count, sizeof *plan->outputs);
    if (plan->outputs == NULL) return tn_planner_no_memory(planner);
    for (uint32_t i = 0; i < plan->output_count; i++) {
        TN_TRY(place_output(planner, i, main_block->outputs[i]));
    }
    return TN_OK;
}

/* Another input that shares bytes with `from` other than index by index would be read after it was
 * overwritten. */
static bool others_overlap(tn_plan *plan, const tn_step *step, uint32_t input, uint32_t from) {
    for (uint32_t i = 0; i < step->in_count; i++) {
        if (i == input || step->in[i] == TN_NO_VALUE) continue;
        if (find_root(plan, step->in[i]) != from) continue;
        const tn_plan_slot *other = &plan->slots[step->in[i]];
        size_t size_bytes = 0;
        if (tn_fact_size_bytes(&other->fact, &size_bytes, NULL) != TN_OK) return true;
        if (other->root_offset != 0 || size_bytes != plan->slots[from].size_bytes) return true;
    }
    return false;
}

/* Output 0 over an input: only the last reader, same size and layout, never over a model input or
 * output, a weight, or a window of something larger; never from a dynamic step. */
static void merge_in_place(tn_planner *planner, uint32_t s) {
    tn_plan *plan = planner->plan;
    const tn_step *step = &plan->steps[s];
    if (step->kind != TN_STEP_KERNEL || step->is_dynamic || step->out_count == 0) return;
    const uint32_t mask = planner->ir->nodes[step->node].op->in_place_mask;
    if (mask == 0 || step->out[0] == TN_NO_VALUE) return;
    const uint32_t to = find_root(plan, step->out[0]);
    if (plan->slots[to].place != TN_PLACE_SLAB || plan->slots[to].birth != s) return;
    for (uint32_t i = 0; i < step->in_count && i < 32; i++) {
        if (((mask >> i) & 1u) == 0 || step->in[i] == TN_NO_VALUE) continue;
        const uint32_t from = find_root(plan, step->in[i]);
        const tn_plan_slot *source = &plan->slots[from];
        const tn_plan_slot *value = &plan->slots[step->in[i]];
        if (from == to || source->place != TN_PLACE_SLAB || source->death != s) continue;
        if (value->root_offset != 0 || source->size_bytes != plan->slots[to].size_bytes) continue;
        if (value->fact.layout.block != plan->slots[step->out[0]].fact.layout.block) continue;
        if (!tn_fact_is_sized(&value->fact) || others_overlap(plan, step, i, from)) continue;
        plan->slots[to].root = from;
        plan->slots[from].death = plan->slots[to].death;
        return;
    }
}

/* A branch result that is born twice cannot be judged by its first birth alone: it stays apart. */
static void merge_all_in_place(tn_planner *planner) {
    if (planner->options->disable_in_place || planner->options->disable_reuse) return;
    for (uint32_t s = 0; s < planner->plan->step_count; s++) merge_in_place(planner, s);
}

static tn_pack_item item_of(size_t size_bytes, uint32_t birth, uint32_t death) {
    return (tn_pack_item){tn_align_up(size_bytes, 64), birth, death, 0};
}

/* Intervals of the slab: values, then the scratch of every step. */
static tn_status pack_slab(tn_planner *planner) {
    tn_plan *plan = planner->plan;
    const size_t most = (size_t)plan->slot_count + plan->step_count + 1;
    tn_pack_item *items = tn_bump_array(&planner->scratch, most, sizeof *items);
    uint32_t *owners = tn_bump_array(&planner->scratch, most, sizeof *owners);
    if (items == NULL || owners == NULL) return tn_planner_no_memory(planner);
    size_t count = 0;
    for (uint32_t v = 0; v < plan->slot_count; v++) {
        const tn_plan_slot *slot = &plan->slots[v];
        if (slot->root != v || slot->place != TN_PLACE_SLAB || slot->birth == UINT32_MAX) continue;
        const bool keep = planner->options->disable_reuse;
        owners[count] = v;
        items[count++] = item_of(tn_size_max(slot->size_bytes, 1), keep ? 0 : slot->birth,
                                 keep ? plan->step_count : slot->death);
    }
    const size_t value_count = count;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const size_t scratch_bytes = plan->steps[s].scratch_bytes;
        if (scratch_bytes == 0) continue;
        plan->workspace_peak_bytes = tn_size_max(plan->workspace_peak_bytes, scratch_bytes);
        owners[count] = s;
        items[count++] = item_of(scratch_bytes, s, s);
    }
    TN_TRY(tn_pack_offsets(items, count, plan->step_count, &planner->scratch, &plan->slab_bytes,
                           &plan->lower_bound_bytes, &plan->peak_step, planner->err));
    for (size_t i = 0; i < value_count; i++) plan->slots[owners[i]].slab_offset = items[i].offset;
    for (size_t i = value_count; i < count; i++) {
        plan->steps[owners[i]].shared_scratch_offset = items[i].offset;
        plan->steps[owners[i]].worker_scratch_offset += items[i].offset;
    }
    return TN_OK;
}

/* Values whose address is that of an input or I/O block plus an offset: set at the start of a run.
 * Dynamic roots by the step after which nobody reads them. */
static tn_status list_late_and_releases(tn_planner *planner) {
    tn_plan *plan = planner->plan;
    plan->late = tn_bump_array(&plan->bump, plan->slot_count + 1u, sizeof *plan->late);
    plan->releases = tn_bump_array(&plan->bump, plan->dynamic_count + 1u, sizeof *plan->releases);
    uint32_t *next = tn_bump_array(&planner->scratch, plan->step_count + 2u, sizeof *next);
    if (plan->late == NULL || plan->releases == NULL || next == NULL) {
        return tn_planner_no_memory(planner);
    }
    for (uint32_t v = 0; v < plan->slot_count; v++) {
        const uint32_t root = find_root(plan, v);
        const tn_plan_slot *slot = &plan->slots[root];
        const bool follows = slot->place == TN_PLACE_INPUT || slot->place == TN_PLACE_IO;
        if (root != v && follows) plan->late[plan->late_count++] = v;
        const bool is_dynamic = root == v && slot->place == TN_PLACE_DYNAMIC;
        if (is_dynamic && slot->death < plan->step_count) plan->steps[slot->death].release_count++;
    }
    uint32_t first = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        plan->steps[s].release_first = first;
        next[s] = first;
        first += plan->steps[s].release_count;
    }
    for (uint32_t v = 0; v < plan->slot_count; v++) {
        const tn_plan_slot *slot = &plan->slots[v];
        if (slot->root != v || slot->place != TN_PLACE_DYNAMIC) continue;
        if (slot->death < plan->step_count) plan->releases[next[slot->death]++] = v;
    }
    return TN_OK;
}

/* Strings that a run makes: their bytes depend on data, though their number may be known. */
static bool makes_strings(const tn_plan *plan, uint32_t v) {
    const tn_plan_slot *slot = &plan->slots[v];
    return slot->root == v && slot->birth != UINT32_MAX && slot->fact.dtype == TN_DTYPE_STRING &&
           slot->place != TN_PLACE_INPUT && slot->place != TN_PLACE_CONSTANT;
}

static void sum_up(tn_plan *plan) {
    plan->is_complete = plan->dynamic_count == 0;
    for (uint32_t v = 0; v < plan->slot_count; v++) {
        tn_plan_slot *slot = &plan->slots[v];
        slot->dynamic_index = UINT32_MAX;
        const bool is_made = plan->slots[slot->root].birth != UINT32_MAX;
        if (is_made && !tn_fact_is_sized(&slot->fact)) {
            slot->dynamic_index = plan->dynamic_value_count++;
        }
        if (slot->root == v && slot->place == TN_PLACE_IO) plan->io_bytes += slot->size_bytes;
        if (makes_strings(plan, v)) plan->is_complete = false;
    }
}

tn_status tn_planner_place(tn_planner *planner) {
    measure_lives(planner);
    merge_branch_results(planner);
    TN_TRY(place_model_outputs(planner));
    measure_lives(planner);
    for (uint32_t i = 0; i < planner->plan->output_count; i++) {
        touch(planner->plan, planner->plan->outputs[i].value, planner->plan->step_count, false);
    }
    merge_all_in_place(planner);
    TN_TRY(pack_slab(planner));
    TN_TRY(list_late_and_releases(planner));
    sum_up(planner->plan);
    return TN_OK;
}
