/* Walking the positions of an N-dimensional box in row-major order while keeping two strided
 * offsets, without a division per step. */
#ifndef TN_KERNELS_COMMON_INDEX_WALK_H
#define TN_KERNELS_COMMON_INDEX_WALK_H

#include <stddef.h>
#include <stdint.h>

/* Twice the highest rank of a tensor: repeating operators see every axis as two. */
#define TN_WALK_MAX_RANK 32

/* Position in a box. The caller sets rank to strides_b; an unused stride array may be any array of
 * `rank` numbers. Units of the offsets are those of the strides. */
typedef struct tn_walk {
    int32_t rank;             /* at most TN_WALK_MAX_RANK; 0: one position */
    const int64_t *dims;      /* [rank], each at least 1 */
    const int64_t *strides_a; /* [rank] */
    const int64_t *strides_b; /* [rank] */
    int64_t offset_a, offset_b;
    int64_t index[TN_WALK_MAX_RANK]; /* [rank] */
} tn_walk;

/* Goes to row-major position `position`, which must lie in the box. */
void tn_walk_seek(tn_walk *walk, size_t position);

/* Goes to the next position; after the last one comes the first. */
void tn_walk_next(tn_walk *walk);

#endif
