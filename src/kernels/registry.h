/* The families of operators. Families are named here, operators never. */
#ifndef TN_KERNELS_REGISTRY_H
#define TN_KERNELS_REGISTRY_H

#include "plan/op_def.h"

/* Lends the built-in tables, static. */
const tn_op_table *const *tn_registry_tables(size_t *out_count);

#endif
