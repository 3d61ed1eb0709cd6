/* Softmax kernels by one list macro over element types; included once per instruction set. Maxima
 * and sums of a row go through 32 fixed lanes, so the bits are the same with each. */
#ifndef TN_KERNELS_SOFTMAX_TEMPLATE_H
#define TN_KERNELS_SOFTMAX_TEMPLATE_H

#include <math.h>

#include "base/loop.h"
#include "kernels/common/exp_lane.h"
#include "kernels/common/half.h"
#include "kernels/softmax/softmax_kernels.h"

enum { SOFTMAX_LANES = 32, SOFTMAX_BLOCK = 512 };

#define SOFTMAX_SAME(x) (x)

/* A NaN is passed over here: it reaches every result of its row through the sum. */
#define SOFTMAX_GREATER(a, b) ((b) > (a) ? (b) : (a))

#define DEFINE_ROW_HELPERS(name, element, real, load)                          \
    static real greatest_##name(const element *x, size_t length) {             \
        real lanes[SOFTMAX_LANES];                                             \
        for (size_t l = 0; l < SOFTMAX_LANES; l++) lanes[l] = -(real)INFINITY; \
        size_t i = 0;                                                          \
        for (; i + SOFTMAX_LANES <= length; i += SOFTMAX_LANES) {              \
            for (size_t l = 0; l < SOFTMAX_LANES; l++) {                       \
                const real value = load(x[i + l]);                             \
                lanes[l] = SOFTMAX_GREATER(lanes[l], value);                   \
            }                                                                  \
        }                                                                      \
        for (size_t l = 0; i + l < length; l++) {                              \
            const real value = load(x[i + l]);                                 \
            lanes[l] = SOFTMAX_GREATER(lanes[l], value);                       \
        }                                                                      \
        for (size_t width = SOFTMAX_LANES / 2; width > 0; width /= 2) {        \
            for (size_t l = 0; l < width; l++) {                               \
                lanes[l] = SOFTMAX_GREATER(lanes[l], lanes[l + width]);        \
            }                                                                  \
        }                                                                      \
        return lanes[0];                                                       \
    }

/* Sum of exp(x - greatest), each term also written to y when that is wanted. Terms are made block
 * by block in plain loops, which become vector code, then summed by lanes. */
#define DEFINE_EXP_SUM(name, element, real, load, store, exp_fn)                              \
    static real block_sum_##name(const real *terms, size_t count) {                           \
        real lanes[SOFTMAX_LANES] = {0};                                                      \
        size_t i = 0;                                                                         \
        for (; i + SOFTMAX_LANES <= count; i += SOFTMAX_LANES) {                              \
            for (size_t l = 0; l < SOFTMAX_LANES; l++) lanes[l] += terms[i + l];              \
        }                                                                                     \
        for (size_t l = 0; i + l < count; l++) lanes[l] += terms[i + l];                      \
        for (size_t width = SOFTMAX_LANES / 2; width > 0; width /= 2) {                       \
            for (size_t l = 0; l < width; l++) lanes[l] += lanes[l + width];                  \
        }                                                                                     \
        return lanes[0];                                                                      \
    }                                                                                         \
    static real exp_sum_##name(const element *x, size_t length, real greatest, real *y) {     \
        real terms[SOFTMAX_BLOCK];                                                            \
        real total = 0;                                                                       \
        for (size_t start = 0; start < length; start += SOFTMAX_BLOCK) {                      \
            const size_t left = length - start;                                               \
            const size_t count = left < SOFTMAX_BLOCK ? left : SOFTMAX_BLOCK;                 \
            real *to = y != NULL ? y + start : terms;                                         \
            TN_LOOP_INDEPENDENT                                                               \
            for (size_t i = 0; i < count; i++) to[i] = exp_fn(load(x[start + i]) - greatest); \
            total += block_sum_##name(to, count);                                             \
        }                                                                                     \
        return total;                                                                         \
    }

#define DEFINE_ROWS(name, element, real, load, store, exp_fn, log_fn)                 \
    static void exp_row_##name(const tn_softmax_span *span) {                         \
        const element *x = span->x;                                                   \
        element *y = span->y;                                                         \
        const real greatest = greatest_##name(x, span->length);                       \
        const real factor = 1 / exp_sum_##name(x, span->length, greatest, y);         \
        for (size_t i = 0; i < span->length; i++) y[i] = store(load(y[i]) * factor);  \
    }                                                                                 \
    static void log_row_##name(const tn_softmax_span *span) {                         \
        const element *x = span->x;                                                   \
        element *y = span->y;                                                         \
        const real greatest = greatest_##name(x, span->length);                       \
        const real log_sum = log_fn(exp_sum_##name(x, span->length, greatest, NULL)); \
        TN_LOOP_INDEPENDENT                                                           \
        for (size_t i = 0; i < span->length; i++) {                                   \
            y[i] = store((load(x[i]) - greatest) - log_sum);                          \
        }                                                                             \
    }

#define DEFINE_COLUMNS(name, element, real, load, store, exp_fn, log_fn)                      \
    static void column_stats_##name(const tn_softmax_span *span, real *greatest, real *sum) { \
        const element *x = span->x;                                                           \
        const size_t cols = span->cols;                                                       \
        for (size_t j = 0; j < cols; j++) greatest[j] = -(real)INFINITY;                      \
        for (size_t j = 0; j < cols; j++) sum[j] = 0;                                         \
        for (size_t i = 0; i < span->length; i++) {                                           \
            for (size_t j = 0; j < cols; j++) {                                               \
                const real value = load(x[i * span->stride + j]);                             \
                greatest[j] = SOFTMAX_GREATER(greatest[j], value);                            \
            }                                                                                 \
        }                                                                                     \
        for (size_t i = 0; i < span->length; i++) {                                           \
            for (size_t j = 0; j < cols; j++) {                                               \
                sum[j] += exp_fn(load(x[i * span->stride + j]) - greatest[j]);                \
            }                                                                                 \
        }                                                                                     \
    }                                                                                         \
    static void exp_columns_##name(const tn_softmax_span *span) {                             \
        real greatest[TN_SOFTMAX_COLS];                                                       \
        real sum[TN_SOFTMAX_COLS];                                                            \
        column_stats_##name(span, greatest, sum);                                             \
        for (size_t i = 0; i < span->length; i++) {                                           \
            const element *x = (const element *)span->x + i * span->stride;                   \
            element *y = (element *)span->y + i * span->stride;                               \
            TN_LOOP_INDEPENDENT                                                               \
            for (size_t j = 0; j < span->cols; j++) {                                         \
                y[j] = store(exp_fn(load(x[j]) - greatest[j]) / sum[j]);                      \
            }                                                                                 \
        }                                                                                     \
    }                                                                                         \
    static void log_columns_##name(const tn_softmax_span *span) {                             \
        real greatest[TN_SOFTMAX_COLS];                                                       \
        real sum[TN_SOFTMAX_COLS];                                                            \
        column_stats_##name(span, greatest, sum);                                             \
        for (size_t j = 0; j < span->cols; j++) sum[j] = log_fn(sum[j]);                      \
        for (size_t i = 0; i < span->length; i++) {                                           \
            const element *x = (const element *)span->x + i * span->stride;                   \
            element *y = (element *)span->y + i * span->stride;                               \
            TN_LOOP_INDEPENDENT                                                               \
            for (size_t j = 0; j < span->cols; j++) {                                         \
                y[j] = store((load(x[j]) - greatest[j]) - sum[j]);                            \
            }                                                                                 \
        }                                                                                     \
    }

/* Ones at the first greatest values, for rows and columns alike. */
#define DEFINE_HARD(name, element, real, load, store)                           \
    static void hard_columns_##name(const tn_softmax_span *span) {              \
        const element *x = span->x;                                             \
        element *y = span->y;                                                   \
        for (size_t j = 0; j < span->cols; j++) {                               \
            size_t best = 0;                                                    \
            for (size_t i = 1; i < span->length; i++) {                         \
                const real value = load(x[i * span->stride + j]);               \
                const real seen = load(x[best * span->stride + j]);             \
                if (value > seen || (value != value && seen == seen)) best = i; \
            }                                                                   \
            for (size_t i = 0; i < span->length; i++) {                         \
                y[i * span->stride + j] = store(i == best ? (real)1 : (real)0); \
            }                                                                   \
        }                                                                       \
    }

#define DEFINE_SOFTMAX(name, element, real, load, store, exp_fn, log_fn) \
    DEFINE_ROW_HELPERS(name, element, real, load)                        \
    DEFINE_EXP_SUM(name, element, real, load, store, exp_fn)             \
    DEFINE_ROWS(name, element, real, load, store, exp_fn, log_fn)        \
    DEFINE_COLUMNS(name, element, real, load, store, exp_fn, log_fn)     \
    DEFINE_HARD(name, element, real, load, store)

#define DEFINE_SOFTMAX_F32() \
    DEFINE_SOFTMAX(F32, float, float, SOFTMAX_SAME, SOFTMAX_SAME, tn_exp_lane, logf)

#define SOFTMAX_F32_KERNELS                                       \
    {                                                             \
        [TN_SOFTMAX_EXP] = {exp_row_F32, exp_columns_F32},        \
        [TN_SOFTMAX_LOG] = {log_row_F32, log_columns_F32},        \
        [TN_SOFTMAX_HARD] = {hard_columns_F32, hard_columns_F32}, \
    }

#endif
