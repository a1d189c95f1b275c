// The shares of a configuration: the path, the rights of the server's account on it, and the file
// system. Without a configuration: the directories of the servers that run.

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "sluice/cli/doctor/local/file_system_facts.hpp"
#include "sluice/cli/doctor/local/local_checks.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr const char* check = "share";
constexpr std::size_t shares_max = 64;

[[nodiscard]] finding problem(std::string what, std::string evidence, std::string remedy) {
    return {.level = severity::problem,
            .check = check,
            .what = std::move(what),
            .evidence = std::move(evidence),
            .remedy = std::move(remedy)};
}

[[nodiscard]] finding judge_barrier(const share_options& share, const path_barrier& seen,
                                    const server_account& account) {
    if (seen.code == ENOENT)
        return problem(fmt::format("the path of the share '{}' does not exist", share.name),
                       seen.component + ": missing", "mkdir -p " + shell_word(share.path));
    if (seen.code != 0)
        return problem(fmt::format("the path of the share '{}' cannot be used", share.name),
                       fmt::format("{}: {}", seen.component, std::strerror(seen.code)),
                       "ls -ld " + shell_word(seen.component));
    std::string named = bits_text(seen.missing);
    std::erase(named, '-');
    finding one = problem(
        fmt::format("the server's account (user {}) lacks '{}' on '{}', so that the share '{}' does not work",
                    account.user_id, named, seen.component, share.name),
        seen.has_acl
            ? "by owner and mode; its access control list may differ: getfacl " + shell_word(seen.component)
            : "by owner and mode",
        fmt::format("setfacl -m u:{}:{} {}", account.user_id, named, shell_word(seen.component)));
    // Missing write permission may be intended, and an ACL may grant what the mode does not.
    if (seen.has_acl or seen.missing == 2) one.level = severity::warning;
    return one;
}

// Times a small file that is written to disk, and removes it.
[[nodiscard]] finding test_write(const share_options& share) {
    const auto began = std::chrono::steady_clock::now();
    const int descriptor = ::open(share.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    std::array<char, 4096> block{};
    const bool is_written = descriptor >= 0 and ::write(descriptor, block.data(), block.size()) == 4096 and
                            ::fsync(descriptor) == 0;
    const int code = errno;
    if (descriptor >= 0) ::close(descriptor);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    finding one{
        .level = severity::note,
        .check = "disk",
        .what = fmt::format("a synchronous write of 4 KiB to '{}' takes {:.1f} ms", share.path, took.count()),
        .evidence = "a file without a name, removed since",
        .remedy = {}};
    constexpr double slow_ms = 50;
    if (not is_written) {
        one.level = severity::warning;
        one.what = fmt::format("this account cannot write a temporary file to '{}'", share.path);
        one.evidence = std::strerror(code);
        one.remedy =
            "run this command as the account of the server: sudo -u ACCOUNT sluice doctor --write-test "
            "CONFIG";
    } else if (took.count() > slow_ms) {
        one.level = severity::warning;
        one.remedy = "iostat -x 1 names the busy disk; move the share to a faster one";
    }
    return one;
}

[[nodiscard]] std::vector<share_options> shares_of(const local_state& state) {
    std::vector<share_options> shares = state.options.shares;
    if (shares.empty())
        for (const running_server& server : state.servers)
            for (const std::string& path : server.paths) {
                share_options one;
                one.name = one.path = path;
                one.read_only = true;  // unknown: no findings about writing
                shares.push_back(std::move(one));
            }
    if (shares.size() > shares_max) shares.resize(shares_max);
    return shares;
}

void check_share(const local_state& state, const share_options& share, finding_list& into) {
    constexpr unsigned read_only = 5;
    constexpr unsigned read_write = 7;
    struct stat status{};
    const bool exists = ::stat(share.path.c_str(), &status) == 0;
    const bool is_image = exists and not S_ISDIR(status.st_mode);
    const bool reads_only = share.read_only or state.options.read_only;
    const unsigned wanted = is_image ? (reads_only ? 4U : 6U) : (reads_only ? read_only : read_write);
    if (const auto barrier = walk(state.account, share.path, wanted); barrier) {
        into.add(judge_barrier(share, *barrier, state.account));
        if (barrier->code != 0) return;
    }
    if (is_image) {
        into.note(check, fmt::format("the share '{}' is a disk image", share.name), share.path);
        return;
    }
    const auto seen = facts_of_file_system(share.path);
    if (not seen) return;
    for (finding& one : judge_file_system(share.name, share.path, *seen, reads_only))
        into.add(std::move(one));
    if (state.writes and not reads_only) into.add(test_write(share));
}

}  // namespace

void check_shares(local_state& state, finding_list& into) {
    for (share_options& share : state.options.shares)
        if (share.name.empty()) share.name = std::filesystem::path(share.path).filename().string();
    for (share_options share : shares_of(state)) {
        if (share.path.empty()) continue;  // a referral
        into.begin(fmt::format("share '{}'", share.name));
        std::error_code failed;
        const auto absolute = std::filesystem::absolute(share.path, failed);
        if (not failed) share.path = absolute.lexically_normal().string();
        check_share(state, share, into);
    }
}

}  // namespace sluice::cli::doctor
