#include "sluice/smb/client/connection.hpp"

#include <algorithm>

#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/wire/message/echo.hpp"

namespace sluice::smb::client {

using wire::nt_status;

connection::connection(dependencies deps, io::socket_handle socket, connection_options options) noexcept
    : deps_(deps),
      options_(std::move(options)),
      socket_(std::move(socket)),
      tasks_(deps.loop),
      staged_(limits::staging_bytes),
      last_received_(deps.clock.steady_now()) {}

connection::~connection() {
    ENSURE(tasks_.size() == 0 and not is_work_posted_, "connection destroyed before close()");
}

io::task<outcome<not_null_ptr<connection>>> connection::open(dependencies deps, io::socket_handle socket,
                                                             connection_options options) noexcept {
    std::unique_ptr<connection> fresh(new connection(deps, std::move(socket), std::move(options)));
    fresh->running_ = 2;
    fresh->tasks_.spawn(fresh->send_all());
    fresh->tasks_.spawn(fresh->receive_all());
    fresh->tasks_.spawn(fresh->watch());
    io::task<outcome<void>> agreeing = fresh->negotiate();
    const outcome<void> agreed = co_await std::move(agreeing);
    if (agreed) co_return not_null_ptr(std::move(fresh));
    io::task<void> close_task = io::uncancelled(fresh->close());
    co_await std::move(close_task);
    co_return failed(agreed.error());
}

io::task<void> connection::close() noexcept {
    break_soon(client_error::of_io("close", ECANCELED));
    co_await tasks_.join();
    // The deferred work that was posted earlier runs before this resumes.
    while (is_work_posted_)
        co_await io::yield(deps_.loop);
    (void)socket_.close();
}

void connection::break_soon(client_error why) noexcept {
    if (broken_) return;
    broken_ = why;
    tasks_.cancel();
    post_deferred_work();  // the sender may be idle, and does not wait for I/O
}

io::task<outcome<reply>> connection::refused_for_memory(request_options how) noexcept {
    co_return failed(client_error::of_io(how.step, ENOMEM));
}

io::task<outcome<reply>> connection::perform(wire::command code, pool_buffer memory,
                                             std::size_t message_bytes, request_options how) noexcept {
    if (not how.uses_skipped) {
        credit_wait credits(*this, charge_of(how.payload_bytes));
        const outcome<void> paid = co_await credits;
        if (not paid) co_return failed(client_error::of_io(how.step, paid.error().code()));
    }
    exchange one(*this, std::move(memory), message_bytes, how);
    one.command_ = code;
    const outcome<reply> answered = co_await one;
    if (not answered) co_return failed(answered.error());
    const nt_status status = answered->header.status;
    const bool has_body = wire::is_success(status) or status == nt_status::buffer_overflow or
                          status == nt_status::more_processing_required;
    if (not has_body) co_return failed(client_error::of_status(how.step, status));
    co_return *answered;
}

// --- credits

std::uint32_t connection::charge_of(std::uint64_t payload_bytes) const noexcept {
    if (not agreed_.has_large_mtu()) return 1;
    return static_cast<std::uint32_t>(wire::credit_charge_of(payload_bytes));
}

std::uint32_t connection::credited_bytes() const noexcept {
    if (not agreed_.has_large_mtu()) return 65536;
    // Half of the largest credit balance so far, so that two large requests can be in flight.
    const std::uint32_t credits = std::max(1U, credits_seen_max_ / 2);
    return std::min<std::uint32_t>(credits * 65536U, limits::transfer_bytes_max);
}

std::uint32_t connection::read_bytes_max() const noexcept {
    return std::max(1U, std::min(agreed_.read_bytes_max, credited_bytes()));
}
std::uint32_t connection::write_bytes_max() const noexcept {
    return std::max(1U, std::min(agreed_.write_bytes_max, credited_bytes()));
}

void connection::grant(std::uint16_t credits) noexcept {
    credits_ = std::min(limits::credits_max, credits_ + credits);
    credits_seen_max_ = std::max(credits_seen_max_, std::min(limits::credits_max, credits_ + charged_));
}

bool connection::skip_to(std::uint64_t message_id) noexcept {
    ENSURE(in_flight_ == 0 and skipped_ == 0 and message_id >= next_message_id_);
    const std::uint64_t count = message_id - next_message_id_;
    if (count >= credits_) return false;
    skipped_from_ = std::exchange(next_message_id_, message_id);
    skipped_ = static_cast<std::uint32_t>(count);
    credits_ -= skipped_;
    return true;
}

io::task<void> connection::use_skipped() noexcept {
    if (skipped_ == 0) co_return;
    const request_options how{.step = "use skipped message ids",
                              .payload_bytes = std::uint64_t{skipped_} << 16,
                              .uses_skipped = true};
    io::task<outcome<reply>> asking = call(wire::command::echo, wire::echo_args{}, how);
    (void)co_await std::move(asking);
}

bool connection::has_ids_for_channels() const noexcept {
    const bool needs_ids = agreed_.signing == auth::signing_algorithm::aes_gmac and options_.channels > 2;
    return not needs_ids or credits_ >= limits::binding_ids_per_channel * (options_.channels - 1);
}

// Resumes the waiters that have enough credits, in order, up to the first one that has not.
void connection::serve_credit_waits() noexcept {
    while (credit_wait* const first = credit_waits_.front()) {
        if (broken_ or first->is_cancelled_ or first->charge_ <= credits_) {
            credit_waits_.erase(*first);
            first->is_granted_ = not broken_ and not first->is_cancelled_;
            if (first->is_granted_) credits_ -= first->charge_;
            first->resume_waiter(first->is_granted_ ? 0 : ECANCELED);
            continue;
        }
        // No request is in flight whose reply could grant more credits.
        if (in_flight_ != 0) return;
        break_soon(
            client_error::of_protocol("wait for credits", "the server grants too few credits to continue"));
        return;
    }
}

bool credit_wait::await_ready() noexcept {
    if (over_.broken_) return true;
    if (not over_.credit_waits_.empty() or charge_ > over_.credits_) return false;
    over_.credits_ -= charge_;
    is_granted_ = true;
    return true;
}

bool credit_wait::begin(std::coroutine_handle<> waiter, io::cancel_scope* scope) noexcept {
    run_in(scope);
    if (is_refused()) return false;
    wait(waiter, over_.deps_.loop);
    over_.credit_waits_.push_back(*this);
    if (over_.in_flight_ == 0) over_.post_deferred_work();  // the waiter may never get its credits
    return true;
}

void credit_wait::end() noexcept {
    is_cancelled_ = true;
    // Credits that arrive later go to the next waiter. This one moves to the front, where it does
    // not delay others.
    over_.credit_waits_.erase(*this);
    over_.credit_waits_.push_front(*this);
    over_.post_deferred_work();
}

outcome<void> credit_wait::await_resume() noexcept {
    if (is_granted_) return {};
    if (over_.broken_) return failed(*over_.broken_);
    return failed(client_error::of_io("wait for credits", ECANCELED));
}

// --- requests in flight

exchange::exchange(connection& over, pool_buffer memory, std::size_t message_bytes,
                   const request_options& how) noexcept
    : awaited(nullptr),
      over_(over),
      how_(how),
      memory_(std::move(memory)),
      head_bytes_(wire::frame_prefix_bytes + message_bytes),
      payload_(how.payload) {}

bool exchange::begin(std::coroutine_handle<> waiter, io::cancel_scope* scope) noexcept {
    run_in(scope);
    if (over_.broken_) {
        error_ = over_.broken_;
        return false;
    }
    if (is_refused()) {
        // The credits assigned to it are lost with the connection.
        error_ = client_error::of_io(how_.step, ECANCELED);
        over_.break_soon(*error_);
        return false;
    }
    wait(waiter, over_.deps_.loop);
    over_.launch(*this);
    return true;
}

void exchange::end() noexcept {
    over_.break_soon(client_error::of_io(how_.step, ECANCELED));
}

outcome<reply> exchange::await_resume() noexcept {
    if (not error_) return reply_;
    // The purpose is this request's, the reason is the connection's.
    const client_error& why = *error_;
    switch (why.which()) {
        case client_error::kind::io:
            return failed(client_error::of_io(how_.step, why.code()));
        case client_error::kind::protocol:
            return failed(client_error::of_protocol(how_.step, why.rule()));
        default:
            return failed(why);
    }
}

exchange* connection::find(std::uint64_t message_id) noexcept {
    for (exchange& each : bucket_of(message_id))
        if (each.message_id_ == message_id) return &each;
    return nullptr;
}

// --- deferred work

void connection::post_deferred_work() noexcept {
    if (is_work_posted_) return;
    is_work_posted_ = true;
    deps_.loop.post(deferred_work_);
}

void connection::attend() noexcept {
    is_work_posted_ = false;
    serve_credit_waits();
    const bool has_work = not outbox_.empty() or broken_.has_value();
    if (idle_sender_ and has_work) std::exchange(idle_sender_, nullptr).resume();
}

// Completes all requests. Both tasks have ended, so no task accesses the memory of the requests.
void connection::finish() noexcept {
    ENSURE(broken_.has_value() and running_ == 0);
    while (exchange* const one = sending_.pop_front())
        if (one->is_answered_) one->resume_waiter(0);  // the reply that it has is still valid
    while (outbox_.pop_front() != nullptr) {}
    for (table_bucket& bucket : table_) {
        while (exchange* const one = bucket.pop_front()) {
            --in_flight_;
            one->error_ = broken_;
            one->resume_waiter(broken_->code() == ECANCELED ? ECANCELED : 0);
        }
    }
    serve_credit_waits();
}

bool connection::awaits_only_async_replies() const noexcept {
    return in_flight_ != 0 and in_flight_ == async_in_flight_;
}

// Ends the connection when the server owes a reply and has been silent for too long. An operation
// that the server announced as long may take longer; then an ECHO checks that the server responds.
// The parts into which the time for the logon is divided, at least: it is exceeded by at most one.
constexpr unsigned logon_steps = 10;

io::task<void> connection::watch() noexcept {
    using std::chrono::milliseconds;
    const auto step = std::chrono::duration_cast<milliseconds>(options_.reply_timeout) / 4;
    const auto early_step = std::max(
        milliseconds(1),
        std::min(step, std::chrono::duration_cast<milliseconds>(options_.connect_timeout) / logon_steps));
    std::size_t silent_steps = 0;
    milliseconds early_wait(0);
    auto heard = last_received_;
    while (not broken_) {
        const bool is_early = not is_logged_on_;
        const auto slept = co_await io::co_sleep(deps_.loop, is_early ? early_step : step);
        if (not slept or broken_) co_return;
        if (is_early and not is_logged_on_) {
            if (in_flight_ != 0) early_wait += early_step;
            if (early_wait >= options_.connect_timeout)
                break_soon(client_error::of_io("wait for the server", ETIMEDOUT));
            continue;
        }
        const bool is_silent = in_flight_ != 0 and heard == last_received_;
        heard = last_received_;
        // A part of a long reply may have arrived, over a slow line.
        if (is_silent) low_water_.expect(0);
        silent_steps = is_silent ? silent_steps + 1 : 0;
        if (silent_steps == 2 and awaits_only_async_replies()) tasks_.spawn(send_keepalive());
        if (silent_steps < 4) continue;
        break_soon(client_error::of_io("wait for the server", ETIMEDOUT));
    }
}

io::task<void> connection::send_keepalive() noexcept {
    io::task<outcome<reply>> asking =
        call(wire::command::echo, wire::echo_args{}, {.step = "check that the server responds"});
    (void)co_await std::move(asking);
}

}  // namespace sluice::smb::client
