/* One node, run alone, for tests of kernels: attributes, inputs and outputs in one struct.
 *
 *     op_case c;
 *     op_case_begin(&c, "Gemm", 13);
 *     op_case_set_int(&c, "transB", 1);
 *     op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(2, 3));
 *     ...
 *     ASSERT_OK(op_case_run(&c, -1, 1));
 *     assert_floats(op_case_output(&c, 0), expected, 4, 1e-5);
 *     op_case_end(&c);
 *
 * Outputs, packed weights and scratch are blocks of their own with guard bytes behind them, which
 * op_case_run checks. */
#ifndef TN_TESTS_OP_CASE_H
#define TN_TESTS_OP_CASE_H

#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "plan/op_run.h"

enum { OP_CASE_OPERANDS = 8, OP_CASE_BLOCKS = 64, OP_CASE_GUARD_BYTES = 64 };

/* The rank is the number of dims. OP_SCALAR is rank 0. */
#define OP_SHAPE(...) \
    ((tn_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}})
#define OP_SCALAR ((tn_shape){.rank = 0})

typedef struct op_case {
    const tn_op_def *op;
    tn_graph_attribute attributes[OP_CASE_OPERANDS];
    tn_graph_node node;
    tn_fact inputs[OP_CASE_OPERANDS];
    const tn_fact *input_list[OP_CASE_OPERANDS];
    bool input_present[OP_CASE_OPERANDS];
    uint32_t input_count;
    tn_fact outputs[OP_CASE_OPERANDS];
    tn_fact *output_list[OP_CASE_OPERANDS];
    bool output_present[OP_CASE_OPERANDS];
    uint32_t output_count;
    int64_t opset;
    _Alignas(64) char params[2048];
    char *blocks[OP_CASE_BLOCKS];
    size_t block_bytes[OP_CASE_BLOCKS];
    size_t block_count;
    tn_error err;
} op_case;

static inline void *op_case_get(void *ctx, size_t size_bytes) {
    op_case *c = ctx;
    assert_true(c->block_count < OP_CASE_BLOCKS);
    const size_t rounded = (size_bytes + 63) / 64 * 64 + OP_CASE_GUARD_BYTES;
    char *block = aligned_alloc(64, rounded);
    assert_non_null(block);
    memset(block, 0xAA, rounded);
    c->blocks[c->block_count] = block;
    c->block_bytes[c->block_count++] = size_bytes;
    return block;
}

static inline void op_case_free_blocks(op_case *c) {
    for (size_t i = 0; i < c->block_count; i++) {
        for (size_t g = 0; g < OP_CASE_GUARD_BYTES; g++) {
            assert_int_equal((unsigned char)c->blocks[i][c->block_bytes[i] + g], 0xAA);
        }
        free(c->blocks[i]);
    }
    c->block_count = 0;
}

static inline void op_case_begin(op_case *c, const char *name, int64_t opset) {
    memset(c, 0, sizeof *c);
    size_t table_count;
    const tn_op_table *const *tables = tn_registry_tables(&table_count);
    c->node.op_type = (tn_text){name, strlen(name)};
    c->node.attributes = c->attributes;
    c->opset = opset;
    c->op = tn_op_tables_find(tables, table_count, c->node.domain, c->node.op_type, opset);
    assert_non_null(c->op);
    assert_true(c->op->params_bytes <= sizeof c->params);
    c->output_count = 1;
    c->output_present[0] = true;
}

static inline tn_graph_attribute *op_case_attribute(op_case *c, const char *name,
                                                    tn_attribute_type type) {
    assert_true(c->node.attribute_count < OP_CASE_OPERANDS);
    tn_graph_attribute *attribute = &c->attributes[c->node.attribute_count++];
    attribute->name = (tn_text){name, strlen(name)};
    attribute->type = type;
    attribute->count = 1;
    return attribute;
}

static inline void op_case_set_int(op_case *c, const char *name, int64_t value) {
    op_case_attribute(c, name, TN_ATTRIBUTE_INT)->i = value;
}

static inline void op_case_set_float(op_case *c, const char *name, float value) {
    op_case_attribute(c, name, TN_ATTRIBUTE_FLOAT)->f = value;
}

static inline void op_case_set_text(op_case *c, const char *name, const char *value) {
    op_case_attribute(c, name, TN_ATTRIBUTE_STRING)->s = (tn_text){value, strlen(value)};
}

static inline void op_case_set_ints(op_case *c, const char *name, const int64_t *values,
                                    size_t count) {
    tn_graph_attribute *attribute = op_case_attribute(c, name, TN_ATTRIBUTE_INTS);
    attribute->ints = values;
    attribute->count = count;
}

/* Borrows `data` until the case ends. */
static inline void op_case_input(op_case *c, tn_dtype dtype, const void *data, tn_shape shape) {
    assert_true(c->input_count < OP_CASE_OPERANDS);
    const uint32_t i = c->input_count++;
    c->inputs[i] = (tn_fact){.kind = TN_KIND_TENSOR, .dtype = dtype, .shape = shape, .data = data};
    c->input_list[i] = &c->inputs[i];
    c->input_present[i] = true;
}

static inline void op_case_weight(op_case *c, tn_dtype dtype, const void *data, tn_shape shape) {
    op_case_input(c, dtype, data, shape);
    c->inputs[c->input_count - 1].is_constant = true;
}

static inline void op_case_skip_input(op_case *c) {
    c->input_count++;
}

static inline void op_case_set_outputs(op_case *c, uint32_t count) {
    c->output_count = count;
    for (uint32_t i = 0; i < count; i++) c->output_present[i] = true;
}

static inline tn_node_facts op_case_facts(op_case *c) {
    for (uint32_t i = 0; i < c->output_count; i++) {
        c->outputs[i] = (tn_fact){.shape = {.rank = TN_RANK_UNKNOWN}};
        c->output_list[i] = c->output_present[i] ? &c->outputs[i] : NULL;
    }
    return (tn_node_facts){.op = c->op,
                           .params = c->params,
                           .name = "case",
                           .opset = c->opset,
                           .input_count = c->input_count,
                           .output_count = c->output_count,
                           .inputs = c->input_list,
                           .outputs = c->output_list};
}

static inline tn_status op_case_check(op_case *c) {
    const tn_check_context check = {.node = &c->node,
                                    .opset = c->opset,
                                    .input_count = c->input_count,
                                    .output_count = c->output_count,
                                    .input_present = c->input_present,
                                    .output_present = c->output_present,
                                    .err = &c->err};
    memset(c->params, 0, sizeof c->params);
    return c->op->check == NULL ? TN_OK : c->op->check(&check, c->params);
}

/* Checks and infers from the inputs as they stand; data is hidden first when `is_symbolic`. */
static inline tn_status op_case_infer(op_case *c, bool is_symbolic) {
    const tn_status status = op_case_check(c);
    if (status != TN_OK) return status;
    for (uint32_t i = 0; is_symbolic && i < c->input_count; i++) c->inputs[i].data = NULL;
    const tn_node_facts facts = op_case_facts(c);
    return c->op->infer(&facts, &c->err);
}

static inline uint32_t op_case_variant_count(op_case *c) {
    tn_variant variants[TN_MAX_VARIANTS];
    memset(variants, 0, sizeof variants);
    uint32_t count = 0;
    assert_int_equal(op_case_infer(c, false), TN_OK);
    const tn_node_facts facts = op_case_facts(c);
    assert_int_equal(c->op->infer(&facts, &c->err), TN_OK);
    const tn_variant_query query = {.node = &facts,
                                    .cpu = tn_cpu_features_detect(),
                                    .worker_count = 1,
                                    .scratch_limit_bytes = SIZE_MAX,
                                    .preferred_block = 8};
    assert_int_equal(c->op->variants(&query, variants, &count, &c->err), TN_OK);
    return count;
}

/* Checks and runs variant `variant_index` (-1: the cheapest) with tiles dealt to `workers`. */
static inline tn_status op_case_run(op_case *c, int32_t variant_index, uint32_t workers) {
    op_case_free_blocks(c);
    tn_status status = op_case_check(c);
    if (status != TN_OK) return status;
    const tn_node_facts facts = op_case_facts(c);
    const tn_op_call call = {.node = &facts,
                             .cpu = tn_cpu_features_detect(),
                             .worker_count = workers,
                             .variant_index = variant_index,
                             .memory = {c, op_case_get}};
    status = tn_op_run(&call, &c->err);
    if (status != TN_OK) print_message("%s: %s\n", c->op->name, c->err.message);
    return status;
}

static inline const void *op_case_output(const op_case *c, uint32_t slot) {
    return c->outputs[slot].data;
}

static inline void op_case_end(op_case *c) {
    op_case_free_blocks(c);
}

static inline void assert_floats(const void *seen, const float *expected, size_t count,
                                 double tolerance) {
    const float *values = seen;
    for (size_t i = 0; i < count; i++) {
        if (isnan(expected[i]) && isnan(values[i])) continue;
        const double difference = fabs((double)values[i] - (double)expected[i]);
        if (!(difference <= tolerance * (1.0 + fabs((double)expected[i]))) &&
            values[i] != expected[i]) {
            fail_msg("element %zu is %g, expected %g", i, (double)values[i], (double)expected[i]);
        }
    }
}

static inline void assert_shape(const op_case *c, uint32_t slot, tn_shape expected) {
    const tn_shape *seen = &c->outputs[slot].shape;
    assert_int_equal(seen->rank, expected.rank);
    for (int32_t i = 0; i < expected.rank; i++) assert_int_equal(seen->dims[i], expected.dims[i]);
}

/* Repeatable numbers in [-1, 1). */
static inline void fill_floats(float *values, size_t count, uint32_t seed) {
    uint32_t state = seed * 2654435761u + 1u;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)(state >> 8) / 8388608.0F - 1.0F;
    }
}

#endif
