#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include "tests/shared_lines/line_sharing.hpp"
#include "tests/smb_simulation/clients/steady_client.hpp"
#include "tests/smb_simulation/world/server_on_loops.hpp"

namespace sluice::shared_lines {

/// A server on two loops, each for one client, that records how the loops disturb each other: the
/// clients alternately carry out the same operation, and nothing else runs. The share is a
/// directory of the host, as that of `sluice serve`.
///
/// Thread safety: run() that of the test; what it calls, on a thread of its own.
class two_loops {
public:
    using operation = io::task<bool> (smb_simulation::steady_client::*)();

    enum class clients : std::uint8_t {
        in_own_directories,
        in_one_directory,  ///< with sessions of their own, and the same file
        are_channels,      ///< with one session and one open
    };
    struct recording {
        std::vector<moving_line> lines;
        std::size_t executions = 0;
        double accesses = 0;  // in one execution, on average
    };

    /// `attempt`: part of the names of all files. Other files may have other places in tables.
    two_loops(clients how, unsigned attempt);
    two_loops(const two_loops&) = delete;
    two_loops& operator=(const two_loops&) = delete;
    ~two_loops();

    void run(const std::function<void()>& body);

    /// The lines that move in the operation, once warm. In the body of run().
    [[nodiscard]] recording record(operation what);

    [[nodiscard]] smb::server::server_context& host() noexcept { return served_->server().context(); }

private:
    // Reports to the clients' thread that a loop has reached it. Has lines of its own, and is not
    // recorded.
    class alignas(line_bytes) end_of_turn final : public io::posted_item {
    public:
        void wait_at(smb::server::server_loop& loop);

    private:
        void invoke() noexcept override;

        int core_ = access_trace::no_core;
        std::binary_semaphore is_reached_{0};
    };

    void live(const std::function<void()>& body);
    [[nodiscard]] std::size_t directory_of(std::size_t client) const noexcept {
        return how_ == clients::in_own_directories ? client : 0;
    }
    [[nodiscard]] std::string name_of(std::size_t directory) const;
    void carry_out(std::size_t client, operation what);
    void let_loops_finish();

    static constexpr std::size_t count = 2;
    // A multiple of the calls of which a domain measures one.
    static constexpr std::size_t executions_each = 64;

    clients how_;
    unsigned attempt_;
    std::unique_ptr<smb_simulation::server_on_loops> served_;
    std::array<end_of_turn, count> ends_;
    std::array<io::socket_handle, count> sockets_;
    std::unique_ptr<io::io_multiplexer> loop_;  // for the clients
    std::vector<std::unique_ptr<smb_simulation::steady_client>> clients_;
};

}  // namespace sluice::shared_lines
