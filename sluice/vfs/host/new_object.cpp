#include "sluice/vfs/host/new_object.hpp"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_tree.hpp"

namespace sluice::vfs {
namespace {

constexpr unsigned rights_mask = 0777;
constexpr unsigned owner_only = 0700;
constexpr unsigned all_mode_bits = 07777;
constexpr const char* default_acl_attribute = "system.posix_acl_default";

// The attribute: a header, then entries, the first of each kind of tag once.
struct acl_header {
    le32 version;
};
struct acl_entry {
    le16 tag;
    le16 rights;
    le32 id;
};
static_assert(sizeof(acl_header) == 4 and sizeof(acl_entry) == 8 and alignof(acl_entry) == 1);
constexpr std::uint32_t acl_version = 2;
constexpr std::uint16_t tag_owner = 0x01;
constexpr std::uint16_t tag_group = 0x04;
constexpr std::uint16_t tag_mask = 0x10;
constexpr std::uint16_t tag_other = 0x20;

// Empty if the directory has none, or its file system has no ACLs.
result<std::vector<std::byte>> default_acl_of(const io::handle& directory) {
    for (unsigned attempts = 1;; ++attempts) {
        const auto size = io::xattr_bytes(directory, default_acl_attribute);
        if (not size) {
            const int code = size.error().code();
            if (code == ENODATA or code == EOPNOTSUPP) return std::vector<std::byte>{};
            return failure(size.error());
        }
        if (*size > limits::attribute_bytes_max) return failure({E2BIG, "read the default ACL"});
        std::vector<std::byte> value(*size);
        const auto bytes = io::fetch_xattr(directory, default_acl_attribute, value);
        if (bytes) {
            value.resize(bytes->size());
            return value;
        }
        const bool has_grown = bytes.error().code() == ERANGE and attempts != limits::attribute_reads_max;
        if (not has_grown) return failure(bytes.error());
    }
}

// A process that may not read it knows its subdirectories only.
bool is_empty_directory(const io::handle& opened, const io::file_status& status) noexcept {
    const int descriptor = ::openat(opened.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno == EACCES and status.links <= 2;
    const io::directory_handle itself(
        {.descriptor = descriptor, .kind = io::handle_kind::directory, .readable = true});
    std::array<io::directory_entry, 1> entries;
    std::array<char, io::limits::enumerate_storage_bytes_min> storage;
    const auto batch = itself.enumerate({.entries = entries, .storage = storage});
    return batch and batch->entries.empty();
}

}  // namespace

std::optional<unsigned> mode_under_acl(bytes_view default_acl, unsigned bits) noexcept {
    const auto header = default_acl.take<acl_header>();
    if (not header or header->version.value() != acl_version) return std::nullopt;
    std::optional<unsigned> owner;
    std::optional<unsigned> group;
    std::optional<unsigned> mask;
    std::optional<unsigned> other;
    for (std::size_t at = sizeof(acl_header);; at += sizeof(acl_entry)) {
        const auto entry = default_acl.take_at<acl_entry>(at);
        if (not entry) break;
        const unsigned rights = entry->rights.value() & 7U;
        switch (entry->tag.value()) {
            case tag_owner:
                owner = rights;
                break;
            case tag_group:
                group = rights;
                break;
            case tag_mask:
                mask = rights;
                break;
            case tag_other:
                other = rights;
                break;
            default:
                break;  // a named user or group: the mask restricts its rights
        }
    }
    if (not owner or not group or not other) return std::nullopt;
    return (*owner << 6U | mask.value_or(*group) << 3U | *other) & bits;
}

std::optional<unsigned> umask_of_process() noexcept {
    const auto file = io::file_handle::open({}, "/proc/self/status");
    if (not file) return std::nullopt;
    std::array<char, 4096> storage;  // the field is the second
    const ssize_t got = ::read(file->descriptor(), storage.data(), storage.size());
    const std::string_view text(storage.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    constexpr std::string_view field = "\nUmask:\t";
    const std::size_t at = text.find(field);
    if (at == text.npos) return std::nullopt;
    const std::string_view rest = text.substr(at + field.size());
    unsigned mask = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), mask, 8);
    return parsed.ec == std::errc{} ? std::optional(mask & rights_mask) : std::nullopt;
}

new_object::new_object(const creation_rules& rules, const io::handle& parent, const request& wanted) noexcept
    : rules_(rules), parent_(parent), kind_(wanted.kind) {
    ENSURE(wanted.kind == node_kind::file or wanted.kind == node_kind::directory,
           "only files and directories are created with a mode");
    const auto& ruled = wanted.kind == node_kind::file ? rules.file_bits : rules.directory_bits;
    is_exact_ = ruled and not wanted.asked_bits;
    bits_ = wanted.asked_bits.value_or(ruled.value_or(wanted.usual_bits));
}

unsigned new_object::initial_bits() const noexcept {
    return bits_ & (rules_.may_change_owner() ? owner_only : rights_mask);
}

result<new_object::owner_ids> new_object::final_owner(const io::file_status& status) const noexcept {
    owner_ids wanted{.user = rules_.owner.value_or(status.user_id),
                     .group = rules_.group.value_or(status.group_id)};
    if (not rules_.inherits_owner) return wanted;
    const auto above = io::status_of(parent_, io::stat_fields::owner);
    if (not above) return failure(above.error());
    wanted.user = above->user_id;
    return wanted;
}

result<unsigned> new_object::final_bits(const io::file_status& status) const noexcept {
    const unsigned inherited = kind_ == node_kind::directory ? status.permission_bits & unsigned{S_ISGID} : 0;
    const unsigned special = is_exact_ ? bits_ & ~rights_mask & all_mode_bits : 0;
    const auto acl = default_acl_of(parent_);
    if (not acl) return failure(acl.error());
    if (not acl->empty()) {
        const auto bits = mode_under_acl(bytes_view(*acl), bits_ & rights_mask);
        if (not bits) return failure({EINVAL, "read the default ACL"});
        return *bits | special | inherited;
    }
    if (is_exact_) return (bits_ & all_mode_bits) | inherited;
    const auto mask = umask_of_process();
    if (not mask) return failure({ENOSYS, "read the umask"});
    return (bits_ & rights_mask & ~*mask) | inherited;
}

bool new_object::may_be(const io::handle& opened, const io::file_status& status) const noexcept {
    if (kind_ != node_kind::directory) return true;
    const auto creator = static_cast<std::uint32_t>(::setfsuid(static_cast<uid_t>(-1)));
    const unsigned beyond = status.permission_bits & ~(initial_bits() | unsigned{S_ISGID});
    if (status.user_id != creator or beyond != 0) return false;
    const account_identity::pause as_process;
    return is_empty_directory(opened, status);
}

result<void> new_object::complete(const io::handle& made, io::file_status& status) const noexcept {
    // The object that the kernel has created may be exact already.
    const bool is_usual = not is_exact_ and not rules_.may_change_owner();
    if (is_usual) return {};
    const bool is_it = may_be(made, status);  // as the creator
    const account_identity::pause as_process;
    const auto owner = final_owner(status);
    if (not owner) return failure(owner.error());
    const auto bits = final_bits(status);
    if (not bits) return failure(bits.error());
    const io::descriptor_path itself(made.descriptor());
    const bool changes_owner = owner->user != status.user_id or owner->group != status.group_id;
    if (not changes_owner and status.permission_bits == *bits) return {};
    if (not is_it) return failure({EACCES, "set the owner and mode", made.descriptor()});
    if (changes_owner and ::fchownat(made.descriptor(), "", owner->user, owner->group, AT_EMPTY_PATH) != 0)
        return failure(error::last("change the owner", made.descriptor()));
    // Afterwards, because the kernel clears bits of the mode when the owner changes.
    if (::chmod(itself.c_str(), static_cast<mode_t>(*bits)) != 0)
        return failure(error::last("change the mode", made.descriptor()));
    const auto after = io::status_of(made, node_fields);
    if (not after) return failure(after.error());
    status = *after;
    // The kernel takes an inherited set-group-ID bit from a process that is not in the group.
    const bool needs_group_bit = is_exact_ and (bits_ & unsigned{S_ISGID}) != 0;
    const unsigned compared = needs_group_bit ? all_mode_bits : all_mode_bits & ~unsigned{S_ISGID};
    const bool is_done = after->user_id == owner->user and after->group_id == owner->group and
                         ((after->permission_bits ^ *bits) & compared) == 0;
    if (not is_done) return failure({EPERM, "set the owner and mode of a new file", made.descriptor()});
    return {};
}

}  // namespace sluice::vfs
