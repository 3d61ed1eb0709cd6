/* The structural passes, in the order in which they run. Each is a file of its own. */
#ifndef TN_PLAN_PASSES_H
#define TN_PLAN_PASSES_H

#include "plan/ir.h"

typedef struct tn_pass_options {
    bool disable_fusion; /* no affine folding, no programs, no epilogues */
    bool exact_only;     /* only rewrites that keep every bit */
    bool disable_layout;
} tn_pass_options;

/* Runs all passes that the options allow, then drops dead nodes.
 * Errors: TN_OUT_OF_MEMORY, TN_LIMIT. */
tn_status tn_ir_run_passes(tn_ir *ir, const tn_pass_options *options, tn_error *err);

/* drop_identity.c: readers of a node that hands its input on read the input. */
tn_status tn_pass_drop_identity(tn_ir *ir, const tn_pass_options *options, tn_error *err);

/* fold_affine.c: scale and shift per channel behind a convolution go into its weights and bias. */
tn_status tn_pass_fold_affine(tn_ir *ir, const tn_pass_options *options, tn_error *err);

/* fuse_epilogue.c: elementwise nodes behind a kernel that takes epilogues are applied to its output
 * tile by tile. Exact. */
tn_status tn_pass_fuse_epilogue(tn_ir *ir, const tn_pass_options *options, tn_error *err);

/* fuse_elementwise.c: groups of elementwise nodes become programs. Exact. */
tn_status tn_pass_fuse_elementwise(tn_ir *ir, const tn_pass_options *options, tn_error *err);

/* layout.c: convolutions and what lies between them in blocked layout. */
tn_status tn_pass_layout(tn_ir *ir, const tn_pass_options *options, tn_error *err);

#endif
