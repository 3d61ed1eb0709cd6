/* Figures from /proc and getrusage; read without stdio, whose buffers would count as allocations.
 */
#include "cli/host.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

uint64_t cli_now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t cli_minor_faults(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (uint64_t)usage.ru_minflt;
}

static uint64_t status_bytes(const char *key) {
    char text[8192];
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t size = read(file, text, sizeof text - 1);
    (void)close(file);
    if (size <= 0) return 0;
    text[size] = '\0';
    const char *line = strstr(text, key);
    return line == NULL ? 0 : (uint64_t)strtoull(line + strlen(key), NULL, 10) * 1024;
}

uint64_t cli_rss_bytes(void) {
    return status_bytes("\nVmRSS:");
}

uint64_t cli_peak_rss_bytes(void) {
    return status_bytes("\nVmHWM:");
}

void cli_reset_peak_rss(void) {
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, "5", 1) != 1) {
        /* the peak then counts from the start of the process, which is the safe side */
    }
    (void)close(file);
}
