#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/random.hpp"
#include "sluice/io/socket_handle.hpp"
#include "sluice/io/task.hpp"
#include "sluice/smb/auth/ntlm_initiator.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/header.hpp"

namespace sluice::smb_simulation {

/// A client that behaves itself in every message and in nothing else: it opens, locks, watches, writes and
/// renames what others have open, cancels at random, closes what it waits for, logs off in the middle, leaves
/// breaks unanswered, and in the end hangs up without a word. Everything it does is drawn from its seed.
///
/// Requests are sent without waiting for replies, as far as credits allow. Thread safety: the loop's thread.
class unruly_client {
public:
    struct habits {
        std::uint64_t seed = 1;
        unsigned requests = 200;
    };

    unruly_client(io::io_multiplexer& loop, io::socket_handle socket, const clock_source& clock,
                  const habits& how);

    /// Connects, misbehaves, hangs up. Suspends.
    [[nodiscard]] io::task<void> live();

    /// Replies taken, and those with a status other than an error.
    [[nodiscard]] unsigned replies() const noexcept { return replies_; }
    [[nodiscard]] unsigned successes() const noexcept { return successes_; }
    /// What the server said that no server may say; empty if nothing.
    [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }

private:
    [[nodiscard]] io::task<bool> set_up();
    [[nodiscard]] io::task<void> act();
    [[nodiscard]] io::task<bool> log_on();
    [[nodiscard]] io::task<bool> take_reply();
    [[nodiscard]] io::task<bool> fill(std::span<std::byte> room);
    [[nodiscard]] io::task<bool> send();
    void take_message(bytes_view message);

    template <class Args>
    void put(smb::wire::command code, const Args& args);
    void put_one();
    void put_create();
    void put_data_request();
    void put_lock();
    void put_rename();
    void put_cancel();
    void put_compound();
    void put_acknowledgement(bytes_view notification);
    [[nodiscard]] smb::wire::file_id some_file();

    io::io_multiplexer& loop_;
    io::socket_handle socket_;
    const clock_source& clock_;
    habits how_;
    seeded_random random_;
    predictable_secrets_for_simulation secrets_;

    std::vector<std::byte> outgoing_;  // frames to send
    std::vector<std::byte> received_;  // the frame at hand
    std::vector<smb::wire::file_id> files_;
    std::vector<std::uint64_t> async_ids_;
    std::uint64_t next_message_id_ = 0;
    std::uint64_t credits_ = 1;
    std::uint64_t awaited_ = 0;  // replies that must come
    std::uint64_t session_id_ = 0;
    std::uint32_t tree_id_ = 0;
    smb::wire::nt_status last_status_ = smb::wire::nt_status::success;
    bool is_related_ = false;  // the next message put belongs to the one before
    unsigned replies_ = 0;
    unsigned successes_ = 0;
    std::string complaint_;
};

}  // namespace sluice::smb_simulation
