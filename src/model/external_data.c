/* Resolution of external data. The location is first judged as text, then opened by the kernel's
 * own confined look-up (openat2), or, where that is missing, component by component without
 * following links; a name that passes the text rules cannot leave the folder by either way. */
#include "model/external_data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "model/label.h"

/* A pipe must not block the open; a terminal must not become ours. */
#define FILE_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

void tn_external_data_deinit(tn_external_data *external) {
    if (external->folder_fd >= 0) (void)close(external->folder_fd);
    external->folder_fd = -1;
}

static int open_by_kernel(int folder_fd, const char *location) {
    struct open_how how = {
        .flags = FILE_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    const long fd = syscall(SYS_openat2, folder_fd, location, &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

static int open_by_walk(int folder_fd, const char *location) {
    char component[NAME_MAX + 1];
    int parent_fd = folder_fd;
    const char *rest = location;
    for (;;) {
        const size_t size_bytes = strcspn(rest, "/");
        if (size_bytes >= sizeof component) {
            if (parent_fd != folder_fd) (void)close(parent_fd);
            return -ENAMETOOLONG;
        }
        memcpy(component, rest, size_bytes);
        component[size_bytes] = '\0';
        rest += size_bytes;
        rest += strspn(rest, "/");
        const bool is_last = *rest == '\0';
        const int flags = is_last ? FILE_FLAGS : O_PATH | O_DIRECTORY | O_CLOEXEC;
        const int fd = openat(parent_fd, component, flags | O_NOFOLLOW);
        const int number = errno;
        if (parent_fd != folder_fd) (void)close(parent_fd);
        if (fd < 0 || is_last) return fd < 0 ? -number : fd;
        parent_fd = fd;
    }
}

int tn_open_beneath(int folder_fd, const char *location, tn_beneath_way way) {
    return way == TN_BENEATH_KERNEL ? open_by_kernel(folder_fd, location)
                                    : open_by_walk(folder_fd, location);
}

static int open_location(const tn_external_data *external, const char *location) {
    if (external->allow_links) {
        const int fd = openat(external->folder_fd, location, FILE_FLAGS);
        return fd < 0 ? -errno : fd;
    }
    const int fd = tn_open_beneath(external->folder_fd, location, TN_BENEATH_KERNEL);
    /* old kernels lack the call, sandboxes forbid it; EPERM of a real file comes back from the walk
     */
    if (fd != -ENOSYS && fd != -EPERM) return fd;
    return tn_open_beneath(external->folder_fd, location, TN_BENEATH_WALK);
}

/* Copies `location` with a NUL behind it; refuses what could leave the folder. */
static tn_status check_location(tn_text location, char text[PATH_MAX], tn_error *err) {
    const tn_label label = tn_label_of(location);
    TN_REQUIRE(location.size_bytes > 0 && location.size_bytes < PATH_MAX, err, TN_INVALID_MODEL,
               "external data: location of %zu bytes", location.size_bytes);
    TN_REQUIRE(memchr(location.data, '\0', location.size_bytes) == NULL, err, TN_INVALID_MODEL,
               "external data: location \"%s\" holds a zero byte", label.text);
    TN_REQUIRE(location.data[0] != '/', err, TN_INVALID_MODEL,
               "external data: location \"%s\" is absolute", label.text);
    memcpy(text, location.data, location.size_bytes);
    text[location.size_bytes] = '\0';

    const char *rest = text;
    while (*rest != '\0') {
        const size_t size_bytes = strcspn(rest, "/");
        TN_REQUIRE(size_bytes != 2 || memcmp(rest, "..", 2) != 0, err, TN_INVALID_MODEL,
                   "external data: location \"%s\" contains \"..\"", label.text);
        rest += size_bytes;
        rest += strspn(rest, "/");
    }
    return TN_OK;
}

static tn_status open_folder(tn_external_data *external, tn_error *err) {
    char text[PATH_MAX];
    if (external->folder_fd >= 0) return TN_OK;
    TN_REQUIRE(external->folder.data != NULL, err, TN_UNSUPPORTED,
               "external data needs a folder; a model from bytes has none unless it is given");
    TN_REQUIRE(external->folder.size_bytes < sizeof text, err, TN_IO,
               "external data: folder name of %zu bytes", external->folder.size_bytes);
    memcpy(text, external->folder.data, external->folder.size_bytes);
    text[external->folder.size_bytes] = '\0';
    const int fd = open(text[0] != '\0' ? text : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    TN_REQUIRE(fd >= 0, err, TN_IO, "external data: folder %.200s: %s", text, strerror(errno));
    external->folder_fd = fd;
    return TN_OK;
}

/* The file at `fd` if an earlier location led to it. */
static tn_file_map *find_open_file(const tn_external_data *external, int fd) {
    struct stat facts;
    if (fstat(fd, &facts) != 0) return NULL;
    for (tn_file_map *file = *external->files; file != NULL; file = file->next) {
        if (file->device == facts.st_dev && file->inode == facts.st_ino) return file;
    }
    return NULL;
}

static tn_status open_file(tn_external_data *external, tn_text location, tn_error *err) {
    char text[PATH_MAX];
    tn_status status = TN_OK;
    tn_file_map *file = NULL;
    int fd = -1;

    TN_TRY(check_location(location, text, err));
    TN_TRY(open_folder(external, err));
    fd = open_location(external, text);
    const tn_label label = tn_label_of(location);
    TN_REQUIRE(fd >= 0, err, TN_IO, "external data \"%s\": %s", label.text,
               fd == -ELOOP ? "symbolic links are not followed" : strerror(-fd));

    file = find_open_file(external, fd);
    if (file == NULL) {
        const tn_file_source source = {.fd = fd,
                                       .label = label.text,
                                       .copy_file = external->copy_file,
                                       .needs_single_link = !external->allow_links};
        status = tn_file_map_create(external->allocator, &source, &file, err);
        if (status != TN_OK) tn_error_prefix(err, "external data");
        if (status != TN_OK) goto cleanup;
        file->next = *external->files;
        *external->files = file;
    }
    external->location = location;
    external->file = file;

cleanup:
    (void)close(fd);
    return status;
}

tn_status tn_external_data_find(tn_external_data *external, const tn_external_range *range,
                                tn_bytes *out_bytes, bool *out_is_mapped, tn_error *err) {
    if (external->file == NULL || !tn_text_equals(external->location, range->location)) {
        TN_TRY(open_file(external, range->location, err));
    }
    const tn_file_map *file = external->file;
    const uint64_t file_bytes = file->bytes.size_bytes;
    const tn_label label = tn_label_of(range->location);
    TN_REQUIRE(range->offset_bytes <= file_bytes, err, TN_INVALID_MODEL,
               "external data \"%s\": offset %" PRIu64 " is behind the end at %" PRIu64, label.text,
               range->offset_bytes, file_bytes);
    const uint64_t left_bytes = file_bytes - range->offset_bytes;
    TN_REQUIRE(!range->has_length || range->length_bytes <= left_bytes, err, TN_INVALID_MODEL,
               "external data \"%s\": offset %" PRIu64 " + length %" PRIu64
               " is behind the end at %" PRIu64,
               label.text, range->offset_bytes, range->length_bytes, file_bytes);
    const size_t size_bytes = (size_t)(range->has_length ? range->length_bytes : left_bytes);
    *out_bytes =
        (tn_bytes){size_bytes == 0 ? NULL : file->bytes.data + range->offset_bytes, size_bytes};
    *out_is_mapped = file->is_mapped;
    return TN_OK;
}
