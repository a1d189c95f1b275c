#include "sluice/fsmutex/lock_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <new>
#include <utility>

#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/fsmutex/process/process_identity.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::fsmutex {
namespace {

constexpr kernel_lock::range owner_byte{.first = 0, .length = 1};

struct file_name {
    // Not by printf, which would take half of the time outside the kernel.
    explicit file_name(entity of) noexcept {
        std::uint64_t rest = of.number();
        for (std::size_t digit = 16; digit-- != 0; rest >>= 4)
            text[digit] = "0123456789abcdef"[rest & 0xf];
    }
    std::array<char, 17> text{};
};

// Closes the descriptor unless it was taken.
class descriptor {
public:
    explicit descriptor(int opened = -1) noexcept : number_(opened) {}
    descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] int number() const noexcept { return number_; }

private:
    int number_;
};

struct record {
    std::array<char, 256> text{};
    std::size_t size = 0;
};

// Returns the number of bytes, or -1 with errno.
ssize_t read_record(int descriptor, record& into) noexcept {
    return io::checked_byte_count(::pread(descriptor, into.text.data(), into.text.size(), 0),
                                  into.text.size());
}

record record_of(const process_identity& who) noexcept {
    record made;
    const int size = std::snprintf(
        made.text.data(), made.text.size(), "host %s\nboot %.36s\npid %u\nstart %llu\n", who.host.data(),
        who.boot_id.data(), who.id, static_cast<unsigned long long>(who.start_time));
    made.size = static_cast<std::size_t>(size);
    return made;
}

}  // namespace

struct lock_files::lock_directory {
    io::path_handle path;
    record own;                // the content of our files
    std::size_t own_host_end;  // after the lines of host and boot
    bool is_shared_by_hosts;
    unsigned file_mode;  // follows that of the directory

    // The outcome for one entity.
    struct outcome {
        enum { taken, contended, vanished } what;
        descriptor file;
        bool owner_died = false;
    };
    [[nodiscard]] result<outcome> take(entity wanted, const dependencies& from) const noexcept;

private:
    [[nodiscard]] int at() const noexcept { return path.is_valid() ? path.descriptor() : AT_FDCWD; }
    [[nodiscard]] result<outcome> try_to_take(const file_name& name) const noexcept;
    [[nodiscard]] result<bool> is_named(const struct stat& itself, const file_name& name) const noexcept;
    [[nodiscard]] result<outcome> take_created(descriptor file, const file_name& name) const noexcept;
    [[nodiscard]] result<outcome> take_over(descriptor file, const file_name& name) const noexcept;
    [[nodiscard]] bool may_be_taken_over(const record& found) const noexcept;
    [[nodiscard]] result<void> sign(int file) const noexcept;
};

// The state of one request: the files of the entities held, and the contended one.
struct lock_files::files {
    explicit files(std::size_t entities) noexcept : held(new(std::nothrow) held_file[entities]) {}

    struct held_file {
        entity of;
        descriptor file;
        bool has_dead_owner = false;  // its owner died, and the next holder gets a report
    };
    std::unique_ptr<held_file[]> held;
    std::size_t held_count = 0;
    descriptor contended;
    lock_threads::wait* waiting = nullptr;  // for the owner of the contended file

    void forget_deaths() noexcept {
        for (std::size_t i = 0; i != held_count; ++i)
            held[i].has_dead_owner = false;
    }

    void release(const lock_directory& in) noexcept {
        for (; held_count != 0; --held_count) {
            held_file& last = held[held_count - 1];
            // While the file is locked, no other process uses the name. Closing it would not unlock
            // it while a child forked in the meantime also has the descriptor.
            if (not last.has_dead_owner) ::unlinkat(in.path.descriptor(), file_name(last.of).text.data(), 0);
            kernel_lock::unlock(last.file.number(), owner_byte);
            last.file = descriptor();
        }
    }
};

namespace {

result<struct stat> status_of(int file) noexcept {
    struct stat status{};
    if (::fstat(file, &status) != 0) return failure(error::last("get the status of a lock file", file));
    return status;
}

// EINTR: a network file system whose server made the call wait.
descriptor open_at(int directory, const file_name& name, int flags) noexcept {
    for (;;) {
        descriptor opened(::openat(directory, name.text.data(), O_RDWR | O_CLOEXEC | flags, 0600));
        if (opened.number() >= 0 or errno != EINTR) return opened;
    }
}

}  // namespace

// Returns whether the name leads to a file that we have locked: its owner removes the name while it
// is locked, and before closing it. Where hosts share the directory (NFS), or a program serves it
// (FUSE), a file that was removed while open may have a link until it is closed. There the name
// must be checked. Only creating it queries the server, because the NFS client caches the directory
// for seconds.
result<bool> lock_files::lock_directory::is_named(const struct stat& itself,
                                                  const file_name& name) const noexcept {
    if (itself.st_nlink == 0 or not is_shared_by_hosts) return itself.st_nlink != 0;
    const descriptor made = open_at(at(), name, O_CREAT | O_EXCL);
    if (made.number() >= 0) return false;  // without a record, so for the next attempt: ours
    if (errno != EEXIST) return failure(error::last("create a lock file", at()));
    const descriptor named = open_at(at(), name, O_NOFOLLOW);
    if (named.number() < 0 and errno == ENOENT) return false;
    if (named.number() < 0) return failure(error::last("open a lock file", at()));
    const auto there = status_of(named.number());
    if (not there) return failure(there.error());
    return there->st_dev == itself.st_dev and there->st_ino == itself.st_ino;
}

result<void> lock_files::lock_directory::sign(int file) const noexcept {
    const ssize_t written = ::pwrite(file, own.text.data(), own.size, 0);
    if (written == static_cast<ssize_t>(own.size)) return {};
    return failure({written < 0 ? errno : ENOSPC, "write a lock file", file});
}

bool lock_files::lock_directory::may_be_taken_over(const record& found) const noexcept {
    if (not is_shared_by_hosts or found.size == 0) return true;
    return std::string_view(found.text.data(), found.size)
        .starts_with(std::string_view(own.text.data(), own_host_end));
}

result<lock_files::lock_directory::outcome> lock_files::lock_directory::take_created(
    descriptor file, const file_name& name) const noexcept {
    if (const auto signed_it = sign(file.number()); not signed_it) {
        ::unlinkat(path.descriptor(), name.text.data(), 0);
        return failure(signed_it.error());
    }
    return outcome{.what = outcome::taken, .file = std::move(file)};
}

result<lock_files::lock_directory::outcome> lock_files::lock_directory::take_over(
    descriptor file, const file_name& name) const noexcept {
    record found;
    const ssize_t got = read_record(file.number(), found);
    if (got < 0) return failure(error::last("read a lock file", file.number()));
    found.size = static_cast<std::size_t>(got);
    if (not may_be_taken_over(found)) return outcome{.what = outcome::contended, .file = std::move(file)};
    // Never empty in between: that would mean that no process has died.
    if (const auto signed_it = sign(file.number()); not signed_it) {
        // A part of a first record would report a death that did not happen.
        if (found.size == 0) ::unlinkat(path.descriptor(), name.text.data(), 0);
        return failure(signed_it.error());
    }
    if (::ftruncate(file.number(), static_cast<off_t>(own.size)) != 0)
        return failure(error::last("take over a lock file", file.number()));
    // Without a record, the file was still being created: no process has held the entity with it.
    return outcome{.what = outcome::taken, .file = std::move(file), .owner_died = found.size != 0};
}

result<lock_files::lock_directory::outcome> lock_files::lock_directory::try_to_take(
    const file_name& name) const noexcept {
    descriptor file = open_at(at(), name, O_CREAT | O_EXCL);
    const bool is_new = file.number() >= 0;
    if (not is_new) {
        if (errno != EEXIST) return failure(error::last("create a lock file", at()));
        file = open_at(at(), name, O_NOFOLLOW);
        if (file.number() < 0 and errno == ENOENT)
            return outcome{.what = outcome::vanished, .file = std::move(file)};
        if (file.number() < 0) return failure(error::last("open a lock file", at()));
    }
    // The umask must not matter. Most directories have one user, and then this is not necessary.
    if (is_new and file_mode != 0600 and ::fchmod(file.number(), file_mode) != 0)
        return failure(error::last("set the permissions of a lock file", file.number()));
    const int code = kernel_lock::try_lock(file.number(), owner_byte, kernel_lock::kind::exclusive);
    // Also for a new file: another process took it for one of a dead creator, and locked it first.
    if (code == EAGAIN) return outcome{.what = outcome::contended, .file = std::move(file)};
    if (code != 0) return failure({code, "lock a lock file", file.number()});
    const auto itself = status_of(file.number());
    if (not itself) return failure(itself.error());
    const auto named = is_named(*itself, name);
    if (not named) return failure(named.error());
    if (not*named) return outcome{.what = outcome::vanished, .file = std::move(file)};
    // That process may have died since: then a new file has a record, and the death must be
    // reported.
    const bool has_record = itself->st_size != 0;
    return is_new and not has_record ? take_created(std::move(file), name) : take_over(std::move(file), name);
}

result<lock_files::lock_directory::outcome> lock_files::lock_directory::take(
    entity wanted, const dependencies& from) const noexcept {
    const file_name name(wanted);
    refused_opens refusals;
    for (unsigned attempt = 1;; ++attempt) {
        auto tried = try_to_take(name);
        const bool may_go_on = attempt != limits::vanished_file_attempts_max;
        // The server may no longer know a file that another host removed.
        if (not tried and tried.error().code() == ESTALE and may_go_on) continue;
        if (not tried and tried.error().code() == EACCES and refusals.pause(from)) continue;
        if (not tried or tried->what != outcome::vanished) return tried;
        if (not may_go_on) return outcome{.what = outcome::contended, .file = std::move(tried->file)};
    }
}

lock_files::lock_files(std::unique_ptr<lock_directory> opened, const dependencies& from,
                       fork_mark mark) noexcept
    : shared_fs_mutex(from, std::move(mark)), directory_(std::move(opened)) {}
lock_files::~lock_files() {
    if (not is_ours()) threads_.leave_to_parent();
}

namespace {

// Checks that the path itself, rather than a symbolic link that may be planted, leads to the
// directory.
result<void> check_that_it_is_no_link(const io::path_handle& base, io::path_view path,
                                      const io::path_handle& opened) noexcept {
    std::string_view text = path.text();
    while (text.size() > 1 and text.ends_with('/'))  // a slash at the end would follow the link
        text.remove_suffix(1);
    const io::terminated_path name(text);
    struct stat named{};
    const int at = base.is_valid() ? base.descriptor() : AT_FDCWD;
    if (name.problem() != 0) return failure(error::with_path(name.problem(), "open", path.text()));
    if (::fstatat(at, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0)
        return failure(error::with_path(errno, "open", path.text()));
    const auto itself = status_of(opened.descriptor());
    if (not itself) return failure(itself.error());
    if (S_ISDIR(named.st_mode) and named.st_dev == itself->st_dev and named.st_ino == itself->st_ino)
        return {};
    return failure(error::with_path(ELOOP, "open", path.text()));
}

// Returns the permissions of the files in the directory, which follow its own.
result<unsigned> prepare_directory(const io::path_handle& base, io::path_view path,
                                   const io::path_handle& opened, bool is_new,
                                   const file_access& access) noexcept {
    const auto around = lock_directory::of(base, path);
    if (not around) return failure(around.error());
    if (around->is_shared())
        if (auto checked = check_that_it_is_no_link(base, path, opened); not checked)
            return failure(checked.error());
    // fchmod(2) and fchown(2) refuse a descriptor that was opened with O_PATH.
    const descriptor readable(::openat(opened.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (is_new and readable.number() < 0)
        return failure(error::last("open the directory", opened.descriptor()));
    if (is_new)
        if (auto applied = around->apply_to(readable.number(), access, true); not applied)
            return failure(applied.error());
    const auto status = status_of(opened.descriptor());
    if (not status) return failure(status.error());
    const int problem = is_new ? 0 : around->problem_with(*status, access);
    if (problem != 0) return failure(error::with_path(problem, "open", path.text()));
    return 0600U | (status->st_mode & 0022U) | (status->st_mode & 0022U) << 1;
}

}  // namespace

result<std::unique_ptr<shared_fs_mutex>> lock_files::open_with_access(const io::path_handle& base,
                                                                      io::path_view path,
                                                                      const dependencies& from,
                                                                      const file_access& access) noexcept {
    const io::terminated_path name(path);
    if (name.problem() != 0)
        return failure(error::with_path(name.problem(), "create the directory", path.text()));
    const int at = base.is_valid() ? base.descriptor() : AT_FDCWD;
    const bool is_new = ::mkdirat(at, name.c_str(), 0700) == 0;
    if (not is_new and errno != EEXIST)
        return failure(error::with_path(errno, "create the directory", path.text()));
    auto directory = io::path_handle::open(base, path);
    if (not directory) return failure(directory.error());
    const auto file_mode = prepare_directory(base, path, *directory, is_new, access);
    if (not file_mode) return failure(file_mode.error());
    const auto volume = io::volume_of(*directory);
    if (not volume) return failure(volume.error());
    const auto self = process_identity::of_this_process();
    if (not self) return failure(self.error());
    auto mark = fork_mark::of_this_process();
    if (not mark) return failure(mark.error());
    const record own = record_of(*self);
    const auto host_end = std::string_view(own.text.data(), own.size).find("pid ");
    std::unique_ptr<lock_directory> opened(
        new (std::nothrow) lock_directory{.path = std::move(*directory),
                                          .own = own,
                                          .own_host_end = host_end,
                                          .is_shared_by_hosts = volume->reach != io::volume_reach::this_host,
                                          .file_mode = *file_mode});
    if (opened == nullptr) return failure({ENOMEM, "open a mutex"});
    std::unique_ptr<shared_fs_mutex> made(new (std::nothrow)
                                              lock_files(std::move(opened), from, *std::move(mark)));
    if (made == nullptr) return failure({ENOMEM, "open a mutex"});
    return made;
}

// In a ticket, `state` is the files, `place` is the last contended entity, and `mark` counts the
// pauses.

result<bool> lock_files::enter(std::span<const entity> wanted, ticket& mine, wait_policy) noexcept {
    auto* const opened = new (std::nothrow) files(wanted.size());
    if (opened == nullptr or opened->held == nullptr) {
        delete opened;
        return failure({ENOMEM, "lock entities"});
    }
    mine.state = opened;
    const auto granted = poll(wanted, mine);
    if (not granted) leave(mine);
    return granted;
}

result<bool> lock_files::poll(std::span<const entity> wanted, ticket& mine) noexcept {
    auto& mine_files = *static_cast<files*>(mine.state);
    mine.owner_died = false;
    // Begins with the contended entity, so that there is little to undo if it still is, and
    // continues in a circle from a random position: otherwise two requests for the same entities
    // could conflict at the same position forever.
    const std::size_t count = wanted.size();
    const std::size_t shift = mine.mark != 0 and count > 2 ? random().below(count - 1) : 0;
    for (std::size_t i = 0; i != count; ++i) {
        const std::size_t distance = i == 0 ? 0 : 1 + (i - 1 + shift) % (count - 1);
        const std::size_t index = (mine.place + distance) % count;
        auto tried = directory_->take(wanted[index], {&clock(), &random()});
        if (not tried) return failure(tried.error());
        if (tried->what == lock_directory::outcome::contended) {
            mine_files.release(*directory_);
            mine_files.contended = std::move(tried->file);
            mine.place = index;
            return false;
        }
        mine.owner_died = mine.owner_died or tried->owner_died;
        mine_files.held[mine_files.held_count++] = {
            .of = wanted[index], .file = std::move(tried->file), .has_dead_owner = tried->owner_died};
    }
    mine_files.forget_deaths();
    return true;
}

void lock_files::wait(std::span<const entity>, ticket& mine, steady_time end) noexcept {
    auto& mine_files = *static_cast<files*>(mine.state);
    const int contended = mine_files.contended.number();
    // With one entity the file's owner wakes us. With several, pauses must differ, or two requests
    // undo each other's work.
    if (directory_->is_shared_by_hosts)
        backoff(mine.mark, limits::pause_of_many_messages_max).sleep(clock(), random(), end);
    else if (end == steady_time::max() and contended >= 0)
        (void)kernel_lock::lock(contended, owner_byte, kernel_lock::kind::shared);
    else
        backoff(mine.mark).sleep(clock(), random(), end);
    mine_files.contended = descriptor();
}

bool lock_files::begin_wait(std::span<const entity>, ticket& mine,
                            const std::shared_ptr<wake_up>& waker) noexcept {
    auto& mine_files = *static_cast<files*>(mine.state);
    const int contended = mine_files.contended.number();
    if (directory_->is_shared_by_hosts or contended < 0) return false;
    mine_files.waiting = threads_.begin(contended, owner_byte, kernel_lock::kind::shared, waker);
    return mine_files.waiting != nullptr;
}

void lock_files::end_wait(ticket& mine) noexcept {
    auto& mine_files = *static_cast<files*>(mine.state);
    (void)threads_.end(std::exchange(mine_files.waiting, nullptr));
    mine_files.contended = descriptor();  // releases a lock that it may have got
}

void lock_files::leave(ticket& mine) noexcept {
    auto* const mine_files = static_cast<files*>(mine.state);
    mine_files->release(*directory_);
    delete mine_files;
}

void lock_files::drop_copy(ticket& mine) noexcept {
    delete static_cast<files*>(mine.state);
}

void lock_files::add_descriptors(const ticket& mine, std::vector<int>& into) const {
    const auto& mine_files = *static_cast<const files*>(mine.state);
    for (std::size_t i = 0; i != mine_files.held_count; ++i)
        into.push_back(mine_files.held[i].file.number());
}

int lock_files::file_descriptor() const noexcept {
    return directory_->path.descriptor();
}

namespace {

// Returns the number in the name of a lock file, or std::nullopt for other names.
std::optional<std::uint64_t> number_of(std::string_view name) noexcept {
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number, 16);
    if (name.size() != 16 or parsed.ec != std::errc() or parsed.ptr != name.data() + name.size())
        return std::nullopt;
    return number;
}

// Returns the rest of the line that begins with `key`.
std::string_view field_of(std::string_view text, std::string_view key) noexcept {
    const auto at = text.find(key);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = text.substr(at + key.size());
    return rest.substr(0, rest.find('\n'));
}

std::optional<listed_request> listed(int directory, const char* name) {
    const auto number = number_of(name);
    const descriptor file(::openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    struct stat status{};
    if (not number or file.number() < 0 or ::fstat(file.number(), &status) != 0) return std::nullopt;
    record found;
    const ssize_t got = read_record(file.number(), found);
    const auto is_alive = kernel_lock::is_locked(file.number(), owner_byte, kernel_lock::kind::exclusive);
    if (got <= 0 or not is_alive) return std::nullopt;
    const std::string_view text(found.text.data(), static_cast<std::size_t>(got));
    listed_request seen;
    seen.what = *is_alive ? listed_request::state::holds : listed_request::state::died;
    const std::string_view id = field_of(text, "\npid ");
    (void)std::from_chars(id.data(), id.data() + id.size(), seen.process_id);
    seen.host = field_of(text, "host ");
    seen.since = clock_source::utc_time(std::chrono::seconds(status.st_mtim.tv_sec) +
                                        std::chrono::nanoseconds(status.st_mtim.tv_nsec));
    seen.entities.emplace_back(*number);
    return seen;
}

}  // namespace

result<std::vector<listed_request>> lock_files::list() noexcept {
    if (not is_ours()) return refuse_after_fork();
    const int opened = ::openat(directory_->path.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) return failure(error::last("list the holders"));
    DIR* const names = ::fdopendir(opened);
    if (names == nullptr) {
        ::close(opened);
        return failure(error::last("list the holders"));
    }
    std::vector<listed_request> found;
    bool has_memory = true;
    try {
        while (const dirent* const entry = ::readdir(names))
            if (auto one = listed(opened, entry->d_name)) found.push_back(std::move(*one));
    } catch (const std::bad_alloc&) {
        has_memory = false;
    }
    ::closedir(names);
    if (not has_memory) return failure({ENOMEM, "list the holders"});
    return found;
}

}  // namespace sluice::fsmutex
