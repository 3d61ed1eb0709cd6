/* NonMaxSuppression: per batch and class, boxes by falling score (ties: lower index first), each
 * kept unless it overlaps a kept one by more than the threshold. Kept boxes are collected in
 * temporaries as triples are only known in number at the end. */
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"
#include "kernels/sort/sort_key.h"

enum { BOXES, SCORES, MAX_OUTPUT, IOU_THRESHOLD, SCORE_THRESHOLD, SLOT_COUNT };

typedef struct nms_record {
    size_t batch_count, class_count, box_count;
    bool is_centered;
    bool has_input[SLOT_COUNT]; /* given and not empty */
    tn_dtype max_dtype;
} nms_record;

typedef struct nms_limits {
    size_t max_output;
    float iou_threshold;
    float score_threshold;
    bool has_score_threshold;
} nms_limits;

/* x and y ranges, lower end first, and the area. */
typedef struct nms_box {
    float x0, x1, y0, y1;
} nms_box;

static tn_status nms_check(const tn_check_context *ctx, void *params) {
    int64_t *centered = params;
    TN_TRY(tn_check_int(ctx, "center_point_box", 0, centered));
    TN_REQUIRE(*centered == 0 || *centered == 1, ctx->err, TN_INVALID_MODEL,
               "center_point_box is %lld", (long long)*centered);
    return TN_OK;
}

static tn_status nms_infer(const tn_node_facts *node, tn_error *err) {
    tn_shape to = tn_unknown_dims(2);
    to.dims[1] = 3;
    tn_set_output(node, 0, TN_DTYPE_I64, &to);
    if (!tn_input_has_rank(node, 0) || !tn_input_has_rank(node, 1)) return TN_OK;
    const tn_shape *boxes = &node->inputs[0]->shape;
    const tn_shape *scores = &node->inputs[1]->shape;
    char text[160];
    char other[160];
    const bool fits =
        boxes->rank == 3 && scores->rank == 3 && (boxes->dims[2] < 0 || boxes->dims[2] == 4) &&
        (boxes->dims[0] < 0 || scores->dims[0] < 0 || boxes->dims[0] == scores->dims[0]) &&
        (boxes->dims[1] < 0 || scores->dims[2] < 0 || boxes->dims[1] == scores->dims[2]);
    TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT,
               "boxes %s and scores %s are not [B, N, 4], [B, C, N]",
               tn_shape_text(boxes, text, sizeof text), tn_shape_text(scores, other, sizeof other));
    return TN_OK;
}

static nms_box read_box(const nms_record *r, const char *boxes, size_t index) {
    float v[4];
    memcpy(v, boxes + index * sizeof v, sizeof v);
    if (r->is_centered) {
        const float half_width = v[2] / 2;
        const float half_height = v[3] / 2;
        return (nms_box){v[0] - half_width, v[0] + half_width, v[1] - half_height,
                         v[1] + half_height};
    }
    return (nms_box){fminf(v[1], v[3]), fmaxf(v[1], v[3]), fminf(v[0], v[2]), fmaxf(v[0], v[2])};
}

static bool overlaps(nms_box a, nms_box b, float iou_threshold) {
    const float x0 = fmaxf(a.x0, b.x0);
    const float x1 = fminf(a.x1, b.x1);
    const float y0 = fmaxf(a.y0, b.y0);
    const float y1 = fminf(a.y1, b.y1);
    if (x1 <= x0 || y1 <= y0) return false;
    const float common = (x1 - x0) * (y1 - y0);
    const float area_a = (a.x1 - a.x0) * (a.y1 - a.y0);
    const float area_b = (b.x1 - b.x0) * (b.y1 - b.y0);
    const float together = area_a + area_b - common;
    if (common <= 0 || area_a <= 0 || area_b <= 0 || together <= 0) return false;
    return common / together > iou_threshold;
}

static nms_limits read_limits(const nms_record *r, const tn_kernel_context *ctx) {
    nms_limits limits = {0};
    if (r->has_input[MAX_OUTPUT]) {
        const int64_t most = tn_read_index(tn_kernel_in(ctx, MAX_OUTPUT), r->max_dtype, 0);
        limits.max_output = most <= 0 ? 0 : tn_size_min((size_t)most, r->box_count);
    }
    if (r->has_input[IOU_THRESHOLD]) {
        memcpy(&limits.iou_threshold, tn_kernel_in(ctx, IOU_THRESHOLD), sizeof(float));
    }
    limits.has_score_threshold = r->has_input[SCORE_THRESHOLD];
    if (limits.has_score_threshold) {
        memcpy(&limits.score_threshold, tn_kernel_in(ctx, SCORE_THRESHOLD), sizeof(float));
    }
    return limits;
}

/* Entries of one class that pass the score, best first; returns how many. */
static size_t collect(const nms_record *r, const nms_limits *limits, const char *scores,
                      tn_sort_entry *entries, tn_sort_entry *scratch) {
    size_t count = 0;
    for (size_t i = 0; i < r->box_count; i++) {
        float score;
        memcpy(&score, scores + i * sizeof score, sizeof score);
        if (limits->has_score_threshold && !(score > limits->score_threshold)) continue;
        entries[count++] = (tn_sort_entry){~tn_sort_key(&score, TN_DTYPE_F32, 0), i};
    }
    tn_sort_entries(entries, scratch, count);
    return count;
}

/* Keeps boxes of one class; kept [max_output]; returns how many. */
static size_t keep_boxes(const nms_record *r, const nms_limits *limits, const char *boxes,
                         const tn_sort_entry *entries, size_t entry_count, uint32_t *kept) {
    size_t count = 0;
    for (size_t i = 0; i < entry_count && count < limits->max_output; i++) {
        const nms_box box = read_box(r, boxes, (size_t)entries[i].index);
        bool is_free = true;
        for (size_t k = 0; k < count && is_free; k++) {
            is_free = !overlaps(box, read_box(r, boxes, kept[k]), limits->iou_threshold);
        }
        if (is_free) kept[count++] = (uint32_t)entries[i].index;
    }
    return count;
}

typedef struct nms_memory {
    tn_sort_entry *entries, *scratch; /* [box_count] */
    uint32_t *kept;                   /* [class lists, max_output] */
    uint32_t *counts;                 /* [class lists] */
} nms_memory;

static tn_status get_memory(const nms_record *r, const nms_limits *limits, tn_kernel_context *ctx,
                            nms_memory *memory) {
    const size_t lists = r->batch_count * r->class_count;
    size_t entry_bytes = 0;
    size_t kept_bytes = 0;
    size_t count_bytes = 0;
    void *data = NULL;
    const bool fits = tn_size_mul(r->box_count, sizeof(tn_sort_entry), &entry_bytes) &&
                      tn_size_mul(lists, limits->max_output, &kept_bytes) &&
                      tn_size_mul(kept_bytes, sizeof(uint32_t), &kept_bytes) &&
                      tn_size_mul(lists, sizeof(uint32_t), &count_bytes);
    TN_REQUIRE(fits, tn_kernel_error(ctx, 0), TN_OVERFLOW, "%zu boxes of %zu classes", r->box_count,
               r->class_count);
    TN_TRY(ctx->make_temporary(ctx, entry_bytes, &data));
    memory->entries = data;
    TN_TRY(ctx->make_temporary(ctx, entry_bytes, &data));
    memory->scratch = data;
    TN_TRY(ctx->make_temporary(ctx, kept_bytes, &data));
    memory->kept = data;
    TN_TRY(ctx->make_temporary(ctx, count_bytes, &data));
    memory->counts = data;
    return TN_OK;
}

static tn_status write_triples(const nms_record *r, const nms_limits *limits,
                               tn_kernel_context *ctx, const nms_memory *memory, size_t total) {
    const tn_shape shape = {.rank = 2, .dims = {(int64_t)total, 3}};
    void *data = NULL;
    TN_TRY(ctx->make_output(ctx, 0, TN_DTYPE_I64, &shape, &data));
    int64_t *out = data;
    for (size_t list = 0; list < r->batch_count * r->class_count; list++) {
        for (size_t k = 0; k < memory->counts[list]; k++, out += 3) {
            out[0] = (int64_t)(list / r->class_count);
            out[1] = (int64_t)(list % r->class_count);
            out[2] = memory->kept[list * limits->max_output + k];
        }
    }
    return TN_OK;
}

static tn_status nms_run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker) {
    (void)tile0, (void)tile1, (void)worker;
    const nms_record *r = record;
    const nms_limits limits = read_limits(r, ctx);
    const char *boxes = tn_kernel_in(ctx, BOXES);
    const char *scores = tn_kernel_in(ctx, SCORES);
    nms_memory memory = {0};
    size_t total = 0;
    TN_TRY(get_memory(r, &limits, ctx, &memory));
    for (size_t list = 0; list < r->batch_count * r->class_count; list++) {
        const char *batch_boxes = boxes + list / r->class_count * r->box_count * 4 * sizeof(float);
        size_t count = 0;
        if (limits.max_output > 0) {
            count = collect(r, &limits, scores + list * r->box_count * sizeof(float),
                            memory.entries, memory.scratch);
            count = keep_boxes(r, &limits, batch_boxes, memory.entries, count,
                               memory.kept + list * limits.max_output);
        }
        memory.counts[list] = (uint32_t)count;
        total += count;
    }
    return write_triples(r, &limits, ctx, &memory, total);
}

static tn_status nms_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                              tn_error *err) {
    (void)query, (void)err;
    tn_one_variant("suppression", nms_run, 0, 1, out, out_count);
    return TN_OK;
}

static tn_status nms_bind(const tn_bind_context *ctx, void *record) {
    nms_record *r = record;
    const tn_node_facts *node = ctx->node;
    r->is_centered = *(const int64_t *)node->params != 0;
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        const tn_fact *input = tn_node_input(node, i);
        r->has_input[i] = input != NULL && tn_fact_len_elems(input) != 0;
    }
    if (r->has_input[MAX_OUTPUT]) r->max_dtype = node->inputs[MAX_OUTPUT]->dtype;
    r->batch_count = (size_t)node->inputs[BOXES]->shape.dims[0];
    r->class_count = (size_t)node->inputs[SCORES]->shape.dims[1];
    r->box_count = (size_t)node->inputs[BOXES]->shape.dims[1];
    TN_REQUIRE(r->box_count <= UINT32_MAX, ctx->err, TN_UNSUPPORTED, "%zu boxes", r->box_count);
    if (r->box_count == 0) r->batch_count = 0;
    return TN_OK;
}

static const uint32_t nms_types[] = {TN_TYPE_BIT(F32), TN_TYPE_BIT(F32), TN_TYPES_INDEX,
                                     TN_TYPE_BIT(F32), TN_TYPE_BIT(F32)};

static const tn_op_def rows[] = {
    {.name = "NonMaxSuppression",
     .since_version = 10,
     .min_inputs = 2,
     .max_inputs = 5,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE | TN_OP_DATA_DEPENDENT,
     .input_types = nms_types,
     .input_types_count = 5,
     .params_bytes = sizeof(int64_t),
     .record_bytes = sizeof(nms_record),
     .check = nms_check,
     .infer = nms_infer,
     .variants = nms_variants,
     .bind = nms_bind},
};
const tn_op_table tn_nms_table = {rows, TN_COUNTOF(rows)};
