/* The tree's arithmetic, its refusals, closing, and that its numbers add up after every step. */
#include <stdlib.h>
#include <string.h>

#include <tenure/memory.h>

#include "harness.h"
#include "oom_sweep.h"

static tn_allocator *make_root(uint64_t limit_bytes) {
    tn_allocator *root = NULL;
    const tn_allocator_options options = {.limit_bytes = limit_bytes};
    ASSERT_OK(tn_allocator_create_root(&options, &root, NULL));
    return root;
}

static tn_allocator *make_child(tn_allocator *parent, const char *name, uint64_t reservation_bytes,
                                uint64_t limit_bytes) {
    tn_allocator *child = NULL;
    const tn_allocator_options options = {
        .name = name, .reservation_bytes = reservation_bytes, .limit_bytes = limit_bytes};
    ASSERT_OK(tn_allocator_create_child(parent, &options, &child, NULL));
    return child;
}

static void check(const tn_allocator *root) {
    tn_error err;
    if (tn_allocator_verify(root, &err) != TN_OK) fail_msg("%s", err.message);
}

static tn_allocator_stats stats_of(const tn_allocator *allocator) {
    tn_allocator_stats stats = {.struct_size = sizeof stats};
    tn_allocator_get_stats(allocator, &stats);
    return stats;
}

static void buffer_create_charges_the_request_and_aligns(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 63, 64, 65, 100, 4095, 61440, 61441, 65536, 1000000, 3000000};
    tn_allocator *const root = make_root(0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tn_buffer buffer;

        ASSERT_OK(tn_buffer_create(root, sizes[i], 0, &buffer, NULL));

        assert_int_equal((uintptr_t)buffer.data % TN_BUFFER_ALIGNMENT, 0);
        if (sizes[i] >= 65536) assert_int_equal((uintptr_t)buffer.data % 4096, 0);
        if (sizes[i] >= 2 << 20) assert_int_equal((uintptr_t)buffer.data % (2 << 20), 0);
        assert_int_equal(tn_allocator_charged(root), sizes[i]);
        memset(buffer.data, 7, sizes[i]);
        check(root);
        ASSERT_OK(tn_buffer_release(&buffer));
        assert_int_equal(tn_allocator_charged(root), 0);
        check(root);
    }
    ASSERT_OK(tn_allocator_close(root, NULL));
    tn_allocator_release(root);
}

static void buffer_create_honours_every_alignment(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    for (size_t align = 1; align <= (size_t)8 << 20; align *= 2) {
        for (size_t size_bytes = 1; size_bytes <= (size_t)1 << 23;
             size_bytes = size_bytes * 5 + 3) {
            tn_buffer buffer;
            ASSERT_OK(tn_buffer_create(root, size_bytes, align, &buffer, NULL));
            assert_int_equal((uintptr_t)buffer.data % align, 0);
            ((char *)buffer.data)[size_bytes - 1] = 1;
            ASSERT_OK(tn_buffer_release(&buffer));
        }
    }
    check(root);
    tn_allocator_release(root);
}

static void buffer_create_of_zero_bytes_is_the_sentinel(void **state) {
    (void)state;
    tn_allocator *const root = make_root(1);
    tn_buffer a;
    tn_buffer b;

    ASSERT_OK(tn_buffer_create(root, 0, 0, &a, NULL));
    ASSERT_OK(tn_buffer_create(root, 0, 0, &b, NULL));

    assert_non_null(a.data);
    assert_ptr_equal(a.data, b.data);
    assert_int_equal((uintptr_t)a.data % TN_BUFFER_ALIGNMENT, 0);
    assert_int_equal(tn_allocator_charged(root), 0);
    ASSERT_OK(tn_buffer_retain(&a, NULL));
    ASSERT_OK(tn_buffer_release(&a));
    ASSERT_STATUS(TN_DEAD, tn_buffer_release(&a));
    ASSERT_OK(tn_buffer_release(&b));
    tn_allocator_release(root);
}

static void buffer_create_refuses_absurd_requests(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_buffer buffer;

    ASSERT_STATUS(TN_OUT_OF_MEMORY, tn_buffer_create(root, SIZE_MAX, 0, &buffer, NULL));
    assert_null(buffer.ledger);
    ASSERT_STATUS(TN_OUT_OF_MEMORY, tn_buffer_create(root, SIZE_MAX - 63, 0, &buffer, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_buffer_create(root, 10, 3, &buffer, NULL));

    assert_int_equal(tn_allocator_charged(root), 0);
    assert_null(tn_allocator_malloc(root, SIZE_MAX));
    assert_null(tn_allocator_calloc(root, SIZE_MAX / 2, 3));
    check(root);
    tn_allocator_release(root);
}

static void buffer_release_twice_is_dead(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_buffer buffer;
    ASSERT_OK(tn_buffer_create(root, 100, 0, &buffer, NULL));
    tn_buffer copy = buffer;
    ASSERT_OK(tn_buffer_retain(&buffer, NULL));
    ASSERT_OK(tn_buffer_release(&buffer));
    assert_int_equal(tn_allocator_charged(root), 100);
    buffer = copy;
    ASSERT_OK(tn_buffer_release(&buffer));

    ASSERT_STATUS(TN_DEAD, tn_buffer_retain(&copy, NULL));
    ASSERT_STATUS(TN_DEAD, tn_buffer_release(&copy));

    assert_int_equal(tn_allocator_charged(root), 0);
    check(root);
    tn_allocator_release(root);
}

static void buffer_slice_outside_is_out_of_range(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_buffer buffer;
    tn_buffer slice;
    ASSERT_OK(tn_buffer_create(root, 100, 0, &buffer, NULL));

    ASSERT_OK(tn_buffer_slice(&buffer, 40, 60, &slice, NULL));
    assert_ptr_equal(slice.data, (char *)buffer.data + 40);
    ASSERT_OK(tn_buffer_slice(&slice, 60, 0, &slice, NULL));
    ASSERT_STATUS(TN_OUT_OF_RANGE, tn_buffer_slice(&buffer, 41, 60, &slice, NULL));
    ASSERT_STATUS(TN_OUT_OF_RANGE, tn_buffer_slice(&buffer, SIZE_MAX, 2, &slice, NULL));

    ASSERT_OK(tn_buffer_release(&buffer));
    tn_allocator_release(root);
}

static void charge_past_limit_names_who_refused(void **state) {
    (void)state;
    tn_allocator *const root = make_root(8192);
    tn_allocator *const mid = make_child(root, "mid", 0, 4096);
    tn_allocator *const leaf = make_child(mid, "leaf", 2048, 8192);
    tn_error err;
    tn_buffer buffer;

    ASSERT_STATUS(TN_LIMIT, tn_buffer_create(leaf, 8192, 0, &buffer, &err));

    assert_string_equal(err.allocator, "root/mid");
    assert_int_equal(err.requested_bytes, 8192);
    assert_int_equal(err.rounded_bytes, 8192);
    assert_int_equal(err.used_bytes, 2048);
    assert_int_equal(err.limit_bytes, 4096);
    assert_non_null(strstr(err.message, "root/mid"));
    assert_int_equal(stats_of(leaf).peak_bytes, 0);
    assert_int_equal(stats_of(mid).peak_bytes, 2048);
    assert_int_equal(stats_of(mid).refusal_count, 1);
    check(root);
    ASSERT_OK(tn_buffer_create(leaf, 4096, 0, &buffer, &err));
    ASSERT_OK(tn_buffer_release(&buffer));
    tn_allocator_release(leaf);
    tn_allocator_release(mid);
    tn_allocator_release(root);
}

static void reservation_is_held_from_the_parent(void **state) {
    (void)state;
    tn_allocator *const root = make_root(100);
    tn_allocator *const child = make_child(root, "child", 40, 90);
    tn_buffer a;
    tn_buffer b;
    tn_allocator *refused = NULL;
    assert_int_equal(tn_allocator_charged(root), 40);
    assert_int_equal(tn_allocator_charged(child), 0);
    assert_int_equal(stats_of(root).promised_bytes, 40);

    ASSERT_OK(tn_buffer_create(child, 30, 0, &a, NULL));
    assert_int_equal(tn_allocator_charged(root), 40);
    ASSERT_OK(tn_buffer_create(child, 30, 0, &b, NULL));
    assert_int_equal(tn_allocator_charged(root), 60);
    check(root);
    const tn_allocator_options too_much = {.reservation_bytes = 41};
    ASSERT_STATUS(TN_LIMIT, tn_allocator_create_child(root, &too_much, &refused, NULL));
    assert_null(refused);
    ASSERT_OK(tn_buffer_release(&a));
    ASSERT_OK(tn_buffer_release(&b));

    assert_int_equal(tn_allocator_charged(root), 40);
    check(root);
    tn_allocator_release(child);
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

static void close_is_not_held_up_by_a_closed_child(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_allocator *const child = make_child(root, "columns", 0, 0);
    ASSERT_OK(tn_allocator_close(child, NULL));

    ASSERT_OK(tn_allocator_close(root, NULL));

    tn_allocator_release(root);
    tn_allocator_release(child);
}

static void close_with_memory_out_is_busy_and_changes_nothing(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_allocator *const child = make_child(root, "columns", 0, 0);
    tn_error err;
    tn_buffer buffer;
    ASSERT_OK(tn_buffer_create(child, 100, 0, &buffer, NULL));

    ASSERT_STATUS(TN_BUSY, tn_allocator_close(root, &err));
    assert_non_null(strstr(err.message, "columns (100 bytes)"));
    ASSERT_STATUS(TN_BUSY, tn_allocator_close(child, &err));
    assert_non_null(strstr(err.message, "1 blocks"));

    ASSERT_OK(tn_buffer_release(&buffer));
    ASSERT_OK(tn_buffer_create(child, 100, 0, &buffer, NULL));
    ASSERT_OK(tn_buffer_release(&buffer));
    ASSERT_OK(tn_allocator_close(child, &err));
    ASSERT_STATUS(TN_CLOSED, tn_allocator_close(child, &err));
    ASSERT_STATUS(TN_CLOSED, tn_buffer_create(child, 100, 0, &buffer, &err));
    assert_null(tn_allocator_malloc(child, 1));
    tn_allocator_release(child);
    ASSERT_OK(tn_allocator_close(root, &err));
    tn_allocator_release(root);
}

static void release_with_memory_out_keeps_name_and_charge(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_allocator *child = make_child(root, "orphan", 500, 0);
    char text[2048];
    tn_buffer buffer;
    ASSERT_OK(tn_buffer_create(child, 100, 0, &buffer, NULL));

    tn_allocator_release(child);

    assert_int_equal(tn_allocator_charged(root), 100);
    assert_true(tn_allocator_report(root, text, sizeof text) < sizeof text);
    assert_non_null(strstr(text, "orphan (closed)"));
    check(root);
    ASSERT_OK(tn_buffer_release(&buffer));
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_report(root, text, sizeof text);
    assert_null(strstr(text, "orphan"));
    ASSERT_OK(tn_allocator_close(root, NULL));
    tn_allocator_release(root);
}

static void buffer_outlives_every_handle_of_its_tree(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_allocator *const child = make_child(root, "child", 0, 0);
    tn_buffer buffer;
    ASSERT_OK(tn_buffer_create(child, 100, 0, &buffer, NULL));
    tn_allocator_release(root);
    tn_allocator_release(child);

    memset(buffer.data, 1, buffer.size_bytes);

    ASSERT_OK(tn_buffer_release(&buffer));
}

static void mapped_bytes_are_charged_but_not_held(void **state) {
    (void)state;
    tn_allocator *const root = make_root(10000);
    const uint64_t held_before = stats_of(root).held_bytes;
    tn_error err;

    ASSERT_OK(tn_allocator_charge_mapped(root, 6000, &err));
    ASSERT_OK(tn_allocator_charge(root, 3000, &err));
    ASSERT_STATUS(TN_LIMIT, tn_allocator_charge(root, 1001, &err));

    assert_int_equal(err.used_bytes, 9000);
    assert_int_equal(stats_of(root).charged_bytes, 9000);
    assert_int_equal(stats_of(root).mapped_bytes, 6000);
    assert_int_equal(stats_of(root).external_bytes, 3000);
    assert_int_equal(stats_of(root).held_bytes, held_before);
    check(root);
    ASSERT_STATUS(TN_BUSY, tn_allocator_close(root, NULL));
    tn_allocator_discharge(root, 3000);
    tn_allocator_discharge_mapped(root, 6000);
    check(root);
    tn_allocator_release(root);
}

static void raw_realloc_keeps_bytes_and_charges_the_difference(void **state) {
    (void)state;
    tn_allocator *const root = make_root(100000);
    unsigned char *data = tn_allocator_malloc(root, 100);
    assert_non_null(data);
    assert_int_equal((uintptr_t)data % 16, 0);
    for (int i = 0; i < 100; i++) data[i] = (unsigned char)i;

    for (size_t size_bytes = 101; size_bytes < 90000; size_bytes += size_bytes / 3) {
        data = tn_allocator_realloc(root, data, size_bytes);
        assert_non_null(data);
        assert_int_equal(tn_allocator_charged(root), size_bytes);
        for (int i = 0; i < 100; i++) assert_int_equal(data[i], i);
        check(root);
    }
    assert_null(tn_allocator_realloc(root, data, 100001));
    data = tn_allocator_realloc(root, data, 50);
    assert_int_equal(tn_allocator_charged(root), 50);
    for (int i = 0; i < 50; i++) assert_int_equal(data[i], i);
    check(root);
    tn_allocator_free(root, data);
    tn_allocator_free(root, NULL);
    assert_int_equal(tn_allocator_charged(root), 0);
    ASSERT_OK(tn_allocator_close(root, NULL));
    tn_allocator_release(root);
}

static void page_source_variable_with_a_bad_value_is_an_error(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_error err;

    assert_int_equal(setenv("TENURE_PAGE_SOURCE", "jemalloc", 1), 0);
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_allocator_create_root(NULL, &root, &err));
    assert_non_null(strstr(err.message, "jemalloc"));
    assert_null(root);
    const tn_allocator_options named = {.page_source_name = "system"};
    ASSERT_OK(tn_allocator_create_root(&named, &root, &err));
    tn_allocator_release(root);
    assert_int_equal(setenv("TENURE_PAGE_SOURCE", "libc", 1), 0);
    ASSERT_OK(tn_allocator_create_root(NULL, &root, &err));
    tn_buffer buffer;
    ASSERT_OK(tn_buffer_create(root, 1000, 0, &buffer, &err));
    check(root);
    ASSERT_OK(tn_buffer_release(&buffer));
    tn_allocator_release(root);
    assert_int_equal(unsetenv("TENURE_PAGE_SOURCE"), 0);
}

static void options_of_another_size_are_checked(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_allocator_options options = {.struct_size = sizeof options + 8};

    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_allocator_create_root(&options, &root, NULL));
    options = (tn_allocator_options){.limit_bytes = 10, .reservation_bytes = 11};
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_allocator_create_root(&options, &root, NULL));
    options = (tn_allocator_options){.reservation_bytes = 11};
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_allocator_create_root(&options, &root, NULL));
    options = (tn_allocator_options){.struct_size = sizeof(size_t) + sizeof(char *), .name = "old"};
    options.limit_bytes = 5; /* behind what an old caller knows */
    ASSERT_OK(tn_allocator_create_root(&options, &root, NULL));
    assert_int_equal(stats_of(root).limit_bytes, 0);
    assert_string_equal(tn_allocator_name(root), "old");
    tn_allocator_release(root);
}

typedef struct caller_source {
    size_t live_bytes;
    size_t live_count;
} caller_source;

static void *caller_alloc(void *ctx, size_t size_bytes, size_t align, unsigned flags,
                          size_t *actual_bytes) {
    caller_source *const source = ctx;
    (void)flags;
    *actual_bytes = (size_bytes + align + 255) / 256 * 256;
    source->live_bytes += size_bytes;
    source->live_count++;
    return aligned_alloc(align < 16 ? 16 : align, (*actual_bytes + align - 1) / align * align);
}

static void caller_free(void *ctx, void *data, size_t size_bytes, size_t align) {
    caller_source *const source = ctx;
    (void)align;
    source->live_bytes -= size_bytes;
    source->live_count--;
    free(data);
}

static void callers_page_source_serves_the_whole_tree(void **state) {
    (void)state;
    caller_source seen = {0};
    const tn_page_source table = {
        .name = "mine", .ctx = &seen, .alloc = caller_alloc, .free = caller_free};
    const tn_allocator_options options = {.page_source = &table};
    tn_allocator *root = NULL;
    tn_buffer buffer;
    ASSERT_OK(tn_allocator_create_root(&options, &root, NULL));
    tn_allocator *const child = make_child(root, "child", 0, 0);
    ASSERT_OK(tn_buffer_create(child, 1000, 0, &buffer, NULL));

    assert_true(seen.live_bytes > 1000);
    assert_int_equal(stats_of(child).slack_bytes, 280);
    check(root);

    ASSERT_OK(tn_buffer_release(&buffer));
    tn_allocator_release(child);
    tn_allocator_release(root);
    assert_int_equal(seen.live_bytes, 0);
    assert_int_equal(seen.live_count, 0);
}

static void child_may_have_a_page_source_of_its_own(void **state) {
    (void)state;
    caller_source seen = {0};
    const tn_page_source table = {
        .name = "mine", .ctx = &seen, .alloc = caller_alloc, .free = caller_free};
    const tn_allocator_options options = {.page_source = &table};
    tn_allocator *const root = make_root(0);
    tn_allocator *child = NULL;
    tn_buffer buffer;
    ASSERT_OK(tn_allocator_create_child(root, &options, &child, NULL));

    ASSERT_OK(tn_buffer_create(child, 1000, 0, &buffer, NULL));

    assert_int_equal(seen.live_bytes, 1000);
    check(root);
    ASSERT_OK(tn_buffer_release(&buffer));
    assert_int_equal(seen.live_count, 0);
    tn_allocator_release(child);
    tn_allocator_release(root);
}

static bool count_nodes(void *ctx, const tn_allocator *allocator, int depth) {
    int *const counts = ctx;
    (void)stats_of(allocator); /* takes the lock: the walk must not hold it */
    counts[depth]++;
    return true;
}

static void visit_sees_every_node_at_its_depth(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_allocator *const a = make_child(root, "a", 0, 0);
    tn_allocator *const b = make_child(root, "b", 0, 0);
    tn_allocator *const c = make_child(b, "c", 0, 0);
    int counts[4] = {0};

    tn_allocator_visit(root, count_nodes, counts);

    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 2);
    assert_int_equal(counts[2], 1);
    tn_allocator_release(a);
    tn_allocator_release(b);
    tn_allocator_release(c);
    tn_allocator_release(root);
}

static void report_needs_what_it_says(void **state) {
    (void)state;
    tn_allocator *const root = make_root(1 << 20);
    char small[10];
    char text[1024];

    const size_t needed = tn_allocator_report(root, NULL, 0);
    assert_true(needed < sizeof text);
    assert_int_equal(tn_allocator_report(root, small, sizeof small), needed);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_int_equal(tn_allocator_report(root, text, sizeof text), needed);
    assert_int_equal(strlen(text), needed - 1);
    assert_non_null(strstr(text, "1.0 MiB"));
    tn_allocator_release(root);
}

static void set_limit_below_use_refuses_only_new_requests(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_buffer a;
    tn_buffer b;
    ASSERT_OK(tn_buffer_create(root, 1000, 0, &a, NULL));

    tn_allocator_set_limit(root, 500);

    ASSERT_STATUS(TN_LIMIT, tn_buffer_create(root, 1, 0, &b, NULL));
    ASSERT_OK(tn_buffer_release(&a));
    ASSERT_OK(tn_buffer_create(root, 500, 0, &b, NULL));
    ASSERT_OK(tn_buffer_release(&b));
    assert_int_equal(stats_of(root).peak_bytes, 1000);
    tn_allocator_reset_peak(root);
    assert_int_equal(stats_of(root).peak_bytes, 0);
    tn_allocator_release(root);
}

static void trim_gives_empty_chunks_back(void **state) {
    (void)state;
    tn_allocator *const root = make_root(0);
    tn_buffer buffers[200];
    for (int i = 0; i < 200; i++) {
        ASSERT_OK(tn_buffer_create(root, 30000, 0, &buffers[i], NULL));
        memset(buffers[i].data, 1, 30000);
    }
    for (int i = 0; i < 200; i++) ASSERT_OK(tn_buffer_release(&buffers[i]));

    (void)tn_allocator_trim(root, TN_TRIM_HARD);

    /* of more than 6 MiB, the few chunks stay in which root and records lie */
    assert_true(stats_of(root).held_bytes <= (size_t)4 * 270000);
    assert_int_equal(tn_allocator_trim(root, TN_TRIM_HARD), 0);
    check(root);
    tn_allocator_release(root);
}

#define TRACE_SLOTS 64

static void random_trace_adds_up_after_every_step(void **state) {
    (void)state;
    tn_allocator *const root = make_root(4 << 20);
    tn_allocator *nodes[6];
    nodes[0] = root;
    nodes[1] = make_child(root, "a", 100000, 0);
    nodes[2] = make_child(root, "b", 0, 1 << 20);
    nodes[3] = make_child(nodes[1], "a1", 30000, 300000);
    nodes[4] = make_child(nodes[2], "b1", 500, 0);
    nodes[5] = make_child(nodes[4], "b2", 0, 200000);
    tn_buffer buffers[TRACE_SLOTS] = {0};
    void *raw[TRACE_SLOTS] = {0};
    uint32_t seed = 12345;

    for (int step = 0; step < 100000; step++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t slot = (seed >> 8) % TRACE_SLOTS;
        tn_allocator *const node = nodes[(seed >> 16) % 6];
        const size_t size_bytes = (size_t)1 << ((seed >> 20) % 18);
        if ((seed >> 5) % 2 == 0) {
            if (buffers[slot].ledger != NULL) {
                ASSERT_OK(tn_buffer_release(&buffers[slot]));
            } else {
                (void)!tn_buffer_create(node, size_bytes + seed % 777, 0, &buffers[slot], NULL);
            }
        } else if (raw[slot] != NULL && seed % 3 != 0) {
            tn_allocator_free(node, raw[slot]);
            raw[slot] = NULL;
        } else {
            void *const moved = tn_allocator_realloc(node, raw[slot], size_bytes + seed % 333);
            if (moved != NULL) raw[slot] = moved;
        }
        check(root);
    }
    for (int slot = 0; slot < TRACE_SLOTS; slot++) {
        if (buffers[slot].ledger != NULL) ASSERT_OK(tn_buffer_release(&buffers[slot]));
        tn_allocator_free(root, raw[slot]);
    }
    assert_int_equal(tn_allocator_charged(root), 100000 + 500);
    check(root);
    for (int i = 5; i >= 0; i--) tn_allocator_release(nodes[i]);
}

static tn_status use_everything(tn_allocator *root, void *ctx) {
    (void)ctx;
    tn_status status = TN_OK;
    tn_allocator *child = NULL;
    tn_buffer small = {0};
    tn_buffer large = {0};
    void *raw = NULL;
    const tn_allocator_options options = {.name = "swept", .reservation_bytes = 5000};
    status = tn_allocator_create_child(root, &options, &child, NULL);
    if (status == TN_OK) status = tn_buffer_create(child, 100, 0, &small, NULL);
    if (status == TN_OK) status = tn_buffer_create(child, 3000000, 0, &large, NULL);
    if (status == TN_OK) {
        raw = tn_allocator_malloc(child, 1000);
        void *const moved = raw == NULL ? NULL : tn_allocator_realloc(child, raw, 100000);
        if (moved != NULL) raw = moved;
        if (moved == NULL) status = TN_OUT_OF_MEMORY;
    }
    tn_allocator_free(child, raw);
    if (small.ledger != NULL) ASSERT_OK(tn_buffer_release(&small));
    if (large.ledger != NULL) ASSERT_OK(tn_buffer_release(&large));
    tn_allocator_release(child);
    return status;
}

static void every_allocation_failure_leaves_the_tree_unchanged(void **state) {
    (void)state;
    assert_true(tn_oom_sweep_run(use_everything, NULL, false) > 8);
    assert_true(tn_oom_sweep_run(use_everything, NULL, true) > 8);
}

static void create_root_survives_every_allocation_failure(void **state) {
    (void)state;
    for (long fail_at = 1;; fail_at++) {
        tn_oom_sweep sweep = {.fail_at = fail_at};
        const tn_fault_injector fault = {.ctx = &sweep, .should_fail = tn_oom_sweep_should_fail};
        const tn_allocator_options options = {.fault = &fault};
        tn_allocator *root = NULL;
        const tn_status status = tn_allocator_create_root(&options, &root, NULL);
        if (status == TN_OK) {
            assert_true(fail_at > 3);
            tn_allocator_release(root);
            return;
        }
        assert_int_equal(status, TN_OUT_OF_MEMORY);
        assert_null(root);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(buffer_create_charges_the_request_and_aligns),
        T(buffer_create_honours_every_alignment),
        T(buffer_create_of_zero_bytes_is_the_sentinel),
        T(buffer_create_refuses_absurd_requests),
        T(buffer_release_twice_is_dead),
        T(buffer_slice_outside_is_out_of_range),
        T(charge_past_limit_names_who_refused),
        T(reservation_is_held_from_the_parent),
        T(close_is_not_held_up_by_a_closed_child),
        T(close_with_memory_out_is_busy_and_changes_nothing),
        T(release_with_memory_out_keeps_name_and_charge),
        T(buffer_outlives_every_handle_of_its_tree),
        T(mapped_bytes_are_charged_but_not_held),
        T(raw_realloc_keeps_bytes_and_charges_the_difference),
        T(page_source_variable_with_a_bad_value_is_an_error),
        T(options_of_another_size_are_checked),
        T(callers_page_source_serves_the_whole_tree),
        T(child_may_have_a_page_source_of_its_own),
        T(visit_sees_every_node_at_its_depth),
        T(report_needs_what_it_says),
        T(set_limit_below_use_refuses_only_new_requests),
        T(trim_gives_empty_chunks_back),
        T(random_trace_adds_up_after_every_step),
        T(every_allocation_failure_leaves_the_tree_unchanged),
        T(create_root_survives_every_allocation_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
