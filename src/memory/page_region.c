/* Regions and own mappings. A region's header (list links and one bit per page) lies in its own
 * first page, found from any pointer by alignment; runs are found first-fit over the bitmap, at
 * most REGIONS_TRIED regions deep, so the cost is bounded. What this is not: a cache; a returned
 * run's pages go back to the system at once, keeping blocks warm is the block pool's business. */
#include "memory/page_region.h"

#include <sys/mman.h>

#include "base/checked_size.h"
#include "memory/fault.h"
#include "memory/poison.h"
#include "memory/size_class.h"

#define REGIONS_TRIED 16
#define REGION_WORDS (TN_REGION_PAGES / 64)
#define HEADER_PAGES 1

struct tn_region {
    tn_region *prev;
    tn_region *next;
    uint32_t free_page_count;
    uint64_t used_bits[REGION_WORDS]; /* one bit per page, header included */
};

static void *map_pages(tn_region_set *set, size_t size_bytes) {
    if (tn_fault_hits(set->fault, TN_FAULT_MAPPING)) return NULL;
    void *const data = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return NULL;
    set->map_calls++;
    set->mapping_count++;
    return data;
}

/* The kernel is likely to answer aligned for sizes of whole huge pages; only when it does not is
 * more mapped and the rest cut off. */
static void *map_aligned(tn_region_set *set, size_t size_bytes, size_t align) {
    size_t padded_bytes = 0;
    char *data = map_pages(set, size_bytes);
    if (data == NULL || ((uintptr_t)data & (align - 1)) == 0) return data;
    tn_region_unmap_own(set, data, size_bytes);

    if (!tn_size_add(size_bytes, align, &padded_bytes)) return NULL;
    data = map_pages(set, padded_bytes);
    if (data == NULL) return NULL;
    const size_t head_bytes = (align - ((uintptr_t)data & (align - 1))) & (align - 1);
    const size_t tail_bytes = padded_bytes - head_bytes - size_bytes;
    if (head_bytes > 0) (void)munmap(data, head_bytes);
    if (tail_bytes > 0) (void)munmap(data + head_bytes + size_bytes, tail_bytes);
    return data + head_bytes;
}

void *tn_region_map_own(tn_region_set *set, size_t size_bytes, size_t align) {
    void *const data = map_aligned(set, size_bytes, align);
    if (data == NULL) return NULL;
    /* a refusal only means small pages */
    if (size_bytes >= TN_HUGE_PAGE_BYTES) (void)madvise(data, size_bytes, MADV_HUGEPAGE);
    set->held_bytes += size_bytes;
    return data;
}

void tn_region_unmap_own(tn_region_set *set, void *data, size_t size_bytes) {
    tn_unpoison(data, size_bytes); /* the addresses may come back as something else */
    (void)munmap(data, size_bytes);
    set->unmap_calls++;
    set->mapping_count--;
}

static bool page_is_used(const tn_region *region, uint32_t page) {
    return (region->used_bits[page / 64] >> (page % 64) & 1) != 0;
}

static void mark_pages(tn_region *region, uint32_t first_page, uint32_t page_count, bool is_used) {
    for (uint32_t page = first_page; page < first_page + page_count; page++) {
        const uint64_t bit = UINT64_C(1) << (page % 64);
        if (is_used) {
            region->used_bits[page / 64] |= bit;
        } else {
            region->used_bits[page / 64] &= ~bit;
        }
    }
}

/* First free run, or TN_REGION_PAGES. Full words are skipped whole. */
static uint32_t find_run(const tn_region *region, uint32_t page_count, uint32_t align_pages) {
    uint32_t first_page = 0;
    uint32_t run = 0;
    for (uint32_t page = HEADER_PAGES; page < TN_REGION_PAGES; page++) {
        if (page % 64 == 0 && region->used_bits[page / 64] == UINT64_MAX) {
            run = 0;
            page += 63;
            continue;
        }
        if (page_is_used(region, page) || (run == 0 && page % align_pages != 0)) {
            run = 0;
            continue;
        }
        if (run == 0) first_page = page;
        run++;
        if (run == page_count) return first_page;
    }
    return TN_REGION_PAGES;
}

static void unlink_region(tn_region_set *set, tn_region *region) {
    if (region->prev != NULL) region->prev->next = region->next;
    if (region->next != NULL) region->next->prev = region->prev;
    if (set->first == region) set->first = region->next;
    if (set->last == region) set->last = region->prev;
}

static void push_region(tn_region_set *set, tn_region *region) {
    region->prev = NULL;
    region->next = set->first;
    if (set->first != NULL) set->first->prev = region;
    if (set->last == NULL) set->last = region;
    set->first = region;
}

static void move_to_the_end(tn_region_set *set, tn_region *region) {
    if (set->last == region) return;
    unlink_region(set, region);
    region->prev = set->last;
    region->next = NULL;
    set->last->next = region;
    set->last = region;
}

static tn_region *add_region(tn_region_set *set) {
    tn_region *const region = map_aligned(set, TN_REGION_BYTES, TN_REGION_BYTES);
    if (region == NULL) return NULL;
    region->free_page_count = TN_REGION_PAGES - HEADER_PAGES;
    mark_pages(region, 0, HEADER_PAGES, true);
    set->held_bytes += HEADER_PAGES * TN_PAGE_BYTES;
    set->empty_count++;
    push_region(set, region);
    return region;
}

static void drop_region(tn_region_set *set, tn_region *region) {
    unlink_region(set, region);
    set->held_bytes -= HEADER_PAGES * TN_PAGE_BYTES;
    tn_region_unmap_own(set, region, TN_REGION_BYTES);
}

static void drop_empty_region(tn_region_set *set, tn_region *region) {
    set->empty_count--;
    drop_region(set, region);
}

static bool is_empty(const tn_region *region) {
    return region->free_page_count == TN_REGION_PAGES - HEADER_PAGES;
}

static void *take_from(tn_region_set *set, tn_region *region, uint32_t first_page,
                       uint32_t page_count) {
    if (is_empty(region)) set->empty_count--;
    mark_pages(region, first_page, page_count, true);
    region->free_page_count -= page_count;
    set->held_bytes += page_count * TN_PAGE_BYTES;
    return (char *)region + first_page * TN_PAGE_BYTES;
}

void *tn_region_take(tn_region_set *set, uint32_t page_count, uint32_t align_pages) {
    uint32_t first_page = TN_REGION_PAGES;
    for (int tried = 0; set->first != NULL && tried < REGIONS_TRIED; tried++) {
        tn_region *const region = set->first;
        if (region->free_page_count >= page_count) {
            first_page = find_run(region, page_count, align_pages);
        }
        if (first_page < TN_REGION_PAGES) return take_from(set, region, first_page, page_count);
        move_to_the_end(set, region); /* so that the next request meets others */
    }
    tn_region *const made = add_region(set);
    if (made == NULL) return NULL;
    first_page = find_run(made, page_count, align_pages);
    return first_page < TN_REGION_PAGES ? take_from(set, made, first_page, page_count) : NULL;
}

void tn_region_clean(void *data, uint32_t page_count) {
    tn_unpoison(data, page_count * TN_PAGE_BYTES);
    (void)madvise(data, page_count * TN_PAGE_BYTES, MADV_DONTNEED);
}

void tn_region_give(tn_region_set *set, void *data, uint32_t page_count) {
    tn_region *const region = (tn_region *)((uintptr_t)data & ~(TN_REGION_BYTES - 1));
    const uint32_t first_page = (uint32_t)(((uintptr_t)data - (uintptr_t)region) / TN_PAGE_BYTES);
    mark_pages(region, first_page, page_count, false);
    region->free_page_count += page_count;
    set->held_bytes -= page_count * TN_PAGE_BYTES;
    unlink_region(set, region);
    push_region(set, region); /* the freest region is the next one tried */
    if (!is_empty(region)) return;
    set->empty_count++;
    if (set->empty_count > 1) drop_empty_region(set, region);
}

size_t tn_region_set_trim(tn_region_set *set) {
    const uint64_t held_before = set->held_bytes;
    tn_region *next = NULL;
    for (tn_region *region = set->first; region != NULL; region = next) {
        next = region->next;
        if (is_empty(region)) drop_empty_region(set, region);
    }
    return (size_t)(held_before - set->held_bytes);
}

void tn_region_set_deinit(tn_region_set *set) {
    while (set->first != NULL) drop_region(set, set->first);
}
