// The server's end of a pipe against arbitrary clients, and our client against arbitrary
// servers. The first byte selects which, and how the rest is divided into writes; the pipe's
// replies must be complete fragments.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuzz/rpc_fixed_host.hpp"
#include "fuzz/rpc_reader.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;

// Our client gets the replies, too.
void read_replies(rpc_testing::whole_pipe& pipe) {
    (void)fuzzing::read_fragments(pipe, [](bytes_view fragment) {
        (void)decode_srvsvc_bind_ack(fragment);
        const auto piece = decode_rpc_response(fragment);
        if (piece) (void)decode_share_enum_results(piece->bytes);
    });
}

void serve(bytes_view input, rpc_service service, std::size_t step, bool bound) {
    fuzzing::rpc_fixed_host host;
    rpc_testing::whole_pipe pipe(
        service, host, {.arguments_bytes_max = 4096, .results_bytes_max = 65536, .unread_bytes_max = 131072});
    if (bound) ENSURE(pipe.write(encode_srvsvc_bind(1)));
    byte_reader rest(input);
    while (rest.remaining() != 0) {
        if (!pipe.write(*rest.take_bytes(std::min(step, rest.remaining())))) break;
        read_replies(pipe);
    }
    read_replies(pipe);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const unsigned how = data[0];
    const bytes_view input(reinterpret_cast<const std::byte*>(data + 1), size - 1);
    if (how % 4 == 3) {
        (void)decode_srvsvc_bind_ack(input);
        (void)decode_rpc_response(input);
        (void)decode_share_enum_results(input);
    } else {
        serve(input, how % 4 == 2 ? rpc_service::wkssvc : rpc_service::srvsvc, how / 4 + 1, how % 4 == 1);
    }
    return 0;
}
