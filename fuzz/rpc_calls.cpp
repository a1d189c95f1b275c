#include "fuzz/rpc_calls.hpp"

#include <algorithm>
#include <vector>

#include "fuzz/rpc_fixed_host.hpp"
#include "fuzz/rpc_reader.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"

namespace sluice::fuzzing {
namespace {

using namespace smb::wire;

constexpr rpc_limits limits{
    .arguments_bytes_max = 4096, .results_bytes_max = 65536, .unread_bytes_max = 131072};

const rpc_syntax& interface_of(rpc_service service) noexcept {
    switch (service) {
        case rpc_service::srvsvc:
            return rpc_srvsvc_interface;
        case rpc_service::wkssvc:
            return rpc_wkssvc_interface;
        case rpc_service::samr:
            return rpc_samr_interface;
        case rpc_service::lsarpc:
            break;
    }
    return rpc_lsarpc_interface;
}

}  // namespace

void execute_rpc_calls(rpc_service service, bytes_view input) {
    byte_reader reader(input);
    const auto how = reader.take<le8>();
    if (!how) return;
    rpc_fixed_host host(how->value() % 2 == 0);
    rpc_testing::whole_pipe pipe(service, host, limits);
    ENSURE(pipe.write(encode_rpc_bind(interface_of(service), 1)));
    ENSURE(read_fragments(pipe) != 0);
    for (;;) {
        const auto operation = reader.take<le8>();
        const auto length = reader.take<le16>();
        if (!operation or !length) return;
        const std::size_t size = std::min<std::size_t>(
            {length->value(), reader.remaining(), rpc_fragment_bytes_least - sizeof(rpc_head) - 8});
        const rpc_call_head head{.allocation_hint = {}, .context = {}, .operation = le16(operation->value())};
        std::vector<std::byte> body(bytes_of(head).begin(), bytes_of(head).end());
        const bytes_view arguments = *reader.take_bytes(size);
        body.insert(body.end(), arguments.begin(), arguments.end());
        std::vector<std::byte> fragment;
        append_rpc_fragment(fragment, {.packet = rpc_packet::request, .call = 2}, body);
        ENSURE(pipe.write(fragment), "no arguments break the pipe");
        const std::size_t answered = read_fragments(pipe);
        ENSURE(answered != 0 and answered < limits.unread_bytes_max, "each call has one reply");
    }
}

}  // namespace sluice::fuzzing
