/* The arithmetic of limits. A child holds max(used, reservation) from its parent; adding bytes at a
 * node therefore asks the parent only for what that maximum grows by. Every level is checked before
 * any is changed, so a refusal leaves no trace, and peaks move on commit only. Cost: one walk to
 * check and one to commit, under the tree lock.
 *
 * Before a limit refuses, retained blocks at or below the refusing node are asked back. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "memory/size_class.h"
#include "memory/tree.h"

static uint64_t held_with(const tn_allocator *node, uint64_t used_bytes) {
    return used_bytes > node->reservation_bytes ? used_bytes : node->reservation_bytes;
}

tn_allocator *tn_node_try_add(tn_allocator *node, uint64_t size_bytes) {
    uint64_t wanted = size_bytes;
    for (tn_allocator *at = node; at != NULL && wanted > 0; at = at->parent) {
        if (wanted > at->limit_bytes || at->used_bytes > at->limit_bytes - wanted) return at;
        wanted = held_with(at, at->used_bytes + wanted) - held_with(at, at->used_bytes);
    }
    wanted = size_bytes;
    for (tn_allocator *at = node; at != NULL && wanted > 0; at = at->parent) {
        const uint64_t held_before = held_with(at, at->used_bytes);
        at->used_bytes += wanted;
        if (at->used_bytes > at->peak_bytes) at->peak_bytes = at->used_bytes;
        wanted = held_with(at, at->used_bytes) - held_before;
    }
    return NULL;
}

void tn_node_subtract(tn_allocator *node, uint64_t size_bytes) {
    uint64_t given = size_bytes;
    for (tn_allocator *at = node; at != NULL && given > 0; at = at->parent) {
        const uint64_t held_before = held_with(at, at->used_bytes);
        at->used_bytes -= given;
        given = held_before - held_with(at, at->used_bytes);
    }
}

bool tn_node_is_at_or_below(const tn_allocator *node, const tn_allocator *top) {
    for (; node != NULL; node = node->parent) {
        if (node == top) return true;
    }
    return false;
}

#define PATH_DEPTH_MAX 16

void tn_node_path(const tn_allocator *node, char *out, size_t capacity_bytes) {
    const tn_allocator *chain[PATH_DEPTH_MAX];
    int depth = 0;
    size_t used = 0;
    for (; node != NULL && depth < PATH_DEPTH_MAX; node = node->parent) chain[depth++] = node;
    out[0] = '\0';
    while (depth > 0) {
        depth--;
        const int written = snprintf(out + used, capacity_bytes - used, "%s%s",
                                     used == 0 ? "" : "/", chain[depth]->name);
        if (written < 0 || (size_t)written >= capacity_bytes - used) return;
        used += (size_t)written;
    }
}

static tn_status tell_refusal(const tn_refusal *refusal, tn_error *err) {
    const tn_status status = tn_error_set(
        err, TN_LIMIT, "allocator %s refused %llu bytes (%llu as charged): %llu of %llu in use",
        refusal->path, (unsigned long long)refusal->requested_bytes,
        (unsigned long long)refusal->charged_bytes, (unsigned long long)refusal->used_bytes,
        (unsigned long long)refusal->limit_bytes);
    if (err == NULL) return status;
    (void)snprintf(err->allocator, sizeof err->allocator, "%s", refusal->path);
    err->requested_bytes = refusal->requested_bytes;
    err->rounded_bytes = refusal->charged_bytes;
    err->used_bytes = refusal->used_bytes;
    err->limit_bytes = refusal->limit_bytes;
    return status;
}

uint64_t tn_tree_refusal_number(const tn_allocator *node) {
    tn_lock_acquire(&node->root->lock);
    const uint64_t number = node->root->last_refusal.number;
    tn_lock_release(&node->root->lock);
    return number;
}

tn_status tn_tree_explain(const tn_allocator *node, uint64_t number, tn_status status,
                          tn_error *err) {
    if (status != TN_OUT_OF_MEMORY) return status;
    tn_lock_acquire(&node->root->lock);
    const tn_refusal refusal = node->root->last_refusal;
    tn_lock_release(&node->root->lock);
    if (refusal.number == number) return status;
    char name[TN_ERROR_NAME_BYTES] = "";
    if (err != NULL) memcpy(name, err->node, sizeof name);
    (void)tell_refusal(&refusal, err);
    if (err != NULL) memcpy(err->node, name, sizeof name);
    return TN_LIMIT;
}

/* Under the lock. Paths never change, so they can be written here. */
static void note_refusal(tn_allocator *refusing, const tn_charge *charge) {
    tn_refusal *const last = &refusing->root->last_refusal;
    refusing->refusal_count++;
    last->number++;
    last->requested_bytes = charge->requested_bytes;
    last->charged_bytes = charge->size_bytes;
    last->used_bytes = refusing->used_bytes;
    last->limit_bytes = refusing->limit_bytes;
    tn_node_path(refusing, last->path, sizeof last->path);
}

tn_status tn_out_of_memory(const tn_allocator *node, size_t requested_bytes, size_t rounded_bytes,
                           tn_error *err) {
    char path[TN_ERROR_NAME_BYTES];
    tn_node_path(node, path, sizeof path);
    const tn_status status = tn_error_set(err, TN_OUT_OF_MEMORY,
                                          "allocator %s: the system has no %zu bytes (%zu rounded)",
                                          path, requested_bytes, rounded_bytes);
    if (err == NULL) return status;
    (void)snprintf(err->allocator, sizeof err->allocator, "%s", path);
    err->requested_bytes = requested_bytes;
    err->rounded_bytes = rounded_bytes;
    tn_lock_acquire(&node->root->lock);
    err->used_bytes = node->used_bytes;
    err->limit_bytes = node->limit_bytes == UINT64_MAX ? 0 : node->limit_bytes;
    tn_lock_release(&node->root->lock);
    return status;
}

/* The least recently used reclaimer at or below `top` that this pass has not asked. Under the
 * lock. Walks the subtree by its links, without recursion. */
static tn_reclaimer *oldest_reclaimer(tn_allocator *top, uint64_t pass) {
    tn_reclaimer *oldest = NULL;
    uint64_t oldest_use = UINT64_MAX;
    tn_allocator *at = top;
    while (at != NULL) {
        for (tn_reclaimer *it = at->reclaimers; it != NULL; it = it->next) {
            /* relaxed: a guess at the order of use is good enough */
            const uint64_t use = atomic_load_explicit(&it->last_use, memory_order_relaxed);
            if (it->tried_in >= pass || use > oldest_use) continue;
            oldest = it;
            oldest_use = use;
        }
        if (at->first_child != NULL) {
            at = at->first_child;
            continue;
        }
        while (at != top && at->next_sibling == NULL) at = at->parent;
        at = at == top ? NULL : at->next_sibling;
    }
    return oldest;
}

/* Asks one reclaimer with the lock left. False: there is none left to ask in this pass. */
static bool ask_one(tn_allocator *top, uint64_t pass, size_t wanted_bytes, tn_trim_level level,
                    size_t *inout_bytes) {
    tn_root *const root = top->root;
    tn_reclaimer *const chosen = oldest_reclaimer(top, pass);
    if (chosen == NULL) return false;
    chosen->tried_in = pass;
    chosen->pin_count++;
    tn_lock_release(&root->lock);
    *inout_bytes += chosen->reclaim(chosen, wanted_bytes, level);
    tn_lock_acquire(&root->lock);
    chosen->pin_count--;
    return true;
}

size_t tn_node_reclaim(tn_allocator *top, size_t wanted_bytes) {
    size_t freed_bytes = 0;
    tn_lock_acquire(&top->root->lock);
    const uint64_t pass = ++top->root->reclaim_pass;
    while (freed_bytes < wanted_bytes &&
           ask_one(top, pass, wanted_bytes - freed_bytes, TN_TRIM_HARD, &freed_bytes)) {
    }
    tn_lock_release(&top->root->lock);
    return freed_bytes;
}

size_t tn_allocator_trim(tn_allocator *allocator, tn_trim_level level) {
    tn_root *const root = allocator->root;
    size_t freed_bytes = 0;
    tn_lock_acquire(&root->lock);
    const uint64_t pass = ++root->reclaim_pass;
    while (ask_one(allocator, pass, SIZE_MAX, level, &freed_bytes)) {
    }
    tn_lock_release(&root->lock);
    const tn_page_source *const table = &allocator->source->table;
    if (table->trim != NULL) freed_bytes += table->trim(table->ctx, level);
    return freed_bytes;
}

static void commit(tn_allocator *node, const tn_charge *charge) {
    node->own_charged_bytes += charge->size_bytes;
    if (charge->is_external) node->own_external_bytes += charge->size_bytes;
    if (charge->is_mapped) node->own_mapped_bytes += charge->size_bytes;
    node->own_held_bytes += charge->held_bytes;
    node->block_count += charge->unit == TN_CHARGE_BLOCK;
    node->raw_count += charge->unit == TN_CHARGE_RAW;
}

tn_status tn_node_charge(tn_allocator *node, const tn_charge *charge, tn_error *err) {
    tn_root *const root = node->root;
    uint64_t pass = 0;
    size_t freed_bytes = 0;
    tn_allocator *refusing = NULL;
    tn_lock_acquire(&root->lock);
    while (!node->is_closed) {
        refusing = tn_node_try_add(node, charge->size_bytes);
        if (refusing == NULL) {
            commit(node, charge);
            atomic_fetch_add_explicit(&root->tick, 1, memory_order_relaxed); /* a rough clock */
            break;
        }
        const uint64_t limit_bytes = refusing->limit_bytes;
        if (charge->size_bytes > limit_bytes) break; /* no amount of giving back helps */
        if (pass == 0) pass = ++root->reclaim_pass;
        const uint64_t missing = refusing->used_bytes - (limit_bytes - charge->size_bytes);
        if (!ask_one(refusing, pass, (size_t)missing, TN_TRIM_HARD, &freed_bytes)) break;
    }
    const bool is_closed = node->is_closed;
    const bool is_refused = !is_closed && refusing != NULL;
    if (is_refused) note_refusal(refusing, charge);
    tn_refusal refusal;
    if (is_refused) refusal = root->last_refusal;
    tn_lock_release(&root->lock);
    TN_REQUIRE(!is_closed, err, TN_CLOSED, "allocator %s is closed", node->name);
    return is_refused ? tell_refusal(&refusal, err) : TN_OK;
}

void tn_node_discharge(tn_allocator *node, const tn_charge *charge) {
    tn_root *const root = node->root;
    tn_lock_acquire(&root->lock);
    tn_node_subtract(node, charge->size_bytes);
    node->own_charged_bytes -= charge->size_bytes;
    if (charge->is_external) node->own_external_bytes -= charge->size_bytes;
    if (charge->is_mapped) node->own_mapped_bytes -= charge->size_bytes;
    node->own_held_bytes -= charge->held_bytes;
    node->block_count -= charge->unit == TN_CHARGE_BLOCK;
    node->raw_count -= charge->unit == TN_CHARGE_RAW;
    if (charge->record != NULL) tn_root_push_record(root, charge->record);
    tn_root *const dead = tn_node_collect(node);
    tn_lock_release(&root->lock);
    tn_root_destroy(dead);
}

tn_status tn_allocator_charge(tn_allocator *allocator, uint64_t size_bytes, tn_error *err) {
    const tn_charge charge = {
        .size_bytes = size_bytes, .requested_bytes = size_bytes, .is_external = true};
    return tn_node_charge(allocator, &charge, err);
}

void tn_allocator_discharge(tn_allocator *allocator, uint64_t size_bytes) {
    const tn_charge charge = {
        .size_bytes = size_bytes, .requested_bytes = size_bytes, .is_external = true};
    tn_node_discharge(allocator, &charge);
}

tn_status tn_allocator_charge_mapped(tn_allocator *allocator, uint64_t size_bytes, tn_error *err) {
    const tn_charge charge = {.size_bytes = size_bytes,
                              .requested_bytes = size_bytes,
                              .is_external = true,
                              .is_mapped = true};
    return tn_node_charge(allocator, &charge, err);
}

void tn_allocator_discharge_mapped(tn_allocator *allocator, uint64_t size_bytes) {
    const tn_charge charge = {.size_bytes = size_bytes,
                              .requested_bytes = size_bytes,
                              .is_external = true,
                              .is_mapped = true};
    tn_node_discharge(allocator, &charge);
}

uint32_t tn_reclaimer_register(tn_reclaimer *reclaimer, tn_allocator *node) {
    tn_lock_acquire(&node->root->lock);
    reclaimer->node = node;
    reclaimer->prev = NULL;
    reclaimer->next = node->reclaimers;
    if (node->reclaimers != NULL) node->reclaimers->prev = reclaimer;
    node->reclaimers = reclaimer;
    node->reclaimer_count++;
    const uint32_t number = ++node->root->reclaimer_number;
    tn_lock_release(&node->root->lock);
    return number;
}

void tn_reclaimer_unregister(tn_reclaimer *reclaimer) {
    tn_allocator *const node = reclaimer->node;
    tn_root *const root = node->root;
    tn_lock_acquire(&root->lock);
    while (reclaimer->pin_count > 0) { /* its callback runs in another thread and ends soon */
        tn_lock_release(&root->lock);
        tn_lock_acquire_contended(&root->lock);
    }
    if (reclaimer->prev != NULL) reclaimer->prev->next = reclaimer->next;
    if (reclaimer->next != NULL) reclaimer->next->prev = reclaimer->prev;
    if (node->reclaimers == reclaimer) node->reclaimers = reclaimer->next;
    node->reclaimer_count--;
    tn_root *const dead = tn_node_collect(node);
    tn_lock_release(&root->lock);
    tn_root_destroy(dead);
}
