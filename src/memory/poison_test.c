/* What the tools may assume: retained blocks and bytes behind a logical size are marked, and debug
 * builds show a stale read. In builds without either there is nothing to see, and that is checked
 * too: marking must not change what is readable. */
#include "memory/arena_fixture.h"
#include "memory/poison.h"

/* True when the address sanitizer would stop an access to any byte of the range. */
static bool is_marked(const void *data, size_t size_bytes) {
#if defined(TN_HAS_ASAN)
    for (size_t i = 0; i < size_bytes; i++) {
        if (!__asan_address_is_poisoned((const char *)data + i)) return false;
    }
    return true;
#else
    (void)data;
    (void)size_bytes;
    return true;
#endif
}

static bool is_clear(const void *data, size_t size_bytes) {
#if defined(TN_HAS_ASAN)
    return __asan_region_is_poisoned((void *)(uintptr_t)data, size_bytes) == NULL;
#else
    const volatile unsigned char *const bytes = data;
    for (size_t i = 0; i < size_bytes; i++) (void)bytes[i];
    return true;
#endif
}

static void retained_blocks_and_tails_are_marked(arena_fixture *fixture) {
    static const size_t sizes[] = {1, 33, 700, 5000, 100 * KIB + 1, 3 * MIB - 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tn_allocation_handle handle = take(fixture, sizes[i]);
        char *const data = handle.data;
        const size_t capacity_bytes = handle.capacity_bytes;
        assert_true(is_clear(data, sizes[i]));
        assert_true(is_marked(data + sizes[i], capacity_bytes - sizes[i]));
        give(&handle);
        assert_true(is_marked(data, capacity_bytes));
        handle = take(fixture, sizes[i]);
        assert_ptr_equal(handle.data, data);
        assert_true(is_clear(data, sizes[i]));
        give(&handle);
    }
}

static void arenas_mark_retained_blocks_and_tails(void **state) {
    (void)state;
    for_both_arenas(retained_blocks_and_tails_are_marked);
}

static void slab_marks_what_its_plan_does_not_use(void **state) {
    (void)state;
    arena_fixture fixture;
    void *base = NULL;
    fixture_init(&fixture, false);
    ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, NULL));
    ASSERT_OK(tn_execution_arena_reserve_slab(fixture.execution, 100 * KIB, &base, NULL));
    tn_execution_arena_end_run(fixture.execution);
    ASSERT_OK(tn_execution_arena_begin_run(fixture.execution, NULL));

    ASSERT_OK(tn_execution_arena_reserve_slab(fixture.execution, 10 * KIB, &base, NULL));

    assert_true(is_clear(base, 10 * KIB));
    assert_true(is_marked((char *)base + 10 * KIB, 90 * KIB));
    tn_execution_arena_end_run(fixture.execution);
    assert_true(is_marked(base, 100 * KIB));
    fixture_deinit(&fixture);
}

static void buffers_mark_their_tails(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_buffer buffer;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    ASSERT_OK(tn_buffer_create(root, 70, 0, &buffer, NULL));
    char *const data = buffer.data;

    assert_true(is_clear(data, 70));
    assert_true(is_marked(data + 70, 128 - 70));

    ASSERT_OK(tn_buffer_release(&buffer));
    assert_true(is_marked(data, 128));
    tn_allocator_release(root);
}

/* Valgrind knows that the contents are nobody's, and complains about who looks. */
static bool may_be_read(const void *data, size_t size_bytes) {
#if defined(TN_HAS_VALGRIND)
    return !RUNNING_ON_VALGRIND || VALGRIND_CHECK_MEM_IS_DEFINED(data, size_bytes) == 0;
#else
    (void)data;
    (void)size_bytes;
    return true;
#endif
}

static void returned_blocks_are_overwritten_in_debug_builds(arena_fixture *fixture) {
    tn_allocation_handle handle = take(fixture, 1000);
    memset(handle.data, 1, 1000);
    unsigned char *const data = handle.data;
    give(&handle);
    handle = take(fixture, 1000);
    assert_ptr_equal(handle.data, data);
#if !defined(NDEBUG)
    for (int i = 0; i < 1000 && may_be_read(data, 1000); i++) {
        assert_int_equal(data[i], TN_DEBUG_FILL);
    }
#endif
    give(&handle);
}

static void arenas_overwrite_returned_blocks_in_debug_builds(void **state) {
    (void)state;
    for_both_arenas(returned_blocks_are_overwritten_in_debug_builds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(arenas_mark_retained_blocks_and_tails),
        T(slab_marks_what_its_plan_does_not_use),
        T(buffers_mark_their_tails),
        T(arenas_overwrite_returned_blocks_in_debug_builds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
