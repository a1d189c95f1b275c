// In the virtual machine of kernel_vfat.py: shows the entries below a directory as Linux' vfat sees
// them, or creates entries.
//
//     kernel_vfat_tool show DIRECTORY     a line for each entry, as fat_probe.cpp prints them
//     kernel_vfat_tool make DIRECTORY

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/msdos_fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(const char *what, const char *path) {
    printf("FAILED: %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

static void print_hex(const char *text) {
    if (*text == 0) putchar('-');
    for (; *text != 0; ++text)
        printf("%02x", (unsigned char)*text);
}

static uint64_t digest(const char *path) {
    uint64_t sum = 14695981039346656037u; // FNV-1a
    const int file = open(path, O_RDONLY);
    if (file < 0) fail("open", path);
    unsigned char part[65536];
    for (ssize_t bytes; (bytes = read(file, part, sizeof part)) != 0;) {
        if (bytes < 0) fail("read", path);
        for (ssize_t i = 0; i < bytes; ++i)
            sum = (sum ^ part[i]) * 1099511628211u;
    }
    close(file);
    return sum;
}

static unsigned attributes(const char *path) {
    const int file = open(path, O_RDONLY);
    uint32_t bits = 0;
    if (file < 0 || ioctl(file, FAT_IOCTL_GET_ATTRIBUTES, &bits) != 0) fail("attributes of", path);
    close(file);
    return bits;
}

// Prints the path, the short name, attributes, size, times of change and of creation, and a digest
// of the content.
static void show(const char *root, const char *place) {
    char path[8192];
    snprintf(path, sizeof path, "%s%s", root, place);
    const int directory = open(path, O_RDONLY | O_DIRECTORY);
    if (directory < 0) fail("open", path);
    struct __fat_dirent both[2];
    while (ioctl(directory, VFAT_IOCTL_READDIR_BOTH, both) == 1) {
        if (strcmp(both[0].d_name, ".") == 0 || strcmp(both[0].d_name, "..") == 0) continue;
        char name[1024] = {0};
        memcpy(name, both[1].d_reclen != 0 ? both[1].d_name : both[0].d_name, 256);
        char below[4096];
        snprintf(below, sizeof below, "%s/%s", place, name);
        snprintf(path, sizeof path, "%s%s", root, below);
        struct statx status;
        for (char *each = both[0].d_name; *each != 0; ++each)
            if (*each >= 'a' && *each <= 'z') *each -= 'a' - 'A';
        if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_BTIME, &status) != 0) fail("status of", path);
        const int is_directory = S_ISDIR(status.stx_mode);
        fputs("entry ", stdout);
        print_hex(below);
        putchar(' ');
        print_hex(both[0].d_name);
        printf(" %02x %llu %lld %lld.%02u %016llx\n", attributes(path),
               is_directory ? 0ULL : (unsigned long long)status.stx_size, (long long)status.stx_mtime.tv_sec,
               (long long)status.stx_btime.tv_sec, status.stx_btime.tv_nsec / 10000000,
               is_directory ? 0ULL : (unsigned long long)digest(path));
        if (is_directory) show(root, below);
    }
    close(directory);
}

static void put(const char *path, size_t bytes, time_t changed, uint32_t bits) {
    const int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
    if (file < 0) fail("create", path);
    for (size_t i = 0; i < bytes; ++i) {
        const unsigned char byte = (unsigned char)(i * 7 + bytes);
        if (write(file, &byte, 1) != 1) fail("write", path);
    }
    const struct timespec times[2] = {{.tv_sec = changed}, {.tv_sec = changed}};
    if (futimens(file, times) != 0) fail("times of", path);
    if (bits != 0 && ioctl(file, FAT_IOCTL_SET_ATTRIBUTES, &bits) != 0) fail("attributes of", path);
    close(file);
}

static void make(const char *root) {
    if (chdir(root) != 0) fail("enter", root);
    put("PLAIN.TXT", 10, 1000000000, 0x20);
    put("lower.txt", 0, 1577836798, 0x20);
    put("Mixed Case with Spaces.text", 3000, 4000000000, 0x20);
    put("hidden", 1, 946684800, 0x22);
    put("system", 2, 946684802, 0x24);
    put("read only", 3, 315532800, 0x21);
    put("na\xc3\xafve caf\xc3\xa9.txt", 4, 1700000000, 0x20);
    put("\xf0\x9f\x98\x80 \xe6\x97\xa5\xe6\x9c\xac.txt", 5, 1700000002, 0x20);
    if (mkdir("a directory of the kernel", 0755) != 0) fail("make", "directory");
    for (int i = 0; i < 60; ++i) {
        char path[300];
        snprintf(path, sizeof path, "a directory of the kernel/%d %0*d", i, 1 + i * 4, i);
        put(path, (size_t)i * 37, 1600000000 + i * 2, 0x20);
    }
    for (int i = 0; i < 60; i += 3) {
        char path[300];
        snprintf(path, sizeof path, "a directory of the kernel/%d %0*d", i, 1 + i * 4, i);
        if (unlink(path) != 0) fail("remove", path);
    }
    if (rename("PLAIN.TXT", "a directory of the kernel/moved.txt") != 0) fail("rename", "PLAIN.TXT");
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    if (strcmp(arguments[1], "make") == 0) make(arguments[2]);
    else show(arguments[2], "");
    return 0;
}
