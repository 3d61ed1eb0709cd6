/* Sessions from many threads at once: create, run, plan, trim, report, close and release in any
 * order. What a call may answer is stated; what it answers with is checked; nothing stays. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "session_fixture.h"

#define THREADS 4
#define ROUNDS 60
#define LEN 700

typedef struct shared_session {
    session_fixture f;
    atomic_uint wrong;  /* results or statuses that must not be */
    atomic_uint ran;    /* runs that succeeded */
    atomic_bool closed; /* set before the close begins */
} shared_session;

static void build_chain(onnx_model *m) {
    static const int64_t dims[] = {-1};
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 1, dims);
    onnx_node(m, "Neg", "x", "a");
    onnx_node(m, "Abs", "a", "b");
    onnx_node(m, "Add", "a b", "y");
    onnx_output(m, "y", TN_DTYPE_F32, 1, dims);
}

static void note_if(shared_session *s, bool is_wrong) {
    if (is_wrong) atomic_fetch_add(&s->wrong, 1);
}

/* y = |x| - x: 0 for what is positive, 2 for -1. */
static tn_status run_one(shared_session *s, size_t len) {
    float data[LEN];
    const tn_shape shape = {.rank = 1, .dims = {(int64_t)len}};
    tn_value *x = NULL;
    tn_value *y = NULL;
    for (size_t i = 0; i < len; i++) data[i] = i % 2 == 0 ? -1.0F : (float)i;
    if (tn_tensor_create_borrowed(tn_environment_allocator(s->f.environment), TN_DTYPE_F32, &shape,
                                  NULL, data, NULL, NULL, &x, NULL) != TN_OK) {
        return TN_INTERNAL;
    }
    const tn_feed feed = {"x", x};
    const tn_status status = tn_session_run(s->f.session, &feed, 1, NULL, 1, &y, NULL);
    note_if(s, (y != NULL) != (status == TN_OK));
    for (size_t i = 0; status == TN_OK && i < len; i++) {
        note_if(s, floats_of(y)[i] != (i % 2 == 0 ? 2.0F : 0.0F));
    }
    tn_tensor_release(y);
    tn_tensor_release(x);
    return status;
}

static void *run_many(void *arg) {
    shared_session *s = arg;
    for (size_t round = 0; round < ROUNDS; round++) {
        const tn_status status = run_one(s, 1 + (round * 37) % LEN);
        note_if(s, status != TN_OK && status != TN_CLOSED);
        note_if(s, status == TN_CLOSED && !atomic_load(&s->closed));
        if (status == TN_OK) atomic_fetch_add(&s->ran, 1);
    }
    return NULL;
}

static void *look_and_trim(void *arg) {
    shared_session *s = arg;
    char text[4096];
    for (size_t round = 0; round < ROUNDS; round++) {
        tn_session_stats stats = {.struct_size = sizeof stats};
        tn_plan_report *plan = NULL;
        const tn_plan_shape shape = {"x", {.rank = 1, .dims = {(int64_t)(round % 50)}}, NULL};
        tn_session_get_stats(s->f.session, &stats);
        (void)tn_session_report(s->f.session, text, sizeof text);
        const tn_status status = tn_session_plan(s->f.session, &shape, 1, &plan, NULL);
        note_if(s, status != TN_OK && status != TN_CLOSED);
        tn_plan_report_destroy(plan);
        (void)tn_session_trim(s->f.session, round % 2 == 0 ? TN_TRIM_HARD : TN_TRIM_SOFT);
    }
    return NULL;
}

static void start(pthread_t *threads, shared_session *s) {
    for (size_t i = 0; i < THREADS; i++) {
        void *(*const work)(void *) = i + 1 < THREADS ? run_many : look_and_trim;
        assert_int_equal(pthread_create(&threads[i], NULL, work, s), 0);
    }
}

static void join(pthread_t *threads) {
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void runs_trims_plans_and_reports_at_once_agree(void **state) {
    (void)state;
    onnx_model m;
    pthread_t threads[THREADS];
    shared_session s = {.wrong = 0};
    build_chain(&m);
    fixture_open(&s.f, &m, NULL);

    start(threads, &s);
    join(threads);

    assert_int_equal(atomic_load(&s.wrong), 0);
    assert_int_equal(atomic_load(&s.ran), (THREADS - 1) * ROUNDS);
    fixture_close(&s.f);
}

static void close_while_others_run_ends_them_with_closed(void **state) {
    (void)state;
    for (size_t round = 0; round < 8; round++) {
        onnx_model m;
        pthread_t threads[THREADS];
        shared_session s = {.wrong = 0};
        build_chain(&m);
        fixture_open(&s.f, &m, NULL);

        start(threads, &s);
        while (round % 2 == 0 && atomic_load(&s.ran) < 3) sched_yield();
        atomic_store(&s.closed, true);
        tn_session_close(s.f.session);
        join(threads);

        assert_int_equal(atomic_load(&s.wrong), 0);
        ASSERT_STATUS(TN_CLOSED, run_one(&s, 5));
        fixture_close(&s.f);
    }
}

typedef struct waiting {
    shared_session s;
    atomic_uint begun;
} waiting;

static void *wait_for_a_context(void *arg) {
    waiting *w = arg;
    atomic_fetch_add(&w->begun, 1);
    for (size_t i = 0; i < 20; i++) {
        const tn_status status = run_one(&w->s, LEN);
        note_if(&w->s, status != TN_OK && status != TN_CLOSED);
    }
    return NULL;
}

/* One context for all, and runs that wait for it when the session closes. */
static void close_wakes_those_who_wait_for_a_context(void **state) {
    (void)state;
    onnx_model m;
    pthread_t threads[THREADS];
    waiting w = {.begun = 0};
    const tn_session_options options = {.struct_size = sizeof options,
                                        .max_concurrent_runs = 1,
                                        .wait_for_memory_ns = UINT64_C(60000000000)};
    build_chain(&m);
    fixture_open(&w.s.f, &m, &options);

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_a_context, &w), 0);
    }
    while (atomic_load(&w.begun) < THREADS) sched_yield();
    tn_session_close(w.s.f.session);
    join(threads);

    assert_int_equal(atomic_load(&w.s.wrong), 0);
    fixture_close(&w.s.f);
}

static void *live_a_session(void *arg) {
    shared_session *s = arg;
    for (size_t round = 0; round < 12; round++) {
        shared_session own = {.wrong = 0};
        own.f = s->f;
        tn_error err = {.code = TN_OK};
        if (tn_session_create(s->f.environment, s->f.model, NULL, &own.f.session, &err) != TN_OK) {
            atomic_fetch_add(&s->wrong, 1);
            continue;
        }
        note_if(s, run_one(&own, 64) != TN_OK || atomic_load(&own.wrong) != 0);
        if (round % 2 == 0) tn_session_close(own.f.session);
        tn_session_release(own.f.session);
    }
    return NULL;
}

static void sessions_of_one_model_come_and_go_on_all_threads(void **state) {
    (void)state;
    onnx_model m;
    pthread_t threads[THREADS];
    shared_session s = {.wrong = 0};
    build_chain(&m);
    fixture_open(&s.f, &m, NULL);

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, live_a_session, &s), 0);
    }
    join(threads);

    assert_int_equal(atomic_load(&s.wrong), 0);
    fixture_close(&s.f);
}

/* The owner lets go of everything first; results, contexts and bindings keep what they need. */
static void release_in_any_order_leaves_nothing(void **state) {
    (void)state;
    for (unsigned order = 0; order < 6; order++) {
        onnx_model m;
        session_fixture f;
        tn_allocator *root = NULL;
        tn_context *context = NULL;
        tn_value *y = NULL;
        float data[3] = {1, -2, 3};
        const int64_t three[] = {3};
        tn_environment *environment = NULL;
        build_chain(&m);
        onnx_end(&m);
        memset(&f, 0, sizeof f);
        ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
        const tn_environment_options options = {
            .struct_size = sizeof options, .parent = root, .thread_count = 1};
        ASSERT_OK(tn_environment_create(&options, &environment, NULL));
        f.environment = environment;
        ASSERT_OK(tn_model_load_bytes(tn_environment_allocator(environment), m.data, m.size_bytes,
                                      NULL, &f.model, NULL));
        ASSERT_OK(tn_session_create(environment, f.model, NULL, &f.session, NULL));
        ASSERT_OK(tn_context_create(f.session, &context, NULL));
        tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 1, three, data);
        ASSERT_OK(tn_context_set(context, "x", x, NULL));
        ASSERT_OK(tn_context_run(context, NULL));
        ASSERT_OK(tn_context_get(context, "y", &y, NULL));
        tn_tensor_release(x);

        tn_environment_release(environment);
        if (order % 2 == 0) tn_session_close(f.session);
        if (order < 3) tn_context_destroy(context);
        tn_session_release(f.session);
        if (order % 3 == 0) tn_model_release(f.model);
        if (order >= 3) tn_context_destroy(context);
        if (order % 3 != 0) tn_model_release(f.model);
        assert_float_equal(floats_of(y)[1], 4.0F, 0.0F);
        tn_tensor_release(y);

        assert_int_equal(tn_allocator_charged(root), 0);
        tn_allocator_release(root);
        onnx_free(&m);
    }
}

typedef struct one_context {
    tn_context *context;
    atomic_uint wrong;
    atomic_uint ran;
} one_context;

static void *run_the_context(void *arg) {
    one_context *c = arg;
    for (size_t i = 0; i < ROUNDS; i++) {
        const tn_status status = tn_context_run(c->context, NULL);
        if (status == TN_OK) atomic_fetch_add(&c->ran, 1);
        if (status != TN_OK && status != TN_BUSY) atomic_fetch_add(&c->wrong, 1);
    }
    return NULL;
}

static void context_run_by_many_threads_is_busy_for_all_but_one(void **state) {
    (void)state;
    onnx_model m;
    session_fixture f;
    pthread_t threads[THREADS];
    one_context c = {.wrong = 0};
    static float data[LEN];
    const int64_t len[] = {LEN};
    build_chain(&m);
    fixture_open(&f, &m, NULL);
    tn_value *x = fixture_tensor(&f, TN_DTYPE_F32, 1, len, data);
    ASSERT_OK(tn_context_create(f.session, &c.context, NULL));
    ASSERT_OK(tn_context_set(c.context, "x", x, NULL));

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_the_context, &c), 0);
    }
    join(threads);

    assert_int_equal(atomic_load(&c.wrong), 0);
    assert_true(atomic_load(&c.ran) >= 1);
    tn_context_destroy(c.context);
    tn_tensor_release(x);
    fixture_close(&f);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(runs_trims_plans_and_reports_at_once_agree),
        T(close_while_others_run_ends_them_with_closed),
        T(close_wakes_those_who_wait_for_a_context),
        T(sessions_of_one_model_come_and_go_on_all_threads),
        T(release_in_any_order_leaves_nothing),
        T(context_run_by_many_threads_is_busy_for_all_but_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
