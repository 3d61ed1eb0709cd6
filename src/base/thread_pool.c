/* One job at a time is published in `gate`, a word that says in one atomic value which job it is,
 * whether it may still be joined, and how many workers are inside. A worker joins by adding itself
 * while the gate is open; the caller closes the gate when the items are used up and waits only for
 * those inside. A worker that wakes late finds the gate closed and goes back to sleep, so nobody
 * waits for a thread that has not even started. Items are handed out in chunks by one counter.
 *
 * Parking uses a mutex and a condition variable: that path is slow anyway, and the publisher takes
 * it only when somebody sleeps. */
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked_size.h"
#include "base/error.h"

#define WORKER_SPIN_NS 50000
#define SPINS_PER_CLOCK 64
#define CALLER_SPINS 2000
#define CHUNKS_PER_WORKER 4

/* gate: bits 0..15 workers inside, bit 16 open, bits 17..31 number of the job */
#define GATE_INSIDE_MASK 0xFFFFu
#define GATE_OPEN 0x10000u
#define GATE_JOB_UNIT 0x20000u
#define GATE_JOB_MASK 0xFFFE0000u

typedef struct pool_thread {
    pthread_t thread;
    tn_thread_pool *pool;
    uint32_t worker;
} pool_thread;

struct tn_thread_pool {
    /* the job; written by the owner of `is_taken` while the gate is closed and nobody is inside */
    tn_thread_pool_fn fn;
    void *ctx;
    uint32_t item_count;
    uint32_t chunk_items;
    _Alignas(64) _Atomic uint64_t next_item;
    _Alignas(64) _Atomic uint32_t gate;
    _Alignas(64) atomic_flag is_taken; /* some caller has the team */
    _Atomic uint32_t run_depth;
    _Atomic uint32_t sleeper_count;
    _Atomic bool is_stopping;
    _Atomic bool caller_sleeps;
    pthread_mutex_t mutex; /* for sleeping only */
    pthread_cond_t wake_workers;
    pthread_cond_t wake_caller;
    tn_base_alloc alloc;
    void *memory; /* what `alloc` gave; the pool lies in it, aligned to a line */
    pid_t pid;
    uint32_t thread_count; /* started */
    uint32_t worker_count;
    pool_thread threads[]; /* [worker_count - 1] */
};

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void work(tn_thread_pool *pool, uint32_t worker) {
    const tn_thread_pool_fn fn = pool->fn;
    void *const ctx = pool->ctx;
    const uint64_t item_count = pool->item_count;
    const uint32_t chunk_items = pool->chunk_items;
    for (;;) {
        /* relaxed: the counter only deals items out; results are ordered by the gate */
        uint64_t item =
            atomic_fetch_add_explicit(&pool->next_item, chunk_items, memory_order_relaxed);
        if (item >= item_count) return;
        const uint64_t end = item + chunk_items < item_count ? item + chunk_items : item_count;
        for (; item < end; item++) fn(ctx, (uint32_t)item, worker);
    }
}

static bool gate_is_news(uint32_t gate, uint32_t last_job) {
    return (gate & GATE_OPEN) != 0 && (gate & GATE_JOB_MASK) != last_job;
}

/* Sleeps until there is a job or the pool ends. */
static void park(tn_thread_pool *pool, uint32_t last_job) {
    (void)pthread_mutex_lock(&pool->mutex);
    /* seq_cst, here and in wake_sleepers: either the publisher sees the sleeper or the sleeper sees
     * the gate */
    atomic_fetch_add(&pool->sleeper_count, 1);
    while (!gate_is_news(atomic_load(&pool->gate), last_job) && !atomic_load(&pool->is_stopping)) {
        (void)pthread_cond_wait(&pool->wake_workers, &pool->mutex);
    }
    atomic_fetch_sub(&pool->sleeper_count, 1);
    (void)pthread_mutex_unlock(&pool->mutex);
}

/* Spins while a run is going on, at most WORKER_SPIN_NS, then parks. */
static void wait_for_job(tn_thread_pool *pool, uint32_t last_job) {
    uint64_t deadline_ns = 0;
    for (uint32_t spin = 0;; spin++) {
        /* acquire in join is what orders; here a glance is enough */
        const uint32_t gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
        if (gate_is_news(gate, last_job)) return;
        if (atomic_load_explicit(&pool->run_depth, memory_order_relaxed) == 0) break;
        if (spin % SPINS_PER_CLOCK == 0) {
            const uint64_t time_ns = now_ns();
            if (deadline_ns == 0) deadline_ns = time_ns + WORKER_SPIN_NS;
            if (time_ns >= deadline_ns) break;
        }
        relax();
    }
    park(pool, last_job);
}

/* Enters the open job; false when it closed first. */
static bool join(tn_thread_pool *pool, uint32_t *inout_last_job) {
    uint32_t gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
    while (gate_is_news(gate, *inout_last_job)) {
        /* acquire: the job's fields are read next */
        if (atomic_compare_exchange_weak_explicit(&pool->gate, &gate, gate + 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
            *inout_last_job = gate & GATE_JOB_MASK;
            return true;
        }
    }
    return false;
}

static void leave(tn_thread_pool *pool) {
    /* seq_cst: releases our writes to the caller, and orders with caller_sleeps */
    const uint32_t before = atomic_fetch_sub(&pool->gate, 1);
    const bool is_last_out = (before & GATE_INSIDE_MASK) == 1 && (before & GATE_OPEN) == 0;
    if (!is_last_out || !atomic_load(&pool->caller_sleeps)) return;
    (void)pthread_mutex_lock(&pool->mutex);
    (void)pthread_cond_signal(&pool->wake_caller);
    (void)pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument) {
    pool_thread *const self = argument;
    tn_thread_pool *const pool = self->pool;
    uint32_t last_job = atomic_load(&pool->gate) & GATE_JOB_MASK;
    while (!atomic_load_explicit(&pool->is_stopping, memory_order_acquire)) {
        if (join(pool, &last_job)) {
            work(pool, self->worker);
            leave(pool);
        } else {
            wait_for_job(pool, last_job);
        }
    }
    return NULL;
}

static void wake_sleepers(tn_thread_pool *pool) {
    if (atomic_load(&pool->sleeper_count) == 0) return;
    (void)pthread_mutex_lock(&pool->mutex);
    (void)pthread_cond_broadcast(&pool->wake_workers);
    (void)pthread_mutex_unlock(&pool->mutex);
}

static bool workers_are_out(tn_thread_pool *pool) {
    return (atomic_load(&pool->gate) & GATE_INSIDE_MASK) == 0;
}

static void wait_for_workers(tn_thread_pool *pool) {
    for (int spin = 0; spin < CALLER_SPINS; spin++) {
        if (workers_are_out(pool)) return;
        relax();
    }
    (void)pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->caller_sleeps, true);
    while (!workers_are_out(pool)) (void)pthread_cond_wait(&pool->wake_caller, &pool->mutex);
    atomic_store(&pool->caller_sleeps, false);
    (void)pthread_mutex_unlock(&pool->mutex);
}

static void run_alone(tn_thread_pool_fn fn, void *ctx, uint32_t item_count) {
    for (uint32_t item = 0; item < item_count; item++) fn(ctx, item, 0);
}

void tn_thread_pool_run(tn_thread_pool *pool, tn_thread_pool_fn fn, void *ctx,
                        uint32_t item_count) {
    if (pool == NULL || pool->worker_count == 1 || item_count <= 1 ||
        atomic_flag_test_and_set_explicit(&pool->is_taken, memory_order_acquire)) {
        run_alone(fn, ctx, item_count);
        return;
    }
    pool->fn = fn;
    pool->ctx = ctx;
    pool->item_count = item_count;
    const uint32_t chunk_items = item_count / (pool->worker_count * CHUNKS_PER_WORKER);
    pool->chunk_items = chunk_items > 0 ? chunk_items : 1;
    atomic_store_explicit(&pool->next_item, 0, memory_order_relaxed);
    /* seq_cst: publishes the job, and orders with sleeper_count */
    const uint32_t job = (atomic_load(&pool->gate) + GATE_JOB_UNIT) & GATE_JOB_MASK;
    atomic_store(&pool->gate, job | GATE_OPEN);
    wake_sleepers(pool);

    work(pool, 0);
    atomic_fetch_and(&pool->gate, ~GATE_OPEN);
    wait_for_workers(pool);
    atomic_flag_clear_explicit(&pool->is_taken, memory_order_release);
}

void tn_thread_pool_begin_run(tn_thread_pool *pool) {
    /* relaxed: a hint to spinners */
    if (pool != NULL) atomic_fetch_add_explicit(&pool->run_depth, 1, memory_order_relaxed);
}

void tn_thread_pool_end_run(tn_thread_pool *pool) {
    if (pool != NULL) atomic_fetch_sub_explicit(&pool->run_depth, 1, memory_order_relaxed);
}

uint32_t tn_thread_pool_worker_count(const tn_thread_pool *pool) {
    return pool == NULL ? 1 : pool->worker_count;
}

static uint32_t usable_cpu_count(void) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
    const int count = CPU_COUNT(&cpus);
    return count < 1 ? 1 : (uint32_t)count;
}

static bool start_threads(tn_thread_pool *pool) {
    while (pool->thread_count + 1 < pool->worker_count) {
        pool_thread *const next = &pool->threads[pool->thread_count];
        next->pool = pool;
        next->worker = pool->thread_count + 1;
        const tn_base_alloc *const alloc = &pool->alloc;
        if (alloc->may_start_thread != NULL && !alloc->may_start_thread(alloc->ctx)) return false;
        if (pthread_create(&next->thread, NULL, worker_main, next) != 0) return false;
        pool->thread_count++;
    }
    return true;
}

tn_status tn_thread_pool_create(const tn_base_alloc *alloc, uint32_t worker_count,
                                tn_thread_pool **out, tn_error *err) {
    *out = NULL;
    if (worker_count == 0) worker_count = usable_cpu_count();
    TN_REQUIRE(worker_count <= TN_THREAD_POOL_MAX_WORKERS, err, TN_INVALID_ARGUMENT,
               "%u workers, at most %d are possible", worker_count, TN_THREAD_POOL_MAX_WORKERS);
    const size_t size_bytes = _Alignof(tn_thread_pool) + sizeof(tn_thread_pool) +
                              (size_t)(worker_count - 1) * sizeof(pool_thread);
    void *const memory = alloc->alloc(alloc->ctx, size_bytes);
    TN_REQUIRE(memory != NULL, err, TN_OUT_OF_MEMORY, "a pool of %u workers needs %zu bytes",
               worker_count, size_bytes);
    memset(memory, 0, size_bytes);
    tn_thread_pool *const pool =
        (tn_thread_pool *)tn_align_up((uintptr_t)memory, _Alignof(tn_thread_pool));
    pool->memory = memory;
    pool->alloc = *alloc;
    pool->pid = getpid();
    pool->worker_count = worker_count;
    atomic_flag_clear(&pool->is_taken);
    (void)pthread_mutex_init(&pool->mutex, NULL);
    (void)pthread_cond_init(&pool->wake_workers, NULL);
    (void)pthread_cond_init(&pool->wake_caller, NULL);
    if (!start_threads(pool)) {
        const uint32_t started = pool->thread_count;
        tn_thread_pool_destroy(pool);
        return tn_error_set(err, TN_OUT_OF_MEMORY, "only %u of %u threads could be started",
                            started, worker_count - 1);
    }
    *out = pool;
    return TN_OK;
}

void tn_thread_pool_destroy(tn_thread_pool *pool) {
    if (pool == NULL) return;
    if (pool->pid == getpid()) { /* after fork there is nobody to wait for */
        (void)pthread_mutex_lock(&pool->mutex);
        atomic_store(&pool->is_stopping, true);
        (void)pthread_cond_broadcast(&pool->wake_workers);
        (void)pthread_mutex_unlock(&pool->mutex);
        for (uint32_t i = 0; i < pool->thread_count; i++) {
            (void)pthread_join(pool->threads[i].thread, NULL);
        }
        (void)pthread_cond_destroy(&pool->wake_caller);
        (void)pthread_cond_destroy(&pool->wake_workers);
        (void)pthread_mutex_destroy(&pool->mutex);
    }
    const tn_base_alloc alloc = pool->alloc;
    alloc.free(alloc.ctx, pool->memory);
}
