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
    ENSURE(requests_.empty() and channels_.empty(), "a connection ends before it goes");
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

// A copy, because a channel that ends leaves the table.
[[nodiscard]] std::vector<std::shared_ptr<channel>> all_of(
    const std::unordered_map<std::uint64_t, std::shared_ptr<channel>>& table) {
    std::vector<std::shared_ptr<channel>> all;
    for (const auto& [id, one] : table)
        all.push_back(one);
    return all;
}

}  // namespace

io::task<void> connection::run() noexcept {
    tasks_.spawn(send_all());
    tasks_.spawn(enforce_session_deadline());
    io::task<void> receiving = receive_all();
    co_await io::in_scope(tasks_.scope(), std::move(receiving));

    begin_closing();
    lose_channels();
    has_lost_channels_ = true;
    for (request& waiting : requests_)
        if (not is_found_again(waiting)) waiting.interrupt(wire::nt_status::cancelled);
    writer_.finish();
    tasks_.cancel();
    co_await tasks_.join();
    ENSURE(requests_.empty(), "requests end with their tasks");
    end_channels();
}

void connection::begin_closing() noexcept {
    ENSURE(loop().is_owner(), "a connection closes on its home loop");
    is_closing_.store(true, std::memory_order_relaxed);
    if (admitted.handle != nullptr) admitted.handle->set_closing();
}

// Sessions with other channels continue, and these channels stay with them until the requests in
// flight have ended; the other sessions end.
void connection::lose_channels() noexcept {
    ENSURE(is_closing() and not has_lost_channels_, "a connection loses its channels once, when it closes");
    for (const std::shared_ptr<channel>& one : all_of(channels_))
        host_.functions().lose_channel(host_, *one);
}

std::shared_ptr<channel> connection::find_channel(std::uint64_t session_id) noexcept {
    ENSURE(loop().is_owner(), "the channels of a connection are its loop's");
    const auto found = channels_.find(session_id);
    if (found == channels_.end()) return nullptr;
    const std::shared_ptr<channel> one = found->second;
    ENSURE(one->session->id == session_id, "a channel is found by the ID of its session");
    if (not one->has_ended()) return one;
    forget(*one);
    return nullptr;
}

bool connection::add_channel(const std::shared_ptr<channel>& fresh) {
    ENSURE(loop().is_owner() and fresh->connection == admitted.handle,
           "a channel is in the table of its own connection");
    if (not has_room_for_channel() or not channels_.emplace(fresh->session->id, fresh).second) return false;
    channel_count_.set(channels_.size());
    return true;
}

void connection::forget(channel& ended) noexcept {
    ENSURE(loop().is_owner() and ended.has_ended(),
           "a channel that has ended leaves the table of its connection");
    const auto found = channels_.find(ended.session->id);
    if (found == channels_.end() or found->second.get() != &ended) return;
    const std::shared_ptr<channel> held = std::move(found->second);
    channels_.erase(found);
    channel_count_.set(channels_.size());
    held->counted.reset();
    remember(*held);
}

void connection::record_undelivered(std::uint64_t at) noexcept {
    ENSURE(at <= writer_.queued_bytes() or at == ~std::uint64_t{0}, "a message ends within the queued bytes");
    undelivered_at_ = at;
    check_undelivered();
}

void connection::check_undelivered() noexcept {
    ENSURE(loop().is_owner(), "a connection asks for its own deliveries");
    if (undelivered_at_ and has_delivered(*undelivered_at_)) undelivered_at_.reset();
    admitted.handle->record_undelivered(undelivered_at_.has_value());
}

void connection::close(std::string_view why) noexcept {
    at_home([why](connection& self) noexcept { self.close_here(why); });
}

void connection::close_here(std::string_view why) noexcept {
    ENSURE(loop().is_owner(), "a connection is closed on its home loop");
    if (is_closing()) {
        for (request& waiting : requests_)
            waiting.interrupt(wire::nt_status::cancelled);
        return;
    }
    begin_closing();
    host_.log().write(event_severity::info, "connection closed", {{"peer", peer_text_}, {"why", why}});
    // Wakes receive_all(), whose end ends everything. Queued messages are lost: a client that
    // breaks the protocol has no claim to them.
    tasks_.cancel();
}

namespace {

constexpr std::size_t buffer_bytes_always = 1U << 20;
constexpr std::chrono::milliseconds pause_without_buffers{5};

}  // namespace

// Whether the requests that are served and the replies that are not sent leave room for another
// request. While all connections of the loop together have much less than its bound, each may have
// much; the fewer bytes are free, the less. One request at a time is always possible.
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
        if (home_.buffers.taken_bytes() > home_.buffer_bytes_max) enforce_buffer_limit();
        if (not may_receive()) {
            io::task<void> waiting = room_to_receive();
            co_await std::move(waiting);
        }
        // Short frames can decompress to long messages, and many of them may have arrived.
        if (decompressed_since_pause_ >= limits::compressed_read_bytes_max) {
            decompressed_since_pause_ = 0;
            io::task<void> waiting = next_turn(loop());
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

io::task<void> connection::enforce_session_deadline() noexcept {
    const deadline until(limits::first_session_within);
    const auto slept = co_await io::co_sleep(loop(), until);
    if (not slept or admitted.has_had_session) co_return;
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
    for (const std::shared_ptr<channel>& one : all_of(channels_)) {
        host_.functions().end_channel(host_, *one);
        // Ended by another loop, whose post would come too late.
        if (one->has_ended()) forget(*one);
    }
    ENSURE(channels_.empty(), "a channel that has ended is in no table");
}

void connection::interrupt(const channel& of, const tree* only, wire::nt_status why) noexcept {
    ENSURE(loop().is_owner(), "requests are interrupted on their loop");
    for (request& waiting : requests_)
        if (waiting.channel.get() == &of and (only == nullptr or waiting.tree.get() == only))
            waiting.interrupt(why);
}

}  // namespace sluice::smb::server
