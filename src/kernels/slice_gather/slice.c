/* Slice: a strided move out of a window. A window that is one run of the input's bytes is a view.
 */
#include "base/checked_size.h"
#include "kernels/common/move.h"
#include "kernels/common/shape_arith.h"

typedef struct slice_params { /* opset 1 to 9 */
    tn_int_list starts, ends, axes;
} slice_params;

/* One axis of the window. */
typedef struct slice_window {
    int64_t start[TN_MAX_RANK];
    int64_t step[TN_MAX_RANK];
    tn_shape to;
} slice_window;

static tn_status slice1_check(const tn_check_context *ctx, void *params) {
    slice_params *p = params;
    TN_TRY(tn_check_int_list(ctx, "starts", &p->starts));
    TN_TRY(tn_check_int_list(ctx, "ends", &p->ends));
    TN_REQUIRE(p->starts.is_present && p->ends.is_present, ctx->err, TN_INVALID_MODEL,
               "attributes starts and ends are needed");
    return tn_check_int_list(ctx, "axes", &p->axes);
}

/* Clamps one bound; `low` and `high` are the ends of what makes sense for the step's direction. */
static int64_t clamped_bound(int64_t bound, int64_t dim, int64_t low, int64_t high) {
    if (bound < 0) bound += dim;
    return tn_i64_max(low, tn_i64_min(bound, high));
}

static tn_status set_window_axis(int64_t start, int64_t end, int64_t step, int32_t axis,
                                 slice_window *w, tn_error *err) {
    const int64_t dim = w->to.dims[axis];
    TN_REQUIRE(step != 0, err, TN_INVALID_ARGUMENT, "step of axis %d is 0", (int)axis);
    if (dim < 0) {
        const bool is_all = start == 0 && end >= INT32_MAX && step == 1;
        if (!is_all) w->to.dims[axis] = TN_DIM_UNKNOWN;
        return TN_OK;
    }
    const int64_t low = step > 0 ? 0 : -1;
    const int64_t high = step > 0 ? dim : dim - 1;
    start = clamped_bound(start, dim, tn_i64_max(low, step > 0 ? 0 : tn_i64_min(0, high)), high);
    end = clamped_bound(end, dim, low, high);
    const int64_t distance = step > 0 ? end - start : start - end;
    /* a step of INT64_MIN has no absolute value, but any step beyond the axis gives one element */
    const int64_t size = step > 0 ? step : step < -dim ? dim + 1 : -step;
    w->start[axis] = start;
    w->step[axis] = step > 0 ? tn_i64_min(step, dim + 1) : -size;
    w->to.dims[axis] = distance <= 0 ? 0 : (distance - 1) / size + 1;
    return TN_OK;
}

typedef struct slice_lists {
    tn_int_list starts, ends, axes, steps;
} slice_lists;

static tn_status read_lists(const tn_node_facts *node, slice_lists *out, tn_error *err) {
    const slice_params *p = node->params;
    if (node->op->params_bytes != 0) {
        out->starts = p->starts;
        out->ends = p->ends;
        out->axes = p->axes;
        out->steps = (tn_int_list){.is_present = false};
        return TN_OK;
    }
    TN_TRY(tn_read_int_list(node, 1, &out->starts, err));
    TN_TRY(tn_read_int_list(node, 2, &out->ends, err));
    TN_TRY(tn_read_int_list(node, 3, &out->axes, err));
    return tn_read_int_list(node, 4, &out->steps, err);
}

static bool is_known_or_absent(const tn_int_list *list) {
    return !list->is_present || list->is_known;
}

/* What can be said of the window. *out_known: its bounds are known, not that its dims are. */
static tn_status slice_resolve(const tn_node_facts *node, slice_window *w, bool *out_known,
                               tn_error *err) {
    slice_lists lists;
    TN_TRY(read_lists(node, &lists, err));
    w->to = node->inputs[0]->shape;
    const int32_t rank = w->to.rank;
    for (int32_t i = 0; i < rank; i++) {
        w->start[i] = 0;
        w->step[i] = 1;
    }
    *out_known = lists.starts.is_known && lists.ends.is_known && is_known_or_absent(&lists.axes) &&
                 is_known_or_absent(&lists.steps);
    if (!*out_known && !lists.axes.is_known) {
        w->to = tn_unknown_dims(rank);
        return TN_OK;
    }
    const size_t count = lists.axes.is_present ? lists.axes.count : lists.starts.count;
    TN_REQUIRE(!*out_known || (lists.starts.count == count && lists.ends.count == count &&
                               (!lists.steps.is_present || lists.steps.count == count)),
               err, TN_INVALID_ARGUMENT, "%zu starts, %zu ends, %zu axes, %zu steps",
               lists.starts.count, lists.ends.count, lists.axes.count, lists.steps.count);
    for (size_t i = 0; i < count; i++) {
        int32_t axis = 0;
        TN_TRY(tn_infer_axis(lists.axes.is_present ? lists.axes.values[i] : (int64_t)i, rank, &axis,
                             err));
        if (!*out_known) {
            w->to.dims[axis] = TN_DIM_UNKNOWN;
            continue;
        }
        TN_TRY(set_window_axis(lists.starts.values[i], lists.ends.values[i],
                               lists.steps.is_present ? lists.steps.values[i] : 1, axis, w, err));
    }
    return TN_OK;
}

static tn_status slice_infer(const tn_node_facts *node, tn_error *err) {
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    slice_window window;
    bool is_known = false;
    TN_TRY(slice_resolve(node, &window, &is_known, err));
    tn_set_output(node, 0, tn_input_dtype(node, 0), &window.to);
    return TN_OK;
}

static void slice_describe(const tn_node_facts *node, tn_move *move) {
    const tn_shape *from = &node->inputs[0]->shape;
    const tn_shape *to = &node->outputs[0]->shape;
    const size_t elem_bytes = tn_elem_bytes(node->inputs[0]->dtype);
    int64_t src[TN_MAX_RANK];
    int64_t dst[TN_MAX_RANK];
    slice_window window;
    bool is_known = false;
    tn_move_start(move, elem_bytes);
    if (slice_resolve(node, &window, &is_known, NULL) != TN_OK ||
        tn_fact_len_elems(node->outputs[0]) == 0) {
        tn_move_add_axis(move, 0, 0, 0);
        tn_move_finish(move);
        return;
    }
    tn_row_strides(from, (int64_t)elem_bytes, src);
    tn_row_strides(to, (int64_t)elem_bytes, dst);
    for (int32_t i = 0; i < to->rank; i++) {
        move->src_offset += window.start[i] * src[i];
        tn_move_add_axis(move, to->dims[i], window.step[i] * src[i], dst[i]);
    }
    tn_move_finish(move);
}
TN_DEFINE_MOVER(slice, "slice")

/* One run of bytes: a window axis, only single elements before it, whole axes after it. */
static bool slice_view_offset(const tn_node_facts *node, uint32_t slot, size_t *out_offset_bytes) {
    const tn_fact *input = tn_node_input(node, 0);
    slice_window window;
    bool is_known = false;
    if (slot != 0 || input == NULL || !tn_fact_is_sized(input)) return false;
    if (slice_resolve(node, &window, &is_known, NULL) != TN_OK || !is_known) return false;
    const tn_fact output = {.shape = window.to};
    if (tn_fact_len_elems(&output) == 0) return false;
    const tn_shape *from = &input->shape;
    int64_t strides[TN_MAX_RANK];
    tn_row_strides(from, (int64_t)tn_elem_bytes(input->dtype), strides);
    int32_t cut = from->rank - 1;
    while (cut >= 0 && window.to.dims[cut] == from->dims[cut] && window.step[cut] == 1) cut--;
    int64_t offset = 0;
    for (int32_t i = 0; i <= cut; i++) {
        const bool is_single = window.to.dims[i] == 1;
        if (!is_single && (i < cut || window.step[i] != 1)) return false;
        offset += window.start[i] * strides[i];
    }
    *out_offset_bytes = (size_t)offset;
    return true;
}

static const uint32_t slice_types[] = {TN_TYPES_WHOLE, TN_TYPES_INDEX};

#define SLICE_ROW                                                                               \
    .min_outputs = 1, .flags = TN_OP_FOLDABLE | TN_OP_VIEW_LEADING, .input_types = slice_types, \
    .input_types_count = 2, .infer = slice_infer, TN_MOVER_FUNCTIONS(slice),                    \
    .view_offset = slice_view_offset

static const tn_op_def rows[] = {
    {.name = "Slice",
     .since_version = 1,
     .until_version = 9,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(slice_params),
     .check = slice1_check,
     SLICE_ROW},
    {.name = "Slice", .since_version = 10, .min_inputs = 3, .max_inputs = 5, SLICE_ROW},
};
const tn_op_table tn_slice_table = {rows, TN_COUNTOF(rows)};
