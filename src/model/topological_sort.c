/* Kahn's algorithm with a binary heap of the free vertices, O((V + E) log V), without recursion.
 * The heap makes the order unique and stable: the smallest number first. */
#include "model/topological_sort.h"

#include <string.h>

#include "base/error.h"

typedef struct sorter {
    uint32_t *first;   /* [vertex_count + 1]: where a vertex's targets start */
    uint32_t *targets; /* [edge_count] */
    uint32_t *waiting; /* [vertex_count]: edges into a vertex that are not used yet */
    uint32_t *heap;    /* [vertex_count]: free vertices */
    uint32_t heap_count;
} sorter;

static void swap(uint32_t *a, uint32_t *b) {
    const uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void heap_push(sorter *s, uint32_t vertex) {
    uint32_t child = s->heap_count++;
    s->heap[child] = vertex;
    while (child > 0 && s->heap[(child - 1) / 2] > s->heap[child]) {
        swap(&s->heap[(child - 1) / 2], &s->heap[child]);
        child = (child - 1) / 2;
    }
}

static uint32_t heap_pop(sorter *s) {
    const uint32_t smallest = s->heap[0];
    uint32_t parent = 0;
    s->heap[0] = s->heap[--s->heap_count];
    for (;;) {
        uint32_t child = 2 * parent + 1;
        if (child >= s->heap_count) return smallest;
        if (child + 1 < s->heap_count && s->heap[child + 1] < s->heap[child]) child++;
        if (s->heap[parent] <= s->heap[child]) return smallest;
        swap(&s->heap[parent], &s->heap[child]);
        parent = child;
    }
}

static tn_status init_sorter(const tn_topological_input *input, tn_record_pool *scratch, sorter *s,
                             tn_error *err) {
    const size_t vertex_count = input->vertex_count;
    TN_REQUIRE(input->edge_count < UINT32_MAX, err, TN_UNSUPPORTED, "%zu edges between nodes",
               input->edge_count);
    const size_t word_count = vertex_count * 3 + 1 + input->edge_count;
    uint32_t *words = tn_record_pool_alloc(scratch, word_count, sizeof *words);
    if (words == NULL) return tn_record_pool_refusal(scratch, word_count, sizeof *words, err);
    memset(words, 0, word_count * sizeof *words);
    *s = (sorter){.first = words,
                  .waiting = words + vertex_count + 1,
                  .heap = words + 2 * vertex_count + 1,
                  .targets = words + 3 * vertex_count + 1};

    for (size_t i = 0; i < input->edge_count; i++) {
        s->first[input->edges[i].from + 1]++;
        s->waiting[input->edges[i].to]++;
    }
    for (size_t vertex = 0; vertex < vertex_count; vertex++)
        s->first[vertex + 1] += s->first[vertex];
    /* the heap is not in use yet: it counts how many targets of a vertex are placed */
    for (size_t i = 0; i < input->edge_count; i++) {
        const uint32_t from = input->edges[i].from;
        s->targets[s->first[from] + s->heap[from]++] = input->edges[i].to;
    }
    return TN_OK;
}

/* A vertex of a cycle among those that still wait: going back along edges from any of them cannot
 * end, so after as many steps as there are vertices it goes round. Uses the heap for the steps. */
static uint32_t find_cycle(const tn_topological_input *input, const sorter *s) {
    uint32_t vertex = TN_VERTEX_NONE;
    for (size_t i = 0; i < input->edge_count; i++) {
        const tn_edge edge = input->edges[i];
        if (s->waiting[edge.from] == 0 || s->waiting[edge.to] == 0) continue;
        s->heap[edge.to] = edge.from;
        vertex = edge.to;
    }
    for (uint32_t step = 0; step < input->vertex_count; step++) vertex = s->heap[vertex];
    return vertex;
}

tn_status tn_topological_sort(const tn_topological_input *input, tn_record_pool *scratch,
                              uint32_t *order, uint32_t *out_on_cycle, tn_error *err) {
    sorter s = {.heap_count = 0};
    uint32_t done = 0;
    *out_on_cycle = TN_VERTEX_NONE;
    TN_TRY(init_sorter(input, scratch, &s, err));
    for (uint32_t vertex = 0; vertex < input->vertex_count; vertex++) {
        if (s.waiting[vertex] == 0) heap_push(&s, vertex);
    }
    while (s.heap_count > 0) {
        const uint32_t vertex = heap_pop(&s);
        order[done++] = vertex;
        for (uint32_t i = s.first[vertex]; i < s.first[vertex + 1]; i++) {
            if (--s.waiting[s.targets[i]] == 0) heap_push(&s, s.targets[i]);
        }
    }
    if (done == input->vertex_count) return TN_OK;
    *out_on_cycle = find_cycle(input, &s);
    return TN_INVALID_MODEL;
}
