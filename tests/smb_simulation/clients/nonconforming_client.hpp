#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/smb/wire/create/create_contexts.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "tests/smb_simulation/clients/simulated_client.hpp"

namespace sluice::smb_simulation {

/// A client whose messages are valid, but whose behaviour is not: it opens, locks, watches, writes
/// and renames files that others have open, cancels at random, closes files with pending requests,
/// logs off in the middle, leaves breaks unanswered, and finally disconnects without logging off.
/// If it has another life, it comes back and reconnects to its durable handles. All actions are
/// drawn from its seed.
///
/// Requests are sent without waiting for replies, as far as credits allow. Thread
/// safety: the loop's thread.
class nonconforming_client final : private simulated_client {
public:
    struct habits {
        std::uint64_t seed = 1;
        unsigned requests = 200;                    // per life
        std::chrono::seconds stays_at_most{0};      // how long a life lasts at most; 0: no limit
        std::function<io::socket_handle()> dial{};  // returns a new connection; empty: there is
                                                    // only one life
    };

    nonconforming_client(io::io_multiplexer& loop, io::socket_handle socket, const clock_source& clock,
                         const habits& how);

    /// Connects, misbehaves, disconnects. Suspends.
    [[nodiscard]] io::task<void> live();

    /// Returns the number of replies, and of those without an error status.
    [[nodiscard]] unsigned replies() const noexcept { return replies_; }
    [[nodiscard]] unsigned successes() const noexcept { return successes_; }
    /// Returns the number of durable handles that were reconnected in the next life.
    [[nodiscard]] unsigned reclaimed() const noexcept { return reclaimed_; }
    using simulated_client::problem;

private:
    void take_message(const smb::wire::message_view& message) override;
    void adjust(smb::wire::header& header) override;

    // The data to make an open durable, and to reconnect to it.
    struct durable_open {
        smb::wire::file_id file{};
        std::string name;  // UTF-16LE
        std::optional<smb::wire::lease> lease;
    };

    [[nodiscard]] io::task<void> live_once();
    [[nodiscard]] io::task<void> act();
    [[nodiscard]] io::task<void> hear_out();
    void take_open(const smb::wire::message_view& message);
    void claim(const durable_open& kept);
    void put_one();
    void put_create();
    void put_data_request();
    void put_lock();
    void put_rename();
    void put_cancel();
    void put_compound();
    void put_acknowledgement(const smb::wire::message_view& notification);
    [[nodiscard]] smb::wire::file_id some_file();

    io::io_multiplexer& loop_;
    habits how_;
    std::vector<smb::wire::file_id> files_;
    std::vector<std::uint64_t> async_ids_;
    std::map<std::uint64_t, durable_open> asked_;  // by message id: CREATEs that are not answered
                                                   // yet
    std::set<std::uint64_t> claims_;               // messages that reconnect to one
    std::vector<durable_open> durables_;
    unsigned reclaimed_ = 0;
    unsigned replies_ = 0;
    unsigned successes_ = 0;
};

}  // namespace sluice::smb_simulation
