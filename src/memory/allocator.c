/* Nodes of the allocator tree: making, sharing, closing. A node lives while somebody has a handle
 * on it or anything that it was charged for is alive; the last thing to go frees it, then its
 * parent is looked at in the same way, up to the root, whose state goes last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/fault.h"
#include "memory/tree.h"

#define PAGE_SOURCE_VARIABLE "TENURE_PAGE_SOURCE"

tn_status tn_options_copy(void *out, size_t size_bytes, const void *options, tn_error *err) {
    size_t struct_size = 0;
    memset(out, 0, size_bytes);
    if (options == NULL) return TN_OK;
    memcpy(&struct_size, options, sizeof struct_size);
    if (struct_size == 0) struct_size = size_bytes;
    TN_REQUIRE(struct_size >= sizeof struct_size && struct_size <= size_bytes, err,
               TN_INVALID_ARGUMENT, "options of %zu bytes, this library knows %zu", struct_size,
               size_bytes);
    memcpy(out, options, struct_size);
    return TN_OK;
}

static tn_status check_options(const tn_allocator_options *options, bool is_root, tn_error *err) {
    TN_REQUIRE(options->limit_bytes == 0 || options->reservation_bytes <= options->limit_bytes, err,
               TN_INVALID_ARGUMENT, "reservation of %llu bytes above the limit of %llu",
               (unsigned long long)options->reservation_bytes,
               (unsigned long long)options->limit_bytes);
    TN_REQUIRE(!is_root || options->reservation_bytes == 0, err, TN_INVALID_ARGUMENT,
               "a root has nobody to reserve %llu bytes from",
               (unsigned long long)options->reservation_bytes);
    const tn_page_source *const source = options->page_source;
    TN_REQUIRE(source == NULL || (source->alloc != NULL && source->free != NULL), err,
               TN_INVALID_ARGUMENT, "a page source needs alloc and free");
    return TN_OK;
}

static void set_source(tn_source *source, tn_source_kind kind, const tn_page_source *table,
                       const tn_fault_injector *fault) {
    memset(source, 0, sizeof *source);
    source->kind = kind;
    source->fault = fault;
    source->table.struct_size = sizeof source->table;
    const size_t known =
        table->struct_size == 0 ? sizeof *table : tn_size_min(table->struct_size, sizeof *table);
    memcpy(&source->table, table, known);
}

/* Chooses the root's source: a table, then a name, then the environment, then `system`. */
static tn_status open_source(const tn_allocator_options *options, tn_source *out, tn_error *err) {
    const char *name = options->page_source_name;
    const char *origin = "page_source_name";
    if (options->page_source != NULL) {
        set_source(out, TN_SOURCE_CALLER, options->page_source, options->fault);
        return TN_OK;
    }
    if (name == NULL) {
        name = getenv(PAGE_SOURCE_VARIABLE);
        origin = PAGE_SOURCE_VARIABLE;
    }
    if (name == NULL || strcmp(name, "system") == 0) {
        void *const ctx = tn_page_source_system_create(options->fault);
        TN_REQUIRE(ctx != NULL, err, TN_OUT_OF_MEMORY, "no memory for the page source `system`");
        const tn_page_source table = tn_page_source_system_table(ctx);
        set_source(out, TN_SOURCE_SYSTEM, &table, options->fault);
        return TN_OK;
    }
    TN_REQUIRE(strcmp(name, "libc") == 0, err, TN_INVALID_ARGUMENT,
               "%s=\"%.60s\": known page sources are system and libc", origin, name);
    void *const ctx = tn_page_source_libc_create(options->fault);
    TN_REQUIRE(ctx != NULL, err, TN_OUT_OF_MEMORY, "no memory for the page source `libc`");
    const tn_page_source table = tn_page_source_libc_table(ctx);
    set_source(out, TN_SOURCE_LIBC, &table, options->fault);
    return TN_OK;
}

static void close_source(tn_source *source) {
    if (source->kind == TN_SOURCE_SYSTEM) tn_page_source_system_destroy(source->table.ctx);
    if (source->kind == TN_SOURCE_LIBC) tn_page_source_libc_destroy(source->table.ctx);
}

static tn_root *create_root_state(tn_source *opened, const tn_fault_injector *fault) {
    size_t actual_bytes = 0;
    tn_root *const root = tn_source_alloc(opened, sizeof *root, TN_BUFFER_ALIGNMENT, &actual_bytes);
    if (root == NULL) return NULL;
    memset(root, 0, sizeof *root);
    tn_lock_init(&root->lock);
    /* field by field: its atomic counters must not be copied as bytes */
    root->first_source.table = opened->table;
    root->first_source.kind = opened->kind;
    atomic_init(&root->first_source.used_bytes, actual_bytes);
    atomic_init(&root->first_source.alloc_count, 1);
    if (fault != NULL) {
        root->fault_copy = *fault;
        root->fault = &root->fault_copy;
    }
    root->first_source.fault = root->fault;
    /* the caller's injector need not outlive the call; ours lives as long as the source */
    if (opened->kind == TN_SOURCE_SYSTEM) {
        tn_page_source_system_set_fault(opened->table.ctx, root->fault);
    } else if (opened->kind == TN_SOURCE_LIBC) {
        tn_page_source_libc_set_fault(opened->table.ctx, root->fault);
    }
    root->actual_bytes = actual_bytes;
    root->metadata_bytes = actual_bytes;
    return root;
}

void tn_root_destroy(tn_root *root) {
    if (root == NULL) return;
    while (root->record_chunks != NULL) {
        tn_record_chunk *const chunk = root->record_chunks;
        root->record_chunks = chunk->next;
        tn_source_free(&root->first_source, chunk, chunk->size_bytes, TN_BUFFER_ALIGNMENT,
                       chunk->actual_bytes);
    }
    while (root->first_source.next != NULL) {
        tn_source *const source = root->first_source.next;
        root->first_source.next = source->next;
        tn_source_free(&root->first_source, source, sizeof *source, TN_BUFFER_ALIGNMENT,
                       tn_align_up(sizeof *source, TN_BUFFER_ALIGNMENT));
    }
    const tn_page_source table = root->first_source.table;
    const tn_source_kind kind = root->first_source.kind;
    table.free(table.ctx, root, sizeof *root, TN_BUFFER_ALIGNMENT);
    tn_source rest = {.table = table, .kind = kind};
    close_source(&rest);
}

/* A node that hangs nowhere yet. */
static tn_allocator *create_node(tn_root *root, const tn_allocator_options *options,
                                 const char *default_name) {
    size_t actual_bytes = 0;
    if (tn_fault_hits(root->fault, TN_FAULT_METADATA)) return NULL;
    tn_allocator *const node =
        tn_source_alloc(&root->first_source, sizeof *node, TN_BUFFER_ALIGNMENT, &actual_bytes);
    if (node == NULL) return NULL;
    memset(node, 0, sizeof *node);
    node->root = root;
    node->limit_bytes = options->limit_bytes == 0 ? UINT64_MAX : options->limit_bytes;
    node->reservation_bytes = options->reservation_bytes;
    node->actual_bytes = actual_bytes;
    node->handle_count = 1;
    const char *const name = options->name != NULL ? options->name : default_name;
    (void)snprintf(node->name, sizeof node->name, "%s", name);
    return node;
}

static void destroy_node(tn_root *root, tn_allocator *node) {
    tn_source_free(&root->first_source, node, sizeof *node, TN_BUFFER_ALIGNMENT,
                   node->actual_bytes);
}

tn_status tn_allocator_create_root(const tn_allocator_options *options, tn_allocator **out,
                                   tn_error *err) {
    tn_status status = TN_OK;
    tn_allocator_options known;
    tn_source opened = {0};
    tn_root *root = NULL;
    *out = NULL;
    TN_TRY(tn_options_copy(&known, sizeof known, options, err));
    TN_TRY(check_options(&known, true, err));
    TN_TRY(open_source(&known, &opened, err));

    root = create_root_state(&opened, known.fault);
    TN_REQUIRE_GOTO(root != NULL, cleanup, err, TN_OUT_OF_MEMORY, "no memory for a root allocator");
    tn_allocator *const node = create_node(root, &known, "root");
    TN_REQUIRE_GOTO(node != NULL, cleanup, err, TN_OUT_OF_MEMORY, "no memory for a root allocator");
    node->source = &root->first_source;
    root->node_count = 1;
    root->metadata_bytes += node->actual_bytes;
    *out = node;
    root = NULL;
    opened.kind = TN_SOURCE_CALLER;

cleanup:
    if (root != NULL) {
        tn_root_destroy(root);
    } else {
        close_source(&opened);
    }
    return status;
}

/* Finds the tree's entry for a caller's table, or adds one. */
static tn_source *intern_source(tn_root *root, const tn_page_source *table) {
    size_t actual_bytes = 0;
    for (tn_source *source = &root->first_source; source != NULL; source = source->next) {
        if (source->table.alloc == table->alloc && source->table.ctx == table->ctx) return source;
    }
    tn_source *const made =
        tn_source_alloc(&root->first_source, sizeof *made, TN_BUFFER_ALIGNMENT, &actual_bytes);
    if (made == NULL) return NULL;
    set_source(made, TN_SOURCE_CALLER, table, root->fault);
    made->next = root->first_source.next;
    root->first_source.next = made;
    root->metadata_bytes += actual_bytes;
    return made;
}

static void link_child(tn_allocator *parent, tn_allocator *child) {
    child->parent = parent;
    child->prev_sibling = parent->last_child;
    if (parent->last_child != NULL) {
        parent->last_child->next_sibling = child;
    } else {
        parent->first_child = child;
    }
    parent->last_child = child;
    parent->child_count++;
    parent->root->node_count++;
    parent->root->metadata_bytes += child->actual_bytes;
}

static void unlink_child(tn_allocator *parent, tn_allocator *child) {
    if (child->prev_sibling != NULL) child->prev_sibling->next_sibling = child->next_sibling;
    if (child->next_sibling != NULL) child->next_sibling->prev_sibling = child->prev_sibling;
    if (parent->first_child == child) parent->first_child = child->next_sibling;
    if (parent->last_child == child) parent->last_child = child->prev_sibling;
    parent->child_count--;
}

tn_status tn_allocator_create_child(tn_allocator *parent, const tn_allocator_options *options,
                                    tn_allocator **out, tn_error *err) {
    tn_allocator_options known;
    *out = NULL;
    TN_REQUIRE(parent != NULL, err, TN_INVALID_ARGUMENT, "a child needs a parent");
    TN_TRY(tn_options_copy(&known, sizeof known, options, err));
    TN_TRY(check_options(&known, false, err));

    const tn_charge charge = {.size_bytes = known.reservation_bytes,
                              .requested_bytes = known.reservation_bytes,
                              .is_external = true};
    /* The child's hold on its parent begins as a plain charge of the parent, which the child takes
     * over when it is linked; that way a refusal needs no child. */
    TN_TRY(tn_node_charge(parent, &charge, err));
    tn_root *const root = parent->root;
    tn_lock_acquire(&root->lock);
    tn_allocator *const child = create_node(root, &known, "child");
    tn_source *source = parent->source;
    if (child != NULL && known.page_source != NULL) source = intern_source(root, known.page_source);
    if (child != NULL && source != NULL) {
        child->source = source;
        link_child(parent, child);
        parent->own_charged_bytes -= known.reservation_bytes;
        parent->own_external_bytes -= known.reservation_bytes;
        *out = child;
    } else if (child != NULL) {
        destroy_node(root, child);
    }
    tn_lock_release(&root->lock);
    if (*out != NULL) return TN_OK;
    tn_node_discharge(parent, &charge);
    return tn_out_of_memory(parent, sizeof *child, sizeof *child, err);
}

tn_allocator *tn_allocator_retain(tn_allocator *allocator) {
    if (allocator == NULL) return NULL;
    tn_lock_acquire(&allocator->root->lock);
    allocator->handle_count++;
    tn_lock_release(&allocator->root->lock);
    return allocator;
}

static bool node_is_needed(const tn_allocator *node) {
    return node->handle_count > 0 || node->block_count > 0 || node->raw_count > 0 ||
           node->child_count > 0 || node->reclaimer_count > 0 || node->pin_count > 0 ||
           node->own_charged_bytes > 0;
}

/* What `node` holds from its parent. */
static uint64_t granted_bytes(const tn_allocator *node) {
    return node->used_bytes > node->reservation_bytes ? node->used_bytes : node->reservation_bytes;
}

tn_root *tn_node_collect(tn_allocator *node) {
    while (node != NULL && !node_is_needed(node)) {
        tn_root *const root = node->root;
        tn_allocator *const parent = node->parent;
        if (parent != NULL) {
            tn_node_subtract(parent, granted_bytes(node));
            unlink_child(parent, node);
        }
        root->node_count--;
        root->metadata_bytes -= node->actual_bytes;
        destroy_node(root, node);
        if (parent == NULL) return root;
        node = parent;
    }
    return NULL;
}

/* No new requests; the unused part of the reservation goes back. Under the lock. */
static void shut(tn_allocator *node) {
    const uint64_t held_before = granted_bytes(node);
    node->is_closed = true;
    node->reservation_bytes = 0;
    if (node->parent != NULL) tn_node_subtract(node->parent, held_before - granted_bytes(node));
}

void tn_allocator_release(tn_allocator *allocator) {
    if (allocator == NULL) return;
    tn_root *const root = allocator->root;
    tn_lock_acquire(&root->lock);
    allocator->handle_count--;
    if (allocator->handle_count == 0) shut(allocator);
    tn_root *const dead = tn_node_collect(allocator);
    tn_lock_release(&root->lock);
    tn_root_destroy(dead);
}

void tn_allocator_abandon(tn_allocator *allocator) {
    if (allocator == NULL) return;
    tn_lock_acquire(&allocator->root->lock);
    shut(allocator);
    tn_lock_release(&allocator->root->lock);
}

/* "; child a (12 bytes), child b (0 bytes)", cut to what fits. Under the lock. */
static void list_children(const tn_allocator *node, char *out, size_t capacity_bytes) {
    size_t used = 0;
    out[0] = '\0';
    for (const tn_allocator *child = node->first_child; child != NULL;
         child = child->next_sibling) {
        const int written =
            snprintf(out + used, capacity_bytes - used, "%s child %.24s (%llu bytes)",
                     used == 0 ? ";" : ",", child->name, (unsigned long long)child->used_bytes);
        if (written < 0 || (size_t)written >= capacity_bytes - used) break;
        used += (size_t)written;
    }
}

/* A closed child that only waits for its last reference holds nothing up. Under the lock. */
static bool has_open_child(const tn_allocator *node) {
    for (const tn_allocator *child = node->first_child; child != NULL;
         child = child->next_sibling) {
        if (!child->is_closed || child->used_bytes > 0) return true;
    }
    return false;
}

tn_status tn_allocator_close(tn_allocator *allocator, tn_error *err) {
    char children[240];
    char path[TN_ERROR_NAME_BYTES];
    TN_REQUIRE(allocator != NULL, err, TN_INVALID_ARGUMENT, "no allocator to close");
    tn_node_path(allocator, path, sizeof path);
    tn_lock_acquire(&allocator->root->lock);
    const tn_allocator seen = *allocator;
    const bool is_busy = seen.block_count > 0 || seen.raw_count > 0 || has_open_child(allocator) ||
                         seen.own_charged_bytes > 0;
    list_children(allocator, children, sizeof children);
    if (!is_busy && !seen.is_closed) shut(allocator);
    tn_lock_release(&allocator->root->lock);

    TN_REQUIRE(!seen.is_closed, err, TN_CLOSED, "allocator %s is closed already", path);
    if (!is_busy) return TN_OK;
    const tn_status status = tn_error_set(
        err, TN_BUSY,
        "allocator %s has %llu bytes outstanding: %u blocks, %u records of the library, "
        "%llu bytes charged from outside, %u children%s",
        path, (unsigned long long)seen.used_bytes, seen.block_count, seen.raw_count,
        (unsigned long long)seen.own_external_bytes, seen.child_count, children);
    if (err != NULL) (void)snprintf(err->allocator, sizeof err->allocator, "%s", path);
    return status;
}

void tn_allocator_set_limit(tn_allocator *allocator, uint64_t limit_bytes) {
    tn_lock_acquire(&allocator->root->lock);
    allocator->limit_bytes = limit_bytes == 0 ? UINT64_MAX : limit_bytes;
    tn_lock_release(&allocator->root->lock);
}

void tn_allocator_reset_peak(tn_allocator *allocator) {
    tn_lock_acquire(&allocator->root->lock);
    allocator->peak_bytes = allocator->used_bytes;
    tn_lock_release(&allocator->root->lock);
}

const char *tn_allocator_name(const tn_allocator *allocator) {
    return allocator->name;
}

tn_allocator *tn_allocator_parent(const tn_allocator *allocator) {
    return allocator->parent;
}

uint64_t tn_allocator_charged(const tn_allocator *allocator) {
    tn_lock_acquire(&allocator->root->lock);
    const uint64_t used_bytes = allocator->used_bytes;
    tn_lock_release(&allocator->root->lock);
    return used_bytes;
}
