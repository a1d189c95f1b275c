#include "sluice/smb/server/net/connection.hpp"

#include <algorithm>

#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/create/create.hpp"

namespace sluice::smb::server {

connection::connection(server_context& host, server_loop& home, io::socket_handle socket,
                       const io::socket_address& peer) noexcept
    : replier(host, home),
      admitted(this, client_address(peer)),
      socket_(std::move(socket)),
      peer_(peer),
      peer_text_(peer.text()),
      reader_(socket_, {home.buffers, &buffer_use_}),
      writer_(home.multiplexer, socket_, home.data.pipes),
      tasks_(home.multiplexer) {
    ENSURE(loop().is_owner(), "a connection begins on its home loop");
}

connection::~connection() {
    ENSURE(requests_.empty() and channels.empty(), "a connection ends before it goes");
    ENSURE(pending_count_.value() == 0 and pending_bytes_ == 0,
           "requests are counted as waiting until they end");
}

namespace {

// A CREATE that its client can find by its guid continues without a connection. Sent again on
// another channel, it must neither be done twice nor be refused because the first one was
// abandoned.
[[nodiscard]] bool is_found_again(const request& waiting) noexcept {
    if (waiting.session == nullptr or waiting.session->first_channel() == nullptr or
        waiting.header().command != wire::command::create)
        return false;
    const auto args = wire::decode_create(waiting.message());
    return args and args->contexts.durable_v2 and
           waiting.connection().agreed.is_at_least(wire::dialect::smb_3_0);
}

// Sessions with other channels continue, and these channels stay with them until the requests in
// flight have ended; the other sessions end.
void lose_channels(const std::unordered_map<std::uint64_t, std::shared_ptr<channel>>& all,
                   server_context& host) noexcept {
    std::vector<std::shared_ptr<channel>> losing;
    for (const auto& [id, one] : all)
        losing.push_back(one);
    for (const std::shared_ptr<channel>& one : losing) {
        one->is_established = false;
        if (one->session->first_channel() == nullptr) host.functions().end_session(host, *one->session, true);
    }
}

}  // namespace

io::task<void> connection::run() noexcept {
    tasks_.spawn(send_all());
    tasks_.spawn(expect_session());
    io::task<void> receiving = receive_all();
    co_await io::in_scope(tasks_.scope(), std::move(receiving));

    is_closing_.store(true, std::memory_order_relaxed);
    {
        const server_latch::hold held(host_.latch());
        lose_channels(channels, host_);
        has_lost_channels_ = true;
        for (request& waiting : requests_)
            if (not is_found_again(waiting)) waiting.interrupt(wire::nt_status::cancelled);
    }
    writer_.finish();
    tasks_.cancel();
    co_await tasks_.join();
    ENSURE(requests_.empty(), "requests end with their tasks");
    const server_latch::hold held(host_.latch());
    end_channels();
}

void connection::close(std::string_view why) noexcept {
    at_home([why](connection& self) noexcept { self.close_here(why); });
}

void connection::close_here(std::string_view why) noexcept {
    ENSURE(loop().is_owner(), "a connection is closed on its home loop");
    if (is_closing()) {
        const server_latch::hold held(host_.latch());
        for (request& waiting : requests_)
            waiting.interrupt(wire::nt_status::cancelled);
        return;
    }
    is_closing_.store(true, std::memory_order_relaxed);
    host_.log().write(event_severity::info, "connection closed", {{"peer", peer_text_}, {"why", why}});
    // Wakes receive_all(), whose end ends everything. Queued messages are lost: a client that
    // breaks the protocol has no claim to them.
    tasks_.cancel();
}

namespace {

constexpr std::size_t buffer_bytes_always = 1U << 20;
constexpr std::chrono::milliseconds pause_without_buffers{5};

}  // namespace

// Whether the requests that are served and the replies that are not sent leave room for another request.
// While all connections of the loop together have much less than its bound, each may have much; the fewer
// bytes are free, the less. One request at a time is always possible.
bool connection::may_receive() const noexcept {
    const std::size_t mine = buffer_use_.bytes();
    if (mine < buffer_bytes_always) return true;
    const std::size_t wanted_max = home_.buffer_bytes_max / 2;
    const std::size_t taken = home_.buffers.taken_bytes();
    return mine <= limits::buffer_bytes_per_connection_max and
           mine <= wanted_max - std::min(wanted_max, taken);
}

// Polls, because buffers are released in many places, and this is rare.
io::task<void> connection::room_to_receive() noexcept {
    while (not is_closing() and not may_receive()) {
        const deadline until(pause_without_buffers);
        io::task<bool> waiting = pass(loop(), until);
        const bool has_slept = co_await std::move(waiting);
        if (not has_slept) co_return;
    }
}

io::task<void> connection::receive_all() noexcept {
    while (not is_closing()) {
        co_await writer_.drained_to(limits::unsent_bytes_max);
        if (home_.buffers.taken_bytes() > home_.buffer_bytes_max) relieve_buffers();
        if (not may_receive()) {
            io::task<void> waiting = room_to_receive();
            co_await std::move(waiting);
        }
        const std::size_t bytes_max =
            admitted.has_had_session ? limits::frame_bytes_max : limits::frame_bytes_max_before_session;
        result<pool_buffer> frame = co_await reader_.next(bytes_max);
        if (not frame) {
            if (not is_closing() and frame.error() != std::errc::operation_canceled)
                host_.log().write(event_severity::detail, "connection lost",
                                  {{"peer", peer_text_}, {"why", frame.error().message()}});
            break;
        }
        if (not*frame) break;
        tasks_.spawn(serve_frame(*std::move(frame)));
    }
}

io::task<void> connection::send_all() noexcept {
    const result<void> sent = co_await writer_.run();
    // A connection that is closing ends once its remaining waits have ended.
    if (not sent and not is_closing()) close("the client does not receive replies");
}

io::task<void> connection::expect_session() noexcept {
    const deadline until(limits::first_session_within);
    const auto slept = co_await io::co_sleep(loop(), until);
    if (not slept or admitted.has_had_session) co_return;
    const server_latch::hold held(host_.latch());
    host_.rejections.add(limit::first_session, admitted.from.text());
    close("no session established in time");
}

void connection::leave(request& ending) noexcept {
    requests_.erase(ending);
    if (not ending.is_pending) return;
    ENSURE(pending_count_.value() != 0 and pending_bytes_ >= ending.frame_bytes,
           "a request that waits is counted");
    pending_count_.set(pending_count_.value() - 1);
    pending_bytes_ -= ending.frame_bytes;
}

void connection::end_channels() noexcept {
    // A copy of the pointers: a channel that ends leaves the table.
    std::vector<std::shared_ptr<channel>> ending;
    for (const auto& [id, one] : channels)
        ending.push_back(one);
    for (const std::shared_ptr<channel>& one : ending)
        host_.functions().end_channel(host_, *one);
    ENSURE(channels.empty(), "a channel that has ended is in no table");
}

void connection::interrupt(const session& of, const tree* only, wire::nt_status why) noexcept {
    ENSURE(host_.latch().is_mine());
    for (request& waiting : requests_)
        if (waiting.session.get() == &of and (only == nullptr or waiting.tree.get() == only))
            waiting.interrupt(why);
    // Calls are withdrawn by the loop that they return to.
    if (loop().is_owner()) return;
    do_on(loop(), [self = shared_from_this()] {
        const server_latch::hold held(self->host_.latch());
        ENSURE(self->loop().is_owner(), "calls are withdrawn by the loop that they return to");
        for (request& each : self->requests_)
            each.withdraw_calls();
    });
}

}  // namespace sluice::smb::server
