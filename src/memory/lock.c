/* The slow half of the lock: what a waiter does. The steps grow from a pause to a short sleep, so
 * that a holder that lost its core (more threads than cores) gets it back. */
#include "memory/lock.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>

#define SPINS_BEFORE_YIELD 200
#define YIELDS_BEFORE_SLEEP 50
#define SLEEP_NS 20000

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool try_acquire(tn_lock *lock) {
    /* relaxed: only a hint; the exchange below decides and orders */
    if (atomic_load_explicit(&lock->is_held, memory_order_relaxed) != 0) return false;
    return atomic_exchange_explicit(&lock->is_held, 1, memory_order_acquire) == 0;
}

void tn_lock_acquire_contended(tn_lock *lock) {
    for (int i = 0; i < SPINS_BEFORE_YIELD; i++) {
        if (try_acquire(lock)) return;
        relax();
    }
    for (int i = 0; i < YIELDS_BEFORE_SLEEP; i++) {
        if (try_acquire(lock)) return;
        (void)sched_yield();
    }
    while (!try_acquire(lock)) {
        const struct timespec pause = {.tv_sec = 0, .tv_nsec = SLEEP_NS};
        (void)nanosleep(&pause, NULL);
    }
}
