// The checks of a CREATE whose file has been looked up ([MS-FSA] 2.1.5.1).

#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/create_operation.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::create_disposition;
using wire::create_options;
using wire::nt_status;

// No file grants what the share does not, so that nothing is looked up ([MS-SMB2] 3.3.5.9).
nt_status create_operation::check_share() noexcept {
    ENSURE(fresh_ == nullptr and found_.node == nullptr, "the share is checked before the first round");
    const access_mask most = r_.tree->access_max;
    access_mask wanted = without(desired(), access_mask::maximum_allowed);
    if (wants(create_options::delete_on_close)) wanted |= access_mask::delete_object;
    if (wire::has(most, wanted)) return nt_status::success;
    explain(wanted);
    return nt_status::access_denied;
}

nt_status create_operation::check_existing() noexcept {
    ENSURE(found_.node != nullptr, "a file that exists has a node");
    const auto file = r_.host().files.find(found_.node->key());
    if (file != nullptr and file->is_delete_pending()) return nt_status::delete_pending;
    if (args_.disposition == create_disposition::create) return nt_status::object_name_collision;
    return check_kind();
}

nt_status create_operation::check_kind() const noexcept {
    if (name_.names_stream and wants(create_options::directory_file)) return nt_status::not_a_directory;
    const bool is_directory = found_.node->kind() == vfs::node_kind::directory;
    if (is_directory) {
        if (name_.names_stream or wants(create_options::non_directory_file))
            return nt_status::file_is_a_directory;
        if (overwrites()) return nt_status::invalid_parameter;
    } else if (wants(create_options::directory_file) or name_.ends_with_separator or
               name_.names_directory_index) {
        return nt_status::not_a_directory;
    }
    return nt_status::success;
}

void create_operation::explain(access_mask wanted) const {
    explain_refusal(r_.host().refusals, r_.accessor(), name_.path, wanted);
}

nt_status create_operation::authorise() noexcept {
    const access_mask allowed = found_.allowed;
    access_mask wanted = desired();
    if (wire::has(wanted, access_mask::maximum_allowed)) {
        access_mask most = allowed;
        const bool is_read_only = found_.status.kind == vfs::node_kind::file and
                                  vfs::has(found_.status.dos, vfs::dos_attributes::read_only);
        if (is_read_only) most = without(most, access_mask::write_data | access_mask::append_data);
        wanted = without(wanted, access_mask::maximum_allowed) | most;
        if (wanted == access_mask::none) return nt_status::access_denied;
    }
    const access_mask needed = overwrites() ? wanted | access_mask::write_data : wanted;
    if (not wire::has(allowed, needed)) {
        explain(needed);
        return nt_status::access_denied;
    }
    ENSURE(wire::has(r_.tree->access_max, wanted), "an open is granted what its tree allows");
    granted_ = wanted | privileged();
    if (wants(create_options::delete_on_close) and not wire::has(granted_, access_mask::delete_object))
        return nt_status::access_denied;
    return check_read_only();
}

nt_status create_operation::check_read_only() const noexcept {
    const bool is_read_only = vfs::has(found_.status.dos, vfs::dos_attributes::read_only);
    if (is_read_only and found_.status.kind == vfs::node_kind::file) {
        if (wire::has_any(granted_, access_mask::write_data | access_mask::append_data) or overwrites())
            return nt_status::access_denied;
        if (wants(create_options::delete_on_close)) return nt_status::cannot_delete;
    }
    if (not overwrites() or not name_.stream.empty()) return nt_status::success;
    // Overwriting must not make a hidden or system file an ordinary one by accident; a named stream
    // leaves the attributes as they are ([MS-FSA] 2.1.5.1.2).
    const vfs::dos_attributes kept =
        found_.status.dos & (vfs::dos_attributes::hidden | vfs::dos_attributes::system);
    const bool keeps = (dos_attributes_of(args_.file_attributes) & kept) == kept;
    return keeps ? nt_status::success : nt_status::access_denied;
}

// Before the stream exists, so that other clients do not see one that is created and removed. The
// open checks it again when it joins.
bool create_operation::may_share_new_stream(file_state& file) const noexcept {
    ENSURE(found_.is_stream_missing and not name_.stream.empty(),
           "a stream is created in a file that exists");
    const sharing mode{.access = creator_rights(), .share = args_.share_access};
    const file_section held(file);
    return file.protocol(held).conflict_with_stream(mode) != share_entries::conflict::committed;
}

// The file exists, so its descriptor decides on all rights that the open of the stream asks for.
bool create_operation::may_create_stream() noexcept {
    ENSURE(found_.is_stream_missing and found_.node != nullptr, "a stream is created in a file that exists");
    access_mask needed = without(desired(), access_mask::maximum_allowed) | access_mask::write_data;
    if (wants(create_options::delete_on_close)) needed |= access_mask::delete_object;
    if (wire::has(found_.allowed, needed)) return true;
    explain(needed);
    return false;
}

nt_status create_operation::check_creation() noexcept {
    file_table& files = r_.host().files;
    if (found_.is_stream_missing) {
        const auto file = files.find(found_.node->key());
        if (file != nullptr and file->is_delete_pending()) return nt_status::delete_pending;
        // Also of a directory, a stream is none.
        if (makes_directory() or name_.ends_with_separator) return nt_status::not_a_directory;
        if (not may_create_stream()) return nt_status::access_denied;
        return file == nullptr or may_share_new_stream(*file) ? nt_status::success
                                                              : nt_status::sharing_violation;
    }
    if (not found_.directory) return nt_status::object_path_not_found;
    if (name_.ends_with_separator and not makes_directory()) return nt_status::object_name_invalid;
    if (makes_directory() and name_.names_stream) return nt_status::not_a_directory;
    const auto directory = files.find(found_.directory->node->key());
    if (directory != nullptr and directory->refuses_opens()) return nt_status::delete_pending;
    const access_mask needed = makes_directory() ? access_mask::add_subdirectory : access_mask::add_file;
    if (not wire::has(found_.allowed_in_directory, needed)) {
        if (match_ == vfs::name_match::any_case) explain(needed);  // otherwise, it is checked again
        return nt_status::access_denied;
    }
    if (not wants(create_options::delete_on_close)) return nt_status::success;
    if (wire::has(args_.file_attributes, wire::file_attributes::read_only)) return nt_status::cannot_delete;
    const access_mask wanted = desired();
    const bool may_delete = wire::has_any(wanted, access_mask::delete_object | access_mask::maximum_allowed);
    return may_delete ? nt_status::success : nt_status::access_denied;
}

// A key stands for one file of its client ([MS-SMB2] 3.3.5.9.8).
nt_status create_operation::check_lease_key() const noexcept {
    const std::shared_ptr<lease> held = find_lease(r_, args_);
    if (held == nullptr) return nt_status::success;
    // By its state: a key changes when the file is renamed or replaced.
    const bool is_there = found_.node != nullptr and not found_.is_stream_missing;
    const auto file = is_there ? r_.host().files.find(found_.node->key()) : nullptr;
    if (file == held->file) return nt_status::success;
    const file_section section(*held->file);
    return held->opens.empty() ? nt_status::success : nt_status::invalid_parameter;
}

}  // namespace sluice::smb::server
