/* Speed of f32 Conv over shapes from image networks, weights packed, one thread: every variant that
 * this processor has, in plain layout and in blocks. One line per shape and variant: best and
 * median of the rounds in us of processor time, and GFLOP/s of the best. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/registry.h"
#include "plan/op_def.h"

enum { ROUNDS = 15, MAX_FLOATS = 4 * 1024 * 1024 };

typedef struct bench_shape {
    int64_t c, side, out, taps, stride, group;
} bench_shape;

static const bench_shape shapes[] = {
    {3, 224, 64, 7, 2, 1},   {64, 56, 64, 1, 1, 1},     {64, 56, 64, 3, 1, 1},
    {64, 56, 256, 1, 1, 1},  {256, 56, 512, 1, 2, 1},   {128, 28, 128, 3, 1, 1},
    {256, 14, 256, 3, 1, 1}, {1024, 14, 256, 1, 1, 1},  {512, 7, 512, 3, 1, 1},
    {512, 7, 2048, 1, 1, 1}, {32, 112, 16, 1, 1, 1},    {24, 56, 144, 1, 1, 1},
    {96, 112, 96, 3, 2, 96}, {144, 56, 144, 3, 1, 144}, {960, 7, 960, 3, 1, 960},
};

typedef struct bench_node {
    int64_t strides[2], pads[4];
    tn_graph_attribute attributes[3];
    tn_fact x, w, y;
    const tn_fact *inputs[2];
    tn_fact *outputs[1];
    tn_node_facts facts;
    _Alignas(64) char params[2048];
} bench_node;

static double now_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *get(size_t size_bytes) {
    char *data = aligned_alloc(64, (size_bytes + 64) / 64 * 64);
    if (data == NULL) abort();
    memset(data, 0, (size_bytes + 64) / 64 * 64);
    return data;
}

static tn_text text_of(const char *name) {
    return (tn_text){name, strlen(name)};
}

static void describe(const bench_shape *s, const void *weights, bench_node *b) {
    size_t table_count;
    const tn_op_table *const *tables = tn_registry_tables(&table_count);
    const int64_t pad = s->taps / 2;
    memset(b, 0, sizeof *b);
    b->strides[0] = b->strides[1] = s->stride;
    for (size_t i = 0; i < 4; i++) b->pads[i] = pad;
    b->attributes[0] = (tn_graph_attribute){
        .name = text_of("strides"), .type = TN_ATTRIBUTE_INTS, .count = 2, .ints = b->strides};
    b->attributes[1] = (tn_graph_attribute){
        .name = text_of("pads"), .type = TN_ATTRIBUTE_INTS, .count = 4, .ints = b->pads};
    b->attributes[2] =
        (tn_graph_attribute){.name = text_of("group"), .type = TN_ATTRIBUTE_INT, .i = s->group};
    const tn_graph_node node = {
        .op_type = text_of("Conv"), .attribute_count = 3, .attributes = b->attributes};
    b->x = (tn_fact){.kind = TN_KIND_TENSOR,
                     .dtype = TN_DTYPE_F32,
                     .shape = {.rank = 4, .dims = {1, s->c, s->side, s->side}}};
    b->w = (tn_fact){.kind = TN_KIND_TENSOR,
                     .dtype = TN_DTYPE_F32,
                     .shape = {.rank = 4, .dims = {s->out, s->c / s->group, s->taps, s->taps}},
                     .data = weights,
                     .is_constant = true};
    b->inputs[0] = &b->x;
    b->inputs[1] = &b->w;
    b->outputs[0] = &b->y;
    b->facts = (tn_node_facts){
        .op = tn_op_tables_find(tables, table_count, (tn_text){NULL, 0}, node.op_type, 13),
        .params = b->params,
        .name = "bench",
        .opset = 13,
        .input_count = 2,
        .output_count = 1,
        .inputs = b->inputs,
        .outputs = b->outputs};
    const tn_check_context check = {.node = &node,
                                    .opset = 13,
                                    .input_count = 2,
                                    .output_count = 1,
                                    .input_present = (const bool[]){true, true},
                                    .output_present = (const bool[]){true}};
    if (b->facts.op->check(&check, b->params) != TN_OK) abort();
    if (b->facts.op->infer(&b->facts, NULL) != TN_OK) abort();
}

static void measure(const bench_shape *s, bench_node *b, const tn_variant *variant, float *x,
                    float *w, float *y) {
    const tn_op_def *op = b->facts.op;
    const tn_cpu_features cpu = tn_cpu_features_detect();
    const tn_pack_context pack = {&b->facts, variant, cpu, NULL};
    const tn_bind_context bind = {
        .node = &b->facts, .variant = variant, .cpu = cpu, .worker_count = 1};
    size_t packed_bytes = 0;
    if (variant->pack_format != 0 && op->pack_size(&pack, &packed_bytes) != TN_OK) abort();
    float *packed = get(packed_bytes);
    if (variant->pack_format != 0 && op->pack(&pack, packed) != TN_OK) abort();
    void *record = get(op->record_bytes);
    char *scratch = get(variant->worker_scratch_bytes);
    if (op->bind(&bind, record) != TN_OK) abort();
    void *const values[] = {x, variant->pack_format != 0 ? packed : w, y};
    tn_kernel_context ctx = {.values = values,
                             .in = (const uint32_t[]){0, 1, TN_NO_VALUE},
                             .out = (const uint32_t[]){2, TN_NO_VALUE},
                             .worker_scratch = scratch};
    double times[ROUNDS];
    for (size_t round = 0; round < ROUNDS; round++) {
        const double start = now_us();
        if (variant->run(record, &ctx, 0, variant->tile_counts[0], 0) != TN_OK) abort();
        times[round] = now_us() - start;
    }
    qsort(times, ROUNDS, sizeof *times, compare_doubles);
    const double macs = (double)(s->out * s->c / s->group * s->taps * s->taps) *
                        (double)(b->y.shape.dims[2] * b->y.shape.dims[3]);
    printf("%5lld %4lld -> %5lld  %lldx%lld /%lld  %-36s %9.1f %9.1f us %8.1f GFLOP/s\n",
           (long long)s->c, (long long)s->side, (long long)s->out, (long long)s->taps,
           (long long)s->taps, (long long)s->stride, variant->name, times[0], times[ROUNDS / 2],
           2e-3 * macs / times[0]);
    free(packed);
    free(record);
    free(scratch);
}

int main(void) {
    static const uint16_t blocks[] = {0, 8, 16};
    float *x = get(MAX_FLOATS * sizeof *x);
    float *w = get(MAX_FLOATS * sizeof *w);
    float *y = get(MAX_FLOATS * sizeof *y);
    for (size_t i = 0; i < MAX_FLOATS; i++) x[i] = w[i] = (float)(i % 251) / 251.0F - 0.5F;
    for (size_t i = 0; i < TN_COUNTOF(shapes); i++) {
        for (size_t k = 0; k < TN_COUNTOF(blocks); k++) {
            bench_node b;
            tn_variant variants[TN_MAX_VARIANTS];
            uint32_t count = 0;
            describe(&shapes[i], w, &b);
            memset(variants, 0, sizeof variants);
            const tn_variant_query query = {.node = &b.facts,
                                            .cpu = tn_cpu_features_detect(),
                                            .worker_count = 1,
                                            .scratch_limit_bytes = SIZE_MAX,
                                            .preferred_block = blocks[k]};
            if (b.facts.op->variants(&query, variants, &count, NULL) != TN_OK) abort();
            for (uint32_t v = 0; v < count; v++) {
                if (variants[v].output_layout.block != blocks[k]) continue;
                measure(&shapes[i], &b, &variants[v], x, w, y);
            }
        }
    }
    free(x);
    free(w);
    free(y);
    return 0;
}
