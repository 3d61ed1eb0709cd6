#include "model/topological_sort.h"

#include "harness.h"

typedef struct fixture {
    tn_allocator *root;
    tn_record_pool scratch;
    uint32_t order[64];
    uint32_t on_cycle;
} fixture;

static fixture make_fixture(void) {
    fixture f = {.root = NULL};
    ASSERT_OK(tn_allocator_create_root(NULL, &f.root, NULL));
    tn_record_pool_init(&f.scratch, f.root);
    return f;
}

static void end_fixture(fixture *f) {
    tn_record_pool_deinit(&f->scratch);
    assert_int_equal(tn_allocator_charged(f->root), 0);
    tn_allocator_release(f->root);
}

static tn_status sort(fixture *f, uint32_t vertex_count, const tn_edge *edges, size_t edge_count) {
    const tn_topological_input input = {vertex_count, edge_count, edges};
    return tn_topological_sort(&input, &f->scratch, f->order, &f->on_cycle, NULL);
}

static void sort_in_order_stays_as_it_is(void **state) {
    (void)state;
    static const tn_edge edges[] = {{0, 3}, {1, 2}, {2, 3}, {0, 3}};
    fixture f = make_fixture();

    ASSERT_OK(sort(&f, 5, edges, 4));

    for (uint32_t i = 0; i < 5; i++) assert_int_equal(f.order[i], i);
    assert_int_equal(f.on_cycle, TN_VERTEX_NONE);
    end_fixture(&f);
}

static void sort_takes_the_smallest_free_vertex_next(void **state) {
    (void)state;
    static const tn_edge edges[] = {{3, 0}, {4, 1}};
    static const uint32_t expected[] = {2, 3, 0, 4, 1};
    fixture f = make_fixture();

    ASSERT_OK(sort(&f, 5, edges, 2));

    for (size_t i = 0; i < 5; i++) assert_int_equal(f.order[i], expected[i]);
    end_fixture(&f);
}

static void sort_of_random_graphs_respects_every_edge(void **state) {
    (void)state;
    uint32_t random = 12345;
    for (int round = 0; round < 200; round++) {
        tn_edge edges[128];
        uint32_t position[64];
        fixture f = make_fixture();
        for (size_t i = 0; i < 128; i++) {
            random = random * 1664525 + 1013904223;
            const uint32_t a = random >> 8 & 63;
            const uint32_t b = random >> 16 & 63;
            /* a hidden order, 37 v mod 64, keeps the graph free of cycles */
            const bool is_forward = a * 37 % 64 < b * 37 % 64;
            edges[i] = is_forward || a == b ? (tn_edge){a, b} : (tn_edge){b, a};
            if (a == b) edges[i] = (tn_edge){0, 19}; /* 0 -> 63 in the hidden order */
        }

        ASSERT_OK(sort(&f, 64, edges, 128));

        for (uint32_t i = 0; i < 64; i++) position[f.order[i]] = i;
        for (size_t i = 0; i < 128; i++) {
            assert_true(position[edges[i].from] < position[edges[i].to]);
        }
        end_fixture(&f);
    }
}

static void sort_names_a_vertex_on_the_cycle(void **state) {
    (void)state;
    /* 0 feeds the cycle 2 -> 5 -> 3 -> 2, which feeds 1 and 4 */
    static const tn_edge edges[] = {{0, 2}, {2, 5}, {5, 3}, {3, 2}, {3, 1}, {1, 4}};
    fixture f = make_fixture();

    ASSERT_STATUS(TN_INVALID_MODEL, sort(&f, 6, edges, 6));

    assert_true(f.on_cycle == 2 || f.on_cycle == 5 || f.on_cycle == 3);
    end_fixture(&f);
}

static void sort_refuses_a_vertex_before_itself(void **state) {
    (void)state;
    static const tn_edge edges[] = {{1, 1}};
    fixture f = make_fixture();

    ASSERT_STATUS(TN_INVALID_MODEL, sort(&f, 3, edges, 1));

    assert_int_equal(f.on_cycle, 1);
    end_fixture(&f);
}

static void sort_of_nothing_is_nothing(void **state) {
    (void)state;
    fixture f = make_fixture();

    ASSERT_OK(sort(&f, 0, NULL, 0));

    end_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(sort_in_order_stays_as_it_is),
        T(sort_takes_the_smallest_free_vertex_next),
        T(sort_of_random_graphs_respects_every_edge),
        T(sort_names_a_vertex_on_the_cycle),
        T(sort_refuses_a_vertex_before_itself),
        T(sort_of_nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
