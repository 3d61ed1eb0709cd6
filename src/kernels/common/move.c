/* Strided moves. The loops: bytes (one long run cut in strips), rows (many short runs), fill (one
 * source element repeated), strided (both sides step), transposed (16 x 16 blocks: few enough
 * lines that they stay in the first cache even when rows are a power of two apart). Every loop
 * works on a strip of one axis at one position of all others; a tile is a number of strips of about
 * TILE_BYTES, so that tiles are worth a thread's while and do not depend on how many there are.
 * Elements go through memcpy of fixed size: inputs may lie at any address. */
#include "kernels/common/move.h"

#include <string.h>

#include "base/checked_size.h"

#define TILE_BYTES (128 * 1024)
#define STRIP_BYTES (64 * 1024)
#define BLOCK 16
#define BLOCKS_PER_STRIP 4
#define MIN_TRANSPOSED 4
#define SHORT_AXIS 8

enum { LOOP_BYTES, LOOP_ROWS, LOOP_FILL, LOOP_STRIDED, LOOP_TRANSPOSED, LOOP_COUNT };

typedef struct elem16 {
    uint64_t half[2];
} elem16;

typedef uint32_t vec4 __attribute__((vector_size(16)));

/* X(bytes, type): widths of elements */
#define ELEMENT_LIST(X) X(1, uint8_t) X(2, uint16_t) X(4, uint32_t) X(8, uint64_t) X(16, elem16)

typedef void (*strip_fn)(const tn_move *move, const char *src, char *dst, int64_t len);

static void strip_bytes(const tn_move *move, const char *src, char *dst, int64_t len) {
    (void)move;
    if (src != dst) memcpy(dst, src, (size_t)len);
}

static void strip_rows(const tn_move *move, const char *src, char *dst, int64_t len) {
    const size_t row_bytes = (size_t)move->inner_len;
    for (int64_t i = 0; i < len; i++) {
        memcpy(dst, src, row_bytes);
        src += move->strip_src_stride;
        dst += move->strip_dst_stride;
    }
}

#define DEFINE_STRIPS(bytes, type)                                                                 \
    static void strip_fill_##bytes(const tn_move *move, const char *src, char *dst, int64_t len) { \
        (void)move;                                                                                \
        type value;                                                                                \
        memcpy(&value, src, sizeof value);                                                         \
        for (int64_t i = 0; i < len; i++) {                                                        \
            memcpy(dst + i * (int64_t)sizeof value, &value, sizeof value);                         \
        }                                                                                          \
    }                                                                                              \
    static void strip_strided_##bytes(const tn_move *move, const char *src, char *dst,             \
                                      int64_t len) {                                               \
        const int64_t src_stride = move->strip_src_stride;                                         \
        const int64_t dst_stride = move->strip_dst_stride;                                         \
        for (int64_t i = 0; i < len; i++) {                                                        \
            type value;                                                                            \
            memcpy(&value, src + i * src_stride, sizeof value);                                    \
            memcpy(dst + i * dst_stride, &value, sizeof value);                                    \
        }                                                                                          \
    }                                                                                              \
    static void block_transposed_##bytes(const tn_move *move, const char *src, char *dst,          \
                                         int64_t rows, int64_t columns) {                          \
        const int64_t src_stride = move->inner_src_stride;                                         \
        const int64_t dst_stride = move->strip_dst_stride;                                         \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const char *from = src + r * (int64_t)sizeof(type);                                    \
            char *to = dst + r * dst_stride;                                                       \
            for (int64_t c = 0; c < columns; c++) {                                                \
                type value;                                                                        \
                memcpy(&value, from + c * src_stride, sizeof value);                               \
                memcpy(to + c * (int64_t)sizeof value, &value, sizeof value);                      \
            }                                                                                      \
        }                                                                                          \
    }
ELEMENT_LIST(DEFINE_STRIPS)

/* Four rows of four elements of four bytes, turned in registers; `rows` are BLOCK / 4 vectors
 * apart. */
static inline void turn_4x4(const vec4 *rows, char *dst, int64_t dst_stride) {
    const vec4 a = rows[0];
    const vec4 b = rows[BLOCK / 4];
    const vec4 c = rows[2 * (BLOCK / 4)];
    const vec4 d = rows[3 * (BLOCK / 4)];
    const vec4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const vec4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const vec4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const vec4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const vec4 first = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    const vec4 second = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    const vec4 third = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    const vec4 fourth = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    memcpy(dst, &first, sizeof first);
    memcpy(dst + dst_stride, &second, sizeof second);
    memcpy(dst + 2 * dst_stride, &third, sizeof third);
    memcpy(dst + 3 * dst_stride, &fourth, sizeof fourth);
}

/* A whole block of 4-byte elements. It is copied together first: lines that lie a power of two
 * apart share one set of the cache, so each is touched only once. */
static void block_turned(const tn_move *move, const char *src, char *dst) {
    vec4 rows[BLOCK][BLOCK / 4];
    for (int64_t c = 0; c < BLOCK; c++) {
        memcpy(rows[c], src + c * move->inner_src_stride, sizeof rows[c]);
    }
    for (int64_t r = 0; r < BLOCK; r += 4) {
        for (int64_t c = 0; c < BLOCK; c += 4) {
            turn_4x4(&rows[c][r / 4], dst + r * move->strip_dst_stride + c * 4,
                     move->strip_dst_stride);
        }
    }
}

/* Blocks of a strip, a column of blocks at a time, so that each page of the source serves several
 * lines per visit. */
#define DEFINE_TRANSPOSED(bytes, type)                                                           \
    static void strip_transposed_##bytes(const tn_move *move, const char *src, char *dst,        \
                                         int64_t len) {                                          \
        for (int64_t c = 0; c < move->inner_len; c += BLOCK) {                                   \
            const int64_t columns = tn_i64_min(BLOCK, move->inner_len - c);                      \
            for (int64_t r = 0; r < len; r += BLOCK) {                                           \
                const int64_t rows = tn_i64_min(BLOCK, len - r);                                 \
                const char *from = src + c * move->inner_src_stride + r * (int64_t)sizeof(type); \
                char *to = dst + c * (int64_t)sizeof(type) + r * move->strip_dst_stride;         \
                if ((bytes) == 4 && columns == BLOCK && rows == BLOCK) {                         \
                    block_turned(move, from, to);                                                \
                } else {                                                                         \
                    block_transposed_##bytes(move, from, to, rows, columns);                     \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }
ELEMENT_LIST(DEFINE_TRANSPOSED)

/* [loop][log2 of the element's bytes] */
static const strip_fn strips[LOOP_COUNT][5] = {
    [LOOP_BYTES] = {strip_bytes},
    [LOOP_ROWS] = {strip_rows},
    [LOOP_FILL] = {strip_fill_1, strip_fill_2, strip_fill_4, strip_fill_8, strip_fill_16},
    [LOOP_STRIDED] = {strip_strided_1, strip_strided_2, strip_strided_4, strip_strided_8,
                      strip_strided_16},
    [LOOP_TRANSPOSED] = {strip_transposed_1, strip_transposed_2, strip_transposed_4,
                         strip_transposed_8, strip_transposed_16},
};

static uint32_t log2_of_width(uint32_t elem_bytes) {
    uint32_t log2 = 0;
    while (1u << log2 < elem_bytes) log2++;
    return log2;
}

void tn_move_start(tn_move *move, size_t elem_bytes) {
    move->rank = 0;
    move->elem_bytes = (uint32_t)elem_bytes;
    move->src_offset = 0;
    move->dst_offset = 0;
}

void tn_move_add_axis(tn_move *move, int64_t dim, int64_t src_stride, int64_t dst_stride) {
    move->dims[move->rank] = dim;
    move->src_strides[move->rank] = src_stride;
    move->dst_strides[move->rank] = dst_stride;
    move->rank++;
}

static void set_axis(tn_move *move, int32_t to, int32_t from) {
    move->dims[to] = move->dims[from];
    move->src_strides[to] = move->src_strides[from];
    move->dst_strides[to] = move->dst_strides[from];
}

/* Takes axis `axis` out and puts it last. */
static void move_axis_last(tn_move *move, int32_t axis) {
    const int64_t dim = move->dims[axis];
    const int64_t src_stride = move->src_strides[axis];
    const int64_t dst_stride = move->dst_strides[axis];
    for (int32_t i = axis; i + 1 < move->rank; i++) set_axis(move, i, i + 1);
    move->rank--;
    tn_move_add_axis(move, dim, src_stride, dst_stride);
}

/* Drops axes of one and merges an axis into the one before it when both sides step through them as
 * through one. */
static void merge_axes(tn_move *move) {
    int32_t rank = 0;
    for (int32_t i = 0; i < move->rank; i++) {
        if (move->dims[i] == 1) continue;
        const int32_t before = rank - 1;
        if (rank > 0 && move->src_strides[before] == move->src_strides[i] * move->dims[i] &&
            move->dst_strides[before] == move->dst_strides[i] * move->dims[i]) {
            const int64_t dim = move->dims[before] * move->dims[i];
            set_axis(move, before, i);
            move->dims[before] = dim;
        } else {
            set_axis(move, rank, i);
            rank++;
        }
    }
    move->rank = rank;
}

static bool last_axis_is_dense(const tn_move *move) {
    const int32_t last = move->rank - 1;
    return move->rank > 0 && move->src_strides[last] == (int64_t)move->elem_bytes &&
           move->dst_strides[last] == (int64_t)move->elem_bytes;
}

/* Short contiguous runs become wider elements. */
static void widen_elements(tn_move *move) {
    while (last_axis_is_dense(move)) {
        const int64_t run_bytes = move->dims[move->rank - 1] * (int64_t)move->elem_bytes;
        if (run_bytes > 16 || (run_bytes & (run_bytes - 1)) != 0) return;
        move->elem_bytes = (uint32_t)run_bytes;
        move->rank--;
    }
}

/* The last axis leaves the walk and becomes the inside of each step. */
static void take_inner(tn_move *move) {
    move->rank--;
    move->inner_len = move->dims[move->rank];
    move->inner_src_stride = move->src_strides[move->rank];
    move->inner_dst_stride = move->dst_strides[move->rank];
}

/* An axis along which the source is dense while the destination is dense along the last one. */
static int32_t transposed_axis(const tn_move *move) {
    const int32_t last = move->rank - 1;
    const int64_t elem_bytes = (int64_t)move->elem_bytes;
    if (move->dst_strides[last] != elem_bytes || move->dims[last] < MIN_TRANSPOSED) return -1;
    for (int32_t i = 0; i < last; i++) {
        if (move->src_strides[i] == elem_bytes && move->dims[i] >= MIN_TRANSPOSED) return i;
    }
    return -1;
}

static int32_t longest_axis(const tn_move *move) {
    int32_t longest = move->rank - 1;
    for (int32_t i = 0; i < move->rank; i++) {
        if (move->dims[i] > move->dims[longest]) longest = i;
    }
    return longest;
}

static void choose_dense_loop(tn_move *move) {
    const int32_t last = move->rank - 1;
    move->dims[last] *= (int64_t)move->elem_bytes;
    move->src_strides[last] = 1;
    move->dst_strides[last] = 1;
    move->elem_bytes = 1;
    if (move->rank > 1 && move->dims[last] <= STRIP_BYTES) {
        move->loop = LOOP_ROWS;
        take_inner(move);
        move->strip_len = tn_i64_max(1, STRIP_BYTES / move->inner_len);
    } else {
        move->loop = LOOP_BYTES;
        move->strip_len = STRIP_BYTES;
    }
}

static void choose_loop(tn_move *move) {
    move->inner_len = 1;
    if (last_axis_is_dense(move)) {
        choose_dense_loop(move);
        return;
    }
    const int32_t last = move->rank - 1;
    const int32_t across = transposed_axis(move);
    move->strip_len = STRIP_BYTES / move->elem_bytes;
    if (move->src_strides[last] == 0 && move->dst_strides[last] == (int64_t)move->elem_bytes) {
        move->loop = LOOP_FILL;
    } else if (across >= 0) {
        move->loop = LOOP_TRANSPOSED;
        take_inner(move);
        move_axis_last(move, across);
        const int64_t block_bytes = move->inner_len * BLOCK * (int64_t)move->elem_bytes;
        const bool is_short = block_bytes <= 2 * TILE_BYTES / BLOCKS_PER_STRIP;
        move->strip_len = is_short ? BLOCKS_PER_STRIP * BLOCK : BLOCK;
    } else {
        move->loop = LOOP_STRIDED;
        if (move->dims[last] < SHORT_AXIS) move_axis_last(move, longest_axis(move));
    }
}

/* The last axis of the walk now counts strips; tiles are runs of units. */
static void cut_tiles(tn_move *move) {
    const int32_t last = move->rank - 1;
    move->strip_axis_len = move->dims[last];
    move->strip_src_stride = move->src_strides[last];
    move->strip_dst_stride = move->dst_strides[last];
    move->dims[last] = (move->strip_axis_len + move->strip_len - 1) / move->strip_len;
    move->src_strides[last] *= move->strip_len;
    move->dst_strides[last] *= move->strip_len;
    move->unit_count = 1;
    for (int32_t i = 0; i < move->rank; i++) move->unit_count *= (size_t)move->dims[i];
    const size_t unit_bytes = tn_size_max(1, move->total_bytes / move->unit_count);
    move->units_per_tile = tn_size_max(1, TILE_BYTES / unit_bytes);
    while (move->unit_count / move->units_per_tile >= UINT32_MAX / 2) move->units_per_tile *= 2;
    move->tile_count =
        (uint32_t)((move->unit_count + move->units_per_tile - 1) / move->units_per_tile);
}

void tn_move_finish(tn_move *move) {
    size_t total_bytes = move->elem_bytes;
    for (int32_t i = 0; i < move->rank; i++) total_bytes *= (size_t)move->dims[i];
    move->total_bytes = total_bytes;
    move->unit_count = 0;
    move->tile_count = 1;
    move->units_per_tile = 1;
    if (total_bytes == 0) return;
    merge_axes(move);
    widen_elements(move);
    if (move->rank == 0) {
        tn_move_add_axis(move, 1, (int64_t)move->elem_bytes, (int64_t)move->elem_bytes);
    }
    choose_loop(move);
    cut_tiles(move);
}

void tn_move_init_bytes(tn_move *move, size_t size_bytes) {
    tn_move_start(move, 1);
    tn_move_add_axis(move, (int64_t)size_bytes, 1, 1);
    tn_move_finish(move);
}

void tn_move_run(const tn_move *move, const void *src, void *dst, uint32_t tile0, uint32_t tile1) {
    size_t unit = (size_t)tile0 * move->units_per_tile;
    const size_t end = tn_size_min((size_t)tile1 * move->units_per_tile, move->unit_count);
    if (unit >= end) return;
    const strip_fn strip = strips[move->loop][log2_of_width(move->elem_bytes)];
    const char *from = (const char *)src + move->src_offset;
    char *to = (char *)dst + move->dst_offset;
    tn_walk walk;
    walk.rank = move->rank;
    walk.dims = move->dims;
    walk.strides_a = move->src_strides;
    walk.strides_b = move->dst_strides;
    tn_walk_seek(&walk, unit);
    for (;;) {
        const int64_t done = walk.index[move->rank - 1] * move->strip_len;
        const int64_t len = tn_i64_min(move->strip_len, move->strip_axis_len - done);
        strip(move, from + walk.offset_a, to + walk.offset_b, len);
        if (++unit == end) return;
        tn_walk_next(&walk);
    }
}

tn_status tn_move_step(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                       uint32_t worker) {
    (void)worker;
    tn_move_run(record, tn_kernel_in(ctx, 0), tn_kernel_out(ctx, 0), tile0, tile1);
    return TN_OK;
}

tn_status tn_move_variants(const tn_move *move, const char *name, tn_variant *out,
                           uint32_t *out_count) {
    out[0] = (tn_variant){.name = name, .run = tn_move_step, .rewrite_class = TN_REWRITE_EXACT};
    if (move != NULL) {
        out[0].tile_counts[0] = move->tile_count;
        out[0].cost_ns = 30.0 + (double)move->total_bytes * 0.15 + (double)move->unit_count * 5.0;
    }
    *out_count = 1;
    return TN_OK;
}

#define DEFINE_FILL(bytes, type)                                                 \
    static void fill_##bytes(char *dst, const void *value_bytes, size_t count) { \
        type value;                                                              \
        memcpy(&value, value_bytes, sizeof value);                               \
        for (size_t i = 0; i < count; i++) {                                     \
            memcpy(dst + i * sizeof value, &value, sizeof value);                \
        }                                                                        \
    }
ELEMENT_LIST(DEFINE_FILL)

void tn_fill(void *dst, const void *value, size_t elem_bytes, size_t count) {
    static void (*const fills[])(char *, const void *, size_t) = {fill_1, fill_2, fill_4, fill_8,
                                                                  fill_16};
    fills[log2_of_width((uint32_t)elem_bytes)](dst, value, count);
}
