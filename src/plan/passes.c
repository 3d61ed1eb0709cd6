/* The order of passes: what makes nodes vanish first, what decides layout last. */
#include "plan/passes.h"

tn_status tn_ir_run_passes(tn_ir *ir, const tn_pass_options *options, tn_error *err) {
    TN_TRY(tn_pass_drop_identity(ir, options, err));
    TN_TRY(tn_pass_fold_affine(ir, options, err));
    TN_TRY(tn_pass_fuse_epilogue(ir, options, err));
    TN_TRY(tn_pass_fuse_elementwise(ir, options, err));
    tn_ir_remove_dead(ir);
    TN_TRY(tn_pass_layout(ir, options, err));
    tn_ir_remove_dead(ir);
    return TN_OK;
}
