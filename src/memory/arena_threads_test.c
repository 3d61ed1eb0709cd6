/* Several threads on one tree: leases dropped elsewhere while runs go on, trims and reclaims that
 * meet busy arenas, nodes that die from another thread. Meant for the thread sanitizer too. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "memory/arena_fixture.h"

#define DROPPERS 8
#define QUEUE 512
#define RUNS 20000

/* A box per lease: the run puts one in, some dropper takes it out. */
typedef struct mailbox {
    _Atomic(tn_io_lease *) boxes[QUEUE];
    _Atomic bool is_over;
    _Atomic uint64_t dropped;
    _Atomic uint32_t wrong;
} mailbox;

static void drop(mailbox *mail, tn_io_lease *lease) {
    const unsigned char *const bytes = tn_io_lease_data(lease);
    const size_t size_bytes = tn_io_lease_size_bytes(lease);
    if (bytes[0] != bytes[size_bytes - 1]) atomic_fetch_add(&mail->wrong, 1);
    tn_io_lease_release(lease);
    atomic_fetch_add(&mail->dropped, 1);
}

static void *drop_leases(void *argument) {
    mailbox *const mail = argument;
    for (;;) {
        const bool is_over = atomic_load(&mail->is_over);
        bool found = false;
        for (int i = 0; i < QUEUE; i++) {
            tn_io_lease *const lease = atomic_exchange(&mail->boxes[i], NULL);
            if (lease == NULL) continue;
            found = true;
            drop(mail, lease);
        }
        if (is_over && !found) return NULL;
    }
}

static void scenario_72_eight_threads_drop_outputs_while_runs_go_on(void **state) {
    (void)state;
    arena_fixture fixture;
    const tn_arena_options options = {.is_adaptive = true};
    mailbox *const mail = calloc(1, sizeof *mail);
    pthread_t threads[DROPPERS];
    fixture_init_with(&fixture, true, NULL, &options);
    for (int i = 0; i < DROPPERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, drop_leases, mail), 0);
    }

    for (uint32_t run = 0; run < RUNS; run++) {
        ASSERT_OK(tn_arena_begin_run(fixture.arena, NULL));
        const size_t size_bytes = 100 + run % 7 * 1000;
        tn_allocation_handle handle = take(&fixture, size_bytes);
        ((unsigned char *)handle.data)[0] = (unsigned char)run;
        ((unsigned char *)handle.data)[size_bytes - 1] = (unsigned char)run;
        tn_io_lease *lease = NULL;
        ASSERT_OK(tn_io_arena_export(fixture.io, &handle, &lease, NULL));
        tn_io_lease *const old = atomic_exchange(&mail->boxes[run % QUEUE], lease);
        if (old != NULL) drop(mail, old);
        tn_arena_end_run(fixture.arena);
        if (run % 1000 == 0) (void)tn_io_arena_trim(fixture.io, TN_TRIM_HARD);
    }
    atomic_store(&mail->is_over, true);
    for (int i = 0; i < DROPPERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(atomic_load(&mail->wrong), 0);
    assert_int_equal(atomic_load(&mail->dropped), RUNS);
    const tn_arena_stats stats = stats_of(fixture.arena);
    assert_int_equal(stats.leased_count, 0);
    assert_int_equal(stats.hits + stats.misses, RUNS);
    assert_int_equal(stats.sys_allocs - stats.sys_frees, stats.retained_count);
    free(mail);
    fixture_deinit(&fixture);
}

typedef struct finalizer {
    arena_fixture *fixture;
    tn_io_lease *held[64];
    uint32_t seed;
} finalizer;

/* Allocates and, from inside what a finalizer would be, drops leases of the same arena. */
static void *run_with_finalizers(void *argument) {
    finalizer *const self = argument;
    for (int i = 0; i < 5000; i++) {
        tn_allocation_handle handle;
        ASSERT_OK(tn_io_arena_allocate(self->fixture->io, 1000 + self->seed, &handle, NULL));
        const int slot = i % 64;
        tn_io_lease_release(self->held[slot]);
        ASSERT_OK(tn_io_arena_export(self->fixture->io, &handle, &self->held[slot], NULL));
        if (i % 100 == 0) (void)tn_allocator_trim(self->fixture->root, TN_TRIM_HARD);
        if (i % 500 == 0) (void)tn_io_arena_set_retention_cap(self->fixture->io, (uint64_t)i * 20);
    }
    for (int i = 0; i < 64; i++) tn_io_lease_release(self->held[i]);
    return NULL;
}

static void scenario_76_leases_dropped_in_the_middle_do_not_deadlock(void **state) {
    (void)state;
    arena_fixture fixture;
    finalizer *const selves = calloc(4, sizeof *selves);
    pthread_t threads[4];
    fixture_init(&fixture, true);
    for (uint32_t i = 0; i < 4; i++) {
        selves[i] = (finalizer){.fixture = &fixture, .seed = i * 300};
        assert_int_equal(pthread_create(&threads[i], NULL, run_with_finalizers, &selves[i]), 0);
    }
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    free(selves);
    fixture_deinit(&fixture);
}

typedef struct trimmer {
    tn_allocator *root;
    _Atomic bool is_over;
} trimmer;

static void *trim_again_and_again(void *argument) {
    trimmer *const self = argument;
    uint32_t round = 0;
    while (!atomic_load(&self->is_over)) {
        (void)tn_allocator_trim(self->root, round % 3 == 0 ? TN_TRIM_SOFT : TN_TRIM_HARD);
        tn_allocator_stats stats = {.struct_size = sizeof stats};
        tn_allocator_get_stats(self->root, &stats);
        round++;
    }
    return NULL;
}

static void trim_from_another_thread_meets_runs_and_single_requests(void **state) {
    (void)state;
    arena_fixture fixture;
    pthread_t thread;
    fixture_init(&fixture, false);
    trimmer other = {.root = fixture.root};
    assert_int_equal(pthread_create(&thread, NULL, trim_again_and_again, &other), 0);

    for (int run = 0; run < 3000; run++) {
        void *base = NULL;
        const bool is_run = run % 2 == 0;
        if (is_run) {
            ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, NULL));
            ASSERT_OK(tn_execution_arena_reserve_slab(fixture.execution, 100 * KIB, &base, NULL));
            memset(base, run, 100 * KIB);
        }
        for (int i = 0; i < 10; i++) {
            tn_allocation_handle handle = take(&fixture, (size_t)1 << (i + 6));
            memset(handle.data, 1, handle.size_bytes);
            give(&handle);
        }
        if (is_run) {
            assert_int_equal(((unsigned char *)base)[100 * KIB - 1], (unsigned char)run);
            tn_execution_arena_end_run(fixture.execution);
        }
    }

    atomic_store(&other.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    fixture_deinit(&fixture);
}

static void *trim_once(void *argument) {
    arena_fixture *const fixture = argument;
    const size_t given = tn_execution_arena_trim(fixture->execution, TN_TRIM_HARD);
    return (void *)(uintptr_t)given;
}

static size_t trim_elsewhere(arena_fixture *fixture) {
    pthread_t thread;
    void *given = NULL;
    assert_int_equal(pthread_create(&thread, NULL, trim_once, fixture), 0);
    assert_int_equal(pthread_join(thread, &given), 0);
    return (size_t)(uintptr_t)given;
}

static void trim_of_a_busy_arena_happens_at_the_end_of_its_run(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    warm(&fixture, MIB);
    ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, NULL));

    assert_int_equal(trim_elsewhere(&fixture), 0);
    assert_int_equal(stats_of(fixture.arena).retained_bytes, MIB);
    warm(&fixture, MIB);
    tn_execution_arena_end_run(fixture.execution);

    assert_int_equal(stats_of(fixture.arena).retained_bytes, 0);
    warm(&fixture, MIB);
    assert_int_equal(trim_elsewhere(&fixture), MIB);
    fixture_deinit(&fixture);
}

typedef struct competitor {
    tn_allocator *root;
    uint32_t wrong; /* neither granted nor refused by the limit */
} competitor;

/* Arenas of several threads under one tight limit: each miss may reclaim from the others. A refusal
 * is right while others have their blocks live; everybody gets through in the end. */
static void *compete(void *argument) {
    competitor *const self = argument;
    tn_execution_arena *arena = NULL;
    ASSERT_OK(tn_execution_arena_create(self->root, NULL, &arena, NULL));
    for (uint32_t granted = 0; granted < 1000;) {
        tn_allocation_handle handle;
        const tn_status status =
            tn_execution_arena_allocate(arena, 64 * KIB + granted % 5 * 40 * KIB, &handle, NULL);
        if (status == TN_OK) {
            memset(handle.data, 1, 64 * KIB);
            give(&handle);
            granted++;
        } else {
            self->wrong += status != TN_LIMIT;
            (void)sched_yield();
        }
    }
    tn_execution_arena_destroy(arena);
    return NULL;
}

static void arenas_under_one_limit_reclaim_from_each_other(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    const tn_allocator_options options = {.limit_bytes = 600 * KIB};
    competitor selves[4];
    pthread_t threads[4];
    ASSERT_OK(tn_allocator_create_root(&options, &root, NULL));
    for (int i = 0; i < 4; i++) {
        selves[i] = (competitor){.root = root};
        assert_int_equal(pthread_create(&threads[i], NULL, compete, &selves[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(selves[i].wrong, 0);
    }

    tn_allocator_stats stats = {.struct_size = sizeof stats};
    tn_allocator_get_stats(root, &stats);
    assert_true(stats.peak_bytes <= 600 * KIB);
    assert_int_equal(stats.charged_bytes, 0);
    ASSERT_OK(tn_allocator_verify(root, NULL));
    tn_allocator_release(root);
}

static void *drop_one(void *argument) {
    tn_io_lease_release(argument);
    return NULL;
}

static void last_leases_dropped_at_once_end_the_tree(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        arena_fixture fixture;
        pthread_t threads[4];
        fixture_init(&fixture, true);
        tn_io_lease *leases[4];
        for (int i = 0; i < 4; i++) {
            tn_allocation_handle handle = take(&fixture, 100 * KIB);
            ASSERT_OK(tn_io_arena_export(fixture.io, &handle, &leases[i], NULL));
        }
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, drop_one, leases[i]), 0);
        }
        tn_io_arena_release(fixture.io);
        tn_allocator_release(fixture.node);
        tn_allocator_release(fixture.root);
        for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void *use_buffers(void *argument) {
    tn_allocator *const parent = argument;
    for (uint32_t i = 0; i < 3000; i++) {
        tn_allocator *child = NULL;
        tn_buffer buffer;
        const tn_allocator_options options = {.name = "short", .reservation_bytes = i % 100};
        if (i % 10 == 0) {
            ASSERT_OK(tn_allocator_create_child(parent, &options, &child, NULL));
        }
        ASSERT_OK(tn_buffer_create(i % 10 == 0 ? child : parent, 1 + i % 5000, 0, &buffer, NULL));
        tn_allocator_release(child);
        ASSERT_OK(tn_buffer_release(&buffer));
    }
    return NULL;
}

static bool visit_any(void *ctx, const tn_allocator *allocator, int depth) {
    (void)depth;
    *(uint64_t *)ctx += tn_allocator_charged(allocator);
    return true;
}

static void buffers_and_children_come_and_go_while_the_tree_is_walked(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    pthread_t threads[4];
    uint64_t seen = 0;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_buffers, root), 0);
    }
    for (int i = 0; i < 300; i++) tn_allocator_visit(root, visit_any, &seen);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(tn_allocator_charged(root), 0);
    ASSERT_OK(tn_allocator_verify(root, NULL));
    ASSERT_OK(tn_allocator_close(root, NULL));
    tn_allocator_release(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(scenario_72_eight_threads_drop_outputs_while_runs_go_on),
        T(scenario_76_leases_dropped_in_the_middle_do_not_deadlock),
        T(trim_from_another_thread_meets_runs_and_single_requests),
        T(trim_of_a_busy_arena_happens_at_the_end_of_its_run),
        T(arenas_under_one_limit_reclaim_from_each_other),
        T(last_leases_dropped_at_once_end_the_tree),
        T(buffers_and_children_come_and_go_while_the_tree_is_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
