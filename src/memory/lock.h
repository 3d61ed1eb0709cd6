/* A lock for critical sections of some tens of nanoseconds: one exchange to take, one store to
 * give back. Waiters spin briefly, then yield, then sleep; nobody holds it across a system call on
 * a path that is hot. Not recursive. */
#ifndef TN_MEMORY_LOCK_H
#define TN_MEMORY_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct tn_lock {
    _Atomic uint32_t is_held;
} tn_lock;

void tn_lock_acquire_contended(tn_lock *lock);

static inline void tn_lock_init(tn_lock *lock) {
    atomic_init(&lock->is_held, 0);
}

static inline void tn_lock_acquire(tn_lock *lock) {
    /* acquire: everything the last holder wrote is seen */
    if (atomic_exchange_explicit(&lock->is_held, 1, memory_order_acquire) != 0) {
        tn_lock_acquire_contended(lock);
    }
}

static inline void tn_lock_release(tn_lock *lock) {
    /* release: pairs with the acquire of the next holder */
    atomic_store_explicit(&lock->is_held, 0, memory_order_release);
}

#endif
