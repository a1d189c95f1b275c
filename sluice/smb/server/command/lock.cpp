#include "sluice/smb/wire/file/lock.hpp"

#include <optional>
#include <utility>

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::lock_flags;
using wire::nt_status;

namespace {

using range = byte_range_locks::range;

[[nodiscard]] range range_of(const wire::lock_element& element) noexcept {
    return {.offset = element.offset_bytes, .length = element.length_bytes};
}

// Clients number their requests only where an open may outlive its connection, or have several.
[[nodiscard]] bool counts_sequence(const request& r, const open& of) noexcept {
    const negotiated& agreed = r.connection().agreed;
    if (not agreed.is_at_least(wire::dialect::smb_2_1)) return false;
    const std::optional<durability> kept = of.durable();
    if (not agreed.is_at_least(wire::dialect::smb_3_0)) return kept and kept->is_resilient;
    return kept or wire::has(agreed.capabilities, wire::capabilities::multi_channel);
}

[[nodiscard]] nt_status check(const open& of) noexcept {
    if (of.is_pipe() or of.is_directory()) return nt_status::invalid_device_request;
    if (not wire::has_any(of.access, access_mask::read_data | access_mask::write_data | access_mask::execute))
        return nt_status::access_denied;
    return nt_status::success;
}

// Call it after locks were added or removed: those counted in advance may not have been granted.
void count_locks(const file_section& held, open& of) noexcept {
    ENSURE(of.in_file(held).counted_locks.try_resize(of.file->locks(held).claims_of(of)),
           "locks are counted before they are taken");
}

// Ranges that were unlocked before the one that fails stay unlocked ([MS-SMB2] 3.3.5.14.1).
[[nodiscard]] nt_status unlock(const file_section& held, open& of, const wire::lock_list& elements) noexcept {
    for (std::size_t i = 0; i != elements.size(); ++i) {
        const wire::lock_element element = elements[i];
        if (element.flags != lock_flags::unlock) return nt_status::invalid_parameter;
        if (not of.file->locks(held).unlock(of, range_of(element))) return nt_status::range_not_locked;
        count_locks(held, of);
    }
    return nt_status::success;
}

// Several at once cannot wait: it would be undefined which of them are held during the wait.
// `exceeded`: the limit that refuses them, to be counted after the section, because that is logged.
[[nodiscard]] nt_status check_wanted(const file_section& held, open& of, const wire::lock_list& elements,
                                     std::optional<limit>& exceeded) noexcept {
    // A waiting lock counts as one that will be held.
    const std::size_t claims = of.file->locks(held).claims_of(of) + elements.size();
    const bool is_persistent = of.in_file(held).persistent != nullptr;
    if (claims > limits::locks_per_open_max or
        (is_persistent and claims > limits::locks_per_persistent_open_max)) {
        exceeded = is_persistent ? limit::locks_per_persistent_open : limit::locks_per_open;
        return nt_status::insufficient_resources;
    }
    for (std::size_t i = 0; i != elements.size(); ++i) {
        const wire::lock_element element = elements[i];
        const bool waits = not wire::has(element.flags, lock_flags::fail_immediately);
        const lock_flags kind = wire::without(element.flags, lock_flags::fail_immediately);
        if (kind != lock_flags::shared and kind != lock_flags::exclusive) return nt_status::invalid_parameter;
        if (waits and elements.size() > 1) return nt_status::invalid_parameter;
        if (not byte_range_locks::is_lockable(range_of(element))) return nt_status::invalid_lock_range;
    }
    if (of.in_file(held).counted_locks.try_resize(claims)) return nt_status::success;
    exceeded = limit::locks;
    return nt_status::insufficient_resources;
}

[[nodiscard]] byte_range_locks::lock wanted_by(const open& of, const wire::lock_element& element) noexcept {
    return {.owner = &of,
            .where = range_of(element),
            .is_exclusive = wire::has(element.flags, lock_flags::exclusive)};
}

// All of them, or none.
[[nodiscard]] bool try_lock_all(const file_section& held, open& of, const wire::lock_list& elements) {
    byte_range_locks& locks = of.file->locks(held);
    if (elements.size() == 1) return locks.try_lock(wanted_by(of, elements[0]));
    std::vector<byte_range_locks::lock> wanted;
    wanted.reserve(elements.size());
    for (std::size_t i = 0; i != elements.size(); ++i)
        wanted.push_back(wanted_by(of, elements[i]));
    return locks.try_lock_all(wanted);
}

// Other servers do not report their unlocks: while there are waiters, this tries again.
[[nodiscard]] io::task<void> retry_locks(server_context& host, std::shared_ptr<file_state> of) noexcept {
    for (std::chrono::milliseconds pause = limits::peer_pause_min;;
         pause = std::min(2 * pause, limits::peer_pause_max)) {
        const deadline until(pause);
        io::task<bool> waiting = pass(host.loop(), until);
        const bool has_slept = co_await within_work(std::move(waiting));
        const file_section held(*of);
        if (has_slept) of->locks(held).retry_waiters();
        record_late_grants(held, *of);
        if (has_slept and of->locks(held).has_waiters()) continue;
        of->retries_locks(held) = false;
        break;
    }
}

// A lock that a request waits for, and that is counted already: in the list of the file from
// its construction on.
class lock_wait {
public:
    lock_wait(const file_section& held, request& r, std::shared_ptr<open> of,
              const wire::lock_element& element, const byte_range_locks::sequence& numbered)
        : of_(std::move(of)),
          granted_(r.loop()),
          place_{.wanted = wanted_by(*of_, element), .granted = &granted_, .numbered = numbered} {
        of_->file->locks(held).enqueue(place_);
    }
    lock_wait(const lock_wait&) = delete;
    lock_wait& operator=(const lock_wait&) = delete;
    ~lock_wait() {
        if (not has_left_) (void)leave();
    }

    /// Suspends until the lock is granted, the open or the session has ended, or the client has
    /// cancelled.
    [[nodiscard]] io::task<nt_status> wait(request& r) noexcept {
        io::task<nt_status> pending = r.pend(granted_);
        const nt_status outcome = co_await std::move(pending);
        // The lock may have been granted when the request was interrupted.
        if (leave()) co_return nt_status::success;
        // For a request that waits for a lock, the end of the session or tree is that of the open
        // ([MS-FSA] 2.1.5.9).
        const bool has_lost_open =
            outcome == nt_status::user_session_deleted or outcome == nt_status::network_name_deleted;
        co_return has_lost_open ? nt_status::range_not_locked : outcome;
    }

private:
    // Leaves the list. Returns whether the lock was granted before.
    bool leave() noexcept {
        has_left_ = true;
        const file_section held(*of_->file);
        of_->file->locks(held).forget(place_);
        count_locks(held, *of_);
        return place_.is_held;
    }

    std::shared_ptr<open> of_;
    one_shot_event<nt_status> granted_;
    byte_range_locks::waiter place_;
    bool has_left_ = false;
};

// The section of a LOCK in its file. Returns PENDING if the request has to wait, with `waits`.
[[nodiscard]] nt_status lock(const file_section& held, request& r, const std::shared_ptr<open>& of,
                             const wire::lock_list& elements, const byte_range_locks::sequence& numbered,
                             decided_breaks& breaks, std::optional<lock_wait>& waits,
                             std::optional<limit>& exceeded) {
    if (const nt_status refused = check_wanted(held, *of, elements, exceeded); refused != nt_status::success)
        return refused;
    end_read_caching(held, r.host(), *of->file, of.get(), breaks);
    const bool is_granted = try_lock_all(held, *of, elements);
    ENSURE(of->file->locks(held).claims_of(*of) <= limits::locks_per_open_max,
           "an open has no more locks than its bound");
    const bool has_to_wait =
        not is_granted and not wire::has(elements[0].flags, lock_flags::fail_immediately);
    if (has_to_wait) {
        waits.emplace(held, r, of, elements[0], numbered);
        return nt_status::pending;
    }
    count_locks(held, *of);
    return is_granted ? nt_status::success : nt_status::lock_not_granted;
}

[[nodiscard]] bool begins_retries(const file_section& held, file_state& of) noexcept {
    ENSURE(of.locks(held).has_waiters(), "locks that wait are retried");
    return of.has_peers() and not std::exchange(of.retries_locks(held), true);
}

}  // namespace

io::task<nt_status> serve_lock(request& r) {
    const auto args = wire::decode_lock(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    const std::shared_ptr<open> of = r.find_open(args->file);
    if (of == nullptr) co_return nt_status::file_closed;
    if (const nt_status refused = check(*of); refused != nt_status::success) co_return refused;

    const bool is_counted = counts_sequence(r, *of);
    nt_status status = nt_status::success;
    decided_breaks breaks;
    std::optional<lock_wait> waits;
    std::optional<limit> exceeded;
    bool retries = false;
    {
        // A repetition on another channel comes before this section, or after it.
        const file_section held(*of->file);
        open_in_file& place = of->in_file(held);
        if (place.is_ending) {
            status = nt_status::file_closed;
        } else if (not is_counted or
                   not place.lock_requests.is_repeated(args->sequence_index, args->sequence_number)) {
            const bool unlocks = wire::has(args->elements[0].flags, lock_flags::unlock);
            const byte_range_locks::sequence numbered{.in = is_counted ? &place.lock_requests : nullptr,
                                                      .index = args->sequence_index,
                                                      .number = args->sequence_number};
            status = unlocks ? unlock(held, *of, args->elements)
                             : lock(held, r, of, args->elements, numbered, breaks, waits, exceeded);
            if (status == nt_status::success and is_counted)
                place.lock_requests.record(args->sequence_index, args->sequence_number);
            // Also if it has failed: the number of an earlier one may be forgotten.
            record_state(held, *of);
            record_late_grants(held, *of->file);
            if (waits) retries = begins_retries(held, *of->file);
        }
    }
    (void)breaks.send(r.host());
    if (exceeded) r.host().rejections.add(*exceeded, r.session->admitted.client.name());
    if (retries) r.host().background.spawn(retry_locks(r.host(), of->file));
    if (waits) {
        io::task<nt_status> waiting = waits->wait(r);
        status = co_await std::move(waiting);
        waits.reset();
    }
    if (status != nt_status::success) co_return status;
    byte_writer* const body = r.begin_reply(8);
    if (body == nullptr) co_return nt_status::insufficient_resources;
    encode(*body, wire::lock_reply{});
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
