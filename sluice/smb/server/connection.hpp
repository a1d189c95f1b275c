#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/task_group.hpp"
#include "sluice/smb/auth/preauth_integrity.hpp"
#include "sluice/smb/server/credit_window.hpp"
#include "sluice/smb/server/data_path.hpp"
#include "sluice/smb/server/frame_stream.hpp"
#include "sluice/smb/server/request.hpp"
#include "sluice/smb/wire/guid.hpp"
#include "sluice/smb/wire/negotiate.hpp"

namespace sluice::smb::server {

/// What a connection agreed on by NEGOTIATE ([MS-SMB2] 3.3.1.7).
struct negotiated {
    std::optional<wire::dialect> dialect;  // none yet; smb_2_wildcard: an SMB1 client was told to ask again
    std::vector<wire::dialect> offered_dialects;
    wire::security_mode offered_security_mode = wire::security_mode::none;
    wire::capabilities offered_capabilities = wire::capabilities::none;
    wire::security_mode security_mode = wire::security_mode::none;  // ours
    wire::capabilities capabilities = wire::capabilities::none;     // ours
    wire::guid client{};
    auth::signing_algorithm signing = auth::signing_algorithm::hmac_sha256;
    std::optional<auth::cipher_algorithm> cipher;

    [[nodiscard]] bool is_done() const noexcept {
        return dialect.has_value() and * dialect != wire::dialect::smb_2_wildcard;
    }
    [[nodiscard]] bool is_at_least(wire::dialect wanted) const noexcept {
        return is_done() and * dialect >= wanted;
    }
};

/// One connection of a client ([MS-SMB2] 3.3.1.7): takes its messages, has each served, sends the replies.
///
/// Frames are served in the order they come, each in a coroutine of its own, which runs until it first has to
/// wait; so what does not wait is done in order, and what waits holds up nobody.
///
/// Invariants:
///   1. Every request in `requests_` lives in the frame of a task in `tasks_`.
///   2. run() returns after all of them have ended; then the connection's sessions are gone, or keep only
///   what
///      is durable.
/// Thread safety: the loop's thread.
class connection {
public:
    connection(smb_server& host, io::socket_handle socket, const io::socket_address& peer) noexcept;
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    /// Serves the client until it goes, breaks the protocol, or close() is called. Suspends.
    [[nodiscard]] io::task<void> run() noexcept;

    /// Ends the connection soon; `why` is for the log.
    void close(std::string_view why) noexcept;

    [[nodiscard]] smb_server& host() const noexcept { return host_; }
    [[nodiscard]] io::io_multiplexer& loop() const noexcept;
    [[nodiscard]] buffer_pool& buffers() const noexcept;
    [[nodiscard]] data_path& data() const noexcept;
    [[nodiscard]] const io::socket_address& peer() const noexcept { return peer_; }
    [[nodiscard]] const std::string& peer_text() const noexcept { return peer_text_; }
    /// The address without its port.
    [[nodiscard]] std::string peer_host() const { return peer_text_.substr(0, peer_text_.rfind(':')); }

    negotiated agreed;
    auth::preauth_integrity preauth;

    /// The sessions made on this connection, by id.
    std::unordered_map<std::uint64_t, std::shared_ptr<session>> sessions;
    bool has_had_session = false;

    /// Tells the client to wait for the reply ([MS-SMB2] 3.3.4.2). False if too many wait already.
    [[nodiscard]] bool send_interim(request& r) noexcept;
    /// Sends a message nobody asked for: an oplock or lease break. `encode` writes the body.
    template <class Body>
    void notify(server::session* via, wire::command code, const Body& body) noexcept {
        reply message(buffers());
        byte_writer* const writer = message.begin(notification_bytes_max);
        if (writer == nullptr) return;
        encode(*writer, body);
        send_notification(via, code, message);
    }

    /// Waits until a large reply would soon be sent; see frame_writer::has_room().
    [[nodiscard]] io::task<void> room_to_send() noexcept { return writer_.has_room(); }

    /// Ends what `of` waits for, with `why`: all requests of a session, or of a tree of it.
    void interrupt(const session& of, const tree* only, wire::nt_status why) noexcept;

private:
    friend class request;
    static constexpr std::size_t notification_bytes_max = 64;

    // connection.cpp: bytes in and out.
    [[nodiscard]] io::task<void> receive_all() noexcept;
    [[nodiscard]] io::task<void> send_all() noexcept;
    [[nodiscard]] io::task<void> expect_session() noexcept;
    void end_sessions() noexcept;

    // incoming.cpp: what a frame holds, and whether it may.
    [[nodiscard]] io::task<void> serve_frame(pool_buffer frame) noexcept;
    [[nodiscard]] io::task<void> serve_messages(bytes_view messages,
                                                std::shared_ptr<session> sealed_by) noexcept;
    [[nodiscard]] std::optional<bytes_view> unseal(pool_buffer& frame, std::shared_ptr<session>& by) noexcept;
    [[nodiscard]] bool admit(bytes_view messages) noexcept;
    [[nodiscard]] io::task<wire::nt_status> serve(request& r) noexcept;
    [[nodiscard]] wire::nt_status authorise(request& r) noexcept;
    [[nodiscard]] wire::nt_status find_session(request& r) noexcept;
    [[nodiscard]] wire::nt_status check_signature(request& r) noexcept;
    [[nodiscard]] wire::nt_status find_tree(request& r) noexcept;
    void serve_cancel(request& r) noexcept;
    void answer_smb1(bytes_view frame) noexcept;

    // outgoing.cpp: replies become frames.
    [[nodiscard]] finished_reply finish(request& r, wire::nt_status status) noexcept;
    void extend_preauth(request& r, wire::nt_status status, bytes_view message) noexcept;
    void add(reply_batch& replies, finished_reply one, session* sealed_by) noexcept;
    void send(std::vector<finished_reply> replies, session* sealed_by) noexcept;
    void send_sealed(const std::vector<finished_reply>& replies, session& by) noexcept;
    void send_notification(session* via, wire::command code, reply& message) noexcept;
    void send_unasked(const wire::header& header, reply& message, session* sealed_by) noexcept;
    [[nodiscard]] std::uint16_t grant_credits(const request& r) noexcept;

    smb_server& host_;
    io::socket_handle socket_;
    io::socket_address peer_;
    std::string peer_text_;
    credit_window credits_;
    frame_reader reader_;
    frame_writer writer_;
    io::task_group tasks_;
    intrusive_list<request, &request::link> requests_;
    std::uint64_t next_async_id_ = 1;
    std::size_t pending_count_ = 0;
    bool is_closing_ = false;
};

}  // namespace sluice::smb::server
