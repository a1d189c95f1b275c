#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/discovery/mdns/service_description.hpp"
#include "sluice/discovery/network/interface_list.hpp"
#include "sluice/discovery/network/protocol.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::discovery {

/// Advertises a server on the private networks that it listens on, from a thread of its own with
/// its own multiplexer, so that no packet of the network delays a client of the server.
///
/// Thread safety: the owner's thread; request_stop() any thread.
class advertiser {
public:
    struct settings {
        service_description description;
        std::vector<io::socket_address> listening;  // addresses of the server
        std::array<std::byte, 16> identity{};       // stays the same between starts of the server
    };
    /// A protocol that cannot be used, and why.
    struct problem {
        std::string protocol;
        error why;
    };

    /// Opens the sockets and starts the thread. Protocols that cannot be used are appended to
    /// `problems`; null if none can. Errors: EMFILE, EAGAIN, and those of io::best_available().
    [[nodiscard]] static result<std::unique_ptr<advertiser>> start(const settings& given,
                                                                   std::vector<problem>& problems);
    advertiser(const advertiser&) = delete;
    advertiser& operator=(const advertiser&) = delete;
    /// Withdraws the server. Blocks: until the thread has ended, some milliseconds.
    ~advertiser();

    /// Lets the thread withdraw the server and end. Blocks: never.
    void request_stop() noexcept;

private:
    class poller;

    explicit advertiser(const settings& given);
    [[nodiscard]] result<void> open_poller();
    [[nodiscard]] io::task<void> run();
    void update_links();

    std::vector<io::socket_address> listening_;
    system_clock_source clock_;
    system_random random_;
    std::unique_ptr<io::io_multiplexer> loop_;
    std::vector<std::unique_ptr<discovery_protocol>> protocols_;
    std::unique_ptr<poller> poller_;
    int wake_up_ = -1;  // an eventfd that the poller watches
    std::atomic<bool> must_stop_{false};
    std::thread runner_;
};

}  // namespace sluice::discovery
