/* An odometer: the last axis turns fastest, a full turn moves the axis before it. */
#include "kernels/common/index_walk.h"

void tn_walk_seek(tn_walk *walk, size_t position) {
    walk->offset_a = 0;
    walk->offset_b = 0;
    for (int32_t axis = walk->rank - 1; axis >= 0; axis--) {
        const size_t dim = (size_t)walk->dims[axis];
        const int64_t index = (int64_t)(position % dim);
        position /= dim;
        walk->index[axis] = index;
        walk->offset_a += index * walk->strides_a[axis];
        walk->offset_b += index * walk->strides_b[axis];
    }
}

void tn_walk_next(tn_walk *walk) {
    for (int32_t axis = walk->rank - 1; axis >= 0; axis--) {
        walk->offset_a += walk->strides_a[axis];
        walk->offset_b += walk->strides_b[axis];
        if (++walk->index[axis] < walk->dims[axis]) return;
        walk->offset_a -= walk->dims[axis] * walk->strides_a[axis];
        walk->offset_b -= walk->dims[axis] * walk->strides_b[axis];
        walk->index[axis] = 0;
    }
}
