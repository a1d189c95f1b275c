#pragma once

#include <memory>
#include <optional>

#include "sluice/base/clock.hpp"
#include "sluice/discovery/http/request_listener.hpp"
#include "sluice/discovery/network/protocol.hpp"
#include "sluice/discovery/network/socket_pair.hpp"
#include "sluice/discovery/wsd/wsd_responder.hpp"

namespace sluice::discovery {

/// WS-Discovery with its sockets, and the description of the server over HTTP (port 5357). The port
/// accepts connections on all interfaces: those from hosts outside all links are closed unread.
class wsd_protocol final : public discovery_protocol {
public:
    /// `random` outlives the object. Errors: those of socket_pair::open, and of
    /// listening_socket_handle::listen.
    [[nodiscard]] static result<std::unique_ptr<wsd_protocol>> open(wsd_facts facts, random_source& random);

    [[nodiscard]] std::vector<int> descriptors() const override { return sockets_.descriptors(); }
    void start(io::io_multiplexer& loop) override;
    void set_links(std::span<const link> links, const std::vector<ip_bytes>& own_addresses,
                   time now) override;
    void receive(time now) override;
    [[nodiscard]] time next_due() const noexcept override { return responder_.next_due(); }
    void advance(time now) override;
    void stop() override;
    [[nodiscard]] io::task<void> done() override;

private:
    wsd_protocol(wsd_facts facts, random_source& random, socket_pair sockets,
                 io::listening_socket_handle listener)
        : responder_(std::move(facts), random),
          sockets_(std::move(sockets)),
          listener_(std::move(listener)) {}
    void send(const wsd_responder::packets& out);
    [[nodiscard]] io::task<void> answer(io::socket_handle& socket);

    system_clock_source clock_;
    wsd_responder responder_;
    socket_pair sockets_;
    io::listening_socket_handle listener_;  // until start()
    std::optional<http::request_listener> connections_;
};

}  // namespace sluice::discovery
