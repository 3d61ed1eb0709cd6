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

typedef struct tn_model_options {
    size_t struct_size;
    bool copy_file; /* read into memory instead of mapping (the file may change meanwhile) */
    const char *external_data_dir; /* models from bytes: folder of external data; NULL: refused */
} tn_model_options;

/* Reads the model in file `path`. Mapping, records and copies are charged to a child of
 * `allocator` named "shared/<file name>".
 * Ownership: *out is new; release it with tn_model_release.
 * Errors:    TN_IO (path and errno text), TN_INVALID_MODEL (names field or node), TN_UNSUPPORTED,
 *            TN_LIMIT, TN_OUT_OF_MEMORY. On error *out is NULL and the tree is as before. */
TN_API TN_MUST_USE tn_status tn_model_load_file(tn_allocator *allocator, const char *path,
                                                const tn_model_options *options, tn_model **out,
                                                tn_error *err);

/* The same for a serialized ModelProto in memory, which is copied unless `options` says that it
 * outlives the model. */
TN_API TN_MUST_USE tn_status tn_model_load_bytes(tn_allocator *allocator, const void *data,
                                                 size_t size_bytes, const tn_model_options *options,
                                                 tn_model **out, tn_error *err);

TN_API tn_model *tn_model_retain(tn_model *model);
TN_API void tn_model_release(tn_model *model); /* accepts NULL */

/* The allocator that holds the model's mapping and records. Borrowed. */
TN_API tn_allocator *tn_model_allocator(const tn_model *model);

#ifdef __cplusplus
}
#endif
#endif
