/* Einsum. The equation is parsed once into axes: letters and the axes of the ellipsis. Each operand
 * has a stride per axis (0 where it lacks the axis or has one element, the sum of strides where a
 * letter repeats), so an output element is a sum over the axes that the output lacks of the product
 * of one element per operand. Floats are summed in double, integers wrap around. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

#define MAX_OPERANDS 8
#define LETTERS 52
#define ELLIPSIS LETTERS                 /* label of the dots */
#define MAX_AXES (LETTERS + TN_MAX_RANK) /* letters, then ellipsis axes from the right */

typedef struct einsum_term {
    uint8_t count;
    bool has_ellipsis;
    uint8_t labels[TN_MAX_RANK + 1]; /* [count] letters or ELLIPSIS, as written */
} einsum_term;

typedef struct einsum_params {
    uint32_t operand_count;
    einsum_term operands[MAX_OPERANDS];
    einsum_term output;
} einsum_params;

typedef struct einsum_record {
    tn_dtype dtype;
    uint32_t operand_count;
    uint32_t tile_count;
    int32_t out_rank, sum_rank;
    size_t out_len;
    size_t sum_runs; /* positions of the summed axes but the last, which is the longest */
    int64_t out_dims[TN_MAX_RANK];
    int64_t sum_dims[MAX_AXES];
    int64_t out_strides[MAX_OPERANDS][TN_MAX_RANK]; /* elements */
    int64_t sum_strides[MAX_OPERANDS][MAX_AXES];
} einsum_record;

/* ---- the equation ---- */

/* Capitals before small letters, as the implicit output wants them. */
static int letter_label(char letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    return -1;
}

static tn_status add_label(einsum_term *term, int label, tn_error *err) {
    TN_REQUIRE(term->count < TN_COUNTOF(term->labels), err, TN_UNSUPPORTED,
               "a term of more than %d labels", (int)TN_COUNTOF(term->labels));
    term->labels[term->count++] = (uint8_t)label;
    return TN_OK;
}

/* Parses from *at to the next ',', '->' or the end, and leaves *at there. */
static tn_status parse_term(tn_text equation, size_t *at, einsum_term *term, tn_error *err) {
    for (; *at < equation.size_bytes; (*at)++) {
        const char c = equation.data[*at];
        if (c == ' ') continue;
        if (c == ',' || c == '-') return TN_OK;
        if (c == '.') {
            const bool has_dots = *at + 2 < equation.size_bytes && equation.data[*at + 1] == '.' &&
                                  equation.data[*at + 2] == '.';
            TN_REQUIRE(has_dots && !term->has_ellipsis, err, TN_INVALID_MODEL,
                       "equation has a bad ellipsis at position %zu", *at);
            term->has_ellipsis = true;
            TN_TRY(add_label(term, ELLIPSIS, err));
            *at += 2;
            continue;
        }
        TN_REQUIRE(letter_label(c) >= 0, err, TN_INVALID_MODEL,
                   "equation has character %d at position %zu", c, *at);
        TN_TRY(add_label(term, letter_label(c), err));
    }
    return TN_OK;
}

static void count_letters(const einsum_params *p, uint32_t *counts, bool *out_has_ellipsis) {
    *out_has_ellipsis = false;
    for (uint32_t o = 0; o < p->operand_count; o++) {
        const einsum_term *term = &p->operands[o];
        for (uint32_t i = 0; i < term->count; i++) {
            if (term->labels[i] == ELLIPSIS) {
                *out_has_ellipsis = true;
            } else {
                counts[term->labels[i]]++;
            }
        }
    }
}

/* Without "->": the ellipsis, then letters that occur once, in alphabetical order. */
static tn_status implicit_output(einsum_params *p, const uint32_t *counts, bool has_ellipsis,
                                 tn_error *err) {
    if (has_ellipsis) {
        p->output.has_ellipsis = true;
        TN_TRY(add_label(&p->output, ELLIPSIS, err));
    }
    for (int label = 0; label < LETTERS; label++) {
        if (counts[label] == 1) TN_TRY(add_label(&p->output, label, err));
    }
    return TN_OK;
}

static tn_status check_output(const einsum_params *p, const uint32_t *counts, bool has_ellipsis,
                              tn_error *err) {
    bool seen[LETTERS] = {false};
    TN_REQUIRE(!p->output.has_ellipsis || has_ellipsis, err, TN_INVALID_MODEL,
               "the output has an ellipsis that no input has");
    for (uint32_t i = 0; i < p->output.count; i++) {
        const uint8_t label = p->output.labels[i];
        if (label == ELLIPSIS) continue;
        TN_REQUIRE(counts[label] > 0 && !seen[label], err, TN_INVALID_MODEL,
                   "label %u of the output is in no input or named twice", i);
        seen[label] = true;
    }
    return TN_OK;
}

static tn_status einsum_check(const tn_check_context *ctx, void *params) {
    einsum_params *p = params;
    tn_text equation;
    size_t at = 0;
    TN_TRY(tn_check_text(ctx, "equation", "", &equation));
    TN_REQUIRE(ctx->input_count <= MAX_OPERANDS, ctx->err, TN_UNSUPPORTED,
               "%u operands, at most %d", ctx->input_count, MAX_OPERANDS);
    for (uint32_t i = 0; i < ctx->input_count; i++) {
        TN_REQUIRE(ctx->input_present[i], ctx->err, TN_INVALID_MODEL, "input %u is missing", i);
    }
    for (;;) {
        TN_REQUIRE(p->operand_count < ctx->input_count, ctx->err, TN_INVALID_MODEL,
                   "equation %.*s has more terms than the %u inputs", tn_text_width(equation),
                   equation.data, ctx->input_count);
        TN_TRY(parse_term(equation, &at, &p->operands[p->operand_count++], ctx->err));
        if (at == equation.size_bytes || equation.data[at] != ',') break;
        at++;
    }
    TN_REQUIRE(p->operand_count == ctx->input_count, ctx->err, TN_INVALID_MODEL,
               "equation %.*s has %u terms for %u inputs", tn_text_width(equation), equation.data,
               p->operand_count, ctx->input_count);
    uint32_t counts[LETTERS] = {0};
    bool has_ellipsis = false;
    count_letters(p, counts, &has_ellipsis);
    if (at == equation.size_bytes) return implicit_output(p, counts, has_ellipsis, ctx->err);
    TN_REQUIRE(at + 1 < equation.size_bytes && equation.data[at + 1] == '>', ctx->err,
               TN_INVALID_MODEL, "equation %.*s has a lone '-'", tn_text_width(equation),
               equation.data);
    at += 2;
    TN_TRY(parse_term(equation, &at, &p->output, ctx->err));
    TN_REQUIRE(at == equation.size_bytes, ctx->err, TN_INVALID_MODEL,
               "equation %.*s goes on after its output", tn_text_width(equation), equation.data);
    return check_output(p, counts, has_ellipsis, ctx->err);
}

/* ---- axes ---- */

typedef struct einsum_axes {
    int32_t ellipsis_rank;  /* the longest of any operand */
    int64_t dims[MAX_AXES]; /* by axis; 0 elements is possible, TN_DIM_UNKNOWN is not known */
    bool is_used[MAX_AXES];
} einsum_axes;

/* Axis of dim `i` of an operand; ellipsis axes are numbered from the right, so that they broadcast.
 */
static int32_t axis_of_dim(const einsum_term *term, int32_t ellipsis_rank, int32_t i) {
    int32_t at = 0;
    for (uint32_t k = 0; k < term->count; k++) {
        if (term->labels[k] != ELLIPSIS) {
            if (at == i) return term->labels[k];
            at++;
        } else if (i < at + ellipsis_rank) {
            return LETTERS + (at + ellipsis_rank - 1 - i);
        } else {
            at += ellipsis_rank;
        }
    }
    return -1;
}

static tn_status operand_ellipsis_rank(const einsum_term *term, int32_t rank, uint32_t operand,
                                       int32_t *out, tn_error *err) {
    *out = rank - (int32_t)term->count + (term->has_ellipsis ? 1 : 0);
    TN_REQUIRE(*out >= 0 && (term->has_ellipsis || *out == 0), err, TN_INVALID_ARGUMENT,
               "operand %u has rank %d, its term %u labels", operand, (int)rank,
               (unsigned)term->count);
    return TN_OK;
}

static tn_status join_axis(einsum_axes *axes, int32_t axis, int64_t dim, tn_error *err) {
    int64_t *known = &axes->dims[axis];
    if (!axes->is_used[axis] || *known == 1 || (*known < 0 && dim != 1)) {
        *known = dim;
    } else {
        TN_REQUIRE(dim == 1 || dim < 0 || dim == *known, err, TN_INVALID_ARGUMENT,
                   "one axis has %lld and %lld elements", (long long)*known, (long long)dim);
    }
    axes->is_used[axis] = true;
    return TN_OK;
}

/* All operands have a rank. */
static tn_status find_axes(const tn_node_facts *node, einsum_axes *axes, tn_error *err) {
    const einsum_params *p = node->params;
    memset(axes, 0, sizeof *axes);
    for (uint32_t o = 0; o < p->operand_count; o++) {
        const tn_shape *shape = &node->inputs[o]->shape;
        int32_t ellipsis_rank = 0;
        TN_TRY(operand_ellipsis_rank(&p->operands[o], shape->rank, o, &ellipsis_rank, err));
        if (ellipsis_rank > axes->ellipsis_rank) axes->ellipsis_rank = ellipsis_rank;
        for (int32_t i = 0; i < shape->rank; i++) {
            const int32_t axis = axis_of_dim(&p->operands[o], ellipsis_rank, i);
            TN_TRY(join_axis(axes, axis, shape->dims[i], err));
        }
    }
    return TN_OK;
}

static bool all_have_rank(const tn_node_facts *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!tn_input_has_rank(node, i)) return false;
    }
    return true;
}

static tn_status einsum_infer(const tn_node_facts *node, tn_error *err) {
    const einsum_params *p = node->params;
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!all_have_rank(node)) return TN_OK;
    einsum_axes axes;
    TN_TRY(find_axes(node, &axes, err));
    const int32_t dots = p->output.has_ellipsis ? axes.ellipsis_rank : 0;
    const int32_t rank = (int32_t)p->output.count - (p->output.has_ellipsis ? 1 : 0) + dots;
    TN_REQUIRE(rank <= TN_MAX_RANK, err, TN_UNSUPPORTED, "output rank %d, at most %d", (int)rank,
               TN_MAX_RANK);
    tn_shape to = {.rank = rank};
    for (int32_t i = 0; i < rank; i++) to.dims[i] = axes.dims[axis_of_dim(&p->output, dots, i)];
    return tn_put_output(node, 0, tn_input_dtype(node, 0), &to, err);
}

/* ---- the record ---- */

/* Stride of operand `o` along `axis`, in elements; repeated letters add up. */
static int64_t operand_stride(const tn_node_facts *node, uint32_t o, int32_t axis) {
    const einsum_params *p = node->params;
    const tn_shape *shape = &node->inputs[o]->shape;
    int64_t strides[TN_MAX_RANK];
    int64_t sum = 0;
    int32_t ellipsis_rank = 0;
    if (operand_ellipsis_rank(&p->operands[o], shape->rank, o, &ellipsis_rank, NULL) != TN_OK) {
        return 0;
    }
    tn_row_strides(shape, 1, strides);
    for (int32_t i = 0; i < shape->rank; i++) {
        const bool is_it = axis_of_dim(&p->operands[o], ellipsis_rank, i) == axis;
        if (is_it && shape->dims[i] != 1) sum += strides[i];
    }
    return sum;
}

/* Puts the longest summed axis last and counts the runs along it. */
static tn_status finish_sums(einsum_record *r, tn_error *err) {
    const int32_t last = r->sum_rank - 1;
    int32_t longest = last;
    for (int32_t i = 0; i < last; i++) {
        if (r->sum_dims[i] > r->sum_dims[longest]) longest = i;
    }
    if (longest != last) {
        const int64_t dim = r->sum_dims[last];
        r->sum_dims[last] = r->sum_dims[longest];
        r->sum_dims[longest] = dim;
        for (uint32_t o = 0; o < r->operand_count; o++) {
            const int64_t stride = r->sum_strides[o][last];
            r->sum_strides[o][last] = r->sum_strides[o][longest];
            r->sum_strides[o][longest] = stride;
        }
    }
    r->sum_runs = 1;
    for (int32_t i = 0; i < last; i++) {
        TN_REQUIRE(tn_size_mul(r->sum_runs, (size_t)r->sum_dims[i], &r->sum_runs), err, TN_OVERFLOW,
                   "the sum has too many terms");
    }
    return TN_OK;
}

static tn_status einsum_bind(const tn_bind_context *ctx, void *record) {
    einsum_record *r = record;
    const tn_node_facts *node = ctx->node;
    const einsum_params *p = node->params;
    const tn_shape *to = &node->outputs[0]->shape;
    einsum_axes axes;
    TN_TRY(find_axes(node, &axes, ctx->err));
    r->dtype = node->inputs[0]->dtype;
    r->operand_count = p->operand_count;
    r->tile_count = ctx->variant->tile_counts[0];
    r->out_len = tn_fact_len_elems(node->outputs[0]);
    if (r->out_len == 0) return TN_OK;
    const int32_t dots = p->output.has_ellipsis ? axes.ellipsis_rank : 0;
    r->out_rank = to->rank;
    for (int32_t i = 0; i < to->rank; i++) {
        const int32_t axis = axis_of_dim(&p->output, dots, i);
        r->out_dims[i] = to->dims[i];
        for (uint32_t o = 0; o < p->operand_count; o++) {
            r->out_strides[o][i] = operand_stride(node, o, axis);
        }
        axes.is_used[axis] = false; /* what is left is summed over */
    }
    for (int32_t axis = 0; axis < MAX_AXES; axis++) {
        if (!axes.is_used[axis]) continue;
        r->sum_dims[r->sum_rank] = axes.dims[axis];
        for (uint32_t o = 0; o < p->operand_count; o++) {
            r->sum_strides[o][r->sum_rank] = operand_stride(node, o, axis);
        }
        r->sum_rank++;
    }
    return finish_sums(r, ctx->err);
}

/* ---- running ---- */

/* Next position of a box: moves the offsets of all operands. */
static inline void next_position(int32_t rank, const int64_t *dims, const int64_t *strides,
                                 size_t operand_step, uint32_t operand_count, int64_t *index,
                                 int64_t *offsets) {
    for (int32_t axis = rank - 1; axis >= 0; axis--) {
        const bool wraps = ++index[axis] == dims[axis];
        const int64_t steps = wraps ? 1 - dims[axis] : 1;
        for (uint32_t o = 0; o < operand_count; o++) {
            offsets[o] += steps * strides[o * operand_step + (size_t)axis];
        }
        if (!wraps) return;
        index[axis] = 0;
    }
}

/* X(dtype, type, wide, load, store) */
#define EINSUM_LIST(X)                                                                       \
    X(F32, float, double, (double)value, (float)sum)                                         \
    X(F64, double, double, value, sum)                                                       \
    X(F16, uint16_t, double, (double)tn_f32_from_f16(value), tn_f16_from_f32((float)sum))    \
    X(BF16, uint16_t, double, (double)tn_f32_from_bf16(value), tn_bf16_from_f32((float)sum)) \
    X(I8, int8_t, uint64_t, (uint64_t)value, (int8_t)sum)                                    \
    X(U8, uint8_t, uint64_t, (uint64_t)value, (uint8_t)sum)                                  \
    X(I16, int16_t, uint64_t, (uint64_t)value, (int16_t)sum)                                 \
    X(U16, uint16_t, uint64_t, (uint64_t)value, (uint16_t)sum)                               \
    X(I32, int32_t, uint64_t, (uint64_t)value, (int32_t)sum)                                 \
    X(U32, uint32_t, uint64_t, (uint64_t)value, (uint32_t)sum)                               \
    X(I64, int64_t, uint64_t, (uint64_t)value, (int64_t)sum)                                 \
    X(U64, uint64_t, uint64_t, (uint64_t)value, (uint64_t)sum)

/* One output element: `offsets` are those of the operands at its position. */
#define DEFINE_ELEMENT(dtype, type, wide, load, store)                                             \
    static inline wide load_##dtype(const char *data, int64_t at) {                                \
        type value;                                                                                \
        memcpy(&value, data + at * (int64_t)sizeof value, sizeof value);                           \
        return load;                                                                               \
    }                                                                                              \
    static inline wide run_##dtype(const einsum_record *r, const char *const *in,                  \
                                   const int64_t *at) {                                            \
        const int32_t last = r->sum_rank - 1;                                                      \
        const int64_t len = last < 0 ? 1 : r->sum_dims[last];                                      \
        const int64_t step_a = last < 0 ? 0 : r->sum_strides[0][last];                             \
        const int64_t step_b = last < 0 ? 0 : r->sum_strides[1][last];                             \
        wide sum = 0;                                                                              \
        for (int64_t i = 0; r->operand_count == 2 && i < len; i++) {                               \
            sum +=                                                                                 \
                load_##dtype(in[0], at[0] + i * step_a) * load_##dtype(in[1], at[1] + i * step_b); \
        }                                                                                          \
        for (int64_t i = 0; r->operand_count != 2 && i < len; i++) {                               \
            wide product = load_##dtype(in[0], at[0] + i * step_a);                                \
            for (uint32_t o = 1; o < r->operand_count; o++) {                                      \
                const int64_t step = last < 0 ? 0 : r->sum_strides[o][last];                       \
                product *= load_##dtype(in[o], at[o] + i * step);                                  \
            }                                                                                      \
            sum += product;                                                                        \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
    static void element_##dtype(const einsum_record *r, const char *const *in,                     \
                                const int64_t *offsets, char *out) {                               \
        int64_t index[MAX_AXES];                                                                   \
        int64_t at[MAX_OPERANDS];                                                                  \
        wide sum = 0;                                                                              \
        for (int32_t i = 0; i < r->sum_rank; i++) index[i] = 0;                                    \
        for (uint32_t o = 0; o < r->operand_count; o++) at[o] = offsets[o];                        \
        for (size_t i = 0; i < r->sum_runs; i++) {                                                 \
            sum += run_##dtype(r, in, at);                                                         \
            next_position(r->sum_rank - 1, r->sum_dims, r->sum_strides[0], MAX_AXES,               \
                          r->operand_count, index, at);                                            \
        }                                                                                          \
        const type value = store;                                                                  \
        memcpy(out, &value, sizeof value);                                                         \
    }
EINSUM_LIST(DEFINE_ELEMENT)

typedef void (*element_fn)(const einsum_record *r, const char *const *in, const int64_t *offsets,
                           char *out);
#define ELEMENT_ENTRY(dtype, ...) [TN_DTYPE_##dtype] = element_##dtype,
static const element_fn elements[TN_DTYPE_COUNT] = {EINSUM_LIST(ELEMENT_ENTRY)};

static void seek_output(const einsum_record *r, size_t position, int64_t *index, int64_t *offsets) {
    for (uint32_t o = 0; o < r->operand_count; o++) offsets[o] = 0;
    for (int32_t axis = r->out_rank - 1; axis >= 0; axis--) {
        index[axis] = (int64_t)(position % (size_t)r->out_dims[axis]);
        position /= (size_t)r->out_dims[axis];
        for (uint32_t o = 0; o < r->operand_count; o++) {
            offsets[o] += index[axis] * r->out_strides[o][axis];
        }
    }
}

static tn_status einsum_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                            uint32_t tile1, uint32_t worker) {
    (void)worker;
    const einsum_record *r = record;
    size_t at = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->out_len, r->tile_count, tile0, &at, &ignored);
    tn_tile_range(r->out_len, r->tile_count, tile1 - 1, &ignored, &end);
    if (at >= end) return TN_OK;
    const char *in[MAX_OPERANDS];
    int64_t index[TN_MAX_RANK];
    int64_t offsets[MAX_OPERANDS];
    for (uint32_t o = 0; o < r->operand_count; o++) in[o] = tn_kernel_in(ctx, o);
    const size_t elem_bytes = tn_elem_bytes(r->dtype);
    char *out = tn_kernel_out(ctx, 0);
    seek_output(r, at, index, offsets);
    for (; at < end; at++) {
        elements[r->dtype](r, in, offsets, out + at * elem_bytes);
        next_position(r->out_rank, r->out_dims, r->out_strides[0], TN_MAX_RANK, r->operand_count,
                      index, offsets);
    }
    return TN_OK;
}

static tn_status einsum_variants(const tn_variant_query *query, tn_variant *out,
                                 uint32_t *out_count, tn_error *err) {
    const tn_node_facts *node = query->node;
    tn_one_variant("sum of products", einsum_run, 0, 1, out, out_count);
    if (!tn_node_is_sized(node)) return TN_OK;
    einsum_axes axes;
    TN_TRY(find_axes(node, &axes, err));
    double work = 1.0;
    for (int32_t axis = 0; axis < MAX_AXES; axis++) {
        if (axes.is_used[axis]) work *= (double)axes.dims[axis];
    }
    const double bytes = work * 32.0 < 1.0e15 ? work * 32.0 : 1.0e15;
    out[0].tile_counts[0] = tn_tiles_for_bytes((size_t)bytes, tn_fact_len_elems(node->outputs[0]));
    out[0].cost_ns = 100.0 + work * 4.0;
    return TN_OK;
}

static const uint32_t einsum_types[] = {TN_TYPES_NUMBER};

static const tn_op_def rows[] = {
    {.name = "Einsum",
     .since_version = 12,
     .min_inputs = 1,
     .max_inputs = TN_VARIADIC,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = einsum_types,
     .input_types_count = 1,
     .same_type_mask = UINT32_MAX,
     .params_bytes = sizeof(einsum_params),
     .record_bytes = sizeof(einsum_record),
     .check = einsum_check,
     .infer = einsum_infer,
     .variants = einsum_variants,
     .bind = einsum_bind},
};
const tn_op_table tn_einsum_table = {rows, TN_COUNTOF(rows)};
