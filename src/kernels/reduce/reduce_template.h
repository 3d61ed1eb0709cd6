/* Reducers by list macros. A type entry is
 *   X(name, element, accumulator, wrapping twin, load, store, class, least, greatest)
 * where class F, S or U picks float, signed or unsigned arithmetic, and the wrapping twin is the
 * unsigned type in which integer overflow is defined. Included once per instruction set. */
#ifndef TN_KERNELS_REDUCE_TEMPLATE_H
#define TN_KERNELS_REDUCE_TEMPLATE_H

#include <math.h>
#include <string.h>

#include "base/loop.h"
#include "kernels/common/half.h"
#include "kernels/reduce/reducers.h"

/* Runs shorter than REDUCE_SHORT use fewer lanes, whose tree costs less. */
enum { REDUCE_LANES = 32, REDUCE_SHORT = 128, REDUCE_SHORT_LANES = 8 };

#define REDUCE_SAME(x) (x)
#define REDUCE_TYPE_F32(X) \
    X(F32, float, float, float, REDUCE_SAME, REDUCE_SAME, F, -INFINITY, INFINITY)

#define ABS_F(x, wrap) ((x) < 0 ? -(x) : (x) + 0)
#define ABS_S(x, wrap) ((x) < 0 ? 0 - (wrap)(x) : (wrap)(x))
#define ABS_U(x, wrap) (x)
#define GREATER_F(x, a) ((x) > (a) || (x) != (x))
#define GREATER_S(x, a) ((x) > (a))
#define GREATER_U(x, a) ((x) > (a))
#define LESS_F(x, a) ((x) < (a) || (x) != (x))
#define LESS_S(x, a) ((x) < (a))
#define LESS_U(x, a) ((x) < (a))
#define MEAN_F(a, n) ((a) / (n))
#define MEAN_S(a, n) ((n) == 0 ? 0 : (a) / (n))
#define MEAN_U(a, n) MEAN_S(a, n)
/* Integers have no infinity and no NaN: where a logarithm or a root has none either, they give 0.
 */
#define LOG_F(a) log((double)(a))
#define LOG_S(a) ((a) > 0 ? log((double)(a)) : 0)
#define LOG_U(a) LOG_S(a)
#define ROOT_F(a) sqrt((double)(a))
#define ROOT_S(a) ((a) > 0 ? sqrt((double)(a)) : 0)
#define ROOT_U(a) ROOT_S(a)

/* What each kind starts from, does with an element, does with another accumulator, gives at last.
 */
#define START_Sum(least, greatest) 0
#define ADD_Sum(a, x, acc, wrap, class) ((acc)((wrap)(a) + (wrap)(x)))
#define MERGE_Sum(a, b, acc, wrap, class) ADD_Sum(a, b, acc, wrap, class)
#define FINISH_Sum(a, n, acc, class) (a)
#define START_Mean(least, greatest) 0
#define ADD_Mean ADD_Sum
#define MERGE_Mean MERGE_Sum
#define FINISH_Mean(a, n, acc, class) MEAN_##class(a, (acc)(n))
#define START_SumSquare(least, greatest) 0
#define ADD_SumSquare(a, x, acc, wrap, class) ((acc)((wrap)(a) + (wrap)(x) * (wrap)(x)))
#define MERGE_SumSquare MERGE_Sum
#define FINISH_SumSquare(a, n, acc, class) (a)
#define START_L1(least, greatest) 0
#define ADD_L1(a, x, acc, wrap, class) ((acc)((wrap)(a) + (wrap)ABS_##class(x, wrap)))
#define MERGE_L1 MERGE_Sum
#define FINISH_L1(a, n, acc, class) (a)
#define START_L2(least, greatest) 0
#define ADD_L2 ADD_SumSquare
#define MERGE_L2 MERGE_Sum
#define FINISH_L2(a, n, acc, class) ((acc)ROOT_##class(a))
#define START_LogSum(least, greatest) 0
#define ADD_LogSum ADD_Sum
#define MERGE_LogSum MERGE_Sum
#define FINISH_LogSum(a, n, acc, class) ((acc)LOG_##class(a))
#define START_Prod(least, greatest) 1
#define ADD_Prod(a, x, acc, wrap, class) ((acc)((wrap)(a) * (wrap)(x)))
#define MERGE_Prod ADD_Prod
#define FINISH_Prod(a, n, acc, class) (a)
#define START_Max(least, greatest) (least)
#define ADD_Max(a, x, acc, wrap, class) (GREATER_##class(x, a) ? (x) : (a))
#define MERGE_Max ADD_Max
#define FINISH_Max(a, n, acc, class) (a)
#define START_Min(least, greatest) (greatest)
#define ADD_Min(a, x, acc, wrap, class) (LESS_##class(x, a) ? (x) : (a))
#define MERGE_Min ADD_Min
#define FINISH_Min(a, n, acc, class) (a)

#define DEFINE_REDUCER(kind, name, element, acc, wrap, load, store, class, least, greatest)   \
    static void init_##kind##_##name(void *accumulators, size_t count) {                      \
        acc *a = accumulators;                                                                \
        for (size_t j = 0; j < count; j++) a[j] = START_##kind(least, greatest);              \
    }                                                                                         \
    static void row_##kind##_##name(const void *input, size_t count, void *accumulators) {    \
        const element *x = input;                                                             \
        acc *a = accumulators;                                                                \
        TN_LOOP_INDEPENDENT                                                                   \
        for (size_t j = 0; j < count; j++) {                                                  \
            const acc value = load(x[j]);                                                     \
            a[j] = ADD_##kind(a[j], value, acc, wrap, class);                                 \
        }                                                                                     \
    }                                                                                         \
    static void merge_##kind##_##name(void *into, const void *from, size_t count) {           \
        acc *a = into;                                                                        \
        const acc *b = from;                                                                  \
        for (size_t j = 0; j < count; j++) a[j] = MERGE_##kind(a[j], b[j], acc, wrap, class); \
    }                                                                                         \
    static inline __attribute__((always_inline))                                              \
    acc fold_##kind##_##name(const element *x, size_t count, const size_t lane_count) {       \
        acc lanes[REDUCE_LANES];                                                              \
        for (size_t l = 0; l < lane_count; l++) lanes[l] = START_##kind(least, greatest);     \
        size_t i = 0;                                                                         \
        for (; i + lane_count <= count; i += lane_count) {                                    \
            for (size_t l = 0; l < lane_count; l++) {                                         \
                const acc value = load(x[i + l]);                                             \
                lanes[l] = ADD_##kind(lanes[l], value, acc, wrap, class);                     \
            }                                                                                 \
        }                                                                                     \
        for (size_t l = 0; i + l < count; l++) {                                              \
            const acc value = load(x[i + l]);                                                 \
            lanes[l] = ADD_##kind(lanes[l], value, acc, wrap, class);                         \
        }                                                                                     \
        for (size_t width = lane_count / 2; width > 0; width /= 2) {                          \
            for (size_t l = 0; l < width; l++) {                                              \
                lanes[l] = MERGE_##kind(lanes[l], lanes[l + width], acc, wrap, class);        \
            }                                                                                 \
        }                                                                                     \
        return lanes[0];                                                                      \
    }                                                                                         \
    static void run_##kind##_##name(const void *input, size_t count, void *accumulator) {     \
        acc *a = accumulator;                                                                 \
        const acc sum = fold_##kind##_##name(input, count, REDUCE_LANES);                     \
        *a = MERGE_##kind(*a, sum, acc, wrap, class);                                         \
    }                                                                                         \
    static void runs_##kind##_##name(const void *input, size_t rows, size_t length,           \
                                     void *output) {                                          \
        const element *x = input;                                                             \
        element *y = output;                                                                  \
        for (size_t i = 0; i < rows; i++, x += length) {                                      \
            const acc sum = length < REDUCE_SHORT                                             \
                                ? fold_##kind##_##name(x, length, REDUCE_SHORT_LANES)         \
                                : fold_##kind##_##name(x, length, REDUCE_LANES);              \
            y[i] = (element)store(FINISH_##kind(sum, length, acc, class));                    \
        }                                                                                     \
    }                                                                                         \
    static void finish_##kind##_##name(const void *accumulators, size_t count, size_t folded, \
                                       void *output) {                                        \
        const acc *a = accumulators;                                                          \
        element *y = output;                                                                  \
        (void)folded;                                                                         \
        for (size_t j = 0; j < count; j++) {                                                  \
            y[j] = (element)store(FINISH_##kind(a[j], folded, acc, class));                   \
        }                                                                                     \
    }

/* Log of the sum of exponentials: the accumulator is the greatest value and the sum relative to it,
 * so nothing overflows. */
#define DEFINE_LOG_SUM_EXP(name, element, real, load, store, exp_fn, log_fn)                       \
    typedef struct lse_##name {                                                                    \
        real greatest;                                                                             \
        real sum;                                                                                  \
    } lse_##name;                                                                                  \
    static void lse_add_##name(lse_##name *a, real x, real weight) {                               \
        if (x <= a->greatest) {                                                                    \
            a->sum += x == a->greatest ? weight : weight * exp_fn(x - a->greatest);                \
        } else {                                                                                   \
            a->sum = weight + (a->sum == 0 ? 0 : a->sum * exp_fn(a->greatest - x));                \
            a->greatest = x;                                                                       \
        }                                                                                          \
    }                                                                                              \
    static void init_LogSumExp_##name(void *accumulators, size_t count) {                          \
        lse_##name *a = accumulators;                                                              \
        for (size_t j = 0; j < count; j++) a[j] = (lse_##name){-(real)INFINITY, 0};                \
    }                                                                                              \
    static void row_LogSumExp_##name(const void *input, size_t count, void *accumulators) {        \
        const element *x = input;                                                                  \
        lse_##name *a = accumulators;                                                              \
        for (size_t j = 0; j < count; j++) lse_add_##name(&a[j], (real)load(x[j]), 1);             \
    }                                                                                              \
    static void merge_LogSumExp_##name(void *into, const void *from, size_t count) {               \
        lse_##name *a = into;                                                                      \
        const lse_##name *b = from;                                                                \
        for (size_t j = 0; j < count; j++) lse_add_##name(&a[j], b[j].greatest, b[j].sum);         \
    }                                                                                              \
    static void run_LogSumExp_##name(const void *input, size_t count, void *accumulator) {         \
        const element *x = input;                                                                  \
        for (size_t i = 0; i < count; i++) lse_add_##name(accumulator, (real)load(x[i]), 1);       \
    }                                                                                              \
    static void runs_LogSumExp_##name(const void *input, size_t rows, size_t length,               \
                                      void *output) {                                              \
        const element *x = input;                                                                  \
        element *y = output;                                                                       \
        for (size_t i = 0; i < rows; i++, x += length) {                                           \
            lse_##name a = {-(real)INFINITY, 0};                                                   \
            run_LogSumExp_##name(x, length, &a);                                                   \
            const real value = a.sum == 0 ? -(real)INFINITY : a.greatest + log_fn(a.sum);          \
            y[i] = (element)store(value);                                                          \
        }                                                                                          \
    }                                                                                              \
    static void finish_LogSumExp_##name(const void *accumulators, size_t count, size_t folded,     \
                                        void *output) {                                            \
        const lse_##name *a = accumulators;                                                        \
        element *y = output;                                                                       \
        (void)folded;                                                                              \
        for (size_t j = 0; j < count; j++) {                                                       \
            const real value = a[j].sum == 0 ? -(real)INFINITY : a[j].greatest + log_fn(a[j].sum); \
            y[j] = (element)store(value);                                                          \
        }                                                                                          \
    }

#define REDUCER_ENTRY(kind, name, acc)                                                \
    {                                                                                 \
        sizeof(acc), init_##kind##_##name, run_##kind##_##name, runs_##kind##_##name, \
            row_##kind##_##name, merge_##kind##_##name, finish_##kind##_##name        \
    }

#endif
