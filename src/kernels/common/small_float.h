/* Arrays of 16- and 8-bit floats from and to f32. */
#ifndef TN_KERNELS_SMALL_FLOAT_H
#define TN_KERNELS_SMALL_FLOAT_H

#include <tenure/tensor.h>

#include <stdbool.h>

/* Whether `dtype` is a float of 16 or 8 bits with a sign. */
bool tn_dtype_is_small_float(tn_dtype dtype);

/* Exact. `from` [len] of `dtype`, aligned to its elements; zeros for other types. */
void tn_small_float_widen(tn_dtype dtype, const void *from, float *to, size_t len);

/* To nearest even; 8-bit values out of range saturate. */
void tn_small_float_narrow(tn_dtype dtype, const float *from, void *to, size_t len);

/* The same from double, rounded once. Also for 8-bit types; see tn_float8_from_double. */
void tn_small_float_narrow_double(tn_dtype dtype, const double *from, void *to, size_t len,
                                  bool saturate);

/* One value of an 8-bit type. `saturate` false: what is out of range becomes
 * infinity where the type has one, else NaN. */
double tn_float8_to_double(tn_dtype dtype, uint8_t bits);
uint8_t tn_float8_from_double(tn_dtype dtype, double value, bool saturate);

#endif
