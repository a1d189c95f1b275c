#include "sluice/cli/hardening/file_confinement.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace sluice::cli {
namespace {

// Rights that are newer than the headers of Debian 12.
constexpr std::uint64_t right_to_truncate = std::uint64_t{1} << 14;         // from ABI 3
constexpr std::uint64_t right_to_control_devices = std::uint64_t{1} << 15;  // from ABI 5

// The first version with which a file can be renamed into another directory.
constexpr long abi_min = 2;

constexpr std::uint64_t rights_to_read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t rights_of_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                          right_to_truncate | right_to_control_devices;
// Neither devices nor programs to execute: no client can ask for them.
constexpr std::uint64_t rights_to_write =
    rights_to_read | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |
    LANDLOCK_ACCESS_FS_REFER | right_to_truncate | right_to_control_devices;
constexpr std::uint64_t rights_never_given =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;

[[nodiscard]] std::uint64_t handled_by(long abi) noexcept {
    std::uint64_t handled = rights_to_write | rights_never_given;
    if (abi < 3) handled &= ~right_to_truncate;
    if (abi < 5) handled &= ~right_to_control_devices;
    return handled;
}

class descriptor {
public:
    explicit descriptor(long number) noexcept : number_(static_cast<int>(number)) {}
    ~descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    [[nodiscard]] int number() const noexcept { return number_; }

private:
    int number_;
};

// Only for the directory or file that allow() has found: its name may lead to another one by now.
[[nodiscard]] bool add_rule(int ruleset, const allowed_tree& one, std::uint64_t handled) noexcept {
    const descriptor opened(::open(one.path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status{};
    if (opened.number() < 0 or ::fstat(opened.number(), &status) != 0)
        return errno == ENOENT;  // it has been removed since allow()
    if (status.st_dev != one.device or status.st_ino != one.inode) return true;
    std::uint64_t rights = (one.how == tree_access::write ? rights_to_write : rights_to_read) & handled;
    if (not S_ISDIR(status.st_mode)) rights &= rights_of_files;
    const landlock_path_beneath_attr rule{.allowed_access = rights, .parent_fd = opened.number()};
    return ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

[[nodiscard]] std::string why_there_is_no_landlock(long abi) {
    if (abi >= 0) return "the kernel is older than Linux 5.19";
    if (errno == ENOSYS) return "the kernel has no Landlock";
    if (errno == EOPNOTSUPP) return "Landlock is disabled in the kernel (boot parameter lsm=)";
    return std::strerror(errno);
}

}  // namespace

void file_confinement::allow(const std::string& path, tree_access how) {
    std::error_code unknown;
    const auto resolved = std::filesystem::canonical(path, unknown);
    struct stat status{};
    if (unknown or ::stat(resolved.c_str(), &status) != 0) return;
    trees_.push_back(
        {.path = resolved.string(), .how = how, .device = status.st_dev, .inode = status.st_ino});
}

void file_confinement::allow(const io::handle& opened, tree_access how) {
    const auto path = opened.current_path();
    struct stat status{};
    if (not path or ::fstat(opened.descriptor(), &status) != 0) return;
    trees_.push_back({.path = *path, .how = how, .device = status.st_dev, .inode = status.st_ino});
}

hardening_measure file_confinement::enforce() noexcept {
    hardening_measure made{.name = "access to its own files only"};
    const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < abi_min) {
        made.inactive_because = why_there_is_no_landlock(abi);
        return made;
    }
    const landlock_ruleset_attr attributes{.handled_access_fs = handled_by(abi)};
    const descriptor ruleset(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
    const bool is_ready =
        ruleset.number() >= 0 and std::ranges::all_of(trees_, [&](const allowed_tree& each) {
            return add_rule(ruleset.number(), each, attributes.handled_access_fs);
        });
    if (not is_ready or ::syscall(SYS_landlock_restrict_self, ruleset.number(), 0) != 0)
        made.inactive_because = std::strerror(errno);
    is_enforced_ = made.is_active();
    return made;
}

bool file_confinement::has_rule(const std::string& path, tree_access how) const noexcept {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return false;
    return std::ranges::any_of(trees_, [&](const allowed_tree& each) {
        return each.device == status.st_dev and each.inode == status.st_ino and
               (each.how == tree_access::write or how == tree_access::read);
    });
}

bool file_confinement::covers(const std::string& path, tree_access how) const {
    if (not is_enforced_) return true;
    std::error_code unknown;
    auto at = std::filesystem::weakly_canonical(path, unknown);
    for (;;) {
        if (has_rule(at.string(), how)) return true;
        if (not at.has_relative_path()) return false;
        at = at.parent_path();
    }
}

}  // namespace sluice::cli
