#pragma once

#include <array>
#include <coroutine>
#include <optional>

#include "sluice/base/buffer_pool.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/cancel_scope.hpp"
#include "sluice/smb/client/client_error.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::client {

class connection;

/// A server's reply. `message` borrows from the connection's memory and is valid until the caller
/// suspends, so decode it first.
struct reply {
    wire::header header;
    /// From its header on; if a READ received its data directly, only the part before them.
    bytes_view message;
    std::size_t read_bytes = 0;  ///< number of bytes that a READ stored in the caller's memory
};

/// The parameters of a request that all commands share.
struct request_options {
    const char* step = "";  ///< the operation, for error messages
    std::uint32_t tree_id = 0;
    std::uint64_t payload_bytes = 0;  ///< sent or requested, the larger number:
                                      ///< determines the credit charge
    bool must_sign = false;           ///< even if the session does not sign
    bool must_seal = false;
    bool is_replay = false;  ///< a repetition of a request over a connection that was lost
    std::uint16_t channel_sequence = 0;
    bool uses_skipped = false;       ///< uses the message ids of
                                     ///< connection::skip_to(), which are paid for
    std::uint32_t room_bytes = 256;  ///< for the body, unless a larger length is known
    bytes_view payload{};            ///< follows the body; valid until the reply has arrived
    mutable_bytes into{};            ///< receives the data of a READ; valid until then
    /// For large unencrypted READs: the data are discarded on arrival, neither copied nor verified,
    /// and `into` is not changed. For load on a server.
    bool discards = false;
};

/// One request and the wait for its reply, in the frame of the waiting coroutine. `co_await` it
/// once.
///
/// Invariants:
///   1. From launch to resumption it is in the connection's table. Until the kernel has sent it,
///      the request or the pending write refers to its memory, so it is not resumed before.
///   2. The connection's own tasks resume it, never a function that it calls.
class exchange final : private io::awaited {
public:
    exchange(connection& over, pool_buffer memory, std::size_t message_bytes,
             const request_options& how) noexcept;

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        return begin(waiter, io::scope_of(waiter));
    }
    [[nodiscard]] outcome<reply> await_resume() noexcept;

private:
    friend class connection;

    [[nodiscard]] bool begin(std::coroutine_handle<> waiter, io::cancel_scope* scope) noexcept;
    void end() noexcept override;

    connection& over_;
    request_options how_;
    pool_buffer memory_;      // four bytes for the frame's length, then the message
    std::size_t head_bytes_;  // including those four bytes
    bytes_view payload_;      // sent after the message; empty if the request is encrypted
    wire::command command_ = {};
    std::uint64_t message_id_ = 0;
    std::uint64_t async_id_ = 0;  // not 0: the server has sent an interim reply (STATUS_PENDING)
    bool is_signed_ = false;
    bool is_sealed_ = false;
    bool is_sent_ = false;
    bool is_answered_ = false;
    reply reply_;
    pool_buffer kept_reply_;  // if it arrived before the completion of the send
    std::optional<client_error> error_;
    list_hook<exchange> send_link_;
    list_hook<exchange> table_link_;
};

/// Waits, in order of arrival, until a connection has enough credits for a request.
class credit_wait final : private io::awaited {
public:
    credit_wait(connection& over, std::uint32_t charge) noexcept
        : awaited(nullptr), over_(over), charge_(charge) {}

    [[nodiscard]] bool await_ready() noexcept;
    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        return begin(waiter, io::scope_of(waiter));
    }
    /// Returns whether the credits are available, and takes them.
    [[nodiscard]] outcome<void> await_resume() noexcept;

private:
    friend class connection;

    [[nodiscard]] bool begin(std::coroutine_handle<> waiter, io::cancel_scope* scope) noexcept;
    void end() noexcept override;

    connection& over_;
    std::uint32_t charge_;
    bool is_granted_ = false;
    bool is_cancelled_ = false;
    list_hook<credit_wait> link_;
};

}  // namespace sluice::smb::client
