#include "sluice/smb/server/opening.hpp"

#include "sluice/smb/server/authorisation.hpp"
#include "sluice/smb/server/connection.hpp"
#include "sluice/smb/server/description.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/share_modes.hpp"
#include "sluice/smb/server/status_of_error.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::create_action;
using wire::create_disposition;
using wire::create_options;
using wire::nt_status;

opening::opening(request& r, const wire::create_args& args, file_name name) noexcept
    : r_(r), args_(args), name_(std::move(name)), volume_(r.tree->target->volume()) {}

bool opening::wants(create_options option) const noexcept {
    return wire::has(args_.options, option);
}

bool opening::may_create() const noexcept {
    return args_.disposition != create_disposition::open and
           args_.disposition != create_disposition::overwrite;
}

bool opening::overwrites() const noexcept {
    return args_.disposition == create_disposition::overwrite or
           args_.disposition == create_disposition::overwrite_if or
           args_.disposition == create_disposition::supersede;
}

io::task<nt_status> opening::run() noexcept {
    for (;;) {
        const step next = co_await attempt();
        if (next == step::done) co_return nt_status::success;
        if (next == step::failed) co_return status_;
    }
}

io::task<opening::step> opening::attempt() noexcept {
    status_ = find();
    if (status_ == nt_status::success) status_ = check_lease_key();
    if (status_ != nt_status::success) co_return step::failed;
    if (node_ != nullptr) {
        status_ = check_existing();
        if (status_ == nt_status::success) status_ = authorise();
        if (status_ != nt_status::success) co_return step::failed;
        file_ = r_.tree->target->files().of(node_->key());
        const step way = co_await make_way();
        if (way != step::done) co_return way;
        status_ = overwrites() ? overwrite() : nt_status::success;
    } else {
        status_ = make();
        // Somebody was faster in making it: then it exists, and is opened as such.
        if (status_ == nt_status::object_name_collision and args_.disposition != create_disposition::create)
            co_return step::again;
        if (status_ == nt_status::success) file_ = r_.tree->target->files().of(node_->key());
    }
    if (status_ == nt_status::success) status_ = open_data();
    if (status_ == nt_status::success) status_ = register_open();
    co_return status_ == nt_status::success ? step::done : step::failed;
}

nt_status opening::find() noexcept {
    node_.reset();
    file_.reset();
    const auto links =
        wants(create_options::open_reparse_point) ? vfs::follow_links::no : vfs::follow_links::yes;
    result<vfs::node_ptr> found = volume_.find(name_.path, links);
    if (not found) {
        if (found.error() != std::errc::no_such_file_or_directory) return status_of(found.error());
        return may_create() ? nt_status::success : nt_status::object_name_not_found;
    }
    node_ = *std::move(found);
    return name_.stream.empty() ? nt_status::success : find_stream();
}

// The file is there; what of the stream?
nt_status opening::find_stream() noexcept {
    if (not volume_.features().has_streams) return nt_status::object_name_invalid;
    const auto file = r_.tree->target->files().find(node_->key());
    if (file != nullptr and file->is_delete_pending) return nt_status::delete_pending;
    result<vfs::node_ptr> stream = node_->open_stream({.name = name_.stream});
    if (stream) {
        node_ = *std::move(stream);
        return nt_status::success;
    }
    if (stream.error() != std::errc::no_such_file_or_directory) return status_of(stream.error());
    if (not may_create()) return nt_status::object_name_not_found;
    if (not wire::has(rights_to(r_, *node_), access_mask::write_data)) return nt_status::access_denied;
    stream = node_->open_stream({.name = name_.stream, .create = true, .exclusive = true});
    if (not stream) return status_of(stream.error());
    node_ = *std::move(stream);
    action_ = create_action::created;
    return nt_status::success;
}

nt_status opening::check_existing() noexcept {
    if (const auto file = r_.tree->target->files().find(node_->key());
        file != nullptr and file->is_delete_pending)
        return nt_status::delete_pending;
    if (args_.disposition == create_disposition::create and action_ != create_action::created)
        return nt_status::object_name_collision;
    return check_kind();
}

nt_status opening::check_kind() const noexcept {
    const bool is_directory = node_->kind() == vfs::node_kind::directory;
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

// What the disposition needs beyond what the client asks for.
access_mask opening::needed_access() const noexcept {
    access_mask needed = wire::mapped_for_files(args_.desired_access);
    if (wants(create_options::delete_on_close) and not wire::has(needed, access_mask::maximum_allowed))
        needed |= access_mask::none;
    return needed;
}

nt_status opening::authorise() noexcept {
    const access_mask allowed = rights_to(r_, *node_);
    access_mask wanted = needed_access();
    if (wire::has(wanted, access_mask::maximum_allowed))
        wanted = without(wanted, access_mask::maximum_allowed) | allowed;
    if (not wire::has(allowed, wanted)) return nt_status::access_denied;
    granted_ = wanted;
    if (overwrites() and not wire::has(allowed, access_mask::write_data)) return nt_status::access_denied;
    if (wants(create_options::delete_on_close) and not wire::has(granted_, access_mask::delete_object))
        return nt_status::access_denied;
    return check_read_only();
}

nt_status opening::check_read_only() const noexcept {
    const result<vfs::metadata> status = node_->status();
    if (not status) return status_of(status.error());
    const bool is_read_only = vfs::has(status->dos, vfs::dos_attributes::read_only);
    if (is_read_only and status->kind == vfs::node_kind::file) {
        if (wire::has_any(granted_, access_mask::write_data | access_mask::append_data) or overwrites())
            return nt_status::access_denied;
        if (wants(create_options::delete_on_close)) return nt_status::cannot_delete;
    }
    if (not overwrites()) return nt_status::success;
    // Overwriting must not make a hidden or system file an ordinary one by accident ([MS-FSA] 2.1.5.1.2).
    const vfs::dos_attributes kept =
        status->dos & (vfs::dos_attributes::hidden | vfs::dos_attributes::system);
    const bool keeps = (dos_attributes_of(args_.file_attributes) & kept) == kept;
    return keeps ? nt_status::success : nt_status::access_denied;
}

io::task<opening::step> opening::make_way() noexcept {
    // A stream's opens are in the way of each other; removal concerns the file as well.
    access_mask needs = granted_;
    if (overwrites()) needs |= access_mask::write_data;
    const bool shares = can_join(*file_, {.access = needs, .share = args_.share_access});
    const caching_intent intent{
        .access = granted_,
        .overwrites = overwrites(),
        .violates_sharing = not shares,
        .has_waited = has_waited_,
        .own = find_lease(r_, args_),
    };
    const std::shared_ptr<file_state> file = file_;
    const caching_outcome outcome = co_await make_way_for_open(r_, *file, intent);
    if (outcome == caching_outcome::cancelled) {
        status_ = nt_status::cancelled;
        co_return step::failed;
    }
    if (outcome == caching_outcome::waited) {
        has_waited_ = true;
        co_return step::again;
    }
    if (not shares) {
        status_ = nt_status::sharing_violation;
        co_return step::failed;
    }
    co_return step::done;
}

// A key stands for one file of its client ([MS-SMB2] 3.3.5.9.8).
nt_status opening::check_lease_key() const noexcept {
    const std::shared_ptr<lease> held = find_lease(r_, args_);
    if (held == nullptr or (node_ != nullptr and held->file() == node_->key())) return nt_status::success;
    return nt_status::invalid_parameter;
}

nt_status opening::make() noexcept {
    if (r_.tree->access_max != wire::file_all_access) return nt_status::access_denied;
    const std::size_t slash = name_.path.rfind('/');
    const std::string_view parent_path =
        slash == std::string::npos ? std::string_view{} : std::string_view(name_.path).substr(0, slash);
    const result<vfs::node_ptr> parent = volume_.find(parent_path, vfs::follow_links::yes);
    if (not parent) return nt_status::object_path_not_found;
    const bool is_directory = wants(create_options::directory_file) or name_.names_directory_index;
    if (name_.ends_with_separator and not is_directory) return nt_status::object_name_invalid;
    const access_mask needed = is_directory ? access_mask::add_subdirectory : access_mask::add_file;
    if (not wire::has(rights_to(r_, **parent), needed)) return nt_status::access_denied;
    const bool is_read_only = wire::has(args_.file_attributes, wire::file_attributes::read_only);
    if (is_read_only and wants(create_options::delete_on_close)) return nt_status::cannot_delete;

    vfs::creation_request wanted{.kind = is_directory ? vfs::node_kind::directory : vfs::node_kind::file,
                                 .dos = dos_attributes_of(args_.file_attributes)};
    if (not is_directory) wanted.dos = wanted.dos | vfs::dos_attributes::archive;
    result<vfs::node_ptr> made = volume_.create(name_.path, wanted);
    if (not made) return status_of(made.error());
    node_ = *std::move(made);
    action_ = create_action::created;
    if (not name_.stream.empty()) {
        result<vfs::node_ptr> stream =
            node_->open_stream({.name = name_.stream, .create = true, .exclusive = true});
        if (not stream) {
            (void)node_->remove();
            return status_of(stream.error());
        }
        node_ = *std::move(stream);
    }
    granted_ = wire::mapped_for_files(args_.desired_access);
    if (wire::has(granted_, access_mask::maximum_allowed))
        granted_ = without(granted_, access_mask::maximum_allowed) | r_.tree->access_max;
    return dress();
}

// What a new file is to have from the beginning; without it, it is not made at all.
nt_status opening::dress() noexcept {
    result<void> dressed{};
    if (args_.contexts.security_descriptor)
        dressed = node_->set_security(args_.contexts.security_descriptor->span());
    if (dressed and args_.contexts.allocation_bytes and node_->kind() == vfs::node_kind::file) {
        dressed = node_->open_data({.read = false, .write = true});
        if (dressed) dressed = node_->allocate(*args_.contexts.allocation_bytes);
    }
    if (dressed) return nt_status::success;
    (void)node_->remove();
    return status_of(dressed.error());
}

nt_status opening::overwrite() noexcept {
    if (action_ == create_action::created) return nt_status::success;  // a stream made a moment ago
    result<void> done = node_->open_data({.read = false, .write = true});
    if (done) done = node_->truncate(0);
    if (done and name_.stream.empty()) {
        const vfs::metadata_change fresh_attributes{.dos = dos_attributes_of(args_.file_attributes) |
                                                           vfs::dos_attributes::archive};
        done = node_->change(fresh_attributes);
    }
    if (not done) return status_of(done.error());
    action_ = args_.disposition == create_disposition::supersede ? create_action::superseded
                                                                 : create_action::overwritten;
    return nt_status::success;
}

nt_status opening::open_data() noexcept {
    if (node_->kind() != vfs::node_kind::file) return nt_status::success;
    const vfs::data_access wanted{
        .read = wire::has_any(granted_, access_mask::read_data | access_mask::execute),
        .write = wire::has_any(granted_, access_mask::write_data | access_mask::append_data)};
    if (not wanted.read and not wanted.write) return nt_status::success;
    const result<void> opened = node_->open_data(wanted);
    return opened ? nt_status::success : status_of(opened.error());
}

nt_status opening::register_open() noexcept {
    session& by = *r_.session;
    if (by.opens.size() >= limits::opens_per_session_max) return nt_status::too_many_opened_files;
    auto one = std::make_shared<open>();
    if (not r_.host().opens.add(one)) return nt_status::too_many_opened_files;
    one->session = &by;
    one->tree = r_.tree;
    one->node = std::move(node_);
    one->file = file_;
    one->access = granted_;
    one->share_access = args_.share_access;
    one->create_options = args_.options;
    one->deletes_on_close = wants(create_options::delete_on_close);
    one->client = r_.connection().agreed.client;
    file_->add(*one);
    by.opens.emplace(one->id.volatile_part.value(), one);
    r_.compound().file = one->id;
    fresh_ = std::move(one);
    return nt_status::success;
}

}  // namespace sluice::smb::server
