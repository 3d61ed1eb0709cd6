/* Offsets by greedy best fit.
 *
 * Items are placed one after another, each at the lowest-waste gap among those already placed whose
 * lives overlap its own. Two orders are tried, by size and by birth, and the smaller slab wins;
 * both are deterministic. O(n^2) over the items that live together, which for real graphs is few.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked_size.h"
#include "plan/plan.h"

typedef struct placed {
    size_t offset;
    size_t end;
    uint32_t birth, death;
} placed;

typedef int (*order_fn)(const tn_pack_item *a, const tn_pack_item *b);

static int by_size(const tn_pack_item *a, const tn_pack_item *b) {
    if (a->size_bytes != b->size_bytes) return a->size_bytes > b->size_bytes ? -1 : 1;
    if (a->birth != b->birth) return a->birth < b->birth ? -1 : 1;
    return a->death > b->death ? -1 : a->death < b->death;
}

static int by_birth(const tn_pack_item *a, const tn_pack_item *b) {
    if (a->birth != b->birth) return a->birth < b->birth ? -1 : 1;
    return by_size(a, b);
}

/* Merge sort of indices: stable, bounded, without a global compare context. */
static void sort_indices(const tn_pack_item *items, uint32_t *indices, uint32_t *spare,
                         size_t count, order_fn order) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            const size_t middle = tn_size_min(low + width, count);
            const size_t high = tn_size_min(low + 2 * width, count);
            size_t left = low;
            size_t right = middle;
            for (size_t k = low; k < high; k++) {
                const bool take_left =
                    left < middle &&
                    (right >= high || order(&items[indices[left]], &items[indices[right]]) <= 0);
                spare[k] = take_left ? indices[left++] : indices[right++];
            }
        }
        memcpy(indices, spare, count * sizeof *indices);
    }
}

/* The smallest gap between the placed items that live with `item`; `done` is sorted by offset. */
static size_t best_gap(const placed *done, size_t done_count, const tn_pack_item *item) {
    size_t cursor = 0;
    size_t best = SIZE_MAX;
    size_t best_waste = SIZE_MAX;
    for (size_t i = 0; i < done_count; i++) {
        if (done[i].death < item->birth || done[i].birth > item->death) continue;
        if (done[i].offset > cursor) {
            const size_t gap = done[i].offset - cursor;
            if (gap >= item->size_bytes && gap - item->size_bytes < best_waste) {
                best = cursor;
                best_waste = gap - item->size_bytes;
            }
        }
        cursor = tn_size_max(cursor, done[i].end);
    }
    return best != SIZE_MAX ? best : cursor;
}

static void insert_placed(placed *done, size_t done_count, const tn_pack_item *item,
                          size_t offset) {
    size_t position = done_count;
    while (position > 0 && done[position - 1].offset > offset) position--;
    memmove(&done[position + 1], &done[position], (done_count - position) * sizeof *done);
    done[position] = (placed){offset, offset + item->size_bytes, item->birth, item->death};
}

static size_t place_all(const tn_pack_item *items, const uint32_t *indices, size_t count,
                        placed *done, size_t *offsets) {
    size_t total_bytes = 0;
    for (size_t k = 0; k < count; k++) {
        const tn_pack_item *item = &items[indices[k]];
        const size_t offset = best_gap(done, k, item);
        insert_placed(done, k, item, offset);
        offsets[indices[k]] = offset;
        total_bytes = tn_size_max(total_bytes, offset + item->size_bytes);
    }
    return total_bytes;
}

/* The largest sum of sizes that live at one step, and that step. */
static tn_status lower_bound(const tn_pack_item *items, size_t count, uint32_t step_count,
                             tn_bump *scratch, size_t *out_bytes, uint32_t *out_step,
                             tn_error *err) {
    size_t *born = tn_bump_array(scratch, (size_t)step_count + 2, sizeof *born);
    size_t *dead = tn_bump_array(scratch, (size_t)step_count + 2, sizeof *dead);
    TN_REQUIRE(born != NULL && dead != NULL, err, TN_OUT_OF_MEMORY,
               "offsets of %u steps need more memory", step_count);
    for (size_t i = 0; i < count; i++) {
        born[tn_size_min(items[i].birth, step_count)] += items[i].size_bytes;
        dead[tn_size_min(items[i].death, step_count)] += items[i].size_bytes;
    }
    size_t live = 0;
    *out_bytes = 0;
    *out_step = 0;
    for (uint32_t step = 0; step <= step_count; step++) {
        live += born[step];
        if (live > *out_bytes) {
            *out_bytes = live;
            *out_step = step;
        }
        live -= dead[step];
    }
    return TN_OK;
}

tn_status tn_pack_offsets(tn_pack_item *items, size_t count, uint32_t step_count, tn_bump *scratch,
                          size_t *out_bytes, size_t *out_lower_bound, uint32_t *out_peak_step,
                          tn_error *err) {
    static const order_fn orders[] = {by_size, by_birth};
    size_t total_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        TN_REQUIRE(tn_size_add(total_bytes, items[i].size_bytes, &total_bytes) &&
                       total_bytes <= SIZE_MAX / 2,
                   err, TN_OVERFLOW, "the values of this plan do not fit in memory");
    }
    TN_TRY(lower_bound(items, count, step_count, scratch, out_lower_bound, out_peak_step, err));
    uint32_t *indices = tn_bump_array(scratch, count + 1, sizeof *indices);
    uint32_t *spare = tn_bump_array(scratch, count + 1, sizeof *spare);
    placed *done = tn_bump_array(scratch, count + 1, sizeof *done);
    size_t *offsets = tn_bump_array(scratch, count + 1, sizeof *offsets);
    TN_REQUIRE(indices != NULL && spare != NULL && done != NULL && offsets != NULL, err,
               TN_OUT_OF_MEMORY, "offsets of %zu values need more memory", count);
    size_t best_bytes = SIZE_MAX;
    for (size_t o = 0; o < TN_COUNTOF(orders) && best_bytes > *out_lower_bound; o++) {
        for (size_t i = 0; i < count; i++) indices[i] = (uint32_t)i;
        sort_indices(items, indices, spare, count, orders[o]);
        const size_t bytes = place_all(items, indices, count, done, offsets);
        if (bytes >= best_bytes) continue;
        best_bytes = bytes;
        for (size_t i = 0; i < count; i++) items[i].offset = offsets[i];
    }
    *out_bytes = count == 0 ? 0 : best_bytes;
    return TN_OK;
}
