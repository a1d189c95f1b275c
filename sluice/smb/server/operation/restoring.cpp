#include "sluice/smb/server/operation/restoring.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/create_operation.hpp"
#include "sluice/smb/server/operation/durable.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_data.hpp"

namespace sluice::smb::server {

using recovered = handle_journal::recovered_handle;

namespace {

constexpr std::size_t logged_max = 16;  // lines that each name a file

// Why an open is not restored.
enum class cause : std::uint8_t { none, user, file, conflict, undone, share, fault, bound, count };
constexpr std::array<std::string_view, static_cast<std::size_t>(cause::count)> texts{
    "",
    "its user is not known any more",
    "its file is not at its name any more",
    "it conflicts with another record",
    "the removal of its file was cancelled",
    "its share is not served with continuous availability",
    "its file cannot be opened",
    "a limit is reached"};

// The others may pass.
[[nodiscard]] bool is_proof(cause of) noexcept {
    return of < cause::share;
}

struct restored {
    std::shared_ptr<open> one;
    const handle_record* record = nullptr;
};

// Returns whether a lookup with this error shows that there is no such file.
[[nodiscard]] bool is_absence(const error& of) noexcept {
    return of == std::errc::no_such_file_or_directory or of == std::errc::not_a_directory or
           of == std::errc::no_message_available;  // a stream that is an extended attribute
}

// The node of the recorded file, by one of its names; null if neither leads to it any more. Any
// error proves nothing about the file. The time of its creation is not compared: clients set it.
[[nodiscard]] result<vfs::node_ptr> find_node(vfs::volume& volume, const handle_record& of) {
    std::optional<error> unknown;
    for (const std::string_view path : {of.path, of.other_path}) {
        if (path.empty()) continue;
        result<vfs::node_ptr> found = volume.find(path, vfs::follow_links::no);
        if (found and not of.stream.empty()) found = vfs::open_stream(**found, {.name = of.stream});
        if (not found and not is_absence(found.error())) unknown = found.error();
        if (not found or (*found)->kind() != vfs::node_kind::file) continue;
        vfs::file_key key = (*found)->key();
        key.image = 0;
        if (key == of.file) return *std::move(found);
    }
    if (unknown) return failure(*unknown);
    return vfs::node_ptr();
}

[[nodiscard]] result<void> open_data(vfs::node& node, wire::access_mask access) {
    const vfs::data_access wanted = data_access_of(access);
    if (not wanted.read and not wanted.write) return {};
    const auto data = vfs::data_of(node);
    if (not data) return failure(data.error());
    return (*data)->open_data(wanted);
}

[[nodiscard]] lease::kind kind_of(recorded_caching::kind which) noexcept {
    switch (which) {
        case recorded_caching::kind::lease_v1:
            return lease::kind::lease_v1;
        case recorded_caching::kind::lease_v2:
            return lease::kind::lease_v2;
        case recorded_caching::kind::none:
        case recorded_caching::kind::oplock:
            break;
    }
    return lease::kind::oplock;
}

// Returns a state that a client can have, for any record.
[[nodiscard]] wire::lease_state valid_state(const recorded_caching& of) noexcept {
    using wire::lease_state;
    constexpr lease_state known = lease_state::read | lease_state::handle | lease_state::write;
    lease_state state = of.state & known;
    if (not wire::has(state, lease_state::read)) state = lease_state::none;
    if (of.which == recorded_caching::kind::oplock) state = state_of(level_of(state));
    return state;
}

class restoration {
public:
    explicit restoration(server_context& host) noexcept : host_(host) {}

    void run();

private:
    // Returns std::nullopt if the record has gone with its open.
    [[nodiscard]] std::optional<cause> restore_one(recovered& from);
    [[nodiscard]] cause check(const recovered& from, std::shared_ptr<share>& through, vfs::node_ptr& node);
    [[nodiscard]] std::chrono::milliseconds time_left(const handle_record& of) const noexcept;
    void leave(recovered& from, cause why);
    [[nodiscard]] std::string reason_of(cause why) const;
    [[nodiscard]] vfs::file_key key_for(const handle_record& of) const;
    void leave_undone(std::vector<recovered>& records);
    [[nodiscard]] bool restore_locks_of(const restored& each, bool exclusive);
    [[nodiscard]] std::shared_ptr<open> make(const handle_record& of, const std::shared_ptr<share>& through);
    [[nodiscard]] bool join(open& fresh);
    [[nodiscard]] bool give_caching(const handle_record& of, open& fresh);
    void restore_locks(bool exclusive);
    void finish();
    void drop(open& one) noexcept;
    void report() const;
    void report(const handle_journal& of) const;

    server_context& host_;
    std::vector<restored> all_;
    std::size_t logged_ = 0;                                                    // of leave()
    std::optional<error> fault_{};                                              // of check()
    std::array<std::size_t, static_cast<std::size_t>(cause::count)> counts_{};  // by cause
};

std::shared_ptr<open> restoration::make(const handle_record& of, const std::shared_ptr<share>& through) {
    const client_reference by = host_.quotas.user(of.owner);
    std::shared_ptr<open> fresh = host_.opens.restore(by, of.open_number);
    if (fresh == nullptr) return nullptr;
    ENSURE(fresh->id.persistent_part.value() == of.open_number, "a restored open has its number again");
    fresh->through = through;
    fresh->access = of.granted_access;
    fresh->share_access = of.share_access;
    fresh->create_options = of.options;
    fresh->mode.store(bits_of(of.options & shown_as_mode), std::memory_order_relaxed);
    fresh->disposition = of.disposition;
    fresh->attributes = of.attributes;
    fresh->action = of.action;
    fresh->client = of.client_guid;
    fresh->create_guid = of.create_guid;
    if (of.app_instance) fresh->instance = app_instance{.id = *of.app_instance, .version = of.app_version};
    if (of.caching.parent_key) fresh->parent_key = of.caching.parent_key;
    return fresh;
}

bool restoration::join(open& fresh) {
    ENSURE(fresh.file != nullptr and fresh.phase() == open_phase::making, "an open joins before it is live");
    const sharing mode{.access = fresh.access, .share = fresh.share_access};
    one_shot_event<wire::nt_status> woken(host_.loop());
    waiting<file_state> blocked(*fresh.file, woken);
    const file_section held(*fresh.file);
    open_protocol& protocol = fresh.file->protocol(held);
    open_in_file& place = fresh.in_file(held);
    if (protocol.join(place.entry, mode, blocked.place()) != open_protocol::verdict::granted) return false;
    fresh.enter_file(held);
    protocol.commit(place.entry, mode);
    return true;
}

// Returns false if the key is that of a lease of another file.
bool restoration::give_caching(const handle_record& of, open& fresh) {
    const recorded_caching& had = of.caching;
    if (had.which == recorded_caching::kind::none) return true;
    const wire::lease_state state = valid_state(had);
    const bool is_oplock = had.which == recorded_caching::kind::oplock;
    const lease::identity who =
        is_oplock ? lease::identity{} : lease::identity{.client = of.client_guid, .key = had.key};
    std::shared_ptr<lease> known = is_oplock ? nullptr : host_.leases.find(who);
    const file_section held(*fresh.file);
    if (known != nullptr) {
        if (known->file != fresh.file) return false;
        known->yield(state);
    } else {
        // The grant counts as a change.
        const auto before =
            static_cast<std::uint16_t>(had.epoch - (state == wire::lease_state::none ? 0 : 1));
        known = host_.leases.make(fresh.file, kind_of(had.which), who, state, before);
        if (not is_oplock and not host_.leases.add(known)) return false;
        known->parent_key = had.parent_key;
    }
    known->opens.push_back(&fresh);
    fresh.in_file(held).lease = std::move(known);
    return true;
}

cause restoration::check(const recovered& from, std::shared_ptr<share>& through, vfs::node_ptr& node) {
    const handle_record& of = from.record;
    through = host_.find_share(of.share);
    if (through == nullptr or through->is_pipes() or not through->configuration().continuous_availability)
        return cause::share;
    // The share has another directory now, in which the name of the file means nothing.
    if (through->configuration().journal.get() != from.in) return cause::share;
    const auto account = host_.accounts().find(of.owner, of.domain);
    if (not account) return cause::user;
    result<vfs::node_ptr> found = find_node(through->volume(), of);
    if (found and *found == nullptr) return cause::file;
    const result<void> opened =
        found ? open_data(**found, of.granted_access) : result<void>(failure(found.error()));
    if (not opened) {
        fault_ = opened.error();
        return cause::fault;
    }
    node = *std::move(found);
    return cause::none;
}

// A crash after a restoration does not give the client more time. It has all of it again after its
// next reconnect.
std::chrono::milliseconds restoration::time_left(const handle_record& of) const noexcept {
    constexpr std::chrono::milliseconds least(1);
    if (of.is_closed) return least;  // no client comes back for it
    const auto whole = std::clamp<std::chrono::milliseconds>(of.timeout, least, limits::durable_timeout_max);
    if (of.waits_until.count() == 0) return whole;
    const auto left = std::chrono::floor<std::chrono::milliseconds>(
        of.waits_until - host_.clock().steady_now().time_since_epoch());
    return std::clamp(left, least, whole);
}

// Clears a record on proof that nothing is left to restore, or at the end of its time. Until then,
// no client opens the file.
void restoration::leave(recovered& from, cause why) {
    ENSURE(why != cause::none and why != cause::count, "an open that is not restored has a cause");
    ++counts_[static_cast<std::size_t>(why)];
    const std::chrono::milliseconds left = time_left(from.record);
    const bool is_over = from.record.waits_until.count() != 0 and left.count() == 1;
    if (is_proof(why) or is_over or from.record.is_closed) return from.slot.clear();
    if (++logged_ <= logged_max)
        host_.log().write(
            event_severity::error, "persistent handle is not restored",
            {{"share", std::string(from.record.share)},
             {"file", std::string(from.record.path)},
             {"why", reason_of(why)},
             {"hint",
              "clients can open the file after the timeout of the handle; to restore it, remove "
              "the cause and restart the server before"}});
    handle_record kept = from.record;
    if (kept.waits_until.count() == 0)
        kept.waits_until = host_.clock().steady_now().time_since_epoch() + left;
    ENSURE(from.slot.store(kept), "a record that was decoded fits");
    const auto blocks =
        std::make_shared<unrestored_open>(host_.files.of(key_for(from.record)), std::move(from.slot));
    {
        const file_section held(*blocks->file);
        ++blocks->file->unrestored_opens(held);
    }
    host_.unrestored.push_back(blocks);
    host_.later.add(left, [&host = host_, which = std::weak_ptr(blocks)]() noexcept {
        const std::shared_ptr<unrestored_open> one = which.lock();
        if (one == nullptr) return;
        std::erase(host.unrestored, one);
        const file_section held(*one->file);
        --one->file->unrestored_opens(held);
        one->slot.clear();
    });
}

std::string restoration::reason_of(cause why) const {
    if (why == cause::fault and fault_) return fault_->message();
    return std::string(texts[static_cast<std::size_t>(why)]);
}

// The number of an image, which a volume in memory has, is not recorded.
vfs::file_key restoration::key_for(const handle_record& of) const {
    vfs::file_key key = of.file;
    const std::shared_ptr<share> through = host_.find_share(of.share);
    if (through == nullptr or through->is_pipes()) return key;
    const result<vfs::node_ptr> root = through->volume().find("", vfs::follow_links::yes);
    if (root) key.image = (*root)->key().image;
    return key;
}

// An open that its client has closed only removes its file. Another open of the file whose record
// has no pending removal shows that a client has cancelled that.
void restoration::leave_undone(std::vector<recovered>& records) {
    const auto is_undone = [&](const recovered& closed) {
        return closed.record.is_closed and std::ranges::any_of(records, [&](const recovered& other) {
                   return &other != &closed and other.record.file == closed.record.file and
                          not other.record.is_closed and not other.record.is_delete_pending;
               });
    };
    std::vector<recovered> rest;
    std::vector<bool> undone;
    for (const recovered& each : records)
        undone.push_back(is_undone(each));
    for (std::size_t i = 0; i != records.size(); ++i) {
        if (undone[i])
            leave(records[i], cause::undone);
        else
            rest.push_back(std::move(records[i]));
    }
    records = std::move(rest);
}

std::optional<cause> restoration::restore_one(recovered& from) {
    const handle_record& of = from.record;
    std::shared_ptr<share> through;
    vfs::node_ptr node;
    if (const cause why = check(from, through, node); why != cause::none) return why;
    const std::shared_ptr<open> fresh = make(of, through);
    if (fresh == nullptr)
        return host_.opens.find_persistent(of.open_number) != nullptr ? cause::conflict : cause::bound;
    quota_hold counted = host_.quotas.take(fresh->counted.client(), limit::persistent_opens);
    if (counted.amount() == 0) {
        ENSURE(fresh->end() == open_phase::making, "an open that is being restored has no other user");
        host_.opens.remove(*fresh);
        return cause::bound;
    }
    fresh->file = host_.files.of(node->key());
    fresh->node = std::move(node);
    const durability how{.owner = std::string(of.owner),
                         .owner_domain = std::string(of.domain),
                         .is_second_generation = true,
                         .is_persistent = true,
                         .timeout = std::clamp<std::chrono::milliseconds>(
                             of.timeout, std::chrono::milliseconds(1), limits::durable_timeout_max),
                         .end = {},
                         .disconnects = 0};
    if (not join(*fresh)) {
        ENSURE(fresh->end() == open_phase::making, "an open that is being restored has no other user");
        host_.opens.remove(*fresh);
        return cause::conflict;
    }
    fresh->begin_restored(how);
    {
        auto made = std::make_unique<persistence>(std::move(from.slot));
        made->counted = std::move(counted);
        describe_for_record(*fresh, how, *made);
        if (made->path.size() > handle_record::path_bytes_max) {
            made->path = of.path;
            made->other_path = of.other_path;
        } else if (not of.other_path.empty()) {
            made->other_path = equal_ignoring_case(made->path, of.path) ? of.other_path : of.path;
        }
        made->is_closed = of.is_closed;
        const file_section held(*fresh->file);
        open_in_file& place = fresh->in_file(held);
        place.lock_requests.restore(of.lock_sequences);
        place.deletes_on_close = of.deletes_on_close;
        place.persistent = std::move(made);
        // Its client does not come back for it.
        if (not of.is_closed) ++fresh->file->persistent_opens(held);
        fresh->file->locks(held).note_late_grants();
    }
    const bool is_whole = of.is_closed or (give_caching(of, *fresh) and host_.replays.adopt(fresh));
    if (is_whole) {
        all_.push_back({.one = fresh, .record = &of});
        return cause::none;
    }
    drop(*fresh);
    ++counts_[static_cast<std::size_t>(cause::conflict)];
    return std::nullopt;
}

bool restoration::restore_locks_of(const restored& each, bool exclusive) {
    open& one = *each.one;
    ENSURE(one.is_in_grace(), "an open is restored without its client");
    const file_section held(*one.file);
    byte_range_locks& locks = one.file->locks(held);
    for (const recorded_lock& lock : each.record->locks) {
        if (lock.is_exclusive != exclusive) continue;
        const byte_range_locks::range where{.offset = lock.offset, .length = lock.length};
        if (not byte_range_locks::is_lockable(where)) return false;
        quota_hold& counted = one.in_file(held).counted_locks;
        if (not counted.try_resize(counted.amount() + 1)) return false;
        if (not locks.try_lock({.owner = &one, .where = where, .is_exclusive = exclusive})) return false;
    }
    return true;
}

void restoration::restore_locks(bool exclusive) {
    for (const restored& each : all_) {
        if (each.one->has_ended() or each.record->is_closed or restore_locks_of(each, exclusive)) continue;
        drop(*each.one);
        --counts_[static_cast<std::size_t>(cause::none)];
        ++counts_[static_cast<std::size_t>(cause::conflict)];
    }
}

// After all opens have joined, because no open joins a file that is going to be removed.
void restoration::finish() {
    for (const restored& each : all_) {
        if (each.one->has_ended()) continue;
        end_after(host_, each.one, time_left(*each.record), 1);
        if (not each.record->is_delete_pending) continue;
        const file_section held(*each.one->file);
        each.one->file->set_delete_pending(held, each.one);
    }
    for (const restored& each : all_) {
        if (each.one->has_ended()) continue;
        const std::chrono::milliseconds left = time_left(*each.record);
        const file_section held(*each.one->file);
        if (persistence* const its = each.one->in_file(held).persistent.get())
            its->record.waits_until = host_.clock().steady_now().time_since_epoch() + left;
        record_state(held, *each.one);
    }
}

void restoration::report() const {
    const std::size_t kept = counts_[static_cast<std::size_t>(cause::none)];
    if (kept != 0)
        host_.log().write(event_severity::info, "persistent handles wait for their clients",
                          {{"handles", std::to_string(kept)}});
    for (std::size_t i = 1; i != counts_.size(); ++i)
        if (counts_[i] != 0)
            host_.log().write(event_severity::warning,
                              is_proof(static_cast<cause>(i)) ? "persistent handles were dropped"
                                                              : "persistent handles were not restored",
                              {{"handles", std::to_string(counts_[i])}, {"why", std::string(texts[i])}});
}

// Logs why promises to clients have ended.
void restoration::report(const handle_journal& of) const {
    const auto log = [&](event_severity severity, std::string_view text, std::string why,
                         std::string_view hint) {
        host_.log().write(severity, text,
                          {{"file", of.name()}, {"why", std::move(why)}, {"hint", std::string(hint)}});
    };
    constexpr std::string_view lost = "persistent handles of earlier servers are lost";
    constexpr std::string_view reopen = "clients must open their files again";
    switch (of.origin()) {
        case journal_origin::fresh:
        case journal_origin::continued:
            break;
        case journal_origin::other_boot:
            log(event_severity::warning, lost, "the machine has been restarted", reopen);
            break;
        case journal_origin::other_root:
            log(event_severity::warning, lost, "the directory of the share is another one", reopen);
            break;
        case journal_origin::unknown:
            log(event_severity::error, lost, "the journal is damaged, or of another version", reopen);
            break;
        case journal_origin::set_aside:
            log(event_severity::error, lost, "several servers in a row ended while they restored the handles",
                "clients must open their files again; report the copy with the suffix .set-aside");
            if (of.copy_error())
                log(event_severity::error, "cannot copy a journal of persistent handles",
                    of.copy_error()->message(), "free space in the state directory");
    }
    if (of.dropped() != 0)
        log(event_severity::error, lost, std::to_string(of.dropped()) + " records are damaged", reopen);
}

// Its record goes, and it removes no file.
void restoration::drop(open& one) noexcept {
    {
        const file_section held(*one.file);
        open_in_file& place = one.in_file(held);
        place.deletes_on_close = false;
        if (place.persistent != nullptr) place.persistent->slot.clear();
    }
    (void)end_open(host_, one);
}

void restoration::run() {
    std::set<handle_journal*> journals;
    const share_list::snapshot shares = host_.shares.current();
    for (const std::shared_ptr<share>& each : *shares)
        if (handle_journal* const its = each->configuration().journal.get()) journals.insert(its);
    if (journals.empty()) return;
    host_.quotas.set_restoring(true);
    std::vector<recovered> records;
    for (handle_journal* const each : journals)
        std::ranges::move(each->take_recovered(), std::back_inserter(records));
    for (const handle_journal* const each : journals)
        report(*each);
    leave_undone(records);
    // A file system that does not answer delays the start: this line tells why.
    if (not records.empty())
        host_.log().write(event_severity::info, "restoring persistent handles",
                          {{"handles", std::to_string(records.size())}});
    for (recovered& from : records) {
        const std::optional<cause> why = restore_one(from);
        if (why == cause::none)
            ++counts_[static_cast<std::size_t>(cause::none)];
        else if (why)
            leave(from, *why);
    }
    // An exclusive lock conflicts with each lock that is there, a shared one not with those of its
    // own open: all of them fit only in this order.
    restore_locks(true);
    restore_locks(false);
    finish();
    host_.quotas.set_restoring(false);
    for (handle_journal* const each : journals)
        each->begin_service();
    report();
}

}  // namespace

void restore_opens(server_context& host) {
    ENSURE(host.loop().is_owner(), "opens are restored on the first loop");
    restoration(host).run();
}

}  // namespace sluice::smb::server
