/* Speed of the f32 matrix product over shapes from fully connected layers and encoders, weights
 * packed, one thread: GFLOP/s, best and median of the rounds, for each instruction set here. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/common/gemm.h"

enum { ROUNDS = 21 };

typedef struct bench_shape {
    size_t m, n, k;
} bench_shape;

static const bench_shape shapes[] = {
    {1, 1000, 2048},  {128, 384, 384},    {128, 1536, 384}, {384, 768, 768},
    {384, 3072, 768}, {1024, 1024, 1024}, {128, 128, 64},   {196, 256, 1024},
};

static double now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static float *make_floats(size_t count) {
    float *data = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    if (data == NULL) abort();
    for (size_t i = 0; i < count; i++) data[i] = (float)((i * 2654435761u) % 1000) / 1000.0F - 0.5F;
    return data;
}

static void measure(const tn_gemm_isa *isa, const bench_shape *shape, bool packs) {
    const size_t m = shape->m;
    const size_t n = shape->n;
    const size_t k = shape->k;
    size_t packed_bytes = 0;
    if (!tn_gemm_packed_bytes(isa, n, k, &packed_bytes)) abort();
    float *a = make_floats(m * k);
    float *b = make_floats(n * k);
    float *c = make_floats(m * n);
    float *packed = make_floats(packed_bytes / sizeof(float));
    float *scratch = make_floats(tn_gemm_scratch_bytes(isa, m, n, k, true, true) / sizeof(float));
    tn_gemm_pack(isa, b, n, 1, n, k, packed);
    const tn_gemm_task task = {.m = m,
                               .n = n,
                               .k = k,
                               .a = a,
                               .a_row_stride = k,
                               .a_k_stride = 1,
                               .b = packs ? packed : b,
                               .b_panel_rows = k,
                               .b_k_stride = n,
                               .b_col_stride = 1,
                               .c = c,
                               .c_row_stride = n,
                               .b_is_packed = packs};
    const double flops = 2.0 * (double)m * (double)n * (double)k;
    const size_t repeats = flops > 2e7 ? 1 : (size_t)(2e7 / flops) + 1;
    double rates[ROUNDS];
    for (size_t round = 0; round < ROUNDS; round++) {
        const double start = now_ns();
        for (size_t i = 0; i < repeats; i++) tn_gemm_run(isa, &task, scratch);
        rates[round] = flops * (double)repeats / (now_ns() - start);
    }
    qsort(rates, ROUNDS, sizeof rates[0], compare_doubles);
    printf("%5zu x %5zu x %5zu  %-9s %-8s best %7.1f  median %7.1f GFLOP/s\n", m, n, k, isa->name,
           packs ? "packed" : "plain", rates[ROUNDS - 1], rates[ROUNDS / 2]);
    free(a);
    free(b);
    free(c);
    free(packed);
    free(scratch);
}

int main(void) {
    const tn_cpu_features cpu = tn_cpu_features_detect();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (uint32_t id = 0; id < TN_GEMM_ISA_COUNT; id++) {
            const tn_gemm_isa *isa = tn_gemm_isa_get(id, cpu);
            if (isa == NULL) continue;
            measure(isa, &shapes[i], true);
            measure(isa, &shapes[i], false);
        }
    }
    return 0;
}
