#include "sluice/cli/serve/share_journals.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "sluice/cli/fat/image/image.hpp"
#include "sluice/cli/serve/share_root.hpp"
#include "sluice/smb/server/journal/journal_file.hpp"
#include "sluice/smb/server/journal/journal_version.hpp"

namespace sluice::cli {

namespace {

constexpr std::chrono::seconds wait_for_predecessor{10};
// The journal is free: a predecessor has ended, except perhaps for the rest of its descriptors.
constexpr std::chrono::seconds wait_for_fence{1};

using journal_result = std::expected<std::shared_ptr<smb::server::handle_journal>, std::string>;

// Why a share cannot have continuous availability; an empty text: it can.
[[nodiscard]] std::string why_not(const serve_options& options, const share_options& share) {
    std::error_code unknown;
    const bool is_image = std::filesystem::exists(parse_image(share.path).file, unknown) and
                          not std::filesystem::is_directory(share.path, unknown);
    if (is_image) return "a disk image cannot have it: its engine keeps changes in memory";
    if (options.read_only or share.read_only) return "a read-only share cannot have it";
    if (not options.shared_locks.empty())
        return "it cannot be combined with shared-locks: other servers do not know the handles";
    return "";
}

[[nodiscard]] std::optional<std::string> state_directory(const serve_options& options) {
    if (not options.state_directory.empty()) return options.state_directory;
    if (::geteuid() == 0) return "/run/sluice";
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime == nullptr or *runtime == '\0') return std::nullopt;
    return std::string(runtime) + "/sluice";
}

// A store into the mapped journal must neither fail (a full copy-on-write file system raises
// SIGBUS) nor wait for a disk. An empty text: the directory, or its parent if it is missing, is in
// memory.
[[nodiscard]] std::string why_unsuitable(const std::string& directory) {
    struct statfs status{};
    int failed = ::statfs(directory.c_str(), &status);
    if (failed != 0)
        failed = ::statfs((std::filesystem::path(directory) / "..").lexically_normal().c_str(), &status);
    if (failed != 0) return "";  // creating the directory reports it
    const auto type = static_cast<unsigned long>(status.f_type);
    if (type == TMPFS_MAGIC or type == RAMFS_MAGIC) return "";
    return fmt::format(
        "the state directory {} must be in a file system in memory (tmpfs or ramfs); use a directory below "
        "/run",
        directory);
}

// In 100 ns since 1970; 0 if the file system has no time of birth.
[[nodiscard]] std::int64_t birth_of(const std::string& path) noexcept {
    struct statx status{};
    if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &status) != 0) return 0;
    if ((status.stx_mask & STATX_BTIME) == 0) return 0;
    constexpr std::int64_t units_per_second = 10'000'000;
    return status.stx_btime.tv_sec * units_per_second + status.stx_btime.tv_nsec / 100;
}

[[nodiscard]] journal_result open_journal(const std::string& directory, const share_options& share,
                                          const share_root& root, deadline within) {
    if (std::string why = why_unsuitable(directory); not why.empty()) return std::unexpected(std::move(why));
    const auto boot = smb::server::present_boot();
    if (not boot) return std::unexpected(boot.error().message());
    const smb::server::journal_identity identity{
        .boot = *boot, .device = root.device, .inode = root.inode, .born = birth_of(share.path)};
    const auto process = static_cast<std::uint32_t>(::getpid());
    auto storage =
        smb::server::open_journal_file({.directory = directory, .user_id = ::geteuid()}, identity, within);
    if (not storage and storage.error() == std::errc::device_or_resource_busy)
        return std::unexpected(fmt::format("another server has persistent handles of {}: {}", share.path,
                                           storage.error().message()));
    if (not storage) return std::unexpected(storage.error().message());
    if (const auto version = smb::server::later_version_in(**storage))
        return std::unexpected(
            fmt::format("{}: unsupported version {}; this program supports version {}; use "
                        "a newer sluice, or remove the file to end its persistent handles",
                        (*storage)->name(), *version, smb::server::journal_version()));
    auto journal = smb::server::handle_journal::open(*std::move(storage), identity, {.process_id = process});
    if (not journal) return std::unexpected(journal.error().message());
    return *std::move(journal);
}

// Another share of the server may have the same directory.
[[nodiscard]] bool is_available_elsewhere(const serve_options& options, const share_options& share) {
    const auto root = find_share_root(share.path);
    return std::ranges::any_of(options.shares, [&](const share_options& other) {
        return is_continuously_available(options, other) and find_share_root(other.path) == root;
    });
}

// This server protects no handles of the directory, so a later one must not restore those that an
// earlier one had. The journal of a later version is kept, as open_journal() keeps it.
enum class removal : std::uint8_t { nothing, removed, kept_later };
[[nodiscard]] removal remove_journal(const serve_options& options, const share_options& share) {
    const std::optional<std::string> directory = state_directory(options);
    const auto root = find_share_root(share.path);
    if (not directory or not root or not root->is_directory) return removal::nothing;
    const std::string name = smb::server::journal_name(root->device, root->inode);
    const std::string path = *directory + "/" + name;
    // open_state_directory() would create the directory.
    if (std::error_code unknown; not std::filesystem::exists(std::filesystem::symlink_status(path, unknown)))
        return removal::nothing;
    const auto later =
        smb::server::later_version_in_file({.directory = *directory, .user_id = ::geteuid()}, name);
    if (later and *later) return removal::kept_later;
    return ::unlink(path.c_str()) == 0 ? removal::removed : removal::nothing;
}

}  // namespace

bool is_continuously_available(const serve_options& options, const share_options& share) noexcept {
    const std::string& own = share.continuous_availability;
    return (own.empty() ? options.continuous_availability : own) == "on";
}

std::expected<share_journals, std::string> share_journals::open(const serve_options& options) {
    share_journals all;
    const auto end = deadline::steady_clock::now() + wait_for_predecessor;  // for all roots
    // Before this server claims any.
    for (const share_options& share : options.shares) {
        if (is_continuously_available(options, share)) continue;
        if (root_fence::is_claimed(share.path)) {
            all.of_others_.push_back(share.path);
        } else if (not is_available_elsewhere(options, share)) {
            const removal done = remove_journal(options, share);
            if (done == removal::removed) all.removed_.push_back(share.path);
            if (done == removal::kept_later) all.kept_later_.push_back(share.path);
        }
    }
    for (const share_options& share : options.shares) {
        if (not is_continuously_available(options, share)) continue;
        const auto refuse = [&](const std::string& why) {
            return std::unexpected(fmt::format("share '{}': continuous-availability: {}", share.name, why));
        };
        if (const std::string why = why_not(options, share); not why.empty()) return refuse(why);
        const std::optional<std::string> directory = state_directory(options);
        if (not directory)
            return refuse("XDG_RUNTIME_DIR is not set; use --state-directory to name a directory");
        const auto root = find_share_root(share.path);
        if (not root or not root->is_directory) continue;  // opening the share reports it
        const root_key key{root->device, root->inode};
        if (all.journals_.contains(key)) continue;
        auto journal = open_journal(*directory, share, *root, end);
        if (not journal) return refuse(journal.error());
        auto fence = root_fence::claim(share.path, deadline::steady_clock::now() + wait_for_fence);
        if (not fence) return refuse(fence.error().message());
        if (not fence->has_value()) all.of_others_.push_back(share.path);
        all.journals_.emplace(key, kept{.fence = *std::move(fence), .journal = *std::move(journal)});
    }
    return all;
}

std::shared_ptr<smb::server::handle_journal> share_journals::of(const share_options& share) const {
    if (journals_.empty()) return nullptr;
    const auto root = find_share_root(share.path);
    const auto found = root ? journals_.find({root->device, root->inode}) : journals_.end();
    return found == journals_.end() ? nullptr : found->second.journal;
}

}  // namespace sluice::cli
