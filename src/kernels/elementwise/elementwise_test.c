#include "kernels/elementwise/elementwise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "kernels/elementwise/elementwise_isa.h"
#include "op_case.h"

/* The instruction sets that this processor has. */
static size_t list_isas(const tn_program_isa **out) {
    size_t count = 0;
    const tn_cpu_features cpu = tn_cpu_features_detect();
    out[count++] = &tn_program_portable;
    if ((cpu & TN_CPU_AVX2) != 0) out[count++] = tn_program_isa_best(TN_CPU_AVX2);
    if ((cpu & TN_CPU_AVX512) != 0) out[count++] = tn_program_isa_best(TN_CPU_AVX512);
    return count;
}

static void run_loop(const tn_program_isa *isa, uint32_t body, const float *x, float *y, size_t len,
                     const float *params) {
    const tn_loop_args args = {.in = {x}, .step = {1}, .out = y, .len = len, .params = params};
    isa->loops[body](&args);
}

/* Distance in units in the last place of `expected` as a float. */
static double ulps(float seen, double expected) {
    if (isnan(expected) || isnan(seen)) return isnan(expected) && isnan(seen) ? 0 : 1e9;
    const float near = (float)expected;
    if (isinf(near) || isinf(seen)) return near == seen ? 0 : 1e9;
    const double unit = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
    return fabs((double)seen - expected) / unit;
}

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static double softplus(double x) {
    return x > 700 ? x : log1p(exp(x));
}

/* Floats of all sizes and both signs, by their bits. */
static void sweep(const tn_program_isa *isa, uint32_t body, double (*reference)(double),
                  double limit) {
    enum { LEN = 4096 };
    float x[LEN];
    float y[LEN];
    uint32_t bits = 17;
    for (int round = 0; round < 16; round++) {
        for (int i = 0; i < LEN; i++) {
            memcpy(&x[i], &bits, sizeof bits);
            bits += 65537u;
        }
        run_loop(isa, body, x, y, LEN, NULL);
        for (int i = 0; i < LEN; i++) {
            const double error = ulps(y[i], reference((double)x[i]));
            if (error > limit) {
                print_error("%s body %u at %a: %a, off by %g\n", isa->name, body, (double)x[i],
                            (double)y[i], error);
            }
            assert_true(error <= limit);
        }
    }
}

static void vector_functions_are_within_their_stated_error(void **state) {
    (void)state;
    static const struct {
        uint32_t body;
        double (*reference)(double);
        double limit;
    } cases[] = {{TN_BODY_EXP, exp, 2},         {TN_BODY_LOG, log, 2},
                 {TN_BODY_ERF, erf, 2},         {TN_BODY_TANH, tanh, 2},
                 {TN_BODY_SIN, sin, 2},         {TN_BODY_COS, cos, 2},
                 {TN_BODY_SIGMOID, sigmoid, 4}, {TN_BODY_SOFTPLUS, softplus, 4},
                 {TN_BODY_SQRT, sqrt, 0.5},     {TN_BODY_FLOOR, floor, 0},
                 {TN_BODY_CEIL, ceil, 0},       {TN_BODY_ROUND, nearbyint, 0}};
    const tn_program_isa *isas[3];
    const size_t isa_count = list_isas(isas);
    for (size_t i = 0; i < isa_count; i++) {
        for (size_t c = 0; c < TN_COUNTOF(cases); c++) {
            sweep(isas[i], cases[c].body, cases[c].reference, cases[c].limit);
        }
    }
}

static void signs_of_zero_survive(void **state) {
    (void)state;
    static const uint32_t bodies[] = {TN_BODY_ERF,   TN_BODY_TANH, TN_BODY_SIN,
                                      TN_BODY_FLOOR, TN_BODY_CEIL, TN_BODY_ROUND,
                                      TN_BODY_SQRT,  TN_BODY_GELU, TN_BODY_SOFTSIGN};
    const tn_program_isa *isas[3];
    const size_t isa_count = list_isas(isas);
    const float zero = -0.0F;
    for (size_t i = 0; i < isa_count; i++) {
        for (size_t b = 0; b < TN_COUNTOF(bodies); b++) {
            float y = 1.0F;
            run_loop(isas[i], bodies[b], &zero, &y, 1, NULL);
            assert_true(y == 0.0F && signbit(y) != 0);
        }
    }
}

static void nan_goes_through_every_unary_body(void **state) {
    (void)state;
    const tn_program_isa *isas[3];
    const size_t isa_count = list_isas(isas);
    const float x[3] = {1.0F, NAN, -1.0F};
    const float params[2] = {0.5F, 0.75F};
    for (size_t i = 0; i < isa_count; i++) {
        for (uint32_t body = TN_BODY_NONE + 1; body < TN_BODY_UNARY_END; body++) {
            float y[3];
            run_loop(isas[i], body, x, y, 3, params);
            assert_true(isnan(y[1]));
        }
    }
}

/* Inputs end where the guard of a heap block begins, so that reading on is seen by sanitizers. */
static void every_length_gives_the_bits_of_the_whole(void **state) {
    (void)state;
    enum { LEN = 70 };
    const tn_program_isa *isas[3];
    const size_t isa_count = list_isas(isas);
    const float params[2] = {0.25F, 0.5F};
    float x[LEN];
    float whole[LEN];
    fill_floats(x, LEN, 3);
    for (size_t i = 0; i < isa_count; i++) {
        for (uint32_t body = TN_BODY_NONE + 1; body < TN_BODY_UNARY_END; body++) {
            run_loop(isas[i], body, x, whole, LEN, params);
            for (size_t len = 0; len <= LEN; len += 7) {
                float *in = malloc(len * sizeof *in + 1);
                float *out = malloc(len * sizeof *out + 1);
                assert_non_null(in);
                assert_non_null(out);
                memcpy(in, x, len * sizeof *in);
                run_loop(isas[i], body, in, out, len, params);
                assert_memory_equal(out, whole, len * sizeof *out);
                free(in);
                free(out);
            }
        }
    }
}

/* ---- programs ---- */

enum { ROWS = 6, COLS = 150 };

/* y = min(relu(x * c + r) * saved x, w) - 0.5, by own loops. */
static void expect_program(const tn_program_isa *isa, const float *x, const float *column,
                           const float *row, float *y) {
    for (size_t r = 0; r < ROWS; r++) {
        float *line = y + r * COLS;
        const float *in = x + r * COLS;
        const float half = 0.5F;
        tn_loop_args args = {.in = {in, column}, .step = {1, 1}, .out = line, .len = COLS};
        isa->loops[TN_BODY_MUL](&args);
        args = (tn_loop_args){.in = {line, &row[r]}, .step = {1, 0}, .out = line, .len = COLS};
        isa->loops[TN_BODY_ADD](&args);
        isa->loops[TN_BODY_RELU](&args);
        args = (tn_loop_args){.in = {line, in}, .step = {1, 1}, .out = line, .len = COLS};
        isa->loops[TN_BODY_MUL](&args);
        args = (tn_loop_args){.in = {&half, line}, .step = {0, 1}, .out = line, .len = COLS};
        isa->loops[TN_BODY_SUB](&args);
    }
}

static tn_program make_program(void) {
    static const tn_program_step steps[] = {
        {.body = TN_BODY_LOAD, .source = TN_SOURCE_INPUT, .index = 0},
        {.body = TN_BODY_SAVE, .index = 0},
        {.body = TN_BODY_MUL, .source = TN_SOURCE_INPUT, .index = 1},
        {.body = TN_BODY_ADD, .source = TN_SOURCE_INPUT, .index = 2},
        {.body = TN_BODY_RELU},
        {.body = TN_BODY_MUL, .source = TN_SOURCE_SAVED, .index = 0},
        {.body = TN_BODY_SUB, .source = TN_SOURCE_IMMEDIATE, .is_swapped = true, .params = {0.5F}}};
    tn_program program = {.operand_count = 3, .saved_count = 1};
    for (size_t i = 0; i < TN_COUNTOF(steps); i++) {
        assert_true(tn_program_append(&program, &steps[i]));
    }
    return program;
}

static tn_fact fact_of(int64_t rows, int64_t cols) {
    return (tn_fact){
        .kind = TN_KIND_TENSOR, .dtype = TN_DTYPE_F32, .shape = {.rank = 2, .dims = {rows, cols}}};
}

static void program_gives_the_bits_of_its_kernels(void **state) {
    (void)state;
    static float x[ROWS * COLS], column[COLS], row[ROWS], y[ROWS * COLS], seen[ROWS * COLS];
    static const tn_cpu_features cpus[] = {TN_CPU_PORTABLE, TN_CPU_AVX2, TN_CPU_AVX512};
    const tn_program program = make_program();
    const tn_fact out = fact_of(ROWS, COLS);
    const tn_fact columns = fact_of(1, COLS);
    const tn_fact rows = fact_of(ROWS, 1);
    const tn_fact *facts[] = {&out, &columns, &rows};
    const void *operands[] = {x, column, row};
    fill_floats(x, ROWS * COLS, 1);
    fill_floats(column, COLS, 2);
    fill_floats(row, ROWS, 3);
    for (size_t c = 0; c < TN_COUNTOF(cpus); c++) {
        tn_program_bound bound;
        if ((tn_cpu_features_detect() & cpus[c]) != cpus[c]) continue;
        expect_program(tn_program_isa_best(cpus[c]), x, column, row, y);
        /* by rows, then as one row whose operands are gathered */
        for (int flat = 0; flat < 2; flat++) {
            const tn_program_bind_query query = {.program = &program,
                                                 .output = &out,
                                                 .operands = facts,
                                                 .rows = flat ? 1 : ROWS,
                                                 .cols = flat ? ROWS * COLS : COLS,
                                                 .cpu = cpus[c]};
            ASSERT_OK(tn_program_bind(&query, &bound, NULL));
            memset(seen, 0, sizeof seen);
            tn_program_apply(&bound, &(tn_program_tile){.out = seen,
                                                        .out_row_stride = query.cols,
                                                        .rows = query.rows,
                                                        .cols = query.cols,
                                                        .operands = operands});
            assert_memory_equal(seen, y, sizeof y);
        }
    }
}

static void epilogue_of_a_part_touches_that_part_only(void **state) {
    (void)state;
    enum { ROW0 = 2, COL0 = 5, PART_ROWS = 3, PART_COLS = 133 };
    static float tile[PART_ROWS * PART_COLS], bias[COLS], y[ROWS * COLS];
    const tn_fact out = fact_of(ROWS, COLS);
    const tn_fact columns = fact_of(1, COLS);
    const tn_fact *facts[] = {&columns};
    const void *operands[] = {bias};
    const tn_program program = {.step_count = 1,
                                .operand_count = 1,
                                .steps = {{.body = TN_BODY_ADD, .source = TN_SOURCE_INPUT}}};
    const tn_program_bind_query query = {.program = &program,
                                         .output = &out,
                                         .operands = facts,
                                         .rows = ROWS,
                                         .cols = COLS,
                                         .cpu = tn_cpu_features_detect()};
    tn_program_bound bound;
    fill_floats(tile, PART_ROWS * PART_COLS, 4);
    fill_floats(bias, COLS, 5);
    for (size_t i = 0; i < ROWS * COLS; i++) y[i] = -7.0F;
    ASSERT_OK(tn_program_bind(&query, &bound, NULL));

    tn_program_apply(&bound, &(tn_program_tile){.in = tile,
                                                .in_row_stride = PART_COLS,
                                                .out = y + ROW0 * COLS + COL0,
                                                .out_row_stride = COLS,
                                                .row0 = ROW0,
                                                .col0 = COL0,
                                                .rows = PART_ROWS,
                                                .cols = PART_COLS,
                                                .operands = operands});

    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < COLS; c++) {
            const bool is_in =
                r >= ROW0 && r < ROW0 + PART_ROWS && c >= COL0 && c < COL0 + PART_COLS;
            const float expected =
                is_in ? tile[(r - ROW0) * PART_COLS + c - COL0] + bias[c] : -7.0F;
            assert_true(y[r * COLS + c] == expected);
        }
    }
}

/* 5 channels in blocks of 4 and 8: lanes beyond them read zeros, never past the operand. */
static void channel_operand_meets_blocks(void **state) {
    (void)state;
    enum { CHANNELS = 5, SPACE = 3 };
    for (uint16_t block = 4; block <= 8; block = (uint16_t)(block * 2)) {
        const size_t blocks = (CHANNELS + block - 1u) / block;
        const size_t len = blocks * SPACE * block;
        float *bias = malloc(CHANNELS * sizeof *bias);
        float x[2 * SPACE * 8];
        assert_non_null(bias);
        for (size_t c = 0; c < CHANNELS; c++) bias[c] = (float)(c + 1);
        for (size_t i = 0; i < len; i++) x[i] = 100.0F;
        const tn_fact out = {.dtype = TN_DTYPE_F32,
                             .shape = {.rank = 3, .dims = {1, CHANNELS, SPACE}},
                             .layout = {block}};
        const tn_fact channels = {.dtype = TN_DTYPE_F32,
                                  .shape = {.rank = 2, .dims = {CHANNELS, 1}}};
        const tn_fact *facts[] = {&channels};
        const void *operands[] = {bias};
        const tn_program program = {.step_count = 1,
                                    .operand_count = 1,
                                    .steps = {{.body = TN_BODY_ADD, .source = TN_SOURCE_INPUT}}};
        const tn_program_bind_query query = {.program = &program,
                                             .output = &out,
                                             .operands = facts,
                                             .rows = blocks,
                                             .cols = (size_t)SPACE * block,
                                             .cpu = tn_cpu_features_detect()};
        tn_program_bound bound;
        ASSERT_OK(tn_program_bind(&query, &bound, NULL));

        tn_program_apply(&bound, &(tn_program_tile){.in = x,
                                                    .in_row_stride = query.cols,
                                                    .out = x,
                                                    .out_row_stride = query.cols,
                                                    .rows = blocks,
                                                    .cols = query.cols,
                                                    .operands = operands});

        for (size_t i = 0; i < len; i++) {
            const size_t channel = i / (SPACE * block) * block + i % block;
            const float expected = channel < CHANNELS ? 100.0F + bias[channel] : 100.0F;
            assert_true(x[i] == expected);
        }
        free(bias);
    }
}

/* ---- rows ---- */

static void blocked_exp_keeps_padding_zero(void **state) {
    (void)state;
    enum { CHANNELS = 5, SPACE = 3, BLOCK = 8 };
    float x[SPACE * BLOCK];
    float y[SPACE * BLOCK];
    op_case c;
    op_case_begin(&c, "Exp", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, CHANNELS, SPACE));
    c.inputs[0].layout.block = BLOCK;
    ASSERT_OK(op_case_infer(&c, false));
    const tn_node_facts facts = op_case_facts(&c);
    ASSERT_OK(c.op->infer(&facts, NULL));
    tn_variant variants[TN_MAX_VARIANTS];
    memset(variants, 0, sizeof variants);
    uint32_t count = 0;
    const tn_variant_query query = {.node = &facts, .cpu = tn_cpu_features_detect()};
    ASSERT_OK(c.op->variants(&query, variants, &count, NULL));
    for (size_t i = 0; i < SPACE * BLOCK; i++) x[i] = i % BLOCK < CHANNELS ? 1.0F : 0.0F;
    uint32_t blocked = 0;
    for (uint32_t v = 0; v < count; v++) {
        if (variants[v].output_layout.block != BLOCK) continue;
        blocked++;
        c.outputs[0].layout.block = BLOCK;
        const tn_bind_context bind = {.node = &facts, .variant = &variants[v]};
        void *record = calloc(1, c.op->record_size(&bind));
        assert_non_null(record);
        ASSERT_OK(c.op->bind(&bind, record));
        void *values[2] = {x, y};
        const uint32_t in = 0;
        const uint32_t out = 1;
        tn_kernel_context ctx = {.values = values, .in = &in, .out = &out};
        ASSERT_OK(variants[v].run(record, &ctx, 0, 1, 0));
        for (size_t i = 0; i < SPACE * BLOCK; i++) {
            assert_true(i % BLOCK < CHANNELS ? fabsf(y[i] - 2.7182817F) < 1e-6F : y[i] == 0.0F);
        }
        free(record);
    }
    assert_true(blocked > 0);
    op_case_end(&c);
}

static void add_of_short_rows_and_columns_broadcasts(void **state) {
    (void)state;
    static const float a[] = {1, 2, 3, 4, 5, 6};       /* [2, 3, 1] */
    static const float b[] = {10, 20, 30, 40, 50, 60}; /* [1, 3, 2] */
    static const float expected[] = {11, 21, 32, 42, 53, 63, 14, 24, 35, 45, 56, 66};
    op_case c;
    op_case_begin(&c, "Add", 14);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(2, 3, 1));
    op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(1, 3, 2));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t v = 0; v < count; v++) {
        ASSERT_OK(op_case_run(&c, (int32_t)v, 2));
        assert_shape(&c, 0, OP_SHAPE(2, 3, 2));
        assert_floats(op_case_output(&c, 0), expected, 12, 0);
    }
    op_case_end(&c);
}

static void add_of_many_tiles_is_the_same_on_any_number_of_workers(void **state) {
    (void)state;
    enum { LEN = 200003 };
    float *x = malloc(LEN * sizeof *x);
    float *y = malloc(LEN * sizeof *y);
    assert_non_null(x);
    assert_non_null(y);
    fill_floats(x, LEN, 9);
    for (size_t i = 0; i < LEN; i++) y[i] = x[i] + 3.0F;
    static const float three = 3.0F;
    op_case c;
    op_case_begin(&c, "Add", 14);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(LEN));
    op_case_input(&c, TN_DTYPE_F32, &three, OP_SCALAR);
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t v = 0; v < count; v++) {
        for (uint32_t workers = 1; workers <= 3; workers++) {
            ASSERT_OK(op_case_run(&c, (int32_t)v, workers));
            assert_memory_equal(op_case_output(&c, 0), y, LEN * sizeof *y);
        }
    }
    op_case_end(&c);
    free(x);
    free(y);
}

static void unknown_shapes_give_unknown_outputs(void **state) {
    (void)state;
    static const float data[4] = {0};
    op_case c;
    op_case_begin(&c, "Mul", 14);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(4));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(4));
    c.inputs[1].shape.rank = TN_RANK_UNKNOWN;

    ASSERT_OK(op_case_infer(&c, true));

    assert_int_equal(c.outputs[0].shape.rank, TN_RANK_UNKNOWN);
    op_case_end(&c);
}

static void empty_and_scalar_tensors_work(void **state) {
    (void)state;
    static const float two = 2.0F;
    static const float nothing[1] = {0};
    op_case c;
    op_case_begin(&c, "Mul", 14);
    op_case_input(&c, TN_DTYPE_F32, &two, OP_SCALAR);
    op_case_input(&c, TN_DTYPE_F32, &two, OP_SCALAR);
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_shape(&c, 0, OP_SCALAR);
    assert_true(*(const float *)op_case_output(&c, 0) == 4.0F);
    op_case_end(&c);

    op_case_begin(&c, "Mul", 14);
    op_case_input(&c, TN_DTYPE_F32, nothing, OP_SHAPE(3, 0));
    op_case_input(&c, TN_DTYPE_F32, &two, OP_SHAPE(1, 1));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_shape(&c, 0, OP_SHAPE(3, 0));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(vector_functions_are_within_their_stated_error),
        T(signs_of_zero_survive),
        T(nan_goes_through_every_unary_body),
        T(every_length_gives_the_bits_of_the_whole),
        T(program_gives_the_bits_of_its_kernels),
        T(epilogue_of_a_part_touches_that_part_only),
        T(channel_operand_meets_blocks),
        T(blocked_exp_keeps_padding_zero),
        T(add_of_short_rows_and_columns_broadcasts),
        T(add_of_many_tiles_is_the_same_on_any_number_of_workers),
        T(unknown_shapes_give_unknown_outputs),
        T(empty_and_scalar_tensors_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
