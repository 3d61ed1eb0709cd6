/* What the arenas cost, beside malloc and free of the same sizes in the same process: pairs of
 * allocate and free without a lock (execution arena in a run) and with one (I/O arena), at 1 to
 * 100,000 retained blocks, and export and release of leases in the same and in another thread.
 * Rounds of all candidates alternate, so that a change of clock speed hits all of them; the median
 * round counts. jemalloc and mimalloc take part when their libraries can be opened. Prints a table,
 * then one JSON object. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenure/arena.h>

#define ROUNDS 15
#define PAIRS 200000
#define LEASES 4096
#define PAIR_BYTES 1000
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef void *(*malloc_fn)(size_t);
typedef void (*free_fn)(void *);

typedef struct heap {
    const char *name;
    malloc_fn alloc;
    free_fn free;
} heap;

typedef struct sample {
    const char *what;
    size_t parameter;
    double ns[ROUNDS];
} sample;

typedef struct results {
    sample rows[128];
    size_t count;
} results;

static double now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void must(tn_status status, const char *what) {
    if (status == TN_OK) return;
    (void)fprintf(stderr, "arena_bench: %s: %s\n", what, tn_status_text(status));
    exit(1);
}

static void note(results *all, const char *what, size_t parameter, int round, double ns) {
    for (size_t i = 0; i < all->count; i++) {
        if (all->rows[i].what != what || all->rows[i].parameter != parameter) continue;
        all->rows[i].ns[round] = ns;
        return;
    }
    if (all->count == COUNT_OF(all->rows)) exit(1);
    all->rows[all->count] = (sample){.what = what, .parameter = parameter};
    all->rows[all->count++].ns[round] = ns;
}

static double arena_pairs(tn_arena *arena, size_t size_bytes) {
    const double start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        tn_allocation_handle handle;
        if (tn_arena_allocate(arena, size_bytes, &handle, NULL) != TN_OK) exit(1);
        (void)tn_allocation_handle_reset(&handle);
    }
    return (now_ns() - start) / PAIRS;
}

static double heap_pairs(const heap *with, size_t size_bytes) {
    const double start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        void *const data = with->alloc(size_bytes);
        __asm__ volatile("" : : "r"(data) : "memory");
        with->free(data);
    }
    return (now_ns() - start) / PAIRS;
}

/* Leaves `count` blocks of `size_bytes` on the free lists. */
static void retain_blocks(tn_arena *arena, size_t count, size_t size_bytes) {
    tn_allocation_handle *const handles = calloc(count, sizeof *handles);
    for (size_t i = 0; i < count; i++) {
        must(tn_arena_allocate(arena, size_bytes, &handles[i], NULL), "retain");
    }
    for (size_t i = 0; i < count; i++) (void)tn_allocation_handle_reset(&handles[i]);
    free(handles);
}

static double lease_pairs(tn_io_arena *io) {
    tn_io_lease *lease = NULL;
    double total_ns = 0;
    for (int batch = 0; batch < 50; batch++) {
        tn_allocation_handle handles[64];
        for (int i = 0; i < 64; i++) {
            must(tn_io_arena_allocate(io, PAIR_BYTES, &handles[i], NULL), "allocate");
        }
        const double start = now_ns();
        for (int i = 0; i < 64; i++) {
            (void)!tn_io_arena_export(io, &handles[i], &lease, NULL);
            tn_io_lease_release(lease);
        }
        total_ns += now_ns() - start;
    }
    return total_ns / (50 * 64);
}

typedef struct release_job {
    tn_io_lease **leases;
    double ns;
} release_job;

static void *release_all(void *argument) {
    release_job *const job = argument;
    const double start = now_ns();
    for (int i = 0; i < LEASES; i++) tn_io_lease_release(job->leases[i]);
    job->ns = now_ns() - start;
    return NULL;
}

/* Exports here, releases there; the mean over all leases held at once. */
static double lease_across_threads(tn_io_arena *io) {
    static const size_t count = LEASES;
    tn_allocation_handle *const handles = calloc(count, sizeof *handles);
    tn_io_lease **const leases = calloc(count, sizeof(tn_io_lease *));
    release_job job = {.leases = leases};
    pthread_t thread;
    for (size_t i = 0; i < count; i++) {
        must(tn_io_arena_allocate(io, PAIR_BYTES, &handles[i], NULL), "allocate");
    }
    const double start = now_ns();
    for (size_t i = 0; i < count; i++) {
        (void)!tn_io_arena_export(io, &handles[i], &leases[i], NULL);
    }
    const double export_ns = now_ns() - start;
    if (pthread_create(&thread, NULL, release_all, &job) != 0) exit(1);
    (void)pthread_join(thread, NULL);
    free(leases);
    free(handles);
    return (export_ns + job.ns) / (double)count;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(results *all) {
    (void)printf("%-44s %10s %10s %10s\n", "case", "parameter", "median ns", "best ns");
    for (size_t i = 0; i < all->count; i++) {
        sample *const row = &all->rows[i];
        qsort(row->ns, ROUNDS, sizeof row->ns[0], compare_doubles);
        (void)printf("%-44s %10zu %10.1f %10.1f\n", row->what, row->parameter, row->ns[ROUNDS / 2],
                     row->ns[0]);
    }
    (void)printf("{\"bench\": \"arena\", \"rounds\": %d, \"rows\": [", ROUNDS);
    for (size_t i = 0; i < all->count; i++) {
        const sample *const row = &all->rows[i];
        (void)printf(
            "%s{\"case\": \"%s\", \"parameter\": %zu, \"median_ns\": %.2f, "
            "\"best_ns\": %.2f}",
            i == 0 ? "" : ", ", row->what, row->parameter, row->ns[ROUNDS / 2], row->ns[0]);
    }
    (void)printf("]}\n");
}

static size_t open_heaps(heap out[3]) {
    static const char *const libraries[][4] = {
        {"jemalloc", "libjemalloc.so.2", "malloc", "free"},
        {"mimalloc", "libmimalloc.so.2", "mi_malloc", "mi_free"},
    };
    size_t count = 0;
    out[count++] = (heap){.name = "glibc malloc + free", .alloc = malloc, .free = free};
    for (size_t i = 0; i < COUNT_OF(libraries); i++) {
        void *const library = dlopen(libraries[i][1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) continue;
        heap opened = {.name = libraries[i][0]};
        *(void **)&opened.alloc = dlsym(library, libraries[i][2]);
        *(void **)&opened.free = dlsym(library, libraries[i][3]);
        if (opened.alloc != NULL && opened.free != NULL) out[count++] = opened;
    }
    return count;
}

typedef struct candidates {
    tn_execution_arena *execution;
    tn_io_arena *io;
    heap heaps[3];
    size_t heap_count;
} candidates;

static void run_round(candidates *with, results *all, int round) {
    static const size_t sizes[] = {64, PAIR_BYTES, 10000, 1 << 20, 16 << 20};
    tn_arena *const execution = tn_execution_arena_as_arena(with->execution);
    tn_arena *const io = tn_io_arena_as_arena(with->io);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        must(tn_execution_arena_begin_run(with->execution, NULL), "begin");
        note(all, "execution arena pair, in a run", sizes[i], round,
             arena_pairs(execution, sizes[i]));
        tn_execution_arena_end_run(with->execution);
        note(all, "execution arena pair, outside of a run", sizes[i], round,
             arena_pairs(execution, sizes[i]));
        note(all, "I/O arena pair", sizes[i], round, arena_pairs(io, sizes[i]));
        for (size_t h = 0; h < with->heap_count; h++) {
            note(all, with->heaps[h].name, sizes[i], round, heap_pairs(&with->heaps[h], sizes[i]));
        }
    }
    note(all, "lease export + release, same thread", 1, round, lease_pairs(with->io));
    note(all, "lease export + release, other thread", LEASES, round,
         lease_across_threads(with->io));
}

static void run_retained(tn_allocator *root, results *all) {
    for (size_t retained = 1; retained <= 100000; retained *= 10) {
        tn_execution_arena *execution = NULL;
        tn_io_arena *io = NULL;
        must(tn_execution_arena_create(root, NULL, &execution, NULL), "arena");
        must(tn_io_arena_create(root, NULL, &io, NULL), "arena");
        retain_blocks(tn_execution_arena_as_arena(execution), retained, PAIR_BYTES);
        retain_blocks(tn_io_arena_as_arena(io), retained, PAIR_BYTES);
        for (int round = 0; round < ROUNDS; round++) {
            must(tn_execution_arena_begin_run(execution, NULL), "begin");
            note(all, "execution arena pair by retained blocks", retained, round,
                 arena_pairs(tn_execution_arena_as_arena(execution), PAIR_BYTES));
            tn_execution_arena_end_run(execution);
            note(all, "I/O arena pair by retained blocks", retained, round,
                 arena_pairs(tn_io_arena_as_arena(io), PAIR_BYTES));
        }
        tn_execution_arena_destroy(execution);
        tn_io_arena_release(io);
    }
}

int main(void) {
    static results all;
    candidates with = {0};
    tn_allocator *root = NULL;
    must(tn_allocator_create_root(NULL, &root, NULL), "root");
    must(tn_execution_arena_create(root, NULL, &with.execution, NULL), "arena");
    must(tn_io_arena_create(root, NULL, &with.io, NULL), "arena");
    with.heap_count = open_heaps(with.heaps);
    for (int round = 0; round < ROUNDS; round++) run_round(&with, &all, round);
    run_retained(root, &all);
    tn_execution_arena_destroy(with.execution);
    tn_io_arena_release(with.io);
    tn_allocator_release(root);
    print(&all);
    return 0;
}
