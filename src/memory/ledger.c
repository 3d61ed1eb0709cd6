/* What the last reference of a block means, by kind. Releasing never allocates and may happen in
 * any thread. */
#include "memory/ledger.h"

#include "base/error.h"
#include "memory/poison.h"
#include "memory/tree.h"

static _Alignas(4096) const unsigned char empty_area[TN_BUFFER_ALIGNMENT];
static const tn_ledger empty_ledger = {.kind = TN_LEDGER_EMPTY};

void *tn_empty_data(void) {
    return (void *)(uintptr_t)empty_area;
}

tn_ledger *tn_empty_ledger(void) {
    /* const underneath: nobody writes to a ledger of this kind */
    return (tn_ledger *)(uintptr_t)&empty_ledger;
}

static void give_back_plain(tn_ledger *ledger) {
    tn_allocator *const node = ledger->owner;
    const tn_block_request request = {.charged_bytes = ledger->u.size_bytes,
                                      .source_bytes = ledger->u.size_bytes,
                                      .align = (size_t)ledger->link.align};
    void *const data = ledger->data;
    const size_t actual_bytes = ledger->capacity_bytes;
    tn_debug_fill(data, request.source_bytes);
    tn_unpoison(data, actual_bytes);
    tn_node_give_block(node, &request, data, actual_bytes, ledger);
}

tn_status tn_ledger_release(tn_ledger *ledger) {
    bool is_last = false;
    if (ledger->kind == TN_LEDGER_EMPTY) return TN_OK;
    if (!tn_ref_count_release(&ledger->refs, &is_last)) return TN_DEAD;
    if (!is_last) return TN_OK;
    if (ledger->kind == TN_LEDGER_PLAIN) {
        give_back_plain(ledger);
    } else {
        tn_arena_take_back(ledger);
    }
    return TN_OK;
}
