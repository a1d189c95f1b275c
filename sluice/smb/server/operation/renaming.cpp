#include "sluice/smb/server/operation/renaming.hpp"

#include <algorithm>
#include <map>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/file/share_modes.hpp"
#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/link_target.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

[[nodiscard]] nt_status rename_stream(request& r, open& one, const naming_wish& wish) {
    if (wish.makes_link or one.node->stream_name().empty()) return nt_status::invalid_parameter;
    // What other servers know a stream by is its name.
    if (one.file->peers() != nullptr) return nt_status::not_supported;
    // With the file's name in front, even its own, Windows opens the file anew, and is in its own way.
    if (not wish.target.starts_with(':')) return nt_status::sharing_violation;
    const auto name = parse_stream_name(wish.target);
    if (not name) return name.error();
    if (name->empty()) return nt_status::invalid_parameter;  // onto the unnamed stream
    // Like an open file, an open stream is never replaced, not even with POSIX semantics. Another stream with
    // the same number would share one state with this one.
    vfs::file_key target = one.file->key();
    target.stream = vfs::stream_number(*name);
    const auto there = r.host().files.find(target);
    if (there != nullptr and there != one.file and not there->opens().empty())
        return wish.replaces ? nt_status::access_denied : nt_status::object_name_collision;
    const auto taken = wish.replaces ? vfs::when_taken::replace : vfs::when_taken::refuse;
    const std::string before(one.node->stream_name());
    const result<void> done = one.node->rename(*name, taken);
    if (not done) return status_of(done.error());
    r.host().files.change_key(*one.file, target);
    for (open* const other : one.file->opens())
        if (equal_ignoring_case(other->node->stream_name(), before)) other->node->follow_stream_name(*name);
    return nt_status::success;
}

[[nodiscard]] std::string_view parent_of(std::string_view path) noexcept {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

[[nodiscard]] std::expected<file_name, nt_status> target_of(const naming_wish& wish) {
    std::string_view text = wish.target;
    if (text.starts_with('\\')) text.remove_prefix(1);  // some clients begin at the share's root
    auto name = parse_file_name_text(text);
    if (not name) return name;
    if (name->names_stream or name->names_directory_index)
        return std::unexpected(nt_status::invalid_parameter);
    if (name->path.empty() or name->ends_with_separator)
        return std::unexpected(nt_status::object_name_invalid);
    return name;
}

// Which files are open beneath a directory, through whatever share: renaming it would change the paths of
// their opens. Locations tell, not devices: some file systems have several, and others are mounted beneath.
class search_beneath {
public:
    explicit search_beneath(const open& directory)
        : image_(directory.file->key().image), prefix_(directory.node->location() + '/') {}

    [[nodiscard]] bool has(file_state& file) {
        if (file.key().image != image_ or file.opens().empty()) return false;
        const open& first = *file.opens().front();
        if (is_beneath(first)) return true;
        if (file.opens().size() == 1) return false;
        // A file with several names may be open by any of them.
        const result<vfs::metadata> status = first.node->status();
        return (not status or status->links > 1) and
               std::ranges::any_of(file.opens(), [&](const open* one) { return is_beneath(*one); });
    }

private:
    [[nodiscard]] bool is_beneath(const open& one) {
        return may_reach(*one.tree->target) and one.node->location().starts_with(prefix_);
    }
    // Opens of shares that are elsewhere are not checked one by one.
    [[nodiscard]] bool may_reach(share& through) {
        const auto [known, is_new] = reach_.try_emplace(&through, true);
        if (not is_new) return known->second;
        const result<vfs::node_ptr> root = through.volume().find("", vfs::follow_links::yes);
        if (not root) return true;
        std::string location = (*root)->location();
        if (not location.ends_with('/')) location += '/';
        return known->second = location.starts_with(prefix_) or prefix_.starts_with(location);
    }

    std::uint64_t image_;
    std::string prefix_;
    std::map<const share*, bool> reach_;
};

[[nodiscard]] std::vector<std::shared_ptr<file_state>> open_beneath(file_table& files,
                                                                    const open& directory) {
    search_beneath search(directory);
    std::vector<std::shared_ptr<file_state>> found = files.all();
    std::erase_if(found, [&](const std::shared_ptr<file_state>& each) { return not search.has(*each); });
    return found;
}

// A new name is written into its directory, by an open of our own as it were, which does not let the
// directory be removed meanwhile: those who have it open must agree ([MS-FSA] 2.1.5.15.11).
[[nodiscard]] bool may_write_into(file_table& files, vfs::node& directory) {
    const auto file = files.find(directory.key());
    return file == nullptr or
           file->protocol().check({.access = access_mask::add_file,
                                   .share = wire::share_access::read | wire::share_access::write}) ==
               open_protocol::verdict::granted;
}

// One attempt: everything is looked at anew after anybody was waited for.
class naming {
public:
    naming(request& r, open& one, const naming_wish& wish, const file_name& target) noexcept
        : r_(r), one_(one), wish_(wish), target_(target) {}

    [[nodiscard]] nt_status look() {
        vfs::volume& volume = r_.tree->volume();
        if (one_.node->path().empty()) return nt_status::invalid_parameter;
        if (wish_.makes_link and one_.is_directory()) return nt_status::file_is_a_directory;
        const result<vfs::node_ptr> parent = volume.find(parent_of(target_.path), vfs::follow_links::yes);
        if (not parent) return nt_status::object_path_not_found;
        const access_mask needed =
            one_.is_directory() ? access_mask::add_subdirectory : access_mask::add_file;
        if (not wire::has(rights_to(r_.accessor(), **parent), needed)) {
            explain_refusal(r_.host().refusals, r_.accessor(), target_.path, needed);
            return nt_status::access_denied;
        }
        if (leads_out_from(**parent)) return nt_status::access_denied;
        if (not may_write_into(r_.host().files, **parent)) return nt_status::sharing_violation;
        return look_at_target(volume);
    }

    // Whether it is a link that would lead out of the share only in its new directory.
    [[nodiscard]] bool leads_out_from(const vfs::node& directory) {
        if (one_.node->kind() != vfs::node_kind::symlink) return false;
        const result<std::string> to = one_.node->read_link();
        return to and stays_in_share(*to, parent_of(one_.node->path())) and
               not stays_in_share(*to, directory.path());
    }

    /// Whom to ask to close: those beneath a directory, those of the file in the way.
    [[nodiscard]] std::vector<std::shared_ptr<file_state>> in_the_way() {
        std::vector<std::shared_ptr<file_state>> found;
        if (one_.is_directory() and not wish_.makes_link) found = open_beneath(r_.host().files, one_);
        if (taken_file_ != nullptr and not wish_.is_posix) found.push_back(taken_file_);
        return found;
    }

    [[nodiscard]] nt_status carry_out() {
        const auto taken = wish_.replaces ? vfs::when_taken::replace : vfs::when_taken::refuse;
        const result<void> done =
            wish_.makes_link ? one_.node->link(target_.path, taken) : one_.node->rename(target_.path, taken);
        return done ? nt_status::success : status_of(done.error());
    }

    /// From here until the end of the attempt no other server has, or gets, the file in the way open.
    [[nodiscard]] nt_status keep_peers_out(peer_servers& peers) {
        if (not taken_ or taken_->is_same_file or wish_.is_posix) return nt_status::success;
        peer_of_taken_ = peers.file(taken_key_);
        const peer_seal& alone = no_peer_has_it_.emplace(*peer_of_taken_);
        if (alone) return nt_status::success;
        return alone.is_busy() ? nt_status::retry : nt_status::access_denied;
    }

    [[nodiscard]] nt_status check_taken() const {
        if (not taken_) return nt_status::success;
        name_taken now = *taken_;
        now.is_open = taken_file_ != nullptr and not taken_file_->opens().empty();
        return may_replace(now, wish_, one_.is_directory());
    }

private:
    [[nodiscard]] nt_status look_at_target(vfs::volume& volume) {
        const result<vfs::node_ptr> there = volume.find(target_.path, vfs::follow_links::no);
        if (not there) {
            if (there.error() == std::errc::no_such_file_or_directory) return nt_status::success;
            return status_of(there.error());
        }
        const result<vfs::metadata> status = (*there)->status();
        if (not status) return status_of(status.error());
        taken_ = name_taken{
            .is_same_file = (*there)->key() == one_.node->key(),
            .is_directory = status->kind == vfs::node_kind::directory,
            .is_read_only = vfs::has(status->dos, vfs::dos_attributes::read_only),
            .may_be_removed = wire::has(rights_to(r_.accessor(), **there), access_mask::delete_object),
        };
        taken_key_ = (*there)->key();
        if (not taken_->is_same_file) taken_file_ = r_.host().files.find((*there)->key());
        name_taken as_if_closed = *taken_;
        as_if_closed.is_open = false;
        return may_replace(as_if_closed, wish_, one_.is_directory());
    }

    request& r_;
    open& one_;
    const naming_wish& wish_;
    const file_name& target_;
    std::optional<name_taken> taken_;
    vfs::file_key taken_key_{};
    std::shared_ptr<file_state> taken_file_;
    std::unique_ptr<peer_file> peer_of_taken_;
    std::optional<peer_seal> no_peer_has_it_;
};

[[nodiscard]] bool has_opens(const std::vector<std::shared_ptr<file_state>>& files) noexcept {
    return std::ranges::any_of(files, [](const auto& each) { return not each->opens().empty(); });
}

}  // namespace

nt_status may_replace(const name_taken& there, const naming_wish& wish, bool source_is_directory) noexcept {
    if (there.is_same_file) {
        // Another case, or a name it has already.
        return wish.makes_link and not wish.replaces ? nt_status::object_name_collision : nt_status::success;
    }
    if (not wish.replaces) return nt_status::object_name_collision;
    if (there.is_directory or source_is_directory) return nt_status::access_denied;
    if (there.is_read_only and not wish.ignores_read_only) return nt_status::access_denied;
    if (there.is_open and not wish.is_posix) return nt_status::access_denied;
    return there.may_be_removed ? nt_status::success : nt_status::access_denied;
}

io::task<nt_status> give_name(request& r, std::shared_ptr<open> one, naming_wish wish) noexcept {
    if (not wish.makes_link and not one->grants(access_mask::delete_object))
        co_return nt_status::access_denied;
    if (not wire::has(r.tree->access_max, access_mask::write_data)) co_return nt_status::access_denied;
    if (wish.target.starts_with(':') or not one->node->stream_name().empty())
        co_return rename_stream(r, *one, wish);
    const auto target = target_of(wish);
    if (not target) co_return target.error();

    unsigned attempts = 0;
    unsigned pauses = 0;
    while (attempts != limits::rename_attempts_max) {
        naming attempt(r, *one, wish, *target);
        const nt_status refused = attempt.look();
        if (refused != nt_status::success) co_return refused;
        std::vector<std::shared_ptr<file_state>> others = attempt.in_the_way();
        if (not wish.makes_link) others.push_back(one->file);
        bool has_waited = false;
        for (const std::shared_ptr<file_state>& other : others) {
            io::task<caching_outcome> waiting = make_way_for_name_change(r, *other, one.get());
            const caching_outcome outcome = co_await std::move(waiting);
            if (outcome == caching_outcome::cancelled) co_return r.why_in_vain();
            if (outcome == caching_outcome::exhausted) co_return nt_status::sharing_violation;
            if (outcome == caching_outcome::waited) has_waited = true;
        }
        if (one->is_closed) co_return nt_status::file_closed;
        if (has_waited) {
            ++attempts;
            continue;
        }
        if (const nt_status held = attempt.check_taken(); held != nt_status::success) co_return held;
        if (not wish.makes_link) others.pop_back();
        if (one->is_directory() and has_opens(others)) co_return nt_status::access_denied;
        nt_status status = nt_status::success;
        if (r.host().peers() != nullptr) status = attempt.keep_peers_out(*r.host().peers());
        if (status == nt_status::success) co_return attempt.carry_out();
        if (status != nt_status::retry or ++pauses == limits::peer_attempts_max)
            co_return nt_status::access_denied;
        const deadline until(limits::peer_pause_max);
        io::task<bool> waiting = pass(r.loop(), until);
        (void)co_await unlatched(r.host().latch(), std::move(waiting));
    }
    co_return nt_status::sharing_violation;  // other clients open the file again each time
}

}  // namespace sluice::smb::server
