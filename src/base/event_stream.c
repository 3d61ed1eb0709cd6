/* A ring with one ticket counter. Each slot has a sequence number: odd while its event is being
 * written, even and telling which event it holds afterwards. A writer that would lap another one
 * that is still writing drops its event instead of waiting; a reader that meets a slot in motion
 * skips it. Events are stored as words so that concurrent copies are no data races. */
#include "base/event_stream.h"

#include <string.h>
#include <time.h>

#include "base/error.h"

#define CAPACITY_MAX (UINT32_C(1) << 24)

typedef struct event_slot {
    _Atomic uint64_t sequence; /* 2 * ticket + 1 while written, 2 * ticket + 2 when complete */
    _Atomic uint64_t words[TN_EVENT_WORDS];
} event_slot;

struct tn_event_stream {
    _Atomic bool is_on;
    _Atomic uint64_t next_ticket;
    uint64_t mask;
    tn_base_alloc alloc;
    event_slot slots[];
};

_Static_assert(sizeof(tn_event) % sizeof(uint64_t) == 0, "an event is copied word by word");

tn_status tn_event_stream_create(const tn_base_alloc *alloc, uint32_t capacity,
                                 tn_event_stream **out, tn_error *err) {
    uint32_t slot_count = 1;
    *out = NULL;
    TN_REQUIRE(capacity > 0 && capacity <= CAPACITY_MAX, err, TN_INVALID_ARGUMENT,
               "a stream of %u events, 1 to %u are possible", capacity, CAPACITY_MAX);
    while (slot_count < capacity) slot_count *= 2;
    const size_t size_bytes = sizeof(tn_event_stream) + slot_count * sizeof(event_slot);
    tn_event_stream *const stream = alloc->alloc(alloc->ctx, size_bytes);
    TN_REQUIRE(stream != NULL, err, TN_OUT_OF_MEMORY, "a stream of %u events needs %zu bytes",
               slot_count, size_bytes);
    memset(stream, 0, size_bytes);
    stream->mask = slot_count - 1;
    stream->alloc = *alloc;
    atomic_init(&stream->is_on, true);
    *out = stream;
    return TN_OK;
}

void tn_event_stream_destroy(tn_event_stream *stream) {
    if (stream == NULL) return;
    const tn_base_alloc alloc = stream->alloc;
    alloc.free(alloc.ctx, stream);
}

void tn_event_stream_set_on(tn_event_stream *stream, bool is_on) {
    /* relaxed: a switch, it orders nothing */
    atomic_store_explicit(&stream->is_on, is_on, memory_order_relaxed);
}

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tn_event_record(tn_event_stream *stream, const tn_event *event) {
    uint64_t words[TN_EVENT_WORDS];
    if (stream == NULL || !atomic_load_explicit(&stream->is_on, memory_order_relaxed)) return;
    tn_event stamped = *event;
    if (stamped.time_ns == 0) stamped.time_ns = now_ns();
    memcpy(words, &stamped, sizeof words);

    /* relaxed: tickets only number the events; the slot's sequence orders its contents */
    const uint64_t ticket =
        atomic_fetch_add_explicit(&stream->next_ticket, 1, memory_order_relaxed);
    event_slot *const slot = &stream->slots[ticket & stream->mask];
    uint64_t seen = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    const uint64_t writing = 2 * ticket + 1;
    if ((seen & 1) != 0 || seen > writing) return;
    /* acquire: the words are not written before the slot is ours */
    if (!atomic_compare_exchange_strong_explicit(&slot->sequence, &seen, writing,
                                                 memory_order_acquire, memory_order_relaxed)) {
        return;
    }
    for (size_t i = 0; i < TN_EVENT_WORDS; i++) {
        /* release: a reader that sees a new word sees the odd sequence too */
        atomic_store_explicit(&slot->words[i], words[i], memory_order_release);
    }
    /* release: the words come before the sequence that declares them complete */
    atomic_store_explicit(&slot->sequence, writing + 1, memory_order_release);
}

static bool read_slot(event_slot *slot, uint64_t ticket, tn_event *out) {
    uint64_t words[TN_EVENT_WORDS];
    const uint64_t complete = 2 * ticket + 2;
    if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != complete) return false;
    for (size_t i = 0; i < TN_EVENT_WORDS; i++) {
        /* acquire: the second look at the sequence comes after the words */
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_acquire);
    }
    if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) != complete) return false;
    memcpy(out, words, sizeof *out);
    return true;
}

uint32_t tn_event_stream_read(tn_event_stream *stream, uint64_t *inout_position, tn_event *out,
                              uint32_t capacity, uint64_t *inout_lost) {
    const uint64_t end = atomic_load_explicit(&stream->next_ticket, memory_order_acquire);
    uint64_t at = *inout_position;
    uint64_t lost = 0;
    uint32_t count = 0;
    if (end - at > stream->mask + 1) {
        lost = end - at - (stream->mask + 1);
        at += lost;
    }
    for (; at < end && count < capacity; at++) {
        if (read_slot(&stream->slots[at & stream->mask], at, &out[count])) {
            count++;
        } else {
            lost++;
        }
    }
    *inout_position = at;
    if (inout_lost != NULL) *inout_lost += lost;
    return count;
}
