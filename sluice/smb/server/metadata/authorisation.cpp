#include "sluice/smb/server/metadata/authorisation.hpp"

#include "sluice/smb/server/metadata/default_security.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/metadata/user_sids.hpp"
#include "sluice/smb/wire/security/access_check.hpp"
#include "sluice/smb/wire/security/inheritance.hpp"
#include "sluice/vfs/node_attached.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;
using wire::security_descriptor;

namespace {

[[nodiscard]] const std::optional<vfs::acting_user>& acting_user_of(const accessor& by) noexcept {
    return by.tree.volume().identity().acts_as;
}

[[nodiscard]] vfs::metadata status_or_default(vfs::node& file) noexcept {
    return file.status().value_or(vfs::metadata{.user_id = ~0U, .group_id = ~0U});
}

// Returns std::nullopt for no bytes, which is how a volume says that none is stored.
[[nodiscard]] result<std::optional<security_descriptor>> decoded_security(
    const std::vector<std::byte>& stored) {
    if (stored.empty()) return std::nullopt;
    auto decoded = wire::decode_security_descriptor(std::span<const std::byte>(stored));
    if (not decoded) return failure({EIO, "decode security descriptor"});
    return *std::move(decoded);
}

// Returns the stored descriptor; std::nullopt if there is none, or the volume keeps none.
[[nodiscard]] result<std::optional<security_descriptor>> stored_security(const accessor& by, vfs::node& file,
                                                                         const vfs::metadata& status) {
    if (not by.tree.volume().features().has_security) return std::nullopt;
    const auto attached = vfs::attached_of(file);
    if (not attached) return failure(attached.error());
    const result<std::vector<std::byte>> stored = (*attached)->security_as_of(status);
    if (not stored) return failure(stored.error());
    return decoded_security(*stored);
}

[[nodiscard]] security_descriptor default_for(const accessor& by, const vfs::metadata& status) {
    return default_security(status, by.user, acting_user_of(by));
}

[[nodiscard]] access_mask granted_by(const accessor& by, const security_descriptor& descriptor) {
    const std::vector<wire::sid> token = token_of(by.user, acting_user_of(by));
    return wire::access_check(descriptor, token, access_mask::maximum_allowed).granted;
}

[[nodiscard]] access_mask granted_by_default(const accessor& by, const vfs::metadata& status) {
    const default_rights_of which{.kind = status.kind,
                                  .user_id = status.user_id,
                                  .group_id = status.group_id,
                                  .permission_bits = status.permission_bits,
                                  .is_anonymous = by.user.is_anonymous};
    return by.tree.default_rights.of(which, [&] { return granted_by(by, default_for(by, status)); });
}

[[nodiscard]] access_mask granted_by(const accessor& by, vfs::node& file, const vfs::metadata& status) {
    const auto stored = stored_security(by, file, status);
    if (not stored) return granted_by(by, security_of(by, file));
    return *stored ? granted_by(by, **stored) : granted_by_default(by, status);
}

// Rights to a file that those to its directory bring along. Asked only where the file
// itself does not give them.
[[nodiscard]] access_mask granted_by_directory(const accessor& by, const vfs::node& file) {
    const std::string path = file.path();
    if (path.empty()) return access_mask::none;
    const std::size_t slash = path.rfind('/');
    const std::string above = slash == std::string::npos ? std::string{} : path.substr(0, slash);
    const auto directory =
        by.tree.volume().find_with_status(above, vfs::follow_links::yes, {}, vfs::name_match::any_case);
    if (not directory) return access_mask::none;
    const access_mask there = granted_by(by, *directory->node, directory->status);
    access_mask brought = access_mask::none;
    if (wire::has(there, access_mask::delete_child)) brought |= access_mask::delete_object;
    if (wire::has(there, access_mask::list_directory)) brought |= access_mask::read_attributes;
    return brought;
}

}  // namespace

security_descriptor security_of(const accessor& by, vfs::node& file) {
    const vfs::metadata status = status_or_default(file);
    auto stored = stored_security(by, file, status);
    if (stored and *stored) return **std::move(stored);
    security_descriptor fallback = default_for(by, status);
    if (not stored) fallback.dacl = wire::acl{};
    return fallback;
}

access_mask rights_to(const accessor& by, vfs::node& file) noexcept {
    return rights_to(by, file, status_or_default(file));
}

access_mask rights_to(const accessor& by, vfs::node& file, const vfs::metadata& status) noexcept {
    access_mask rights = granted_by(by, file, status);
    constexpr access_mask from_above = access_mask::delete_object | access_mask::read_attributes;
    if (not wire::has(rights, from_above)) rights |= granted_by_directory(by, file);
    return rights & by.tree.access_max;
}

bool is_shown_to(const accessor& by, const vfs::metadata& status,
                 const result<std::vector<std::byte>>& stored) noexcept {
    ENSURE(wire::has(by.tree.access_max, wire::file_generic_read), "each user of a share may read it");
    const bool keeps_none = not stored and stored.error() == std::errc::operation_not_supported;
    if (not stored and not keeps_none) return false;
    result<std::optional<security_descriptor>> own = std::nullopt;
    if (stored) own = decoded_security(*stored);
    if (not own) return false;
    const access_mask rights = *own ? granted_by(by, **own) : granted_by_default(by, status);
    return wire::has(rights, wire::file_generic_read);
}

void explain_refusal(refusal_log& log, const accessor& by, std::string_view path, access_mask wanted) {
    const share_configuration& rules = by.tree.target->configuration();
    refusal why{.user = by.user.name,
                .share = rules.name,
                .path = path,
                .rule = "the file's permissions do not allow it",
                .remedy = "change the permissions, on the host or as the file's owner"};
    const bool is_share = not wire::has(by.tree.access_max, without(wanted, access_mask::maximum_allowed));
    if (is_share and (rules.is_read_only or by.tree.volume().features().is_read_only)) {
        why.rule = "the share is served for reading only";
        why.remedy = "serve the share for writing";
    } else if (is_share) {
        why.rule = "the share permits this user only to read";
        why.remedy = "remove the user from the share's list of read-only users";
    }
    log.explain(why);
}

result<std::optional<security_descriptor>> security_for_new(const accessor& by,
                                                            const vfs::found_node& directory,
                                                            bool makes_directory,
                                                            const std::optional<security_descriptor>& given) {
    const auto above = stored_security(by, *directory.node, directory.status);
    if (not above) return failure(above.error());
    if (not*above and not given) return std::nullopt;
    wire::object_creator creator{.owner = sid_of(by.user),
                                 .group = wire::sid_of_unix_group(directory.status.group_id)};
    for (const wire::sid& who : {creator.owner, wire::sid_local_system})
        creator.default_dacl.entries.push_back({.rights = wire::file_all_access, .who = who});
    const wire::new_object object{.parent = *above ? &**above : nullptr,
                                  .given = given ? &*given : nullptr,
                                  .is_container = makes_directory};
    return wire::descriptor_of_new(object, creator);
}

nt_status store_security(vfs::node& file, const security_descriptor& descriptor) {
    std::vector<std::byte> room(wire::encoded_bytes(descriptor));
    byte_writer writer(room);
    if (not wire::encode(writer, descriptor)) return nt_status::invalid_security_descr;
    const auto written = writer.finish();
    ENSURE(written.has_value() and written->size() == room.size(),
           "a descriptor is as long as it was computed to be");
    const auto attached = vfs::attached_of(file);
    if (not attached) return status_of(attached.error());
    const result<void> stored = (*attached)->set_security(written->span());
    return stored ? nt_status::success : status_of(stored.error());
}

}  // namespace sluice::smb::server
