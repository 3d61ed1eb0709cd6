/* The arithmetic of reductions: one reducer per kind, element type and instruction set.
 *
 * A reducer folds elements into accumulators. Sums over a run go through 32 fixed lanes and a tree
 * over them, so the bits depend on the run only, never on instruction set or threads. */
#ifndef TN_KERNELS_REDUCERS_H
#define TN_KERNELS_REDUCERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenure/tensor.h>

#include "base/cpu_features.h"

#define TN_REDUCE_KIND_LIST(X) \
    X(Sum)                     \
    X(Mean)                    \
    X(SumSquare)               \
    X(L1)                      \
    X(L2)                      \
    X(LogSum)                  \
    X(Prod)                    \
    X(Max)                     \
    X(Min)                     \
    X(LogSumExp)

typedef enum tn_reduce_kind {
#define TN_REDUCE_KIND_ENUM(name) TN_REDUCE_##name,
    TN_REDUCE_KIND_LIST(TN_REDUCE_KIND_ENUM)
#undef TN_REDUCE_KIND_ENUM
        TN_REDUCE_KIND_COUNT
} tn_reduce_kind;

#define TN_REDUCE_MAX_ACCUMULATOR_BYTES 16

typedef struct tn_reducer {
    size_t accumulator_bytes; /* 0: no such reducer */
    /* Sets `count` accumulators to those of nothing. */
    void (*init)(void *accumulators, size_t count);
    /* Folds x [count] into one accumulator. */
    void (*run)(const void *x, size_t count, void *accumulator);
    /* Reduces `rows` neighbouring runs of `length` elements to the end: y [rows]. */
    void (*runs)(const void *x, size_t rows, size_t length, void *y);
    /* Folds x[j] into accumulator j for each j below `count`. */
    void (*row)(const void *x, size_t count, void *accumulators);
    /* Folds accumulator j of `from` into accumulator j of `into`. */
    void (*merge)(void *into, const void *from, size_t count);
    /* Writes y[j] from accumulator j; `folded` elements went into each. */
    void (*finish)(const void *accumulators, size_t count, size_t folded, void *y);
} tn_reducer;

/* Lends the fastest reducer of `cpu`; NULL when the type is not reduced in this way. */
const tn_reducer *tn_reducer_get(tn_reduce_kind kind, tn_dtype dtype, tn_cpu_features cpu);

extern const tn_reducer tn_reducers_f32_avx2[TN_REDUCE_KIND_COUNT];
extern const tn_reducer tn_reducers_f32_avx512[TN_REDUCE_KIND_COUNT];

#endif
