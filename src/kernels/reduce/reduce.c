/* The Reduce operators. Axes are merged until kept and reduced ones alternate; then either the last
 * axis is reduced, and each output folds contiguous runs, or it is kept, and each strip of outputs
 * folds rows. The folding of one output unit is a fixed sequence of steps; when there are few units
 * the steps are cut into fixed chunks that phase 0 folds apart and phase 1 merges, so the bits do
 * not depend on threads. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/reduce/reducers.h"
#include "plan/op_def.h"

enum {
    RUN_PIECE = 4096,       /* elements of one step when the last axis is reduced */
    STRIP_COLS = 256,       /* outputs of one unit when the last axis is kept */
    ROWS_PER_SUM = 64,      /* rows folded before they join the unit's accumulators */
    TILE_ELEMS = 128 * 1024 /* about 20 us of reading */
};

typedef struct reduce_params {
    int64_t axes[TN_MAX_RANK]; /* from the attribute */
    size_t axes_count;
    tn_reduce_kind kind;
    bool takes_axes_input;
    bool keeps_dims;
    bool empty_is_none; /* noop_with_empty_axes */
} reduce_params;

typedef struct reduce_axes {
    size_t count;
    size_t dims[TN_MAX_RANK];
    size_t strides[TN_MAX_RANK]; /* elements of the input */
} reduce_axes;

typedef struct reduce_record {
    const tn_reducer *reducer;
    reduce_axes kept;    /* without the last axis when that is kept */
    reduce_axes reduced; /* without the last axis when that is reduced */
    bool folds_runs;     /* the last axis is reduced */
    size_t last;         /* length of the last axis */
    size_t element_bytes;
    size_t folded;       /* input elements per output */
    size_t strips;       /* units per kept combination */
    size_t unit_outputs; /* of a full unit */
    size_t unit_count;
    size_t step_count; /* of each unit */
    size_t chunk_steps;
    size_t chunk_count;
    size_t tile_units;
    uint32_t tile_counts[2];
} reduce_record;

static tn_status check_common(const tn_check_context *ctx, reduce_params *p) {
    int64_t keepdims;
    int64_t noop;
    TN_TRY(tn_check_int(ctx, "keepdims", 1, &keepdims));
    TN_TRY(tn_check_int(ctx, "noop_with_empty_axes", 0, &noop));
    p->keeps_dims = keepdims != 0;
    p->empty_is_none = p->takes_axes_input && noop != 0;
    if (p->takes_axes_input) return TN_OK;
    bool is_present;
    return tn_check_ints(ctx, "axes", p->axes, TN_MAX_RANK, &p->axes_count, &is_present);
}

#define DEFINE_CHECK(kind_name)                                                             \
    static tn_status check_##kind_name(const tn_check_context *ctx, void *params) {         \
        reduce_params *p = params;                                                          \
        p->kind = TN_REDUCE_##kind_name;                                                    \
        return check_common(ctx, p);                                                        \
    }                                                                                       \
    static tn_status check_##kind_name##_input(const tn_check_context *ctx, void *params) { \
        reduce_params *p = params;                                                          \
        p->kind = TN_REDUCE_##kind_name;                                                    \
        p->takes_axes_input = true;                                                         \
        return check_common(ctx, p);                                                        \
    }
TN_REDUCE_KIND_LIST(DEFINE_CHECK)
#undef DEFINE_CHECK

/* The axes of this node: false when they are not known yet. */
static bool read_axes(const tn_node_facts *node, int64_t *axes, size_t *out_count) {
    const reduce_params *p = node->params;
    *out_count = 0;
    if (!p->takes_axes_input) {
        for (size_t i = 0; i < p->axes_count; i++) axes[i] = p->axes[i];
        *out_count = p->axes_count;
        return true;
    }
    const tn_fact *input = tn_node_input(node, 1);
    return input == NULL || tn_fact_read_ints(input, axes, TN_MAX_RANK, out_count);
}

/* Marks the reduced axes of an input of known rank. */
static tn_status mark_axes(const tn_node_facts *node, bool *is_reduced, bool *out_known,
                           tn_error *err) {
    const reduce_params *p = node->params;
    const int32_t rank = tn_node_input(node, 0)->shape.rank;
    const tn_fact *input = p->takes_axes_input ? tn_node_input(node, 1) : NULL;
    int64_t axes[TN_MAX_RANK];
    size_t count;
    if (input != NULL && tn_fact_is_sized(input)) {
        TN_REQUIRE(tn_fact_len_elems(input) <= TN_MAX_RANK, err, TN_INVALID_ARGUMENT,
                   "%zu axes, at most %d make sense", tn_fact_len_elems(input), TN_MAX_RANK);
    }
    *out_known = rank >= 0 && read_axes(node, axes, &count);
    if (!*out_known) return TN_OK;
    for (int32_t i = 0; i < rank; i++) is_reduced[i] = count == 0 && !p->empty_is_none;
    for (size_t i = 0; i < count; i++) {
        int32_t axis;
        TN_TRY(tn_infer_axis(axes[i], rank, &axis, err));
        is_reduced[axis] = true;
    }
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const reduce_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    tn_fact *y = tn_node_output(node, 0);
    if (x == NULL || y == NULL) return TN_OK;
    y->kind = TN_KIND_TENSOR;
    y->dtype = x->dtype;
    y->shape.rank = TN_RANK_UNKNOWN;
    if (x->shape.rank < 0) return TN_OK;
    bool is_reduced[TN_MAX_RANK] = {false};
    bool is_known;
    TN_TRY(mark_axes(node, is_reduced, &is_known, err));
    if (!is_known && !p->keeps_dims) return TN_OK;
    y->shape.rank = 0;
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int64_t dim = is_known && is_reduced[i] ? 1 : x->shape.dims[i];
        if (!is_known && dim != 1) dim = TN_DIM_UNKNOWN;
        if (is_known && is_reduced[i] && !p->keeps_dims) continue;
        y->shape.dims[y->shape.rank++] = dim;
    }
    return TN_OK;
}

static void add_axis(reduce_axes *axes, size_t dim, size_t stride) {
    axes->dims[axes->count] = dim;
    axes->strides[axes->count] = stride;
    axes->count++;
}

static size_t product_of(const reduce_axes *axes) {
    size_t product = 1;
    for (size_t i = 0; i < axes->count; i++) product *= axes->dims[i];
    return product;
}

/* Element offset of combination `index` of `axes`, last axis fastest. */
static size_t offset_of(const reduce_axes *axes, size_t index) {
    size_t offset = 0;
    for (size_t i = axes->count; i-- > 0;) {
        offset += index % axes->dims[i] * axes->strides[i];
        index /= axes->dims[i];
    }
    return offset;
}

/* Merges neighbours of one kind, drops axes of length 1, and sets the last axis apart. */
static void split_axes(const tn_shape *shape, const bool *is_reduced, reduce_record *r) {
    size_t dims[TN_MAX_RANK];
    bool kinds[TN_MAX_RANK];
    size_t count = 0;
    for (int32_t i = 0; i < shape->rank; i++) {
        const size_t dim = shape->dims[i] < 0 ? 1 : (size_t)shape->dims[i];
        if (dim == 1) continue;
        if (count > 0 && kinds[count - 1] == is_reduced[i]) {
            dims[count - 1] *= dim;
        } else {
            dims[count] = dim;
            kinds[count++] = is_reduced[i];
        }
    }
    r->folds_runs = count > 0 && kinds[count - 1];
    r->last = count > 0 ? dims[count - 1] : 1;
    size_t strides[TN_MAX_RANK + 1];
    strides[count] = 1;
    for (size_t i = count; i-- > 0;) strides[i] = strides[i + 1] * dims[i];
    for (size_t i = 0; i + 1 < count; i++) {
        add_axis(kinds[i] ? &r->reduced : &r->kept, dims[i], strides[i + 1]);
    }
}

/* Units, steps, chunks and tiles: from the shape alone. */
static void cut_work(reduce_record *r) {
    const size_t kept = product_of(&r->kept);
    const size_t reduced = product_of(&r->reduced);
    if (r->folds_runs) {
        r->strips = 1;
        r->unit_outputs = 1;
        r->step_count = reduced * ((r->last + RUN_PIECE - 1) / RUN_PIECE);
        r->folded = reduced * r->last;
    } else {
        r->unit_outputs = tn_size_min(r->last, STRIP_COLS);
        r->strips = r->unit_outputs == 0 ? 0 : (r->last + STRIP_COLS - 1) / STRIP_COLS;
        r->step_count = reduced;
        r->folded = reduced;
    }
    r->unit_count = kept * r->strips;
    const size_t step_elems =
        r->folds_runs ? tn_size_max(tn_size_min(r->last, RUN_PIECE), 1) : r->unit_outputs;
    const size_t unit_elems = tn_size_max(r->step_count * step_elems, 1);
    r->chunk_steps = tn_size_max(r->step_count, 1);
    r->chunk_count = 1;
    if (r->unit_count < 8 && unit_elems >= 2 * TILE_ELEMS) {
        r->chunk_steps = tn_size_max(TILE_ELEMS / step_elems, 1);
        r->chunk_count = (r->step_count + r->chunk_steps - 1) / r->chunk_steps;
    }
    r->tile_units = tn_size_max(TILE_ELEMS / unit_elems, 1);
    if (r->chunk_count > 1) {
        r->tile_counts[0] = (uint32_t)(r->unit_count * r->chunk_count);
        r->tile_counts[1] = 1;
    } else {
        r->tile_counts[0] =
            (uint32_t)tn_size_max((r->unit_count + r->tile_units - 1) / r->tile_units, 1);
    }
}

static tn_status describe(const tn_node_facts *node, tn_cpu_features cpu, reduce_record *r,
                          tn_error *err) {
    const reduce_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    bool is_reduced[TN_MAX_RANK] = {false};
    bool is_known;
    TN_TRY(mark_axes(node, is_reduced, &is_known, err));
    *r = (reduce_record){.reducer = tn_reducer_get(p->kind, x->dtype, cpu),
                         .element_bytes = tn_dtype_bits(x->dtype) / 8};
    TN_REQUIRE(r->reducer != NULL, err, TN_UNSUPPORTED, "%s of %s", node->op->name,
               tn_dtype_name(x->dtype));
    split_axes(&x->shape, is_reduced, r);
    cut_work(r);
    return TN_OK;
}

static const char portable_name[] = "reduce portable";

static size_t partial_bytes(const reduce_record *r) {
    return r->unit_outputs * r->reducer->accumulator_bytes;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker);

static tn_status describe_variant(const tn_node_facts *node, tn_cpu_features cpu, const char *name,
                                  tn_variant *out, tn_error *err) {
    reduce_record r;
    TN_TRY(describe(node, cpu, &r, err));
    *out = (tn_variant){.name = name, .run = run, .phase_count = 1};
    out->tile_counts[0] = r.tile_counts[0];
    if (r.chunk_count > 1) {
        out->phase_count = 2;
        out->tile_counts[1] = r.tile_counts[1];
        TN_REQUIRE(tn_size_mul(r.unit_count * r.chunk_count, partial_bytes(&r),
                               &out->shared_scratch_bytes),
                   err, TN_OVERFLOW, "partial results of %zu units are too large", r.unit_count);
    }
    const double elems = (double)r.unit_count * (double)r.unit_outputs * (double)r.folded;
    out->cost_ns = 50.0 + elems * (cpu == TN_CPU_PORTABLE ? 0.3 : 0.15);
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    TN_TRY(describe_variant(query->node, TN_CPU_PORTABLE, portable_name, &out[0], err));
    *out_count = 1;
    if (query->cpu == TN_CPU_PORTABLE) return TN_OK;
    if (tn_node_input(query->node, 0)->dtype != TN_DTYPE_F32) return TN_OK;
    *out_count = 2;
    return describe_variant(query->node, query->cpu, "reduce vector", &out[1], err);
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    const bool is_portable = strcmp(ctx->variant->name, portable_name) == 0;
    return describe(ctx->node, is_portable ? TN_CPU_PORTABLE : ctx->cpu, record, ctx->err);
}

/* Steps [step0, step1) of a unit whose last axis is reduced. */
static void fold_runs(const reduce_record *r, const char *x, size_t step0, size_t step1,
                      void *accumulator) {
    const size_t pieces = (r->last + RUN_PIECE - 1) / RUN_PIECE;
    for (size_t step = step0; step < step1; step++) {
        const size_t piece = step % pieces * RUN_PIECE;
        const size_t offset = offset_of(&r->reduced, step / pieces) + piece;
        r->reducer->run(x + offset * r->element_bytes, tn_size_min(RUN_PIECE, r->last - piece),
                        accumulator);
    }
}

/* Steps [step0, step1) of a strip of `cols` outputs. Groups of rows are folded apart, so that long
 * columns keep their precision. */
static void fold_rows(const reduce_record *r, const char *x, size_t cols, size_t step0,
                      size_t step1, void *accumulators) {
    _Alignas(64) char group[STRIP_COLS * TN_REDUCE_MAX_ACCUMULATOR_BYTES];
    for (size_t start = step0; start < step1; start += ROWS_PER_SUM) {
        const size_t end = tn_size_min(start + ROWS_PER_SUM, step1);
        void *into = step1 - step0 > ROWS_PER_SUM ? (void *)group : accumulators;
        if (into != accumulators) r->reducer->init(into, cols);
        for (size_t step = start; step < end; step++) {
            r->reducer->row(x + offset_of(&r->reduced, step) * r->element_bytes, cols, into);
        }
        if (into != accumulators) r->reducer->merge(accumulators, into, cols);
    }
}

typedef struct reduce_unit {
    size_t in_offset; /* elements */
    size_t out_index;
    size_t outputs;
} reduce_unit;

static reduce_unit unit_at(const reduce_record *r, size_t index) {
    if (r->folds_runs) return (reduce_unit){offset_of(&r->kept, index), index, 1};
    const size_t combination = index / r->strips;
    const size_t col = index % r->strips * STRIP_COLS;
    return (reduce_unit){offset_of(&r->kept, combination) + col, combination * r->last + col,
                         tn_size_min(STRIP_COLS, r->last - col)};
}

static void fold(const reduce_record *r, const reduce_unit *unit, const char *x, size_t chunk,
                 void *accumulators) {
    const size_t step0 = chunk * r->chunk_steps;
    const size_t step1 = tn_size_min(step0 + r->chunk_steps, r->step_count);
    const char *from = x + unit->in_offset * r->element_bytes;
    r->reducer->init(accumulators, unit->outputs);
    if (r->folds_runs) {
        fold_runs(r, from, step0, step1, accumulators);
    } else {
        fold_rows(r, from, unit->outputs, step0, step1, accumulators);
    }
}

/* Phase 1 of a cut reduction: chunks in their order. */
static void merge_chunks(const reduce_record *r, tn_kernel_context *ctx) {
    char *y = tn_kernel_out(ctx, 0);
    for (size_t index = 0; index < r->unit_count; index++) {
        const reduce_unit unit = unit_at(r, index);
        char *first = ctx->shared_scratch + index * r->chunk_count * partial_bytes(r);
        for (size_t chunk = 1; chunk < r->chunk_count; chunk++) {
            r->reducer->merge(first, first + chunk * partial_bytes(r), unit.outputs);
        }
        r->reducer->finish(first, unit.outputs, r->folded, y + unit.out_index * r->element_bytes);
    }
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)worker;
    const reduce_record *r = record;
    const char *x = tn_kernel_in(ctx, 0);
    if (ctx->phase == 1) {
        merge_chunks(r, ctx);
        return TN_OK;
    }
    if (r->chunk_count > 1) {
        for (size_t tile = tile0; tile < tile1; tile++) {
            const reduce_unit unit = unit_at(r, tile / r->chunk_count);
            fold(r, &unit, x, tile % r->chunk_count, ctx->shared_scratch + tile * partial_bytes(r));
        }
        return TN_OK;
    }
    _Alignas(64) char accumulators[STRIP_COLS * TN_REDUCE_MAX_ACCUMULATOR_BYTES];
    char *y = tn_kernel_out(ctx, 0);
    const size_t end = tn_size_min((size_t)tile1 * r->tile_units, r->unit_count);
    if (r->folds_runs && r->reduced.count == 0 && r->step_count == 1) {
        /* the commonest case: trailing axes of moderate length, rows one after another */
        const size_t row = (size_t)tile0 * r->tile_units;
        if (row < end) {
            r->reducer->runs(x + row * r->last * r->element_bytes, end - row, r->last,
                             y + row * r->element_bytes);
        }
        return TN_OK;
    }
    for (size_t index = (size_t)tile0 * r->tile_units; index < end; index++) {
        const reduce_unit unit = unit_at(r, index);
        fold(r, &unit, x, 0, accumulators);
        r->reducer->finish(accumulators, unit.outputs, r->folded,
                           y + unit.out_index * r->element_bytes);
    }
    return TN_OK;
}

#define NUMBERS                                                                  \
    (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16) | TN_TYPE_BIT(I32) | \
     TN_TYPE_BIT(I64) | TN_TYPE_BIT(U32) | TN_TYPE_BIT(U64))
#define AXES_TYPE TN_TYPE_BIT(I64)

static const uint32_t types_1[] = {NUMBERS, AXES_TYPE};
static const uint32_t types_12[] = {NUMBERS | TN_TYPE_BIT(I8) | TN_TYPE_BIT(U8), AXES_TYPE};
static const uint32_t types_13[] = {NUMBERS | TN_TYPE_BIT(BF16), AXES_TYPE};
static const uint32_t types_13_narrow[] = {
    NUMBERS | TN_TYPE_BIT(BF16) | TN_TYPE_BIT(I8) | TN_TYPE_BIT(U8), AXES_TYPE};
static const uint32_t types_20[] = {
    NUMBERS | TN_TYPE_BIT(BF16) | TN_TYPE_BIT(I8) | TN_TYPE_BIT(U8) | TN_TYPE_BIT(BOOL), AXES_TYPE};

#define ROW(kind, since, until, inputs, types, check_fn)                                         \
    {                                                                                            \
        .name = "Reduce" #kind, .since_version = since, .until_version = until, .min_inputs = 1, \
        .max_inputs = inputs, .min_outputs = 1, .flags = TN_OP_FOLDABLE, .input_types = types,   \
        .input_types_count = 2, .params_bytes = sizeof(reduce_params),                           \
        .record_bytes = sizeof(reduce_record), .check = check_fn, .infer = infer,                \
        .variants = variants, .bind = bind                                                       \
    }

/* Axes become an input at 18, of ReduceSum at 13. */
#define ROWS_TO_18(kind)                                                                     \
    ROW(kind, 1, 10, 1, types_1, check_##kind), ROW(kind, 11, 12, 1, types_1, check_##kind), \
        ROW(kind, 13, 17, 1, types_13, check_##kind),                                        \
        ROW(kind, 18, 0, 2, types_13, check_##kind##_input)

#define ROWS_TO_20(kind)                                                                     \
    ROW(kind, 1, 10, 1, types_1, check_##kind), ROW(kind, 11, 11, 1, types_1, check_##kind), \
        ROW(kind, 12, 12, 1, types_12, check_##kind),                                        \
        ROW(kind, 13, 17, 1, types_13_narrow, check_##kind),                                 \
        ROW(kind, 18, 19, 2, types_13_narrow, check_##kind##_input),                         \
        ROW(kind, 20, 0, 2, types_20, check_##kind##_input)

static const tn_op_def rows[] = {
    ROW(Sum, 1, 10, 1, types_1, check_Sum),
    ROW(Sum, 11, 12, 1, types_1, check_Sum),
    ROW(Sum, 13, 0, 2, types_13, check_Sum_input),
    ROWS_TO_18(Mean),
    ROWS_TO_18(SumSquare),
    ROWS_TO_18(L1),
    ROWS_TO_18(L2),
    ROWS_TO_18(LogSum),
    ROWS_TO_18(LogSumExp),
    ROWS_TO_18(Prod),
    ROWS_TO_20(Max),
    ROWS_TO_20(Min),
};

const tn_op_table tn_reduce_table = {rows, TN_COUNTOF(rows)};
