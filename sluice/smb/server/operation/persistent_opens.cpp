#include "sluice/smb/server/operation/persistent_opens.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/create_round.hpp"

namespace sluice::smb::server {

using wire::access_mask;

namespace {

[[nodiscard]] bool asks_for_persistence(const request& r, const wire::create_args& args) noexcept {
    const auto& asked = args.contexts.durable_v2;
    return asked and wire::has(asked->flags, wire::durable_flags::persistent) and may_be_persistent(r);
}

// An open for attributes must not keep all others from the file while its client is away.
constexpr access_mask useful_rights = access_mask::read_data | access_mask::write_data |
                                      access_mask::append_data | access_mask::execute |
                                      access_mask::delete_object;

[[nodiscard]] std::chrono::milliseconds timeout_for(std::uint32_t asked_ms) noexcept {
    if (asked_ms == 0) return limits::durable_timeout_default;
    return std::min<std::chrono::milliseconds>(std::chrono::milliseconds(asked_ms),
                                               limits::durable_timeout_max);
}

[[nodiscard]] recorded_caching::kind kind_of(const lease& of) noexcept {
    if (of.is_oplock()) return recorded_caching::kind::oplock;
    return of.has_epoch() ? recorded_caching::kind::lease_v2 : recorded_caching::kind::lease_v1;
}

[[nodiscard]] recorded_caching caching_to_record(const lease* of) noexcept {
    if (of == nullptr) return {};
    recorded_caching caching{.which = kind_of(*of), .state = of->state_after_breaks()};
    if (of->is_oplock()) return caching;
    caching.epoch = of->epoch_after_breaks();
    caching.key = of->who().key;
    if (of->has_epoch()) caching.parent_key = of->parent_key;
    return caching;
}

// Updates the fields that may have changed since the last record.
void update(const file_section& held, open& one, persistence& of) noexcept {
    const open_in_file& place = one.in_file(held);
    ENSURE(not of.path.empty() and of.record.open_number == one.id.persistent_part.value(),
           "a record is that of its open");
    handle_record& to = of.record;
    to.owner = of.owner;
    to.domain = of.domain;
    to.share = of.share;
    to.path = of.path;
    to.other_path = of.other_path;
    to.stream = of.stream;
    to.file = one.file->key(held);
    to.file.image = 0;  // a volume in memory has another number in each process
    to.caching = caching_to_record(place.lease.get());
    to.deletes_on_close = place.deletes_on_close;
    to.is_delete_pending = one.file->is_delete_pending(held);
    to.is_closed = of.is_closed;
    to.lock_sequences = place.lock_requests.all();
    std::size_t count = 0;
    one.file->locks(held).for_each_of(one, [&](const locked_range& each) {
        ENSURE(count != of.locks.size(), "a persistent open has no more locks than its record");
        of.locks[count++] = {.offset = each.offset, .length = each.length, .is_exclusive = each.is_exclusive};
    });
    to.locks = std::span(of.locks).first(count);
}

// Returns the version of the name by which the record will find the file, if it is certain.
[[nodiscard]] std::optional<std::uint32_t> name_version_of(const open& one) noexcept {
    const file_section held(*one.file);
    return one.file->protocol(held).name_version();
}

[[nodiscard]] quota_hold take_quota(const request& r) noexcept {
    return r.host().quotas.take(r.session->admitted.client, limit::persistent_opens);
}

}  // namespace

void describe_for_record(const open& one, const durability& how, persistence& made) {
    ENSURE(one.node != nullptr and one.create_guid, "a persistent open has a file and a create guid");
    made.owner = how.owner;
    made.domain = how.owner_domain;
    made.share = one.through->configuration().name;
    made.path = one.node->path();
    made.other_path.clear();
    made.stream = one.node->stream_name();
    handle_record& to = made.record;
    to.open_number = one.id.persistent_part.value();
    to.create_guid = *one.create_guid;
    to.client_guid = one.client;
    if (one.instance) {
        to.app_instance = one.instance->id;
        to.app_version = one.instance->version;
    }
    to.granted_access = one.access;
    to.share_access = one.share_access;
    to.options = one.create_options;
    to.disposition = one.disposition;
    to.action = one.action;
    to.attributes = one.attributes;
    to.timeout = how.timeout;
}

bool may_be_persistent(const request& r) noexcept {
    const negotiated& agreed = r.connection().agreed;
    return agreed.is_at_least(wire::dialect::smb_3_0) and
           wire::has(agreed.capabilities, wire::capabilities::persistent_handles) and
           r.tree->target->configuration().continuous_availability;
}

bool grant_persistence(const request& r, open& fresh, const wire::create_args& args) {
    if (not asks_for_persistence(r, args) or fresh.is_directory() or fresh.node == nullptr) return false;
    const user_identity& user = r.session->user;
    if (user.is_anonymous or user.is_guest or not wire::has_any(fresh.access, useful_rights)) return false;
    // Only what is in the file system of the root is in its journal.
    if (is_beyond_mount(r.tree->volume(), *fresh.node)) return false;
    const durability how{.owner = user.name,
                         .owner_domain = user.domain,
                         .is_second_generation = true,
                         .is_persistent = true,
                         .timeout = timeout_for(args.contexts.durable_v2->timeout_ms),
                         .end = {},
                         .disconnects = 0};
    handle_journal& journal = *fresh.through->configuration().journal;
    quota_hold counted = take_quota(r);
    if (counted.amount() == 0) return false;
    auto slot = journal.reserve();
    if (not slot) return false;
    auto made = std::make_unique<persistence>(*std::move(slot));
    made->counted = std::move(counted);
    const std::optional<std::uint32_t> version = name_version_of(fresh);
    describe_for_record(fresh, how, *made);
    // The root has no name by which its stream is found again.
    if (not version or made->path.empty()) return false;
    {
        // First the record: the open must not be kept for its client without one.
        const file_section held(*fresh.file);
        open_in_file& place = fresh.in_file(held);
        // A request that guesses the ID may have locked more.
        const bool has_room =
            fresh.file->locks(held).claims_of(fresh) <= limits::locks_per_persistent_open_max;
        // A rename that has begun does not know the record, which would have the old name then.
        const bool has_name = fresh.file->protocol(held).name_version() == version;
        if (place.is_ending or not has_room or not has_name) return false;
        made->stream = fresh.node->stream_name();
        update(held, fresh, *made);
        if (not made->slot.store(made->record)) return false;
        place.persistent = std::move(made);
        ++fresh.file->persistent_opens(held);
        fresh.file->locks(held).note_late_grants();
    }
    if (fresh.make_persistent(*r.session, how)) return true;
    const file_section held(*fresh.file);
    const persistence* const its = fresh.in_file(held).persistent.get();
    // It may have left the file already; as its remover, it still has the record.
    if (its == nullptr or its->is_closed) return false;
    fresh.in_file(held).persistent.reset();
    --fresh.file->persistent_opens(held);
    return false;
}

void record_state(const file_section& held, open& one) noexcept {
    persistence* const its = one.in_file(held).persistent.get();
    if (its == nullptr) return;
    update(held, one, *its);
    ENSURE(its->slot.store(its->record), "a state that was granted fits into its record");
}

void record_states(const file_section& held, file_state& file) noexcept {
    if (file.persistent_opens(held) == 0) return;
    for (open* const one : file.opens(held))
        record_state(held, *one);
}

void record_lease(const file_section& held, const lease& of) noexcept {
    if (of.file->persistent_opens(held) == 0) return;
    ENSURE(wire::has(of.held(), of.state_after_breaks()), "a break takes from the held state");
    for (open* const one : of.opens)
        record_state(held, *one);
}

void record_late_grants(const file_section& held, file_state& file) noexcept {
    if (not file.locks(held).has_late_grants()) return;
    ENSURE(file.persistent_opens(held) != 0 or not file.opens(held).empty(), "a lock is that of an open");
    const std::vector<const open*> granted = file.locks(held).take_late_grants();
    for (open* const one : file.opens(held))
        if (std::ranges::find(granted, one) != granted.end()) record_state(held, *one);
}

bool is_in_grace(const file_section& held, file_state& file) noexcept {
    if (file.unrestored_opens(held) != 0) return true;
    if (file.persistent_opens(held) == 0) return false;
    return std::ranges::any_of(file.opens(held), &open::is_in_grace);
}

bool has_stream_in_grace(const file_section& held, server_context& host, file_state& file) noexcept {
    if (not host.has_persistent_opens()) return false;
    ENSURE(held.is_of(file), "a file is used in a section of its own");
    return std::ranges::any_of(host.files.streams_of(held, file),
                               [&](const auto& each) { return is_in_grace(held, *each); });
}

bool has_persistent_opens(const file_section& held, server_context& host, file_state& file) noexcept {
    if (not host.has_persistent_opens()) return false;
    const auto has_any = [&](file_state& one) {
        return one.persistent_opens(held) != 0 or one.unrestored_opens(held) != 0;
    };
    ENSURE(held.is_of(file), "a file is used in a section of its own");
    return has_any(file) or std::ranges::any_of(host.files.streams_of(held, file),
                                                [&](const auto& each) { return has_any(*each); });
}

bool is_of_absent_client(const file_section& held, const lease& of) noexcept {
    if (of.file->persistent_opens(held) == 0) return false;
    return std::ranges::none_of(of.opens, &open::has_session) and
           std::ranges::any_of(of.opens, &open::is_persistent);
}

void end_break_of_absent_client(const file_section& held, server_context& host, lease& of) noexcept {
    ENSURE(held.is_of(*of.file), "the leases of a file are broken in its section");
    host.later.end(of.time_limit);
    of.parked.reset();
    of.yield(of.held());
    record_lease(held, of);
    ENSURE(not of.is_breaking() and not of.time_limit, "a break of an absent client is over");
    of.file->wake_caching_waiters(held);
}

void record_disconnect(server_context& host, open& one, std::chrono::milliseconds timeout) noexcept {
    ENSURE(timeout.count() > 0, "an open without its client has an end");
    const auto end = host.clock().steady_now().time_since_epoch() + timeout;
    const file_section held(*one.file);
    persistence* const its = one.in_file(held).persistent.get();
    if (its == nullptr or not one.is_in_grace()) return;  // its client is back, or it has ended
    its->record.waits_until = end;
    record_state(held, one);
}

void record_reconnect(open& one) noexcept {
    if (one.file == nullptr) return;
    const file_section held(*one.file);
    persistence* const its = one.in_file(held).persistent.get();
    if (its == nullptr or its->record.waits_until.count() == 0) return;
    its->record.waits_until = {};
    record_state(held, one);
}

namespace {

// Opens without a record that delete the file end with this process, without the removal. The next
// process removes it with the last of the recorded ones.
void record_removal(const file_section& held, open& one) noexcept {
    const auto deletes = [&](open* const other) {
        const open_in_file& place = other->in_file(held);
        return place.deletes_on_close and place.persistent == nullptr;
    };
    if (one.in_file(held).persistent == nullptr or not std::ranges::any_of(one.file->opens(held), deletes))
        return;
    one.file->set_delete_pending(held, one.shared_from_this());
    record_states(held, *one.file);
}

// Nothing is removed without removers. The records of those that have been closed tell the next
// process to remove the file.
void drop_removal(const file_section& held, file_state& file,
                  std::vector<std::shared_ptr<open>>& unused) noexcept {
    for (open* const one : file.opens(held))
        one->in_file(held).deletes_on_close = false;
    if (file.is_delete_pending(held) and not file.opens(held).empty())
        std::ranges::move(file.clear_delete_pending(held), std::back_inserter(unused));
    else
        std::ranges::move(file.take_removers(held), std::back_inserter(unused));
    ENSURE(file.removers(held).empty(), "a file without removers keeps its name");
}

[[nodiscard]] bool has_record(const file_section& held, file_state& file) noexcept {
    const auto is_recorded = [&](const auto& one) { return one->in_file(held).persistent != nullptr; };
    return std::ranges::any_of(file.opens(held), is_recorded) or
           std::ranges::any_of(file.removers(held), is_recorded);
}

}  // namespace

void leave_persistent_opens(server_context& host) noexcept {
    std::vector<std::shared_ptr<open>> persistent;
    for (const std::shared_ptr<open>& one : host.opens.all())
        if (one->is_persistent() and one->file != nullptr) persistent.push_back(one);
    for (const std::shared_ptr<open>& one : persistent) {
        const file_section held(*one->file);
        record_removal(held, *one);
    }
    const share_list::snapshot shares = host.shares.current();
    for (const std::shared_ptr<share>& each : *shares)
        if (each->configuration().journal != nullptr) each->configuration().journal->freeze();
    // Those of shares that a reload has removed, too.
    for (const std::shared_ptr<open>& one : persistent)
        one->through->configuration().journal->freeze();
    host.unrestored.clear();  // for the next process
    for (const std::shared_ptr<open>& one : host.opens.all()) {
        if (one->file == nullptr) continue;
        std::vector<std::shared_ptr<open>> unused;  // released after the section
        const file_section held(*one->file);
        if (not has_record(held, *one->file)) continue;
        drop_removal(held, *one->file, unused);
        // The file of a stream, too, keeps its name.
        if (one->file->base != nullptr) drop_removal(held, *one->file->base, unused);
    }
}

void forget_record(const file_section& held, open& one) noexcept {
    open_in_file& place = one.in_file(held);
    if (place.persistent == nullptr or place.persistent->is_closed) return;
    ENSURE(one.file->persistent_opens(held) != 0, "a persistent open is counted in its file");
    --one.file->persistent_opens(held);
    // This open removes the file, and a server that restores the record does so instead. The record
    // goes after the removal.
    const auto& removers = one.file->removers(held);
    const bool removes = std::ranges::any_of(removers, [&](const auto& each) { return each.get() == &one; });
    if (not removes) return place.persistent.reset();
    place.persistent->is_closed = true;
    record_state(held, one);
}

void forget_removers(const file_section& held, std::span<const std::shared_ptr<open>> removers) noexcept {
    for (const std::shared_ptr<open>& each : removers) {
        open_in_file& place = each->in_file(held);
        if (place.persistent != nullptr and place.persistent->is_closed) place.persistent.reset();
    }
}

}  // namespace sluice::smb::server
