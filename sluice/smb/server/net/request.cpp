#include "sluice/smb/server/net/request.hpp"

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

request::request(replier& from, server::connection& whole, const wire::message_view& message,
                 compound_state& compound) noexcept
    : answer(from.buffers()), replier_(from), connection_(whole), message_(message), compound_(compound) {
    ENSURE(loop().is_owner(), "a request is served on the loop of its connection");
    from.enter(*this);
}

request::~request() {
    ENSURE(waits_for_ == nullptr, "a request that ends waits for nothing");
    ENSURE(link.is_linked(), "a request is in the list of its connection until it ends");
    if (in_sequence_of_ != nullptr) in_sequence_of_->finished(in_sequence_at_);
    replier_.leave(*this);
}

server_context& request::host() const noexcept {
    return replier_.host();
}

bool request::sign_reply_with(const std::shared_ptr<auth::signer>& by) noexcept {
    if (signs_reply_ and signs_reply_->with == by) return true;
    auto once = by->permit({.message_id = header().message_id,
                            .sender = auth::message_sender::server,
                            .is_cancel = false,
                            .ids = header().credit_charge});
    if (not once) return false;
    signs_reply_.emplace(by, *std::move(once));
    return true;
}

io::io_multiplexer& request::loop() const noexcept {
    return replier_.loop();
}

std::shared_ptr<open> request::find_open(const wire::file_id& named) noexcept {
    ENSURE(session != nullptr, "an open is found for a session");
    // A related request is for the file of the one before it, whatever it names
    // ([MS-SMB2] 3.3.5.2.7.2).
    if (is_related and not compound_.file and named == wire::file_id_of_previous) return nullptr;
    const wire::file_id id = is_related ? compound_.file.value_or(named) : named;
    std::shared_ptr<open> found = host().opens.find(id);
    if (found == nullptr or not found->is_live() or not found->is_of(*session)) return nullptr;
    if (tree != nullptr and not found->is_of(*tree)) return nullptr;
    ENSURE(found->is_pipe() == (found->file == nullptr), "an open is one of a pipe, or of a file");
    compound_.file = id;
    past = found->past;
    end_replays(*found);
    return comes_in_sequence(found) ? found : nullptr;
}

// A repeated CREATE returns a persistent open also after its use: the client may have lost the
// first reply together with those to its next requests ([MS-SMB2] 3.3.5.21 and the like, "If
// Open.IsPersistent is FALSE ...").
void request::end_replays(open& of) noexcept {
    if (not of.is_persistent()) host().replays.end_eligibility(of);
}

bool request::comes_in_sequence(const std::shared_ptr<open>& to) noexcept {
    if (in_sequence_of_ == to or not replier_.agreed.is_at_least(wire::dialect::smb_3_0)) return true;
    const bool is_replay = wire::has(header().flags, wire::header_flags::replay);
    if (const auto arrived = to->arrived(header().channel_sequence, is_replay)) {
        ENSURE(in_sequence_of_ == nullptr, "a request counts at one open");
        in_sequence_of_ = to;
        in_sequence_at_ = *arrived;
        return true;
    }
    if (not is_refused_when_late(header().command)) return true;
    stale_status_ = wire::nt_status::file_not_available;
    return false;
}

bool request::charge_covers(std::uint64_t payload_bytes) const noexcept {
    if (not wire::has(replier_.agreed.capabilities, wire::capabilities::large_mtu))
        return payload_bytes <= limits::transfer_bytes_max_single_credit;
    return wire::credit_charge_of(payload_bytes) <= std::max<std::uint64_t>(header().credit_charge, 1);
}

io::task<wire::nt_status> request::pend(one_shot_event<wire::nt_status>& until) noexcept {
    ENSURE(loop().is_owner() and link.is_linked(), "a request waits on its loop, in its connection's list");
    if (interrupted_) co_return *interrupted_;
    // A request that opens a file, or sets or removes a name, waits for caches to be broken, which
    // ends in time. Later messages of its frame can wait as long.
    const bool names = header().command == wire::command::set_info;
    const bool opens = header().command == wire::command::create;
    const bool ends_in_time = names or opens;
    if (not until.is_set() and not is_last_of_frame and not ends_in_time)
        co_return wire::nt_status::internal_error;
    if (host().breaks.any()) {
        io::task<void> breaks_sent = host().breaks.none_left(loop());
        co_await std::move(breaks_sent);
        if (interrupted_) co_return *interrupted_;
    }
    const bool wants_interim = opens or (is_last_of_frame and not names);
    if (not until.is_set() and not replier_.count_pending(*this))
        co_return wire::nt_status::insufficient_resources;
    if (not until.is_set()) replier_.send_earlier_replies(*this);
    if (not until.is_set() and wants_interim and async_id == 0 and not replier_.send_interim(*this))
        co_return wire::nt_status::insufficient_resources;
    io::task<wire::nt_status> waiting = wait(until);
    co_return co_await std::move(waiting);
}

io::task<wire::nt_status> request::wait(one_shot_event<wire::nt_status>& until) noexcept {
    if (interrupted_) co_return *interrupted_;
    ENSURE(waits_for_ == nullptr, "a request waits for one event at a time");
    waits_for_ = &until;
    const wire::nt_status outcome = co_await within_work(until.wait());
    ENSURE(waits_for_ == &until, "waits_for_ stays the same during a wait");
    waits_for_ = nullptr;
    co_return outcome;
}

void request::interrupt(wire::nt_status why) noexcept {
    ENSURE(loop().is_owner(), "a request is interrupted on its loop");
    if (not interrupted_) interrupted_ = why;
    if (waits_for_ != nullptr) waits_for_->set(why);
    cancellation_.cancel();
}

void request::cancel() noexcept {
    ENSURE(loop().is_owner(), "a request is cancelled on its loop");
    if (defers_cancel_)
        has_deferred_cancel_ = true;
    else
        interrupt(wire::nt_status::cancelled);
}

wire::nt_status status_of_cancelled_call(const request& by) noexcept {
    ENSURE(by.interrupted().has_value(), "only an interrupt cancels a call");
    return *by.interrupted();
}

}  // namespace sluice::smb::server
