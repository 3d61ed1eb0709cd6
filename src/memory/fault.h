/* The question that every entry asks before it does anything: shall this allocation fail? */
#ifndef TN_MEMORY_FAULT_H
#define TN_MEMORY_FAULT_H

#include <tenure/memory.h>

static inline bool tn_fault_hits(const tn_fault_injector *fault, tn_fault_point point) {
    return fault != NULL && fault->should_fail != NULL && fault->should_fail(fault->ctx, point);
}

#endif
