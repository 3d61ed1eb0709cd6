/* NumPy's .npy files: versions 1 to 3, C or Fortran order, either byte order. */
#ifndef TN_CLI_NPY_H
#define TN_CLI_NPY_H

#include <tenure/tenure.h>

/* Reads the array in file `path`.
 * Ownership: *out is new, its bytes are its own; release it with tn_tensor_release.
 * Errors:    TN_IO, TN_INVALID_ARGUMENT (not a .npy file), TN_UNSUPPORTED (objects, records). */
tn_status cli_read_npy(tn_allocator *allocator, const char *path, tn_value **out, tn_error *err);

/* The same for `size_bytes` of such a file in memory. */
tn_status cli_parse_npy(tn_allocator *allocator, const unsigned char *data, size_t size_bytes,
                        tn_value **out, tn_error *err);

/* Writes `value` to file `path`. Types that NumPy lacks are written as unsigned integers of their
 * size, packed ones as bytes in one dimension, strings as fixed-width Unicode.
 * Errors: TN_IO, TN_OUT_OF_MEMORY. */
tn_status cli_write_npy(const tn_value *value, const char *path, tn_error *err);

#endif
