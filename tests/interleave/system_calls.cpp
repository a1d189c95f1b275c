// Replacements of functions of the C library: the linker redirects calls to them.

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>

#include "tests/interleave/simulated_machine.hpp"

namespace sluice::interleave {

struct system_calls {
    using state = simulated_kernel::state;
    using kind = description::kind;

    static int caller() noexcept { return state::caller(); }
    static state& all() noexcept { return *state::current; }
    static description* find(int descriptor) noexcept {
        return state::current == nullptr ? nullptr : all().find(descriptor);
    }
    // Enters a call: on a descriptor of the simulation, or from a process of it; otherwise it is
    // for the real kernel.
    static description* enter(int descriptor) noexcept {
        description* const open = find(descriptor);
        if (open != nullptr) ++all().calls;
        return open;
    }
    static bool enter() noexcept {
        if (caller() < 0) return false;
        ++all().calls;
        return true;
    }
    static int fail(int code) noexcept {
        errno = code;
        return -1;
    }

    static std::vector<file>::iterator find_name(std::string_view name) {
        return std::ranges::find_if(all().files,
                                    [&](const file& each) { return each.has_name and each.name == name; });
    }
    static int open_file(std::string_view path, int flags) {
        const std::string_view name = path.substr(path.rfind('/') + 1);
        const auto found = find_name(name);
        if (found == all().files.end())
            return (flags & O_CREAT) == 0 ? fail(ENOENT) : open_number(all().make_file(name), flags);
        if ((flags & O_EXCL) != 0) return fail(EEXIST);
        return open_number(static_cast<std::size_t>(found - all().files.begin()), flags);
    }
    static int open_number(std::size_t number, int flags) {
        description fresh;
        fresh.what = kind::file;
        fresh.process = static_cast<unsigned>(caller());
        fresh.appends = (flags & O_APPEND) != 0;
        fresh.file_number = number;
        return all().open(std::move(fresh));
    }
    static int open_text(std::string text) {
        description fresh;
        fresh.what = kind::text;
        fresh.process = static_cast<unsigned>(caller());
        fresh.text = std::move(text);
        return all().open(std::move(fresh));
    }
    static int number_in(std::string_view text) {
        int number = -1;
        (void)std::from_chars(text.data(), text.data() + text.size(), number);
        return number;
    }
    static int open_proc(std::string_view path) {
        constexpr std::string_view of_descriptor = "/proc/self/fd/";
        if (path == "/proc/sys/kernel/random/boot_id")
            return open_text("01234567-89ab-cdef-0123-456789abcdef\n");
        if (path.starts_with(of_descriptor)) {
            return open_number(find(number_in(path.substr(of_descriptor.size())))->file_number, O_RDWR);
        }
        const bool is_own = path == "/proc/self/stat";
        const int who = is_own ? caller() : number_in(path.substr(6)) - first_process_id;
        if (who < 0 or not all().processes[static_cast<unsigned>(who)].is_alive) return fail(ENOENT);
        return open_text(std::to_string(first_process_id + who) +
                         " (program) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 " +
                         std::to_string(70000 + who) + " 23\n");
    }
    static int open(std::string_view path, int flags) {
        step();
        if (path.starts_with("/proc/")) {
            const int opened = open_proc(path);
            if (opened >= 0 and (flags & O_APPEND) != 0) find(opened)->appends = true;
            return opened;
        }
        if ((flags & O_DIRECTORY) == 0) return open_file(path, flags);
        description directory;
        directory.what = kind::directory;
        directory.process = static_cast<unsigned>(caller());
        return all().open(std::move(directory));
    }

    static off_t seek(description& of, off_t by, int from) {
        ENSURE(by == 0 and from != SEEK_SET, "unsupported use of lseek");
        if (from == SEEK_END) {
            step();
            of.offset = all().file_of(of).size;
        }
        return static_cast<off_t>(of.offset);
    }

    // Half of the data can be seen before the rest, and a kill leaves complete pages.
    static void copy_page(std::byte* to, const std::byte* from, std::size_t bytes, bool is_over_old) {
        constexpr std::size_t half = 64;
        process& self = all().processes[static_cast<unsigned>(caller())];
        const std::size_t first = is_over_old and bytes > half ? half : bytes;
        std::memcpy(to, from, first);
        if (first == bytes) return;
        self.is_copying = true;
        step();
        self.is_copying = false;
        std::memcpy(to + first, from + first, bytes - first);
    }
    // Without `where`, writes at the position of the description, which advances.
    static ssize_t write(description& to, const void* from, std::size_t bytes,
                         std::optional<std::uint64_t> where) {
        step();
        file& target = all().file_of(to);
        while (target.writer >= 0)
            sleep_until(&target.writer, never_ns);
        target.writer = caller();
        const std::uint64_t begin = to.appends ? target.size : where.value_or(to.offset);
        std::size_t done = 0;
        while (done != bytes) {
            if (done != 0) step();
            const std::uint64_t at = begin + done;
            ENSURE(at < file_bytes_max, "a file of a scenario is too long");
            std::size_t size = std::min<std::size_t>(bytes - done, page_bytes - at % page_bytes);
            const std::uint64_t growth = at + size > target.size ? at + size - target.size : 0;
            if (growth > all().room) size -= growth - all().room;
            if (size == 0) break;
            memory().dirty(target.bytes + at, size);
            copy_page(target.bytes + at, static_cast<const std::byte*>(from) + done, size, growth == 0);
            if (at + size > target.size) {
                all().room -= at + size - target.size;
                target.size = at + size;
            }
            done += size;
        }
        if (not where) to.offset = begin + done;
        target.writer = -1;
        wake_all_on(&target.writer);
        record_change();
        if (done == 0 and bytes != 0) return fail(ENOSPC);
        return static_cast<ssize_t>(done);
    }
    static ssize_t read(description& from, void* to, std::size_t bytes, std::uint64_t where) {
        step();
        if (from.what == kind::text) {
            const std::size_t size = std::min(bytes, from.text.size());
            std::memcpy(to, from.text.data(), size);
            return static_cast<ssize_t>(size);
        }
        file& source = all().file_of(from);
        std::size_t done = 0;
        while (done != bytes and where + done < source.size) {
            if (done != 0) step();
            const std::uint64_t at = where + done;
            const auto size =
                std::min<std::uint64_t>({bytes - done, page_bytes - at % page_bytes, source.size - at});
            std::memcpy(static_cast<std::byte*>(to) + done, source.bytes + at, size);
            done += size;
        }
        return static_cast<ssize_t>(done);
    }

    static int lock(int descriptor, int command, struct flock& how) {
        step();
        if (all().is_stale(*find(descriptor)) and how.l_type != F_UNLCK) return fail(ESTALE);
        const auto first = static_cast<std::uint64_t>(how.l_start);
        const std::uint64_t last =
            how.l_len == 0 ? ~std::uint64_t{0} : first + static_cast<std::uint64_t>(how.l_len) - 1;
        const held_lock wanted{first, last, how.l_type == F_WRLCK, descriptor};
        if (command == F_OFD_GETLK) {
            if (not all().is_locked(all().file_of(*find(descriptor)), wanted)) how.l_type = F_UNLCK;
            return 0;
        }
        if (how.l_type == F_UNLCK) {
            all().unlock(descriptor, first, last);
            return 0;
        }
        while (not all().try_lock(wanted)) {
            if (command == F_OFD_SETLK) return fail(EAGAIN);
            sleep_until(&all().file_of(*find(descriptor)), all().signals == 0 ? never_ns : now_ns());
            if (not is_late()) continue;
            --all().signals;
            return fail(EINTR);
        }
        return 0;
    }
    static int allocate(int descriptor, int mode, std::uint64_t offset, std::uint64_t bytes) {
        step();
        file& target = all().file_of(*find(descriptor));
        if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) {
            const std::uint64_t end = std::min(offset + bytes, target.size);
            if (end > offset) std::memset(target.bytes + offset, 0, end - offset);
        } else {
            if (all().room < bytes) return fail(ENOSPC);
            target.size = std::max(target.size, offset + bytes);
        }
        return 0;
    }
    static void close(int descriptor) {
        const description& open = *find(descriptor);
        if (open.what == kind::file and all().file_of(open).remover == caller()) {
            all().unlock(descriptor, 0, ~std::uint64_t{0});
            sleep_until(&all().file_of(open).remover, now_ns() + 1);  // a removed file disappears
                                                                      // only later
        }
        all().close(descriptor);
    }
    static int truncate(int descriptor, std::uint64_t size) {
        step();
        file& target = all().file_of(*find(descriptor));
        if (size < target.size) std::memset(target.bytes + size, 0, target.size - size);
        target.size = size;
        return 0;
    }
    static long futex(std::uint32_t* word, int operation, std::uint32_t value, const timespec* within) {
        step();
        if (operation == FUTEX_WAKE) {
            wake_one_on(word);
            return 0;
        }
        if (*word != value) return fail(EAGAIN);
        sleep_until(word, within == nullptr ? never_ns : now_ns() + nanoseconds_of(*within));
        return is_late() ? fail(ETIMEDOUT) : 0;
    }
    static int unlink(const char* name) {
        step();
        const auto found = find_name(name);
        if (found == all().files.end()) return fail(ENOENT);
        found->has_name = false;
        const auto remover = static_cast<unsigned>(caller());
        const auto number = static_cast<std::size_t>(found - all().files.begin());
        if (all().is_remote and all().is_open_by(remover, number)) found->remover = static_cast<int>(remover);
        return 0;
    }
    static std::uint64_t nanoseconds_of(const timespec& time) noexcept {
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
               static_cast<std::uint64_t>(time.tv_nsec);
    }
    static void set_appends(int descriptor, bool appends) {
        step();
        find(descriptor)->appends = appends;
    }
    static bool is_alive(int who) {
        return who >= 0 and who < static_cast<int>(processes_max) and
               all().processes[static_cast<unsigned>(who)].is_alive;
    }

    // --- metadata of files
    static int describe(const description& open, struct stat& status) {
        step();
        status = {};
        if (open.what != kind::file) return 0;
        if (all().is_stale(open)) return fail(ESTALE);
        const file& described = all().file_of(open);
        status.st_mode = S_IFREG | 0600;
        status.st_ino = 1000 + open.file_number;
        status.st_nlink = described.has_name or described.remover >= 0 ? 1 : 0;
        status.st_size = all().hides_sizes ? 0 : static_cast<off_t>(described.size);
        return 0;
    }
    static int describe(const description& open, std::string_view name, struct statx& status) {
        step();
        std::size_t number = open.file_number;
        if (open.what == kind::directory) {
            const auto found = find_name(name);
            if (found == all().files.end()) return fail(ENOENT);
            number = static_cast<std::size_t>(found - all().files.begin());
        }
        status = {};
        status.stx_mask = STATX_BASIC_STATS;
        status.stx_mode = S_IFREG | 0600;
        status.stx_ino = 1000 + number;
        status.stx_nlink = all().files[number].has_name ? 1 : 0;
        return 0;
    }
    static ssize_t read_link(std::string_view path, char* to, std::size_t room) {
        step();
        const int descriptor = number_in(path.substr(path.rfind('/') + 1));
        const file& open = all().file_of(*find(descriptor));
        const std::string text = "/simulated/" + open.name + (open.has_name ? "" : " (deleted)");
        return static_cast<ssize_t>(text.copy(to, room));
    }
    static void* map(std::size_t bytes, int descriptor, off_t offset) {
        step();
        if (descriptor >= 0) return all().file_of(*find(descriptor)).bytes + offset;
        void* const page = memory().allocate(bytes);
        std::memset(page, 0, bytes);
        return page;
    }
};

}  // namespace sluice::interleave

using namespace sluice::interleave;

extern "C" {

#define SLUICE_REAL(result, name, ...) extern result __real_##name(__VA_ARGS__)

SLUICE_REAL(int, open, const char*, int, ...);
int __wrap_open(const char* path, int flags, mode_t permissions) {
    if (not system_calls::enter()) return __real_open(path, flags, permissions);
    return system_calls::open(path, flags);
}
SLUICE_REAL(int, openat, int, const char*, int, ...);
int __wrap_openat(int directory, const char* path, int flags, mode_t permissions) {
    if (not system_calls::enter()) return __real_openat(directory, path, flags, permissions);
    return system_calls::open(path, flags);
}
SLUICE_REAL(int, close, int);
int __wrap_close(int descriptor) {
    if (system_calls::enter(descriptor) == nullptr) return __real_close(descriptor);
    step();
    system_calls::close(descriptor);
    return 0;
}
SLUICE_REAL(ssize_t, read, int, void*, size_t);
ssize_t __wrap_read(int descriptor, void* to, size_t bytes) {
    auto* const open = system_calls::enter(descriptor);
    if (open == nullptr) return __real_read(descriptor, to, bytes);
    return system_calls::read(*open, to, bytes, open->offset);
}
SLUICE_REAL(ssize_t, pread, int, void*, size_t, off_t);
ssize_t __wrap_pread(int descriptor, void* to, size_t bytes, off_t where) {
    auto* const open = system_calls::enter(descriptor);
    if (open == nullptr) return __real_pread(descriptor, to, bytes, where);
    return system_calls::read(*open, to, bytes, static_cast<std::uint64_t>(where));
}
SLUICE_REAL(ssize_t, write, int, const void*, size_t);
ssize_t __wrap_write(int descriptor, const void* from, size_t bytes) {
    auto* const open = system_calls::enter(descriptor);
    if (open == nullptr) return __real_write(descriptor, from, bytes);
    return system_calls::write(*open, from, bytes, std::nullopt);
}
SLUICE_REAL(ssize_t, pwrite, int, const void*, size_t, off_t);
ssize_t __wrap_pwrite(int descriptor, const void* from, size_t bytes, off_t where) {
    auto* const open = system_calls::enter(descriptor);
    if (open == nullptr) return __real_pwrite(descriptor, from, bytes, where);
    return system_calls::write(*open, from, bytes, static_cast<std::uint64_t>(where));
}
SLUICE_REAL(off_t, lseek, int, off_t, int);
off_t __wrap_lseek(int descriptor, off_t by, int from) {
    auto* const open = system_calls::enter(descriptor);
    if (open == nullptr) return __real_lseek(descriptor, by, from);
    return system_calls::seek(*open, by, from);
}
SLUICE_REAL(int, fcntl, int, int, ...);
int __wrap_fcntl(int descriptor, int command, void* argument) {
    if (system_calls::enter(descriptor) == nullptr) return __real_fcntl(descriptor, command, argument);
    if (command == F_GETFL) return O_RDWR;
    if (command == F_SETFL) {
        system_calls::set_appends(descriptor, (reinterpret_cast<std::uintptr_t>(argument) & O_APPEND) != 0);
        return 0;
    }
    return system_calls::lock(descriptor, command, *static_cast<struct flock*>(argument));
}
SLUICE_REAL(int, fstat, int, struct stat*);
int __wrap_fstat(int descriptor, struct stat* status) {
    auto* const open = system_calls::enter(descriptor);
    if (open == nullptr) return __real_fstat(descriptor, status);
    return system_calls::describe(*open, *status);
}
SLUICE_REAL(int, fstatfs, int, struct statfs*);
int __wrap_fstatfs(int descriptor, struct statfs* status) {
    if (system_calls::enter(descriptor) == nullptr) return __real_fstatfs(descriptor, status);
    *status = {};
    status->f_type = system_calls::all().is_remote ? NFS_SUPER_MAGIC : TMPFS_MAGIC;
    return 0;
}
SLUICE_REAL(int, stat, const char*, struct stat*);
int __wrap_stat(const char* path, struct stat* status) {
    if (not system_calls::enter()) return __real_stat(path, status);
    *status = {};  // the namespace of process ids; there is only one
    return 0;
}
SLUICE_REAL(int, statx, int, const char*, int, unsigned, struct statx*);
int __wrap_statx(int directory, const char* path, int flags, unsigned mask, struct statx* status) {
    auto* const open = system_calls::enter(directory);
    if (open == nullptr) return __real_statx(directory, path, flags, mask, status);
    return system_calls::describe(*open, path, *status);
}
SLUICE_REAL(ssize_t, readlink, const char*, char*, size_t);
ssize_t __wrap_readlink(const char* path, char* to, size_t room) {
    if (not system_calls::enter()) return __real_readlink(path, to, room);
    return system_calls::read_link(path, to, room);
}
SLUICE_REAL(int, unlinkat, int, const char*, int);
int __wrap_unlinkat(int directory, const char* name, int flags) {
    if (system_calls::enter(directory) == nullptr) return __real_unlinkat(directory, name, flags);
    return system_calls::unlink(name);
}
SLUICE_REAL(int, mkdirat, int, const char*, mode_t);
int __wrap_mkdirat(int directory, const char* name, mode_t permissions) {
    if (not system_calls::enter()) return __real_mkdirat(directory, name, permissions);
    step();
    return 0;  // there is one directory, and only its files matter
}
// The simulation has one user, and a directory that no other user can write to.
SLUICE_REAL(int, fstatat, int, const char*, struct stat*, int);
int __wrap_fstatat(int directory, const char* path, struct stat* status, int flags) {
    if (not system_calls::enter()) return __real_fstatat(directory, path, status, flags);
    *status = {};
    status->st_mode = S_IFDIR | 0755;
    return 0;
}
SLUICE_REAL(int, fchmod, int, mode_t);
int __wrap_fchmod(int descriptor, mode_t permissions) {
    if (system_calls::enter(descriptor) == nullptr) return __real_fchmod(descriptor, permissions);
    return 0;
}
SLUICE_REAL(int, fchown, int, uid_t, gid_t);
int __wrap_fchown(int descriptor, uid_t owner, gid_t group) {
    if (system_calls::enter(descriptor) == nullptr) return __real_fchown(descriptor, owner, group);
    return 0;
}
SLUICE_REAL(int, ftruncate, int, off_t);
int __wrap_ftruncate(int descriptor, off_t size) {
    if (system_calls::enter(descriptor) == nullptr) return __real_ftruncate(descriptor, size);
    return system_calls::truncate(descriptor, static_cast<std::uint64_t>(size));
}
SLUICE_REAL(int, fallocate, int, int, off_t, off_t);
int __wrap_fallocate(int descriptor, int mode, off_t offset, off_t bytes) {
    if (system_calls::enter(descriptor) == nullptr) return __real_fallocate(descriptor, mode, offset, bytes);
    return system_calls::allocate(descriptor, mode, static_cast<std::uint64_t>(offset),
                                  static_cast<std::uint64_t>(bytes));
}
SLUICE_REAL(void*, mmap, void*, size_t, int, int, int, off_t);
void* __wrap_mmap(void* where, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
    if (not system_calls::enter()) return __real_mmap(where, bytes, protection, flags, descriptor, offset);
    return system_calls::map(bytes, descriptor, offset);
}
SLUICE_REAL(int, munmap, void*, size_t);
int __wrap_munmap(void* memory, size_t bytes) {
    return system_calls::enter() ? 0 : __real_munmap(memory, bytes);
}
SLUICE_REAL(int, madvise, void*, size_t, int);
int __wrap_madvise(void* memory, size_t bytes, int advice) {
    return system_calls::enter() ? 0 : __real_madvise(memory, bytes, advice);
}
SLUICE_REAL(int, nanosleep, const timespec*, timespec*);
int __wrap_nanosleep(const timespec* how_long, timespec* rest) {
    if (thread_number() < 0) return __real_nanosleep(how_long, rest);
    sleep_until(&system_calls::all(), now_ns() + system_calls::nanoseconds_of(*how_long));
    return 0;
}
SLUICE_REAL(pid_t, getpid);
pid_t __wrap_getpid() {
    const int who = system_calls::caller();
    return who < 0 ? __real_getpid() : first_process_id + who;
}
SLUICE_REAL(int, kill, pid_t, int);
int __wrap_kill(pid_t process, int signal) {
    if (not system_calls::enter()) return __real_kill(process, signal);
    ENSURE(signal == 0, "no scenario sends signals");
    return system_calls::is_alive(process - first_process_id) ? 0 : system_calls::fail(ESRCH);
}
SLUICE_REAL(int, get_nprocs);
int __wrap_get_nprocs() {
    return system_calls::caller() < 0 ? __real_get_nprocs()
                                      : static_cast<int>(system_calls::all().processors);
}
SLUICE_REAL(int, sched_getcpu);
int __wrap_sched_getcpu() {
    const int who = system_calls::caller();
    return who < 0 ? __real_sched_getcpu() : who % static_cast<int>(system_calls::all().processors);
}
SLUICE_REAL(int, sched_yield);
int __wrap_sched_yield() {
    if (thread_number() < 0) return __real_sched_yield();
    give_way();
    return 0;
}
extern long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
    const auto descriptor = static_cast<int>(a);
    if (number == SYS_fcntl and system_calls::enter(descriptor) != nullptr)
        return system_calls::lock(descriptor, static_cast<int>(b), *reinterpret_cast<struct flock*>(c));
    if (thread_number() < 0 or number != SYS_futex) return __real_syscall(number, a, b, c, d, e, f);
    return system_calls::futex(reinterpret_cast<std::uint32_t*>(a), static_cast<int>(b),
                               static_cast<std::uint32_t>(c), reinterpret_cast<const timespec*>(d));
}

}  // extern "C"
