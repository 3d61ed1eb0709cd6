/* Runs one node of an op_case in blocked layout, by the functions of its row alone: full-size
 * inputs are cut into blocks before and the output is put together again behind. Guard bytes lie
 * behind every buffer; lanes beyond the channels must come out as zeros. */
#ifndef TN_TESTS_BLOCKED_CASE_H
#define TN_TESTS_BLOCKED_CASE_H

#include "op_case.h"
#include "plan/program.h"

enum { BLOCKED_WORKERS = 2 };

static inline size_t blocked_spatial(const tn_shape *shape) {
    size_t spatial = 1;
    for (int32_t i = 2; i < shape->rank; i++) spatial *= (size_t)shape->dims[i];
    return spatial;
}

/* Index in blocked layout of plain element (plane of image n, channel c, pixel). */
static inline size_t blocked_index(const tn_shape *shape, size_t block, size_t n, size_t c,
                                   size_t pixel) {
    const size_t blocks = ((size_t)shape->dims[1] + block - 1) / block;
    return ((n * blocks + c / block) * blocked_spatial(shape) + pixel) * block + c % block;
}

static inline size_t blocked_elems(const tn_shape *shape, size_t block) {
    const size_t blocks = ((size_t)shape->dims[1] + block - 1) / block;
    return (size_t)shape->dims[0] * blocks * block * blocked_spatial(shape);
}

/* Every plain element once, in order, with its place in blocks. */
static inline void blocked_copy(const tn_shape *shape, size_t block, float *plain, float *blocked,
                                bool to_blocks) {
    const size_t spatial = blocked_spatial(shape);
    for (size_t n = 0; n < (size_t)shape->dims[0]; n++) {
        for (size_t c = 0; c < (size_t)shape->dims[1]; c++) {
            for (size_t pixel = 0; pixel < spatial; pixel++, plain++) {
                float *at = blocked + blocked_index(shape, block, n, c, pixel);
                if (to_blocks) {
                    *at = *plain;
                } else {
                    *plain = *at;
                }
            }
        }
    }
}

static inline void *blocked_input(op_case *c, const tn_fact *fact, uint16_t block) {
    const size_t size_bytes = blocked_elems(&fact->shape, block) * sizeof(float);
    float *blocked = op_case_get(c, size_bytes);
    memset(blocked, 0, size_bytes);
    if (size_bytes > 0) blocked_copy(&fact->shape, block, (float *)fact->data, blocked, true);
    return blocked;
}

static inline void assert_zero_padding(const tn_shape *shape, size_t block, const float *blocked) {
    const size_t channels = (size_t)shape->dims[1];
    const size_t padded = (channels + block - 1) / block * block;
    for (size_t n = 0; n < (size_t)shape->dims[0]; n++) {
        for (size_t c = channels; c < padded; c++) {
            for (size_t pixel = 0; pixel < blocked_spatial(shape); pixel++) {
                const size_t at = blocked_index(shape, block, n, c, pixel);
                if (blocked[at] != 0) fail_msg("padding lane %zu is %g", at, (double)blocked[at]);
            }
        }
    }
}

typedef struct blocked_query {
    uint16_t block;
    const tn_program *epilogue;    /* NULL: none */
    uint32_t first_epilogue_input; /* full-size operands are blocked with the output */
    uint32_t skip;                 /* how many variants in blocks to pass over */
} blocked_query;

static inline bool blocked_find(const blocked_query *q, const tn_node_facts *facts,
                                tn_variant *out) {
    tn_variant variants[TN_MAX_VARIANTS];
    uint32_t count = 0;
    uint32_t seen = 0;
    tn_error err;
    memset(variants, 0, sizeof variants);
    const tn_variant_query query = {.node = facts,
                                    .cpu = tn_cpu_features_detect(),
                                    .worker_count = BLOCKED_WORKERS,
                                    .scratch_limit_bytes = SIZE_MAX,
                                    .preferred_block = q->block,
                                    .epilogue = q->epilogue};
    assert_int_equal(facts->op->variants(&query, variants, &count, &err), TN_OK);
    for (uint32_t i = 0; i < count; i++) {
        *out = variants[i];
        if (out->input_layout.block == 0 && out->output_layout.block == 0) continue;
        if (seen++ == q->skip) return true;
    }
    return false;
}

static inline void blocked_tiles(const tn_variant *variant, const void *record,
                                 tn_kernel_context *ctx) {
    const uint32_t tiles = variant->tile_counts[0] == 0 ? 1 : variant->tile_counts[0];
    for (uint32_t tile = 0; tile < tiles; tile++) {
        assert_int_equal(variant->run(record, ctx, tile, tile + 1, tile % BLOCKED_WORKERS), TN_OK);
    }
}

/* Output 0 as plain floats, checked and put in place of the blocked ones. */
static inline void blocked_output(op_case *c, const tn_variant *variant, float *out) {
    const tn_shape *shape = &c->outputs[0].shape;
    c->outputs[0].data = out;
    c->outputs[0].layout.block = 0;
    if (variant->output_layout.block == 0) return;
    assert_zero_padding(shape, variant->output_layout.block, out);
    const size_t elems = (size_t)shape->dims[0] * (size_t)shape->dims[1] * blocked_spatial(shape);
    float *plain = op_case_get(c, elems * sizeof *plain);
    blocked_copy(shape, variant->output_layout.block, plain, out, false);
    c->outputs[0].data = plain;
}

/* Checks, infers, packs, binds and runs. False when the row or the processor has no such variant.
 */
static inline bool blocked_run(op_case *c, const blocked_query *q) {
    tn_variant variant;
    void *values[OP_CASE_OPERANDS + 1];
    uint32_t ids[OP_CASE_OPERANDS + 1];
    tn_error errors[BLOCKED_WORKERS];
    op_case_free_blocks(c);
    assert_int_equal(op_case_check(c), TN_OK);
    const tn_node_facts facts = op_case_facts(c);
    assert_int_equal(c->op->infer(&facts, &c->err), TN_OK);
    if (!blocked_find(q, &facts, &variant)) return false;
    for (uint32_t i = 0; i < c->input_count; i++) {
        ids[i] = c->input_list[i] == NULL ? TN_NO_VALUE : i;
        values[i] = (void *)c->inputs[i].data;
        const bool is_operand = q->epilogue != NULL && i >= q->first_epilogue_input;
        if ((variant.layout_input_mask >> i & 1u) != 0 || is_operand) {
            values[i] = blocked_input(c, &c->inputs[i], q->block);
            c->inputs[i].layout.block = q->block;
        }
    }
    if (variant.pack_format != 0) {
        const tn_pack_context pack = {&facts, &variant, tn_cpu_features_detect(), &c->err};
        size_t packed_bytes = 0;
        assert_int_equal(c->op->pack_size(&pack, &packed_bytes), TN_OK);
        values[variant.pack_input] = op_case_get(c, packed_bytes);
        assert_int_equal(c->op->pack(&pack, values[variant.pack_input]), TN_OK);
    }
    c->outputs[0].layout = variant.output_layout;
    const tn_bind_context bind = {.node = &facts,
                                  .variant = &variant,
                                  .cpu = tn_cpu_features_detect(),
                                  .worker_count = BLOCKED_WORKERS,
                                  .epilogue = q->epilogue,
                                  .first_epilogue_input = q->first_epilogue_input,
                                  .err = &c->err};
    const size_t record_bytes =
        c->op->record_size == NULL ? c->op->record_bytes : c->op->record_size(&bind);
    void *record = op_case_get(c, record_bytes);
    memset(record, 0, record_bytes);
    assert_int_equal(c->op->bind(&bind, record), TN_OK);
    size_t out_bytes = 0;
    assert_int_equal(tn_fact_size_bytes(&c->outputs[0], &out_bytes, &c->err), TN_OK);
    const uint32_t out_ids[2] = {c->input_count, TN_NO_VALUE};
    values[c->input_count] = op_case_get(c, out_bytes);
    const size_t stride = (variant.worker_scratch_bytes + 63) / 64 * 64;
    tn_kernel_context ctx = {.values = values,
                             .in = ids,
                             .out = out_ids,
                             .worker_scratch = op_case_get(c, stride * BLOCKED_WORKERS),
                             .worker_scratch_stride = stride,
                             .errors = errors};
    blocked_tiles(&variant, record, &ctx);
    blocked_output(c, &variant, values[c->input_count]);
    for (uint32_t i = 0; i < c->input_count; i++) c->inputs[i].layout.block = 0;
    return true;
}

#endif
