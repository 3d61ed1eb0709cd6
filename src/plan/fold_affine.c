/* Scale and shift per channel behind a convolution become part of its weights and bias: batch
 * normalisation, and multiplications and additions by constants of one number per channel.
 * Reassociates: (w x) s is computed as (w s) x. */
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "plan/constant.h"
#include "plan/passes.h"
#include "plan/program.h"

typedef struct affine {
    float *scale; /* [channels] */
    float *shift;
    size_t channels;
} affine;

/* Constant f32 contents of `count` elements (SIZE_MAX: any number): inference has not looked at
 * weights and bias when the rank of the input is not known. */
static bool is_known(const tn_fact *fact, size_t count) {
    if (!fact->is_constant || fact->data == NULL || fact->dtype != TN_DTYPE_F32) return false;
    return count == SIZE_MAX || tn_fact_len_elems(fact) == count;
}

/* The node that makes `value` when folding into it is possible: linear, f32, constant weights, and
 * nobody else reads its result. */
static uint32_t find_target(const tn_ir *ir, uint32_t value) {
    if (value == TN_NO_VALUE || ir->values[value].role != TN_IR_NODE) return TN_NO_NODE;
    if (ir->values[value].use_count != 1) return TN_NO_NODE;
    const uint32_t index = ir->values[value].producer;
    const tn_ir_node *node = &ir->nodes[index];
    const uint8_t weight = node->op->affine_weight_input;
    if (node->is_dead || weight == 0 || node->epilogue != NULL) return TN_NO_NODE;
    if (weight >= node->input_count || node->inputs[weight] == TN_NO_VALUE) return TN_NO_NODE;
    const tn_fact *weights = &ir->values[node->inputs[weight]].fact;
    if (!is_known(weights, SIZE_MAX) || weights->shape.rank < 1) return TN_NO_NODE;
    const uint8_t bias = node->op->affine_bias_input;
    if (bias < node->input_count && node->inputs[bias] != TN_NO_VALUE &&
        !is_known(&ir->values[node->inputs[bias]].fact, (size_t)weights->shape.dims[0])) {
        return TN_NO_NODE;
    }
    return index;
}

/* One number per channel, or one for all: [C, 1, 1] against [N, C, H, W]. */
static bool read_channel_constant(const tn_fact *fact, int32_t rank, size_t channels, float *out) {
    if (fact == NULL || !fact->is_constant || fact->data == NULL) return false;
    if (fact->dtype != TN_DTYPE_F32 || fact->shape.rank > rank) return false;
    const size_t count = tn_fact_len_elems(fact);
    for (int32_t i = 0; i < fact->shape.rank; i++) {
        const int32_t axis = i + rank - fact->shape.rank;
        if (axis != 1 && fact->shape.dims[i] != 1) return false;
    }
    if (count != 1 && count != channels) return false;
    for (size_t c = 0; c < channels; c++) {
        const size_t at = count == 1 ? 0 : c;
        memcpy(&out[c], (const char *)fact->data + at * sizeof *out, sizeof *out);
    }
    return true;
}

/* x * c, x + c, x - c and x / c; c + x and c * x as well. */
static bool read_binary(const tn_ir *ir, const tn_ir_node *node, uint32_t variable,
                        const affine *out) {
    const uint16_t body = node->op->body;
    const bool is_affine = body == TN_BODY_MUL || body == TN_BODY_ADD ||
                           ((body == TN_BODY_SUB || body == TN_BODY_DIV) && variable == 0);
    if (!is_affine || node->input_count != 2) return false;
    const int32_t rank = ir->values[node->inputs[variable]].fact.shape.rank;
    const uint32_t constant = node->inputs[1 - variable];
    float *numbers = body == TN_BODY_MUL || body == TN_BODY_DIV ? out->scale : out->shift;
    if (rank < 3 || constant == TN_NO_VALUE) return false;
    if (!read_channel_constant(&ir->values[constant].fact, rank, out->channels, numbers)) {
        return false;
    }
    for (size_t c = 0; c < out->channels; c++) {
        if (body == TN_BODY_MUL || body == TN_BODY_DIV) {
            out->shift[c] = 0;
            if (body == TN_BODY_DIV) out->scale[c] = 1 / out->scale[c];
        } else {
            out->scale[c] = 1;
            if (body == TN_BODY_SUB) out->shift[c] = -out->shift[c];
        }
    }
    return true;
}

static uint32_t add_weight(tn_ir *ir, tn_text name, const tn_shape *shape, float *data) {
    const uint32_t id = tn_ir_add_value(ir, name, TN_IR_CONSTANT);
    if (id == TN_NO_VALUE) return id;
    ir->values[id].fact = (tn_fact){.kind = TN_KIND_TENSOR,
                                    .dtype = TN_DTYPE_F32,
                                    .shape = *shape,
                                    .data = data,
                                    .is_constant = true};
    ir->values[id].is_inner_constant = true;
    ir->values[id].use_count = 1;
    return id;
}

/* New weights w[c] * scale[c] and bias b[c] * scale[c] + shift[c] for node `index`. */
static tn_status scale_node(tn_ir *ir, uint32_t index, const affine *by, tn_error *err) {
    const tn_ir_node *node = &ir->nodes[index];
    const uint32_t weight = node->inputs[node->op->affine_weight_input];
    const uint8_t bias_input = node->op->affine_bias_input;
    const tn_shape shape = ir->values[weight].fact.shape;
    const size_t count = tn_fact_len_elems(&ir->values[weight].fact);
    const size_t per_channel = count / by->channels;
    float *weights = tn_bump_array(&ir->data, count, sizeof *weights);
    float *bias = tn_bump_array(&ir->data, by->channels, sizeof *bias);
    if (weights == NULL || bias == NULL) return tn_ir_no_memory(ir, err);
    memcpy(weights, ir->values[weight].fact.data, count * sizeof *weights);
    for (size_t i = 0; i < count; i++) weights[i] *= by->scale[i / per_channel];
    const bool has_bias = bias_input < node->input_count && node->inputs[bias_input] != TN_NO_VALUE;
    if (has_bias) {
        memcpy(bias, ir->values[node->inputs[bias_input]].fact.data, by->channels * sizeof *bias);
    }
    for (size_t c = 0; c < by->channels; c++) bias[c] = bias[c] * by->scale[c] + by->shift[c];
    if (ir->values[weight].tensor != NULL && ir->values[weight].use_count == 1) {
        tn_model_drop_tensor(ir->model, ir->values[weight].tensor);
    }
    const tn_text name = ir->values[weight].name;
    const tn_shape bias_shape = {1, {(int64_t)by->channels}};
    const uint32_t new_weight = add_weight(ir, name, &shape, weights);
    const uint32_t new_bias = add_weight(ir, name, &bias_shape, bias);
    if (new_weight == TN_NO_VALUE || new_bias == TN_NO_VALUE) return tn_ir_no_memory(ir, err);
    if (bias_input >= ir->nodes[index].input_count &&
        !tn_ir_grow_inputs(ir, index, bias_input + 1u)) {
        return tn_ir_no_memory(ir, err);
    }
    ir->nodes[index].inputs[ir->nodes[index].op->affine_weight_input] = new_weight;
    ir->nodes[index].inputs[bias_input] = new_bias;
    return TN_OK;
}

/* The target makes the affine node's output itself from now on. */
static void take_output(tn_ir *ir, uint32_t target, tn_ir_node *absorbed) {
    const uint32_t value = absorbed->outputs[0];
    ir->values[ir->nodes[target].outputs[0]].use_count = 0;
    ir->nodes[target].outputs[0] = value;
    ir->values[value].producer = target;
    absorbed->is_dead = true;
}

static bool read_affine(tn_ir *ir, uint32_t index, uint32_t variable, const affine *out) {
    const tn_ir_node *node = &ir->nodes[index];
    const tn_fact *inputs[8];
    tn_fact *outputs[8];
    tn_node_facts facts;
    if (node->op->as_affine == NULL) return read_binary(ir, node, variable, out);
    if (variable != 0 || node->input_count > 8 || node->output_count > 8) return false;
    tn_ir_node_facts(ir, index, inputs, outputs, &facts);
    return node->op->as_affine(&facts, out->channels, out->scale, out->shift);
}

/* Whether output 0 is the only one that anybody reads. */
static bool has_one_result(const tn_ir *ir, const tn_ir_node *node) {
    for (uint32_t i = 1; i < node->output_count; i++) {
        if (node->outputs[i] != TN_NO_VALUE && ir->values[node->outputs[i]].use_count > 0) {
            return false;
        }
    }
    return node->output_count > 0 && node->outputs[0] != TN_NO_VALUE;
}

/* A division by zero gives infinities where the folded weights would give NaN. */
static bool is_finite(const affine *by) {
    for (size_t c = 0; c < by->channels; c++) {
        if (!isfinite(by->scale[c]) || !isfinite(by->shift[c])) return false;
    }
    return true;
}

static tn_status try_node(tn_ir *ir, uint32_t index, tn_bump *scratch, bool *out_changed,
                          tn_error *err) {
    const bool is_candidate =
        ir->nodes[index].op->as_affine != NULL || ir->nodes[index].op->body != TN_BODY_NONE;
    if (!is_candidate || ir->nodes[index].input_count == 0) return TN_OK;
    if (ir->nodes[index].epilogue != NULL || !has_one_result(ir, &ir->nodes[index])) return TN_OK;
    for (uint32_t variable = 0; variable < 2 && variable < ir->nodes[index].input_count;
         variable++) {
        const uint32_t target = find_target(ir, ir->nodes[index].inputs[variable]);
        if (target == TN_NO_NODE) continue;
        const tn_ir_node *linear = &ir->nodes[target];
        const uint32_t weight = linear->inputs[linear->op->affine_weight_input];
        affine by = {.channels = (size_t)ir->values[weight].fact.shape.dims[0]};
        if (by.channels == 0) continue;
        tn_bump_reset(scratch);
        by.scale = tn_bump_array(scratch, by.channels, sizeof *by.scale);
        by.shift = tn_bump_array(scratch, by.channels, sizeof *by.shift);
        if (by.scale == NULL || by.shift == NULL) return tn_ir_no_memory(ir, err);
        if (!read_affine(ir, index, variable, &by) || !is_finite(&by)) continue;
        TN_TRY(scale_node(ir, target, &by, err));
        take_output(ir, target, &ir->nodes[index]);
        *out_changed = true;
        return TN_OK;
    }
    return TN_OK;
}

tn_status tn_pass_fold_affine(tn_ir *ir, const tn_pass_options *options, tn_error *err) {
    if (options->disable_fusion || options->exact_only) return TN_OK;
    tn_bump scratch = {.allocator = ir->bump.allocator};
    tn_status status = TN_OK;
    bool changed = false;
    for (uint32_t b = 0; b < ir->block_count && status == TN_OK; b++) {
        for (uint32_t i = 0; i < ir->blocks[b].node_count && status == TN_OK; i++) {
            const uint32_t index = ir->blocks[b].nodes[i];
            if (!ir->nodes[index].is_dead) status = try_node(ir, index, &scratch, &changed, err);
        }
    }
    tn_bump_deinit(&scratch);
    if (status == TN_OK && changed) tn_ir_remove_dead(ir);
    return status;
}
