/* Unique: slices of an axis (single elements without one) are sorted, equal neighbours become one
 * group, groups are numbered in sorted order or by first occurrence. The order of equal slices
 * stays that of the input, so the first of a group is its first occurrence. Memory for the order
 * comes from the step's temporaries. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"
#include "kernels/sort/sort_key.h"

typedef struct unique_params {
    int64_t axis;
    bool has_axis;
    bool is_sorted;
} unique_params;

typedef struct unique_record {
    tn_dtype dtype;
    uint32_t elem_bytes;
    bool is_sorted;
    bool has_values, has_indices, has_inverse, has_counts;
    int32_t axis;
    size_t outer_count, axis_dim, inner_len;
    tn_shape shape; /* of output 0, before the axis is known */
} unique_record;

/* Lists by slice, by sorted position or by group; each [axis_dim]. */
typedef struct unique_lists {
    size_t *order;    /* sorted position -> slice */
    size_t *scratch;  /* while sorting */
    size_t *group_of; /* slice -> group */
    size_t *first;    /* group -> its first slice */
    size_t *counts;   /* group -> slices in it */
    size_t *number;   /* group -> its number in the output */
} unique_lists;

static tn_status unique_check(const tn_check_context *ctx, void *params) {
    unique_params *p = params;
    int64_t is_sorted = 1;
    p->has_axis = ctx->node != NULL && tn_graph_node_attribute(ctx->node, "axis") != NULL;
    TN_TRY(tn_check_int(ctx, "axis", 0, &p->axis));
    TN_TRY(tn_check_int(ctx, "sorted", 1, &is_sorted));
    p->is_sorted = is_sorted != 0;
    return TN_OK;
}

static tn_status unique_infer(const tn_node_facts *node, tn_error *err) {
    const unique_params *p = node->params;
    const tn_shape list = tn_unknown_dims(1);
    tn_shape values = list;
    tn_shape inverse = list;
    if (p->has_axis) {
        values.rank = TN_RANK_UNKNOWN;
        if (tn_input_has_rank(node, 0)) {
            int32_t axis = 0;
            values = node->inputs[0]->shape;
            TN_TRY(tn_infer_axis(p->axis, values.rank, &axis, err));
            inverse.dims[0] = values.dims[axis];
            values.dims[axis] = TN_DIM_UNKNOWN;
        }
    } else if (tn_input_has_rank(node, 0) && tn_fact_is_sized(node->inputs[0])) {
        size_t len = 0;
        TN_TRY(tn_shape_len_elems(&node->inputs[0]->shape, &len, err));
        inverse.dims[0] = (int64_t)len;
    }
    tn_set_output(node, 0, tn_input_dtype(node, 0), &values);
    tn_set_output(node, 1, TN_DTYPE_I64, &list);
    tn_set_output(node, 2, TN_DTYPE_I64, &inverse);
    tn_set_output(node, 3, TN_DTYPE_I64, &list);
    return TN_OK;
}

static int compare_elements(const unique_record *r, const char *in, size_t a, size_t b) {
    if (r->dtype != TN_DTYPE_STRING) {
        const uint64_t key_a = tn_sort_key(in, r->dtype, a);
        const uint64_t key_b = tn_sort_key(in, r->dtype, b);
        return key_a < key_b ? -1 : key_a > key_b ? 1 : 0;
    }
    tn_string text_a;
    tn_string text_b;
    memcpy(&text_a, in + a * sizeof text_a, sizeof text_a);
    memcpy(&text_b, in + b * sizeof text_b, sizeof text_b);
    const size_t common = tn_size_min(text_a.size_bytes, text_b.size_bytes);
    const int order = common == 0 ? 0 : memcmp(text_a.data, text_b.data, common);
    if (order != 0) return order;
    return text_a.size_bytes < text_b.size_bytes ? -1 : text_a.size_bytes > text_b.size_bytes;
}

static int compare_slices(const unique_record *r, const char *in, size_t a, size_t b) {
    for (size_t outer = 0; outer < r->outer_count; outer++) {
        const size_t plane = outer * r->axis_dim;
        for (size_t i = 0; i < r->inner_len; i++) {
            const int order = compare_elements(r, in, (plane + a) * r->inner_len + i,
                                               (plane + b) * r->inner_len + i);
            if (order != 0) return order;
        }
    }
    return 0;
}

static void merge_slices(const unique_record *r, const char *in, const size_t *from, size_t left,
                         size_t middle, size_t right, size_t *to) {
    size_t a = left;
    size_t b = middle;
    for (size_t i = left; i < right; i++) {
        const bool takes_b =
            a == middle || (b < right && compare_slices(r, in, from[b], from[a]) < 0);
        to[i] = takes_b ? from[b++] : from[a++];
    }
}

/* Stable bottom-up merge sort of slice numbers; the result is in lists->order. */
static void sort_slices(const unique_record *r, const char *in, unique_lists *lists) {
    const size_t count = r->axis_dim;
    for (size_t i = 0; i < count; i++) lists->order[i] = i;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t left = 0; left < count; left += 2 * run) {
            merge_slices(r, in, lists->order, left, tn_size_min(left + run, count),
                         tn_size_min(left + 2 * run, count), lists->scratch);
        }
        size_t *swapped = lists->order;
        lists->order = lists->scratch;
        lists->scratch = swapped;
    }
}

/* Groups equal neighbours; returns how many. Groups are in sorted order. */
static size_t find_groups(const unique_record *r, const char *in, unique_lists *lists) {
    size_t group_count = 0;
    for (size_t i = 0; i < r->axis_dim; i++) {
        const size_t slice = lists->order[i];
        if (i == 0 || compare_slices(r, in, lists->order[i - 1], slice) != 0) {
            lists->first[group_count] = slice;
            lists->counts[group_count] = 0;
            group_count++;
        }
        lists->group_of[slice] = group_count - 1;
        lists->counts[group_count - 1]++;
    }
    return group_count;
}

static void number_groups(const unique_record *r, unique_lists *lists, size_t group_count) {
    for (size_t g = 0; g < group_count; g++) lists->number[g] = g;
    if (r->is_sorted) return;
    size_t next = 0;
    for (size_t slice = 0; slice < r->axis_dim; slice++) {
        const size_t group = lists->group_of[slice];
        if (lists->first[group] == slice) lists->number[group] = next++;
    }
}

static void write_values(const unique_record *r, const char *in, const unique_lists *lists,
                         size_t group_count, char *out) {
    const size_t step_bytes = r->inner_len * r->elem_bytes;
    for (size_t outer = 0; outer < r->outer_count; outer++) {
        for (size_t g = 0; g < group_count; g++) {
            const size_t to = outer * group_count + lists->number[g];
            const size_t from = outer * r->axis_dim + lists->first[g];
            tn_copy_small(out + to * step_bytes, in + from * step_bytes, step_bytes);
        }
    }
}

static tn_status write_outputs(const unique_record *r, tn_kernel_context *ctx,
                               const unique_lists *lists, size_t group_count) {
    tn_shape values = r->shape;
    values.dims[r->axis] = (int64_t)group_count;
    const tn_shape list = {.rank = 1, .dims = {(int64_t)group_count}};
    void *data = NULL;
    if (r->has_values) {
        TN_TRY(ctx->make_output(ctx, 0, r->dtype, &values, &data));
        write_values(r, tn_kernel_in(ctx, 0), lists, group_count, data);
    }
    if (r->has_indices) {
        TN_TRY(ctx->make_output(ctx, 1, TN_DTYPE_I64, &list, &data));
        int64_t *indices = data;
        for (size_t g = 0; g < group_count; g++) {
            indices[lists->number[g]] = (int64_t)lists->first[g];
        }
    }
    if (r->has_inverse) {
        int64_t *inverse = tn_kernel_out(ctx, 2);
        for (size_t i = 0; i < r->axis_dim; i++) {
            inverse[i] = (int64_t)lists->number[lists->group_of[i]];
        }
    }
    if (r->has_counts) {
        TN_TRY(ctx->make_output(ctx, 3, TN_DTYPE_I64, &list, &data));
        int64_t *counts = data;
        for (size_t g = 0; g < group_count; g++) {
            counts[lists->number[g]] = (int64_t)lists->counts[g];
        }
    }
    return TN_OK;
}

static tn_status unique_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                            uint32_t tile1, uint32_t worker) {
    (void)tile0, (void)tile1;
    const unique_record *r = record;
    unique_lists lists;
    size_t **const members[] = {&lists.order, &lists.scratch, &lists.group_of,
                                &lists.first, &lists.counts,  &lists.number};
    size_t size_bytes = 0;
    TN_REQUIRE(tn_size_mul(r->axis_dim, sizeof(size_t), &size_bytes), tn_kernel_error(ctx, worker),
               TN_OVERFLOW, "%zu slices", r->axis_dim);
    for (size_t i = 0; i < TN_COUNTOF(members); i++) {
        void *data = NULL;
        TN_TRY(ctx->make_temporary(ctx, size_bytes, &data));
        *members[i] = data;
    }
    const char *in = tn_kernel_in(ctx, 0);
    sort_slices(r, in, &lists);
    const size_t group_count = find_groups(r, in, &lists);
    number_groups(r, &lists, group_count);
    return write_outputs(r, ctx, &lists, group_count);
}

static tn_status unique_variants(const tn_variant_query *query, tn_variant *out,
                                 uint32_t *out_count, tn_error *err) {
    (void)query, (void)err;
    tn_one_variant("unique", unique_run, 0, 1, out, out_count);
    return TN_OK;
}

static tn_status unique_bind(const tn_bind_context *ctx, void *record) {
    unique_record *r = record;
    const tn_node_facts *node = ctx->node;
    const unique_params *p = node->params;
    const tn_fact *input = node->inputs[0];
    r->dtype = input->dtype;
    r->elem_bytes = (uint32_t)tn_elem_bytes(input->dtype);
    r->is_sorted = p->is_sorted;
    r->has_values = tn_node_output(node, 0) != NULL;
    r->has_indices = tn_node_output(node, 1) != NULL;
    r->has_inverse = tn_node_output(node, 2) != NULL;
    r->has_counts = tn_node_output(node, 3) != NULL;
    r->outer_count = 1;
    r->inner_len = 1;
    r->axis_dim = tn_fact_len_elems(input);
    r->shape = (tn_shape){.rank = 1};
    if (!p->has_axis) return TN_OK;
    TN_TRY(tn_infer_axis(p->axis, input->shape.rank, &r->axis, ctx->err));
    const bool is_empty = tn_fact_len_elems(input) == 0;
    r->shape = input->shape;
    r->axis_dim = (size_t)input->shape.dims[r->axis];
    r->outer_count = is_empty ? 0 : (size_t)tn_dims_product(&input->shape, 0, r->axis);
    r->inner_len =
        is_empty ? 0 : (size_t)tn_dims_product(&input->shape, r->axis + 1, input->shape.rank);
    return TN_OK;
}

static const uint32_t unique_types[] = {TN_TYPES_NUMBER | TN_TYPE_BIT(BOOL) | TN_TYPE_BIT(STRING)};

static const tn_op_def rows[] = {
    {.name = "Unique",
     .since_version = 11,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 4,
     .flags = TN_OP_FOLDABLE | TN_OP_DATA_DEPENDENT,
     .input_types = unique_types,
     .input_types_count = 1,
     .params_bytes = sizeof(unique_params),
     .record_bytes = sizeof(unique_record),
     .check = unique_check,
     .infer = unique_infer,
     .variants = unique_variants,
     .bind = unique_bind},
};
const tn_op_table tn_unique_table = {rows, TN_COUNTOF(rows)};
