/* A promise to the compiler about the loop that follows. */
#ifndef TN_BASE_LOOP_H
#define TN_BASE_LOOP_H

/* Iterations touch the same element at most through one index: so the loop may become vector code
 * also when source and destination are the same memory. */
#if defined(__clang__)
#define TN_LOOP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TN_LOOP_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
