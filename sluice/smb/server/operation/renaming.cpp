#include "sluice/smb/server/operation/renaming.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/file/share_modes.hpp"
#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
#include "sluice/smb/server/metadata/link_target.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/own_change.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/create_round.hpp"
#include "sluice/smb/server/operation/past_files.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"
#include "sluice/smb/server/operation/persistent_renames.hpp"
#include "sluice/smb/server/operation/recycle_report.hpp"
#include "sluice/smb/server/operation/rename_marks.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

// Alone at the barrier: no CREATE is between the lookup of a stream of the domain and its join.
[[nodiscard]] io::task<nt_status> rename_stream(request& r, std::shared_ptr<open> renamed,
                                                const rename_request& wish) noexcept {
    open& one = *renamed;
    if (wish.makes_link or one.node->stream_name().empty()) co_return nt_status::invalid_parameter;
    // Other servers know a stream by its name.
    if (one.file->has_peers()) co_return nt_status::not_supported;
    // If the target names the file, even this one, Windows opens the file again, and conflicts with
    // itself.
    if (not wish.target.starts_with(':')) co_return nt_status::sharing_violation;
    const auto name = parse_stream_name(wish.target);
    if (not name) co_return name.error();
    if (name->empty()) co_return nt_status::invalid_parameter;  // onto the unnamed stream
    vfs::volume& volume = r.files().volume();
    create_round alone(r.host().names_of(volume, is_beyond_mount(volume, *one.node)), r.loop());
    if (not alone.enter_alone()) {
        (void)co_await r.wait(alone.entered());
        if (not alone.is_inside()) co_return *r.interrupted();
    }
    if (one.has_ended()) co_return nt_status::file_closed;
    // Like an open file, an open stream is never replaced, not even with POSIX semantics. Another
    // stream with the same number would share one state with this one.
    vfs::file_key target{};
    {
        const file_section held(*one.file);
        target = one.file->key(held);
        ENSURE(target.stream != 0 and one.file->base != nullptr, "the state of a stream has its file");
        target.stream = vfs::stream_number(*name);
        // The records of persistent opens have the name of the stream.
        if (one.file->persistent_opens(held) != 0) co_return nt_status::access_denied;
        const auto there = r.host().files.find(target);
        if (there != nullptr and there != one.file and not there->opens(held).empty())
            co_return wish.replaces ? nt_status::access_denied : nt_status::object_name_collision;
    }
    const auto taken = wish.replaces ? vfs::when_taken::replace : vfs::when_taken::refuse;
    const std::string before = one.node->stream_name();
    const nt_status status = co_await change_in_turn(r, one, [&] {
        const auto names = vfs::names_of(*one.node);
        if (not names) return status_of(names.error());
        const result<void> done = (*names)->rename(*name, taken);
        return done ? nt_status::success : status_of(done.error());
    });
    if (status != nt_status::success) co_return status;
    const file_section held(*one.file);
    r.host().files.change_key(held, *one.file, target);
    for (open* const other : one.file->opens(held)) {
        if (not equal_ignoring_case(other->node->stream_name(), before)) continue;
        if (const auto names = vfs::names_of(*other->node)) (*names)->follow_stream_name(*name);
        // It may have become persistent since the check.
        persistence* const its = other->in_file(held).persistent.get();
        if (its == nullptr) continue;
        its->stream = *name;
        record_state(held, *other);
    }
    co_return nt_status::success;
}

[[nodiscard]] std::string_view parent_of(std::string_view path) noexcept {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

[[nodiscard]] std::expected<file_name, nt_status> target_of(const rename_request& wish) {
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

// Whether a call for another domain may be made with those for `of`.
[[nodiscard]] bool may_search(const vfs::fs_domain& other, const vfs::fs_domain& of) noexcept {
    return other.number() == of.number() or other.is_inline();
}

// Which opens are beneath a directory, through whatever share: renaming it would change their
// paths. Locations tell, not devices: some file systems have several, and others are mounted
// beneath. Touches only nodes and volumes.
class search_beneath {
public:
    explicit search_beneath(vfs::node& directory)
        : domain_(directory.domain()), prefix_(directory.location() + '/') {}

    [[nodiscard]] bool has(const vfs::node& node, share& through) {
        return may_reach(through) and node.location().starts_with(prefix_);
    }

private:
    // Opens of shares that are elsewhere are not checked one by one.
    [[nodiscard]] bool may_reach(share& through) {
        const auto [known, is_new] = reach_.try_emplace(&through, true);
        if (not is_new or not may_search(through.volume().domain(), domain_)) return known->second;
        const result<vfs::node_ptr> root = through.volume().find("", vfs::follow_links::yes);
        if (not root) return true;
        std::string location = (*root)->location();
        if (not location.ends_with('/')) location += '/';
        return known->second = location.starts_with(prefix_) or prefix_.starts_with(location);
    }

    const vfs::fs_domain& domain_;
    std::string prefix_;
    std::map<const share*, bool> reach_;
};

using file_list = std::vector<std::shared_ptr<file_state>>;

// An open that may be beneath a directory. Held until the search has ended, because an
// open must end on a loop.
struct candidate {
    std::shared_ptr<open> one;
    bool is_beneath = false;
};

// All opens that may be beneath the directory; but not those in another file system that may hang,
// because this one's renames must not wait for it.
[[nodiscard]] std::vector<candidate> opens_around(server_context& host, const open& directory) {
    std::vector<candidate> found;
    for (const std::shared_ptr<open>& one : host.opens.all()) {
        if (not one->is_live() or one->is_pipe() or one.get() == &directory) continue;
        if (one->file->image != directory.file->image) continue;
        if (may_search(one->node->domain(), directory.node->domain())) found.push_back({.one = one});
    }
    return found;
}

// The files that are open beneath a directory.
[[nodiscard]] io::task<std::expected<file_list, nt_status>> files_beneath(request& r,
                                                                          const open& directory) noexcept {
    std::vector<candidate> opens = opens_around(r.host(), directory);
    const nt_status searched = co_await r.call(directory, [&] {
        search_beneath search(*directory.node);
        for (candidate& each : opens)
            each.is_beneath = search.has(*each.one->node, *each.one->through);
        return nt_status::success;
    });
    if (searched != nt_status::success) co_return std::unexpected(searched);
    file_list found;
    for (const candidate& each : opens)
        if (each.is_beneath and std::ranges::find(found, each.one->file) == found.end())
            found.push_back(each.one->file);
    co_return found;
}

// The result of looking up a new name: the directory, and the file that has the name.
struct name_lookup {
    vfs::node_ptr parent;
    access_mask allowed_in_parent = access_mask::none;
    bool leads_out = false;  // a link that would lead out of the share only in its new directory
    std::optional<name_taken> taken{};
    vfs::file_key taken_key{};
};

[[nodiscard]] bool leads_out_from(vfs::node& link, const vfs::node& directory) {
    if (link.kind() != vfs::node_kind::symlink) return false;
    const auto attached = vfs::attached_of(link);
    if (not attached) return false;
    const result<std::string> to = (*attached)->read_link();
    return to and stays_in_share(*to, parent_of(link.path())) and not stays_in_share(*to, directory.path());
}

// Touches only the node and the volume.
[[nodiscard]] std::expected<name_lookup, nt_status> look_up_name(const accessor& by, vfs::node& source,
                                                                 const std::string_view target) {
    vfs::volume& volume = by.tree.volume();
    name_lookup found;
    result<vfs::node_ptr> parent = volume.find(parent_of(target), vfs::follow_links::yes);
    if (not parent and status_of(parent.error()) == crosses_mount) return std::unexpected(crosses_mount);
    if (not parent) return std::unexpected(nt_status::object_path_not_found);
    found.parent = *std::move(parent);
    found.allowed_in_parent = rights_to(by, *found.parent);
    found.leads_out = leads_out_from(source, *found.parent);
    const result<vfs::node_ptr> there = volume.find(target, vfs::follow_links::no);
    if (not there) {
        if (there.error() == std::errc::no_such_file_or_directory) return found;
        return std::unexpected(status_of(there.error()));
    }
    const result<vfs::metadata> status = (*there)->status();
    if (not status) return std::unexpected(status_of(status.error()));
    found.taken = name_taken{
        .is_same_file = (*there)->key() == source.key(),
        .is_directory = status->kind == vfs::node_kind::directory,
        .is_read_only = vfs::has(status->dos, vfs::dos_attributes::read_only),
        .may_be_removed = wire::has(rights_to(by, **there), access_mask::delete_object),
    };
    found.taken_key = (*there)->key();
    return found;
}

// A new name is written into its directory, as by an open that does not let the directory be
// removed meanwhile: those who have it open must agree ([MS-FSA] 2.1.5.15.11).
constexpr sharing writing_names{.access = access_mask::add_file,
                                .share = wire::share_access::read | wire::share_access::write};

// The entry of a rename in the directory that gets the name.
class directory_entry_guard {
public:
    explicit directory_entry_guard(std::shared_ptr<file_state> directory) noexcept
        : directory_(std::move(directory)) {}
    directory_entry_guard(const directory_entry_guard&) = delete;
    directory_entry_guard& operator=(const directory_entry_guard&) = delete;
    // If the directory was deleted in between, the open that deleted it carries out the removal.
    ~directory_entry_guard() { leave(); }
    void leave() noexcept {
        if (not std::exchange(is_inside_, false)) return;
        const file_section held(*directory_);
        (void)directory_->protocol(held).leave(entry_);
    }

    [[nodiscard]] open_protocol::verdict join(waiter& blocked) noexcept {
        const file_section held(*directory_);
        const open_protocol::verdict found = directory_->protocol(held).join(entry_, writing_names, blocked);
        is_inside_ = found == open_protocol::verdict::granted;
        return found;
    }

private:
    std::shared_ptr<file_state> directory_;
    share_entry entry_;
    bool is_inside_ = false;
};

[[nodiscard]] bool has_opens(file_state& file) noexcept {
    const file_section held(file);
    return not file.opens(held).empty();
}

// One file gets a new name, in rounds like those of a CREATE (create_round.hpp).
class naming {
public:
    naming(request& r, std::shared_ptr<open> one, const rename_request& wish,
           const file_name& target) noexcept
        : r_(r),
          one_(std::move(one)),
          wish_(wish),
          target_(target),
          is_beyond_mount_(is_beyond_mount(r.files().volume(), *one_->node)) {}

    enum class step : std::uint8_t { done, again, waited, failed };
    /// `waited`: for others. `again`: something has changed. Otherwise status() is the outcome.
    [[nodiscard]] io::task<step> attempt() noexcept {
        vfs::volume& volume = r_.files().volume();
        create_round round(r_.host().names_of(volume, is_beyond_mount_), r_.loop());
        const bool moves_directory = one_->is_directory() and not wish_.makes_link;
        if (not(moves_directory ? round.enter_alone() : round.enter())) {
            (void)co_await r_.wait(round.entered());
            if (not round.is_inside()) co_return fail(*r_.interrupted());
        }
        const name_key name({}, vfs::split_path(target_.path).name);
        one_shot_event<nt_status> woken(r_.loop());
        pending_create_waiting waiting(round.names().creates(), name, woken);
        round.pending().emplace(name);
        if (not round.names().creates().begin(*round.pending(), waiting.place()))
            co_return co_await wait_for(round, woken);
        vfs::fs_domain& domain = is_beyond_mount_ ? *volume.crossing_domain() : volume.domain();
        auto found =
            co_await r_.call(domain, [&] { return look_up_name(r_.accessor(), *one_->node, target_.path); });
        if (not found and found.error() == crosses_mount and not is_beyond_mount_)
            co_return fail(nt_status::not_same_device);
        if (not found) co_return fail(found.error());
        found_ = *std::move(found);
        if (const nt_status refused = check(); refused != nt_status::success) co_return fail(refused);
        beneath_.clear();
        if (moves_directory) {
            auto beneath = co_await files_beneath(r_, *one_);
            if (not beneath) co_return fail(beneath.error());
            beneath_ = *std::move(beneath);
        }
        const step next = co_await change(round);
        co_return next;
    }
    [[nodiscard]] nt_status status() const noexcept { return status_; }

private:
    [[nodiscard]] step fail(nt_status why) noexcept {
        status_ = why;
        return step::failed;
    }

    [[nodiscard]] io::task<step> wait_for(create_round& round, one_shot_event<nt_status>& woken) noexcept {
        round.release();
        (void)co_await r_.wait(woken);
        co_return r_.interrupted() ? fail(*r_.interrupted()) : step::waited;
    }

    [[nodiscard]] nt_status check() {
        const access_mask needed =
            one_->is_directory() ? access_mask::add_subdirectory : access_mask::add_file;
        if (not wire::has(found_.allowed_in_parent, needed)) {
            explain_refusal(r_.host().refusals, r_.accessor(), target_.path, needed);
            return nt_status::access_denied;
        }
        if (found_.leads_out) return nt_status::access_denied;
        if (not found_.taken) return nt_status::success;
        name_taken as_if_closed = *found_.taken;
        as_if_closed.is_open = false;
        return may_replace(as_if_closed, wish_, one_->is_directory());
    }

    // With the names that are looked up: marks both files, checks what others have open,
    // and changes the name.
    [[nodiscard]] io::task<step> change(create_round& round) noexcept {
        file_table& files = r_.host().files;
        const bool replaces = found_.taken and not found_.taken->is_same_file;
        const std::shared_ptr<file_state> target = replaces ? files.of(found_.taken_key) : nullptr;
        rename_marks marks(r_);
        if (not co_await marks.set(wish_.makes_link ? nullptr : one_->file, target))
            co_return fail(*r_.interrupted());
        if (marks.finds_removed()) co_return step::again;
        const std::shared_ptr<file_state> directory = files.of(found_.parent->key());
        directory_entry_guard entry(directory);
        one_shot_event<nt_status> woken(r_.loop());
        waiting<file_state> blocked(*directory, woken);
        switch (entry.join(blocked.place())) {
            case open_protocol::verdict::granted:
                break;
            case open_protocol::verdict::blocked: {
                marks.release(false);
                co_return co_await wait_for(round, woken);
            }
            case open_protocol::verdict::gone:
                co_return step::again;
            case open_protocol::verdict::delete_pending:
                co_return fail(nt_status::delete_pending);
            case open_protocol::verdict::sharing_violation: {
                if (not caches_handle_of(directory)) co_return fail(nt_status::sharing_violation);
                // A client that has the directory open only to cache it may close it.
                marks.release(false);
                round.release();
                co_return co_await break_conflicting_caches({directory});
            }
        }
        // First, so that a rename that is refused breaks no caches.
        if (target != nullptr and is_kept_by_name(*target)) co_return fail(nt_status::access_denied);
        if (file_list others = conflicting(target); not others.empty()) {
            entry.leave();
            marks.release(false);
            round.release();
            co_return co_await break_conflicting_caches(std::move(others));
        }
        if (const nt_status refused = check_opens(target); refused != nt_status::success)
            co_return fail(refused);
        const nt_status kept_out = keep_peers_out(r_.host().peers(), replaces);
        if (kept_out == nt_status::retry) {
            entry.leave();
            marks.release(false);
            round.release();
            co_return co_await pause();
        }
        if (kept_out != nt_status::success) co_return fail(kept_out);
        vfs::fs_domain& domain =
            is_beyond_mount_ ? *r_.files().volume().crossing_domain() : one_->node->domain();
        // The end of its open changes the change time ([MS-FSA] 2.1.5.15.12, note 187).
        const bool is_kept = one_->kept().changed;
        const bool is_deferred = not wish_.makes_link and not is_kept;
        time_preserver times(*one_, {.changed = is_deferred or is_kept});
        own_change seen(r_.host());
        const bool moves = not wish_.makes_link;
        if (moves) status_ = begin_rename(r_.host(), *one_, target_.path);
        if (status_ != nt_status::success) co_return step::failed;
        status_ = co_await r_.call(domain, [&] { return carry_out(times, seen); });
        if (moves) end_rename(r_.host(), *one_, status_ == nt_status::success);
        times.record(is_deferred ? one_.get() : nullptr);
        const bool has_replaced = replaces and status_ == nt_status::success;
        if (has_replaced) round.names().count_removal();
        if (status_ != nt_status::success) report_recycle_problem(r_.host(), one_->through->volume());
        if (status_ == nt_status::success) round.names().record_change();
        marks.release(has_replaced);
        if (status_ == nt_status::success) seen.break_leases(*one_);
        co_return status_ == nt_status::success ? step::done : step::failed;
    }

    [[nodiscard]] static bool caches_handle_of(const std::shared_ptr<file_state>& directory) noexcept {
        const file_section held(*directory);
        return others_cache_handle(held, *directory, nullptr);
    }

    // The files that are cached by handles which the new name would make stale.
    [[nodiscard]] file_list conflicting(const std::shared_ptr<file_state>& target) const {
        file_list found;
        const auto add = [&](const std::shared_ptr<file_state>& file) {
            // An open has its lease in its own file.
            const open* const by = one_->file == file ? one_.get() : nullptr;
            const file_section held(*file);
            if (others_cache_handle(held, *file, by)) found.push_back(file);
        };
        if (not wish_.makes_link) add(one_->file);
        if (target != nullptr and not wish_.is_posix) add(target);
        for (const std::shared_ptr<file_state>& each : beneath_)
            add(each);
        return found;
    }

    // Counts as one attempt: clients could cache the files again each time.
    [[nodiscard]] io::task<step> break_conflicting_caches(file_list others) noexcept {
        for (const std::shared_ptr<file_state>& other : others) {
            const open* const by = one_->file == other ? one_.get() : nullptr;
            io::task<caching_outcome> waiting = break_caches_for_name_change(r_, *other, by);
            const caching_outcome outcome = co_await std::move(waiting);
            if (outcome == caching_outcome::cancelled) co_return fail(r_.wait_failure_status());
            if (outcome == caching_outcome::exhausted) co_return fail(nt_status::sharing_violation);
        }
        co_return step::again;
    }

    [[nodiscard]] nt_status check_opens(const std::shared_ptr<file_state>& target) const {
        if (one_->has_ended()) return nt_status::file_closed;
        if (found_.taken) {
            name_taken now = *found_.taken;
            now.is_open = target != nullptr and has_opens(*target);
            if (const nt_status held = may_replace(now, wish_, one_->is_directory());
                held != nt_status::success)
                return held;
        }
        const bool is_open_beneath =
            std::ranges::any_of(beneath_, [](const auto& each) { return has_opens(*each); });
        return is_open_beneath ? nt_status::access_denied : nt_status::success;
    }

    // A persistent open is restored by the name of its file: not even POSIX semantics replace that.
    [[nodiscard]] bool is_kept_by_name(file_state& target) const noexcept {
        const file_section held(target);
        return has_persistent_opens(held, r_.host(), target);
    }

    /// Until the end of the round, no other server has the replaced file open.
    [[nodiscard]] nt_status keep_peers_out(peer_servers* peers, bool replaces) {
        if (peers == nullptr or not replaces or wish_.is_posix) return nt_status::success;
        no_peer_has_it_.reset();
        peer_of_taken_ = peers->file(found_.taken_key);
        const exclusive_claim& alone = no_peer_has_it_.emplace(*peer_of_taken_);
        if (alone) return nt_status::success;
        return alone.is_busy() and ++pauses_ != limits::peer_attempts_max ? nt_status::retry
                                                                          : nt_status::access_denied;
    }

    [[nodiscard]] io::task<step> pause() noexcept {
        no_peer_has_it_.reset();
        const deadline until(limits::peer_pause_max);
        io::task<bool> waiting = pass(r_.loop(), until);
        (void)co_await within_work(std::move(waiting));
        co_return r_.interrupted() ? fail(*r_.interrupted()) : step::again;
    }

    // Touches only the node.
    [[nodiscard]] nt_status carry_out(time_preserver& times, own_change& seen) noexcept {
        const auto taken = wish_.replaces ? vfs::when_taken::replace : vfs::when_taken::refuse;
        const auto names = vfs::names_of(*one_->node);
        if (not names) return status_of(names.error());
        // A new name changes nothing in the directory of the old one.
        if (not wish_.makes_link) seen.begin(*one_->node);
        seen.begin_in(*found_.parent, vfs::split_path(target_.path).name);
        if (times.is_needed()) times.ask();
        const result<void> done =
            wish_.makes_link ? (*names)->link(target_.path, taken) : (*names)->rename(target_.path, taken);
        times.restore();
        if (done and wish_.makes_link)
            seen.end_link(*one_->node);
        else
            seen.end(done.has_value(), one_->node.get());
        return done ? nt_status::success : status_of(done.error());
    }

    request& r_;
    std::shared_ptr<open> one_;
    const rename_request& wish_;
    const file_name& target_;
    const bool is_beyond_mount_;
    name_lookup found_;
    file_list beneath_;
    std::unique_ptr<peer_file> peer_of_taken_;
    std::optional<exclusive_claim> no_peer_has_it_;
    unsigned pauses_ = 0;
    nt_status status_ = nt_status::success;
};

}  // namespace

nt_status may_replace(const name_taken& there, const rename_request& wish,
                      bool source_is_directory) noexcept {
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

io::task<nt_status> give_name(request& r, std::shared_ptr<open> one, rename_request wish) noexcept {
    ENSURE(r.loop().is_owner() and one->node != nullptr, "a rename is of an open file");
    if (not wish.makes_link and not one->grants(access_mask::delete_object))
        co_return nt_status::access_denied;
    if (not wire::has(r.tree->access_max, access_mask::write_data)) co_return nt_status::access_denied;
    if (wish.target.starts_with(':') or not one->node->stream_name().empty())
        co_return co_await rename_stream(r, one, wish);
    const auto target = target_of(wish);
    if (not target) co_return target.error();
    if (r.files().target->configuration().snapshots != nullptr and names_snapshot(target->path))
        co_return nt_status::not_same_device;

    if (one->node->path().empty()) co_return nt_status::invalid_parameter;
    if (wish.makes_link and one->is_directory()) co_return nt_status::file_is_a_directory;

    naming renaming(r, one, wish, *target);
    unsigned attempts = 0;
    unsigned waits = 0;
    while (attempts != limits::rename_attempts_max and waits != limits::caching_waits_max) {
        if (r.interrupted()) co_return *r.interrupted();
        if (one->has_ended()) co_return nt_status::file_closed;
        io::task<naming::step> attempt = renaming.attempt();
        const naming::step next = co_await std::move(attempt);
        if (next == naming::step::done or next == naming::step::failed) co_return renaming.status();
        ++(next == naming::step::waited ? waits : attempts);
    }
    co_return nt_status::sharing_violation;  // other clients open the file again each time
}

}  // namespace sluice::smb::server
