/* Mapping of model files. The charge of a mapping is its length in whole pages; tensors that were
 * packed elsewhere leave it one by one. A file that another process truncates takes the mapping's
 * pages with it (SIGBUS): that is what copying is offered for. */
#include "model/file_map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "model/record_pool.h"

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static tn_status system_error(const char *label, const char *call, int number, tn_error *err) {
    (void)tn_error_set(err, number == ENOMEM ? TN_OUT_OF_MEMORY : TN_IO, "%.200s: %s: %s", label,
                       call, strerror(number));
    tn_error_set_node(err, label);
    return number == ENOMEM ? TN_OUT_OF_MEMORY : TN_IO;
}

static tn_status check_file(const tn_file_source *source, struct stat *out_facts, tn_error *err) {
    const char *label = source->label;
    if (fstat(source->fd, out_facts) != 0) return system_error(label, "stat", errno, err);
    tn_status status = TN_OK;
    TN_REQUIRE_GOTO(S_ISREG(out_facts->st_mode), cleanup, err, TN_IO, "%.200s: no regular file",
                    label);
    TN_REQUIRE_GOTO(!source->needs_single_link || out_facts->st_nlink == 1, cleanup, err, TN_IO,
                    "%.200s: has %ju names, only files with one are read", label,
                    (uintmax_t)out_facts->st_nlink);
    TN_REQUIRE_GOTO((uintmax_t)out_facts->st_size <= PTRDIFF_MAX, cleanup, err, TN_IO,
                    "%.200s: too large to be mapped", label);

cleanup:
    if (status != TN_OK) tn_error_set_node(err, label);
    return status;
}

static tn_status copy_bytes(tn_file_map *map, const tn_file_source *source, size_t size_bytes,
                            tn_error *err) {
    TN_TRY(tn_buffer_create(map->allocator, size_bytes, 0, &map->copy, err));
    size_t done_bytes = 0;
    while (done_bytes < size_bytes) {
        const ssize_t got = pread(source->fd, (uint8_t *)map->copy.data + done_bytes,
                                  size_bytes - done_bytes, (off_t)done_bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_error(source->label, "read", errno, err);
        TN_REQUIRE(got > 0, err, TN_IO, "%.200s: ended after %zu of %zu bytes", source->label,
                   done_bytes, size_bytes);
        done_bytes += (size_t)got;
    }
    map->bytes = (tn_bytes){map->copy.data, size_bytes};
    return TN_OK;
}

static tn_status map_bytes(tn_file_map *map, const tn_file_source *source, size_t size_bytes,
                           tn_error *err) {
    const uint64_t charge_bytes = tn_align_up(size_bytes, page_bytes());
    TN_TRY(tn_allocator_charge_mapped(map->allocator, charge_bytes, err));
    void *data = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, source->fd, 0);
    if (data == MAP_FAILED) {
        const int number = errno;
        tn_allocator_discharge_mapped(map->allocator, charge_bytes);
        return system_error(source->label, "map", number, err);
    }
    map->is_mapped = true;
    map->charged_bytes = charge_bytes;
    map->bytes = (tn_bytes){data, size_bytes};
    return TN_OK;
}

tn_status tn_file_map_create(tn_allocator *allocator, const tn_file_source *source,
                             tn_file_map **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_file_map *map = NULL;
    struct stat facts;
    *out = NULL;

    TN_TRY_GOTO(check_file(source, &facts, err), cleanup);
    map = tn_allocator_calloc(allocator, 1, sizeof *map);
    if (map == NULL) {
        status = tn_record_refusal(allocator, sizeof *map, err);
        goto cleanup;
    }
    map->allocator = allocator;
    map->device = facts.st_dev;
    map->inode = facts.st_ino;
    const size_t size_bytes = (size_t)facts.st_size;
    if (source->copy_file && size_bytes > 0) {
        TN_TRY_GOTO(copy_bytes(map, source, size_bytes, err), cleanup);
    } else if (size_bytes > 0) {
        TN_TRY_GOTO(map_bytes(map, source, size_bytes, err), cleanup);
    }
    *out = map;
    map = NULL;

cleanup:
    tn_file_map_destroy(map);
    return status;
}

void tn_file_map_destroy(tn_file_map *map) {
    if (map == NULL) return;
    if (map->is_mapped) {
        (void)munmap((void *)(uintptr_t)map->bytes.data, map->bytes.size_bytes);
        tn_allocator_discharge_mapped(map->allocator, map->charged_bytes);
    }
    if (map->copy.ledger != NULL) (void)tn_buffer_release(&map->copy);
    tn_allocator_free(map->allocator, map);
}

void tn_file_map_drop(tn_file_map *map, const void *data, size_t size_bytes) {
    const size_t page = page_bytes();
    const uintptr_t first = tn_align_up((uintptr_t)data, page);
    const uintptr_t last = ((uintptr_t)data + size_bytes) & ~(uintptr_t)(page - 1);
    if (first < last) (void)madvise((void *)first, last - first, MADV_DONTNEED);

    /* tensors may share bytes of an external file: never more than what is left */
    const uint64_t leaving_bytes =
        size_bytes < map->charged_bytes ? size_bytes : map->charged_bytes;
    map->charged_bytes -= leaving_bytes;
    tn_allocator_discharge_mapped(map->allocator, leaving_bytes);
}
