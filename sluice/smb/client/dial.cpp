#include "sluice/smb/client/dial.hpp"

#include "sluice/io/stream/socket_sender.hpp"

namespace sluice::smb::client {

io::task<outcome<not_null_ptr<connection>>> dial(dependencies deps,
                                                 std::span<const io::socket_address> addresses,
                                                 connection_options options) noexcept {
    constexpr const char* step = "connect";
    client_error last = client_error::of_io(step, EADDRNOTAVAIL);
    for (const io::socket_address& address : addresses) {
        auto socket = io::socket_handle::create(address.family());
        if (not socket) {
            last = client_error::of_io(step, socket.error());
            continue;
        }
        if (const auto attached = socket->set_multiplexer(&deps.loop); not attached)
            co_return failed(client_error::of_io(step, attached.error()));
        const auto connected = co_await io::co_connect(*socket, address, options.connect_timeout);
        if (not connected) {
            last = client_error::of_io(step, connected.error());
            continue;
        }
        io::task<outcome<not_null_ptr<connection>>> opening =
            connection::open(deps, std::move(*socket), options);
        outcome<not_null_ptr<connection>> opened = co_await std::move(opening);
        if (not opened or (*opened)->has_ids_for_channels()) co_return std::move(opened);
        // Connect once more, so that the server chooses an algorithm that does not need separate
        // ids.
        const std::unique_ptr<connection> given_up = opened->release();
        io::task<void> close_task = given_up->close();
        co_await std::move(close_task);
        options.offers_gmac = false;
        io::task<outcome<not_null_ptr<connection>>> again =
            dial(deps, std::span(&address, 1), std::move(options));
        co_return co_await std::move(again);
    }
    co_return failed(last);
}

}  // namespace sluice::smb::client
