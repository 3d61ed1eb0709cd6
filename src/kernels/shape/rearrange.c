/* Operators that put the elements of one input in another place or repeat them: Transpose, Expand,
 * Tile, DepthToSpace, SpaceToDepth. Each describes a strided move (common/move.h). */
#include "kernels/common/move.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

#include "base/checked_size.h"

/* ---- Transpose ---- */

static tn_status transpose_check(const tn_check_context *ctx, void *params) {
    return tn_check_int_list(ctx, "perm", params);
}

/* Writes the permutation for `rank`; absent means reversed. */
static tn_status transpose_perm(const tn_int_list *perm, int32_t rank, int32_t *out,
                                tn_error *err) {
    TN_REQUIRE(!perm->is_present || perm->count == (size_t)rank, err, TN_INVALID_MODEL,
               "perm has %zu axes, input rank is %d", perm->count, (int)rank);
    uint32_t seen = 0;
    for (int32_t i = 0; i < rank; i++) {
        out[i] = rank - 1 - i;
        if (perm->is_present) TN_TRY(tn_infer_axis(perm->values[i], rank, &out[i], err));
        TN_REQUIRE((seen >> out[i] & 1u) == 0, err, TN_INVALID_MODEL, "perm names axis %d twice",
                   (int)out[i]);
        seen |= 1u << out[i];
    }
    return TN_OK;
}

static tn_status transpose_infer(const tn_node_facts *node, tn_error *err) {
    const tn_int_list *perm = node->params;
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    const tn_shape *from = &node->inputs[0]->shape;
    int32_t axes[TN_MAX_RANK];
    TN_TRY(transpose_perm(perm, from->rank, axes, err));
    tn_shape to = {.rank = from->rank};
    for (int32_t i = 0; i < to.rank; i++) to.dims[i] = from->dims[axes[i]];
    tn_set_output(node, 0, tn_input_dtype(node, 0), &to);
    return TN_OK;
}

static void transpose_describe(const tn_node_facts *node, tn_move *move) {
    const tn_shape *from = &node->inputs[0]->shape;
    const tn_shape *to = &node->outputs[0]->shape;
    const size_t elem_bytes = tn_elem_bytes(node->inputs[0]->dtype);
    int32_t axes[TN_MAX_RANK] = {0};
    int64_t src[TN_MAX_RANK];
    int64_t dst[TN_MAX_RANK];
    (void)transpose_perm(node->params, from->rank, axes, NULL); /* infer has proved it */
    tn_row_strides(from, (int64_t)elem_bytes, src);
    tn_row_strides(to, (int64_t)elem_bytes, dst);
    tn_move_start(move, elem_bytes);
    for (int32_t i = 0; i < to->rank; i++) {
        tn_move_add_axis(move, to->dims[i], src[axes[i]], dst[i]);
    }
    tn_move_finish(move);
}
TN_DEFINE_MOVER(transpose, "transpose")

/* ---- Expand ---- */

static tn_status expand_infer(const tn_node_facts *node, tn_error *err) {
    tn_int_list target;
    TN_TRY(tn_read_int_list(node, 1, &target, err));
    const tn_dtype dtype = tn_input_dtype(node, 0);
    tn_set_output(node, 0, dtype, NULL);
    const int64_t length =
        target.is_known ? (int64_t)target.count : tn_list_length(tn_node_input(node, 1));
    if (length < 0 || !tn_input_has_rank(node, 0)) return TN_OK;
    TN_REQUIRE(length <= TN_MAX_RANK, err, TN_UNSUPPORTED, "target rank %lld, at most %d",
               (long long)length, TN_MAX_RANK);
    tn_shape wanted = tn_unknown_dims((int32_t)length);
    for (int32_t i = 0; target.is_known && i < wanted.rank; i++) {
        TN_REQUIRE(target.values[i] >= 0, err, TN_INVALID_ARGUMENT, "target dim %d is %lld", (int)i,
                   (long long)target.values[i]);
        wanted.dims[i] = target.values[i];
    }
    tn_shape to;
    TN_TRY(tn_infer_broadcast(&node->inputs[0]->shape, &wanted, &to, err));
    /* a wanted dim that is not known may enlarge an input dim of 1, or be 1 itself */
    for (int32_t i = 0; !target.is_known && i < to.rank; i++) {
        const int32_t axis = i - (to.rank - node->inputs[0]->shape.rank);
        if (axis < 0 || node->inputs[0]->shape.dims[axis] <= 1) to.dims[i] = TN_DIM_UNKNOWN;
    }
    return tn_put_output(node, 0, dtype, &to, err);
}

static void expand_describe(const tn_node_facts *node, tn_move *move) {
    const tn_shape *from = &node->inputs[0]->shape;
    const tn_shape *to = &node->outputs[0]->shape;
    const size_t elem_bytes = tn_elem_bytes(node->inputs[0]->dtype);
    int64_t src[TN_MAX_RANK];
    int64_t dst[TN_MAX_RANK];
    tn_row_strides(from, (int64_t)elem_bytes, src);
    tn_row_strides(to, (int64_t)elem_bytes, dst);
    tn_move_start(move, elem_bytes);
    for (int32_t i = 0; i < to->rank; i++) {
        const int32_t axis = i - (to->rank - from->rank);
        const bool repeats = axis < 0 || from->dims[axis] == 1;
        tn_move_add_axis(move, to->dims[i], repeats ? 0 : src[axis], dst[i]);
    }
    tn_move_finish(move);
}
TN_DEFINE_MOVER(expand, "expand")

/* ---- Tile ---- */

static tn_status tile_shape(const tn_node_facts *node, const int64_t *repeats, tn_error *err) {
    tn_shape to = node->inputs[0]->shape;
    for (int32_t i = 0; i < to.rank; i++) {
        TN_REQUIRE(repeats[i] >= 0, err, TN_INVALID_ARGUMENT, "repeat %lld of axis %d",
                   (long long)repeats[i], (int)i);
        if (to.dims[i] < 0) {
            if (repeats[i] != 1) to.dims[i] = repeats[i] == 0 ? 0 : TN_DIM_UNKNOWN;
            continue;
        }
        TN_REQUIRE(tn_i64_mul(to.dims[i], repeats[i], &to.dims[i]), err, TN_OVERFLOW,
                   "axis %d has %lld elements, repeated %lld times", (int)i, (long long)to.dims[i],
                   (long long)repeats[i]);
    }
    return tn_put_output(node, 0, node->inputs[0]->dtype, &to, err);
}

static tn_status tile_unknown(const tn_node_facts *node) {
    const tn_shape shape = tn_unknown_dims(node->inputs[0]->shape.rank);
    tn_set_output(node, 0, node->inputs[0]->dtype, &shape);
    return TN_OK;
}

static tn_status tile_infer(const tn_node_facts *node, tn_error *err) {
    tn_int_list repeats;
    TN_TRY(tn_read_int_list(node, 1, &repeats, err));
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    if (!repeats.is_known) return tile_unknown(node);
    TN_REQUIRE(repeats.count == (size_t)node->inputs[0]->shape.rank, err, TN_INVALID_ARGUMENT,
               "%zu repeats, input rank is %d", repeats.count, (int)node->inputs[0]->shape.rank);
    return tile_shape(node, repeats.values, err);
}

/* Opset 1: one count and one axis, both as inputs of any number type. */
static tn_status tile1_infer(const tn_node_facts *node, tn_error *err) {
    tn_int_list tiles;
    tn_int_list axis;
    TN_TRY(tn_read_int_list(node, 1, &tiles, err));
    TN_TRY(tn_read_int_list(node, 2, &axis, err));
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    if (!tiles.is_known || !axis.is_known) return tile_unknown(node);
    TN_REQUIRE(tiles.count == 1 && axis.count == 1, err, TN_INVALID_ARGUMENT,
               "%zu counts and %zu axes, each must be one", tiles.count, axis.count);
    int64_t repeats[TN_MAX_RANK];
    int32_t which = 0;
    TN_TRY(tn_infer_axis(axis.values[0], node->inputs[0]->shape.rank, &which, err));
    for (int32_t i = 0; i < TN_MAX_RANK; i++) repeats[i] = i == which ? tiles.values[0] : 1;
    return tile_shape(node, repeats, err);
}

static void tile_describe(const tn_node_facts *node, tn_move *move) {
    const tn_shape *from = &node->inputs[0]->shape;
    const tn_shape *to = &node->outputs[0]->shape;
    const size_t elem_bytes = tn_elem_bytes(node->inputs[0]->dtype);
    int64_t src[TN_MAX_RANK];
    int64_t dst[TN_MAX_RANK];
    tn_row_strides(from, (int64_t)elem_bytes, src);
    tn_row_strides(to, (int64_t)elem_bytes, dst);
    tn_move_start(move, elem_bytes);
    for (int32_t i = 0; i < to->rank; i++) {
        const int64_t repeats = from->dims[i] == 0 ? 0 : to->dims[i] / from->dims[i];
        const int64_t once = (int64_t)((uint64_t)dst[i] * (uint64_t)from->dims[i]);
        tn_move_add_axis(move, repeats, 0, once);
        tn_move_add_axis(move, from->dims[i], src[i], dst[i]);
    }
    tn_move_finish(move);
}
TN_DEFINE_MOVER(tile, "tile")

/* ---- DepthToSpace and SpaceToDepth ---- */

typedef struct block_params {
    int64_t block;
    bool column_first; /* DepthToSpace, mode CRD */
} block_params;

static tn_status block_check(const tn_check_context *ctx, void *params) {
    block_params *p = params;
    TN_TRY(tn_check_int(ctx, "blocksize", 0, &p->block));
    TN_REQUIRE(p->block > 0 && p->block <= INT32_MAX, ctx->err, TN_INVALID_MODEL, "blocksize %lld",
               (long long)p->block);
    return TN_OK;
}

static tn_status depth_check(const tn_check_context *ctx, void *params) {
    block_params *p = params;
    tn_text mode;
    TN_TRY(block_check(ctx, params));
    TN_TRY(tn_check_text(ctx, "mode", "DCR", &mode));
    p->column_first = tn_text_equals_literal(mode, "CRD");
    TN_REQUIRE(p->column_first || tn_text_equals_literal(mode, "DCR"), ctx->err, TN_INVALID_MODEL,
               "mode %.*s is neither DCR nor CRD", tn_text_width(mode), mode.data);
    return TN_OK;
}

static tn_status divided(int64_t dim, int64_t by, int32_t axis, int64_t *out, tn_error *err) {
    *out = TN_DIM_UNKNOWN;
    if (dim < 0) return TN_OK;
    TN_REQUIRE(dim % by == 0, err, TN_INVALID_ARGUMENT, "axis %d has %lld elements, not n * %lld",
               (int)axis, (long long)dim, (long long)by);
    *out = dim / by;
    return TN_OK;
}

static tn_status multiplied(int64_t dim, int64_t by, int32_t axis, int64_t *out, tn_error *err) {
    *out = TN_DIM_UNKNOWN;
    if (dim < 0) return TN_OK;
    TN_REQUIRE(tn_i64_mul(dim, by, out), err, TN_OVERFLOW, "axis %d: %lld * %lld", (int)axis,
               (long long)dim, (long long)by);
    return TN_OK;
}

static tn_status require_four_axes(const tn_node_facts *node, tn_error *err) {
    char text[160];
    TN_REQUIRE(node->inputs[0]->shape.rank == 4, err, TN_INVALID_ARGUMENT,
               "input %s is not [N, C, H, W]",
               tn_shape_text(&node->inputs[0]->shape, text, sizeof text));
    return TN_OK;
}

static tn_status depth_infer(const tn_node_facts *node, tn_error *err) {
    const block_params *p = node->params;
    tn_shape to = tn_unknown_dims(4);
    if (tn_input_has_rank(node, 0)) {
        const tn_shape *from = &node->inputs[0]->shape;
        TN_TRY(require_four_axes(node, err));
        to.dims[0] = from->dims[0];
        TN_TRY(divided(from->dims[1], p->block * p->block, 1, &to.dims[1], err));
        TN_TRY(multiplied(from->dims[2], p->block, 2, &to.dims[2], err));
        TN_TRY(multiplied(from->dims[3], p->block, 3, &to.dims[3], err));
    }
    return tn_put_output(node, 0, tn_input_dtype(node, 0), &to, err);
}

static tn_status space_infer(const tn_node_facts *node, tn_error *err) {
    const block_params *p = node->params;
    tn_shape to = tn_unknown_dims(4);
    if (tn_input_has_rank(node, 0)) {
        const tn_shape *from = &node->inputs[0]->shape;
        TN_TRY(require_four_axes(node, err));
        to.dims[0] = from->dims[0];
        TN_TRY(multiplied(from->dims[1], p->block * p->block, 1, &to.dims[1], err));
        TN_TRY(divided(from->dims[2], p->block, 2, &to.dims[2], err));
        TN_TRY(divided(from->dims[3], p->block, 3, &to.dims[3], err));
    }
    return tn_put_output(node, 0, tn_input_dtype(node, 0), &to, err);
}

/* Both are a transposition of six axes: n, c, h, block row, w, block column of the large image.
 * `deep` is the tensor with many channels, `wide` the one with many pixels. */
static void block_axes(const tn_shape *deep, const block_params *p, int64_t elem_bytes,
                       int64_t *dims, int64_t *deep_strides, int64_t *wide_strides) {
    const int64_t b = p->block;
    const int64_t c = deep->dims[1] / (b * b);
    const int64_t h = deep->dims[2];
    const int64_t w = deep->dims[3];
    const int64_t plane = h * w * elem_bytes;
    const int64_t wide_row = w * b * elem_bytes;
    const int64_t all_dims[6] = {deep->dims[0], c, h, b, w, b};
    const int64_t deep_all[6] = {deep->dims[1] * plane,
                                 p->column_first ? b * b * plane : plane,
                                 w * elem_bytes,
                                 p->column_first ? b * plane : b * c * plane,
                                 elem_bytes,
                                 p->column_first ? plane : c * plane};
    const int64_t wide_all[6] = {c * h * b * wide_row, h * b * wide_row, b * wide_row, wide_row,
                                 b * elem_bytes,       elem_bytes};
    for (int32_t i = 0; i < 6; i++) {
        dims[i] = all_dims[i];
        deep_strides[i] = deep_all[i];
        wide_strides[i] = wide_all[i];
    }
}

static void describe_blocks(const tn_node_facts *node, bool to_space, tn_move *move) {
    const tn_fact *deep = to_space ? node->inputs[0] : node->outputs[0];
    const size_t elem_bytes = tn_elem_bytes(deep->dtype);
    int64_t dims[6] = {0};
    int64_t deep_strides[6] = {0};
    int64_t wide_strides[6] = {0};
    /* products of dims beside a zero may overflow, and nothing moves then */
    if (tn_fact_len_elems(deep) != 0) {
        block_axes(&deep->shape, node->params, (int64_t)elem_bytes, dims, deep_strides,
                   wide_strides);
    }
    /* outermost first in the order of the output, so that writes are sequential */
    static const int32_t wide_order[6] = {0, 1, 2, 3, 4, 5};
    static const int32_t deep_order[6] = {0, 3, 5, 1, 2, 4};
    const int32_t *order = to_space ? wide_order : deep_order;
    tn_move_start(move, elem_bytes);
    for (int32_t i = 0; i < 6; i++) {
        const int32_t axis = order[i];
        tn_move_add_axis(move, dims[axis], to_space ? deep_strides[axis] : wide_strides[axis],
                         to_space ? wide_strides[axis] : deep_strides[axis]);
    }
    tn_move_finish(move);
}

static void depth_describe(const tn_node_facts *node, tn_move *move) {
    describe_blocks(node, true, move);
}
TN_DEFINE_MOVER(depth, "depth to space")

static void space_describe(const tn_node_facts *node, tn_move *move) {
    describe_blocks(node, false, move);
}
TN_DEFINE_MOVER(space, "space to depth")

static const uint32_t whole_types[] = {TN_TYPES_WHOLE, TN_TYPES_ANY};
static const uint32_t counted_types[] = {TN_TYPES_WHOLE, TN_TYPES_NUMBER};
static const uint32_t indexed_types[] = {TN_TYPES_WHOLE, TN_TYPES_INDEX};

#define MOVER_ROW(types) \
    .min_outputs = 1, .flags = TN_OP_FOLDABLE, .input_types = (types), .input_types_count = 2

static const tn_op_def rows[] = {
    {.name = "Transpose",
     .since_version = 1,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(tn_int_list),
     .check = transpose_check,
     .infer = transpose_infer,
     MOVER_ROW(whole_types),
     TN_MOVER_FUNCTIONS(transpose)},
    {.name = "Expand",
     .since_version = 8,
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = expand_infer,
     MOVER_ROW(indexed_types),
     TN_MOVER_FUNCTIONS(expand)},
    {.name = "Tile",
     .since_version = 1,
     .until_version = 5,
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = tile1_infer,
     MOVER_ROW(counted_types),
     TN_MOVER_FUNCTIONS(tile)},
    {.name = "Tile",
     .since_version = 6,
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = tile_infer,
     MOVER_ROW(indexed_types),
     TN_MOVER_FUNCTIONS(tile)},
    {.name = "DepthToSpace",
     .since_version = 1,
     .until_version = 10,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(block_params),
     .check = block_check,
     .infer = depth_infer,
     MOVER_ROW(whole_types),
     TN_MOVER_FUNCTIONS(depth)},
    {.name = "DepthToSpace",
     .since_version = 11,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(block_params),
     .check = depth_check,
     .infer = depth_infer,
     MOVER_ROW(whole_types),
     TN_MOVER_FUNCTIONS(depth)},
    {.name = "SpaceToDepth",
     .since_version = 1,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(block_params),
     .check = block_check,
     .infer = space_infer,
     MOVER_ROW(whole_types),
     TN_MOVER_FUNCTIONS(space)},
};
const tn_op_table tn_rearrange_table = {rows, TN_COUNTOF(rows)};
