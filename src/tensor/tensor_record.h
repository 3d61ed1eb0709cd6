/* Tensors from inside: a record with a count and one of four owners of its bytes. */
#ifndef TN_TENSOR_TENSOR_RECORD_H
#define TN_TENSOR_TENSOR_RECORD_H

#include <tenure/arena.h>
#include <tenure/tensor.h>

/* Takes over `take_lease` on success: its last reference gives the block back to its arena.
 * `data` lies in the lease's block. Errors: TN_OUT_OF_MEMORY, TN_LIMIT; then the lease stays. */
tn_status tn_tensor_create_leased(tn_allocator *allocator, tn_dtype dtype, const tn_shape *shape,
                                  tn_io_lease **take_lease, tn_tensor **out, tn_error *err);

/* Whether the elements lie dense in C order. */
bool tn_tensor_is_dense(const tn_tensor *tensor);

/* Copies a strided tensor into dense `data` [tn_tensor_size_bytes]. */
void tn_tensor_copy_dense(const tn_tensor *tensor, void *data);

#endif
