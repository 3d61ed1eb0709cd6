/* Normalisation loops by one macro over element types; included once per instruction set. */
#ifndef TN_KERNELS_NORM_TEMPLATE_H
#define TN_KERNELS_NORM_TEMPLATE_H

#include "base/loop.h"
#include "kernels/common/half.h"
#include "kernels/normalization/norm_kernels.h"

enum { NORM_LANES = 32, NORM_BLOCK = 4096 };

#define NORM_SAME(x) (x)

/* Lanes sum a block, doubles sum the blocks. */
#define DEFINE_NORM_SUM(fn, name, element, real, load, term)                            \
    static double fn##_##name(const element *x, size_t count, real mean) {              \
        double total = 0;                                                               \
        (void)mean;                                                                     \
        for (size_t start = 0; start < count; start += NORM_BLOCK) {                    \
            const size_t end = count - start < NORM_BLOCK ? count : start + NORM_BLOCK; \
            real lanes[NORM_LANES] = {0};                                               \
            size_t i = start;                                                           \
            for (; i + NORM_LANES <= end; i += NORM_LANES) {                            \
                for (size_t l = 0; l < NORM_LANES; l++) {                               \
                    const real value = load(x[i + l]);                                  \
                    lanes[l] += term(value, mean);                                      \
                }                                                                       \
            }                                                                           \
            for (size_t l = 0; i + l < end; l++) {                                      \
                const real value = load(x[i + l]);                                      \
                lanes[l] += term(value, mean);                                          \
            }                                                                           \
            for (size_t width = NORM_LANES / 2; width > 0; width /= 2) {                \
                for (size_t l = 0; l < width; l++) lanes[l] += lanes[l + width];        \
            }                                                                           \
            total += (double)lanes[0];                                                  \
        }                                                                               \
        return total;                                                                   \
    }

#define NORM_TERM_PLAIN(value, mean) (value)
#define NORM_TERM_SQUARE(value, mean) (((value) - (mean)) * ((value) - (mean)))

#define DEFINE_NORM(name, element, real, load, store)                                    \
    DEFINE_NORM_SUM(plain_sum, name, element, real, load, NORM_TERM_PLAIN)               \
    DEFINE_NORM_SUM(square_sum, name, element, real, load, NORM_TERM_SQUARE)             \
    static double sum_##name(const void *x, size_t count) {                              \
        return plain_sum_##name(x, count, 0);                                            \
    }                                                                                    \
    static double deviation_##name(const void *x, size_t count, double mean) {           \
        return square_sum_##name(x, count, (real)mean);                                  \
    }                                                                                    \
    static void apply_one_##name(const tn_norm_row *row, double scale, double bias) {    \
        const element *x = row->x;                                                       \
        element *y = row->y;                                                             \
        const real mean = (real)row->mean;                                               \
        const real factor = (real)(row->factor * scale);                                 \
        const real shift = (real)bias;                                                   \
        TN_LOOP_INDEPENDENT                                                              \
        for (size_t i = 0; i < row->count; i++) {                                        \
            y[i] = store((load(x[i]) - mean) * factor + shift);                          \
        }                                                                                \
    }                                                                                    \
    static void apply_each_##name(const tn_norm_row *row) {                              \
        const element *x = row->x;                                                       \
        const element *scale = row->scale;                                               \
        const element *bias = row->bias;                                                 \
        element *y = row->y;                                                             \
        const real mean = (real)row->mean;                                               \
        const real factor = (real)row->factor;                                           \
        if (bias == NULL) {                                                              \
            TN_LOOP_INDEPENDENT                                                          \
            for (size_t i = 0; i < row->count; i++) {                                    \
                y[i] = store((load(x[i]) - mean) * factor * load(scale[i]));             \
            }                                                                            \
            return;                                                                      \
        }                                                                                \
        TN_LOOP_INDEPENDENT                                                              \
        for (size_t i = 0; i < row->count; i++) {                                        \
            y[i] = store((load(x[i]) - mean) * factor * load(scale[i]) + load(bias[i])); \
        }                                                                                \
    }

#define NORM_KERNEL(name) \
    { sum_##name, deviation_##name, apply_one_##name, apply_each_##name }

#endif
