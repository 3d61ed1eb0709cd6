/* What the tree shows of itself: figures of a node, walks, the text table, and the proof that its
 * numbers add up. */
#include <stdio.h>
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/tree.h"

/* The node after `at` in a walk of `top`'s subtree, parents first; NULL at the end. */
static tn_allocator *next_node(const tn_allocator *top, const tn_allocator *at, int *inout_depth) {
    if (at->first_child != NULL) {
        (*inout_depth)++;
        return at->first_child;
    }
    while (at != top && at->next_sibling == NULL) {
        at = at->parent;
        (*inout_depth)--;
    }
    return at == top ? NULL : at->next_sibling;
}

static void add_figures(const tn_allocator *node, tn_allocator_stats *out) {
    for (const tn_reclaimer *it = node->reclaimers; it != NULL; it = it->next) {
        tn_arena_figures figures = {0};
        it->figures(it, &figures);
        out->live_bytes += figures.live_bytes;
        out->live_capacity_bytes += figures.live_capacity_bytes;
        out->retained_bytes += figures.retained_bytes;
        out->leased_bytes += figures.leased_bytes;
        out->live_peak_bytes += figures.live_peak_bytes;
    }
}

/* Sums over the subtree; under the lock. */
static void add_subtree(const tn_allocator *top, tn_allocator_stats *out) {
    int depth = 0;
    for (const tn_allocator *at = top; at != NULL; at = next_node(top, at, &depth)) {
        const uint64_t own_anonymous_bytes = at->own_charged_bytes - at->own_external_bytes;
        out->slack_bytes += at->own_held_bytes - own_anonymous_bytes;
        out->mapped_bytes += at->own_mapped_bytes;
        out->external_bytes += at->own_external_bytes - at->own_mapped_bytes;
        out->block_count += at->block_count;
        out->record_count += at->raw_count;
        if (at->reservation_bytes > at->used_bytes) {
            out->promised_bytes += at->reservation_bytes - at->used_bytes;
        }
        add_figures(at, out);
    }
}

static uint64_t held_by_sources(const tn_root *root) {
    uint64_t held_bytes = 0;
    for (const tn_source *source = &root->first_source; source != NULL; source = source->next) {
        held_bytes += tn_source_held_bytes(source);
    }
    return held_bytes;
}

static uint64_t used_from_sources(const tn_root *root) {
    uint64_t used_bytes = 0;
    for (const tn_source *source = &root->first_source; source != NULL; source = source->next) {
        /* relaxed: a counter */
        used_bytes += atomic_load_explicit(&source->used_bytes, memory_order_relaxed);
    }
    return used_bytes;
}

static void fill_stats(const tn_allocator *node, tn_allocator_stats *out) {
    (void)snprintf(out->name, sizeof out->name, "%s", node->name);
    out->limit_bytes = node->limit_bytes == UINT64_MAX ? 0 : node->limit_bytes;
    out->reservation_bytes = node->reservation_bytes;
    out->charged_bytes = node->used_bytes;
    out->own_bytes = node->own_charged_bytes;
    out->peak_bytes = node->peak_bytes;
    out->refusal_count = node->refusal_count;
    out->is_closed = node->is_closed;
    add_subtree(node, out);
    /* the root's own unused reservation does not exist; a child's is not part of its charge */
    const uint64_t own_promise =
        node->reservation_bytes > node->used_bytes ? node->reservation_bytes - node->used_bytes : 0;
    out->promised_bytes -= own_promise;
    if (node->parent != NULL) {
        out->held_bytes = out->charged_bytes - out->promised_bytes - out->mapped_bytes -
                          out->external_bytes + out->slack_bytes;
        return;
    }
    /* what sources hold beyond the blocks of the nodes: chunks, records, the state itself */
    out->held_bytes = held_by_sources(node->root);
    out->slack_bytes +=
        out->held_bytes - (used_from_sources(node->root) - node->root->metadata_bytes);
}

void tn_allocator_get_stats(const tn_allocator *allocator, tn_allocator_stats *out) {
    tn_allocator_stats known = {0};
    const size_t struct_size =
        out->struct_size == 0 ? sizeof known : tn_size_min(out->struct_size, sizeof known);
    tn_lock_acquire(&allocator->root->lock);
    fill_stats(allocator, &known);
    tn_lock_release(&allocator->root->lock);
    known.struct_size = struct_size;
    memcpy(out, &known, struct_size);
}

/* A caller's source may keep no figures; then what this tree asked of it counts. */
static void add_source(const tn_source *source, tn_page_source_stats *sum) {
    tn_page_source_stats stats = {.struct_size = sizeof stats};
    if (source->table.stats != NULL) {
        source->table.stats(source->table.ctx, &stats);
    } else {
        stats.used_bytes = atomic_load_explicit(&source->used_bytes, memory_order_relaxed);
        stats.held_bytes = stats.used_bytes;
        stats.alloc_count = atomic_load_explicit(&source->alloc_count, memory_order_relaxed);
        stats.free_count = atomic_load_explicit(&source->free_count, memory_order_relaxed);
    }
    sum->held_bytes += stats.held_bytes;
    sum->used_bytes += stats.used_bytes;
    sum->alloc_count += stats.alloc_count;
    sum->free_count += stats.free_count;
    sum->mapping_count += stats.mapping_count;
}

void tn_allocator_get_page_source_stats(const tn_allocator *allocator, tn_page_source_stats *out) {
    tn_page_source_stats sum = {0};
    const size_t struct_size =
        out->struct_size == 0 ? sizeof sum : tn_size_min(out->struct_size, sizeof sum);
    tn_lock_acquire(&allocator->root->lock);
    for (const tn_source *s = &allocator->root->first_source; s != NULL; s = s->next) {
        add_source(s, &sum);
    }
    tn_lock_release(&allocator->root->lock);
    sum.struct_size = struct_size;
    memcpy(out, &sum, struct_size);
}

void tn_allocator_visit(const tn_allocator *allocator, tn_allocator_visit_fn visit, void *ctx) {
    tn_root *const root = allocator->root;
    /* pins make this walk's place in the tree stay; they are no part of what a caller sees */
    tn_allocator *at = (tn_allocator *)(uintptr_t)allocator;
    tn_root *dead = NULL;
    int depth = 0;
    tn_lock_acquire(&root->lock);
    at->pin_count++;
    while (at != NULL && dead == NULL) {
        tn_lock_release(&root->lock);
        const bool goes_on = visit(ctx, at, depth);
        tn_lock_acquire(&root->lock);
        tn_allocator *const next = goes_on ? next_node(allocator, at, &depth) : NULL;
        if (next != NULL) next->pin_count++;
        at->pin_count--;
        dead = tn_node_collect(at);
        at = next;
    }
    tn_lock_release(&root->lock);
    tn_root_destroy(dead);
}

typedef struct report_writer {
    char *text;
    size_t capacity_bytes;
    size_t needed_bytes; /* without the NUL */
} report_writer;

static void append(report_writer *writer, const char *line) {
    const size_t len_bytes = strlen(line);
    if (writer->needed_bytes < writer->capacity_bytes) {
        const size_t room = writer->capacity_bytes - writer->needed_bytes;
        (void)snprintf(writer->text + writer->needed_bytes, room, "%s", line);
    }
    writer->needed_bytes += len_bytes;
}

/* "12.3 MiB"; exact bytes below 10 KiB. */
static void human_size(uint64_t size_bytes, char out[16]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    if (size_bytes < 10240) {
        (void)snprintf(out, 16, "%u B", (unsigned)size_bytes);
        return;
    }
    double value = (double)size_bytes / 1024;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < TN_COUNTOF(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, 16, "%.1f %s", value, units[unit]);
}

static bool append_node(void *ctx, const tn_allocator *node, int depth) {
    report_writer *const writer = ctx;
    tn_allocator_stats stats = {.struct_size = sizeof stats};
    char figures[7][16];
    char name[112];
    char line[256];
    tn_allocator_get_stats(node, &stats);
    const uint64_t values[] = {stats.charged_bytes,  stats.own_bytes,    stats.live_bytes,
                               stats.retained_bytes, stats.leased_bytes, stats.slack_bytes,
                               stats.peak_bytes};
    for (size_t i = 0; i < TN_COUNTOF(values); i++) human_size(values[i], figures[i]);
    char limit[16] = "none";
    if (stats.limit_bytes != 0) human_size(stats.limit_bytes, limit);
    const int indent = depth < 12 ? 2 * depth : 24;
    (void)snprintf(name, sizeof name, "%*s%s%s", indent, "", stats.name,
                   stats.is_closed ? " (closed)" : "");
    (void)snprintf(line, sizeof line, "%-32s %11s %11s %11s %11s %11s %11s %11s %11s\n", name,
                   figures[0], figures[1], figures[2], figures[3], figures[4], figures[5],
                   figures[6], limit);
    append(writer, line);
    return true;
}

size_t tn_allocator_report(const tn_allocator *allocator, char *text, size_t capacity_bytes) {
    report_writer writer = {.text = text, .capacity_bytes = capacity_bytes};
    char line[256];
    if (capacity_bytes > 0) text[0] = '\0';
    (void)snprintf(line, sizeof line, "%-32s %11s %11s %11s %11s %11s %11s %11s %11s\n",
                   "allocator", "charged", "own", "live", "retained", "leased", "slack", "peak",
                   "limit");
    append(&writer, line);
    tn_allocator_visit(allocator, append_node, &writer);
    return writer.needed_bytes + 1;
}

/* One node: what it uses is what it charged and what its children hold. */
static tn_status verify_node(const tn_allocator *node, tn_error *err) {
    uint64_t held_by_children = 0;
    uint32_t child_count = 0;
    for (const tn_allocator *child = node->first_child; child != NULL;
         child = child->next_sibling) {
        held_by_children += child->used_bytes > child->reservation_bytes ? child->used_bytes
                                                                         : child->reservation_bytes;
        child_count++;
        TN_REQUIRE(child->parent == node, err, TN_INTERNAL, "child %s does not know its parent",
                   child->name);
    }
    TN_REQUIRE(child_count == node->child_count, err, TN_INTERNAL, "%s counts %u children, has %u",
               node->name, node->child_count, child_count);
    TN_REQUIRE(node->used_bytes == node->own_charged_bytes + held_by_children, err, TN_INTERNAL,
               "%s uses %llu bytes, but charged %llu and its children hold %llu", node->name,
               (unsigned long long)node->used_bytes, (unsigned long long)node->own_charged_bytes,
               (unsigned long long)held_by_children);
    TN_REQUIRE(node->peak_bytes >= node->used_bytes, err, TN_INTERNAL, "%s is above its peak",
               node->name);
    TN_REQUIRE(node->own_charged_bytes >= node->own_external_bytes &&
                   node->own_external_bytes >= node->own_mapped_bytes,
               err, TN_INTERNAL, "%s charged less than it has from outside", node->name);
    TN_REQUIRE(node->own_held_bytes >= node->own_charged_bytes - node->own_external_bytes, err,
               TN_INTERNAL, "%s holds less than it charged", node->name);
    return TN_OK;
}

static tn_status verify_tree(const tn_allocator *top, tn_error *err) {
    const tn_root *const root = top->root;
    uint64_t held_bytes = 0;
    uint32_t node_count = 0;
    int depth = 0;
    for (const tn_allocator *at = top; at != NULL; at = next_node(top, at, &depth)) {
        TN_TRY(verify_node(at, err));
        held_bytes += at->own_held_bytes;
        node_count++;
    }
    TN_REQUIRE(node_count == root->node_count, err, TN_INTERNAL, "%u nodes counted, %u found",
               root->node_count, node_count);
    const uint64_t used_bytes = used_from_sources(root);
    TN_REQUIRE(used_bytes == held_bytes + root->metadata_bytes, err, TN_INTERNAL,
               "page sources gave %llu bytes, nodes hold %llu and records %llu",
               (unsigned long long)used_bytes, (unsigned long long)held_bytes,
               (unsigned long long)root->metadata_bytes);
    tn_allocator_stats stats = {0};
    fill_stats(top, &stats);
    const uint64_t charged_bytes =
        stats.charged_bytes - stats.promised_bytes - stats.mapped_bytes - stats.external_bytes;
    TN_REQUIRE(charged_bytes + stats.slack_bytes == stats.held_bytes, err, TN_INTERNAL,
               "charged %llu + slack %llu is not the %llu bytes held",
               (unsigned long long)charged_bytes, (unsigned long long)stats.slack_bytes,
               (unsigned long long)stats.held_bytes);
    return TN_OK;
}

tn_status tn_allocator_verify(const tn_allocator *root_allocator, tn_error *err) {
    TN_REQUIRE(root_allocator->parent == NULL, err, TN_INVALID_ARGUMENT,
               "%s is not the root of its tree", root_allocator->name);
    tn_lock_acquire(&root_allocator->root->lock);
    const tn_status status = verify_tree(root_allocator, err);
    tn_lock_release(&root_allocator->root->lock);
    return status;
}
