/* Col2Im: blocks of columns added back into an image of any number of axes. A tile is a range of
 * [N, C] planes, so that additions to one pixel keep their order. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/index_walk.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

typedef struct col2im_params {
    tn_int_list dilations, pads, strides;
} col2im_params;

typedef struct col2im_record {
    tn_dtype dtype;
    uint32_t tile_count;
    int32_t rank; /* of the image */
    size_t plane_count, image_len, block_len, column_count;
    int64_t image[TN_MAX_RANK];
    int64_t block[TN_MAX_RANK];
    int64_t columns[TN_MAX_RANK];
    int64_t dilations[TN_MAX_RANK];
    int64_t pads[TN_MAX_RANK]; /* before */
    int64_t strides[TN_MAX_RANK];
} col2im_record;

static tn_status col2im_check(const tn_check_context *ctx, void *params) {
    col2im_params *p = params;
    TN_TRY(tn_check_int_list(ctx, "dilations", &p->dilations));
    TN_TRY(tn_check_int_list(ctx, "pads", &p->pads));
    return tn_check_int_list(ctx, "strides", &p->strides);
}

static int64_t entry_or(const tn_int_list *list, size_t index, int64_t fallback) {
    return list->is_present ? list->values[index] : fallback;
}

/* Columns along image axis `i`; errors name what does not fit. */
static tn_status column_dim(const col2im_params *p, const tn_int_list *image,
                            const tn_int_list *block, size_t i, int64_t *out, tn_error *err) {
    const int64_t stride = entry_or(&p->strides, i, 1);
    const int64_t dilation = entry_or(&p->dilations, i, 1);
    const int64_t before = entry_or(&p->pads, i, 0);
    const int64_t after = entry_or(&p->pads, i + image->count, 0);
    const int64_t most = INT32_MAX;
    const bool are_small = stride > 0 && stride <= most && dilation > 0 && dilation <= most &&
                           before >= 0 && before <= most && after >= 0 && after <= most &&
                           block->values[i] > 0 && block->values[i] <= most &&
                           image->values[i] >= 0 && image->values[i] <= most;
    TN_REQUIRE(are_small, err, TN_INVALID_ARGUMENT,
               "axis %zu: image %lld, block %lld, stride %lld, dilation %lld, pads %lld and %lld",
               i, (long long)image->values[i], (long long)block->values[i], (long long)stride,
               (long long)dilation, (long long)before, (long long)after);
    const int64_t room = image->values[i] + before + after - dilation * (block->values[i] - 1) - 1;
    *out = room < 0 ? 0 : room / stride + 1;
    return TN_OK;
}

static tn_status check_lists(const col2im_params *p, const tn_int_list *image,
                             const tn_int_list *block, tn_error *err) {
    const bool fits = image->count == block->count && image->count >= 1 &&
                      image->count + 2 <= TN_MAX_RANK &&
                      (!p->strides.is_present || p->strides.count == image->count) &&
                      (!p->dilations.is_present || p->dilations.count == image->count) &&
                      (!p->pads.is_present || p->pads.count == 2 * image->count);
    TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT,
               "image_shape has %zu, block_shape %zu, strides %zu, dilations %zu, pads %zu numbers",
               image->count, block->count, p->strides.count, p->dilations.count, p->pads.count);
    return TN_OK;
}

static tn_status check_input(const tn_shape *from, int64_t block_len, int64_t column_count,
                             tn_error *err) {
    char text[160];
    TN_REQUIRE(from->rank == 3 && (from->dims[1] < 0 || from->dims[1] % block_len == 0) &&
                   (from->dims[2] < 0 || from->dims[2] == column_count),
               err, TN_INVALID_ARGUMENT, "input %s is not [N, C * %lld, %lld]",
               tn_shape_text(from, text, sizeof text), (long long)block_len,
               (long long)column_count);
    return TN_OK;
}

static tn_status col2im_infer(const tn_node_facts *node, tn_error *err) {
    const col2im_params *p = node->params;
    const tn_dtype dtype = tn_input_dtype(node, 0);
    tn_int_list image;
    tn_int_list block;
    TN_TRY(tn_read_int_list(node, 1, &image, err));
    TN_TRY(tn_read_int_list(node, 2, &block, err));
    tn_set_output(node, 0, dtype, NULL);
    if (!image.is_known || !block.is_known || !tn_input_has_rank(node, 0)) return TN_OK;
    TN_TRY(check_lists(p, &image, &block, err));
    int64_t block_len = 1;
    int64_t column_count = 1;
    const tn_shape *from = &node->inputs[0]->shape;
    tn_shape to = {.rank = (int32_t)image.count + 2};
    for (size_t i = 0; i < image.count; i++) {
        int64_t columns = 0;
        TN_TRY(column_dim(p, &image, &block, i, &columns, err));
        TN_REQUIRE(tn_i64_mul(block_len, block.values[i], &block_len) &&
                       tn_i64_mul(column_count, columns, &column_count),
                   err, TN_OVERFLOW, "too many columns at axis %zu", i);
        to.dims[i + 2] = image.values[i];
    }
    TN_TRY(check_input(from, block_len, column_count, err));
    to.dims[0] = from->dims[0];
    to.dims[1] = from->dims[1] < 0 ? TN_DIM_UNKNOWN : from->dims[1] / block_len;
    return tn_put_output(node, 0, dtype, &to, err);
}

/* Pixel that block element `at` of the column at `column` falls on; -1 in the padding. */
static int64_t pixel_of(const col2im_record *r, const int64_t *element, const int64_t *column) {
    int64_t pixel = 0;
    for (int32_t i = 0; i < r->rank; i++) {
        const int64_t at = column[i] * r->strides[i] - r->pads[i] + element[i] * r->dilations[i];
        if (at < 0 || at >= r->image[i]) return -1;
        pixel = pixel * r->image[i] + at;
    }
    return pixel;
}

static void add_pixel(tn_dtype dtype, char *image, int64_t pixel, const char *columns, size_t at) {
    if (dtype == TN_DTYPE_F32) {
        float sum;
        float value;
        memcpy(&sum, image + pixel * (int64_t)sizeof sum, sizeof sum);
        memcpy(&value, columns + at * sizeof value, sizeof value);
        sum += value;
        memcpy(image + pixel * (int64_t)sizeof sum, &sum, sizeof sum);
    } else {
        const double sum =
            tn_number_read(image, dtype, (size_t)pixel) + tn_number_read(columns, dtype, at);
        tn_number_write(image, dtype, (size_t)pixel, sum);
    }
}

static void add_plane(const col2im_record *r, const char *columns, char *image) {
    tn_walk element = {
        .rank = r->rank, .dims = r->block, .strides_a = r->block, .strides_b = r->block};
    tn_walk column = {
        .rank = r->rank, .dims = r->columns, .strides_a = r->columns, .strides_b = r->columns};
    memset(image, 0, r->image_len * tn_elem_bytes(r->dtype));
    if (r->column_count == 0) return;
    tn_walk_seek(&element, 0);
    for (size_t e = 0; e < r->block_len; e++, tn_walk_next(&element)) {
        tn_walk_seek(&column, 0);
        for (size_t c = 0; c < r->column_count; c++, tn_walk_next(&column)) {
            const int64_t pixel = pixel_of(r, element.index, column.index);
            if (pixel >= 0) {
                add_pixel(r->dtype, image, pixel, columns, e * r->column_count + c);
            }
        }
    }
}

static tn_status col2im_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                            uint32_t tile1, uint32_t worker) {
    (void)worker;
    const col2im_record *r = record;
    const size_t elem_bytes = tn_elem_bytes(r->dtype);
    const char *in = tn_kernel_in(ctx, 0);
    char *out = tn_kernel_out(ctx, 0);
    size_t plane = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->plane_count, r->tile_count, tile0, &plane, &ignored);
    tn_tile_range(r->plane_count, r->tile_count, tile1 - 1, &ignored, &end);
    for (; plane < end; plane++) {
        add_plane(r, in + plane * r->block_len * r->column_count * elem_bytes,
                  out + plane * r->image_len * elem_bytes);
    }
    return TN_OK;
}

static tn_status col2im_variants(const tn_variant_query *query, tn_variant *out,
                                 uint32_t *out_count, tn_error *err) {
    (void)err;
    const size_t bytes = tn_output_bytes(query->node, 0);
    size_t planes = 1;
    if (bytes != 0) planes = (size_t)tn_dims_product(&query->node->outputs[0]->shape, 0, 2);
    tn_one_variant("columns", col2im_run, bytes, planes, out, out_count);
    if (bytes != 0) out[0].tile_counts[0] = tn_tiles_for_bytes(bytes * 32, planes);
    return TN_OK;
}

static tn_status col2im_bind(const tn_bind_context *ctx, void *record) {
    col2im_record *r = record;
    const col2im_params *p = ctx->node->params;
    const tn_fact *output = ctx->node->outputs[0];
    tn_int_list image;
    tn_int_list block;
    TN_TRY(tn_read_int_list(ctx->node, 1, &image, ctx->err));
    TN_TRY(tn_read_int_list(ctx->node, 2, &block, ctx->err));
    TN_REQUIRE(image.is_known && block.is_known, ctx->err, TN_INVALID_ARGUMENT,
               "image_shape or block_shape is not known");
    r->dtype = output->dtype;
    r->tile_count = ctx->variant->tile_counts[0];
    if (tn_fact_len_elems(output) == 0) return TN_OK; /* no planes */
    r->rank = (int32_t)image.count;
    r->plane_count = (size_t)tn_dims_product(&output->shape, 0, 2);
    r->image_len = (size_t)tn_dims_product(&output->shape, 2, output->shape.rank);
    r->block_len = 1;
    r->column_count = 1;
    for (size_t i = 0; i < image.count; i++) {
        r->image[i] = image.values[i];
        r->block[i] = block.values[i];
        r->dilations[i] = entry_or(&p->dilations, i, 1);
        r->pads[i] = entry_or(&p->pads, i, 0);
        r->strides[i] = entry_or(&p->strides, i, 1);
        TN_TRY(column_dim(p, &image, &block, i, &r->columns[i], ctx->err));
        r->block_len *= (size_t)block.values[i];
        r->column_count *= (size_t)r->columns[i];
    }
    return TN_OK;
}

static const uint32_t col2im_types[] = {TN_TYPES_NUMBER, TN_TYPES_INDEX};

static const tn_op_def rows[] = {
    {.name = "Col2Im",
     .since_version = 18,
     .min_inputs = 3,
     .max_inputs = 3,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = col2im_types,
     .input_types_count = 2,
     .params_bytes = sizeof(col2im_params),
     .record_bytes = sizeof(col2im_record),
     .check = col2im_check,
     .infer = col2im_infer,
     .variants = col2im_variants,
     .bind = col2im_bind},
};
const tn_op_table tn_col2im_table = {rows, TN_COUNTOF(rows)};
