#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "tests/smb_simulation/clients/simulated_client.hpp"
#include "tests/smb_simulation/world/exchanges.hpp"

namespace sluice::smb_simulation {

class busy_client;

/// One connection of a busy_client.
class busy_channel final : private simulated_client {
public:
    busy_channel(busy_client& of, io::socket_handle socket, std::uint64_t seed);

    /// Sets up a session, or joins that of the first channel; then sends requests, and reads
    /// replies until all channels of the client have done so. Suspends.
    [[nodiscard]] io::task<void> live();

    using simulated_client::problem;
    [[nodiscard]] unsigned successes() const noexcept { return successes_; }
    /// Notifies the channel that another channel is done.
    void notify() noexcept;

private:
    friend class busy_client;

    void before_send(bytes_view frames) override;
    void take_message(const smb::wire::message_view& message) override;
    void adjust(smb::wire::header& header) override;

    [[nodiscard]] io::task<bool> begin();
    [[nodiscard]] io::task<void> listen() noexcept;
    [[nodiscard]] io::task<void> act();
    [[nodiscard]] io::task<bool> flush_and_wait();
    [[nodiscard]] io::task<void> end();
    void put_acknowledgements();
    void put_cancels();
    void put_one();
    void put_create();
    void put_data_request();
    void put_lock();
    void put_set_info();
    void put_compound();
    void put_watch();
    [[nodiscard]] std::vector<reach> reach_of_others() const;
    [[nodiscard]] bool is_ended_by_server() const noexcept;

    struct open_name {
        smb::wire::file_id file{};
        bool is_register = false;
    };
    [[nodiscard]] open_name some_file();

    busy_client& client_;
    std::size_t number_;
    smb::server::one_shot_event<bool> news_;
    io::task_group listening_;
    io::task_group leaving_;
    bool hears_ = false;   // listen() runs
    bool is_cut_ = false;  // the server sends no more
    bool is_done_ = false;
    bool logged_off_ = false;
    std::uint64_t frame_begin_ = 0;
    std::vector<open_name> files_;
    std::set<std::uint64_t> registers_asked_;          // message IDs of CREATEs
    std::set<std::uint64_t> waiting_;                  // async IDs of requests
                                                       // that have no final reply
    std::map<std::uint64_t, std::uint64_t> async_of_;  // by message ID
    std::vector<smb::wire::oplock_break_args> acknowledgements_;
    unsigned successes_ = 0;
};

/// A client of one or more channels that is busy with few files: it opens, reads and writes, locks,
/// renames, links and removes them, watches their directory, acknowledges breaks, late or never,
/// and cancels requests. At the end it logs off, after cancelling pending requests, or closes its
/// connections. All actions are drawn from a seed, and oracles see all messages. Thread safety: its
/// loop's thread.
class busy_client {
public:
    struct habits {
        std::uint64_t seed = 1;
        std::size_t number = 1;  // determines its GUID and its address
        std::size_t channels = 1;
        unsigned requests = 60;  // per channel
        bool is_polite = true;   // ends properly, and acknowledges each break
        // How long it stays, whatever it waits for; 0: until the end.
        std::chrono::seconds stays_at_most{0};
        std::function<io::socket_handle()> dial{};
    };

    busy_client(io::io_multiplexer& loop, const clock_source& clock, exchanges& seen, habits how);

    /// Runs the client on all channels. Suspends.
    [[nodiscard]] io::task<void> live();

    [[nodiscard]] std::string problem() const;
    [[nodiscard]] unsigned successes() const;

private:
    friend class busy_channel;

    io::io_multiplexer& loop_;
    const clock_source& clock_;
    exchanges& seen_;
    habits how_;
    std::vector<std::unique_ptr<busy_channel>> channels_;
    std::size_t done_ = 0;
};

}  // namespace sluice::smb_simulation
