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
#include "sluice/smb/client/owned.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"

namespace sluice::smb::client {

/// What a client needs of the world. All outlive it.
struct seams {
    io::io_multiplexer& loop;
    secret_random_source& random;
    const clock_source& clock;
};

/// Whether requests are encrypted.
enum class encryption : std::uint8_t {
    as_server_asks,  ///< where the server or the share wants it
    required,        ///< always; a server that cannot is refused
};

struct connection_options {
    std::string server_name;  ///< as the user spelled it: stands in \\name\share and in what NTLM proves
    wire::dialect dialect_min = wire::dialect::smb_2_1;
    wire::dialect dialect_max = wire::dialect::smb_3_1_1;
    bool signs = true;  ///< everything. If not: what must be, and all if the server insists
    client::encryption encryption = encryption::as_server_asks;
    /// That the session is to have, this one among them. With AES-GMAC, and two or more, at most that many:
    /// each needs message ids under which the session's key has signed nothing yet.
    unsigned channels = 1;
    bool offers_gmac = true;
    std::uint32_t credits_wanted = limits::credits_wanted;
    std::chrono::seconds reply_timeout = limits::reply_timeout;
    /// The same in every channel of a session. All zero: made up.
    wire::guid client_guid{};
};

/// What a connection and its server have agreed on in NEGOTIATE.
struct agreement {
    wire::dialect dialect = wire::dialect::smb_2_0_2;
    wire::capabilities capabilities = wire::capabilities::none;         ///< those of the server that are used
    wire::capabilities server_capabilities = wire::capabilities::none;  ///< as it said, for validation
    wire::security_mode security_mode = wire::security_mode::none;      ///< the server's
    wire::guid server_guid{};
    std::uint32_t transact_bytes_max = 0;
    std::uint32_t read_bytes_max = 0;
    std::uint32_t write_bytes_max = 0;
    auth::signing_algorithm signing = auth::signing_algorithm::hmac_sha256;
    std::optional<auth::cipher_algorithm> cipher{};
    auth::preauth_integrity preauth{};        ///< of 3.1.1; each session set-up goes on from a copy
    std::vector<std::byte> security_offer{};  ///< the server's first SPNEGO token
    // What we said, for VALIDATE_NEGOTIATE_INFO.
    wire::guid client_guid{};
    wire::capabilities offered_capabilities = wire::capabilities::none;
    wire::security_mode offered_security_mode = wire::security_mode::none;
    std::vector<wire::dialect> offered_dialects{};

    [[nodiscard]] bool has_large_mtu() const noexcept {
        return wire::has(capabilities, wire::capabilities::large_mtu);
    }
};

/// One connection to a server: many requests under way at once, each a coroutine that waits for its reply.
///
/// Requests go out in the order in which they had credits; those that are made while others are answered
/// leave in one system call. Data of large WRITEs go from where the caller has them, those of large READs
/// are received where the caller wants them; nothing received is vouched for until the await has succeeded:
/// it is verified last. Replies may come in any order. Requests that the server says will take long
/// (STATUS_PENDING) are waited for as long as they take, while the server answers at all.
///
/// A connection breaks as a whole: by an error of the network, a server that breaks the protocol, silence of
/// reply_timeout while it owes something, or by cancelling the scope a request is waited for in, since then
/// nobody would know what became of it. Then every request under way fails, and every later one.
///
/// Lifetime: `co_await close()` before it is destroyed. Thread safety: the loop's thread. Allocates: for what
/// is under way, kept for the next: nothing for a READ or WRITE once as many have been.
///
/// Invariants:
///   1. `credits_` are what may be sent now; each granted one is used for one message id, in order.
///   2. A request is in `table_` from launch until it is answered; all that are, end when it breaks, once
///      neither the sending nor the receiving task touches their memory any more.
class connection {
public:
    /// Agrees with the server at the other end of `socket` on a dialect and what goes with it. `socket` is
    /// attached to the loop. Errors: `policy` if it offers less than asked for; `status`, `io`, `protocol`.
    [[nodiscard]] static io::task<outcome<owned<connection>>> open(seams world, io::socket_handle socket,
                                                                   connection_options options) noexcept;

    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    [[nodiscard]] const agreement& agreed() const noexcept { return agreed_; }
    [[nodiscard]] const connection_options& options() const noexcept { return options_; }
    [[nodiscard]] const seams& world() const noexcept { return world_; }

    /// How much one READ or WRITE may carry: what both sides allow, and the credits can pay.
    [[nodiscard]] std::uint32_t read_bytes_max() const noexcept;
    [[nodiscard]] std::uint32_t write_bytes_max() const noexcept;

    /// From now on speaks for a session with these keys.
    void secure(channel_security with) noexcept { security_ = std::move(with); }
    [[nodiscard]] channel_security& security() noexcept { return security_; }

    /// Sends one request and waits for its final reply. `args` is encoded before the first suspension.
    /// The reply's status is success or a warning that comes with a body (`buffer_overflow`,
    /// `more_processing_required`); every other is the error. Errors: see above. Suspends: also for credits.
    template <class Args>
    [[nodiscard]] io::task<outcome<reply>> call(wire::command code, const Args& args,
                                                const request_options& how) noexcept {
        pool_buffer memory = memory_.take(prefix_and_header + how.room_bytes);
        if (not memory) return refused_for_memory(how);
        byte_writer writer(*mutable_bytes(memory.bytes()).from(wire::frame_prefix_bytes));
        writer.put_zeros(wire::header_bytes);
        encode(writer, args);
        const auto message = writer.finish();
        ENSURE(message.has_value(), "a request is longer than the room it was given");
        return perform(code, std::move(memory), message->size(), how);
    }

    /// A hash that takes in the next request, as it goes out: of SESSION_SETUP in 3.1.1.
    void hash_next_request(auth::preauth_integrity& into) noexcept { hashes_next_ = &into; }

    /// Skips message ids, so that the next request has this one. False if there are too few credits. No
    /// request is in flight.
    [[nodiscard]] bool skip_to(std::uint64_t message_id) noexcept;
    /// Uses the skipped ids, if any, with an ECHO. Otherwise the server can grant no more ids.
    [[nodiscard]] io::task<void> use_skipped() noexcept;
    /// Whether all channels that are wanted can be bound with the agreed algorithms.
    [[nodiscard]] bool has_ids_for_channels() const noexcept;

    [[nodiscard]] bool is_broken() const noexcept { return broken_.has_value(); }
    /// Ends it soon; who waits is resumed from the loop.
    void break_soon(client_error why) noexcept;

    /// Ends it and waits until nothing is left of it. Says nothing to the server: see session::log_off().
    [[nodiscard]] io::task<void> close() noexcept;

    /// Requests waiting for their answers.
    [[nodiscard]] std::size_t under_way() const noexcept { return under_way_; }
    /// Message ids that could be used now.
    [[nodiscard]] std::uint32_t credits() const noexcept { return credits_; }

private:
    friend class exchange;
    friend class credit_wait;

    static constexpr std::size_t prefix_and_header = wire::frame_prefix_bytes + wire::header_bytes;
    static constexpr std::size_t table_size = 256;
    using table_bucket = intrusive_list<exchange, &exchange::table_link_>;

    // Looks after what cannot be done from where it is found out: from the loop, when it has a moment.
    class attendant final : public io::posted_item {
    public:
        explicit attendant(connection& of) noexcept : of_(of) {}
        void invoke() noexcept override { of_.attend(); }

    private:
        connection& of_;
    };

    connection(seams world, io::socket_handle socket, connection_options options) noexcept;

    // connection.cpp
    [[nodiscard]] io::task<outcome<reply>> perform(wire::command code, pool_buffer memory,
                                                   std::size_t message_bytes, request_options how) noexcept;
    [[nodiscard]] static io::task<outcome<reply>> refused_for_memory(request_options how) noexcept;
    [[nodiscard]] std::uint32_t charge_of(std::uint64_t payload_bytes) const noexcept;
    [[nodiscard]] std::uint32_t payable_bytes() const noexcept;
    void grant(std::uint16_t credits) noexcept;
    void serve_credit_waits() noexcept;
    void call_attendant() noexcept;
    void attend() noexcept;
    void finish() noexcept;
    [[nodiscard]] exchange* find(std::uint64_t message_id) noexcept;
    [[nodiscard]] table_bucket& bucket_of(std::uint64_t message_id) noexcept {
        return table_[message_id % table_size];
    }
    [[nodiscard]] io::task<void> watch() noexcept;
    [[nodiscard]] io::task<void> ask_for_life() noexcept;
    [[nodiscard]] bool owes_only_async() const noexcept;

    // connection_negotiate.cpp
    [[nodiscard]] io::task<outcome<void>> negotiate() noexcept;
    [[nodiscard]] outcome<void> settle(const wire::negotiate_reply& said) noexcept;
    [[nodiscard]] outcome<void> settle_contexts(const wire::negotiate_contexts& said) noexcept;

    // connection_send.cpp
    void launch(exchange& one) noexcept;
    [[nodiscard]] wire::header header_for(exchange& one) noexcept;
    [[nodiscard]] bool seal(exchange& one) noexcept;
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
    [[nodiscard]] outcome<void> take_message(const wire::message_view& message, bool was_sealed) noexcept;
    [[nodiscard]] outcome<void> vouch_for(const exchange& one, const wire::header& header,
                                          std::span<const bytes_view> parts, bool was_sealed) noexcept;
    [[nodiscard]] outcome<void> place_read_data(exchange& reader, const wire::message_view& message) noexcept;
    void answer(exchange& one, const reply& with) noexcept;
    [[nodiscard]] std::size_t frame_bytes_max() const noexcept;

    seams world_;
    connection_options options_;
    agreement agreed_;
    io::socket_handle socket_;
    io::receive_low_water low_water_{socket_};
    buffer_pool memory_{limits::kept_bytes_max};
    io::task_group tasks_;
    attendant attendant_{*this};
    bool attendant_called_ = false;
    channel_security security_;
    auth::preauth_integrity* hashes_next_ = nullptr;

    // Credits and what is under way.
    std::uint32_t credits_ = 1;
    std::uint32_t credits_seen_max_ = 1;
    std::uint32_t charged_ = 0;  // by what is under way
    std::uint64_t next_message_id_ = 0;
    std::uint64_t skipped_from_ = 0;
    std::uint32_t skipped_ = 0;
    std::size_t under_way_ = 0;
    std::size_t direct_readers_ = 0;  // of them, large READs
    std::size_t async_under_way_ = 0;
    std::array<table_bucket, table_size> table_;
    intrusive_list<credit_wait, &credit_wait::link_> credit_waits_;

    // Sending.
    intrusive_list<exchange, &exchange::send_link_> outbox_;
    intrusive_list<exchange, &exchange::send_link_> sending_;
    std::coroutine_handle<> idle_sender_;

    // Receiving.
    std::vector<std::byte> staged_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    clock_source::steady_time last_heard_{};

    unsigned running_ = 0;  // of the sending and the receiving task
    std::optional<client_error> broken_;
};

}  // namespace sluice::smb::client
