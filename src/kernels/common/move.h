/* Moving elements between two strided boxes: what Transpose, Expand, Tile, Slice, the space/depth
 * pair and every plain copy have in common.
 *
 * A move is described axis by axis (tn_move_start, tn_move_add_axis), simplified once
 * (tn_move_finish: axes of one are dropped, axes that lie together are merged, short contiguous
 * runs become wider elements, one of five loops is chosen) and then run in parts. It holds no
 * pointers, so it serves as the record of a kernel. */
#ifndef TN_KERNELS_COMMON_MOVE_H
#define TN_KERNELS_COMMON_MOVE_H

#include "kernels/common/index_walk.h"
#include "plan/op_def.h"

typedef struct tn_move {
    int32_t rank;           /* axes of the walk; after finish the last one counts strips */
    uint32_t elem_bytes;    /* 1, 2, 4, 8 or 16; COPY loops work on bytes */
    uint32_t loop;          /* which of the loops in move.c */
    uint32_t tile_count;    /* >= 1 */
    size_t units_per_tile;  /* a unit is one strip at one position of the walk */
    size_t unit_count;      /* 0: nothing to move */
    size_t total_bytes;     /* written */
    int64_t src_offset;     /* bytes; the first element read */
    int64_t dst_offset;     /* bytes; the first element written */
    int64_t strip_len;      /* most steps along the strip axis in a unit */
    int64_t strip_axis_len; /* steps along the strip axis in all */
    int64_t strip_src_stride, strip_dst_stride; /* bytes per step */
    int64_t inner_len;                          /* inside each step; 1 when the strip is all */
    int64_t inner_src_stride, inner_dst_stride; /* bytes */
    int64_t dims[TN_WALK_MAX_RANK];
    int64_t src_strides[TN_WALK_MAX_RANK]; /* bytes, any sign, 0 to repeat */
    int64_t dst_strides[TN_WALK_MAX_RANK]; /* bytes */
} tn_move;

/* Starts a description. Units: `elem_bytes` is 1, 2, 4, 8 or 16. */
void tn_move_start(tn_move *move, size_t elem_bytes);

/* Adds the next axis, outermost first; at most TN_WALK_MAX_RANK. Units: strides in bytes. */
void tn_move_add_axis(tn_move *move, int64_t dim, int64_t src_stride, int64_t dst_stride);

/* Simplifies the description and cuts it into tiles. */
void tn_move_finish(tn_move *move);

/* A finished move of `size_bytes` bytes that lie together. */
void tn_move_init_bytes(tn_move *move, size_t size_bytes);

/* Moves tiles [tile0, tile1). `src` and `dst` do not overlap unless they are equal and the move is
 * a plain copy. Threads: safe for disjoint tiles. */
void tn_move_run(const tn_move *move, const void *src, void *dst, uint32_t tile0, uint32_t tile1);

/* The run function of rows whose record is a move of input 0 into output 0. */
tn_status tn_move_step(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                       uint32_t worker);

/* The one variant of such rows. `move` is NULL while sizes are unknown. */
tn_status tn_move_variants(const tn_move *move, const char *name, tn_variant *out,
                           uint32_t *out_count);

/* Writes `count` copies of the `elem_bytes` (1, 2, 4, 8, 16) at `value`. */
void tn_fill(void *dst, const void *value, size_t elem_bytes, size_t count);

/* Row functions of a mover from `static void name_describe(const tn_node_facts *, tn_move *)`,
 * which is called with sized facts and leaves a finished move. */
#define TN_DEFINE_MOVER(name, text)                                                  \
    static tn_status name##_variants(const tn_variant_query *query, tn_variant *out, \
                                     uint32_t *out_count, tn_error *err) {           \
        (void)err;                                                                   \
        tn_move move;                                                                \
        const bool is_sized = tn_node_is_sized(query->node);                         \
        if (is_sized) name##_describe(query->node, &move);                           \
        return tn_move_variants(is_sized ? &move : NULL, text, out, out_count);      \
    }                                                                                \
    static tn_status name##_bind(const tn_bind_context *ctx, void *record) {         \
        name##_describe(ctx->node, record);                                          \
        return TN_OK;                                                                \
    }

#define TN_MOVER_FUNCTIONS(name) \
    .record_bytes = sizeof(tn_move), .variants = name##_variants, .bind = name##_bind

#endif
