/* A random trace against a model that knows the rules in their plainest form: one array of retained
 * blocks in order of return, searched from end to end. After every step the figures, the address
 * chosen and the contents of what is given back must agree. */
#include <stdlib.h>

#include "memory/arena_fixture.h"
#include "memory/poison.h"

#if defined(TN_HAS_ASAN) || defined(__SANITIZE_THREAD__)
#define STEPS 100000
#else
#define STEPS 1000000
#endif
#define SLOTS 96
#define MODEL_MAX 4096
#define FITS_TRIED 32
#define RECENT 16
#define CLASS_TABLE_UNITS 65536 /* classes of all sizes below 4 MiB, by units of 64 bytes */

typedef struct model_block {
    size_t capacity_bytes;
    size_t class_number;
    const void *data;
} model_block;

typedef struct model {
    model_block retained[MODEL_MAX]; /* oldest first */
    size_t retained_count;
    uint64_t retained_bytes;
    uint64_t live_bytes;
    uint64_t live_capacity_bytes;
    uint64_t live_peak_bytes;
    uint64_t leased_bytes;
    uint64_t cap_bytes;
    uint64_t largest_bytes;
    uint64_t tick;
    uint64_t sys_frees;
    uint64_t hits;
    uint64_t class_used_at[400];
    uint16_t class_of_units[CLASS_TABLE_UNITS];
} model;

/* Number of the class that holds `capacity_bytes`, counted up step by step. */
static size_t counted_class(size_t capacity_bytes) {
    size_t number = 0;
    size_t size_bytes = 64;
    size_t step_bytes = 64;
    while (size_bytes + step_bytes <= capacity_bytes) {
        size_bytes += step_bytes;
        number++;
        if (number >= 15 && (number - 15) % 8 == 0) step_bytes *= 2;
    }
    return number;
}

static size_t model_class(const model *m, size_t capacity_bytes) {
    return m->class_of_units[capacity_bytes / 64];
}

static model *model_create(void) {
    model *const m = calloc(1, sizeof *m);
    m->cap_bytes = TN_RETENTION_UNLIMITED;
    for (size_t units = 1; units < CLASS_TABLE_UNITS; units++) {
        m->class_of_units[units] = (uint16_t)counted_class(64 * units);
    }
    return m;
}

static size_t model_capacity(const model *m, size_t size_bytes) {
    if (size_bytes > 61440) return (size_bytes + 4095) / 4096 * 4096;
    size_t capacity_bytes = (size_bytes + 63) / 64 * 64;
    while (capacity_bytes > 64 &&
           model_class(m, capacity_bytes) == model_class(m, capacity_bytes - 64)) {
        capacity_bytes += 64; /* up to where the next class begins */
    }
    return capacity_bytes;
}

static void model_remove(model *m, size_t at) {
    m->retained_bytes -= m->retained[at].capacity_bytes;
    m->retained_count--;
    memmove(&m->retained[at], &m->retained[at + 1],
            (m->retained_count - at) * sizeof m->retained[0]);
}

static void model_shrink(model *m, uint64_t target_bytes) {
    while (m->retained_count > 0 && m->retained_bytes > target_bytes) {
        model_remove(m, 0);
        m->sys_frees++;
    }
}

/* Index of the block that serves a request, or MODEL_MAX. */
static size_t model_find(const model *m, size_t size_bytes) {
    const size_t base_bytes = size_bytes < 64 ? 64 : size_bytes;
    const size_t bound_bytes =
        size_bytes >= (1 << 20) ? size_bytes + size_bytes / 4 : 2 * base_bytes;
    const size_t exact_bytes = model_capacity(m, size_bytes);
    size_t first_class = model_class(m, exact_bytes);
    const size_t last_class = model_class(m, bound_bytes);
    for (size_t c = first_class; c <= last_class; c++) {
        size_t best = MODEL_MAX;
        size_t tried = 0;
        for (size_t i = m->retained_count; i > 0; i--) {
            const size_t capacity_bytes = m->retained[i - 1].capacity_bytes;
            if (m->retained[i - 1].class_number != c) continue;
            if (c >= 63 && ++tried > FITS_TRIED) break;
            if (capacity_bytes < size_bytes || capacity_bytes > bound_bytes) continue;
            if (best == MODEL_MAX || capacity_bytes < m->retained[best].capacity_bytes)
                best = i - 1;
            if (m->retained[best].capacity_bytes == exact_bytes) break;
        }
        if (best != MODEL_MAX) return best;
    }
    return MODEL_MAX;
}

static void model_replace_undersized(model *m, size_t capacity_bytes) {
    const size_t class_number = model_class(m, capacity_bytes);
    for (size_t i = m->retained_count; i > 0; i--) {
        const size_t c = m->retained[i - 1].class_number;
        if (c >= class_number) continue;
        if (m->tick - m->class_used_at[c] <= RECENT) continue;
        model_remove(m, i - 1);
        m->sys_frees++;
    }
    if (capacity_bytes <= m->largest_bytes) return;
    const uint64_t live = m->live_capacity_bytes;
    model_shrink(m, live < capacity_bytes ? capacity_bytes - live : 0);
}

/* Returns the address that the arena must answer with, NULL for a new block. */
static const void *model_allocate(model *m, size_t size_bytes, size_t *out_capacity_bytes) {
    const void *data = NULL;
    m->tick++;
    const size_t found = model_find(m, size_bytes);
    *out_capacity_bytes = model_capacity(m, size_bytes);
    if (found != MODEL_MAX) {
        data = m->retained[found].data;
        *out_capacity_bytes = m->retained[found].capacity_bytes;
        model_remove(m, found);
        m->hits++;
    } else {
        model_replace_undersized(m, *out_capacity_bytes);
        if (*out_capacity_bytes > m->largest_bytes) m->largest_bytes = *out_capacity_bytes;
    }
    m->class_used_at[model_class(m, *out_capacity_bytes)] = m->tick;
    m->live_bytes += size_bytes;
    m->live_capacity_bytes += *out_capacity_bytes;
    if (m->live_bytes > m->live_peak_bytes) m->live_peak_bytes = m->live_bytes;
    return data;
}

static void model_return(model *m, const tn_allocation_handle *handle) {
    m->live_bytes -= handle->size_bytes;
    m->live_capacity_bytes -= handle->capacity_bytes;
    if (handle->capacity_bytes > m->cap_bytes) {
        m->sys_frees++;
        return;
    }
    assert_true(m->retained_count < MODEL_MAX);
    m->retained[m->retained_count++] =
        (model_block){.capacity_bytes = handle->capacity_bytes,
                      .class_number = model_class(m, handle->capacity_bytes),
                      .data = handle->data};
    m->retained_bytes += handle->capacity_bytes;
    model_shrink(m, m->cap_bytes);
}

static void compare(const model *m, const tn_arena *arena) {
    const tn_arena_stats stats = stats_of(arena);
    assert_int_equal(stats.live_bytes, m->live_bytes);
    assert_int_equal(stats.live_capacity_bytes, m->live_capacity_bytes);
    assert_int_equal(stats.live_peak_bytes, m->live_peak_bytes);
    assert_int_equal(stats.retained_bytes, m->retained_bytes);
    assert_int_equal(stats.retained_count, m->retained_count);
    assert_int_equal(stats.leased_bytes, m->leased_bytes);
    assert_int_equal(stats.sys_frees, m->sys_frees);
    assert_int_equal(stats.hits, m->hits);
}

typedef struct slot {
    tn_allocation_handle handle; /* its figures, also while the block is leased */
    tn_io_lease *lease;
    unsigned char mark;
    bool is_used;
} slot;

static uint32_t next_random(uint32_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Mostly small, some around the border of pages, a few large. */
static size_t random_size(uint32_t *seed) {
    const uint32_t kind = next_random(seed) % 100;
    const uint32_t value = next_random(seed);
    if (kind < 60) return 1 + value % 3000;
    if (kind < 90) return 1 + value % (70 * KIB);
    if (kind < 99) return 60 * KIB + value % (200 * KIB);
    return MIB - 8 * KIB + value % (MIB / 2);
}

static void step_allocate(const arena_fixture *fixture, model *m, slot *at, uint32_t *seed) {
    const size_t size_bytes = random_size(seed);
    size_t capacity_bytes = 0;
    const void *const expected = model_allocate(m, size_bytes, &capacity_bytes);
    at->handle = take(fixture, size_bytes);
    at->is_used = true;
    at->mark = (unsigned char)next_random(seed);
    if (expected != NULL) assert_ptr_equal(at->handle.data, expected);
    assert_int_equal(at->handle.capacity_bytes, capacity_bytes);
    unsigned char *const bytes = at->handle.data;
    bytes[0] = at->mark;
    bytes[size_bytes / 2] = at->mark;
    bytes[size_bytes - 1] = at->mark;
}

static void step_give(const arena_fixture *fixture, model *m, slot *at, uint32_t choice) {
    const unsigned char *const bytes = at->handle.data;
    assert_int_equal(bytes[0], at->mark);
    assert_int_equal(bytes[at->handle.size_bytes / 2], at->mark);
    assert_int_equal(bytes[at->handle.size_bytes - 1], at->mark);
    if (fixture->io != NULL && at->lease == NULL && choice % 3 == 0) {
        tn_allocation_handle handle = at->handle;
        ASSERT_OK(tn_io_arena_export(fixture->io, &handle, &at->lease, NULL));
        m->leased_bytes += at->handle.size_bytes;
        return;
    }
    if (at->lease != NULL) {
        m->leased_bytes -= at->handle.size_bytes;
        tn_io_lease_release(at->lease);
    } else {
        tn_allocation_handle handle = at->handle;
        give(&handle);
    }
    model_return(m, &at->handle);
    memset(at, 0, sizeof *at);
}

static void step_settings(const arena_fixture *fixture, model *m, uint32_t choice) {
    const uint64_t target_bytes = choice % 4 == 0 ? TN_RETENTION_UNLIMITED : choice % (6 * MIB);
    if (choice % 3 == 0) {
        (void)tn_arena_set_retention_cap(fixture->arena, target_bytes);
        m->cap_bytes = target_bytes;
        model_shrink(m, target_bytes);
    } else if (choice % 3 == 1) {
        (void)tn_arena_shrink(fixture->arena, target_bytes);
        model_shrink(m, target_bytes);
    } else {
        (void)tn_arena_trim(fixture->arena, TN_TRIM_HARD);
        model_shrink(m, 0);
        if (m->live_capacity_bytes == 0) m->largest_bytes = 0;
    }
}

static void trace(arena_fixture *fixture) {
    model *const m = model_create();
    slot *const slots = calloc(SLOTS, sizeof *slots);
    uint32_t seed = 20240817;
    for (int step = 0; step < STEPS; step++) {
        slot *const at = &slots[next_random(&seed) % SLOTS];
        if (next_random(&seed) % 1500 == 0) {
            step_settings(fixture, m, next_random(&seed));
        } else if (at->is_used) {
            step_give(fixture, m, at, next_random(&seed));
        } else {
            step_allocate(fixture, m, at, &seed);
        }
        compare(m, fixture->arena);
        if (step % 2000 == 0) fixture_check(fixture);
    }
    for (int i = 0; i < SLOTS; i++) {
        while (slots[i].is_used) step_give(fixture, m, &slots[i], 1);
    }
    compare(m, fixture->arena);
    free(slots);
    free(m);
}

static void scenario_14_execution_arena_agrees_with_the_model(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, false);
    trace(&fixture);
    fixture_deinit(&fixture);
}

static void scenario_14_io_arena_agrees_with_the_model(void **state) {
    (void)state;
    arena_fixture fixture;
    fixture_init(&fixture, true);
    trace(&fixture);
    fixture_deinit(&fixture);
}

/* Sizes from a fixed set in a fixed order: after a few rounds nothing is asked of the system. */
static void repeated_rounds_of_many_sizes_become_free(void **state) {
    (void)state;
    arena_fixture fixture;
    size_t sizes[50];
    uint32_t seed = 99;
    fixture_init(&fixture, true);
    for (int i = 0; i < 50; i++) sizes[i] = random_size(&seed);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 50; i++) warm(&fixture, sizes[i]);
    }
    const tn_arena_stats before = stats_of(fixture.arena);

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 50; i++) warm(&fixture, sizes[i]);
    }

    assert_int_equal(stats_of(fixture.arena).sys_allocs, before.sys_allocs);
    assert_int_equal(stats_of(fixture.arena).sys_frees, before.sys_frees);
    fixture_deinit(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(scenario_14_execution_arena_agrees_with_the_model),
        T(scenario_14_io_arena_agrees_with_the_model),
        T(repeated_rounds_of_many_sizes_become_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
