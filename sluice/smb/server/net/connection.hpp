#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/auth/preauth_integrity.hpp"
#include "sluice/smb/server/core/pending_breaks.hpp"
#include "sluice/smb/server/net/connection_registry.hpp"
#include "sluice/smb/server/net/credit_window.hpp"
#include "sluice/smb/server/net/data_path.hpp"
#include "sluice/smb/server/net/frame_stream.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/net/server_loop.hpp"
#include "sluice/smb/server/report/snapshot.hpp"
#include "sluice/smb/server/session/admitted.hpp"
#include "sluice/smb/server/session/channel.hpp"
#include "sluice/smb/server/session/negotiated.hpp"

namespace sluice::smb::server {

/// One connection of a client ([MS-SMB2] 3.3.1.7): receives its messages, has each served, and
/// sends the replies.
///
/// Frames are served in order of arrival, each in a coroutine of its own, which runs until it first
/// has to wait. So requests that do not wait are carried out in order, and one that waits does not
/// delay the others.
///
/// Invariants:
///   1. Every request in `requests_` lives in the frame of a task in `tasks_`.
///   2. run() returns after all of them have ended; then the connection is a channel of
///      no session any more.
///   3. `pending_count_` and `pending_bytes_` are those of the requests in
///      `requests_` that are pending.
///   4. A channel in `channels_` has the handle of this connection, and a session with the ID by
///   which it is found. It may have ended: then it leaves as soon as this loop detects it.
/// Loop-owned: the thread of its home loop, except where a member says otherwise. Other threads
/// reach it through its connection_handle. Shared by pointer only so that an item posted to its
/// loop can check whether the connection still exists.
class connection final : public replier, public std::enable_shared_from_this<connection> {
public:
    connection(server_context& host, server_loop& home, io::socket_handle socket,
               const io::socket_address& peer) noexcept;
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    /// Serves the client until it goes, breaks the protocol, or close() is called. Suspends.
    [[nodiscard]] io::task<void> run() noexcept;

    void close(std::string_view why) noexcept override;
    /// Returns whether the connection is closing: it sends nothing more, and accepts no logons. Any
    /// thread.
    [[nodiscard]] bool is_closing() const noexcept {
        // relaxed: only the flag is read; its consequences happen on the home loop.
        return is_closing_.load(std::memory_order_relaxed);
    }

    /// Returns whether the client has closed the connection but its channels are not yet removed.
    /// The home loop.
    [[nodiscard]] bool has_unprocessed_loss() const noexcept {
        return not has_lost_channels_ and socket_.is_peer_closed();
    }

    [[nodiscard]] data_path& data() const noexcept { return home_.data; }
    [[nodiscard]] const io::socket_address& peer() const noexcept { return peer_; }
    [[nodiscard]] const std::string& peer_text() const noexcept { return peer_text_; }
    /// The address without its port: for the choice of a loop.
    [[nodiscard]] std::string peer_host() const { return peer_text_.substr(0, peer_text_.rfind(':')); }

    /// Returns the state that `sluice status` shows. Allocates: the texts. Any thread.
    [[nodiscard]] channel_status status() const;
    /// Updates the highest use of each limit with that of this connection. Any thread.
    void add_to(limits_in_use& sum) const noexcept;
    /// `agreed` does not change any more: other threads may read it.
    void publish_agreed() noexcept {
        has_agreed_.store(true, std::memory_order_release);  // pairs with status()
    }

    traffic_counters counters;
    auth::preauth_integrity preauth;

    /// Returns the channel of a session on this connection, also while it is being established;
    /// null if there is none, or it has ended.
    [[nodiscard]] std::shared_ptr<channel> find_channel(std::uint64_t session_id) noexcept;
    /// Adds a channel that is in the list of its session. Returns false if the connection has too
    /// many channels, or already has one of that session.
    [[nodiscard]] bool add_channel(const std::shared_ptr<channel>& fresh);
    [[nodiscard]] bool has_room_for_channel() const noexcept {
        return channels_.size() < limits::sessions_per_connection_max;
    }
    [[nodiscard]] bool has_channels() const noexcept { return not channels_.empty(); }
    /// Removes a channel that has ended. Keeps its key to sign errors to requests that it signed.
    void forget(channel& ended) noexcept;
    admitted_connection admitted;

    void enter(request& fresh) noexcept override { requests_.push_back(fresh); }
    void leave(request& ending) noexcept override;
    [[nodiscard]] bool count_pending(request& r) noexcept override;
    void send_earlier_replies(request& r) noexcept override;
    [[nodiscard]] bool send_interim(request& r) noexcept override;
    /// The position in the sent stream at which a message ends, once that is known: another loop
    /// may send it.
    using place_in_stream = std::shared_ptr<std::atomic<std::uint64_t>>;
    /// Sends an unsolicited message, an oplock or lease break, `via` a channel, on whose connection
    /// it does nothing if that is gone; encrypted if `is_encrypted`. `encode` writes the body.
    /// `end` receives the position at which the message ends, for has_delivered(). `counted` ends
    /// when the message has been passed to the kernel. Any thread that holds no mutex.
    template <class Body>
    static void notify(std::shared_ptr<channel> via, bool is_encrypted, wire::command code, const Body& body,
                       place_in_stream end, pending_break counted) noexcept {
        const connection_handle& handle = *via->connection;
        handle.at_home([by = std::move(via), is_encrypted, code, body, end = std::move(end),
                        counted = std::move(counted)](replier* on) mutable noexcept {
            if (on == nullptr) return;
            connection& self = static_cast<connection&>(*on);
            reply message(self.buffers());
            if (byte_writer* const writer = message.begin(notification_bytes_max)) {
                encode(*writer, body);
                self.send_notification(is_encrypted ? by.get() : nullptr, code, message);
            }
            // relaxed: a number, that orders nothing.
            end->store(self.writer_.queued_bytes(), std::memory_order_relaxed);
            if (self.undelivered_at_) self.check_undelivered();
            if (counted) self.end_when_sent(std::move(counted));
        });
    }
    /// Notifies the client that the session of a channel is closed ([MS-SMB2] 2.2.44): encrypted or
    /// signed if the session requires that. Does nothing if the connection is gone. At most once
    /// per channel. Any thread that holds no mutex.
    static void notify_session_closed(std::shared_ptr<channel> via) noexcept;
    [[nodiscard]] static place_in_stream no_place_yet() {
        return std::make_shared<std::atomic<std::uint64_t>>(~std::uint64_t{0});
    }
    /// Returns whether messages are queued that the kernel has not taken. Any thread.
    [[nodiscard]] bool has_unsent() const noexcept { return writer_.unsent_bytes() != 0; }
    /// See frame_writer.
    [[nodiscard]] bool has_delivered(std::uint64_t up_to) const noexcept {
        return writer_.has_delivered(up_to);
    }
    /// Records that the unsolicited message that ends at `at` is not delivered: until it is, no
    /// more are sent on this connection.
    void record_undelivered(std::uint64_t at) noexcept;

    /// Waits until a large reply would soon be sent; see frame_writer::has_room().
    [[nodiscard]] io::task<void> room_to_send() noexcept { return writer_.has_room(); }

    /// Ends the waits of all requests that came by a channel, or of a tree of its
    /// session, with `why`.
    void interrupt(const channel& of, const tree* only, wire::nt_status why) noexcept;

private:
    void end_when_sent(pending_break counted) noexcept;
    void check_undelivered() noexcept;
    void begin_closing() noexcept;
    void remember(const channel& ended) noexcept;
    void lose_channels() noexcept;
    void close_here(std::string_view why) noexcept;
    /// Closes a connection of the home loop when its buffers exceed its part of the memory: the one
    /// with most bytes of the client with most. Complexity: O(n log n) in the connections.
    void enforce_buffer_limit() noexcept;
    /// Runs `what(*this)` on the home loop, at once if this is its thread, if the connection still
    /// exists.
    template <class What>
    void at_home(What what) noexcept {
        home_.do_here([self = weak_from_this(), done = std::move(what)]() mutable noexcept {
            if (const std::shared_ptr<connection> still = self.lock()) done(*still);
        });
    }
    static constexpr std::size_t notification_bytes_max = 64;

    // connection.cpp: bytes in and out.
    [[nodiscard]] io::task<void> receive_all() noexcept;
    [[nodiscard]] bool may_receive() const noexcept;
    [[nodiscard]] io::task<void> room_to_receive() noexcept;
    [[nodiscard]] io::task<void> send_all() noexcept;
    [[nodiscard]] io::task<void> enforce_session_deadline() noexcept;
    void end_channels() noexcept;

    // incoming.cpp: the content of a frame, and checks of it.
    [[nodiscard]] io::task<void> serve_frame(pool_buffer frame) noexcept;
    [[nodiscard]] io::task<void> serve_messages(bytes_view messages,
                                                std::shared_ptr<channel> encrypted_by) noexcept;
    [[nodiscard]] std::optional<bytes_view> decrypt(pool_buffer& frame,
                                                    std::shared_ptr<channel>& by) noexcept;
    [[nodiscard]] pool_buffer decompress(bytes_view compressed) noexcept;
    [[nodiscard]] bool admit(bytes_view messages) noexcept;
    [[nodiscard]] io::task<wire::nt_status> serve(request& r) noexcept;
    [[nodiscard]] wire::nt_status authorise(request& r) noexcept;
    [[nodiscard]] wire::nt_status find_session(request& r) noexcept;
    void find_signer(request& r) noexcept;
    [[nodiscard]] wire::nt_status may_sign_reply(request& r,
                                                 const std::shared_ptr<auth::signer>& by) noexcept;
    [[nodiscard]] wire::nt_status check_signature(request& r) noexcept;
    [[nodiscard]] wire::nt_status find_tree(request& r) noexcept;
    void serve_cancel(request& r) noexcept;
    void answer_smb1(bytes_view frame) noexcept;

    // outgoing.cpp: replies become frames.
    [[nodiscard]] finished_reply finish(request& r, wire::nt_status status) noexcept;
    void extend_preauth(request& r, wire::nt_status status, finished_reply& finished) noexcept;
    void add(reply_batch& replies, finished_reply&& one, channel* encrypted_by) noexcept;
    void send(reply_batch& replies, channel* encrypted_by) noexcept;
    void send(std::span<finished_reply> replies, channel* encrypted_by) noexcept;
    void put_pieces(const reply_payload::file_pieces& what) noexcept;
    void send_encrypted(std::span<const finished_reply> replies, channel& by) noexcept;
    void encrypt_parts(std::size_t bytes, channel& by) noexcept;
    [[nodiscard]] bool send_compressed(std::span<finished_reply> replies, std::size_t bytes,
                                       channel* encrypted_by) noexcept;
    void send_notification(channel* encrypted_by, wire::command code, reply& message) noexcept;
    void send_session_closed(channel& of) noexcept;
    void send_unsolicited(const wire::header& header, reply& message, channel* encrypted_by) noexcept;
    [[nodiscard]] std::uint16_t grant_credits(const request& r) noexcept;

    io::socket_handle socket_;
    io::socket_address peer_;
    std::string peer_text_;
    credit_window credits_;
    frame_reader reader_;
    frame_writer writer_;
    io::task_group tasks_;
    intrusive_list<request, &request::link> requests_;
    // Kept from frame to frame: room for what each would otherwise allocate.
    std::vector<finished_reply> spare_replies_;
    std::vector<bytes_view> parts_to_encrypt_;
    std::unordered_map<std::uint64_t, std::shared_ptr<channel>> channels_;
    published_counter channel_count_;
    // Sessions that ended while this was one of their channels, the latest last.
    struct former_channel {
        std::uint64_t session_id = 0;
        std::shared_ptr<auth::signer> signer;
    };
    std::vector<former_channel> former_channels_;
    std::uint64_t next_async_id_ = 1;
    published_counter pending_count_;
    std::size_t pending_bytes_ = 0;             // total size of the frames of those requests
    std::size_t decompressed_since_pause_ = 0;  // bytes; then the loop serves others
    std::optional<std::uint64_t> undelivered_at_;
    std::atomic<bool> is_closing_{false};  // the home loop writes
    std::atomic<bool> has_agreed_{false};  // likewise: `agreed` does not change any more
    bool has_lost_channels_ = false;
};

}  // namespace sluice::smb::server
