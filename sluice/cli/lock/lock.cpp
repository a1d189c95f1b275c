// sluice lock: runs a command while a lock is held, locks an open descriptor, or lists the holders.

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/lock/front_process.hpp"
#include "sluice/cli/lock/held_command.hpp"
#include "sluice/cli/lock/list.hpp"
#include "sluice/cli/lock/lock_session.hpp"
#include "sluice/cli/lock/options.hpp"
#include "sluice/cli/message.hpp"

namespace sluice::cli {
namespace {

using namespace sluice::fsmutex;
using request = lock_options::request;

// Like flock(1), prints nothing if the lock is held by another process: scripts for cron(8) rely on
// it.
[[nodiscard]] int refuse(const lock_refusal& why, const lock_options& options) {
    if (options.is_verbose or not why.is_conflict) print_error(why.message);
    return static_cast<int>(why.status);
}

class stopwatch {
public:
    [[nodiscard]] double seconds() const noexcept {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    }

private:
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

void report_grant(const lock_options& options, const stopwatch& since, bool owner_died) {
    if (options.is_verbose) {
        fmt::print("sluice lock: getting lock took {:.6f} seconds\n", since.seconds());
        if (not options.command.empty()) fmt::print("sluice lock: executing {}\n", options.command.front());
        std::fflush(stdout);
    }
    if (owner_died) warn(options.file + ": the previous holder died; protected data may be inconsistent");
}

[[nodiscard]] held_command command_of(const lock_options& options, const lock_session& session) {
    held_command made{
        .words = options.command, .inherited = {}, .owner_died = session.owner_died(), .foreign = {}};
    if (not options.closes) made.inherited = session.inheritable();
    return made;
}

// Returns the exit status.
[[nodiscard]] int replace_by_command(const lock_options& options) {
    const stopwatch since;
    lock_session session(options);
    const auto end_refused = [&](const lock_refusal& why) {
        const int status = refuse(why, options);
        if (not session.owner_died()) return status;
        std::fflush(nullptr);
        ::_exit(status);  // without an unlock, the next holder is notified of the death
    };
    if (const auto why = session.acquire()) return end_refused(*why);
    report_grant(options, since, session.owner_died());
    const held_command command = command_of(options, session);
    if (const auto why = session.leave_to_descriptors()) return end_refused(*why);
    return become(command);
}

[[nodiscard]] command_outcome hold(const lock_options& options, const outcome_report& report) {
    const stopwatch since;
    const std::vector<int> foreign = open_descriptors();
    lock_session session(options);
    if (const auto why = session.acquire()) {
        const int status = refuse(*why, options);
        if (session.owner_died()) {  // without an unlock, the next holder is notified of this
            report.send({.status = status});
            ::_exit(0);
        }
        return {.status = status};
    }
    if (not report.survive_front()) return {.status = static_cast<int>(exit_code::lock_system)};
    report_grant(options, since, session.owner_died());
    held_command command = command_of(options, session);
    command.foreign = foreign;
    const bool ends_with_command = options.closes or options.releases_on_exit;
    return run_held(command, ends_with_command ? hold_until::command_exits : hold_until::descendants_exit,
                    held_lock{.is_intact = [&session] { return session.is_intact(); },
                              .release = [&session] { session.release(); }},
                    report);
}

// The standard descriptors that the caller had closed.
using closed_descriptors = std::array<bool, STDERR_FILENO + 1>;

// Opens the standard descriptors that the caller has closed. Otherwise the lock file would get such
// a number, and the output of the command would be written to it. The command finds them closed.
[[nodiscard]] closed_descriptors occupy_standard_descriptors() noexcept {
    closed_descriptors closed{};
    for (int number = 0; number <= STDERR_FILENO; ++number) {
        if (::fcntl(number, F_GETFD) >= 0) continue;
        closed[static_cast<std::size_t>(number)] = true;
        // It gets the lowest free number, which is this one.
        const int opened = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        if (opened > number) ::close(opened);
    }
    return closed;
}

[[nodiscard]] bool was_closed(int descriptor, const closed_descriptors& closed) noexcept {
    return descriptor <= STDERR_FILENO and closed[static_cast<std::size_t>(descriptor)];
}

[[nodiscard]] int lock_descriptor(const lock_options& options, const closed_descriptors& closed) {
    const stopwatch since;
    const int descriptor = options.descriptor;
    const auto cannot = [&](int code) {
        return refuse({code == ENOLCK or code == ENOMEM ? exit_code::lock_system : exit_code::lock_data,
                       error(code, "lock", descriptor).message()},
                      options);
    };
    if (was_closed(descriptor, closed)) return cannot(EBADF);
    // The copy can be closed: the lock belongs to the open file description, which the caller keeps
    // open.
    const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return cannot(errno);
    auto lock = inherited_lock::of_whole_file(copy, options.whole_file);
    const auto within =
        options.timeout_s ? deadline(std::chrono::duration<double>(*options.timeout_s)) : deadline();
    const auto locked = lock.acquire(within, dependencies::of_this_machine());
    if (not locked and locked.error() == std::errc::timed_out)
        return refuse({.status = static_cast<exit_code>(options.conflict_status),
                       .message = fmt::format("descriptor {}: lock is held by another process", descriptor),
                       .is_conflict = true},
                      options);
    if (not locked) return cannot(locked.error().code());
    struct stat status{};
    if (::fstat(descriptor, &status) == 0 and S_ISREG(status.st_mode) and status.st_nlink == 0) {
        lock.release();
        return refuse({exit_code::lock_data,
                       fmt::format("descriptor {}: lock: the file was removed, so other processes would lock "
                                   "another file of its name; open the file again",
                                   descriptor)},
                      options);
    }
    report_grant(options, since, false);
    return 0;
}

[[nodiscard]] int unlock_descriptor(const lock_options& options, const closed_descriptors& closed) {
    if (was_closed(options.descriptor, closed))
        return refuse({exit_code::lock_data, error(EBADF, "unlock", options.descriptor).message()}, options);
    if (::flock(options.descriptor, LOCK_UN) == 0) return 0;
    return refuse({exit_code::lock_data, error::last("unlock", options.descriptor).message()}, options);
}

[[nodiscard]] int run_lock(const std::vector<std::string>& words) {
    const closed_descriptors closed = occupy_standard_descriptors();
    const char* const shell = std::getenv("SHELL");
    const auto options = parse_lock_options(words, shell != nullptr ? shell : "");
    if (not options) {
        print_error(options.error());
        fmt::print(stderr, "Usage: sluice lock [OPTIONS] LOCKFILE [--] COMMAND [ARGUMENT...]\n");
        return static_cast<int>(exit_code::lock_usage);
    }
    switch (options->what) {
        case request::help:
            fmt::print("{}", lock_help());
            return 0;
        case request::version:
            fmt::print("sluice " SLUICE_VERSION "\n");
            return 0;
        case request::list:
            return list_lock_requests(*options);
        case request::lock_descriptor:
            return lock_descriptor(*options, closed);
        case request::unlock_descriptor:
            return unlock_descriptor(*options, closed);
        case request::run:
            break;
    }
    if (not options->forks) return replace_by_command(*options);
    return run_in_holder(options->file, [&](const outcome_report& report) { return hold(*options, report); });
}

}  // namespace

void add_lock(command_syntax app) {
    const auto command =
        app.add_raw_command("lock", "run a command while holding a lock", run_lock).group("Tools");
    command.usage("LOCKFILE [--] COMMAND [ARGUMENT...]");
    for (help_option& each : lock_help_options())
        command.describe_option(std::move(each));
}

}  // namespace sluice::cli
