/* From names to numbers: an open-addressing table over texts that live elsewhere.
 *
 * Ownership: init/deinit; names are borrowed from the caller and must outlive the table.
 * Threads:   one thread at a time; look-ups may run side by side. */
#ifndef TN_MODEL_NAME_TABLE_H
#define TN_MODEL_NAME_TABLE_H

#include <tenure/memory.h>

#include "base/span.h"

/* No such name. */
#define TN_NAME_NONE UINT32_MAX

typedef struct tn_name_entry {
    tn_text name;
    uint32_t scope; /* names of different scopes are different */
    uint32_t value; /* the caller's number; may be changed in place */
} tn_name_entry;

/* Part of the hash stands beside the index, so that most misses cost one look. */
typedef struct tn_name_slot {
    uint32_t tag;
    uint32_t index; /* of an entry; TN_NAME_NONE: free */
} tn_name_slot;

typedef struct tn_name_table {
    tn_allocator *allocator; /* borrowed */
    tn_name_entry *entries;  /* owned, [capacity] */
    tn_name_slot *slots;     /* owned, [slot_mask + 1] */
    uint32_t entry_count;
    uint32_t capacity;
    uint32_t slot_mask;
    uint64_t seed[2]; /* differs from process to process, so that collisions cannot be prepared */
} tn_name_table;

/* Makes room for `capacity` names; the table never grows.
 * Errors: TN_UNSUPPORTED for more than 2^30 names; TN_LIMIT, TN_OUT_OF_MEMORY. */
TN_MUST_USE tn_status tn_name_table_init(tn_name_table *table, tn_allocator *allocator,
                                         size_t capacity, tn_error *err);
void tn_name_table_deinit(tn_name_table *table); /* accepts a zeroed table */

/* Lends the entry of (`scope`, `name`); NULL when absent. */
tn_name_entry *tn_name_table_find(const tn_name_table *table, uint32_t scope, tn_text name);

/* Lends the entry of (`scope`, `name`), added with `value` when absent; *out_is_new says which.
 * There must be room. */
tn_name_entry *tn_name_table_add(tn_name_table *table, uint32_t scope, tn_text name, uint32_t value,
                                 bool *out_is_new);

#endif
