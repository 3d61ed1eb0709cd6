/* Marks for the tools that watch memory: bytes nobody owns are poisoned under AddressSanitizer and
 * inaccessible under Valgrind; debug builds fill what comes back with 0xAA, so that a stale read
 * shows. In a plain release build everything here is empty. */
#ifndef TN_MEMORY_POISON_H
#define TN_MEMORY_POISON_H

#include <stddef.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define TN_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TN_HAS_ASAN 1
#endif
#endif

#if defined(TN_HAS_ASAN)
#include <sanitizer/asan_interface.h>
#elif !defined(NDEBUG) && defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#define TN_HAS_VALGRIND 1
#include <valgrind/memcheck.h>
#endif
#endif

#define TN_DEBUG_FILL 0xAA
/* Larger blocks are filled in part: a debug build shall not touch what nobody else touched. */
#define TN_DEBUG_FILL_MAX_BYTES ((size_t)1 << 20)

/* Nobody may touch these bytes until they are given out again. */
static inline void tn_poison(const void *data, size_t size_bytes) {
#if defined(TN_HAS_ASAN)
    __asan_poison_memory_region(data, size_bytes);
#elif defined(TN_HAS_VALGRIND)
    (void)VALGRIND_MAKE_MEM_NOACCESS(data, size_bytes);
#else
    (void)data;
    (void)size_bytes;
#endif
}

/* These bytes belong to somebody; their contents are undefined. */
static inline void tn_unpoison(const void *data, size_t size_bytes) {
#if defined(TN_HAS_ASAN)
    __asan_unpoison_memory_region(data, size_bytes);
#elif defined(TN_HAS_VALGRIND)
    (void)VALGRIND_MAKE_MEM_UNDEFINED(data, size_bytes);
#else
    (void)data;
    (void)size_bytes;
#endif
}

/* Overwrites bytes that have just lost their owner; debug builds only. */
static inline void tn_debug_fill(void *data, size_t size_bytes) {
#if !defined(NDEBUG)
    const size_t filled =
        size_bytes < TN_DEBUG_FILL_MAX_BYTES ? size_bytes : TN_DEBUG_FILL_MAX_BYTES;
    memset(data, TN_DEBUG_FILL, filled);
#else
    (void)data;
    (void)size_bytes;
#endif
}

#endif
