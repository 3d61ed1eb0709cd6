#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/gemm.h"

typedef struct gemm_shape {
    size_t m, n, k;
} gemm_shape;

/* Whole tiles, part tiles, one row, one column, several blocks of k and of columns, nothing. */
static const gemm_shape shapes[] = {{6, 16, 8},   {8, 48, 8},    {1, 1, 1},    {1, 130, 600},
                                    {13, 97, 31}, {70, 301, 40}, {5, 17, 700}, {200, 49, 3},
                                    {3, 50, 0},   {0, 5, 3},     {4, 0, 3}};

static float number_at(size_t i) {
    return (float)((i * 2654435761u) % 2001u) / 1000.0F - 1.0F;
}

static float *make(size_t count) {
    float *data = malloc((count + 1) * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) data[i] = number_at(i);
    return data;
}

typedef struct gemm_data {
    float *a, *b, *c, *packed;
    void *scratch;
} gemm_data;

static gemm_data make_data(const tn_gemm_isa *isa, const gemm_shape *s) {
    size_t packed_bytes = 0;
    assert_true(tn_gemm_packed_bytes(isa, s->n, s->k, &packed_bytes));
    const size_t scratch_bytes = tn_gemm_scratch_bytes(isa, s->m, s->n, s->k, true, true);
    gemm_data d = {make(s->m * s->k), make(s->k * s->n), make(s->m * s->n),
                   make(packed_bytes / sizeof(float)), aligned_alloc(64, scratch_bytes + 64)};
    assert_non_null(d.scratch);
    return d;
}

static void free_data(gemm_data *d) {
    free(d->a);
    free(d->b);
    free(d->c);
    free(d->packed);
    free(d->scratch);
}

static void check(const gemm_shape *s, const tn_gemm_task *task, double start) {
    for (size_t i = 0; i < s->m; i++) {
        for (size_t j = 0; j < s->n; j++) {
            double sum = start * (double)number_at(i * s->n + j);
            for (size_t p = 0; p < s->k; p++) {
                sum += (double)task->a[i * task->a_row_stride + p * task->a_k_stride] *
                       (double)number_at(p * s->n + j);
            }
            const double seen = (double)task->c[i * task->c_row_stride + j];
            if (fabs(seen - sum) > 1e-4 * (1.0 + fabs(sum))) {
                fail_msg("%zu x %zu x %zu at (%zu, %zu): %g, expected %g", s->m, s->n, s->k, i, j,
                         seen, sum);
            }
        }
    }
}

static tn_gemm_task plain_task(const gemm_shape *s, const gemm_data *d) {
    return (tn_gemm_task){.m = s->m,
                          .n = s->n,
                          .k = s->k,
                          .a = d->a,
                          .a_row_stride = s->k,
                          .a_k_stride = 1,
                          .b = d->b,
                          .b_panel_rows = s->k,
                          .b_k_stride = s->n,
                          .b_col_stride = 1,
                          .c = d->c,
                          .c_row_stride = s->n};
}

typedef void (*shape_test)(const tn_gemm_isa *isa, const gemm_shape *s);

static void for_each_isa_and_shape(shape_test test) {
    for (uint32_t id = 0; id < TN_GEMM_ISA_COUNT; id++) {
        const tn_gemm_isa *isa = tn_gemm_isa_get(id, tn_cpu_features_detect());
        if (isa == NULL) continue;
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) test(isa, &shapes[i]);
    }
}

static void run_plain(const tn_gemm_isa *isa, const gemm_shape *s) {
    gemm_data d = make_data(isa, s);
    const tn_gemm_task task = plain_task(s, &d);

    tn_gemm_run(isa, &task, d.scratch);

    check(s, &task, 0.0);
    free_data(&d);
}

static void gemm_of_plain_operands_matches_loops(void **state) {
    (void)state;
    for_each_isa_and_shape(run_plain);
}

static void run_packed_adding(const tn_gemm_isa *isa, const gemm_shape *s) {
    gemm_data d = make_data(isa, s);
    tn_gemm_pack(isa, d.b, s->n, 1, s->n, s->k, d.packed);
    tn_gemm_task task = plain_task(s, &d);
    task.b = d.packed;
    task.b_is_packed = true;
    task.adds = true;

    tn_gemm_run(isa, &task, d.scratch);

    check(s, &task, 1.0);
    free_data(&d);
}

static void gemm_adding_to_c_with_a_packed_weight_matches_loops(void **state) {
    (void)state;
    for_each_isa_and_shape(run_packed_adding);
}

static void run_transposed(const tn_gemm_isa *isa, const gemm_shape *s) {
    gemm_data d = make_data(isa, s);
    float *b_columns = make(s->n * s->k);
    for (size_t j = 0; j < s->n; j++) {
        for (size_t p = 0; p < s->k; p++) b_columns[j * s->k + p] = d.b[p * s->n + j];
    }
    tn_gemm_task task = plain_task(s, &d);
    task.a_row_stride = 1;
    task.a_k_stride = s->m;
    task.b = b_columns;
    task.b_k_stride = 1;
    task.b_col_stride = s->k;

    tn_gemm_run(isa, &task, d.scratch);

    check(s, &task, 0.0);
    task.a_row_stride = s->k;
    task.a_k_stride = 1;
    tn_gemm_run(isa, &task, d.scratch);
    check(s, &task, 0.0);
    free(b_columns);
    free_data(&d);
}

static void gemm_of_transposed_operands_matches_loops(void **state) {
    (void)state;
    for_each_isa_and_shape(run_transposed);
}

static void gemm_keeps_to_rows_and_columns_of_c(void **state) {
    (void)state;
    enum { ROWS = 5, COLS = 19, STRIDE = 23 };
    const gemm_shape s = {ROWS, COLS, 9};
    for (uint32_t id = 0; id < TN_GEMM_ISA_COUNT; id++) {
        const tn_gemm_isa *isa = tn_gemm_isa_get(id, tn_cpu_features_detect());
        if (isa == NULL) continue;
        float c[ROWS * STRIDE];
        for (size_t i = 0; i < ROWS * STRIDE; i++) c[i] = 77.0F;
        gemm_data d = make_data(isa, &s);
        tn_gemm_task task = plain_task(&s, &d);
        task.c = c;
        task.c_row_stride = STRIDE;

        tn_gemm_run(isa, &task, d.scratch);

        check(&s, &task, 0.0);
        for (size_t i = 0; i < ROWS; i++) {
            for (size_t j = COLS; j < STRIDE; j++) assert_true(c[i * STRIDE + j] == 77.0F);
        }
        free_data(&d);
    }
}

static void gemm_packed_size_that_overflows_is_refused(void **state) {
    (void)state;
    size_t size_bytes = 0;

    assert_false(tn_gemm_packed_bytes(&tn_gemm_portable, SIZE_MAX / 8, 16, &size_bytes));
    assert_false(tn_gemm_packed_bytes(&tn_gemm_portable, SIZE_MAX, 1, &size_bytes));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(gemm_of_plain_operands_matches_loops),
        T(gemm_adding_to_c_with_a_packed_weight_matches_loops),
        T(gemm_of_transposed_operands_matches_loops),
        T(gemm_keeps_to_rows_and_columns_of_c),
        T(gemm_packed_size_that_overflows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
