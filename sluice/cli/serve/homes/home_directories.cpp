#include "sluice/cli/serve/homes/home_directories.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/cli/serve/homes/home_shares.hpp"
#include "sluice/cli/serve/host_accounts.hpp"
#include "sluice/cli/serve/share_snapshots.hpp"

namespace sluice::cli {
namespace {

constexpr mode_t home_mode = 0700;

struct directory_closer {
    void operator()(DIR* open) const noexcept { (void)::closedir(open); }
};

// Removes a new directory that did not get its owner or its name.
class unfinished_directory {
public:
    unfinished_directory(int parent, std::string name) noexcept : parent_(parent), name_(std::move(name)) {}
    unfinished_directory(const unfinished_directory&) = delete;
    unfinished_directory& operator=(const unfinished_directory&) = delete;
    ~unfinished_directory() { (void)::unlinkat(parent_, name_.c_str(), AT_REMOVEDIR); }

    [[nodiscard]] const char* name() const noexcept { return name_.c_str(); }

private:
    int parent_;
    std::string name_;
};

// Gives the new directory its name, unless another process has made one. Not all file systems know
// the flag; without it, rename(2) replaces only an empty directory.
[[nodiscard]] int name_directory(int parent, const char* from, const char* to) noexcept {
    if (::renameat2(parent, from, parent, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno == EEXIST) return 0;
    if (errno != EINVAL and errno != ENOSYS) return errno;
    return ::renameat(parent, from, parent, to) == 0 or errno == ENOTEMPTY or errno == EEXIST ? 0 : errno;
}

// Returns "PATH: open: No such file or directory", with the path of the configuration.
[[nodiscard]] std::string about(std::string_view path, const error& why) {
    return fmt::format("{}: {}", path, why.reason());
}

}  // namespace

std::optional<share_root> root_of(const io::path_handle& open) noexcept {
    struct stat status{};
    if (::fstat(open.descriptor(), &status) != 0) return std::nullopt;
    return share_root{
        .device = status.st_dev, .inode = status.st_ino, .is_directory = S_ISDIR(status.st_mode)};
}

account_lookup accounts_of(const serve_options& options) {
    return options.impersonate ? account_lookup(unix_account_of) : account_lookup();
}

std::string roots_of_homes(const serve_options& options) {
    return options.homes + "/*";
}

std::expected<home_directories, std::string> home_directories::open(const serve_options& options,
                                                                    account_lookup account_of) {
    auto all = io::path_handle::open(options.homes, io::confinement::beneath_no_symlinks);
    if (not all) return std::unexpected(about(options.homes, all.error()));
    struct stat status{};
    if (::fstat(all->descriptor(), &status) != 0)
        return std::unexpected(about(options.homes, error::last("stat", all->descriptor())));
    // An account that can change names in it can give a user another directory. The bits of the
    // group also cover the entries of an ACL.
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return std::unexpected(
            options.homes +
            ": other accounts can create directories in it, also for other users; use chmod go-w");
    if (status.st_uid != 0 and status.st_uid != ::geteuid())
        return std::unexpected(
            fmt::format("{}: it belongs to the account {}, which can give users other directories; use chown",
                        options.homes, status.st_uid));
    return home_directories(*std::move(all), options.homes, not options.read_only, std::move(account_of));
}

std::expected<io::path_handle, std::string> home_directories::open_home(const std::string& user) const {
    const std::string path = fmt::format("{}/{}", path_, user);
    if (const std::string why = why_not_home(user); not why.empty())
        return std::unexpected(fmt::format("{}: {}", path, why));
    auto opened = io::path_handle::open(all_, user);
    if (not opened and opened.error() == std::errc::no_such_file_or_directory) {
        if (const auto made = create(user); not made)
            return std::unexpected(fmt::format("{}: {}", path, made.error()));
        opened = io::path_handle::open(all_, user);
    }
    if (not opened and opened.error() == std::errc::too_many_symbolic_link_levels)
        return std::unexpected(path +
                               ": a symbolic link; move the directory there, or mount it with "
                               "'mount --bind'");
    if (not opened) return std::unexpected(about(path, opened.error()));
    const int readable = ::openat(opened->descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (readable < 0) return std::unexpected(about(path, error::last("open")));
    (void)::close(readable);
    // Links within the share are followed, unlike those on the way to it.
    return io::path_handle(opened->release(), io::confinement::beneath_one_mount);
}

std::expected<void, std::string> home_directories::check_case(const std::string& user) const {
    const int listed = ::openat(all_.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, directory_closer> names(listed < 0 ? nullptr : ::fdopendir(listed));
    if (names == nullptr) {
        const error why = error::last("list");
        if (listed >= 0) (void)::close(listed);
        return std::unexpected("cannot be created: " + about(path_, why));
    }
    errno = 0;  // readdir returns null for an error, too
    while (const dirent* const each = ::readdir(names.get()))
        if (equal_ignoring_case(std::string_view(each->d_name), std::string_view(user)))
            return std::unexpected(fmt::format("missing, but {}/{} exists; rename the directory or the user",
                                               path_, each->d_name));
    if (errno != 0) return std::unexpected("cannot be created: " + about(path_, error::last("list")));
    return {};
}

std::expected<void, std::string> home_directories::create(const std::string& user) const {
    if (not creates_) return std::unexpected("missing, and the server is read-only; create it");
    if (auto unique = check_case(user); not unique) return unique;
    std::optional<vfs::unix_account> owner;
    if (account_of_) {
        owner = account_of_(user);
        if (not owner)
            return std::unexpected(
                "missing, and the host has no account of this name that is not root; create the account");
    }
    const auto refuse = [](int code, const char* operation) {
        return std::unexpected("cannot be created: " + error(code, operation).reason());
    };
    const int parent = all_.descriptor();
    // No user has a name with a dot in front, so it is not a share of another.
    const unfinished_directory fresh(parent, ".new-" + user);
    (void)::unlinkat(parent, fresh.name(), AT_REMOVEDIR);  // left by a server that was killed
    if (::mkdirat(parent, fresh.name(), home_mode) != 0) return refuse(errno, "mkdir");
    if (owner and ::fchownat(parent, fresh.name(), owner->user_id, owner->group_id, AT_SYMLINK_NOFOLLOW) != 0)
        return refuse(errno, "chown");
    if (const int code = name_directory(parent, fresh.name(), user.c_str()); code != 0)
        return refuse(code, "rename");
    return {};
}

share_roots find_home_roots(const serve_options& options, const account_lookup& account_of) {
    share_roots roots;
    const auto all = home_directories::open(options, account_of);
    for (const share_options& share : options.shares) {
        if (not share.is_home) continue;
        const auto opened = all ? all->open_home(share.name)
                                : std::expected<io::path_handle, std::string>(std::unexpected(all.error()));
        roots.emplace(share.path, opened ? answer_of(root_of(*opened)) : std::unexpected(opened.error()));
        if (std::string snapshots = snapshot_directory_of(options, share); opened and not snapshots.empty())
            roots.emplace(snapshots, answer_of(find_share_root(snapshots)));
    }
    return roots;
}

std::expected<void, std::string> prepare_homes(serve_options& options, const account_lookup& account_of) {
    if (options.homes.empty()) return {};
    const auto all = home_directories::open(options, account_of);
    if (not all) return std::unexpected("homes: " + all.error());
    std::erase_if(options.shares, [&](const share_options& share) {
        if (not share.is_home) return false;
        auto opened = all->open_home(share.name);
        if (not opened)
            options.without_homes.push_back({.user = share.name, .why = std::move(opened.error())});
        return not opened;
    });
    return {};
}

}  // namespace sluice::cli
