/* Status codes and the caller-owned error record: the one way in which anything fails.
 *
 * Every fallible function returns a `tn_status` and takes a `tn_error *` as its last parameter,
 * which may be NULL. A function that fails changes nothing: outputs are NULL or untouched, inputs
 * keep their owner. Making an error never allocates. */
#ifndef TENURE_STATUS_H
#define TENURE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#define TN_MUST_USE __attribute__((warn_unused_result))
#define TN_PRINTF(format_index, first_index) \
    __attribute__((format(printf, format_index, first_index)))
#else
#define TN_API
#define TN_MUST_USE
#define TN_PRINTF(format_index, first_index)
#endif

/* X(name, text): the only list of codes; order is part of the ABI, new codes go to the end. */
#define TN_STATUS_LIST(X)                             \
    X(OK, "ok")                                       \
    X(INVALID_ARGUMENT, "invalid argument")           \
    X(INVALID_MODEL, "invalid model")                 \
    X(UNSUPPORTED, "unsupported")                     \
    X(OUT_OF_RANGE, "out of range")                   \
    X(OVERFLOW, "size overflow")                      \
    X(LIMIT, "memory limit")                          \
    X(OUT_OF_MEMORY, "out of memory")                 \
    X(CLOSED, "closed")                               \
    X(BUSY, "busy")                                   \
    X(DEAD, "already released")                       \
    X(ROOT_MISMATCH, "allocators of different roots") \
    X(VETOED, "vetoed by a listener")                 \
    X(IO, "input/output error")                       \
    X(TIMED_OUT, "timed out")                         \
    X(INTERNAL, "internal error, please report it")

typedef enum tn_status {
#define TN_STATUS_ENUM(name, text) TN_##name,
    TN_STATUS_LIST(TN_STATUS_ENUM)
#undef TN_STATUS_ENUM
        TN_STATUS_COUNT
} tn_status;

/* How much is logged; each level includes those before it. */
typedef enum tn_log_level {
    TN_LOG_DEFAULT, /* TENURE_LOG, then warn */
    TN_LOG_OFF,
    TN_LOG_ERROR,
    TN_LOG_WARN,
    TN_LOG_INFO,
    TN_LOG_DEBUG,
    TN_LOG_TRACE
} tn_log_level;

#define TN_ERROR_MESSAGE_BYTES 2048
#define TN_ERROR_NAME_BYTES 128

/* What went wrong. Zero-initialise it, or don't: it is written whole by whoever reports.
 * Ownership: the caller's; holds no pointers. */
typedef struct tn_error {
    tn_status code;
    char message[TN_ERROR_MESSAGE_BYTES]; /* what: the values, the limit; one line, UTF-8 */
    char node[TN_ERROR_NAME_BYTES];       /* node, field or file at fault; "" when none */

    /* Set for TN_LIMIT and TN_OUT_OF_MEMORY, taken at the moment of refusal; else zero. */
    char allocator[TN_ERROR_NAME_BYTES]; /* path of the allocator that refused */
    uint64_t requested_bytes;            /* as asked by the caller */
    uint64_t rounded_bytes;              /* as it would have been charged */
    uint64_t used_bytes;                 /* charged at the refusing allocator */
    uint64_t limit_bytes;                /* limit of the refusing allocator */
} tn_error;

/* Lends the lower-case text of `status`; never NULL, static. Threads: safe. */
TN_API const char *tn_status_text(tn_status status);

/* Lends the constant's name without prefix, such as "LIMIT"; never NULL, static. */
TN_API const char *tn_status_name(tn_status status);

#ifdef __cplusplus
}
#endif
#endif
