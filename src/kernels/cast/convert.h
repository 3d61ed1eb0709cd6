/* Conversion of arrays between any two element types. */
#ifndef TN_KERNELS_CONVERT_H
#define TN_KERNELS_CONVERT_H

#include <tenure/tensor.h>

#include <stdbool.h>

/* Rounding of conversions to float8e8m0. */
typedef enum tn_round_mode { TN_ROUND_UP, TN_ROUND_DOWN, TN_ROUND_NEAREST } tn_round_mode;

typedef struct tn_convert_options {
    tn_dtype from;
    tn_dtype to;
    bool saturate; /* 8-bit floats: what is out of range becomes the largest finite value */
    tn_round_mode round_mode;
} tn_convert_options;

/* Whether tn_convert takes this pair: all types but complex ones; strings as a source only. */
bool tn_convert_is_supported(tn_dtype from, tn_dtype to);

/* Converts elements [first, first + count) of `in` to the same elements of `out`. Floats to
 * integers are truncated; what does not fit is cut to the low bits of the nearest 64-bit integer
 * (types of 32 bits with a sign: the nearest value), NaN becomes 0. Integers are cut to the low
 * bits. To bool: != 0.
 * Shapes: first is a multiple of 4 (packed types). `in` and `out` may be the same memory when
 *         elements have one size.
 * Errors: TN_INVALID_ARGUMENT for a string that is no number, with its text. */
tn_status tn_convert(const tn_convert_options *options, const void *in, void *out, size_t first,
                     size_t count, tn_error *err);

#endif
