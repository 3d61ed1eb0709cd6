/* Printing of shapes, for messages. */
#ifndef TN_TENSOR_SHAPE_H
#define TN_TENSOR_SHAPE_H

#include <tenure/tensor.h>

/* Enough for sixteen dims of full width; a longer text would be cut. */
#define TN_SHAPE_TEXT_BYTES 360

/* Writes `shape` as "[2, 3]" into `text` and returns `text`. Cut when it does not fit.
 * Units: `capacity_bytes` includes the NUL; at least 1. */
const char *tn_shape_print(const tn_shape *shape, char *text, size_t capacity_bytes);

#endif
