/* The functions that rows of elementwise operators share.
 *
 * A node with more than two inputs of one kind (Max, Sum ...) is a chain of binary steps, done tile
 * by tile so that the running result stays in the cache; the output itself carries it. Over a
 * blocked layout the physical elements are one long run; lanes beyond the channels are set to zero
 * again afterwards, since not every body maps zero to zero. */
#include "kernels/elementwise/elementwise.h"

#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "kernels/elementwise/elementwise_isa.h"

/* Elements of a tile: about 15 us or more on one thread. */
#define TILE_LIGHT ((size_t)65536)
#define TILE_HEAVY ((size_t)16384)
#define TILE_LANES ((size_t)2048)
/* Part of a tile in which a chain of binary steps goes on from step to step. */
#define CHAIN_ELEMS ((size_t)4096)

typedef struct elementwise_record {
    tn_loop_fn loop;
    tn_loop_fn inner;
    size_t len; /* physical elements of the output */
    size_t tile_elems;
    uint32_t input_count;
    uint32_t step_count; /* broadcasts: 1, or input_count - 1 for chains */
    tn_dtype types[2];
    float params[TN_BODY_MAX_PARAMS];
    bool nontemporal;
    bool reads_bounds; /* Clip: params are replaced by inputs 1 and 2 */
    tn_loop_fn finish; /* Mean: divides by `divisor`; else NULL */
    tn_loop_fn finish_inner;
    union {
        float f32;
        double f64;
        uint16_t f16;
    } divisor;
    bool passes_rest; /* inputs beyond the broadcast's go to the loop as they are */
    /* Lanes to set to zero: the last `pad_lanes` of each block in the last channel block. */
    size_t pad_lanes, block, blocks, spatial;
    tn_broadcast steps[];
} elementwise_record;

uint32_t tn_elementwise_body(const tn_op_def *op, const void *params) {
    const tn_elementwise_params *own = params;
    return own != NULL && own->body != 0 ? own->body : op->body;
}

static uint32_t shapes_of(const tn_node_facts *node) {
    const tn_elementwise_params *params = node->params;
    return params->shapes;
}

/* ---- check and infer ---- */

tn_status tn_elementwise_check_legacy(const tn_check_context *ctx, void *params) {
    tn_elementwise_params *own = params;
    int64_t broadcast = 0;
    int64_t axis = 0;
    TN_TRY(tn_check_int(ctx, "broadcast", 0, &broadcast));
    TN_TRY(tn_check_int(ctx, "axis", INT64_MIN, &axis));
    own->shapes = broadcast == 0 ? TN_SHAPES_EQUAL : TN_SHAPES_LEGACY_END;
    if (broadcast != 0 && axis != INT64_MIN) {
        own->shapes = TN_SHAPES_LEGACY_AXIS;
        own->axis = axis;
    }
    return TN_OK;
}

/* Where input 1 begins in input 0's dims, or -1 when it ends where that ends. */
static tn_status find_shift(const tn_node_facts *node, int32_t *out_shift, tn_error *err) {
    const tn_elementwise_params *params = node->params;
    const tn_fact *a = tn_node_input(node, 0);
    const tn_fact *b = tn_node_input(node, 1);
    *out_shift = -1;
    if (a == NULL || b == NULL) return TN_OK;
    if (params->shapes == TN_SHAPES_CHANNEL) {
        const bool is_channels = b->shape.rank == 1 && a->shape.rank > 1 && b->shape.dims[0] != 1;
        if (is_channels) *out_shift = 1;
    } else if (params->shapes == TN_SHAPES_LEGACY_AXIS) {
        TN_TRY(tn_infer_axis(params->axis, a->shape.rank, out_shift, err));
    }
    return TN_OK;
}

/* Input 1 must fit into input 0 without widening it. */
static tn_status check_one_way(const tn_node_facts *node, const tn_shape *a, const tn_shape *b,
                               tn_error *err) {
    char text_a[160];
    char text_b[160];
    int32_t shift = -1;
    if (a->rank < 0 || b->rank < 0) return TN_OK;
    TN_TRY(find_shift(node, &shift, err));
    if (shift < 0) shift = a->rank - b->rank;
    const bool equal_only = shapes_of(node) == TN_SHAPES_EQUAL;
    bool fits = shift >= 0 && shift + b->rank <= a->rank && (!equal_only || a->rank == b->rank);
    for (int32_t i = 0; fits && i < b->rank; i++) {
        const int64_t dim_a = a->dims[i + shift];
        const int64_t dim_b = b->dims[i];
        fits = dim_a == dim_b || dim_a < 0 || dim_b < 0 || (dim_b == 1 && !equal_only);
    }
    TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT, "shape %s does not broadcast into %s",
               tn_shape_text(b, text_b, sizeof text_b), tn_shape_text(a, text_a, sizeof text_a));
    return TN_OK;
}

static tn_status check_scalars(const tn_node_facts *node, tn_error *err) {
    char text[160];
    for (uint32_t i = 1; i < node->input_count; i++) {
        const tn_fact *input = node->inputs[i];
        if (input == NULL || !tn_fact_is_sized(input)) continue;
        TN_REQUIRE(tn_fact_len_elems(input) == 1, err, TN_INVALID_ARGUMENT,
                   "input %u has shape %s, expected one value", i,
                   tn_shape_text(&input->shape, text, sizeof text));
    }
    return TN_OK;
}

static tn_status infer_shape(const tn_node_facts *node, tn_shape *out, tn_error *err) {
    const tn_fact *first = tn_node_input(node, 0);
    out->rank = TN_RANK_UNKNOWN;
    if (first == NULL) return TN_OK;
    *out = first->shape;
    switch (shapes_of(node)) {
        case TN_SHAPES_SCALARS:
            return check_scalars(node, err);
        case TN_SHAPES_NUMPY:
            for (uint32_t i = 1; i < node->input_count; i++) {
                if (node->inputs[i] == NULL) continue;
                TN_TRY(tn_infer_broadcast(out, &node->inputs[i]->shape, out, err));
            }
            return TN_OK;
        default: {
            const tn_fact *second = tn_node_input(node, 1);
            if (second == NULL) return TN_OK;
            return check_one_way(node, &first->shape, &second->shape, err);
        }
    }
}

static tn_status infer(const tn_node_facts *node, tn_dtype dtype, tn_error *err) {
    tn_fact *output = tn_node_output(node, 0);
    if (output == NULL) return TN_OK;
    output->kind = TN_KIND_TENSOR;
    output->dtype = dtype;
    return infer_shape(node, &output->shape, err);
}

tn_status tn_elementwise_infer(const tn_node_facts *node, tn_error *err) {
    /* Where: the type is that of the values */
    const uint32_t typed = node->op->body == TN_BODY_WHERE ? 1 : 0;
    const tn_fact *input = tn_node_input(node, typed);
    return infer(node, input == NULL ? TN_DTYPE_NONE : input->dtype, err);
}

tn_status tn_elementwise_infer_bool(const tn_node_facts *node, tn_error *err) {
    return infer(node, TN_DTYPE_BOOL, err);
}

/* ---- fusion ---- */

static float read_bound(const void *data, tn_dtype dtype);

/* Bounds of Clip that are inputs must be known to become params. */
static bool describe_bounds(const tn_node_facts *node, tn_body_use *out) {
    for (uint32_t i = 1; i < node->input_count; i++) {
        const tn_fact *input = node->inputs[i];
        if (input == NULL) continue;
        if (!input->is_constant || input->data == NULL || !tn_fact_is_sized(input)) return false;
        if (tn_fact_len_elems(input) != 1) return false;
        out->params[i - 1] = read_bound(input->data, TN_DTYPE_F32);
    }
    return true;
}

bool tn_elementwise_describe(const tn_node_facts *node, tn_body_use *out) {
    const tn_elementwise_params *params = node->params;
    const uint32_t body = tn_elementwise_body(node->op, params);
    if (body >= TN_BODY_PROGRAM_END || params->is_mean) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != NULL && node->inputs[i]->dtype != TN_DTYPE_F32) return false;
    }
    out->body = (uint16_t)body;
    out->input_count = node->input_count;
    memcpy(out->params, params->values, sizeof out->params);
    switch (params->shapes) {
        case TN_SHAPES_SCALARS:
            out->input_count = 1;
            return describe_bounds(node, out);
        case TN_SHAPES_NUMPY:
        case TN_SHAPES_ONE_WAY:
        case TN_SHAPES_EQUAL:
        case TN_SHAPES_LEGACY_END:
            return true;
        default:
            return false;
    }
}

/* ---- variants ---- */

#define TILE_OF_BODY(name, params, weight) [TN_BODY_##name] = TILE_##weight,
static size_t tile_elems(uint32_t body, tn_dtype dtype) {
    static const size_t tiles[TN_BODY_COUNT] = {TN_UNARY_BODY_LIST(
        TILE_OF_BODY) TN_BINARY_BODY_LIST(TILE_OF_BODY) TN_LOOP_BODY_LIST(TILE_OF_BODY)};
    const size_t own = tiles[body];
    if (dtype == TN_DTYPE_F32 || own == TILE_LANES) return own;
    if (tn_dtype_bits(dtype) <= 16 && own == TILE_LIGHT) return TILE_HEAVY;
    return own == TILE_HEAVY ? TILE_LANES : own;
}

static bool same_shape(const tn_shape *a, const tn_shape *b) {
    return a->rank == b->rank && a->rank >= 0 &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* Whether a plain input that is not of full size can meet blocks of the output: it is constant
 * along space, and along the channels constant or a whole number of blocks. */
static bool meets_blocks(const tn_shape *output, const tn_shape *input, uint16_t block) {
    for (int32_t i = 0; i < input->rank; i++) {
        const int32_t axis = i + output->rank - input->rank;
        if (axis < 0) return false;
        if (axis == 1 && input->dims[i] != 1 &&
            (input->dims[i] < 0 || input->dims[i] % block != 0)) {
            return false;
        }
        if (axis > 1 && input->dims[i] != 1) return false;
    }
    return input->rank >= 0;
}

/* Inputs that would be blocked together with the output; 0 when the node cannot run on blocks. */
static uint32_t blocked_inputs(const tn_node_facts *node, uint16_t block) {
    const tn_fact *output = tn_node_output(node, 0);
    uint32_t mask = 0;
    if (output == NULL || output->shape.rank < 2 || block == 0) return 0;
    if (output->dtype != TN_DTYPE_F32) return 0;
    const uint32_t shapes = shapes_of(node);
    if (shapes != TN_SHAPES_NUMPY && shapes != TN_SHAPES_ONE_WAY && shapes != TN_SHAPES_SCALARS) {
        return 0;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NULL) continue;
        if (shapes == TN_SHAPES_SCALARS && i > 0) break;
        if (i < 32 && same_shape(&node->inputs[i]->shape, &output->shape)) {
            mask |= 1u << i;
        } else if (!meets_blocks(&output->shape, &node->inputs[i]->shape, block)) {
            return 0;
        }
    }
    return mask;
}

static size_t physical_elems(const tn_fact *output, uint16_t block) {
    tn_fact blocked = *output;
    if (!tn_fact_is_sized(output)) return 0;
    if (block != 0) blocked.shape.dims[1] = (blocked.shape.dims[1] + block - 1) / block * block;
    return tn_fact_len_elems(&blocked);
}

static void fill_variant(const tn_variant_query *query, const char *name, uint16_t block,
                         double ns_per_elem, tn_variant *out) {
    const tn_node_facts *node = query->node;
    const tn_fact *output = tn_node_output(node, 0);
    const tn_fact *input = tn_node_input(node, 0);
    const uint32_t body = tn_elementwise_body(node->op, node->params);
    const size_t len = output == NULL ? 0 : physical_elems(output, block);
    const size_t tile = tile_elems(body, input == NULL ? TN_DTYPE_NONE : input->dtype);
    out->name = name;
    out->tile_counts[0] = (uint32_t)((len + tile - 1) / tile);
    out->cost_ns = 20.0 + (double)len * ns_per_elem;
    if (block == 0) return;
    out->input_layout.block = block;
    out->output_layout.block = block;
    out->layout_input_mask = blocked_inputs(node, block);
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker);

static uint16_t block_of_inputs(const tn_node_facts *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != NULL && node->inputs[i]->layout.block != 0) {
            return node->inputs[i]->layout.block;
        }
    }
    return 0;
}

tn_status tn_elementwise_variants(const tn_variant_query *query, tn_variant *out,
                                  uint32_t *out_count, tn_error *err) {
    (void)err;
    const tn_program_isa *const isas[] = {
        &tn_program_portable,
#if defined(__x86_64__)
        &tn_program_avx2,
        &tn_program_avx512
#endif
    };
    static const tn_cpu_features needs[] = {0, TN_CPU_AVX2, TN_CPU_AVX512};
    uint16_t block = block_of_inputs(query->node);
    if (block == 0) block = query->preferred_block;
    if (blocked_inputs(query->node, block) == 0) block = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < TN_COUNTOF(isas); i++) {
        if ((query->cpu & needs[i]) != needs[i]) continue;
        const double ns_per_elem = 0.8 / (double)(1u << i);
        fill_variant(query, isas[i]->name, 0, ns_per_elem, &out[count]);
        out[count++].run = run;
        if (block == 0) continue;
        fill_variant(query, isas[i]->name, block, ns_per_elem, &out[count]);
        out[count++].run = run;
    }
    *out_count = count;
    return TN_OK;
}

static const tn_program_isa *isa_of(const tn_variant *variant) {
#if defined(__x86_64__)
    if (variant->name == tn_program_avx512.name) return &tn_program_avx512;
    if (variant->name == tn_program_avx2.name) return &tn_program_avx2;
#endif
    return &tn_program_portable;
}

/* ---- bind ---- */

static uint32_t step_count(const tn_node_facts *node) {
    const bool is_chain = node->op->max_inputs == TN_VARIADIC && node->input_count > 2;
    return is_chain ? node->input_count - 1 : 1;
}

size_t tn_elementwise_record_size(const tn_bind_context *ctx) {
    return sizeof(elementwise_record) + step_count(ctx->node) * sizeof(tn_broadcast);
}

/* Shape in physical order: [N, C, spatial...] in blocks is [N, blocks, spatial..., lanes]. Inputs
 * that are plain have whole blocks or one value there (meets_blocks). */
static tn_shape physical_shape(const tn_shape *shape, int32_t rank, uint16_t block) {
    tn_shape physical = {.rank = rank};
    for (int32_t i = 0; i < rank; i++) {
        const int32_t axis = i - (rank - shape->rank);
        physical.dims[i] = axis < 0 ? 1 : shape->dims[axis];
    }
    if (block == 0 || rank < 2) return physical;
    const int64_t channels = physical.dims[1];
    const bool is_one = channels == 1;
    physical.dims[1] = is_one ? 1 : (channels + block - 1) / block;
    physical.dims[physical.rank++] = is_one ? 1 : block;
    return physical;
}

static void bind_padding(const tn_fact *output, uint16_t block, elementwise_record *record) {
    if (block == 0) return;
    const size_t channels = (size_t)output->shape.dims[1];
    record->block = block;
    record->blocks = (channels + block - 1) / block;
    record->pad_lanes = record->blocks * block - channels;
    record->spatial = 1;
    for (int32_t d = 2; d < output->shape.rank; d++) {
        record->spatial *= (size_t)output->shape.dims[d];
    }
}

static uint8_t element_bytes(tn_dtype dtype) {
    return (uint8_t)(tn_dtype_bits(dtype) / 8);
}

/* The shapes of one step in physical order. `full` is blocked even when it has one channel. */
static void bind_step(const tn_node_facts *node, uint16_t block, uint32_t step, int32_t shift,
                      tn_broadcast *out) {
    const tn_fact *output = node->outputs[0];
    const bool is_chain = step_count(node) > 1;
    const int32_t rank = output->shape.rank;
    tn_shape shapes[TN_BROADCAST_MAX_INPUTS];
    const tn_shape *inputs[TN_BROADCAST_MAX_INPUTS];
    tn_shape full = physical_shape(&output->shape, rank, block);
    if (block != 0) full.dims[rank] = block;
    uint32_t count = is_chain ? 2 : node->input_count;
    if (shapes_of(node) == TN_SHAPES_SCALARS) count = 1;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t index = !is_chain ? k : k == 0 ? 0 : step + 1;
        const bool is_running = is_chain && k == 0 && step > 0;
        const tn_fact *fact = is_running ? output : node->inputs[index];
        const int32_t own_rank = shift >= 0 && k == 1 ? fact->shape.rank : rank;
        const bool is_full = same_shape(&fact->shape, &output->shape);
        shapes[k] = is_full ? full : physical_shape(&fact->shape, own_rank, block);
        inputs[k] = &shapes[k];
        out->input_bytes[k] = element_bytes(fact->dtype);
    }
    out->output_bytes = element_bytes(output->dtype);
    tn_broadcast_init(out, &full, inputs, count, shift);
}

static void bind_loop(const tn_bind_context *ctx, elementwise_record *record) {
    const tn_node_facts *node = ctx->node;
    const tn_program_isa *isa = isa_of(ctx->variant);
    const uint32_t body = tn_elementwise_body(node->op, node->params);
    const uint32_t typed = body == TN_BODY_WHERE ? 1 : 0;
    const tn_dtype dtype = node->inputs[typed]->dtype;
    record->types[0] = node->inputs[0]->dtype;
    const tn_fact *second = tn_node_input(node, 1);
    record->types[1] = second == NULL ? dtype : second->dtype;
    record->loop = tn_elementwise_loop(body, dtype, isa, &record->inner);
    if (body == TN_BODY_POW && record->types[1] != dtype) {
        record->loop = tn_elementwise_power_loop(dtype);
    }
    record->reads_bounds =
        body == TN_BODY_CLIP && (element_bytes(dtype) < 4 || dtype == TN_DTYPE_F32);
    record->reads_bounds = record->reads_bounds && shapes_of(node) == TN_SHAPES_SCALARS &&
                           ((TN_TYPES_FLOATS >> dtype) & 1u) != 0;
    record->passes_rest = shapes_of(node) == TN_SHAPES_SCALARS && !record->reads_bounds;
}

/* One input of Max, Sum and the like: the result is a copy. */
static void copy_loop(const tn_loop_args *args) {
    const size_t size_bytes = args->len * (tn_dtype_bits(args->types[0]) / 8);
    if (args->out != args->in[0]) memcpy(args->out, args->in[0], size_bytes);
}

static void bind_mean(const tn_bind_context *ctx, elementwise_record *record) {
    const float count = (float)record->input_count;
    tn_loop_fn inner;
    record->finish =
        tn_elementwise_loop(TN_BODY_DIV, record->types[0], isa_of(ctx->variant), &inner);
    if (record->types[0] == TN_DTYPE_F64) record->divisor.f64 = (double)count;
    if (record->types[0] == TN_DTYPE_F32) record->divisor.f32 = count;
    if (record->types[0] == TN_DTYPE_F16) record->divisor.f16 = tn_f16_from_f32(count);
    if (record->types[0] == TN_DTYPE_BF16) record->divisor.f16 = tn_bf16_from_f32(count);
    record->finish_inner = inner;
}

tn_status tn_elementwise_bind(const tn_bind_context *ctx, void *record) {
    const tn_node_facts *node = ctx->node;
    const tn_elementwise_params *params = node->params;
    const tn_fact *output = node->outputs[0];
    const uint16_t block = ctx->variant->output_layout.block;
    elementwise_record *own = record;
    int32_t shift = -1;
    TN_REQUIRE(output->shape.rank < TN_MAX_RANK || block == 0, ctx->err, TN_UNSUPPORTED,
               "rank %d has no room for blocks", (int)output->shape.rank);
    TN_TRY(find_shift(node, &shift, ctx->err));
    bind_loop(ctx, own);
    TN_REQUIRE(own->loop != NULL, ctx->err, TN_UNSUPPORTED, "%s has no kernel for %s",
               node->op->name, tn_dtype_name(own->types[0]));
    own->len = physical_elems(output, block);
    own->tile_elems = tile_elems(tn_elementwise_body(node->op, params), own->types[0]);
    own->input_count = node->input_count;
    own->step_count = step_count(node);
    own->nontemporal =
        (ctx->nontemporal || own->len * 4 >= TN_STREAM_BYTES) && own->step_count == 1;
    if (node->op->max_inputs == TN_VARIADIC && node->input_count == 1) own->loop = copy_loop;
    if (params->is_mean && node->input_count > 1) bind_mean(ctx, own);
    memcpy(own->params, params->values, sizeof own->params);
    bind_padding(output, block, own);
    for (uint32_t i = 0; i < own->step_count; i++) bind_step(node, block, i, shift, &own->steps[i]);
    return TN_OK;
}

/* ---- run ---- */

static float read_bound(const void *data, tn_dtype dtype) {
    float value;
    uint16_t bits;
    if (dtype == TN_DTYPE_F32) {
        memcpy(&value, data, sizeof value);
        return value;
    }
    memcpy(&bits, data, sizeof bits);
    return dtype == TN_DTYPE_F16 ? tn_f32_from_f16(bits) : tn_f32_from_bf16(bits);
}

static void read_bounds(const elementwise_record *record, const tn_kernel_context *ctx,
                        float *params) {
    for (uint32_t i = 0; i < 2; i++) {
        const bool has_input = i + 1 < record->input_count && ctx->in[i + 1] != TN_NO_VALUE;
        if (has_input) params[i] = read_bound(tn_kernel_in(ctx, i + 1), record->types[0]);
    }
}

static void finish_mean(const elementwise_record *record, const tn_loop_args *args, size_t first,
                        size_t end) {
    const size_t size_bytes = tn_dtype_bits(record->types[0]) / 8;
    tn_loop_args division = *args;
    division.out = (char *)args->out + first * size_bytes;
    division.len = end - first;
    division.in[0] = division.out;
    division.step[0] = 1;
    division.in[1] = &record->divisor;
    division.step[1] = 0;
    division.inner = record->finish_inner;
    record->finish(&division);
}

/* A chain of binary steps over [first, end). */
static void run_chain(const elementwise_record *record, const tn_kernel_context *ctx,
                      tn_loop_args *args, size_t first, size_t end) {
    for (size_t i = first; i < end; i += CHAIN_ELEMS) {
        const size_t stop = end - i < CHAIN_ELEMS ? end : i + CHAIN_ELEMS;
        for (uint32_t s = 0; s < record->step_count; s++) {
            args->in[0] = s == 0 ? tn_kernel_in(ctx, 0) : args->out;
            args->in[1] = tn_kernel_in(ctx, s + 1);
            tn_broadcast_run(&record->steps[s], record->loop, args, i, stop);
        }
        if (record->finish != NULL) finish_mean(record, args, i, stop);
    }
}

/* Zeros in the lanes beyond the channels, within physical elements [first, end). */
static void clear_padding(const elementwise_record *record, float *out, size_t first, size_t end) {
    const size_t image = record->blocks * record->spatial * record->block;
    const size_t last_block = (record->blocks - 1) * record->spatial * record->block;
    for (size_t n = first / image; n * image < end; n++) {
        const size_t begin = tn_size_max(n * image + last_block, first);
        const size_t stop = tn_size_min((n + 1) * image, end);
        for (size_t i = begin; i < stop; i += record->block) {
            memset(out + i + record->block - record->pad_lanes, 0, record->pad_lanes * sizeof *out);
        }
    }
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)worker;
    const elementwise_record *own = record;
    float params[TN_BODY_MAX_PARAMS];
    memcpy(params, own->params, sizeof params);
    if (own->reads_bounds) read_bounds(own, ctx, params);
    tn_loop_args args = {.out = tn_kernel_out(ctx, 0),
                         .params = params,
                         .inner = own->inner,
                         .types = {own->types[0], own->types[1]},
                         .nontemporal = own->nontemporal};
    const size_t first = tile0 * own->tile_elems;
    const size_t end = tn_size_min(tile1 * own->tile_elems, own->len);
    if (own->step_count > 1 || own->finish != NULL) {
        run_chain(own, ctx, &args, first, end);
    } else {
        const uint32_t count = own->passes_rest ? own->input_count : own->steps[0].input_count;
        for (uint32_t k = 0; k < count; k++) args.in[k] = tn_kernel_in(ctx, k);
        tn_broadcast_run(&own->steps[0], own->loop, &args, first, end);
    }
    if (own->pad_lanes > 0) clear_padding(own, args.out, first, end);
    return TN_OK;
}
