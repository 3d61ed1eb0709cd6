/* What the operating system says about this process. */
#ifndef TN_CLI_HOST_H
#define TN_CLI_HOST_H

#include <stdint.h>

/* Monotonic. */
uint64_t cli_now_ns(void);
/* Page faults of the whole process that needed no disk. */
uint64_t cli_minor_faults(void);
/* Resident bytes now, and the most since cli_reset_peak_rss (or since the start). 0: unknown. */
uint64_t cli_rss_bytes(void);
uint64_t cli_peak_rss_bytes(void);
void cli_reset_peak_rss(void);

/* Calls of malloc, calloc, realloc and aligned_alloc so far, from every library of the process. */
uint64_t cli_heap_allocations(void);
/* False in builds whose allocator cannot be counted (sanitizers, other C libraries). */
int cli_heap_is_counted(void);

#endif
