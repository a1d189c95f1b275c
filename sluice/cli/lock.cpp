// sluice lock: runs a command while names are locked, or tells who has locked what.

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/status/time_text.hpp"
#include "sluice/fsmutex/best_available.hpp"

namespace sluice::cli {
namespace {

using namespace sluice::fsmutex;

struct lock_arguments {
    std::vector<std::string> exclusive;
    std::vector<std::string> shared;
    std::optional<double> timeout_s;
    std::string algorithm_name = "best";
    bool is_list = false;
    std::string file;
    std::vector<std::string> command;
};

[[noreturn]] void fail(const std::string& why, exit_code code = exit_code::failure) {
    fmt::print(stderr, "sluice lock: {}\n", why);
    leave(code);
}

algorithm_choice choice_of(const lock_arguments& arguments) {
    for (const algorithm each :
         {algorithm::memory_map, algorithm::atomic_append, algorithm::byte_ranges, algorithm::lock_files})
        if (arguments.algorithm_name == name_of(each)) return {each, "--algorithm says so"};
    auto best = best_available({}, arguments.file);
    if (not best) fail(best.error().message());
    return *std::move(best);
}

std::unique_ptr<shared_fs_mutex> open_mutex(const lock_arguments& arguments) {
    const algorithm_choice choice = choice_of(arguments);
    auto mutex = open(choice.which, {}, arguments.file);
    if (not mutex)
        fail(fmt::format("{} ({}, because {})", mutex.error().message(), name_of(choice.which),
                         choice.reason));
    return *std::move(mutex);
}

std::vector<entity> entities_of(const lock_arguments& arguments) {
    std::vector<entity> wanted;
    for (const std::string& name : arguments.exclusive)
        wanted.push_back(entity::of_name(name));
    for (const std::string& name : arguments.shared)
        wanted.push_back(entity::of_name(name, lock_mode::shared));
    if (wanted.empty()) wanted.push_back(entity::of_name(""));  // the file as a whole
    return wanted;
}

deadline deadline_of(const lock_arguments& arguments) {
    if (not arguments.timeout_s) return {};
    return std::chrono::duration<double>(*arguments.timeout_s);
}

[[noreturn]] void become(const std::vector<std::string>& command, pid_t parent, bool owner_died) {
    // Without us nobody would hold the lock any more.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(static_cast<int>(exit_code::failure));
    for (const int ignored : {SIGINT, SIGQUIT})
        ::signal(ignored, SIG_DFL);
    if (owner_died) ::setenv("SLUICE_LOCK_OWNER_DIED", "1", 1);
    std::vector<char*> words;
    for (const std::string& word : command)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    const bool is_missing = errno == ENOENT;
    fmt::print(stderr, "sluice lock: {}: {}\n", command[0], std::system_category().message(errno));
    ::_exit(static_cast<int>(is_missing ? exit_code::command_not_found : exit_code::command_not_run));
}

// The status of the command, as a shell tells it.
int run_command(const std::vector<std::string>& command, bool owner_died) {
    // What the terminal sends goes to the command, too, and it decides; we only wait for it.
    for (const int ignored : {SIGINT, SIGQUIT})
        ::signal(ignored, SIG_IGN);
    std::fflush(stdout);
    const pid_t self = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) fail("fork: " + std::system_category().message(errno));
    if (child == 0) become(command, self, owner_died);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 and errno == EINTR) {}
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void lock_and_run(const lock_arguments& arguments) {
    int status = 0;
    {
        const auto mutex = open_mutex(arguments);
        if (not mutex->has_shared_mode() and not arguments.shared.empty())
            fmt::print(stderr, "sluice lock: {} has no shared mode: --shared locks exclusively\n",
                       name_of(mutex->which()));
        const auto held = mutex->lock(entities_of(arguments), deadline_of(arguments));
        if (not held and held.error() == std::errc::timed_out)
            fail("others hold it, or wait for it; sluice lock --list shows who", exit_code::not_granted);
        if (not held) fail(held.error().message());
        if (held->owner_died())
            fmt::print(stderr,
                       "sluice lock: whoever held it before died: what it protects may be half changed\n");
        status = run_command(arguments.command, held->owner_died());
    }
    leave(static_cast<exit_code>(status));
}

std::string text_of(listed_request::standing what) {
    switch (what) {
        case listed_request::standing::holds:
            return "holds";
        case listed_request::standing::waits:
            return "waits";
        case listed_request::standing::died:
            return "died";
    }
    return "";
}

// Names are not stored, only their numbers: those the user names can be told.
std::string text_of(entity one, const lock_arguments& arguments) {
    for (const auto* names : {&arguments.exclusive, &arguments.shared})
        for (const std::string& name : *names)
            if (entity::of_name(name).number() == one.number())
                return (one.is_exclusive() ? "exclusive:" : "shared:") + name;
    return fmt::format("{}:{:016x}", one.is_exclusive() ? "exclusive" : "shared", one.number());
}

void list(const lock_arguments& arguments) {
    // To look must not make what there is not.
    if (::access(arguments.file.c_str(), F_OK) != 0)
        fail(arguments.file + ": " + std::system_category().message(errno));
    const auto all = open_mutex(arguments)->list();
    if (not all) fail(all.error().message());
    fmt::print("{:<6} {:>8} {:<20} {:<20} {}\n", "what", "pid", "host", "since", "entities");
    for (const listed_request& each : *all) {
        const auto seconds = std::chrono::system_clock::to_time_t(
            std::chrono::floor<std::chrono::system_clock::duration>(each.since));
        fmt::print("{:<6} {:>8} {:<20} {}Z", text_of(each.what), each.process_id, each.host,
                   utc_text(iso_seconds, seconds));
        for (const entity one : each.entities)
            fmt::print(" {}", text_of(one, arguments));
        fmt::print("\n");
    }
}

void run(const lock_arguments& arguments) {
    if (arguments.is_list) {
        if (not arguments.command.empty()) fail("--list runs no command", exit_code::usage);
        return list(arguments);
    }
    if (arguments.command.empty()) fail("no command behind LOCKFILE; sluice lock --help", exit_code::usage);
    lock_and_run(arguments);
}

}  // namespace

void add_lock(command_syntax app) {
    const command_syntax lock =
        app.add_subcommand("lock", "run a command while others are kept from doing the same");
    const auto arguments = std::make_shared<lock_arguments>();
    lock.add_option("--exclusive", arguments->exclusive, "a name to lock alone; may be given again")
        .value_name("NAME")
        .one_value_each_time();
    lock.add_option("--shared", arguments->shared,
                    "a name to lock beside others that share it; may be given again")
        .value_name("NAME")
        .one_value_each_time();
    lock.add_option("--timeout", arguments->timeout_s, "seconds to wait at most; 0: do not wait")
        .value_name("SECONDS")
        .between(0.0, 1e9);
    lock.add_option("--algorithm", arguments->algorithm_name, "what all users of LOCKFILE must agree on")
        .one_of({"best", "memory_map", "atomic_append", "byte_ranges", "lock_files"})
        .shows_default();
    lock.add_flag("--list", arguments->is_list, "show who holds and who waits, and run nothing");
    lock.add_option("LOCKFILE", arguments->file, "the file, made if it is not there; of lock_files a folder")
        .required();
    lock.add_option("COMMAND", arguments->command, "behind --: what to run, with its arguments");
    lock.on_call([arguments] { run(*arguments); });
}

}  // namespace sluice::cli
