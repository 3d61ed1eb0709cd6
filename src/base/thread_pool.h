/* A team of threads that work through numbered items together.
 *
 * Between runs every worker is parked and uses no CPU. Within a run (tn_thread_pool_begin_run to
 * tn_thread_pool_end_run, calls nest) workers spin for a bounded time before they park, so that the
 * next loop starts in a fraction of a microsecond.
 *
 * The thread that calls tn_thread_pool_run takes part as worker 0. When several threads call at
 * once, or a function calls back into its own pool, one of them gets the team and the others work
 * through their items alone, each as worker 0 of its own call: scratch memory per worker therefore
 * belongs to the call, never to the pool.
 *
 * A child after fork has no workers: there tn_thread_pool_run works alone and destroy only frees.
 */
#ifndef TN_BASE_THREAD_POOL_H
#define TN_BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <tenure/status.h>

typedef struct tn_thread_pool tn_thread_pool;

/* Where the pool's own memory comes from. */
typedef struct tn_base_alloc {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size_bytes);
    void (*free)(void *ctx, void *data);
    bool (*may_start_thread)(void *ctx); /* asked before each thread; NULL: always */
} tn_base_alloc;

/* Called once for every item, in any order, by worker 0 .. worker count - 1. */
typedef void (*tn_thread_pool_fn)(void *ctx, uint32_t item, uint32_t worker);

#define TN_THREAD_POOL_MAX_WORKERS 1024

/* Starts `worker_count` - 1 threads; 0 means one worker per CPU that this process may use.
 * Ownership: *out is new; `alloc` is copied, what it points to must outlive the pool.
 * Errors:    TN_INVALID_ARGUMENT (too many workers); TN_OUT_OF_MEMORY, also when the system starts
 *            no more threads. */
TN_MUST_USE tn_status tn_thread_pool_create(const tn_base_alloc *alloc, uint32_t worker_count,
                                            tn_thread_pool **out, tn_error *err);
/* Ends the threads. Accepts NULL. No call may be in progress. */
void tn_thread_pool_destroy(tn_thread_pool *pool);

/* The calling thread included. */
uint32_t tn_thread_pool_worker_count(const tn_thread_pool *pool);

/* Calls `fn` for items 0 .. item_count - 1 and returns when all are done; what the workers wrote is
 * visible then. `pool` may be NULL: the caller works alone. Threads: any, see above. */
void tn_thread_pool_run(tn_thread_pool *pool, tn_thread_pool_fn fn, void *ctx, uint32_t item_count);

/* Brackets a run. Threads: any; calls nest and overlap. NULL is accepted. */
void tn_thread_pool_begin_run(tn_thread_pool *pool);
void tn_thread_pool_end_run(tn_thread_pool *pool);

#endif
