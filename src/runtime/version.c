/* The version, from the public header's numbers. */
#include <tenure/tenure.h>

#define TEXT(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *tn_version(void) {
    return VERSION_TEXT(TN_VERSION_MAJOR, TN_VERSION_MINOR, TN_VERSION_PATCH);
}
