#include "sluice/cli/lock/lock_session.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/fsmutex/limits.hpp"
#include "sluice/fsmutex/process/lock_file.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::cli {

using namespace sluice::fsmutex;

namespace {

[[nodiscard]] bool is_mutex_file(const std::string& path) {
    const auto found = best_available({}, path);
    return found and found->is_in_use;
}

[[nodiscard]] bool is_on_this_host(const std::string& path) {
    const auto place = io::path_handle::open({}, path);
    if (not place) return false;  // opening it for the lock reports the reason
    const auto volume = io::volume_of(*place);
    return volume and volume->reach == io::volume_reach::this_host;
}

// Returns whether `best` uses flock(2) alone for a request of the whole file. Then the file is
// neither written nor removed, whatever its content: a shell may truncate it by `9>file`, and a
// disk image begins with zeros. A file that is a mutex already is used as one. flock(2) may not
// exclude processes of other hosts, so on a shared file system an empty file becomes a mutex, and a
// directory is one.
[[nodiscard]] bool is_for_flock_alone(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
        const auto best = best_available({}, path);
        return best and best->which == algorithm::memory_map;  // which is for volumes of this host
    }
    if (S_ISDIR(status.st_mode)) return is_on_this_host(path);
    if (not S_ISREG(status.st_mode)) return true;
    if (is_mutex_file(path)) return false;
    if (status.st_size != 0) return true;
    const auto best = best_available({}, path);
    return best and best->which == algorithm::memory_map;
}

[[nodiscard]] result<int> open_whole_file(const std::string& path, const file_access& access) {
    // Opens it for writing if possible, as NFS requires; otherwise for reading, like flock(1).
    refused_opens refusals;
    do {
        for (const int how : {O_RDWR, O_RDONLY}) {
            const int opened = ::open(path.c_str(), how | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
            if (opened >= 0) return opened;
            if (errno == ENOENT) {
                auto created = open_lock_file({}, path, dependencies::of_this_machine(), access);
                if (not created) return failure(created.error());
                return created->release().descriptor;
            }
            const bool may_read = errno == EACCES or errno == EISDIR or errno == EROFS or errno == ETXTBSY or
                                  errno == EPERM or errno == ENXIO;
            if (not may_read) return failure(error::with_path(errno, "open", path));
        }
    } while (errno == EACCES and refusals.pause(dependencies::of_this_machine()));
    return failure(error::with_path(errno, "open", path));
}

// Returns whether the path still refers to this file. Its last user may have removed it during the
// wait.
[[nodiscard]] bool is_named(int file, const std::string& path) noexcept {
    struct stat itself{};
    struct stat there{};
    return ::fstat(file, &itself) == 0 and ::stat(path.c_str(), &there) == 0 and
           itself.st_dev == there.st_dev and itself.st_ino == there.st_ino;
}

// Returns the remedy for a refusal of open_lock_file().
[[nodiscard]] const char* remedy_for(const error& why) noexcept {
    switch (why.code()) {
        case EACCES:
            return "; the creator of the file decides who can use it, with --mode, --group, or chmod";
        case ELOOP:
            return "; symbolic links are not followed where other users can write to the directory, so name "
                   "the "
                   "target";
        case EMLINK:
            return "; where other users can write to the directory, the file must have one link, so use "
                   "another "
                   "file";
        case EPERM:
            return "; in a sticky directory the file must belong to you, to root, or to the owner of the "
                   "directory, unless --mode or --group shares it, and --group must be a group of yours";
        case ENXIO:
            return "; a lock file must be a regular file";
        case EBADMSG:
            return "; the file is damaged, or not a lock file of this version; use another file, or end its "
                   "users and remove the file";
        default:
            return "";
    }
}

[[nodiscard]] exit_code status_of_lock(const error& why) noexcept {
    return why.code() == ENOLCK or why.code() == ENOMEM ? exit_code::lock_system : exit_code::lock_data;
}

}  // namespace

std::vector<entity> entities_of(const lock_options& options) {
    std::vector<entity> wanted;
    for (const std::string& name : options.exclusive)
        wanted.push_back(entity::of_name(name));
    for (const std::string& name : options.shared)
        wanted.push_back(entity::of_name(name, lock_mode::shared));
    if (wanted.empty()) wanted.push_back(entity::of_name("", options.whole_file));
    return wanted;
}

result<std::optional<algorithm_choice>> algorithm_of(const lock_options& options) {
    if (options.algorithm == "flock") return std::nullopt;
    for (const algorithm each :
         {algorithm::memory_map, algorithm::atomic_append, algorithm::byte_ranges, algorithm::lock_files})
        if (options.algorithm == name_of(each)) return algorithm_choice{each, "of --algorithm"};
    const bool is_for_all_names = not options.has_names() and options.what != lock_options::request::list;
    if (is_for_all_names and is_for_flock_alone(options.file)) return std::nullopt;
    auto best = best_available({}, options.file);
    if (not best) return failure(best.error());
    return *std::move(best);
}

exit_code status_of_open(const error& why) noexcept {
    switch (why.code()) {
        case ENOMEM:
            return exit_code::lock_system;
        case EROFS:
        case ENOSPC:
            return exit_code::lock_cannot_create;
        default:
            return exit_code::lock_no_input;
    }
}

deadline lock_session::remaining() const {
    if (not options_.timeout_s) return {};
    if (*options_.timeout_s == 0) return deadline::zero();
    return began_ + std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::duration<double>(*options_.timeout_s));
}

lock_refusal lock_session::not_granted() const {
    const std::string remedy =
        mutex_ != nullptr ? fmt::format("; run 'sluice lock --list {}' to list holders", options_.file) : "";
    return {.status = static_cast<exit_code>(options_.conflict_status),
            .message = fmt::format("{}: lock is held by another process{}", options_.file, remedy),
            .is_conflict = true};
}

lock_refusal lock_session::not_locked(const error& why) const {
    std::string message = why.reason();
    if (why == std::errc::bad_message)
        message =
            "lock: the lock file was damaged or truncated while it was in use; it is created again when all "
            "its "
            "users have ended";
    if (why == std::errc::device_or_resource_busy)
        message = "lock: a process was stopped while it changed the lock file; continue or end that process";
    return {.status = status_of_lock(why), .message = fmt::format("{}: {}", options_.file, message)};
}

std::optional<lock_refusal> lock_session::acquire() {
    const auto choice = algorithm_of(options_);
    if (not choice) return lock_refusal{status_of_open(choice.error()), about(options_.file, choice.error())};
    return *choice ? acquire_mutex(**choice) : acquire_whole_file();
}

std::optional<lock_refusal> lock_session::acquire_whole_file() {
    for (unsigned attempt = 0; attempt != limits::vanished_mutex_attempts_max; ++attempt) {
        const auto opened = open_whole_file(options_.file, options_.access);
        if (not opened)
            return lock_refusal{status_of_open(opened.error()),
                                about(options_.file, opened.error()) + remedy_for(opened.error())};
        inherited_.emplace(inherited_lock::of_whole_file(*opened, options_.whole_file));
        if (auto refused = acquire_inherited()) return refused;
        if (is_named(*opened, options_.file)) return std::nullopt;
    }
    const error vanished = error::with_path(ESTALE, "lock", options_.file);
    return lock_refusal{status_of_lock(vanished), about(options_.file, vanished)};
}

std::optional<lock_refusal> lock_session::acquire_mutex(const algorithm_choice& choice) {
    auto mutex = open(choice.which, {}, options_.file, dependencies::of_this_machine(), options_.access);
    if (not mutex)
        return lock_refusal{status_of_open(mutex.error()),
                            fmt::format("{} ({}, because {}){}", about(options_.file, mutex.error()),
                                        name_of(choice.which), choice.reason, remedy_for(mutex.error()))};
    mutex_ = *std::move(mutex);
    if (not mutex_->has_shared_mode() and options_.wants_shared())
        return lock_refusal{
            exit_code::lock_usage,
            fmt::format("{}: {} has only exclusive locks; use another --algorithm for a shared lock, or lock "
                        "exclusively",
                        options_.file, name_of(choice.which))};
    const auto wanted = entities_of(options_);
    auto held = mutex_->lock(wanted, remaining());
    if (not held and held.error() == std::errc::timed_out) return not_granted();
    if (not held) return not_locked(held.error());
    held_ = *std::move(held);
    auto inherited = inherited_lock::beside(*mutex_, wanted);
    if (not inherited)
        return lock_refusal{status_of_lock(inherited.error()), about(options_.file, inherited.error())};
    inherited_.emplace(*std::move(inherited));
    return acquire_inherited();
}

std::optional<lock_refusal> lock_session::acquire_inherited() {
    const auto locked = inherited_->acquire(remaining(), dependencies::of_this_machine());
    if (locked) return std::nullopt;
    const bool is_contended = locked.error() == std::errc::timed_out;
    lock_refusal why =
        is_contended ? not_granted()
                     : lock_refusal{status_of_lock(locked.error()), about(options_.file, locked.error())};
    // The next holder is notified of the death if this process ends with the lock.
    if (not owner_died()) release();
    return why;
}

std::vector<int> lock_session::inheritable() const {
    std::vector<int> found;
    if (inherited_) found.push_back(inherited_->descriptor());
    if (held_) {
        const auto own = mutex_->descriptors_of(*held_);
        if (own) found.insert(found.end(), own->begin(), own->end());
    }
    return found;
}

void lock_session::release() noexcept {
    if (inherited_) {
        inherited_->release();
        // flock(1) does not detect that the file it waited for lost its name.
        if (not inherited_->is_of_whole_file()) inherited_->allow_removal();
    }
    if (held_) (void)held_->unlock();  // damage was reported by is_intact()
    held_.reset();
    mutex_.reset();
    inherited_.reset();
}

std::optional<lock_refusal> lock_session::leave_to_descriptors() {
    if (mutex_ == nullptr) return std::nullopt;
    if (inherited_->locks()) {
        if (const auto unlocked = held_->unlock(); not unlocked) return not_locked(unlocked.error());
        held_.reset();
        mutex_.reset();  // the file stays, because the lock needs it
        return std::nullopt;
    }
    if (mutex_->which() == algorithm::byte_ranges) {
        (void)mutex_.release();  // its descriptors are closed with the process
        return std::nullopt;
    }
    return lock_refusal{
        exit_code::lock_usage,
        fmt::format(
            "{}: --no-fork is not possible with {}, which needs a process that removes its files; remove "
            "--no-fork, or use --algorithm byte_ranges",
            options_.file, name_of(mutex_->which()))};
}

}  // namespace sluice::cli
