/* Every item exactly once, whoever calls; and no CPU when nothing runs. */
#include "base/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define ITEMS 1000
#define WORKERS 4

typedef struct counted_alloc {
    long alloc_count;
    long free_count;
    long fail_alloc_at;
    long threads_allowed;
} counted_alloc;

static void *alloc_counted(void *ctx, size_t size_bytes) {
    counted_alloc *const counts = ctx;
    counts->alloc_count++;
    return counts->alloc_count == counts->fail_alloc_at ? NULL : malloc(size_bytes);
}

static void free_counted(void *ctx, void *data) {
    counted_alloc *const counts = ctx;
    counts->free_count++;
    free(data);
}

static bool may_start(void *ctx) {
    counted_alloc *const counts = ctx;
    return counts->threads_allowed-- > 0;
}

static tn_base_alloc base_alloc(counted_alloc *counts) {
    return (tn_base_alloc){.ctx = counts, .alloc = alloc_counted, .free = free_counted};
}

static tn_thread_pool *make_pool(counted_alloc *counts, uint32_t worker_count) {
    const tn_base_alloc alloc = base_alloc(counts);
    tn_thread_pool *pool = NULL;
    ASSERT_OK(tn_thread_pool_create(&alloc, worker_count, &pool, NULL));
    return pool;
}

typedef struct tally {
    uint32_t seen[ITEMS]; /* plain: two threads on one item are a race that tsan reports */
    _Atomic uint32_t bad_workers;
    uint32_t worker_count;
} tally;

static void count_item(void *ctx, uint32_t item, uint32_t worker) {
    tally *const counts = ctx;
    counts->seen[item]++;
    if (worker >= counts->worker_count) atomic_fetch_add(&counts->bad_workers, 1);
}

static void run_calls_every_item_once(void **state) {
    (void)state;
    counted_alloc memory = {0};
    tn_thread_pool *const pool = make_pool(&memory, WORKERS);
    tally counts = {.worker_count = tn_thread_pool_worker_count(pool)};
    assert_int_equal(counts.worker_count, WORKERS);

    tn_thread_pool_begin_run(pool);
    for (uint32_t round = 1; round <= 300; round++) {
        const uint32_t item_count = round % 7 == 0 ? 3 : ITEMS;
        memset(counts.seen, 0, sizeof counts.seen);
        tn_thread_pool_run(pool, count_item, &counts, item_count);
        for (uint32_t item = 0; item < ITEMS; item++) {
            assert_int_equal(counts.seen[item], item < item_count ? 1 : 0);
        }
        if (round == 150) { /* the rest with parked workers between the calls */
            tn_thread_pool_end_run(pool);
        }
    }

    assert_int_equal(atomic_load(&counts.bad_workers), 0);
    tn_thread_pool_destroy(pool);
    assert_int_equal(memory.alloc_count, memory.free_count);
}

static void run_without_a_pool_or_items_works(void **state) {
    (void)state;
    counted_alloc memory = {0};
    tn_thread_pool *const pool = make_pool(&memory, 1);
    tally counts = {.worker_count = 1};

    tn_thread_pool_run(NULL, count_item, &counts, 5);
    tn_thread_pool_run(pool, count_item, &counts, 5);
    tn_thread_pool_run(pool, count_item, &counts, 0);
    tn_thread_pool_begin_run(NULL);
    tn_thread_pool_end_run(NULL);

    assert_int_equal(counts.seen[4], 2);
    assert_int_equal(counts.seen[5], 0);
    assert_int_equal(tn_thread_pool_worker_count(NULL), 1);
    tn_thread_pool_destroy(pool);
    tn_thread_pool_destroy(NULL);
}

typedef struct nested {
    tn_thread_pool *pool;
    _Atomic uint32_t inner_items;
} nested;

static void count_inner(void *ctx, uint32_t item, uint32_t worker) {
    nested *const outer = ctx;
    (void)item;
    assert_int_equal(worker, 0); /* alone: the team is taken */
    atomic_fetch_add(&outer->inner_items, 1);
}

static void run_inner(void *ctx, uint32_t item, uint32_t worker) {
    nested *const outer = ctx;
    (void)item;
    (void)worker;
    tn_thread_pool_run(outer->pool, count_inner, outer, 10);
}

static void run_inside_a_run_works_alone(void **state) {
    (void)state;
    counted_alloc memory = {0};
    nested outer = {.pool = make_pool(&memory, WORKERS)};

    tn_thread_pool_run(outer.pool, run_inner, &outer, 20);

    assert_int_equal(atomic_load(&outer.inner_items), 200);
    tn_thread_pool_destroy(outer.pool);
}

static void *call_often(void *argument) {
    tn_thread_pool *const pool = argument;
    tally *const counts = calloc(1, sizeof *counts);
    counts->worker_count = WORKERS;
    for (uint32_t round = 1; round <= 200; round++) {
        tn_thread_pool_begin_run(pool);
        tn_thread_pool_run(pool, count_item, counts, ITEMS);
        tn_thread_pool_end_run(pool);
    }
    uintptr_t wrong = atomic_load(&counts->bad_workers);
    for (uint32_t item = 0; item < ITEMS; item++) wrong += counts->seen[item] != 200;
    free(counts);
    return (void *)wrong;
}

static void concurrent_callers_each_get_all_their_items(void **state) {
    (void)state;
    counted_alloc memory = {0};
    tn_thread_pool *const pool = make_pool(&memory, WORKERS);
    pthread_t callers[4];

    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, pool), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(callers[i], &wrong), 0);
        assert_null(wrong);
    }

    tn_thread_pool_destroy(pool);
}

static void idle_pool_uses_no_cpu(void **state) {
    (void)state;
    counted_alloc memory = {0};
    tn_thread_pool *const pool = make_pool(&memory, WORKERS);
    tally *const counts = calloc(1, sizeof *counts);
    counts->worker_count = WORKERS;
    tn_thread_pool_begin_run(pool);
    tn_thread_pool_run(pool, count_item, counts, ITEMS);
    tn_thread_pool_end_run(pool);
    struct timespec before;
    struct timespec after;
    const struct timespec pause = {.tv_nsec = 100000000};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    (void)nanosleep(&pause, NULL);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);

    const long used_ns =
        (after.tv_sec - before.tv_sec) * 1000000000L + (after.tv_nsec - before.tv_nsec);
    assert_true(used_ns < 20000000L);
    free(counts);
    tn_thread_pool_destroy(pool);
}

static void create_that_cannot_start_a_thread_leaves_nothing(void **state) {
    (void)state;
    for (long allowed = 0; allowed < WORKERS - 1; allowed++) {
        counted_alloc memory = {.threads_allowed = allowed};
        tn_base_alloc alloc = base_alloc(&memory);
        alloc.may_start_thread = may_start;
        tn_thread_pool *pool = NULL;

        ASSERT_STATUS(TN_OUT_OF_MEMORY, tn_thread_pool_create(&alloc, WORKERS, &pool, NULL));

        assert_null(pool);
        assert_int_equal(memory.alloc_count, memory.free_count);
    }
    counted_alloc memory = {.fail_alloc_at = 1};
    const tn_base_alloc alloc = base_alloc(&memory);
    tn_thread_pool *pool = NULL;
    ASSERT_STATUS(TN_OUT_OF_MEMORY, tn_thread_pool_create(&alloc, WORKERS, &pool, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_thread_pool_create(&alloc, 100000, &pool, NULL));
}

static void forked_child_works_alone(void **state) {
    (void)state;
    counted_alloc memory = {0};
    tn_thread_pool *const pool = make_pool(&memory, WORKERS);

    const pid_t child = fork();
    if (child == 0) {
        tally *const counts = calloc(1, sizeof *counts);
        counts->worker_count = WORKERS;
        tn_thread_pool_run(pool, count_item, counts, ITEMS);
        tn_thread_pool_destroy(pool);
        _exit(counts->seen[ITEMS - 1] == 1 ? 0 : 1);
    }
    int exit_status = -1;
    assert_int_equal(waitpid(child, &exit_status, 0), child);

    assert_true(WIFEXITED(exit_status));
    assert_int_equal(WEXITSTATUS(exit_status), 0);
    tn_thread_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(run_calls_every_item_once),    T(run_without_a_pool_or_items_works),
        T(run_inside_a_run_works_alone), T(concurrent_callers_each_get_all_their_items),
        T(idle_pool_uses_no_cpu),        T(create_that_cannot_start_a_thread_leaves_nothing),
        T(forked_child_works_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
