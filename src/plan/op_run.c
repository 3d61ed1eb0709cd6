/* One node through all phases, on one thread. What it needs comes from the caller's memory, so that
 * folding, tests and custom calls account for it in their own way. */
#include "plan/op_run.h"

#include <string.h>

#include "base/checked_size.h"

typedef struct op_run {
    const tn_op_call *call;
    const tn_node_facts *node;
    void *values[2 * TN_OP_RUN_MAX_OPERANDS];
    uint32_t in[TN_OP_RUN_MAX_OPERANDS];
    uint32_t out[TN_OP_RUN_MAX_OPERANDS];
    tn_error errors[TN_OP_RUN_MAX_WORKERS];
} op_run;

static uint32_t worker_count_of(const tn_op_call *call) {
    if (call->worker_count == 0) return 1;
    return call->worker_count < TN_OP_RUN_MAX_WORKERS ? call->worker_count : TN_OP_RUN_MAX_WORKERS;
}

const tn_variant *tn_variant_cheapest_plain(const tn_variant *variants, uint32_t count) {
    const tn_variant *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const tn_variant *variant = &variants[i];
        if (variant->input_layout.block != 0 || variant->output_layout.block != 0) continue;
        if (best == NULL || variant->cost_ns < best->cost_ns) best = variant;
    }
    return best;
}

tn_status tn_op_check_types(const tn_node_facts *node, tn_error *err) {
    const tn_op_def *op = node->op;
    tn_dtype shared = TN_DTYPE_NONE;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const tn_fact *input = node->inputs[i];
        if (input == NULL || input->dtype == TN_DTYPE_NONE) continue;
        if (input->kind != TN_KIND_TENSOR && input->kind != TN_KIND_UNKNOWN) continue;
        if (op->input_types != NULL) {
            const uint32_t slot =
                i < op->input_types_count ? i : (uint32_t)op->input_types_count - 1;
            TN_REQUIRE(((op->input_types[slot] >> input->dtype) & 1u) != 0, err, TN_UNSUPPORTED,
                       "%s (opset %lld) does not take %s as input %u", op->name,
                       (long long)node->opset, tn_dtype_name(input->dtype), i);
        }
        const uint32_t bit = i < 32 ? 1u << i : 1u << 31;
        if ((op->same_type_mask & bit) == 0) continue;
        if (shared == TN_DTYPE_NONE) shared = input->dtype;
        TN_REQUIRE(shared == input->dtype, err, TN_INVALID_MODEL,
                   "input %u is %s where an earlier one is %s", i, tn_dtype_name(input->dtype),
                   tn_dtype_name(shared));
    }
    return TN_OK;
}

static tn_status get_memory(const op_run *run, size_t size_bytes, void **out, tn_error *err) {
    const tn_op_memory *memory = &run->call->memory;
    *out = memory->get(memory->ctx, size_bytes == 0 ? 1 : size_bytes);
    TN_REQUIRE(*out != NULL, err, TN_OUT_OF_MEMORY, "%s needs %zu bytes", run->node->op->name,
               size_bytes);
    return TN_OK;
}

static tn_status check_output_limit(const op_run *run, size_t size_bytes, tn_error *err) {
    const size_t limit_bytes = run->call->output_limit_bytes;
    TN_REQUIRE(limit_bytes == 0 || size_bytes <= limit_bytes, err, TN_LIMIT,
               "%s would make %zu bytes, more than the %zu allowed here", run->node->op->name,
               size_bytes, limit_bytes);
    return TN_OK;
}

static tn_status make_output(tn_kernel_context *ctx, uint32_t slot, tn_dtype dtype,
                             const tn_shape *shape, void **out_data) {
    op_run *run = ctx->runtime;
    tn_error *err = tn_kernel_error(ctx, 0);
    size_t size_bytes = 0;
    TN_TRY(tn_shape_size_bytes(shape, dtype, &size_bytes, err));
    TN_TRY(check_output_limit(run, size_bytes, err));
    TN_TRY(get_memory(run, size_bytes, out_data, err));
    tn_fact *fact = run->node->outputs[slot];
    fact->kind = TN_KIND_TENSOR;
    fact->dtype = dtype;
    fact->shape = *shape;
    fact->data = *out_data;
    run->values[TN_OP_RUN_MAX_OPERANDS + slot] = *out_data;
    return TN_OK;
}

static tn_status make_temporary(tn_kernel_context *ctx, size_t size_bytes, void **out_data) {
    return get_memory(ctx->runtime, size_bytes, out_data, tn_kernel_error(ctx, 0));
}

/* Fills the value table: inputs as given (packed where the variant wants it), outputs new. */
static tn_status place_operands(op_run *run, const tn_variant *variant, tn_error *err) {
    const tn_node_facts *node = run->node;
    for (uint32_t i = 0; i < TN_OP_RUN_MAX_OPERANDS; i++) {
        run->in[i] = TN_NO_VALUE; /* kernels may ask for optional ones beyond the lists */
        run->out[i] = TN_NO_VALUE;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const tn_fact *input = node->inputs[i];
        run->in[i] = input == NULL ? TN_NO_VALUE : i;
        run->values[i] = input == NULL ? NULL : (void *)(uintptr_t)input->data;
    }
    if (variant->pack_format != 0) {
        const tn_pack_context pack = {node, variant, run->call->cpu, err};
        size_t size_bytes = 0;
        TN_TRY(node->op->pack_size(&pack, &size_bytes));
        TN_TRY(get_memory(run, size_bytes, &run->values[variant->pack_input], err));
        TN_TRY(node->op->pack(&pack, run->values[variant->pack_input]));
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        tn_fact *output = node->outputs[i];
        run->out[i] = output == NULL ? TN_NO_VALUE : TN_OP_RUN_MAX_OPERANDS + i;
        if (output == NULL || !tn_fact_is_sized(output)) continue;
        size_t size_bytes = 0;
        TN_TRY(tn_fact_size_bytes(output, &size_bytes, err));
        TN_TRY(check_output_limit(run, size_bytes, err));
        void **data = &run->values[TN_OP_RUN_MAX_OPERANDS + i];
        TN_TRY(get_memory(run, size_bytes, data, err));
        output->data = *data;
    }
    return TN_OK;
}

static tn_status run_tiles(op_run *run, const tn_variant *variant, const void *record,
                           tn_error *err) {
    const uint32_t worker_count = worker_count_of(run->call);
    const size_t stride = tn_align_up(variant->worker_scratch_bytes, 64);
    void *shared = NULL;
    void *scratch = NULL;
    TN_TRY(get_memory(run, variant->shared_scratch_bytes, &shared, err));
    TN_TRY(get_memory(run, stride * worker_count, &scratch, err));
    tn_kernel_context ctx = {.values = run->values,
                             .in = run->in,
                             .out = run->out,
                             .shared_scratch = shared,
                             .worker_scratch = scratch,
                             .worker_scratch_stride = stride,
                             .errors = run->errors,
                             .runtime = run,
                             .make_output = make_output,
                             .make_temporary = make_temporary};
    const uint32_t phase_count = variant->phase_count == 0 ? 1 : variant->phase_count;
    for (ctx.phase = 0; ctx.phase < phase_count; ctx.phase++) {
        const uint32_t tiles =
            variant->tile_counts[ctx.phase] == 0 ? 1 : variant->tile_counts[ctx.phase];
        for (uint32_t tile = 0; tile < tiles; tile++) {
            const uint32_t worker = tile % worker_count;
            const tn_status status = variant->run(record, &ctx, tile, tile + 1, worker);
            if (status != TN_OK) {
                if (err != NULL) *err = run->errors[worker];
                return status;
            }
        }
    }
    return TN_OK;
}

/* Output 0 as input 0's bytes, when the row says that this is all there is to do. */
static bool take_view(const tn_node_facts *node) {
    const tn_fact *input = tn_node_input(node, 0);
    tn_fact *output = tn_node_output(node, 0);
    if ((node->op->flags & TN_OP_VIEW) == 0 || input == NULL || output == NULL) return false;
    if (node->output_count > 1 && node->outputs[1] != NULL) return false;
    if (!tn_fact_is_sized(output)) return false;
    output->data = input->data;
    return true;
}

static tn_status choose_variant(const tn_op_call *call, tn_variant *out, tn_error *err) {
    tn_variant variants[TN_MAX_VARIANTS];
    memset(variants, 0, sizeof variants);
    uint32_t count = 0;
    const tn_variant_query query = {.node = call->node,
                                    .cpu = call->cpu,
                                    .worker_count = worker_count_of(call),
                                    .scratch_limit_bytes = SIZE_MAX,
                                    .preferred_block = 0,
                                    .epilogue = NULL};
    TN_TRY(call->node->op->variants(&query, variants, &count, err));
    const tn_variant *chosen = NULL;
    if (call->variant_index < 0) {
        chosen = tn_variant_cheapest_plain(variants, count);
    } else if ((uint32_t)call->variant_index < count) {
        chosen = &variants[call->variant_index];
    }
    TN_REQUIRE(chosen != NULL, err, TN_OUT_OF_RANGE, "%s has %u variants, none is number %d",
               call->node->op->name, count, (int)call->variant_index);
    *out = *chosen;
    return TN_OK;
}

tn_status tn_op_run(const tn_op_call *call, tn_error *err) {
    const tn_node_facts *node = call->node;
    op_run run; /* left unset: operands and errors are written before they are read */
    run.call = call;
    run.node = node;
    TN_REQUIRE(
        node->input_count <= TN_OP_RUN_MAX_OPERANDS && node->output_count <= TN_OP_RUN_MAX_OPERANDS,
        err, TN_OUT_OF_RANGE, "%s has %u inputs, at most %d run alone", node->op->name,
        node->input_count, TN_OP_RUN_MAX_OPERANDS);
    TN_TRY(tn_op_check_types(node, err));
    TN_TRY(node->op->infer(node, err));
    if (take_view(node)) return TN_OK;

    tn_variant variant;
    TN_TRY(choose_variant(call, &variant, err));
    const tn_bind_context bind = {.node = node,
                                  .variant = &variant,
                                  .cpu = call->cpu,
                                  .worker_count = worker_count_of(call),
                                  .err = err};
    const void *record = node->params;
    if (node->op->bind != NULL) {
        const size_t record_bytes =
            node->op->record_size != NULL ? node->op->record_size(&bind) : node->op->record_bytes;
        void *fresh = NULL;
        TN_TRY(get_memory(&run, record_bytes, &fresh, err));
        memset(fresh, 0, record_bytes);
        TN_TRY(node->op->bind(&bind, fresh));
        record = fresh;
    }
    TN_TRY(place_operands(&run, &variant, err));
    return run_tiles(&run, &variant, record, err);
}
