/* Reads test data as ONNX stores it (TensorProto in .pb files) into tensors. */
#ifndef TN_CLI_CASE_READER_H
#define TN_CLI_CASE_READER_H

#include <stdbool.h>
#include <tenure/tenure.h>

/* Reads the TensorProto in file `path`.
 * Ownership: *out is new; release it with tn_tensor_release; its bytes are its own.
 * Errors:    TN_IO, TN_INVALID_ARGUMENT (not a TensorProto), TN_UNSUPPORTED (other messages). */
tn_status cli_read_tensor_pb(tn_allocator *allocator, const char *path, tn_value **out,
                             tn_error *err);

/* The same for `size_bytes` of a serialized TensorProto. */
tn_status cli_parse_tensor_pb(tn_allocator *allocator, const unsigned char *data, size_t size_bytes,
                              tn_value **out, tn_error *err);

/* Whole file in memory from malloc; free it with free. */
tn_status cli_read_file(const char *path, unsigned char **out_data, size_t *out_bytes,
                        tn_error *err);

#endif
