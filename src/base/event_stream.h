/* One ring of fixed records that profile, timeline, traces and leak reports are made from. When it
 * is off, or there is none, recording costs one branch; it never allocates and never waits. */
#ifndef TN_BASE_EVENT_STREAM_H
#define TN_BASE_EVENT_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread_pool.h"

typedef enum tn_event_kind {
    TN_EVENT_NONE,
    TN_EVENT_BLOCK_HIT,      /* an arena served a request from a free list */
    TN_EVENT_BLOCK_MISS,     /* it got a new block */
    TN_EVENT_BLOCK_RETURN,   /* a block came back */
    TN_EVENT_BLOCK_SYS_FREE, /* a block went to the page source */
    TN_EVENT_BLOCK_EXPORT,   /* a block became a lease */
    TN_EVENT_RUN_BEGIN,
    TN_EVENT_RUN_END,
    TN_EVENT_STEP_BEGIN, /* value: number of the plan step */
    TN_EVENT_STEP_END
} tn_event_kind;

typedef struct tn_event {
    uint64_t time_ns; /* monotonic; 0: filled in by tn_event_record */
    uint64_t bytes;
    uint32_t kind;        /* tn_event_kind */
    uint32_t arena;       /* number of the arena in its tree; 0: none */
    uint32_t class_index; /* size class of a block */
    uint32_t value;       /* block, value or step, as the kind says */
    uint32_t run;
    uint32_t worker;
} tn_event;

#define TN_EVENT_WORDS (sizeof(tn_event) / sizeof(uint64_t))

/* Ownership: made by tn_event_stream_create, one owner. Threads: recording and reading from any. */
typedef struct tn_event_stream tn_event_stream;

/* `capacity` is rounded up to a power of two of events; a new stream is on.
 * Errors: TN_INVALID_ARGUMENT (0 or more than 2^24), TN_OUT_OF_MEMORY. */
TN_MUST_USE tn_status tn_event_stream_create(const tn_base_alloc *alloc, uint32_t capacity,
                                             tn_event_stream **out, tn_error *err);
void tn_event_stream_destroy(tn_event_stream *stream);
void tn_event_stream_set_on(tn_event_stream *stream, bool is_on);

/* Adds an event; `stream` may be NULL. The oldest event is overwritten when the ring is full. */
void tn_event_record(tn_event_stream *stream, const tn_event *event);

/* Copies events from *inout_position on, oldest first, and moves the position behind them. Events
 * that were overwritten before they were read are skipped and counted in *inout_lost (may be NULL).
 * Returns how many were copied. Start with position 0. */
uint32_t tn_event_stream_read(tn_event_stream *stream, uint64_t *inout_position, tn_event *out,
                              uint32_t capacity, uint64_t *inout_lost);

#endif
