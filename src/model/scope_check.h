/* The checks of a loaded model that need more than one message at a time.
 * Threads: one thread at a time. */
#ifndef TN_MODEL_SCOPE_CHECK_H
#define TN_MODEL_SCOPE_CHECK_H

#include "model/loader.h"

/* Checks the names of every scope of `loader` and sorts nodes that are out of order: every value
 * has one producer, every use has one in its own scope or in one around it, and there are no
 * cycles. Of initializers with one name the last counts. Scratch comes from the loader's allocator.
 * Errors: TN_INVALID_MODEL naming the node and the value, TN_LIMIT, TN_OUT_OF_MEMORY. */
TN_MUST_USE tn_status tn_scope_check(tn_loader *loader, tn_error *err);

/* Checks the calls between model functions, through graphs in attributes too: no name twice, no
 * cycle, and no chain of calls that expands to more nodes than could ever be run.
 * Errors: TN_INVALID_MODEL or TN_UNSUPPORTED naming the function, TN_LIMIT, TN_OUT_OF_MEMORY. */
TN_MUST_USE tn_status tn_function_check(tn_loader *loader, const tn_model_info *info,
                                        tn_error *err);

#endif
