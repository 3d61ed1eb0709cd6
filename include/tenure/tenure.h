/* Tenure: an ONNX runtime whose memory can be reasoned about. The one header to include.
 *
 * Ownership  create/destroy: one owner.  create/retain/release: shared by count.
 *            borrow: lent, valid while the owner lives.  take: on success the callee owns it.
 *            destroy and release accept NULL. close ends use now, whatever references remain.
 * Errors     every fallible call returns tn_status and takes a tn_error * (may be NULL) last. A
 *            failed call changes nothing.
 * Threads    each type says: immutable, safe, or one thread at a time (the default).
 * Options    structures begin with struct_size = sizeof the structure; zero is the default. */
#ifndef TENURE_TENURE_H
#define TENURE_TENURE_H

#include <tenure/arena.h>
#include <tenure/memory.h>
#include <tenure/model.h>
#include <tenure/session.h>
#include <tenure/status.h>
#include <tenure/tensor.h>

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0", static. */
TN_API const char *tn_version(void);

#ifdef __cplusplus
}
#endif
#endif
