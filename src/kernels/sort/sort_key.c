/* Keys flip the sign bit of integers, and all bits of negative floats, so that unsigned order is
 * numeric order. Sorting is a bottom-up merge sort (n log n always, stable, no recursion); keeping
 * the first few of many is a heap whose root is the worst one kept. */
#include "kernels/sort/sort_key.h"

#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"

static uint64_t key_of_i64(int64_t value) {
    return (uint64_t)value ^ (UINT64_C(1) << 63);
}

static uint64_t key_of_f64(double value) {
    uint64_t bits;
    if (value != value) return UINT64_MAX;
    if (value == 0.0) value = 0.0; /* -0 */
    memcpy(&bits, &value, sizeof bits);
    if (bits == UINT64_C(1) << 63) bits = 0;
    return (bits >> 63) != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

/* X(dtype, type, key) */
#define KEY_LIST(X)                                                \
    X(F32, float, key_of_f64((double)value))                       \
    X(F64, double, key_of_f64(value))                              \
    X(F16, uint16_t, key_of_f64((double)tn_f32_from_f16(value)))   \
    X(BF16, uint16_t, key_of_f64((double)tn_f32_from_bf16(value))) \
    X(BOOL, uint8_t, (uint64_t)(value != 0))                       \
    X(U8, uint8_t, value)                                          \
    X(U16, uint16_t, value)                                        \
    X(U32, uint32_t, value)                                        \
    X(U64, uint64_t, value)                                        \
    X(I8, int8_t, key_of_i64(value))                               \
    X(I16, int16_t, key_of_i64(value))                             \
    X(I32, int32_t, key_of_i64(value))                             \
    X(I64, int64_t, key_of_i64(value))

#define DEFINE_KEY(dtype, type, key)                                             \
    static uint64_t key_##dtype(const void *data, size_t index) {                \
        type value;                                                              \
        memcpy(&value, (const char *)data + index * sizeof value, sizeof value); \
        return key;                                                              \
    }
KEY_LIST(DEFINE_KEY)

#define KEY_ENTRY(dtype, type, key) [TN_DTYPE_##dtype] = key_##dtype,
static uint64_t (*const keys[TN_DTYPE_COUNT])(const void *data,
                                              size_t index) = {KEY_LIST(KEY_ENTRY)};

uint64_t tn_sort_key(const void *data, tn_dtype dtype, size_t index) {
    return keys[dtype] == NULL ? 0 : keys[dtype](data, index);
}

tn_sort_key_fn tn_sort_key_of(tn_dtype dtype) {
    return keys[dtype];
}

static void merge_runs(const tn_sort_entry *from, size_t left, size_t middle, size_t right,
                       tn_sort_entry *to) {
    size_t a = left;
    size_t b = middle;
    for (size_t i = left; i < right; i++) {
        const bool takes_b = a == middle || (b < right && tn_sort_before(&from[b], &from[a]));
        to[i] = takes_b ? from[b++] : from[a++];
    }
}

void tn_sort_entries(tn_sort_entry *entries, tn_sort_entry *scratch, size_t count) {
    tn_sort_entry *from = entries;
    tn_sort_entry *to = scratch;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t left = 0; left < count; left += 2 * run) {
            merge_runs(from, left, tn_size_min(left + run, count),
                       tn_size_min(left + 2 * run, count), to);
        }
        tn_sort_entry *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != entries) memcpy(entries, from, count * sizeof *entries);
}

static void sink(tn_sort_entry *kept, size_t count, tn_sort_entry entry) {
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && tn_sort_before(&kept[child], &kept[child + 1])) child++;
        if (!tn_sort_before(&entry, &kept[child])) break;
        kept[at] = kept[child];
        at = child;
    }
    kept[at] = entry;
}

void tn_sort_offer(tn_sort_entry *kept, size_t *count, size_t keep, const tn_sort_entry *entry) {
    if (keep == 0) return;
    if (*count == keep) {
        if (tn_sort_wants(kept, keep, keep, entry)) sink(kept, keep, *entry);
        return;
    }
    size_t at = (*count)++;
    while (at > 0 && tn_sort_before(&kept[(at - 1) / 2], entry)) {
        kept[at] = kept[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    kept[at] = *entry;
}
