/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss over [N, C, D]: one position after another,
 * sums in double. Operators of training, so one thread does all. */
#include <math.h>

#include "base/checked_size.h"
#include "kernels/common/number.h"
#include "plan/op_def.h"

enum { IN_SCORES, IN_TARGETS, IN_WEIGHTS, INPUTS };
enum { OUT_LOSS, OUT_LOG_PROB };

typedef enum loss_reduction { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN } loss_reduction;

typedef struct loss_params {
    int64_t ignore_index;
    loss_reduction reduction;
    bool ignores;
    bool has_softmax;
} loss_params;

typedef struct loss_record {
    loss_params params;
    tn_dtype dtype, target_type, weight_type; /* weight NONE: all 1 */
    size_t batch, classes, inner;
    bool has_loss, has_log_prob;
} loss_record;

static tn_status check_common(const tn_check_context *ctx, loss_params *p) {
    tn_text reduction;
    TN_TRY(tn_check_text(ctx, "reduction", "mean", &reduction));
    TN_TRY(tn_check_int(ctx, "ignore_index", 0, &p->ignore_index));
    p->ignores = ctx->node != NULL && tn_graph_node_attribute(ctx->node, "ignore_index") != NULL;
    if (tn_text_equals_literal(reduction, "none")) {
        p->reduction = REDUCE_NONE;
    } else if (tn_text_equals_literal(reduction, "sum")) {
        p->reduction = REDUCE_SUM;
    } else {
        TN_REQUIRE(tn_text_equals_literal(reduction, "mean"), ctx->err, TN_INVALID_MODEL,
                   "reduction %.*s is not known", tn_text_width(reduction), reduction.data);
        p->reduction = REDUCE_MEAN;
    }
    return TN_OK;
}

static tn_status check_likelihood(const tn_check_context *ctx, void *params) {
    return check_common(ctx, params);
}

static tn_status check_cross_entropy(const tn_check_context *ctx, void *params) {
    loss_params *p = params;
    p->has_softmax = true;
    return check_common(ctx, p);
}

/* Targets are the scores without their class axis. */
static tn_status check_targets(const tn_shape *scores, const tn_shape *targets, tn_error *err) {
    if (scores->rank < 0 || targets->rank < 0) return TN_OK;
    bool fits = scores->rank >= 2 && targets->rank == scores->rank - 1;
    for (int32_t i = 0; fits && i < targets->rank; i++) {
        const int64_t wanted = scores->dims[i == 0 ? 0 : i + 1];
        fits = targets->dims[i] < 0 || wanted < 0 || targets->dims[i] == wanted;
    }
    if (fits) return TN_OK;
    char text_scores[160];
    char text_targets[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "targets %s do not fit scores %s",
                        tn_shape_text(targets, text_targets, sizeof text_targets),
                        tn_shape_text(scores, text_scores, sizeof text_scores));
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const loss_params *p = node->params;
    const tn_fact *scores = tn_node_input(node, IN_SCORES);
    const tn_fact *targets = tn_node_input(node, IN_TARGETS);
    const tn_fact *weights = tn_node_input(node, IN_WEIGHTS);
    if (scores == NULL || targets == NULL) return TN_OK;
    TN_TRY(check_targets(&scores->shape, &targets->shape, err));
    if (weights != NULL && tn_fact_is_sized(weights) && scores->shape.rank >= 2) {
        const int64_t classes = scores->shape.dims[1];
        TN_REQUIRE(classes < 0 || tn_fact_len_elems(weights) == (size_t)classes, err,
                   TN_INVALID_ARGUMENT, "%zu weights for %lld classes", tn_fact_len_elems(weights),
                   (long long)classes);
    }
    tn_fact *loss = tn_node_output(node, OUT_LOSS);
    tn_fact *log_prob = tn_node_output(node, OUT_LOG_PROB);
    if (loss != NULL) {
        loss->kind = TN_KIND_TENSOR;
        loss->dtype = scores->dtype;
        loss->shape = p->reduction == REDUCE_NONE ? targets->shape : (tn_shape){.rank = 0};
    }
    if (log_prob != NULL) {
        log_prob->kind = TN_KIND_TENSOR;
        log_prob->dtype = scores->dtype;
        log_prob->shape = scores->shape;
    }
    return TN_OK;
}

/* Position `index` of [N, D]: where its class 0 lies; classes are `inner` apart. */
static size_t scores_at(const loss_record *r, size_t index) {
    return index / r->inner * r->classes * r->inner + index % r->inner;
}

/* Log of the sum of exponentials of one position. */
static double log_sum(const loss_record *r, const void *scores, size_t base) {
    double greatest = -(double)INFINITY;
    double sum = 0;
    for (size_t c = 0; c < r->classes; c++) {
        const double value = tn_number_read(scores, r->dtype, base + c * r->inner);
        if (value > greatest) greatest = value;
    }
    for (size_t c = 0; c < r->classes; c++) {
        sum += exp(tn_number_read(scores, r->dtype, base + c * r->inner) - greatest);
    }
    return greatest + log(sum);
}

typedef struct loss_sums {
    double loss;
    double weight;
} loss_sums;

static tn_status add_position(const loss_record *r, tn_kernel_context *ctx, size_t index,
                              double log_total, loss_sums *sums) {
    const int64_t target = tn_number_read_int(tn_kernel_in(ctx, IN_TARGETS), r->target_type, index);
    double loss = 0;
    double weight = 0;
    if (!r->params.ignores || target != r->params.ignore_index) {
        TN_REQUIRE(target >= 0 && (uint64_t)target < r->classes, tn_kernel_error(ctx, 0),
                   TN_INVALID_ARGUMENT, "target %lld is outside %zu classes", (long long)target,
                   r->classes);
        const size_t at = scores_at(r, index) + (size_t)target * r->inner;
        const double score = tn_number_read(tn_kernel_in(ctx, IN_SCORES), r->dtype, at);
        weight = r->weight_type == TN_DTYPE_NONE ? 1.0
                                                 : tn_number_read(tn_kernel_in(ctx, IN_WEIGHTS),
                                                                  r->weight_type, (size_t)target);
        loss = (log_total - score) * weight;
    }
    sums->loss += loss;
    sums->weight += weight;
    if (r->has_loss && r->params.reduction == REDUCE_NONE) {
        tn_number_write(tn_kernel_out(ctx, OUT_LOSS), r->dtype, index, loss);
    }
    return TN_OK;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)tile0;
    (void)tile1;
    (void)worker;
    const loss_record *r = record;
    const void *scores = tn_kernel_in(ctx, IN_SCORES);
    loss_sums sums = {0, 0};
    for (size_t index = 0; index < r->batch * r->inner; index++) {
        const size_t base = scores_at(r, index);
        const double log_total = r->params.has_softmax ? log_sum(r, scores, base) : 0.0;
        for (size_t c = 0; r->has_log_prob && c < r->classes; c++) {
            const size_t at = base + c * r->inner;
            tn_number_write(tn_kernel_out(ctx, OUT_LOG_PROB), r->dtype, at,
                            tn_number_read(scores, r->dtype, at) - log_total);
        }
        TN_TRY(add_position(r, ctx, index, log_total, &sums));
    }
    if (r->has_loss && r->params.reduction != REDUCE_NONE) {
        const double loss =
            r->params.reduction == REDUCE_MEAN ? sums.loss / sums.weight : sums.loss;
        tn_number_write(tn_kernel_out(ctx, OUT_LOSS), r->dtype, 0, loss);
    }
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    (void)err;
    const tn_fact *scores = tn_node_input(query->node, IN_SCORES);
    const double elems = tn_fact_is_sized(scores) ? (double)tn_fact_len_elems(scores) : 1.0;
    out[0] = (tn_variant){.name = "loss", .run = run, .cost_ns = 50.0 + elems * 20.0};
    *out_count = 1;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    loss_record *r = record;
    const tn_fact *scores = tn_node_input(ctx->node, IN_SCORES);
    const tn_fact *weights = tn_node_input(ctx->node, IN_WEIGHTS);
    *r = (loss_record){.params = *(const loss_params *)ctx->node->params,
                       .dtype = scores->dtype,
                       .target_type = tn_node_input(ctx->node, IN_TARGETS)->dtype,
                       .weight_type = weights == NULL ? TN_DTYPE_NONE : weights->dtype,
                       .batch = (size_t)scores->shape.dims[0],
                       .classes = (size_t)scores->shape.dims[1],
                       .inner = 1,
                       .has_loss = tn_node_output(ctx->node, OUT_LOSS) != NULL,
                       .has_log_prob = tn_node_output(ctx->node, OUT_LOG_PROB) != NULL};
    for (int32_t i = 2; i < scores->shape.rank; i++) {
        r->inner *= (size_t)scores->shape.dims[i];
    }
    return TN_OK;
}

#define FLOATS (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16))
#define TARGETS (TN_TYPE_BIT(I32) | TN_TYPE_BIT(I64))

static const uint32_t types_12[] = {FLOATS, TARGETS, FLOATS};
static const uint32_t types_13[] = {FLOATS | TN_TYPE_BIT(BF16), TARGETS,
                                    FLOATS | TN_TYPE_BIT(BF16)};

#define ROW(op_name, since, until, outputs, types, check_fn)                                       \
    {                                                                                              \
        .name = op_name, .since_version = since, .until_version = until, .min_inputs = 2,          \
        .max_inputs = INPUTS, .min_outputs = 1, .max_outputs = outputs, .flags = TN_OP_FOLDABLE,   \
        .input_types = types, .input_types_count = INPUTS,                                         \
        .same_type_mask = 1u << IN_SCORES | 1u << IN_WEIGHTS, .params_bytes = sizeof(loss_params), \
        .record_bytes = sizeof(loss_record), .check = check_fn, .infer = infer,                    \
        .variants = variants, .bind = bind                                                         \
    }

static const tn_op_def rows[] = {
    ROW("NegativeLogLikelihoodLoss", 12, 12, 1, types_12, check_likelihood),
    ROW("NegativeLogLikelihoodLoss", 13, 21, 1, types_12, check_likelihood),
    ROW("NegativeLogLikelihoodLoss", 22, 0, 1, types_13, check_likelihood),
    ROW("SoftmaxCrossEntropyLoss", 12, 12, 2, types_12, check_cross_entropy),
    ROW("SoftmaxCrossEntropyLoss", 13, 0, 2, types_13, check_cross_entropy),
};

const tn_op_table tn_loss_table = {rows, TN_COUNTOF(rows)};
