/* Counts every call of the C library's allocator, whoever makes it.
 *
 * The binary defines the functions itself, so that the dynamic linker binds every library's calls
 * to these; the real work is done by glibc's own entries. This counter is the one mutable variable
 * of file scope in the program: an allocator has nowhere else to keep it. Sanitizers bring their
 * own allocator, and then nothing is counted. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cli/host.h"

#if defined(__has_feature) /* how clang tells */
#define HAS_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

#if defined(__GLIBC__) && !HAS_SANITIZER
#define IS_COUNTED 1
#else
#define IS_COUNTED 0
#endif

#if IS_COUNTED
static _Atomic uint64_t heap_calls;

void *__libc_malloc(size_t size_bytes);
void *__libc_calloc(size_t count, size_t size_bytes);
void *__libc_realloc(void *data, size_t size_bytes);
void *__libc_memalign(size_t align, size_t size_bytes);

static void count(void) {
    /* relaxed: a figure, ordered by nothing */
    atomic_fetch_add_explicit(&heap_calls, 1, memory_order_relaxed);
}

__attribute__((visibility("default"))) void *malloc(size_t size_bytes) {
    count();
    return __libc_malloc(size_bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t items, size_t size_bytes) {
    count();
    return __libc_calloc(items, size_bytes);
}

__attribute__((visibility("default"))) void *realloc(void *data, size_t size_bytes) {
    count();
    return __libc_realloc(data, size_bytes);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t align, size_t size_bytes) {
    count();
    return __libc_memalign(align, size_bytes);
}

__attribute__((visibility("default"))) void *memalign(size_t align, size_t size_bytes) {
    count();
    return __libc_memalign(align, size_bytes);
}

__attribute__((visibility("default"))) int posix_memalign(void **out, size_t align,
                                                          size_t size_bytes) {
    const bool is_power = align >= sizeof(void *) && (align & (align - 1)) == 0;
    if (!is_power) return 22; /* EINVAL */
    count();
    void *data = __libc_memalign(align, size_bytes);
    if (data == NULL) return 12; /* ENOMEM */
    *out = data;
    return 0;
}

uint64_t cli_heap_allocations(void) {
    return atomic_load_explicit(&heap_calls, memory_order_relaxed);
}
#else
uint64_t cli_heap_allocations(void) {
    return 0;
}
#endif

int cli_heap_is_counted(void) {
    return IS_COUNTED;
}
