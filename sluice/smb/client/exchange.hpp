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

/// What a server answered. `message` borrows from the connection's memory: it holds until the caller suspends
/// next, so decode it first.
struct reply {
    wire::header header;
    bytes_view message;          ///< from its header on; of a READ whose data came directly only their head
    std::size_t read_bytes = 0;  ///< of a READ: how many were put where the caller wanted them
};

/// How a request is sent; what every command has in common.
struct request_options {
    const char* step = "";  ///< what it is for, as errors say it
    std::uint32_t tree_id = 0;
    std::uint64_t payload_bytes = 0;  ///< sent or asked for, whichever is more: it costs credits
    bool must_sign = false;           ///< even where the session does not
    bool must_seal = false;
    bool is_replay = false;  ///< sent before, over a connection that has died
    std::uint16_t channel_sequence = 0;
    bool uses_skipped = false;       ///< the message ids of connection::skip_to(), which are paid for
    std::uint32_t room_bytes = 256;  ///< for the body, unless that is known to be longer
    bytes_view payload{};            ///< follows the body; stays until the reply is there
    mutable_bytes into{};            ///< where the data of a READ go; stays likewise
    /// Of a large READ that is not encrypted: whatever comes is thrown away as it comes, neither copied nor
    /// verified, and `into` keeps what it has. For load on a server.
    bool discards = false;
};

/// One request and the wait for its reply, in the frame of the coroutine that waits: `co_await` it once.
///
/// Invariants:
///   1. From launch to resumption it is in the connection's table; until the kernel has all of it, it or the
///      write under way refers to its memory, so it is not resumed before.
///   2. It is resumed by the connection's own tasks, never from inside what it calls.
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
    pool_buffer memory_;      // four bytes for the frame's length, and the message
    std::size_t head_bytes_;  // with those four
    bytes_view payload_;      // sent behind it; none once it is sealed
    wire::command command_ = {};
    std::uint64_t message_id_ = 0;
    std::uint64_t async_id_ = 0;  // not 0: the server has said it takes a while
    bool is_signed_ = false;
    bool is_sealed_ = false;
    bool is_sent_ = false;
    bool is_answered_ = false;
    reply reply_;
    pool_buffer kept_reply_;  // if it came before the kernel had told us that the request was gone
    std::optional<client_error> error_;
    list_hook<exchange> send_link_;
    list_hook<exchange> table_link_;
};

/// Waits, in order of arrival, until a connection has credits for a request.
class credit_wait final : private io::awaited {
public:
    credit_wait(connection& over, std::uint32_t charge) noexcept
        : awaited(nullptr), over_(over), charge_(charge) {}

    [[nodiscard]] bool await_ready() noexcept;
    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        return begin(waiter, io::scope_of(waiter));
    }
    /// Whether they are there, and taken.
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
