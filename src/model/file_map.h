/* Files that a model reads in place: a read-only mapping, or a copy in memory.
 *
 * Ownership: create/destroy; the bytes live until destroy.
 * Threads:   immutable after create, except the drop calls, which the owner serialises. */
#ifndef TN_MODEL_FILE_MAP_H
#define TN_MODEL_FILE_MAP_H

#include <sys/types.h>

#include <tenure/memory.h>

#include "base/span.h"

typedef struct tn_file_map {
    struct tn_file_map *next; /* the owner's list */
    tn_allocator *allocator;  /* borrowed: charged */
    tn_bytes bytes;           /* the whole file */
    tn_buffer copy;           /* owned when not mapped; else zero */
    bool is_mapped;
    uint64_t charged_bytes; /* mapped files: what is still charged */
    dev_t device;           /* with inode: which file this is */
    ino_t inode;
} tn_file_map;

/* An open file and what may be done with it. */
typedef struct tn_file_source {
    int fd;                 /* the caller keeps it, and may close it after create */
    const char *label;      /* its name in messages; borrowed */
    bool copy_file;         /* copy instead of mapping */
    bool needs_single_link; /* refuse files with a second name elsewhere */
} tn_file_source;

/* Maps or copies the file of `source`.
 * Ownership: *out is new; give it back with tn_file_map_destroy.
 * Errors:    TN_IO (the label and the system's words, or no regular file, or several links),
 * TN_LIMIT, TN_OUT_OF_MEMORY. */
TN_MUST_USE tn_status tn_file_map_create(tn_allocator *allocator, const tn_file_source *source,
                                         tn_file_map **out, tn_error *err);
void tn_file_map_destroy(tn_file_map *map); /* accepts NULL */

/* Gives the whole pages inside [`data`, `data` + `size_bytes`) back to the system and takes the
 * bytes out of what is charged. The range must lie in a mapped file; it stays readable. */
void tn_file_map_drop(tn_file_map *map, const void *data, size_t size_bytes);

#endif
