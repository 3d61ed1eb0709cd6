/* External data: tensors whose bytes lie in files beside the model.
 *
 * Locations come from the model file and are not trusted: nothing outside the folder is reached,
 * by no way (dots, absolute paths, symbolic links, second names, devices, pipes).
 * Threads: one thread at a time. */
#ifndef TN_MODEL_EXTERNAL_DATA_H
#define TN_MODEL_EXTERNAL_DATA_H

#include "base/span.h"
#include "model/file_map.h"

typedef struct tn_external_data {
    tn_allocator *allocator; /* borrowed: charged for the files */
    tn_text folder;          /* borrowed; data NULL: external data is refused */
    bool copy_file;
    bool allow_links;    /* follow symbolic links and accept hard ones */
    int folder_fd;       /* owned; -1 before the first use */
    tn_file_map **files; /* borrowed: head of the model's list, to which files are added */
    tn_text location;    /* the last one met; borrowed from the model's bytes */
    tn_file_map *file;   /* the file of `location`; borrowed from the list */
} tn_external_data;

/* One entry of TensorProto.external_data, parsed. */
typedef struct tn_external_range {
    tn_text location;
    uint64_t offset_bytes;
    uint64_t length_bytes;
    bool has_length; /* false: all of the file from the offset on */
} tn_external_range;

/* Closes the folder; the files stay with the list. Accepts a zeroed record with folder_fd -1. */
void tn_external_data_deinit(tn_external_data *external);

/* Finds the bytes of `range`, mapping its file on first use.
 * Ownership: *out_bytes is valid while the file stays in the list.
 * Errors:    TN_IO (file), TN_INVALID_MODEL (location or range), TN_UNSUPPORTED without a folder,
 *            TN_LIMIT, TN_OUT_OF_MEMORY. */
TN_MUST_USE tn_status tn_external_data_find(tn_external_data *external,
                                            const tn_external_range *range, tn_bytes *out_bytes,
                                            bool *out_is_mapped, tn_error *err);

/* Ways of opening a location beneath a folder. The second serves kernels without openat2 and gives
 * the same answers. */
typedef enum tn_beneath_way { TN_BENEATH_KERNEL, TN_BENEATH_WALK } tn_beneath_way;

/* Opens `location`, already proved relative and without "..", beneath `folder_fd` without following
 * any symbolic link. Gives a descriptor, or the negative error number. */
int tn_open_beneath(int folder_fd, const char *location, tn_beneath_way way);

#endif
