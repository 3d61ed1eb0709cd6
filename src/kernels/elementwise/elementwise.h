/* What rows of elementwise operators share: parameters, shape rule, variants, record, run.
 *
 * A row names a body; a few choose it from an attribute. Everything else (element types, legacy
 * broadcasting, any number of inputs, blocked layouts, tiles) is the same for all of them. */
#ifndef TN_KERNELS_ELEMENTWISE_H
#define TN_KERNELS_ELEMENTWISE_H

#include "kernels/common/broadcast.h"
#include "plan/op_def.h"
#include "plan/program.h"

/* How inputs meet. */
typedef enum tn_elementwise_shapes {
    TN_SHAPES_NUMPY,       /* both ways, aligned at the end */
    TN_SHAPES_EQUAL,       /* opsets before 7 without `broadcast` */
    TN_SHAPES_LEGACY_END,  /* input 1 into input 0, aligned at the end */
    TN_SHAPES_LEGACY_AXIS, /* input 1 into input 0, aligned at `axis` */
    TN_SHAPES_ONE_WAY,     /* input 1 into input 0, NumPy rules */
    TN_SHAPES_CHANNEL,     /* input 1 is one value or one per channel (axis 1) */
    TN_SHAPES_SCALARS      /* inputs beyond 0 are single values */
} tn_elementwise_shapes;

/* The params of every elementwise row. */
typedef struct tn_elementwise_params {
    float values[TN_BODY_MAX_PARAMS]; /* of the body */
    uint16_t body;                    /* chosen by an attribute; 0: the row's */
    uint16_t shapes;                  /* tn_elementwise_shapes */
    bool is_mean;                     /* the sum is divided by the number of inputs */
    int64_t axis;                     /* LEGACY_AXIS */
} tn_elementwise_params;

/* Outputs from this size on leave the caches before anything can read them: they are written past
 * them. */
#define TN_STREAM_BYTES ((size_t)48 << 20)

/* The body of `node`: the row's, or the one that an attribute chose. */
uint32_t tn_elementwise_body(const tn_op_def *op, const void *params);

/* Row functions. */
tn_status tn_elementwise_infer(const tn_node_facts *node, tn_error *err);
tn_status tn_elementwise_infer_bool(const tn_node_facts *node, tn_error *err);
tn_status tn_elementwise_variants(const tn_variant_query *query, tn_variant *out,
                                  uint32_t *out_count, tn_error *err);
size_t tn_elementwise_record_size(const tn_bind_context *ctx);
tn_status tn_elementwise_bind(const tn_bind_context *ctx, void *record);

bool tn_elementwise_describe(const tn_node_facts *node, tn_body_use *out);

/* Check of opsets 1 to 6: attributes `broadcast` and `axis`. */
tn_status tn_elementwise_check_legacy(const tn_check_context *ctx, void *params);

/* Lends the loop of `body` for elements of `dtype`, or NULL when there is none. f32 loops of
 * program bodies come from `isa`. *out_inner is what 16-bit loops wrap. */
struct tn_program_isa;
tn_loop_fn tn_elementwise_loop(uint32_t body, tn_dtype dtype, const struct tn_program_isa *isa,
                               tn_loop_fn *out_inner);

/* Lends the loop of Pow for bases of `base` and exponents of any other number type. */
tn_loop_fn tn_elementwise_power_loop(tn_dtype base);

/* Element types, by group. */
#define TN_TYPES_SIGNED (TN_TYPE_BIT(I8) | TN_TYPE_BIT(I16) | TN_TYPE_BIT(I32) | TN_TYPE_BIT(I64))
#define TN_TYPES_UNSIGNED (TN_TYPE_BIT(U8) | TN_TYPE_BIT(U16) | TN_TYPE_BIT(U32) | TN_TYPE_BIT(U64))
#define TN_TYPES_WIDE_INTS \
    (TN_TYPE_BIT(I32) | TN_TYPE_BIT(I64) | TN_TYPE_BIT(U32) | TN_TYPE_BIT(U64))
#define TN_TYPES_OLD_FLOATS (TN_TYPE_BIT(F16) | TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64))
#define TN_TYPES_FLOATS (TN_TYPES_OLD_FLOATS | TN_TYPE_BIT(BF16))
#define TN_TYPES_FLOAT8                                                      \
    (TN_TYPE_BIT(F8E4M3FN) | TN_TYPE_BIT(F8E4M3FNUZ) | TN_TYPE_BIT(F8E5M2) | \
     TN_TYPE_BIT(F8E5M2FNUZ))

/* The fields that all elementwise rows have. */
#define TN_ELEMENTWISE_ROW                                                          \
    .min_outputs = 1, .params_bytes = sizeof(tn_elementwise_params),                \
    .variants = tn_elementwise_variants, .record_size = tn_elementwise_record_size, \
    .bind = tn_elementwise_bind, .describe = tn_elementwise_describe

#endif
