#pragma once

#include <memory>

#include "sluice/discovery/mdns/responder.hpp"
#include "sluice/discovery/network/protocol.hpp"
#include "sluice/discovery/network/socket_pair.hpp"

namespace sluice::discovery {

/// The responder with its sockets.
class mdns_protocol final : public discovery_protocol {
public:
    /// `random` outlives the object. Errors: those of socket_pair::open.
    [[nodiscard]] static result<std::unique_ptr<mdns_protocol>> open(const service_description& description,
                                                                     random_source& random);

    [[nodiscard]] std::vector<int> descriptors() const override { return sockets_.descriptors(); }
    void set_links(std::span<const link> links, const std::vector<ip_bytes>& own_addresses,
                   time now) override;
    void receive(time now) override;
    [[nodiscard]] time next_due() const noexcept override { return responder_.next_due(); }
    void advance(time now) override;
    void stop() override;

private:
    mdns_protocol(const service_description& description, random_source& random, socket_pair sockets)
        : responder_(description, random), sockets_(std::move(sockets)) {}
    void send(const mdns_responder::packets& out);

    mdns_responder responder_;
    socket_pair sockets_;
};

}  // namespace sluice::discovery
