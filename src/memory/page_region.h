/* Regions: 8 MiB mappings, aligned to their size, from which runs of pages are cut. They keep the
 * number of mappings small however many blocks are alive, and cost address space only: pages are
 * counted as held while a run owns them, and go back to the system with it.
 * Threads: the owner's lock guards every call but `tn_region_clean`. */
#ifndef TN_MEMORY_PAGE_REGION_H
#define TN_MEMORY_PAGE_REGION_H

#include <tenure/memory.h>

#define TN_REGION_BYTES ((size_t)8 << 20)
#define TN_REGION_PAGES 2048

typedef struct tn_region tn_region;

/* Counters and lists; zero-initialise it. */
typedef struct tn_region_set {
    tn_region *first; /* owned; those that had room last come first */
    tn_region *last;
    const tn_fault_injector *fault; /* borrowed, may be NULL */
    uint32_t empty_count;           /* regions without a run; one is kept */
    uint64_t held_bytes;            /* headers and runs in use */
    uint64_t mapping_count;         /* regions and own mappings alive */
    uint64_t map_calls;             /* system calls that got memory */
    uint64_t unmap_calls;           /* system calls that gave memory back */
} tn_region_set;

/* Cuts a run of `page_count` pages at a multiple of `align_pages`. NULL: out of memory. */
void *tn_region_take(tn_region_set *set, uint32_t page_count, uint32_t align_pages);

/* Gives the pages of a run back to the system, contents lost; call it before tn_region_give, with
 * or without the lock. */
void tn_region_clean(void *data, uint32_t page_count);

/* Returns a run. One empty region is kept, further ones are unmapped. */
void tn_region_give(tn_region_set *set, void *data, uint32_t page_count);

/* Unmaps every empty region; returns the bytes of their headers. */
size_t tn_region_set_trim(tn_region_set *set);

/* Unmaps all regions, empty or not. */
void tn_region_set_deinit(tn_region_set *set);

/* Maps `size_bytes` (whole pages) at a multiple of `align` with one mapping of its own; asks for
 * huge pages before the first touch where they fit. NULL: out of memory. */
void *tn_region_map_own(tn_region_set *set, size_t size_bytes, size_t align);
void tn_region_unmap_own(tn_region_set *set, void *data, size_t size_bytes);

#endif
