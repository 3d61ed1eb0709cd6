/* The `system` source: physical memory straight from the kernel, no malloc anywhere, not even for
 * its own records.
 *
 *   up to 60 KiB     blocks of one size class side by side in a span, spans in 256 KiB chunks,
 *                    chunks in 8 MiB regions. Everything is found from the pointer by alignment and
 *                    from the size that free is told, so blocks carry no header.
 *   up to 2 MiB      runs of pages in regions; their pages go back to the kernel when freed.
 *   from 2 MiB       a mapping each, aligned to 2 MiB, with huge pages asked for before the first
 *                    touch; unmapped when freed.
 *
 * Free blocks of a span are bits in its record, never links inside the blocks: freed memory is not
 * written to, can be poisoned whole, and a double free is seen. Cost: small blocks one lock and
 * some bit work; larger ones a system call, which the block pool above makes rare. */
#include "memory/page_source.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked_size.h"
#include "memory/fault.h"
#include "memory/lock.h"
#include "memory/page_region.h"
#include "memory/poison.h"
#include "memory/size_class.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define CHUNK_PAGES 64
#define SPAN_BLOCKS_MAX 256
#define SPAN_BITS_WORDS (SPAN_BLOCKS_MAX / 64)
#define CHUNKS_TRIED 16
#define SMALL_SPAN_BYTES ((size_t)16 << 10)

/* A run of pages of one chunk that holds blocks of one class. */
typedef struct span {
    uint64_t free_bits[SPAN_BITS_WORDS];
    struct span *prev; /* of the spans of this class that have a free block */
    struct span *next;
    uint16_t class_index;
    uint16_t block_count;
    uint16_t used_count;
    uint8_t first_page; /* within the chunk */
    uint8_t page_count;
} span;

/* Header of a chunk, in its first page. */
typedef struct chunk {
    struct chunk *prev; /* of all chunks */
    struct chunk *next;
    uint64_t used_pages;  /* one bit per page, header included */
    uint64_t dirty_pages; /* pages that a span has owned since they were last given back */
    uint8_t span_of_page[CHUNK_PAGES]; /* first page of the span that owns the page */
    span spans[CHUNK_PAGES];           /* indexed by first page */
} chunk;

_Static_assert(sizeof(chunk) <= TN_PAGE_BYTES, "a chunk's header must fit in its first page");

typedef struct system_source {
    tn_lock lock; /* guards everything below */
    tn_region_set regions;
    const tn_fault_injector *fault;
    uint64_t used_bytes;
    uint64_t chunk_bytes; /* of chunks alive */
    chunk *first_chunk;   /* those that had room last come first */
    chunk *last_chunk;
    span *partial[TN_SMALL_CLASS_COUNT]; /* spans with a free block */
} system_source;

static size_t state_bytes(void) {
    return tn_align_up(sizeof(system_source), TN_PAGE_BYTES);
}

void *tn_page_source_system_create(const tn_fault_injector *fault) {
    tn_region_set boot = {.fault = fault};
    system_source *const source = tn_region_map_own(&boot, state_bytes(), TN_PAGE_BYTES);
    if (source == NULL) return NULL;
    tn_lock_init(&source->lock);
    source->regions = boot;
    source->fault = fault;
    return source;
}

void tn_page_source_system_set_fault(void *ctx, const tn_fault_injector *fault) {
    system_source *const source = ctx;
    source->fault = fault;
    source->regions.fault = fault;
}

void tn_page_source_system_destroy(void *ctx) {
    system_source *const source = ctx;
    if (source == NULL) return;
    tn_region_set regions = source->regions;
    tn_region_set_deinit(&regions);
    tn_region_unmap_own(&regions, source, state_bytes());
}

static uint32_t span_page_count(size_t block_bytes) {
    size_t span_bytes = SMALL_SPAN_BYTES;
    if (block_bytes > 8192) {
        span_bytes = 4 * block_bytes;
    } else if (block_bytes > 4096) {
        span_bytes = 8 * block_bytes;
    } else if (block_bytes >= 1024) {
        span_bytes = 16 * block_bytes;
    }
    return (uint32_t)((span_bytes + TN_PAGE_BYTES - 1) / TN_PAGE_BYTES);
}

static chunk *chunk_of(const void *data) {
    return (chunk *)((uintptr_t)data & ~(CHUNK_BYTES - 1));
}

static uint64_t page_mask(uint32_t first_page, uint32_t page_count) {
    return (page_count == 64 ? UINT64_MAX : (UINT64_C(1) << page_count) - 1) << first_page;
}

/* First page of a free run in the chunk, or CHUNK_PAGES. */
static uint32_t find_chunk_run(const chunk *owner, uint32_t page_count) {
    for (uint32_t page = 1; page + page_count <= CHUNK_PAGES; page++) {
        const uint64_t taken = owner->used_pages & page_mask(page, page_count);
        if (taken == 0) return page;
        page = tn_log2_floor(taken); /* the next candidate lies behind the last taken page */
    }
    return CHUNK_PAGES;
}

static void unlink_chunk(system_source *source, chunk *owner) {
    if (owner->prev != NULL) owner->prev->next = owner->next;
    if (owner->next != NULL) owner->next->prev = owner->prev;
    if (source->first_chunk == owner) source->first_chunk = owner->next;
    if (source->last_chunk == owner) source->last_chunk = owner->prev;
}

static void push_chunk(system_source *source, chunk *owner) {
    owner->prev = NULL;
    owner->next = source->first_chunk;
    if (source->first_chunk != NULL) source->first_chunk->prev = owner;
    if (source->last_chunk == NULL) source->last_chunk = owner;
    source->first_chunk = owner;
}

static void move_chunk_to_the_end(system_source *source, chunk *owner) {
    if (source->last_chunk == owner) return;
    unlink_chunk(source, owner);
    owner->prev = source->last_chunk;
    owner->next = NULL;
    source->last_chunk->next = owner;
    source->last_chunk = owner;
}

static chunk *add_chunk(system_source *source) {
    if (tn_fault_hits(source->fault, TN_FAULT_CHUNK)) return NULL;
    chunk *const owner = tn_region_take(&source->regions, CHUNK_PAGES, CHUNK_PAGES);
    if (owner == NULL) return NULL;
    owner->used_pages = 1;
    source->chunk_bytes += CHUNK_BYTES;
    push_chunk(source, owner);
    return owner;
}

static void drop_chunk(system_source *source, chunk *owner) {
    unlink_chunk(source, owner);
    source->chunk_bytes -= CHUNK_BYTES;
    tn_region_clean(owner, CHUNK_PAGES);
    tn_region_give(&source->regions, owner, CHUNK_PAGES);
}

static void unlink_span(system_source *source, span *owner) {
    if (owner->prev != NULL) owner->prev->next = owner->next;
    if (owner->next != NULL) owner->next->prev = owner->prev;
    if (source->partial[owner->class_index] == owner) {
        source->partial[owner->class_index] = owner->next;
    }
    owner->prev = NULL;
    owner->next = NULL;
}

static void push_span(system_source *source, span *owner) {
    span **const head = &source->partial[owner->class_index];
    owner->prev = NULL;
    owner->next = *head;
    if (*head != NULL) (*head)->prev = owner;
    *head = owner;
}

static span *make_span(system_source *source, chunk *owner, uint32_t first_page,
                       uint32_t class_index) {
    const size_t block_bytes = tn_size_class_bytes(class_index);
    const uint32_t page_count = span_page_count(block_bytes);
    const uint32_t block_count =
        (uint32_t)tn_size_min(page_count * TN_PAGE_BYTES / block_bytes, SPAN_BLOCKS_MAX);
    span *const made = &owner->spans[first_page];
    memset(made, 0, sizeof *made);
    made->class_index = (uint16_t)class_index;
    made->block_count = (uint16_t)block_count;
    made->first_page = (uint8_t)first_page;
    made->page_count = (uint8_t)page_count;
    for (uint32_t block = 0; block < block_count; block++) {
        made->free_bits[block / 64] |= UINT64_C(1) << (block % 64);
    }
    owner->used_pages |= page_mask(first_page, page_count);
    owner->dirty_pages |= page_mask(first_page, page_count);
    memset(&owner->span_of_page[first_page], (int)first_page, page_count);
    tn_poison((char *)owner + first_page * TN_PAGE_BYTES, page_count * TN_PAGE_BYTES);
    push_span(source, made);
    return made;
}

static span *add_span(system_source *source, uint32_t class_index) {
    const uint32_t page_count = span_page_count(tn_size_class_bytes(class_index));
    for (int tried = 0; source->first_chunk != NULL && tried < CHUNKS_TRIED; tried++) {
        chunk *const owner = source->first_chunk;
        const uint32_t first_page = find_chunk_run(owner, page_count);
        if (first_page < CHUNK_PAGES) return make_span(source, owner, first_page, class_index);
        move_chunk_to_the_end(source, owner); /* so that the next request meets others */
    }
    chunk *const made = add_chunk(source);
    if (made == NULL) return NULL;
    return make_span(source, made, find_chunk_run(made, page_count), class_index);
}

static void *take_small(system_source *source, uint32_t class_index) {
    span *owner = source->partial[class_index];
    if (owner == NULL) owner = add_span(source, class_index);
    if (owner == NULL) return NULL;
    uint32_t word = 0;
    while (owner->free_bits[word] == 0) word++;
    const uint32_t block = word * 64 + (uint32_t)__builtin_ctzll(owner->free_bits[word]);
    owner->free_bits[word] &= owner->free_bits[word] - 1;
    owner->used_count++;
    if (owner->used_count == owner->block_count) unlink_span(source, owner);
    char *const first = (char *)chunk_of(owner) + owner->first_page * TN_PAGE_BYTES;
    return first + block * tn_size_class_bytes(class_index);
}

/* An emptied span is kept while it is the only one of its class with room, an emptied chunk while
 * it is the only chunk: a single block that comes and goes costs no page work. */
static void drop_span_if_spare(system_source *source, span *owner) {
    chunk *const home = chunk_of(owner);
    if (source->partial[owner->class_index] == owner && owner->next == NULL) return;
    unlink_span(source, owner);
    home->used_pages &= ~page_mask(owner->first_page, owner->page_count);
    if (home->used_pages == 1 && !(source->first_chunk == home && home->next == NULL)) {
        drop_chunk(source, home);
        return;
    }
    unlink_chunk(source, home);
    push_chunk(source, home); /* it has room now: the first one to be tried */
}

static void give_small(system_source *source, void *data, uint32_t class_index) {
    chunk *const home = chunk_of(data);
    const size_t page = ((uintptr_t)data - (uintptr_t)home) / TN_PAGE_BYTES;
    span *const owner = &home->spans[home->span_of_page[page]];
    const char *const first = (char *)home + owner->first_page * TN_PAGE_BYTES;
    const size_t block_bytes = tn_size_class_bytes(class_index);
    const size_t block = (size_t)((char *)data - first) / block_bytes;
    const uint64_t bit = UINT64_C(1) << (block % 64);
    assert(owner->class_index == class_index);
    assert((owner->free_bits[block / 64] & bit) == 0);
    tn_poison(data, block_bytes);
    owner->free_bits[block / 64] |= bit;
    if (owner->used_count == owner->block_count) push_span(source, owner);
    owner->used_count--;
    if (owner->used_count == 0) drop_span_if_spare(source, owner);
}

/* How a request is served; free computes the same from the same numbers. */
typedef struct route {
    size_t actual_bytes;
    uint32_t class_index; /* TN_SMALL_CLASS_COUNT: pages */
    bool is_own_mapping;
    size_t align;
} route;

static bool find_route(size_t size_bytes, size_t align, route *out) {
    size_t wanted = tn_size_max(size_bytes, 1);
    if (wanted > TN_MAX_BLOCK_BYTES || align > TN_MAX_BLOCK_BYTES) return false;
    out->align = tn_size_max(align, TN_PAGE_BYTES);
    out->class_index = TN_SMALL_CLASS_COUNT;
    if (wanted <= TN_SMALL_MAX_BYTES && align > TN_CLASS_UNIT_BYTES && align <= TN_PAGE_BYTES) {
        /* blocks whose size is a power of two up to a page, or whole pages, are aligned to it */
        wanted = tn_size_max(wanted, align);
        wanted = (size_t)1 << (wanted == 1 ? 0 : tn_log2_floor(wanted - 1) + 1);
    }
    if (wanted <= TN_SMALL_MAX_BYTES && align <= TN_PAGE_BYTES) {
        out->class_index = tn_size_class_ceil(wanted);
        out->actual_bytes = tn_size_class_bytes(out->class_index);
        out->is_own_mapping = false;
        return true;
    }
    out->actual_bytes = tn_align_up(wanted, TN_PAGE_BYTES);
    out->is_own_mapping =
        out->actual_bytes >= TN_HUGE_PAGE_BYTES || out->align >= TN_HUGE_PAGE_BYTES;
    if (out->is_own_mapping && out->actual_bytes >= TN_HUGE_PAGE_BYTES) {
        out->align = tn_size_max(out->align, TN_HUGE_PAGE_BYTES);
    }
    return true;
}

static void *system_alloc(void *ctx, size_t size_bytes, size_t align, unsigned flags,
                          size_t *actual_bytes) {
    system_source *const source = ctx;
    route way = {0};
    void *data = NULL;
    (void)flags;
    if (!find_route(size_bytes, align, &way)) return NULL;
    tn_lock_acquire(&source->lock);
    if (way.class_index < TN_SMALL_CLASS_COUNT) {
        data = take_small(source, way.class_index);
    } else if (way.is_own_mapping) {
        data = tn_region_map_own(&source->regions, way.actual_bytes, way.align);
    } else {
        data = tn_region_take(&source->regions, (uint32_t)(way.actual_bytes / TN_PAGE_BYTES),
                              (uint32_t)(way.align / TN_PAGE_BYTES));
    }
    if (data != NULL) source->used_bytes += way.actual_bytes;
    tn_lock_release(&source->lock);
    if (data == NULL) return NULL;
    tn_unpoison(data, way.actual_bytes);
    *actual_bytes = way.actual_bytes;
    return data;
}

static void system_free(void *ctx, void *data, size_t size_bytes, size_t align) {
    system_source *const source = ctx;
    route way = {0};
    if (data == NULL || !find_route(size_bytes, align, &way)) return;
    const uint32_t page_count = (uint32_t)(way.actual_bytes / TN_PAGE_BYTES);
    const bool is_run = way.class_index == TN_SMALL_CLASS_COUNT && !way.is_own_mapping;
    if (is_run) tn_region_clean(data, page_count); /* the slow call, outside the lock */
    tn_lock_acquire(&source->lock);
    if (is_run) {
        tn_region_give(&source->regions, data, page_count);
        source->regions.unmap_calls++;
    } else if (way.is_own_mapping) {
        source->regions.held_bytes -= way.actual_bytes;
        tn_region_unmap_own(&source->regions, data, way.actual_bytes);
    } else {
        give_small(source, data, way.class_index);
    }
    source->used_bytes -= way.actual_bytes;
    tn_lock_release(&source->lock);
}

/* Pages of live chunks that no span owns but that were touched. */
static size_t trim_chunk(chunk *owner, int advice) {
    uint64_t idle = owner->dirty_pages & ~owner->used_pages;
    size_t given_bytes = 0;
    while (idle != 0) {
        const uint32_t page = (uint32_t)__builtin_ctzll(idle);
        char *const data = (char *)owner + page * TN_PAGE_BYTES;
        tn_unpoison(data, TN_PAGE_BYTES);
        if (madvise(data, TN_PAGE_BYTES, advice) == 0) given_bytes += TN_PAGE_BYTES;
        idle &= idle - 1;
    }
    owner->dirty_pages &= owner->used_pages;
    return given_bytes;
}

/* Spans kept although empty are given up first, so that their pages count as idle. */
static void drop_empty_spans(system_source *source) {
    for (uint32_t class_index = 0; class_index < TN_SMALL_CLASS_COUNT; class_index++) {
        span *next = NULL;
        for (span *owner = source->partial[class_index]; owner != NULL; owner = next) {
            next = owner->next;
            if (owner->used_count != 0) continue;
            unlink_span(source, owner);
            chunk_of(owner)->used_pages &= ~page_mask(owner->first_page, owner->page_count);
        }
    }
}

static size_t system_trim(void *ctx, tn_trim_level level) {
    system_source *const source = ctx;
    size_t given_bytes = 0;
    tn_lock_acquire(&source->lock);
    drop_empty_spans(source);
    chunk *next = NULL;
    for (chunk *owner = source->first_chunk; owner != NULL; owner = next) {
        next = owner->next;
        if (level == TN_TRIM_HARD && owner->used_pages == 1) {
            drop_chunk(source, owner);
            given_bytes += CHUNK_BYTES;
        } else {
            given_bytes += trim_chunk(owner, level == TN_TRIM_HARD ? MADV_DONTNEED : MADV_FREE);
        }
    }
    if (level == TN_TRIM_HARD) given_bytes += tn_region_set_trim(&source->regions);
    tn_lock_release(&source->lock);
    return given_bytes;
}

static void system_stats(void *ctx, tn_page_source_stats *out) {
    system_source *const source = ctx;
    const size_t struct_size = out->struct_size;
    tn_lock_acquire(&source->lock);
    *out = (tn_page_source_stats){.struct_size = struct_size,
                                  .held_bytes = source->regions.held_bytes,
                                  .used_bytes = source->used_bytes,
                                  .alloc_count = source->regions.map_calls,
                                  .free_count = source->regions.unmap_calls,
                                  .mapping_count = source->regions.mapping_count};
    tn_lock_release(&source->lock);
}

tn_page_source tn_page_source_system_table(void *ctx) {
    return (tn_page_source){.struct_size = sizeof(tn_page_source),
                            .name = "system",
                            .ctx = ctx,
                            .alloc = system_alloc,
                            .free = system_free,
                            .trim = system_trim,
                            .stats = system_stats};
}

size_t tn_page_source_system_soften(void *data, size_t size_bytes) {
    const uintptr_t first = tn_align_up((uintptr_t)data, TN_PAGE_BYTES);
    const uintptr_t end = ((uintptr_t)data + size_bytes) & ~(uintptr_t)(TN_PAGE_BYTES - 1);
    if (end <= first) return 0;
    return madvise((char *)data + (first - (uintptr_t)data), end - first, MADV_FREE) == 0
               ? end - first
               : 0;
}
