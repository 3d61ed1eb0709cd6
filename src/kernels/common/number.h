/* Single numbers of any plain element type, read and written at any alignment: for operators that
 * take counts, limits and indices in many types and touch few of them. */
#ifndef TN_KERNELS_COMMON_NUMBER_H
#define TN_KERNELS_COMMON_NUMBER_H

#include "plan/op_def.h"

#define TN_TYPES_INTEGER                                                                          \
    (TN_TYPE_BIT(U8) | TN_TYPE_BIT(I8) | TN_TYPE_BIT(U16) | TN_TYPE_BIT(I16) | TN_TYPE_BIT(I32) | \
     TN_TYPE_BIT(I64) | TN_TYPE_BIT(U32) | TN_TYPE_BIT(U64))
#define TN_TYPES_FLOAT (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16) | TN_TYPE_BIT(BF16))
#define TN_TYPES_NUMBER (TN_TYPES_INTEGER | TN_TYPES_FLOAT)

/* Element `index` of `data` as a double; bool is 0 or 1; 0 for types that are no numbers. */
double tn_number_read(const void *data, tn_dtype dtype, size_t index);

/* The same as an integer, exact for integer types; floats are truncated and kept in range, NaN
 * reads as INT64_MIN. */
int64_t tn_number_read_int(const void *data, tn_dtype dtype, size_t index);

/* Writes `value` as element `index`, rounded to nearest even for floats, truncated and kept in
 * range for integers (NaN writes 0), != 0 for bool; nothing for other types. */
void tn_number_write(void *data, tn_dtype dtype, size_t index, double value);
void tn_number_write_int(void *data, tn_dtype dtype, size_t index, int64_t value);

#endif
