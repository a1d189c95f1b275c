/* Performs random operations on a directory and on a model in memory, and stops at the first difference.
 *
 *   random_operations DIRECTORY SEED OPERATIONS
 *
* Plain C without threads, so that it can be linked statically for a virtual machine without other programs. The
 * same seed performs the same operations. Exit status 1: a difference, which standard output describes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { names_max = 12, bytes_max = 300000, piece_max = 70000 };

struct model_file {
    int exists;
    size_t size;
    unsigned char bytes[bytes_max];
};

static struct model_file files[names_max];
static unsigned char piece[bytes_max];
static uint64_t state;
static long operation;

static uint64_t below(uint64_t bound) {
    state ^= state << 13; /* xorshift64 */
    state ^= state >> 7;
    state ^= state << 17;
    return state % bound;
}

static void differ(const char* format, ...) {
    va_list arguments;
    printf("operation %ld: ", operation);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf(" (errno %d: %s)\n", errno, strerror(errno));
    exit(1);
}

static const char* name_of(int which) {
    static char names[2][32];
    static int turn;
    turn = 1 - turn;
    snprintf(names[turn], sizeof names[turn], "file %d \xc3\xbc", which);
    return names[turn];
}

static void fill(size_t size) {
    for (size_t i = 0; i != size; ++i)
        piece[i] = (unsigned char)below(256);
}

static void write_piece(int which) {
    struct model_file* file = &files[which];
    size_t size = 1 + below(piece_max);
    size_t offset = below(file->size + 5000);
    if (offset + size > bytes_max) return;
    fill(size);
    int descriptor = open(name_of(which), O_RDWR | O_CREAT, 0644);
    if (descriptor < 0) differ("open %s for writing", name_of(which));
    if (pwrite(descriptor, piece, size, (off_t)offset) != (ssize_t)size) differ("write %s", name_of(which));
    if (below(4) == 0 && fsync(descriptor) != 0) differ("fsync %s", name_of(which));
    if (close(descriptor) != 0) differ("close %s", name_of(which));
    if (!file->exists) file->size = 0;
    file->exists = 1;
    if (offset > file->size) memset(file->bytes + file->size, 0, offset - file->size);
    memcpy(file->bytes + offset, piece, size);
    if (offset + size > file->size) file->size = offset + size;
}

static void truncate_file(int which) {
    struct model_file* file = &files[which];
    size_t size = below(file->size + 10000);
    if (size > bytes_max) return;
    errno = 0;
    int status = truncate(name_of(which), (off_t)size);
    if (!file->exists) {
        if (status == 0 || errno != ENOENT) differ("truncate %s, which is absent", name_of(which));
        return;
    }
    if (status != 0) differ("truncate %s to %zu", name_of(which), size);
    if (size > file->size) memset(file->bytes + file->size, 0, size - file->size);
    file->size = size;
}

static void compare(int which) {
    struct model_file* file = &files[which];
    errno = 0;
    int descriptor = open(name_of(which), O_RDONLY);
    if (!file->exists) {
        if (descriptor >= 0 || errno != ENOENT) differ("open %s, which is absent", name_of(which));
        return;
    }
    if (descriptor < 0) differ("open %s", name_of(which));
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) differ("fstat %s", name_of(which));
    if ((size_t)facts.st_size != file->size)
        differ("%s has %lld bytes, not %zu", name_of(which), (long long)facts.st_size, file->size);
    size_t seen = 0;
    for (;;) {
        ssize_t got = read(descriptor, piece + seen, sizeof piece - seen);
        if (got < 0) differ("read %s", name_of(which));
        if (got == 0) break;
        seen += (size_t)got;
    }
    if (seen != file->size) differ("read %zu bytes of %s, not %zu", seen, name_of(which), file->size);
    for (size_t i = 0; i != seen; ++i)
        if (piece[i] != file->bytes[i])
            differ("%s: byte %zu is %u, not %u", name_of(which), i, piece[i], file->bytes[i]);
    close(descriptor);
}

static void rename_file(int from, int to) {
    errno = 0;
    int status = rename(name_of(from), name_of(to));
    if (!files[from].exists) {
        if (status == 0 || errno != ENOENT) differ("rename %s, which is absent", name_of(from));
        return;
    }
    if (status != 0) differ("rename %s to %s", name_of(from), name_of(to));
    if (from == to) return;
    files[to] = files[from];
    files[from].exists = 0;
    files[from].size = 0;
}

static void remove_file(int which) {
    errno = 0;
    int status = unlink(name_of(which));
    if (files[which].exists ? status != 0 : status == 0 || errno != ENOENT)
        differ("unlink %s, which is %s", name_of(which), files[which].exists ? "present" : "absent");
    files[which].exists = 0;
    files[which].size = 0;
}

static void list(void) {
    DIR* directory = opendir(".");
    if (directory == NULL) differ("opendir");
    int seen[names_max] = {0};
    for (struct dirent* entry; (errno = 0, entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        int which = -1;
        if (sscanf(entry->d_name, "file %d", &which) != 1 || which < 0 || which >= names_max)
            differ("%s is listed and was never created", entry->d_name);
        ++seen[which];
    }
    if (errno != 0) differ("readdir");
    closedir(directory);
    for (int which = 0; which != names_max; ++which)
        if (seen[which] != files[which].exists)
            differ("%s is listed %d times, and should be %d", name_of(which), seen[which], files[which].exists);
}

static void make_and_remove_directory(void) {
    if (mkdir("directory", 0755) != 0) differ("mkdir");
    errno = 0;
    if (mkdir("directory", 0755) == 0 || errno != EEXIST) differ("mkdir of an existing directory");
    if (rename("directory", "directory 2") != 0) differ("rename of a directory");
    if (rmdir("directory 2") != 0) differ("rmdir");
}

static void step(void) {
    int which = (int)below(names_max);
    switch (below(12)) {
    case 0:
    case 1:
    case 2:
    case 3: return write_piece(which);
    case 4: return truncate_file(which);
    case 5:
    case 6:
    case 7: return compare(which);
    case 8: return rename_file(which, (int)below(names_max));
    case 9: return remove_file(which);
    case 10: return list();
    default: return make_and_remove_directory();
    }
}

int main(int count, char** arguments) {
    if (count != 4 || chdir(arguments[1]) != 0) {
        printf("usage: random_operations DIRECTORY SEED OPERATIONS\n");
        return 2;
    }
    state = strtoull(arguments[2], NULL, 10) * 2654435761u + 88172645463325252u;
    long operations = strtol(arguments[3], NULL, 10);
    for (operation = 0; operation != operations; ++operation)
        step();
    for (int which = 0; which != names_max; ++which)
        compare(which);
    list();
    return 0;
}
