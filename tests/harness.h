/* cmocka with its includes in the order it wants, and checks for our status codes. */
#ifndef TN_TESTS_HARNESS_H
#define TN_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <tenure/status.h>

#define T(name) cmocka_unit_test(name)

#define ASSERT_STATUS(expected, call)                                                      \
    do {                                                                                   \
        const tn_status tn_seen = (call);                                                  \
        if (tn_seen != (expected)) {                                                       \
            print_error("%s:%d: %s returned %s, expected %s\n", __FILE__, __LINE__, #call, \
                        tn_status_name(tn_seen), tn_status_name(expected));                \
        }                                                                                  \
        assert_int_equal(tn_seen, (expected));                                             \
    } while (0)

#define ASSERT_OK(call) ASSERT_STATUS(TN_OK, call)

#endif
