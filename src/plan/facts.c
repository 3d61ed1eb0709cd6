/* What rows share when they check attributes and infer shapes: readers that know absent from wrong,
 * broadcasting with unknown dims, axes. All errors carry the values. */
#include "plan/op_def.h"

#include <stdio.h>
#include <string.h>

#include "base/checked_size.h"

bool tn_fact_is_sized(const tn_fact *fact) {
    if (fact->shape.rank < 0) return false;
    for (int32_t i = 0; i < fact->shape.rank; i++) {
        if (fact->shape.dims[i] < 0) return false;
    }
    return true;
}

size_t tn_fact_len_elems(const tn_fact *fact) {
    size_t len_elems = 1;
    for (int32_t i = 0; i < fact->shape.rank; i++) len_elems *= (size_t)fact->shape.dims[i];
    return len_elems;
}

tn_status tn_fact_size_bytes(const tn_fact *fact, size_t *out_bytes, tn_error *err) {
    tn_shape physical = fact->shape;
    if (fact->layout.block != 0 && physical.rank >= 2) {
        const int64_t block = fact->layout.block;
        physical.dims[1] = (physical.dims[1] + block - 1) / block * block;
    }
    return tn_shape_size_bytes(&physical, fact->dtype, out_bytes, err);
}

bool tn_fact_read_ints(const tn_fact *fact, int64_t *values, size_t capacity, size_t *out_count) {
    if (fact == NULL || fact->data == NULL || !tn_fact_is_sized(fact)) return false;
    const size_t count = tn_fact_len_elems(fact);
    if (count > capacity) return false;
    if (fact->dtype == TN_DTYPE_I64) {
        memcpy(values, fact->data, count * sizeof *values);
    } else if (fact->dtype == TN_DTYPE_I32) {
        for (size_t i = 0; i < count; i++) {
            int32_t value;
            memcpy(&value, (const char *)fact->data + i * sizeof value, sizeof value);
            values[i] = value;
        }
    } else {
        return false;
    }
    *out_count = count;
    return true;
}

tn_status tn_infer_same_as_input0(const tn_node_facts *node, tn_error *err) {
    (void)err;
    const tn_fact *input = tn_node_input(node, 0);
    tn_fact *output = tn_node_output(node, 0);
    if (input == NULL || output == NULL) return TN_OK;
    output->kind = input->kind;
    output->dtype = input->dtype;
    output->shape = input->shape;
    return TN_OK;
}

/* One axis of a broadcast; unknown stays unknown unless the other side decides it. */
static bool broadcast_dim(int64_t a, int64_t b, int64_t *out) {
    if (a == b) {
        *out = a;
    } else if (a == 1) {
        *out = b;
    } else if (b == 1) {
        *out = a;
    } else if (a < 0 && b < 0) {
        *out = TN_DIM_UNKNOWN;
    } else if (a < 0) {
        *out = b;
    } else if (b < 0) {
        *out = a;
    } else {
        return false;
    }
    return true;
}

tn_status tn_infer_broadcast(const tn_shape *a, const tn_shape *b, tn_shape *out, tn_error *err) {
    if (a->rank < 0 || b->rank < 0) {
        out->rank = TN_RANK_UNKNOWN;
        return TN_OK;
    }
    tn_shape result;
    result.rank = a->rank > b->rank ? a->rank : b->rank;
    for (int32_t i = 0; i < result.rank; i++) {
        const int32_t axis_a = i - (result.rank - a->rank);
        const int32_t axis_b = i - (result.rank - b->rank);
        const int64_t dim_a = axis_a < 0 ? 1 : a->dims[axis_a];
        const int64_t dim_b = axis_b < 0 ? 1 : b->dims[axis_b];
        if (!broadcast_dim(dim_a, dim_b, &result.dims[i])) {
            char text_a[160];
            char text_b[160];
            return tn_error_set(err, TN_INVALID_ARGUMENT,
                                "shapes %s and %s do not broadcast: axis %d has %lld and %lld",
                                tn_shape_text(a, text_a, sizeof text_a),
                                tn_shape_text(b, text_b, sizeof text_b), (int)i, (long long)dim_a,
                                (long long)dim_b);
        }
    }
    *out = result;
    return TN_OK;
}

tn_status tn_infer_axis(int64_t axis, int32_t rank, int32_t *out_axis, tn_error *err) {
    TN_REQUIRE(axis >= -(int64_t)rank && axis < rank, err, TN_INVALID_MODEL,
               "axis %lld is outside rank %d", (long long)axis, (int)rank);
    *out_axis = (int32_t)(axis < 0 ? axis + rank : axis);
    return TN_OK;
}

const char *tn_shape_text(const tn_shape *shape, char *text, size_t capacity) {
    if (shape->rank < 0) {
        (void)snprintf(text, capacity, "[?]");
        return text;
    }
    size_t used = 0;
    for (int32_t i = 0; i <= shape->rank && used < capacity; i++) {
        int wrote;
        if (i == shape->rank) {
            wrote = snprintf(text + used, capacity - used, i == 0 ? "[]" : "]");
        } else if (shape->dims[i] < 0) {
            wrote = snprintf(text + used, capacity - used, i == 0 ? "[?" : ", ?");
        } else {
            wrote = snprintf(text + used, capacity - used, i == 0 ? "[%lld" : ", %lld",
                             (long long)shape->dims[i]);
        }
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return text;
}

/* The attribute when present and of `type`; TN_INVALID_MODEL when present with another type. */
static tn_status find_attribute(const tn_check_context *ctx, const char *name,
                                tn_attribute_type type, const tn_graph_attribute **out) {
    *out = ctx->node == NULL ? NULL : tn_graph_node_attribute(ctx->node, name);
    if (*out == NULL) return TN_OK;
    const bool is_empty_list = (*out)->count == 0 && type >= TN_ATTRIBUTE_FLOATS;
    TN_REQUIRE((*out)->type == type || is_empty_list, ctx->err, TN_INVALID_MODEL,
               "attribute %s has type %d, expected %d", name, (int)(*out)->type, (int)type);
    return TN_OK;
}

tn_status tn_check_int(const tn_check_context *ctx, const char *name, int64_t fallback,
                       int64_t *out) {
    const tn_graph_attribute *attribute;
    TN_TRY(find_attribute(ctx, name, TN_ATTRIBUTE_INT, &attribute));
    *out = attribute == NULL ? fallback : attribute->i;
    return TN_OK;
}

tn_status tn_check_float(const tn_check_context *ctx, const char *name, float fallback,
                         float *out) {
    const tn_graph_attribute *attribute;
    TN_TRY(find_attribute(ctx, name, TN_ATTRIBUTE_FLOAT, &attribute));
    *out = attribute == NULL ? fallback : attribute->f;
    return TN_OK;
}

tn_status tn_check_text(const tn_check_context *ctx, const char *name, const char *fallback,
                        tn_text *out) {
    const tn_graph_attribute *attribute;
    TN_TRY(find_attribute(ctx, name, TN_ATTRIBUTE_STRING, &attribute));
    *out = attribute != NULL ? attribute->s : (tn_text){fallback, strlen(fallback)};
    return TN_OK;
}

tn_status tn_check_ints(const tn_check_context *ctx, const char *name, int64_t *values,
                        size_t capacity, size_t *out_count, bool *out_present) {
    const tn_graph_attribute *attribute;
    *out_count = 0;
    *out_present = false;
    TN_TRY(find_attribute(ctx, name, TN_ATTRIBUTE_INTS, &attribute));
    if (attribute == NULL) return TN_OK;
    TN_REQUIRE(attribute->count <= capacity, ctx->err, TN_INVALID_MODEL,
               "attribute %s has %zu numbers, at most %zu make sense", name, attribute->count,
               capacity);
    for (size_t i = 0; i < attribute->count; i++) values[i] = attribute->ints[i];
    *out_count = attribute->count;
    *out_present = true;
    return TN_OK;
}

const tn_op_def *tn_op_tables_find(const tn_op_table *const *tables, size_t table_count,
                                   tn_text domain, tn_text name, int64_t opset) {
    const tn_op_def *best = NULL;
    for (size_t t = 0; t < table_count; t++) {
        for (size_t r = 0; r < tables[t]->count; r++) {
            const tn_op_def *row = &tables[t]->rows[r];
            const char *row_domain = row->domain == NULL ? "" : row->domain;
            if (row->since_version > opset) continue;
            if (row->until_version != 0 && row->until_version < opset) continue;
            if (!tn_text_equals_literal(name, row->name)) continue;
            if (!tn_text_equals_literal(domain, row_domain)) continue;
            if (best == NULL || row->since_version > best->since_version) best = row;
        }
    }
    return best;
}
