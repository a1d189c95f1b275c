#include "sluice/io/name/name_connect.hpp"

#include "sluice/io/stream/socket_sender.hpp"

namespace sluice::io {
namespace {

using time_point = deadline::steady_clock::time_point;

deadline until(time_point end) noexcept {
    return end == time_point::max() ? deadline() : deadline(end);
}

// When one of `attempts_left` attempts ends.
deadline share(time_point now, time_point end, std::size_t attempts_left) noexcept {
    ENSURE(attempts_left != 0, "the time that is left is divided among the attempts");
    if (end == time_point::max()) return {};
    return now >= end ? deadline::zero() : deadline((end - now) / static_cast<long>(attempts_left));
}

error no_time_left(const host_and_port& to) noexcept {
    return error::with_path(ETIMEDOUT, "connect by name", to.host);
}

}  // namespace

result<socket_handle> connect_by_name(name_resolver& resolver, const host_and_port& to,
                                      const socket_options& options, deadline within) noexcept {
    using steady = deadline::steady_clock;
    const time_point end = within.steady_end(steady::now(), deadline::system_clock::now());
    const auto addresses = resolver.resolve(to, until(end));
    if (not addresses) return failure(addresses.error());
    ENSURE(not addresses->empty(), "a lookup that succeeds has an address");
    error last = no_time_left(to);
    for (std::size_t i = 0; i != addresses->size(); ++i) {
        const time_point now = steady::now();
        if (now >= end) return failure(no_time_left(to));
        auto made = socket_handle::connect((*addresses)[i], options, share(now, end, addresses->size() - i));
        if (made) return made;
        last = made.error();
    }
    return failure(last);
}

task<result<socket_handle>> co_connect_by_name(io_multiplexer& multiplexer, name_resolver& resolver,
                                               host_and_port to, socket_options options,
                                               deadline within) noexcept {
    const time_point end = within.steady_end(multiplexer.now(), multiplexer.utc_now());
    const auto addresses = co_await co_resolve(multiplexer, resolver, to, until(end));
    if (not addresses) co_return failure(addresses.error());
    ENSURE(not addresses->empty(), "a lookup that succeeds has an address");
    error last = no_time_left(to);
    for (std::size_t i = 0; i != addresses->size(); ++i) {
        const socket_address& peer = (*addresses)[i];
        const time_point now = multiplexer.now();
        if (now >= end) co_return failure(no_time_left(to));
        auto made = socket_handle::create(peer.family(), socket_type::stream, options);
        if (not made) {
            last = made.error();  // a family that this machine does not have
            continue;
        }
        if (const auto attached = made->set_multiplexer(&multiplexer); not attached)
            co_return failure(attached.error());
        const auto connected = co_await co_connect(*made, peer, share(now, end, addresses->size() - i));
        if (connected) co_return std::move(*made);
        last = connected.error();
        if (last == std::errc::operation_canceled) break;
    }
    co_return failure(last);
}

}  // namespace sluice::io
