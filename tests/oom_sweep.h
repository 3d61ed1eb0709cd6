/* Makes the k-th fault point of a scenario fail, for k = 1, 2, ... until the scenario gets through
 * without meeting it. After every round the tree must be as it was before: that is checked here,
 * the scenario checks its own state. */
#ifndef TN_TESTS_OOM_SWEEP_H
#define TN_TESTS_OOM_SWEEP_H

#include <stdatomic.h>
#include <stdbool.h>

#include <tenure/memory.h>

#include "harness.h"

typedef struct tn_oom_sweep {
    _Atomic long seen;
    long fail_at; /* 0: never */
    bool stays;   /* every point from fail_at on fails, not this one alone */
} tn_oom_sweep;

static inline bool tn_oom_sweep_should_fail(void *ctx, tn_fault_point point) {
    tn_oom_sweep *const sweep = ctx;
    (void)point;
    if (sweep->fail_at == 0) return false;
    const long seen = atomic_fetch_add(&sweep->seen, 1) + 1;
    return sweep->stays ? seen >= sweep->fail_at : seen == sweep->fail_at;
}

/* Runs under `root`, allocates what it likes, gives all of it back whether or not it failed, and
 * returns the first status that was not TN_OK. */
typedef tn_status (*tn_oom_scenario)(tn_allocator *root, void *ctx);

/* Returns how many rounds failed, so that a test can tell that the sweep met something. */
static inline long tn_oom_sweep_run(tn_oom_scenario scenario, void *ctx, bool stays) {
    long failed_rounds = 0;
    for (long fail_at = 1;; fail_at++) {
        tn_oom_sweep sweep = {.fail_at = 0, .stays = stays};
        const tn_fault_injector fault = {.ctx = &sweep, .should_fail = tn_oom_sweep_should_fail};
        const tn_allocator_options options = {.fault = &fault};
        tn_allocator *root = NULL;
        ASSERT_OK(tn_allocator_create_root(&options, &root, NULL));

        sweep.fail_at = fail_at;
        const tn_status status = scenario(root, ctx);
        const bool is_over = atomic_load(&sweep.seen) < fail_at;
        sweep.fail_at = 0;

        tn_error err;
        if (tn_allocator_verify(root, &err) != TN_OK) fail_msg("%s", err.message);
        if (tn_allocator_charged(root) != 0) fail_msg("round %ld leaks", fail_at);
        ASSERT_OK(tn_allocator_close(root, &err));
        tn_allocator_release(root);
        if (status != TN_OK && status != TN_OUT_OF_MEMORY) {
            fail_msg("round %ld: %s", fail_at, tn_status_name(status));
        }
        if (is_over) {
            ASSERT_OK(status);
            return failed_rounds;
        }
        failed_rounds += status != TN_OK;
    }
}

#endif
