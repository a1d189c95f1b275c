// Our client's list of shares against arbitrary servers: the first byte is the length of each READ,
// the rest is what the pipe returns.

#include <algorithm>
#include <cstdint>

#include "sluice/smb/wire/rpc/rpc_fragments.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;

constexpr std::uint32_t call = 2;

// Returns whether more data may follow.
bool take(rpc_fragments& fragments, rpc_results& results) {
    for (;;) {
        const auto next = fragments.next();
        if (not next) return false;
        if (not*next) return true;
        (void)decode_srvsvc_bind_ack(**next);
        const auto appended = results.append(**next);
        ENSURE(results.bytes().size() <= rpc_results_bytes_max, "the results are bounded");
        if (not appended) return false;
        if (not*appended) continue;
        const auto found = decode_share_enum_results(results.bytes());
        ENSURE(not found or found->shares.size() <= rpc_shares_max, "the list is bounded");
        return false;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t step = std::size_t{data[0]} + 1;
    byte_reader rest(bytes_view(reinterpret_cast<const std::byte*>(data + 1), size - 1));
    rpc_fragments fragments;
    rpc_results results(call);
    while (rest.remaining() != 0) {
        fragments.append(*rest.take_bytes(std::min(step, rest.remaining())));
        if (not take(fragments, results)) break;
    }
    return 0;
}
