#include "sluice/smb/server/operation/opening.hpp"

#include <algorithm>

#include "sluice/smb/server/file/share_modes.hpp"
#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/extended_attributes.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/app_takeover.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::create_action;
using wire::create_disposition;
using wire::create_options;
using wire::nt_status;

namespace {

// What of the options FileModeInformation tells ([MS-FSCC] 2.4).
constexpr create_options shown_as_mode =
    create_options::write_through | create_options::sequential_only |
    create_options::no_intermediate_buffering | create_options::synchronous_io_alert |
    create_options::synchronous_io_nonalert | create_options::delete_on_close;

[[nodiscard]] vfs::data_access data_of(access_mask access) noexcept {
    return {.read = wire::has_any(access, access_mask::read_data | access_mask::execute),
            .write = wire::has_any(access, access_mask::write_data | access_mask::append_data)};
}

}  // namespace

std::expected<reply_facts, nt_status> facts_for_reply(const accessor& by, vfs::node& node,
                                                      const wire::create_args& args) noexcept {
    const auto status = asked_status(node);
    if (not status) return std::unexpected(status.error());
    return facts_for_reply(by, node, args, *status);
}

// Whoever knows the file as it is now knows its rights as well ([MS-SMB2] 3.3.5.9.5).
reply_facts facts_for_reply(const accessor& by, vfs::node& node, const wire::create_args& args,
                            const vfs::metadata& status) noexcept {
    reply_facts known{.status = status};
    const auto& query = args.contexts.maximal_access;
    if (not query) return known;
    if (query->timestamp and *query->timestamp == wire::filetime_of(status.modified))
        known.maximal_access = {.status = nt_status::none_mapped};
    else
        known.maximal_access = {.status = nt_status::success, .access = rights_to(by, node)};
    return known;
}

opening::opening(request& r, const wire::create_args& args, file_name name) noexcept
    : r_(r),
      args_(args),
      name_(std::move(name)),
      volume_(r.tree->volume()),
      // A name to create is often new. Creating it finds it in any case, so the first look is at the exact
      // name.
      match_(may_create() ? vfs::name_match::exact : vfs::name_match::any_case) {}

opening::~opening() {
    if (not is_kept_) undo();
}

void opening::undo() noexcept {
    const bool has_created = action_ == create_action::created;
    if (fresh_ != nullptr) {
        // Ending it must not remove a file that was there before.
        fresh_->deletes_on_close = has_created and file_->opens().size() == 1;
        (void)end_open(r_.host(), *fresh_);
        r_.compound().file.reset();
    } else if (has_created and node_ != nullptr) {
        // Another open, also of another server, may have found it since then.
        const auto file = r_.host().files.find(node_->key());
        const bool is_open = file != nullptr and not file->opens().empty();
        if (not is_open and r_.host().peers() == nullptr) (void)node_->remove();
    }
}

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

// The status as it was found, if nothing has been done to the file since: neither by us nor by another
// client. The latch has been held since then, so only a write that had begun before can have changed it, and
// it has not ended.
nt_status opening::ask_facts() noexcept {
    const bool is_as_found = found_ and file_->pending_writes == 0;
    using asked = std::expected<vfs::metadata, nt_status>;
    const asked status = is_as_found ? asked(*found_) : asked_status(*node_);
    if (not status) return status.error();
    facts_ = facts_for_reply(r_.accessor(), *node_, args_, *status);
    file_->change_times().show_in(facts_.status, file_->key());
    return nt_status::success;
}

io::task<nt_status> opening::run() noexcept {
    unsigned attempts = 0;
    unsigned waits = 0;
    while (attempts != limits::open_attempts_max and waits != limits::caching_waits_max) {
        const step next = co_await attempt();
        if (next == step::done) co_return nt_status::success;
        if (next == step::failed) co_return status_;
        ++(next == step::waited ? waits : attempts);
    }
    // Other clients keep changing what this name means, or take the caching rights again each time.
    co_return status_ == nt_status::success ? nt_status::sharing_violation : status_;
}

// A link whose target is missing has the name, so nothing can be created there. A later attempt would find
// the same.
bool opening::is_dangling_link() const noexcept {
    const auto there = volume_.find(name_.path, vfs::follow_links::no);
    return there and (*there)->kind() == vfs::node_kind::symlink;
}

// The exact name is missing, and cannot be created. The name may exist in another case, and then that
// decides.
bool opening::looks_in_any_case() noexcept {
    const bool may_exist = match_ == vfs::name_match::exact and node_ == nullptr;
    const bool has_created = action_ == create_action::created;
    if (not may_exist or has_created) return false;
    match_ = vfs::name_match::any_case;
    return true;
}

io::task<opening::step> opening::attempt() noexcept {
    // While others gave way the session may have ended, and an open must not be left with it.
    if (r_.interrupted()) {
        status_ = *r_.interrupted();
        co_return step::failed;
    }
    status_ = find();
    if (status_ == nt_status::success) status_ = check_lease_key();
    if (status_ != nt_status::success) co_return looks_in_any_case() ? step::again : step::failed;
    if (node_ != nullptr) {
        status_ = check_existing();
        if (status_ == nt_status::success) status_ = authorise();
        if (status_ != nt_status::success) co_return step::failed;
        const step taken = take_over_from_instances();
        if (taken != step::done) co_return taken;
        file_ = r_.host().files.of(node_->key());
        const step way = co_await make_way();
        if (way != step::done) co_return way;
    } else {
        status_ = make();
        if (status_ != nt_status::success and looks_in_any_case()) co_return step::again;
        if (status_ == nt_status::object_name_collision and args_.disposition != create_disposition::create) {
            // Another process may have created it since find(): then it exists, and is opened as such.
            if (not is_dangling_link()) co_return step::again;
            status_ = nt_status::object_name_not_found;  // as FILE_OPEN says
        }
        if (status_ == nt_status::success) file_ = r_.host().files.of(node_->key());
    }
    if (status_ == nt_status::success and r_.host().peers() != nullptr) {
        const step settled = co_await settle_with_peers(*r_.host().peers());
        if (settled != step::done) co_return settled;
    }
    if (status_ == nt_status::success and overwrites()) status_ = overwrite();
    if (status_ == nt_status::success) status_ = open_data();
    if (status_ == nt_status::success) status_ = ask_facts();
    if (status_ == nt_status::success) status_ = register_open();
    co_return status_ == nt_status::success ? step::done : step::failed;
}

nt_status opening::find() noexcept {
    claim_.give_up();
    claim_to_base_.give_up();
    action_ = create_action::opened;  // a file made by an earlier attempt is gone again
    node_.reset();
    found_.reset();
    file_.reset();
    const auto links =
        wants(create_options::open_reparse_point) ? vfs::follow_links::no : vfs::follow_links::yes;
    vfs::data_access soon;
    if (name_.stream.empty()) {
        soon = data_of(wire::mapped_for_files(args_.desired_access));
        soon.write = soon.write or overwrites();
    }
    auto found = volume_.find_with_status(name_.path, links, soon, match_);
    if (not found) {
        if (found.error() != std::errc::no_such_file_or_directory) return status_of(found.error());
        return may_create() ? nt_status::success : nt_status::object_name_not_found;
    }
    node_ = std::move(found->node);
    found_ = found->status;
    if (name_.stream.empty()) return nt_status::success;
    if (const nt_status refused = find_stream(); refused != nt_status::success) return refused;
    const result<vfs::metadata> of_stream = node_->status();
    if (not of_stream) return status_of(of_stream.error());
    found_ = *of_stream;
    return nt_status::success;
}

// The file is there; what of the stream?
nt_status opening::find_stream() noexcept {
    if (not volume_.features().has_streams) return nt_status::object_name_invalid;
    const auto file = r_.host().files.find(node_->key());
    if (file != nullptr and file->is_delete_pending()) return nt_status::delete_pending;
    result<vfs::node_ptr> stream = node_->open_stream({.name = name_.stream});
    if (stream) {
        node_ = *std::move(stream);
        return nt_status::success;
    }
    if (stream.error() != std::errc::no_such_file_or_directory) return status_of(stream.error());
    if (not may_create()) return nt_status::object_name_not_found;
    if (not wire::has(rights_to(r_.accessor(), *node_), access_mask::write_data))
        return nt_status::access_denied;
    stream = node_->open_stream({.name = name_.stream, .create = true, .exclusive = true});
    if (not stream) return status_of(stream.error());
    node_ = *std::move(stream);
    action_ = create_action::created;
    return nt_status::success;
}

nt_status opening::check_existing() noexcept {
    if (const auto file = r_.host().files.find(node_->key()); file != nullptr and file->is_delete_pending())
        return nt_status::delete_pending;
    if (args_.disposition == create_disposition::create and action_ != create_action::created)
        return nt_status::object_name_collision;
    return check_kind();
}

nt_status opening::check_kind() const noexcept {
    if (name_.names_stream and wants(create_options::directory_file)) return nt_status::not_a_directory;
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

void opening::explain(access_mask wanted) const {
    explain_refusal(r_.host().refusals, r_.accessor(), name_.path, wanted);
}

nt_status opening::authorise() noexcept {
    const access_mask allowed = rights_to(r_.accessor(), *node_, *found_);
    access_mask wanted = wire::mapped_for_files(args_.desired_access);
    if (wire::has(wanted, access_mask::maximum_allowed)) {
        access_mask most = allowed;
        const bool is_read_only =
            found_->kind == vfs::node_kind::file and vfs::has(found_->dos, vfs::dos_attributes::read_only);
        if (is_read_only) most = without(most, access_mask::write_data | access_mask::append_data);
        wanted = without(wanted, access_mask::maximum_allowed) | most;
        if (wanted == access_mask::none) return nt_status::access_denied;
    }
    const access_mask needed = overwrites() ? wanted | access_mask::write_data : wanted;
    if (not wire::has(allowed, needed)) {
        explain(needed);
        return nt_status::access_denied;
    }
    granted_ = wanted;
    if (wants(create_options::delete_on_close) and not wire::has(granted_, access_mask::delete_object))
        return nt_status::access_denied;
    return check_read_only();
}

opening::step opening::take_over_from_instances() noexcept {
    const std::optional<app_instance> instance = app_instance_in(r_, args_.contexts);
    if (not instance or not wire::has(rights_to(r_.accessor(), *node_, *found_), wire::file_generic_read))
        return step::done;
    switch (take_over_file(r_, *instance, *node_)) {
        case take_over::none:
            return step::done;
        case take_over::ended:
            return step::again;
        case take_over::refused:
            break;
    }
    status_ = nt_status::file_forced_closed;
    return step::failed;
}

nt_status opening::check_read_only() const noexcept {
    const bool is_read_only = vfs::has(found_->dos, vfs::dos_attributes::read_only);
    if (is_read_only and found_->kind == vfs::node_kind::file) {
        if (wire::has_any(granted_, access_mask::write_data | access_mask::append_data) or overwrites())
            return nt_status::access_denied;
        if (wants(create_options::delete_on_close)) return nt_status::cannot_delete;
    }
    if (not overwrites()) return nt_status::success;
    // Overwriting must not make a hidden or system file an ordinary one by accident ([MS-FSA] 2.1.5.1.2).
    const vfs::dos_attributes kept =
        found_->dos & (vfs::dos_attributes::hidden | vfs::dos_attributes::system);
    const bool keeps = (dos_attributes_of(args_.file_attributes) & kept) == kept;
    return keeps ? nt_status::success : nt_status::access_denied;
}

// Streams are in their own way only, except that a file takes them along when it goes.
bool opening::streams_allow(access_mask needs) const noexcept {
    if (not wire::has(needs, access_mask::delete_object) or not name_.stream.empty()) return true;
    const auto lets_go = [](const open* each) {
        return wire::has(each->share_access, wire::share_access::remove) or
               not wire::has_any(each->access, access_mask::read_data | access_mask::write_data |
                                                   access_mask::append_data | access_mask::execute |
                                                   access_mask::delete_object);
    };
    return std::ranges::all_of(r_.host().files.streams_of(node_->key()), [&](file_state* stream) {
        return std::ranges::all_of(stream->opens(), lets_go);
    });
}

// What it needs while it is made; overwriting is over once it is.
sharing opening::wanted() const noexcept {
    const bool empties = overwrites() and action_ != create_action::created;
    return {.access = empties ? granted_ | access_mask::write_data : granted_, .share = args_.share_access};
}

io::task<opening::step> opening::make_way() noexcept {
    const bool shares = file_->share_modes().can_join(wanted()) and streams_allow(wanted().access);
    const caching_intent intent{
        .access = granted_,
        .overwrites = overwrites(),
        .violates_sharing = not shares,
        .has_waited = has_waited_,
        .takes_over = app_instance_in(r_, args_.contexts).has_value(),
        .own = find_lease(r_, args_),
    };
    const std::shared_ptr<file_state> file = file_;
    const caching_outcome outcome = co_await make_way_for_open(r_, *file, intent);
    if (outcome == caching_outcome::cancelled or r_.interrupted()) {
        status_ = r_.why_in_vain();
        co_return step::failed;
    }
    if (outcome == caching_outcome::waited) {
        has_waited_ = true;
        co_return step::waited;
    }
    if (not shares) {
        status_ = nt_status::sharing_violation;
        co_return step::failed;
    }
    co_return step::done;
}

// One attempt to come beside the opens of other servers.
result<peer_sign> opening::claim(peer_servers& peers) {
    if (file_->key().stream == 0) return file_->peers_among(peers).claim(terms_of_file(wanted()), claim_);
    base_ = r_.host().files.of(file_->key().whole_file());
    const result<peer_sign> at_base =
        base_->peers_among(peers).claim(terms_of_stream_at_file(wanted()), claim_to_base_);
    if (not at_base or *at_base != peer_sign::none) return at_base;
    return file_->peers_among(peers).claim(terms_of(wanted()), claim_);
}

opening::step opening::step_after(const result<peer_sign>& in_the_way) noexcept {
    if (not in_the_way) {
        status_ = nt_status::insufficient_resources;
        return step::failed;
    }
    if (*in_the_way != peer_sign::none) {
        status_ = wire::has(*in_the_way, peer_sign::goes) ? nt_status::delete_pending
                                                          : nt_status::sharing_violation;
        return step::failed;
    }
    // Another server may have removed it before we had our sign up; from now on none will.
    const result<vfs::metadata> status = node_->status();
    if (status) found_ = *status;
    return status and status->links == 0 ? step::again : step::done;
}

// Whoever has the sign of the file to themselves has it for microseconds; only a stopped process has it
// longer.
io::task<opening::step> opening::settle_with_peers(peer_servers& peers) noexcept {
    for (;;) {
        const result<peer_sign> in_the_way = claim(peers);
        const bool is_busy =
            not in_the_way and in_the_way.error() == std::errc::resource_unavailable_try_again;
        if (not is_busy) co_return step_after(in_the_way);
        const bool is_last = ++peer_attempts_ == limits::peer_attempts_max;
        if (not is_last) {
            const deadline until(std::min(limits::peer_pause_min * (1 << std::min(peer_attempts_, 10U)),
                                          limits::peer_pause_max));
            io::task<bool> waiting = pass(r_.loop(), until);
            (void)co_await unlatched(r_.host().latch(), std::move(waiting));
        }
        if (not is_last and not r_.interrupted() and action_ != create_action::created)
            co_return step::waited;
        // What was just made is not made again; but somebody may have found it meanwhile.
        if (is_last or r_.interrupted() or not file_->share_modes().can_join(wanted())) {
            status_ = r_.interrupted().value_or(nt_status::sharing_violation);
            co_return step::failed;
        }
    }
}

// A key stands for one file of its client ([MS-SMB2] 3.3.5.9.8).
nt_status opening::check_lease_key() const noexcept {
    const std::shared_ptr<lease> held = find_lease(r_, args_);
    if (held == nullptr) return nt_status::success;
    // By its state: a key changes when the file is renamed or replaced.
    const auto file = node_ == nullptr ? nullptr : r_.host().files.find(node_->key());
    const bool is_same = file != nullptr and file == held->opens.front()->file;
    return is_same ? nt_status::success : nt_status::invalid_parameter;
}

nt_status opening::check_making(const vfs::found_node& directory, bool makes_directory) const {
    const auto file = r_.host().files.find(directory.node->key());
    if (file != nullptr and file->is_delete_pending()) return nt_status::delete_pending;
    const access_mask needed = makes_directory ? access_mask::add_subdirectory : access_mask::add_file;
    if (not wire::has(rights_to(r_.accessor(), *directory.node, directory.status), needed)) {
        if (match_ == vfs::name_match::any_case) explain(needed);  // otherwise, it is checked again
        return nt_status::access_denied;
    }
    if (not wants(create_options::delete_on_close)) return nt_status::success;
    if (wire::has(args_.file_attributes, wire::file_attributes::read_only)) return nt_status::cannot_delete;
    const access_mask wanted = wire::mapped_for_files(args_.desired_access);
    const bool may_delete = wire::has_any(wanted, access_mask::delete_object | access_mask::maximum_allowed);
    return may_delete ? nt_status::success : nt_status::access_denied;
}

nt_status opening::make() noexcept {
    const vfs::path_parts parts = vfs::split_path(name_.path);
    const auto parent = volume_.find_directory(parts.parent);
    if (not parent) return nt_status::object_path_not_found;
    const bool is_directory = wants(create_options::directory_file) or name_.names_directory_index;
    if (name_.ends_with_separator and not is_directory) return nt_status::object_name_invalid;
    if (is_directory and name_.names_stream) return nt_status::not_a_directory;
    if (const nt_status refused = check_making(*parent, is_directory); refused != nt_status::success)
        return refused;

    vfs::creation_request wanted{.kind = is_directory ? vfs::node_kind::directory : vfs::node_kind::file,
                                 .dos = dos_attributes_of(args_.file_attributes)};
    if (not is_directory) wanted.dos = wanted.dos | vfs::dos_attributes::archive;
    auto made = volume_.create_in(*parent->node, parts.name, wanted);
    if (not made) return status_of(made.error());
    node_ = std::move(made->node);
    found_ = made->status;
    action_ = create_action::created;
    if (const nt_status refused = dress(*parent); refused != nt_status::success) {
        (void)node_->remove();
        node_.reset();
        return refused;
    }
    granted_ = wire::mapped_for_files(args_.desired_access);
    if (wire::has(granted_, access_mask::maximum_allowed))
        granted_ = without(granted_, access_mask::maximum_allowed) | wire::file_all_access;
    granted_ &= r_.tree->access_max;
    return nt_status::success;
}

// What a new file is to have from the beginning; without it, it is not made at all.
nt_status opening::dress(const vfs::found_node& directory) noexcept {
    if (volume_.features().has_security) {
        if (const result<void> secured = secure(directory); not secured) {
            return secured.error() == std::errc::invalid_argument ? nt_status::invalid_security_descr
                                                                  : status_of(secured.error());
        }
    }
    if (const auto& list = args_.contexts.extended_attributes) {
        if (not volume_.features().has_extended_attributes) return nt_status::not_supported;
        found_.reset();
        const nt_status status = change_extended_attributes(*node_, *list);
        if (status != nt_status::success) return status;
    }
    if (not name_.stream.empty()) {
        result<vfs::node_ptr> stream =
            node_->open_stream({.name = name_.stream, .create = true, .exclusive = true});
        if (not stream) return status_of(stream.error());
        node_ = *std::move(stream);
        found_.reset();
    }
    return reserve();
}

result<void> opening::secure(const vfs::found_node& directory) {
    std::optional<wire::security_descriptor> given;
    if (const auto& bytes = args_.contexts.security_descriptor) {
        auto decoded = wire::decode_security_descriptor(*bytes);
        if (not decoded) return failure({EINVAL, "decode security descriptor"});
        given = *std::move(decoded);
    }
    const auto wanted = security_for_new(r_.accessor(), directory, *node_, given);
    if (not wanted) return failure(wanted.error());
    if (not*wanted) return {};
    found_.reset();
    return store_security(*node_, **wanted);
}

// Room for the size the client has announced.
nt_status opening::reserve() noexcept {
    if (not args_.contexts.allocation_bytes or node_->kind() != vfs::node_kind::file)
        return nt_status::success;
    found_.reset();
    result<void> done = node_->open_data({.read = false, .write = true});
    if (done) done = node_->allocate(*args_.contexts.allocation_bytes);
    return done ? nt_status::success : status_of(done.error());
}

// A file that is overwritten loses its streams, too.
result<void> opening::drop_streams() {
    const auto streams = node_->streams();
    if (not streams) return {};
    for (const vfs::stream_info& each : *streams) {
        const result<vfs::node_ptr> stream = node_->open_stream({.name = each.name});
        if (not stream) continue;  // gone meanwhile
        if (const result<void> gone = (*stream)->remove(); not gone) return gone;
    }
    return {};
}

nt_status opening::overwrite() noexcept {
    if (action_ == create_action::created) return nt_status::success;  // made a moment ago
    found_.reset();
    result<void> done = node_->open_data({.read = false, .write = true});
    if (done) done = node_->truncate(0);
    if (done and name_.stream.empty()) {
        const vfs::metadata_change fresh_attributes{.dos = dos_attributes_of(args_.file_attributes) |
                                                           vfs::dos_attributes::archive};
        done = drop_streams();
        if (done) done = node_->change(fresh_attributes);
    }
    if (not done) return status_of(done.error());
    action_ = args_.disposition == create_disposition::supersede ? create_action::superseded
                                                                 : create_action::overwritten;
    return reserve();
}

nt_status opening::open_data() noexcept {
    if (node_->kind() != vfs::node_kind::file) return nt_status::success;
    const vfs::data_access wanted = data_of(granted_);
    if (not wanted.read and not wanted.write) return nt_status::success;
    const result<void> opened = node_->open_data(wanted);
    return opened ? nt_status::success : status_of(opened.error());
}

nt_status opening::register_open() noexcept {
    session& by = *r_.session;
    if (by.opens.size() >= limits::opens_per_session_max) {
        r_.host().rejections.add(limit::opens_per_session, by.user.name);
        return nt_status::too_many_opened_files;
    }
    std::shared_ptr<open> one = r_.host().opens.make(by.admitted.client);
    if (one == nullptr) return nt_status::too_many_opened_files;
    one->session = &by;
    one->tree = r_.tree;
    one->node = std::move(node_);
    one->file = file_;
    one->access = granted_;
    one->share_access = args_.share_access;
    one->create_options = args_.options;
    one->mode = bits_of(args_.options & shown_as_mode);
    one->deletes_on_close = wants(create_options::delete_on_close);
    one->client = r_.connection().agreed.client;
    one->instance = app_instance_in(r_, args_.contexts);
    claim_.keep(terms_of({.access = granted_, .share = args_.share_access}).up);
    one->claim = std::move(claim_);
    one->claim_to_base = std::move(claim_to_base_);
    one->enter_file();
    by.opens.emplace(one->id.volatile_part.value(), one);
    r_.compound().file = one->id;
    fresh_ = std::move(one);
    return nt_status::success;
}

}  // namespace sluice::smb::server
