/* Events come out whole and in order, or are counted as lost. */
#include "base/event_stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static void *alloc_any(void *ctx, size_t size_bytes) {
    return *(bool *)ctx ? NULL : malloc(size_bytes);
}

static void free_any(void *ctx, void *data) {
    (void)ctx;
    free(data);
}

static tn_event_stream *make_stream(uint32_t capacity) {
    static bool fails = false;
    const tn_base_alloc alloc = {.ctx = &fails, .alloc = alloc_any, .free = free_any};
    tn_event_stream *stream = NULL;
    ASSERT_OK(tn_event_stream_create(&alloc, capacity, &stream, NULL));
    return stream;
}

static void events_come_out_in_order(void **state) {
    (void)state;
    tn_event_stream *const stream = make_stream(8);
    tn_event out[8];
    uint64_t position = 0;
    for (uint32_t i = 0; i < 5; i++) {
        tn_event_record(stream, &(tn_event){.kind = TN_EVENT_BLOCK_HIT, .value = i, .bytes = i});
    }

    assert_int_equal(tn_event_stream_read(stream, &position, out, 3, NULL), 3);
    assert_int_equal(out[2].value, 2);
    assert_int_equal(tn_event_stream_read(stream, &position, out, 8, NULL), 2);

    assert_int_equal(out[1].value, 4);
    assert_int_equal(out[1].bytes, 4);
    assert_true(out[1].time_ns >= out[0].time_ns && out[0].time_ns > 0);
    assert_int_equal(tn_event_stream_read(stream, &position, out, 8, NULL), 0);
    tn_event_stream_destroy(stream);
}

static void overwritten_events_are_counted_as_lost(void **state) {
    (void)state;
    tn_event_stream *const stream = make_stream(7); /* rounded up to 8 */
    tn_event out[8];
    uint64_t position = 0;
    uint64_t lost = 0;
    for (uint32_t i = 0; i < 20; i++) {
        tn_event_record(stream, &(tn_event){.kind = TN_EVENT_BLOCK_MISS, .value = i});
    }

    assert_int_equal(tn_event_stream_read(stream, &position, out, 8, &lost), 8);

    assert_int_equal(lost, 12);
    assert_int_equal(out[0].value, 12);
    assert_int_equal(out[7].value, 19);
    tn_event_stream_destroy(stream);
}

static void stream_that_is_off_records_nothing(void **state) {
    (void)state;
    tn_event_stream *const stream = make_stream(4);
    tn_event out[4];
    uint64_t position = 0;
    tn_event_stream_set_on(stream, false);

    tn_event_record(stream, &(tn_event){.kind = TN_EVENT_RUN_BEGIN});
    tn_event_record(NULL, &(tn_event){.kind = TN_EVENT_RUN_BEGIN});

    assert_int_equal(tn_event_stream_read(stream, &position, out, 4, NULL), 0);
    tn_event_stream_destroy(stream);
    tn_event_stream_destroy(NULL);
}

static void create_reports_its_errors(void **state) {
    (void)state;
    bool fails = true;
    const tn_base_alloc alloc = {.ctx = &fails, .alloc = alloc_any, .free = free_any};
    tn_event_stream *stream = NULL;

    ASSERT_STATUS(TN_OUT_OF_MEMORY, tn_event_stream_create(&alloc, 8, &stream, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_event_stream_create(&alloc, 0, &stream, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_event_stream_create(&alloc, 1u << 30, &stream, NULL));
    assert_null(stream);
}

#define WRITERS 4
#define EVENTS 20000

static void *write_events(void *argument) {
    tn_event_stream *const stream = argument;
    for (uint32_t i = 1; i <= EVENTS; i++) {
        tn_event_record(stream, &(tn_event){.time_ns = i, .bytes = i, .value = i, .run = i});
    }
    return NULL;
}

static void concurrent_events_are_whole(void **state) {
    (void)state;
    tn_event_stream *const stream = make_stream(64);
    pthread_t threads[WRITERS];
    tn_event out[64];
    uint64_t position = 0;
    uint64_t lost = 0;
    uint64_t seen = 0;
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_events, stream), 0);
    }
    while (position < (uint64_t)WRITERS * EVENTS) {
        const uint32_t count = tn_event_stream_read(stream, &position, out, 64, &lost);
        seen += count;
        for (uint32_t i = 0; i < count; i++) {
            assert_true(out[i].bytes == out[i].time_ns && out[i].value == out[i].time_ns &&
                        out[i].run == out[i].time_ns);
        }
    }
    for (int i = 0; i < WRITERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(seen + lost, WRITERS * EVENTS);
    tn_event_stream_destroy(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(events_come_out_in_order),           T(overwritten_events_are_counted_as_lost),
        T(stream_that_is_off_records_nothing), T(create_reports_its_errors),
        T(concurrent_events_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
