#include "sluice/smb/wire/file/lock.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"

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
    if (not agreed.is_at_least(wire::dialect::smb_3_0)) return of.durable and of.durable->is_resilient;
    return of.durable or wire::has(agreed.capabilities, wire::capabilities::multi_channel);
}

[[nodiscard]] nt_status check(const open& of) noexcept {
    if (of.is_pipe() or of.is_directory()) return nt_status::invalid_device_request;
    if (not wire::has_any(of.access, access_mask::read_data | access_mask::write_data | access_mask::execute))
        return nt_status::access_denied;
    return nt_status::success;
}

// Call it after locks were added or removed: those counted in advance may not have been granted.
void count_locks(open& of) noexcept {
    (void)of.counted_locks.resize(of.file->locks().claims_of(of));
}

// Ranges that were unlocked before the one that fails stay unlocked ([MS-SMB2] 3.3.5.14.1).
[[nodiscard]] nt_status unlock(open& of, const wire::lock_list& elements) noexcept {
    for (std::size_t i = 0; i != elements.size(); ++i) {
        const wire::lock_element element = elements[i];
        if (element.flags != lock_flags::unlock) return nt_status::invalid_parameter;
        if (not of.file->locks().unlock(of, range_of(element))) return nt_status::range_not_locked;
        count_locks(of);
    }
    return nt_status::success;
}

// Several at once cannot wait: it would be undefined which of them are held during the wait.
[[nodiscard]] nt_status check_wanted(const request& r, open& of, const wire::lock_list& elements) noexcept {
    // A waiting lock counts as one that will be held.
    const std::size_t claims = of.file->locks().claims_of(of) + elements.size();
    if (claims > limits::locks_per_open_max) {
        r.host().rejections.add(limit::locks_per_open, r.session->user.name);
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
    return of.counted_locks.resize(claims) ? nt_status::success : nt_status::insufficient_resources;
}

[[nodiscard]] byte_range_locks::lock wanted_by(const open& of, const wire::lock_element& element) noexcept {
    return {.owner = &of,
            .where = range_of(element),
            .is_exclusive = wire::has(element.flags, lock_flags::exclusive)};
}

// All of them, or none.
[[nodiscard]] bool try_lock_all(open& of, const wire::lock_list& elements) {
    byte_range_locks& locks = of.file->locks();
    if (elements.size() == 1) return locks.try_lock(wanted_by(of, elements[0]));
    std::vector<byte_range_locks::lock> wanted;
    wanted.reserve(elements.size());
    for (std::size_t i = 0; i != elements.size(); ++i)
        wanted.push_back(wanted_by(of, elements[i]));
    return locks.try_lock_all(wanted);
}

// Other servers do not report their unlocks: while there are waiters, this tries again.
[[nodiscard]] io::task<void> retry_locks(server_context& host, std::shared_ptr<file_state> of) noexcept {
    of->retries_locks = true;
    for (std::chrono::milliseconds pause = limits::peer_pause_min; of->locks().has_waiters();
         pause = std::min(2 * pause, limits::peer_pause_max)) {
        const deadline until(pause);
        io::task<bool> waiting = pass(host.loop(), until);
        const bool has_slept = co_await unlatched(host.latch(), std::move(waiting));
        if (not has_slept) break;
        of->locks().retry_waiters();
    }
    of->retries_locks = false;
}

// Suspends until the lock is granted, the open or the session has ended, or the client has
// cancelled.
[[nodiscard]] io::task<nt_status> wait_for_lock(request& r, std::shared_ptr<open> of,
                                                wire::lock_element element) {
    event<nt_status> granted(r.loop());
    byte_range_locks::waiter waiting{.wanted = wanted_by(*of, element), .granted = &granted};
    const std::shared_ptr<file_state> file = of->file;
    file->locks().enqueue(waiting);
    count_locks(*of);
    if (file->peers() != nullptr and not file->retries_locks)
        r.host().background.spawn(retry_locks(r.host(), file));
    io::task<nt_status> pending = r.pend(granted);
    const nt_status outcome = co_await std::move(pending);
    file->locks().forget(waiting);
    count_locks(*of);
    // For a request that waits for a lock, the end of the session or tree is that of the open
    // ([MS-FSA] 2.1.5.9).
    const bool has_lost_open =
        outcome == nt_status::user_session_deleted or outcome == nt_status::network_name_deleted;
    co_return has_lost_open ? nt_status::range_not_locked : outcome;
}

[[nodiscard]] io::task<nt_status> lock(request& r, std::shared_ptr<open> of, wire::lock_list elements) {
    if (const nt_status refused = check_wanted(r, *of, elements); refused != nt_status::success)
        co_return refused;
    end_read_caching(r.host(), *of->file, of.get());
    const bool is_granted = try_lock_all(*of, elements);
    ENSURE(of->file->locks().claims_of(*of) <= limits::locks_per_open_max,
           "an open has no more locks than its bound");
    count_locks(*of);
    if (is_granted) co_return nt_status::success;
    if (wire::has(elements[0].flags, lock_flags::fail_immediately)) co_return nt_status::lock_not_granted;
    io::task<nt_status> waiting = wait_for_lock(r, of, elements[0]);
    co_return co_await std::move(waiting);
}

}  // namespace

io::task<nt_status> serve_lock(request& r) {
    const auto args = wire::decode_lock(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    const std::shared_ptr<open> of = r.find_open(args->file);
    if (of == nullptr) co_return nt_status::file_closed;
    if (const nt_status refused = check(*of); refused != nt_status::success) co_return refused;

    nt_status status = nt_status::success;
    const bool is_counted = counts_sequence(r, *of);
    if (not is_counted or not of->lock_requests.is_repeated(args->sequence_index, args->sequence_number)) {
        if (wire::has(args->elements[0].flags, lock_flags::unlock)) {
            status = unlock(*of, args->elements);
        } else {
            io::task<nt_status> locking = lock(r, of, args->elements);
            status = co_await std::move(locking);
        }
        if (status != nt_status::success) co_return status;
        if (is_counted) of->lock_requests.note(args->sequence_index, args->sequence_number);
    }
    byte_writer* const body = r.begin_reply(8);
    if (body == nullptr) co_return nt_status::insufficient_resources;
    encode(*body, wire::lock_reply{});
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
