#include "op_case.h"

#include "kernels/elementwise/program_run.h"

static void matmul_of_two_matrices_gives_the_product(void **state) {
    (void)state;
    static const float a[] = {1, 2, 3, 4, 5, 6};
    static const float b[] = {1, 0, 2, 0, 1, 3, 1, 1, 1};
    static const float expected[] = {4, 5, 11, 10, 11, 29};
    op_case c;
    op_case_begin(&c, "MatMul", 13);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(2, 3));
    op_case_weight(&c, TN_DTYPE_F32, b, OP_SHAPE(3, 3));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_shape(&c, 0, OP_SHAPE(2, 3));
        assert_floats(op_case_output(&c, 0), expected, 6, 1e-6);
    }
    op_case_end(&c);
}

static void matmul_broadcasts_batch_axes(void **state) {
    (void)state;
    static const float a[] = {1, 2, 3, 4};       /* [2, 1, 1, 2] */
    static const float b[] = {1, 1, 2, 2, 3, 3}; /* [3, 2, 1] */
    static const float expected[] = {3, 6, 9, 7, 14, 21};
    op_case c;
    op_case_begin(&c, "MatMul", 13);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(2, 1, 1, 2));
    op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(3, 2, 1));

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_shape(&c, 0, OP_SHAPE(2, 3, 1, 1));
    assert_floats(op_case_output(&c, 0), expected, 6, 1e-6);
    op_case_end(&c);
}

static void matmul_of_vectors_drops_their_axes(void **state) {
    (void)state;
    static const int32_t a[] = {1, 2, 3};
    static const int32_t b[] = {4, 5, -6};
    op_case c;
    op_case_begin(&c, "MatMul", 9);
    op_case_input(&c, TN_DTYPE_I32, a, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_I32, b, OP_SHAPE(3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SCALAR);
    assert_int_equal(*(const int32_t *)op_case_output(&c, 0), -4);
    op_case_end(&c);
}

static void matmul_with_no_inner_elements_gives_zeros(void **state) {
    (void)state;
    static const float nothing[1] = {0};
    static const float expected[6] = {0};
    op_case c;
    op_case_begin(&c, "MatMul", 13);
    op_case_input(&c, TN_DTYPE_F32, nothing, OP_SHAPE(2, 0));
    op_case_input(&c, TN_DTYPE_F32, nothing, OP_SHAPE(0, 3));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_floats(op_case_output(&c, 0), expected, 6, 0.0);
    }
    op_case_end(&c);
}

static void matmul_of_unequal_inner_dims_names_both_shapes(void **state) {
    (void)state;
    static const float data[6] = {0};
    op_case c;
    op_case_begin(&c, "MatMul", 13);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));

    assert_non_null(strstr(c.err.message, "[2, 3] and [2, 3]"));
    op_case_end(&c);
}

static void matmul_of_unknown_shapes_infers_what_is_known(void **state) {
    (void)state;
    op_case c;
    op_case_begin(&c, "MatMul", 13);
    op_case_input(&c, TN_DTYPE_F32, NULL, OP_SHAPE(-5, TN_DIM_UNKNOWN, 3));
    op_case_input(&c, TN_DTYPE_F32, NULL, OP_SHAPE(3, 7));

    ASSERT_OK(op_case_infer(&c, true));
    assert_shape(&c, 0, OP_SHAPE(-5, TN_DIM_UNKNOWN, 7));

    c.inputs[0].shape.rank = TN_RANK_UNKNOWN;
    ASSERT_OK(op_case_infer(&c, true));
    assert_int_equal(c.outputs[0].shape.rank, TN_RANK_UNKNOWN);
    op_case_end(&c);
}

static void matmul_gives_equal_bits_for_any_worker_count(void **state) {
    (void)state;
    enum { M = 150, N = 200, K = 300 };
    float *a = malloc(M * K * sizeof *a);
    float *b = malloc(N * K * sizeof *b);
    float *first = malloc(M * N * sizeof *first);
    assert_true(a != NULL && b != NULL && first != NULL);
    fill_floats(a, M * K, 1);
    fill_floats(b, N * K, 2);
    op_case c;
    op_case_begin(&c, "MatMul", 13);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(M, K));
    op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(K, N));
    ASSERT_OK(op_case_run(&c, -1, 1));
    memcpy(first, op_case_output(&c, 0), M * N * sizeof *first);

    ASSERT_OK(op_case_run(&c, -1, 4));

    assert_memory_equal(first, op_case_output(&c, 0), M * N * sizeof *first);
    op_case_end(&c);
    free(a);
    free(b);
    free(first);
}

static void gemm_scales_transposes_and_adds_a_column(void **state) {
    (void)state;
    static const float a[] = {1, 4, 2, 5, 3, 6}; /* [3, 2], transposed */
    static const float b[] = {1, 0, 1, 0, 1, 1}; /* [2, 3], transposed */
    static const float third[] = {10, 20};       /* [2, 1] */
    static const float expected[] = {22, 22.5F, 45, 45.5F};
    op_case c;
    op_case_begin(&c, "Gemm", 13);
    op_case_set_int(&c, "transA", 1);
    op_case_set_int(&c, "transB", 1);
    op_case_set_float(&c, "alpha", 0.5F);
    op_case_set_float(&c, "beta", 2.0F);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(3, 2));
    op_case_weight(&c, TN_DTYPE_F32, b, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, third, OP_SHAPE(2, 1));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
    }
    op_case_end(&c);
}

static void gemm_of_opset_6_needs_its_third_input(void **state) {
    (void)state;
    op_case c;
    op_case_begin(&c, "Gemm", 6);
    assert_int_equal(c.op->min_inputs, 3);

    op_case_begin(&c, "Gemm", 11);
    assert_int_equal(c.op->min_inputs, 2);
    op_case_end(&c);
}

static void gemm_refuses_a_third_input_that_does_not_broadcast(void **state) {
    (void)state;
    static const float data[6] = {0};
    op_case c;
    op_case_begin(&c, "Gemm", 13);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3, 2));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

/* Runs the fastest variant by hand, as a plan would, since nodes that run alone have no epilogue.
 */
static void run_with_epilogue(op_case *c, const tn_program *program, float *out) {
    const tn_node_facts facts = op_case_facts(c);
    assert_int_equal(c->op->infer(&facts, &c->err), TN_OK);
    tn_variant variants[TN_MAX_VARIANTS];
    uint32_t count = 0;
    const tn_variant_query query = {.node = &facts,
                                    .cpu = tn_cpu_features_detect(),
                                    .worker_count = 1,
                                    .scratch_limit_bytes = SIZE_MAX,
                                    .epilogue = program};
    memset(variants, 0, sizeof variants);
    assert_int_equal(c->op->variants(&query, variants, &count, &c->err), TN_OK);
    const tn_variant *variant = tn_variant_cheapest_plain(variants, count);
    assert_true(variant->takes_epilogue);
    const tn_bind_context bind = {.node = &facts,
                                  .variant = variant,
                                  .cpu = query.cpu,
                                  .worker_count = 1,
                                  .epilogue = program,
                                  .first_epilogue_input = 2,
                                  .err = &c->err};
    void *record = op_case_get(c, c->op->record_bytes);
    memset(record, 0, c->op->record_bytes);
    assert_int_equal(c->op->bind(&bind, record), TN_OK);
    void *values[] = {(void *)(uintptr_t)c->inputs[0].data, (void *)(uintptr_t)c->inputs[1].data,
                      (void *)(uintptr_t)c->inputs[2].data, out};
    static const uint32_t in[] = {0, 1, 2};
    static const uint32_t out_ids[] = {3};
    tn_kernel_context ctx = {.values = values,
                             .in = in,
                             .out = out_ids,
                             .worker_scratch = op_case_get(c, variant->worker_scratch_bytes),
                             .errors = &c->err};
    assert_int_equal(variant->run(record, &ctx, 0, variant->tile_counts[0], 0), TN_OK);
}

/* relu(product + bias by column) over part tiles; the operand follows the row's own inputs. */
static void matmul_applies_an_epilogue_to_its_tiles(void **state) {
    (void)state;
    enum { M = 70, N = 203, K = 90 };
    static float a[M * K], b[K * N], bias[N], expected[M * N], seen[M * N];
    fill_floats(a, M * K, 8);
    fill_floats(b, K * N, 9);
    fill_floats(bias, N, 10);
    tn_program program = {.operand_count = 1};
    const tn_program_step add = {.body = TN_BODY_ADD, .source = TN_SOURCE_INPUT, .index = 0};
    const tn_program_step relu = {.body = TN_BODY_RELU, .source = TN_SOURCE_NONE};
    assert_true(tn_program_append(&program, &add) && tn_program_append(&program, &relu));
    op_case c;
    op_case_begin(&c, "MatMul", 13);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(M, K));
    op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(K, N));
    ASSERT_OK(op_case_run(&c, -1, 1));
    memcpy(expected, op_case_output(&c, 0), sizeof expected);
    for (size_t i = 0; i < M * N; i++) expected[i] = fmaxf(expected[i] + bias[i % N], 0.0F);

    op_case_input(&c, TN_DTYPE_F32, bias, OP_SHAPE(N));
    ASSERT_OK(op_case_infer(&c, false));
    run_with_epilogue(&c, &program, seen);

    assert_floats(seen, expected, M * N, 0.0);
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(matmul_of_two_matrices_gives_the_product),
        T(matmul_broadcasts_batch_axes),
        T(matmul_of_vectors_drops_their_axes),
        T(matmul_with_no_inner_elements_gives_zeros),
        T(matmul_of_unequal_inner_dims_names_both_shapes),
        T(matmul_of_unknown_shapes_infers_what_is_known),
        T(matmul_gives_equal_bits_for_any_worker_count),
        T(matmul_applies_an_epilogue_to_its_tiles),
        T(gemm_scales_transposes_and_adds_a_column),
        T(gemm_of_opset_6_needs_its_third_input),
        T(gemm_refuses_a_third_input_that_does_not_broadcast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
