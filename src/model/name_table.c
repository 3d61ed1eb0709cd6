/* Linear probing over indices into a dense array of entries, at most half full. The hash is
 * SipHash-1-3 with a random key: model files are untrusted, and a fixed hash would let a small file
 * force quadratic time. */
#include "model/name_table.h"

#include <assert.h>
#include <sys/random.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "model/record_pool.h"

#define MAX_NAMES (UINT32_C(1) << 30)

static uint64_t rotate(uint64_t x, unsigned bits) {
    return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void sip_absorb(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static uint64_t hash_name(const uint64_t seed[2], uint32_t scope, tn_text name) {
    uint64_t v[4] = {seed[0] ^ UINT64_C(0x736f6d6570736575), seed[1] ^ UINT64_C(0x646f72616e646f6d),
                     seed[0] ^ UINT64_C(0x6c7967656e657261),
                     seed[1] ^ UINT64_C(0x7465646279746573)};
    size_t offset_bytes = 0;
    for (; name.size_bytes - offset_bytes >= 8; offset_bytes += 8) {
        uint64_t word = 0;
        memcpy(&word, name.data + offset_bytes, sizeof word);
        sip_absorb(v, word);
    }
    uint64_t tail = 0;
    if (name.size_bytes != offset_bytes) {
        memcpy(&tail, name.data + offset_bytes, name.size_bytes - offset_bytes);
    }
    sip_absorb(v, tail);
    sip_absorb(v, (uint64_t)scope << 32 ^ name.size_bytes);
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

tn_status tn_name_table_init(tn_name_table *table, tn_allocator *allocator, size_t capacity,
                             tn_error *err) {
    tn_status status = TN_OK;
    tn_name_table made = {.allocator = allocator};
    *table = made;
    TN_REQUIRE(capacity <= MAX_NAMES, err, TN_UNSUPPORTED, "%zu names are above the limit of %u",
               capacity, (unsigned)MAX_NAMES);
    made.capacity = (uint32_t)capacity;
    size_t slot_count = 8;
    while (slot_count < capacity * 2) slot_count *= 2;
    made.slot_mask = (uint32_t)(slot_count - 1);
    /* without randomness the addresses below must do; a failure here is no reason to refuse */
    if (getrandom(made.seed, sizeof made.seed, GRND_NONBLOCK) != (ssize_t)sizeof made.seed) {
        made.seed[0] = (uint64_t)(uintptr_t)table;
        made.seed[1] = (uint64_t)(uintptr_t)allocator;
    }

    const size_t entries_bytes = tn_size_max(capacity, 1) * sizeof *made.entries;
    const size_t slots_bytes = slot_count * sizeof *made.slots;
    made.entries = tn_allocator_malloc(allocator, entries_bytes);
    if (made.entries == NULL) {
        status = tn_record_refusal(allocator, entries_bytes, err);
        goto cleanup;
    }
    made.slots = tn_allocator_malloc(allocator, slots_bytes);
    if (made.slots == NULL) {
        status = tn_record_refusal(allocator, slots_bytes, err);
        goto cleanup;
    }
    memset(made.slots, 0xFF, slots_bytes);
    *table = made;
    made = (tn_name_table){0};

cleanup:
    tn_name_table_deinit(&made);
    return status;
}

void tn_name_table_deinit(tn_name_table *table) {
    if (table->allocator != NULL) {
        tn_allocator_free(table->allocator, table->entries);
        tn_allocator_free(table->allocator, table->slots);
    }
    *table = (tn_name_table){0};
}

/* The slot that holds the name, or the free one where it would go; its tag in *out_tag. */
static tn_name_slot *find_slot(const tn_name_table *table, uint32_t scope, tn_text name,
                               uint32_t *out_tag) {
    const uint64_t hash = hash_name(table->seed, scope, name);
    uint32_t place = (uint32_t)hash & table->slot_mask;
    *out_tag = (uint32_t)(hash >> 32);
    for (;; place = (place + 1) & table->slot_mask) {
        tn_name_slot *slot = &table->slots[place];
        if (slot->index == TN_NAME_NONE) return slot;
        if (slot->tag != *out_tag) continue;
        const tn_name_entry *entry = &table->entries[slot->index];
        if (entry->scope == scope && tn_text_equals(entry->name, name)) return slot;
    }
}

tn_name_entry *tn_name_table_find(const tn_name_table *table, uint32_t scope, tn_text name) {
    uint32_t tag = 0;
    const tn_name_slot *slot = find_slot(table, scope, name, &tag);
    return slot->index == TN_NAME_NONE ? NULL : &table->entries[slot->index];
}

tn_name_entry *tn_name_table_add(tn_name_table *table, uint32_t scope, tn_text name, uint32_t value,
                                 bool *out_is_new) {
    uint32_t tag = 0;
    tn_name_slot *slot = find_slot(table, scope, name, &tag);
    *out_is_new = slot->index == TN_NAME_NONE;
    if (*out_is_new) {
        assert(table->entry_count < table->capacity);
        *slot = (tn_name_slot){tag, table->entry_count++};
        table->entries[slot->index] = (tn_name_entry){name, scope, value};
    }
    return &table->entries[slot->index];
}
