/* Models: an ONNX file read in place over a read-only mapping.
 *
 * Ownership: create/retain/release; a model is immutable and shared by sessions.
 * Threads:   safe from any thread. */
#ifndef TENURE_MODEL_H
#define TENURE_MODEL_H

#include <tenure/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_model tn_model;

/* Zero is the default everywhere; `struct_size` may be 0 too and then means this version. */
typedef struct tn_model_options {
    size_t struct_size;
    bool copy_file;    /* read files into memory instead of mapping them (a mapped file that another
                          process truncates ends this one) */
    bool borrow_bytes; /* models from bytes: use the caller's memory, which outlives the model */
    bool allow_external_links;     /* external data: follow symbolic links, accept files with
                                      several names; for caches that store weights as links */
    const char *external_data_dir; /* folder of external data; NULL: the model file's own; models
                                      from bytes have none then, and external data is refused */
} tn_model_options;

/* Reads the model in file `path`. Mapping, records and copies are charged to a child of
 * `allocator` named "shared/<file name>". Nodes that are out of order are sorted.
 * Ownership: *out is new; release it with tn_model_release. `options` may be NULL.
 * Errors:    TN_IO (path and the system's words), TN_INVALID_MODEL (names node or field),
 *            TN_UNSUPPORTED, TN_OVERFLOW, TN_LIMIT, TN_OUT_OF_MEMORY, TN_INVALID_ARGUMENT. On error
 *            *out is NULL and the tree is as before. */
TN_API TN_MUST_USE tn_status tn_model_load_file(tn_allocator *allocator, const char *path,
                                                const tn_model_options *options, tn_model **out,
                                                tn_error *err);

/* The same for a serialized ModelProto of `size_bytes` in memory, which is copied unless
 * `borrow_bytes` is set; the child is named "shared/bytes". */
TN_API TN_MUST_USE tn_status tn_model_load_bytes(tn_allocator *allocator, const void *data,
                                                 size_t size_bytes, const tn_model_options *options,
                                                 tn_model **out, tn_error *err);

/* Adds a reference to `model`, or drops one; the last one unmaps the file and returns all memory.
 * Threads: any. retain and release accept NULL. */
TN_API tn_model *tn_model_retain(tn_model *model);
TN_API void tn_model_release(tn_model *model);

/* The allocator that holds the model's mapping and records. Borrowed. */
TN_API tn_allocator *tn_model_allocator(const tn_model *model);

#ifdef __cplusplus
}
#endif
#endif
