#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/random.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/auth/logon/ntlm_initiator.hpp"
#include "sluice/smb/auth/preauth_integrity.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/guid.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/header.hpp"
#include "sluice/smb/wire/message/negotiate_contexts.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"

namespace sluice::smb_simulation {

/// Returns the bytes of a name or path, as requests take them.
[[nodiscard]] inline bytes_view view(const std::string& text) noexcept {
    return std::as_bytes(std::span(text));
}

/// The common part of all clients of a simulation: encodes requests, sends them, receives replies,
/// logs on, connects to the share "files". Derived classes choose the requests and process the
/// replies.
///
/// Requests are sent without waiting for replies. Thread safety: the loop's thread.
class simulated_client {
public:
    simulated_client(io::socket_handle socket, const clock_source& clock, std::uint64_t seed);
    simulated_client(const simulated_client&) = delete;
    simulated_client& operator=(const simulated_client&) = delete;

    /// Returns the first violation of the protocol by the server; empty if there was none.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

protected:
    ~simulated_client() = default;

    /// Called before frames are sent.
    virtual void before_send(bytes_view /*frames*/) {}
    /// Called with every message of the server that is not one of these violations.
    virtual void take_message(const smb::wire::message_view& message) = 0;
    /// Replaces a compressed frame by its messages. Returns false if it is not valid.
    [[nodiscard]] virtual bool decompress(std::vector<std::byte>& /*frame*/) { return true; }
    /// Called before the last SESSION_SETUP of an authentication is sent.
    virtual void before_proof() {}
    /// Makes final changes to the header of a request.
    virtual void adjust(smb::wire::header& header) = 0;

    /// Continues on another connection, as the same client with only its memory.
    void initialise_file(io::socket_handle socket);
    /// Negotiates, logs on as u with password p, connects to the share. Suspends.
    [[nodiscard]] io::task<bool> set_up();
    [[nodiscard]] io::task<bool> negotiate();
    [[nodiscard]] io::task<bool> log_on() {
        session_id_ = 0;
        return authenticate(smb::wire::session_setup_flags::none);
    }
    /// Becomes a channel of the session of another client, and uses its tree. The dialect is 3.0.2.
    /// Suspends.
    [[nodiscard]] io::task<bool> bind_to(const simulated_client& first);
    [[nodiscard]] io::task<bool> connect_tree(std::string share = "files");
    /// Sends the encoded requests. Returns false if the server has closed the connection. Suspends.
    [[nodiscard]] io::task<bool> send();
    /// Ends the connection at that time, so that a wait for a reply ends, unless the task is
    /// cancelled before. `loop`: that of the client. Suspends.
    [[nodiscard]] io::task<void> leave_after(io::io_multiplexer& loop, std::chrono::seconds stay);
    /// Returns whether leave_after() has ended the connection.
    [[nodiscard]] bool has_left() const noexcept { return has_left_; }
    /// Receives one frame. Returns false if the server has closed the connection. Suspends.
    [[nodiscard]] io::task<bool> take_reply();

    /// Encodes a request after the previous ones, in its own frame; related requests are added to
    /// the frame that begin_compound() has begun.
    template <class Args>
    void put(smb::wire::command code, const Args& args) {
        std::array<std::byte, message_bytes_max> room{};
        byte_writer writer(room);
        encode(writer, next_header(code));
        encode(writer, args);
        const auto message = writer.finish();
        ENSURE(message.has_value(), "a request of the test is too long");
        if (signer_) sign(mutable_bytes(room).first(message->size()).value());
        append(*message);
    }
    /// Begins a frame for all requests until end_compound().
    void begin_compound();
    void end_compound();
    [[nodiscard]] bool is_in_compound() const noexcept { return is_compound_; }
    /// Returns a lock or unlock of one of twelve overlapping ranges. One in `period` locks fails
    /// instead of waiting.
    [[nodiscard]] smb::wire::raw_lock_element random_lock(std::uint64_t period);

    static constexpr std::size_t message_bytes_max = 4096;

    io::socket_handle socket_;
    const clock_source& clock_;
    seeded_random random_;

    std::vector<std::byte> outgoing_;  // frames to send
    std::vector<std::byte> received_;  // the current frame
    std::uint64_t next_message_id_ = 0;
    std::uint64_t credits_ = 1;
    std::uint64_t awaited_ = 0;  // replies that must come
    std::uint64_t session_id_ = 0;
    std::uint32_t tree_id_ = 0;
    /// The offer for SMB 3.1.1; if it is not empty, negotiate() offers only this dialect.
    std::vector<smb::wire::signing_algorithm> signing_offers_;
    /// The same for compression; with chained messages. Empty: none.
    std::vector<smb::wire::compression_algorithm> compression_offers_;
    smb::auth::preauth_integrity preauth_;     // state of the negotiation
    bool is_related_ = false;                  // the next request is related to the previous one
    std::optional<smb::auth::signer> signer_;  // signs requests, except compounds
    std::string problem_;
    std::uint64_t bytes_taken_ = 0;                    // on this connection
    std::uint64_t bytes_read_ = 0;                     // upper bound, by the read in flight
    smb::auth::secret_bytes<16> session_signing_key_;  // the key of the session; signs a bind
    smb::wire::guid guid_;
    std::uint64_t previous_session_id_ = 0;  // to end at the next logon

private:
    [[nodiscard]] io::task<bool> authenticate(smb::wire::session_setup_flags how);
    [[nodiscard]] io::task<bool> fill(std::span<std::byte> room);
    [[nodiscard]] bool take_apart();
    [[nodiscard]] smb::wire::header next_header(smb::wire::command code);
    void append(bytes_view message);
    void sign(mutable_bytes message);
    void account(const smb::wire::header& header);

    predictable_secrets_for_simulation secrets_;
    bool has_left_ = false;
    bool is_compound_ = false;
    std::size_t compound_begin_ = 0;  // start of its frame in outgoing_
    std::size_t message_begin_ = 0;   // start of its last message
};

}  // namespace sluice::smb_simulation
