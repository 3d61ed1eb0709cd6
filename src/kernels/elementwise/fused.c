/* The node that runs a program. Only plans make it.
 *
 * The output is cut into rows where its operands allow long runs; where they would be short (a last
 * axis of three elements, say) the whole output is one row and operands are gathered. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/elementwise_isa.h"

/* Rows shorter than this are not worth setting up. */
#define SHORT_ROW 64
#define TILE_ELEMS ((size_t)32768) /* a multiple of every chunk */

typedef struct fused_record {
    tn_program_bound program;
    size_t row_tile;  /* rows of a tile; 1 when columns are cut */
    size_t col_tiles; /* tiles of a row; 1 when rows are cut */
    /* Lanes of the last channel block that hold no channel: set to zero again. */
    size_t pad_lanes, block, blocks;
} fused_record;

static tn_status check(const tn_check_context *ctx, void *params) {
    (void)params;
    TN_REQUIRE(ctx->node == NULL, ctx->err, TN_UNSUPPORTED,
               "this operator is made by plans, not by models");
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    tn_fact *output = tn_node_output(node, 0);
    if (output == NULL || node->input_count == 0) return TN_OK;
    output->kind = TN_KIND_TENSOR;
    output->dtype = TN_DTYPE_F32;
    output->shape = node->inputs[0]->shape;
    for (uint32_t i = 1; i < node->input_count; i++) {
        TN_TRY(tn_infer_broadcast(&output->shape, &node->inputs[i]->shape, &output->shape, err));
    }
    return TN_OK;
}

static bool same_shape(const tn_shape *a, const tn_shape *b) {
    return a->rank == b->rank && a->rank >= 0 &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* Elements at the end of the output along which every operand repeats one value or goes on by one:
 * the longest run of trailing dims. */
static size_t run_length(const tn_node_facts *node) {
    const tn_shape *shape = &node->outputs[0]->shape;
    bool moves[TN_PROGRAM_MAX_OPERANDS] = {false};
    size_t run = 1;
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        if (shape->dims[d] == 1) continue;
        for (uint32_t k = 0; k < node->input_count; k++) {
            const tn_shape *operand = &node->inputs[k]->shape;
            const int32_t axis = d - (shape->rank - operand->rank);
            const bool varies = axis >= 0 && operand->dims[axis] != 1;
            if (run == 1) {
                moves[k] = varies;
            } else if (varies != moves[k]) {
                return run;
            }
        }
        run *= (size_t)shape->dims[d];
    }
    return run;
}

/* Inputs of the output's shape, which are blocked with it; 0 when the program cannot run on blocks:
 * the others vary along the first two axes at most. */
static uint32_t blocked_inputs(const tn_node_facts *node) {
    const tn_fact *output = tn_node_output(node, 0);
    uint32_t mask = 0;
    if (output == NULL || output->shape.rank < 2) return 0;
    for (uint32_t k = 0; k < node->input_count; k++) {
        const tn_shape *operand = &node->inputs[k]->shape;
        if (same_shape(operand, &output->shape)) {
            mask |= 1u << k;
            continue;
        }
        if (operand->rank < 0 || operand->rank > output->shape.rank) return 0;
        for (int32_t i = 0; i < operand->rank; i++) {
            const int32_t axis = i + output->shape.rank - operand->rank;
            if (axis > 1 && operand->dims[i] != 1) return 0;
        }
    }
    return mask;
}

/* Rows and columns of the output as this kernel cuts it; both 0 when it is empty. */
static void choose_split(const tn_node_facts *node, uint16_t block, size_t *rows, size_t *cols) {
    const tn_shape *shape = &node->outputs[0]->shape;
    const size_t len = tn_fact_len_elems(node->outputs[0]);
    if (block != 0) {
        *rows = (size_t)shape->dims[0] * (((size_t)shape->dims[1] + block - 1) / block);
        *cols = block;
        for (int32_t d = 2; d < shape->rank; d++) *cols *= (size_t)shape->dims[d];
        return;
    }
    const size_t run = len == 0 ? 0 : run_length(node);
    *rows = run < SHORT_ROW || run == len ? 1 : len / run;
    *cols = run < SHORT_ROW ? len : run;
}

static void choose_tiles(size_t rows, size_t cols, size_t *row_tile, size_t *col_tiles,
                         size_t *tile_count) {
    *row_tile = 1;
    *col_tiles = (cols + TILE_ELEMS - 1) / TILE_ELEMS;
    if (*col_tiles <= 1) {
        *col_tiles = 1;
        *row_tile = cols == 0 ? rows : tn_size_max(TILE_ELEMS / cols, 1);
    }
    const size_t row_tiles = *row_tile == 0 ? 0 : (rows + *row_tile - 1) / *row_tile;
    *tile_count = cols == 0 ? 0 : row_tiles * *col_tiles;
}

/* What a step costs on an element, in ns, for the narrowest vectors. */
static double program_cost(const tn_program *program) {
#define COST_LIGHT 0.2
#define COST_HEAVY 3.0
#define COST_LANES 10.0
#define COST_OF_BODY(name, params, weight) [TN_BODY_##name] = COST_##weight,
    static const double costs[TN_BODY_STEP_END] = {TN_UNARY_BODY_LIST(COST_OF_BODY)
                                                       TN_BINARY_BODY_LIST(COST_OF_BODY)};
    double ns = 0.4;
    for (uint32_t i = 0; i < program->step_count; i++) ns += costs[program->steps[i].body];
    return ns;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker);

static void fill_variant(const tn_variant_query *query, const char *name, uint16_t block,
                         double speed, tn_variant *out) {
    const tn_fact *output = tn_node_output(query->node, 0);
    size_t rows = 0;
    size_t cols = 0;
    size_t row_tile;
    size_t col_tiles;
    size_t tile_count = 0;
    if (output != NULL && tn_fact_is_sized(output)) {
        choose_split(query->node, block, &rows, &cols);
        choose_tiles(rows, cols, &row_tile, &col_tiles, &tile_count);
    }
    out->name = name;
    out->run = run;
    out->tile_counts[0] = (uint32_t)tile_count;
    out->cost_ns = 50.0 + (double)rows * (double)cols * program_cost(query->node->params) / speed;
    if (block == 0) return;
    out->input_layout.block = block;
    out->output_layout.block = block;
    out->layout_input_mask = blocked_inputs(query->node);
}

static uint16_t block_of_inputs(const tn_node_facts *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i]->layout.block != 0) return node->inputs[i]->layout.block;
    }
    return 0;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
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
    if (blocked_inputs(query->node) == 0) block = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < TN_COUNTOF(isas); i++) {
        if ((query->cpu & needs[i]) != needs[i]) continue;
        fill_variant(query, isas[i]->name, 0, (double)(1u << i), &out[count++]);
        if (block != 0) {
            fill_variant(query, isas[i]->name, block, (double)(1u << i), &out[count++]);
        }
    }
    *out_count = count;
    return TN_OK;
}

static tn_cpu_features cpu_of(const tn_variant *variant) {
#if defined(__x86_64__)
    if (variant->name == tn_program_avx512.name) return TN_CPU_AVX512;
    if (variant->name == tn_program_avx2.name) return TN_CPU_AVX2;
#else
    (void)variant;
#endif
    return TN_CPU_PORTABLE;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    const tn_node_facts *node = ctx->node;
    const tn_shape *shape = &node->outputs[0]->shape;
    fused_record *own = record;
    tn_fact output = *node->outputs[0];
    output.layout = ctx->variant->output_layout;
    size_t rows;
    size_t cols;
    size_t tile_count;
    choose_split(node, output.layout.block, &rows, &cols);
    choose_tiles(rows, cols, &own->row_tile, &own->col_tiles, &tile_count);
    if (output.layout.block != 0) {
        own->block = output.layout.block;
        own->blocks = ((size_t)shape->dims[1] + own->block - 1) / own->block;
        own->pad_lanes = own->blocks * own->block - (size_t)shape->dims[1];
    }
    const tn_program_bind_query query = {
        .program = node->params,
        .output = &output,
        .operands = node->inputs,
        .rows = rows,
        .cols = cols,
        .cpu = cpu_of(ctx->variant),
        .nontemporal = ctx->nontemporal || rows * cols * sizeof(float) >= TN_STREAM_BYTES};
    return tn_program_bind(&query, &own->program, ctx->err);
}

static void clear_padding(const fused_record *record, const tn_program_tile *tile) {
    for (size_t r = 0; r < tile->rows; r++) {
        if ((tile->row0 + r) % record->blocks != record->blocks - 1) continue;
        float *row = tile->out + r * tile->out_row_stride;
        for (size_t c = 0; c < tile->cols; c += record->block) {
            memset(row + c + record->block - record->pad_lanes, 0, record->pad_lanes * sizeof *row);
        }
    }
}

static void run_tile(const fused_record *record, tn_program_tile *tile, float *out, size_t t) {
    const size_t cols = record->program.cols;
    tile->row0 = t / record->col_tiles * record->row_tile;
    tile->rows = tn_size_min(record->row_tile, record->program.rows - tile->row0);
    tile->col0 = t % record->col_tiles * TILE_ELEMS;
    tile->cols = record->col_tiles == 1 ? cols : tn_size_min(TILE_ELEMS, cols - tile->col0);
    tile->out = out + tile->row0 * cols + tile->col0;
    tile->out_row_stride = cols;
    tn_program_apply(&record->program, tile);
    if (record->pad_lanes > 0) clear_padding(record, tile);
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)worker;
    const fused_record *own = record;
    const void *operands[TN_PROGRAM_MAX_OPERANDS];
    for (uint32_t i = 0; i < own->program.operand_count; i++) operands[i] = tn_kernel_in(ctx, i);
    if (own->program.rows * own->program.cols == 0) return TN_OK;
    tn_program_tile tile = {.operands = operands};
    for (uint32_t t = tile0; t < tile1; t++) run_tile(own, &tile, tn_kernel_out(ctx, 0), t);
    return TN_OK;
}

static const uint32_t types[] = {TN_TYPE_BIT(F32)};
static const tn_op_def rows[] = {
    {.name = "FusedElementwise",
     .domain = "tenure",
     .since_version = 1,
     .min_inputs = 1,
     .max_inputs = TN_PROGRAM_MAX_OPERANDS,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE | TN_OP_ANY_LAYOUT,
     .in_place_mask = (1u << TN_PROGRAM_MAX_OPERANDS) - 1,
     .input_types = types,
     .input_types_count = 1,
     .params_bytes = sizeof(tn_program),
     .record_bytes = sizeof(fused_record),
     .check = check,
     .infer = infer,
     .variants = variants,
     .bind = bind,
     .notes = "made by plans: a chain of elementwise nodes"},
};

const tn_op_table tn_fused_table = {rows, TN_COUNTOF(rows)};
