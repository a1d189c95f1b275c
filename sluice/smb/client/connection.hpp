#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/io/stream/receive_low_water.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/auth/preauth_integrity.hpp"
#include "sluice/smb/client/channel_security.hpp"
#include "sluice/smb/client/exchange.hpp"
#include "sluice/smb/client/limits.hpp"
#include "sluice/smb/client/not_null_ptr.hpp"
#include "sluice/smb/wire/compression/compressed_message.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"

namespace sluice::smb::client {

/// The external dependencies of a client. All outlive it.
struct dependencies {
    io::io_multiplexer& loop;
    secret_random_source& random;
    const clock_source& clock;
};

/// The rule for encrypting requests.
enum class encryption : std::uint8_t {
    as_server_requires,  ///< if the server or the share requires it
    required,            ///< always; servers without encryption are rejected
};

struct connection_options {
    std::string server_name;  ///< as the user wrote it: part of \\name\share and of the NTLM proof
    wire::dialect dialect_min = wire::dialect::smb_2_1;
    wire::dialect dialect_max = wire::dialect::smb_3_1_1;
    bool signs = true;  ///< signs every request; if false: only requests that must be signed, or
                        ///< all if the server requires it
    client::encryption encryption = encryption::as_server_requires;
    /// The planned number of channels of the session, including this one. With AES-GMAC and two or
    /// more channels, it is also the limit: each needs message ids that the session's key has not
    /// signed yet.
    unsigned channels = 1;
    bool offers_gmac = true;
    std::uint32_t credits_wanted = limits::credits_wanted;
    std::chrono::seconds reply_timeout = limits::reply_timeout;
    /// The time to connect, and that in which the server must answer all requests up to the end of
    /// the logon, even if it sends some bytes again and again.
    std::chrono::seconds connect_timeout = limits::connect_timeout;
    /// Requests compressed data of READs, and compresses those of WRITEs, where the server supports
    /// that (SMB 3.1.1).
    bool compresses = false;
    /// The same in every channel of a session. All zero: generated at random.
    wire::guid client_guid{};
};

/// The parameters that a connection and its server agreed on in NEGOTIATE.
struct agreement {
    wire::dialect dialect = wire::dialect::smb_2_0_2;
    /// The server's capabilities that are used.
    wire::capabilities capabilities = wire::capabilities::none;
    /// As announced, for validation.
    wire::capabilities server_capabilities = wire::capabilities::none;
    wire::security_mode security_mode = wire::security_mode::none;  ///< the server's
    wire::guid server_guid{};
    std::uint32_t transact_bytes_max = 0;
    std::uint32_t read_bytes_max = 0;
    std::uint32_t write_bytes_max = 0;
    auth::signing_algorithm signing = auth::signing_algorithm::hmac_sha256;
    std::optional<auth::cipher_algorithm> cipher{};
    wire::negotiated_compression compression{};
    auth::preauth_integrity preauth{};        ///< for 3.1.1; each session setup
                                              ///< continues from a copy
    std::vector<std::byte> security_offer{};  ///< the server's first SPNEGO token
    // The client's parameters, for VALIDATE_NEGOTIATE_INFO.
    wire::guid client_guid{};
    wire::capabilities offered_capabilities = wire::capabilities::none;
    wire::security_mode offered_security_mode = wire::security_mode::none;
    std::vector<wire::dialect> offered_dialects{};

    [[nodiscard]] bool has_large_mtu() const noexcept {
        return wire::has(capabilities, wire::capabilities::large_mtu);
    }
};

/// One connection to a server. Many requests can be in flight; each is a coroutine that waits for
/// its reply.
///
/// Requests are sent in the order in which they got credits. Requests that are created while
/// replies are processed are sent in one system call. Large WRITEs send the data from the caller's
/// memory, and large READs receive them into the caller's memory. Received data are not
/// authenticated until the await has succeeded, because verification is the last step. Replies may
/// arrive in any order. There is no limit on the duration of a request that the server announced as
/// long (STATUS_PENDING), while the server responds at all.
///
/// A connection breaks as a whole. The causes are an error of the network, a server that violates
/// the protocol, silence of reply_timeout while a reply is due, a logon that takes longer
/// than connect_timeout, and cancellation of the scope in
/// which a request is awaited, because the outcome of that request would be unknown. Every request
/// in flight then fails, and every later one.
///
/// Lifetime: `co_await close()` before it is destroyed. Thread safety: the loop's thread.
/// Allocates: memory for requests in flight, which is reused. A READ or WRITE allocates nothing
/// once as many have been in flight.
///
/// Invariants:
///   1. `credits_` are available for sending. Each granted credit is used for one
///      message id, in order.
///   2. A request is in `table_` from launch until it is answered. When the connection breaks, all
///      requests in it end, after the sending and the receiving task have ended and no longer
///      access their memory.
class connection {
public:
    /// Negotiates a dialect and its parameters with the server at the other end of `socket`, which
    /// is attached to the loop. Errors: `policy` if the server does not support the required
    /// features; `status`, `io`, `protocol`.
    [[nodiscard]] static io::task<outcome<not_null_ptr<connection>>> open(
        dependencies deps, io::socket_handle socket, connection_options options) noexcept;

    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    [[nodiscard]] const agreement& agreed() const noexcept { return agreed_; }
    [[nodiscard]] const connection_options& options() const noexcept { return options_; }
    [[nodiscard]] const dependencies& deps() const noexcept { return deps_; }

    /// Returns the largest length of one READ or WRITE that both sides allow and the credits can
    /// pay for.
    [[nodiscard]] std::uint32_t read_bytes_max() const noexcept;
    [[nodiscard]] std::uint32_t write_bytes_max() const noexcept;

    /// Sets the session and its keys for all later requests.
    void secure(channel_security with) noexcept { security_ = std::move(with); }
    [[nodiscard]] channel_security& security() noexcept { return security_; }

    /// Sends one request and waits for its final reply. `args` is encoded before the first
    /// suspension. The reply's status is success or a warning that has a body (`buffer_overflow`,
    /// `more_processing_required`). Every other status is an error. Errors: see above. Suspends:
    /// also for credits.
    template <class Args>
    [[nodiscard]] io::task<outcome<reply>> call(wire::command code, const Args& args,
                                                const request_options& how) noexcept {
        pool_buffer memory = memory_.take(prefix_and_header + how.room_bytes);
        if (not memory) return refused_for_memory(how);
        byte_writer writer(*mutable_bytes(memory.bytes()).from(wire::frame_prefix_bytes));
        writer.put_zeros(wire::header_bytes);
        encode(writer, args);
        const auto message = writer.finish();
        ENSURE(message.has_value(), "request longer than room_bytes");
        return perform(code, std::move(memory), message->size(), how);
    }

    /// Sets a hash that includes the next request as it is sent: a SESSION_SETUP in 3.1.1.
    void hash_next_request(auth::preauth_integrity& into) noexcept { hashes_next_ = &into; }

    /// Skips message ids, so that the next request has this one. Returns false if there are too few
    /// credits. No request is in flight.
    [[nodiscard]] bool skip_to(std::uint64_t message_id) noexcept;
    /// Uses the skipped ids, if any, for an ECHO. Otherwise the server cannot grant further ids.
    [[nodiscard]] io::task<void> use_skipped() noexcept;
    /// Returns whether all planned channels can be bound with the negotiated algorithms.
    [[nodiscard]] bool has_ids_for_channels() const noexcept;

    /// Ends the time limit of the logon, which has succeeded.
    void note_logged_on() noexcept { is_logged_on_ = true; }

    [[nodiscard]] bool is_broken() const noexcept { return broken_.has_value(); }
    /// Ends the connection soon. Waiters are resumed from the loop.
    void break_soon(client_error why) noexcept;

    /// Ends the connection and waits until all its tasks have ended. Sends nothing to the server:
    /// see session::log_off().
    [[nodiscard]] io::task<void> close() noexcept;

    /// Returns the number of requests that wait for their replies.
    [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }
    /// Returns the number of message ids that are available now.
    [[nodiscard]] std::uint32_t credits() const noexcept { return credits_; }

private:
    friend class exchange;
    friend class credit_wait;

    static constexpr std::size_t prefix_and_header = wire::frame_prefix_bytes + wire::header_bytes;
    static constexpr std::size_t table_size = 256;
    using table_bucket = intrusive_list<exchange, &exchange::table_link_>;

    // Work that must not run where it becomes necessary. The loop executes it later.
    class deferred_work final : public io::posted_item {
    public:
        explicit deferred_work(connection& of) noexcept : of_(of) {}
        void invoke() noexcept override { of_.attend(); }

    private:
        connection& of_;
    };

    connection(dependencies deps, io::socket_handle socket, connection_options options) noexcept;

    // connection.cpp
    [[nodiscard]] io::task<outcome<reply>> perform(wire::command code, pool_buffer memory,
                                                   std::size_t message_bytes, request_options how) noexcept;
    [[nodiscard]] static io::task<outcome<reply>> refused_for_memory(request_options how) noexcept;
    [[nodiscard]] std::uint32_t charge_of(std::uint64_t payload_bytes) const noexcept;
    [[nodiscard]] std::uint32_t credited_bytes() const noexcept;
    void grant(std::uint16_t credits) noexcept;
    void serve_credit_waits() noexcept;
    void post_deferred_work() noexcept;
    void attend() noexcept;
    void finish() noexcept;
    [[nodiscard]] exchange* find(std::uint64_t message_id) noexcept;
    [[nodiscard]] table_bucket& bucket_of(std::uint64_t message_id) noexcept {
        return table_[message_id % table_size];
    }
    [[nodiscard]] io::task<void> watch() noexcept;
    [[nodiscard]] io::task<void> send_keepalive() noexcept;
    [[nodiscard]] bool awaits_only_async_replies() const noexcept;

    // connection_negotiate.cpp
    [[nodiscard]] io::task<outcome<void>> negotiate() noexcept;
    [[nodiscard]] outcome<void> apply_negotiate_reply(const wire::negotiate_reply& said) noexcept;
    [[nodiscard]] outcome<void> apply_negotiate_contexts(const wire::negotiate_contexts& said) noexcept;

    // connection_send.cpp
    void launch(exchange& one) noexcept;
    [[nodiscard]] wire::header header_for(exchange& one) noexcept;
    [[nodiscard]] bool seal(exchange& one) noexcept;
    void compress(exchange& one) noexcept;
    [[nodiscard]] bool sign(exchange& one) noexcept;
    [[nodiscard]] io::task<void> send_all() noexcept;
    void complete_sent() noexcept;

    // connection_receive.cpp
    [[nodiscard]] io::task<void> receive_all() noexcept;
    [[nodiscard]] io::task<outcome<void>> receive_frame() noexcept;
    [[nodiscard]] io::task<outcome<void>> stage(std::size_t bytes) noexcept;
    [[nodiscard]] exchange* direct_reader(std::size_t frame_bytes) noexcept;
    [[nodiscard]] io::task<outcome<void>> receive_data(mutable_bytes data) noexcept;
    [[nodiscard]] io::task<outcome<void>> discard_data(std::size_t bytes) noexcept;
    [[nodiscard]] io::task<outcome<void>> receive_direct(exchange& reader, std::size_t frame_bytes) noexcept;
    [[nodiscard]] outcome<void> take_frame(mutable_bytes frame) noexcept;
    [[nodiscard]] outcome<pool_buffer> decompress(bytes_view frame) noexcept;
    [[nodiscard]] outcome<void> take_messages(bytes_view messages, bool was_sealed) noexcept;
    [[nodiscard]] outcome<void> take_message(const wire::message_view& message, bool was_sealed) noexcept;
    [[nodiscard]] outcome<void> take_notification(const wire::message_view& message,
                                                  bool was_sealed) noexcept;
    [[nodiscard]] outcome<void> authenticate_reply(const exchange& one, const wire::header& header,
                                                   std::span<const bytes_view> parts,
                                                   bool was_sealed) noexcept;
    [[nodiscard]] outcome<void> place_read_data(exchange& reader, const wire::message_view& message) noexcept;
    void answer(exchange& one, const reply& with) noexcept;
    [[nodiscard]] std::size_t frame_bytes_max() const noexcept;

    dependencies deps_;
    connection_options options_;
    agreement agreed_;
    io::socket_handle socket_;
    io::receive_low_water low_water_{socket_};
    buffer_pool memory_{limits::kept_bytes_max};
    io::task_group tasks_;
    deferred_work deferred_work_{*this};
    bool is_work_posted_ = false;
    channel_security security_;
    auth::preauth_integrity* hashes_next_ = nullptr;

    // Credits and requests in flight.
    std::uint32_t credits_ = 1;
    std::uint32_t credits_seen_max_ = 1;
    std::uint32_t charged_ = 0;  // by requests in flight
    std::uint64_t next_message_id_ = 0;
    std::uint64_t skipped_from_ = 0;
    std::uint32_t skipped_ = 0;
    std::size_t in_flight_ = 0;
    std::size_t direct_readers_ = 0;  // large READs among them
    std::size_t async_in_flight_ = 0;
    std::array<table_bucket, table_size> table_;
    intrusive_list<credit_wait, &credit_wait::link_> credit_waits_;

    // Sending.
    intrusive_list<exchange, &exchange::send_link_> outbox_;
    intrusive_list<exchange, &exchange::send_link_> sending_;
    // Compression. The next WRITEs, as many as skips, are not compressed.
    std::unique_ptr<wire::compression_work_area> compression_memory_;
    unsigned compression_skips_ = 0;
    std::coroutine_handle<> idle_sender_;

    // Receiving.
    std::vector<std::byte> staged_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    clock_source::steady_time last_received_{};

    bool is_logged_on_ = false;
    unsigned running_ = 0;  // the sending and the receiving task
    std::optional<client_error> broken_;
};

}  // namespace sluice::smb::client
