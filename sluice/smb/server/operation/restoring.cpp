#include "sluice/smb/server/operation/restoring.hpp"

#include <algorithm>
#include <array>
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

constexpr std::chrono::seconds proven_after{60};

// Why a record is dropped.
enum class cause : std::uint8_t { none, share, user, file, conflict, bound, count };
constexpr std::array<std::string_view, static_cast<std::size_t>(cause::count)> texts{
    "",
    "its share is not served any more",
    "its user is not known any more",
    "its file is not at its name any more",
    "it conflicts with another record",
    "a limit is reached"};

struct restored {
    std::shared_ptr<open> one;
    const handle_record* record = nullptr;
};

// The node of the recorded file, by one of its names; null if neither leads to it any more.
[[nodiscard]] vfs::node_ptr find_node(vfs::volume& volume, const handle_record& of) {
    for (const std::string_view path : {of.path, of.other_path}) {
        if (path.empty()) continue;
        result<vfs::node_ptr> found = volume.find(path, vfs::follow_links::no);
        if (found and not of.stream.empty()) found = vfs::open_stream(**found, {.name = of.stream});
        if (not found or (*found)->kind() != vfs::node_kind::file) continue;
        // An inode that was removed may have its number used again only in another boot, or by
        // programs of this machine, which the promise does not include.
        vfs::file_key key = (*found)->key();
        key.image = 0;
        if (key == of.file) return *std::move(found);
    }
    return nullptr;
}

[[nodiscard]] bool open_data(vfs::node& node, wire::access_mask access) {
    const vfs::data_access wanted = data_access_of(access);
    if (not wanted.read and not wanted.write) return true;
    const auto data = vfs::data_of(node);
    return data and (*data)->open_data(wanted);
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
    [[nodiscard]] cause restore_one(recovered& from);
    [[nodiscard]] cause check(const handle_record& of, std::shared_ptr<share>& through,
                              vfs::node_ptr& node) const;
    [[nodiscard]] bool restore_locks_of(const restored& each, bool exclusive);
    [[nodiscard]] std::shared_ptr<open> make(const handle_record& of, const std::shared_ptr<share>& through);
    [[nodiscard]] bool join(open& fresh);
    [[nodiscard]] bool give_caching(const handle_record& of, open& fresh);
    void restore_locks(bool exclusive);
    void finish();
    void drop(open& one) noexcept;
    void report() const;

    server_context& host_;
    std::vector<restored> all_;
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

cause restoration::check(const handle_record& of, std::shared_ptr<share>& through,
                         vfs::node_ptr& node) const {
    through = host_.find_share(of.share);
    if (through == nullptr or through->is_pipes() or not through->configuration().continuous_availability)
        return cause::share;
    const auto account = host_.accounts().find(of.owner, of.domain);
    if (not account or account->is_disabled) return cause::user;
    node = find_node(through->volume(), of);
    return node != nullptr and open_data(*node, of.granted_access) ? cause::none : cause::file;
}

cause restoration::restore_one(recovered& from) {
    const handle_record& of = from.record;
    std::shared_ptr<share> through;
    vfs::node_ptr node;
    cause why = check(of, through, node);
    const std::shared_ptr<open> fresh = why == cause::none ? make(of, through) : nullptr;
    if (fresh == nullptr) {
        from.slot.clear();
        return why == cause::none ? cause::conflict : why;
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
        from.slot.clear();
        return cause::conflict;
    }
    fresh->begin_restored(how);
    quota_hold counted = host_.quotas.take(fresh->counted.client(), limit::persistent_opens);
    const bool has_quota = counted.amount() != 0;
    {
        auto made = std::make_unique<persistence>(std::move(from.slot));
        made->counted = std::move(counted);
        describe_for_record(*fresh, how, *made);
        if (not of.other_path.empty())
            made->other_path = equal_ignoring_case(made->path, of.path) ? of.other_path : of.path;
        const file_section held(*fresh->file);
        open_in_file& place = fresh->in_file(held);
        place.lock_requests.restore(of.lock_sequences);
        place.deletes_on_close = of.deletes_on_close;
        place.persistent = std::move(made);
        ++fresh->file->persistent_opens(held);
        fresh->file->locks(held).note_late_grants();
    }
    if (has_quota and give_caching(of, *fresh) and host_.replays.adopt(fresh)) {
        all_.push_back({.one = fresh, .record = &of});
        return cause::none;
    }
    drop(*fresh);
    return has_quota ? cause::conflict : cause::bound;
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
        if (each.one->has_ended() or restore_locks_of(each, exclusive)) continue;
        drop(*each.one);
        --counts_[static_cast<std::size_t>(cause::none)];
        ++counts_[static_cast<std::size_t>(cause::conflict)];
    }
}

// After all opens have joined, because no open joins a file that is going to be removed.
void restoration::finish() {
    for (const restored& each : all_) {
        if (each.one->has_ended()) continue;
        each.one->is_awaited.store(true, std::memory_order_relaxed);
        host_.awaited_opens.fetch_add(1, std::memory_order_relaxed);
        end_after(host_, each.one, each.one->durable()->timeout, 1);
        if (not each.record->is_delete_pending) continue;
        const file_section held(*each.one->file);
        each.one->file->set_delete_pending(held, each.one);
    }
    for (const restored& each : all_) {
        if (each.one->has_ended()) continue;
        const file_section held(*each.one->file);
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
            host_.log().write(event_severity::warning, "persistent handles were dropped",
                              {{"handles", std::to_string(counts_[i])}, {"why", std::string(texts[i])}});
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
    for (recovered& from : records) {
        const cause why = restore_one(from);
        ++counts_[static_cast<std::size_t>(why)];
    }
    // An exclusive lock conflicts with each lock that is there, a shared one not with those of its
    // own open: all of them fit only in this order.
    restore_locks(true);
    restore_locks(false);
    finish();
    host_.quotas.set_restoring(false);
    for (handle_journal* const each : journals)
        each->begin_service();
    // Until then, a crash counts as one of the restoration, or of the first reconnects.
    if (host_.awaited_opens.load(std::memory_order_relaxed) == 0)
        forget_attempts(host_);
    else
        host_.later.add(proven_after, [&host = host_]() noexcept { forget_attempts(host); });
    report();
}

}  // namespace

void restore_opens(server_context& host) {
    ENSURE(host.loop().is_owner(), "opens are restored on the first loop");
    restoration(host).run();
}

}  // namespace sluice::smb::server
