// A server and a hostile client: the input is a small program of requests, valid and invalid,
// over several connections, and of events in the server. The server may refuse anything. It
// does not stop, does not hang, and keeps no state of clients that have disconnected.
//
// The input: two bytes of conditions (state_world.hpp), then operations: a byte that selects one,
// and its operands. A request begins with an envelope (state_client.hpp).

#include "fuzz/state_client.hpp"
#include "fuzz/state_requests.hpp"

namespace {

using namespace sluice;

constexpr std::size_t operations_max = 400;

void operate(fuzz::world& where, fuzz::client& who, fuzz::program& script) {
    const unsigned code = script.byte();
    constexpr unsigned requests_from = 16;
    if (code >= requests_from) return fuzz::send_request(who, script, code - requests_from);
    switch (code) {
        case 0:
            return who.connect(script.byte() % fuzz::client::connections);
        case 1:
            return who.drop(script.byte() % fuzz::client::connections);
        case 2:
            return who.shut(script.byte() % fuzz::client::connections);
        case 3: {
            const fuzz::envelope how = who.take_envelope();
            const unsigned choice = script.byte();
            return who.negotiate(how, choice, script.byte());
        }
        case 4:
        case 5: {
            const fuzz::envelope how = who.take_envelope();
            const unsigned user = script.byte();
            const unsigned bits = script.byte();
            return who.log_on(how, {.user = user,
                                    .is_binding = code == 5,
                                    .has_wrong_password = (bits & 1U) != 0,
                                    .names_previous = (bits & 2U) != 0,
                                    .stops_halfway = (bits & 4U) != 0,
                                    .continues_session = (bits & 8U) != 0,
                                    .is_in_other_domain = (bits & 16U) != 0,
                                    .changes_user = (bits & 32U) != 0});
        }
        case 6: {
            constexpr std::array<std::uint32_t, 6> milliseconds{1, 1000, 6000, 36'000, 61'000, 3'601'000};
            where.pass(std::chrono::milliseconds(milliseconds[script.byte() % milliseconds.size()]));
            return who.take_replies();
        }
        case 7: {
            const unsigned stays = script.byte();
            where.reload(stays, script.byte());
            break;
        }
        case 8:
            where.admit(script.byte());
            break;
        case 9:
            where.set_faults(script.byte());
            break;
        case 10:
            where.check();
            break;
        case 11: {
            const unsigned connection = script.byte() % fuzz::client::connections;
            const unsigned length = script.byte();
            return who.send_raw(connection, script.take(length));
        }
        case 12: {
            const fuzz::envelope how = who.take_envelope();
            const auto command = smb::wire::command(script.byte());
            const unsigned length = script.byte();
            return who.send_body(how, command, script.take(length));
        }
        default:
            break;
    }
    where.settle();
    who.take_replies();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::program script(bytes_view(reinterpret_cast<const std::byte*>(data), size));
    const fuzz::circumstances how(script.word());
    fuzz::world where(how);
    {
        fuzz::client who(where, script);
        for (std::size_t count = 0; not script.is_over() and count != operations_max; ++count)
            operate(where, who, script);
        where.check();
        if (how.stops_early) where.server().stop();
    }
    if (not how.stops_early) {
        where.finish();
        const auto left = where.server().gauges();
        ENSURE(left.connections == 0, "a connection outlives its client");
        ENSURE(left.sessions == 0, "a session outlives its connections");
        ENSURE(left.opens == 0, "an open outlives its client and its time");
    }
    where.stop();
    return 0;
}
