// The answer of an unknown server to a probe: all bytes, and each beginning of them, because a
// caller classifies after every segment.

#include <algorithm>
#include <cstdint>

#include "sluice/smb/client/negotiate_probe.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice;
    using namespace sluice::smb::client;
    constexpr std::size_t bytes_max = 16 * 1024;
    if (size > bytes_max) return 0;
    const bytes_view received(reinterpret_cast<const std::byte*>(data), size);
    const probe_answer complete = classify_probe_answer(received);
    ENSURE(complete.reply.compressions.size() <= 8);
    bool was_decided = false;
    constexpr std::size_t beginnings_max = 1024;
    for (std::size_t length = 0; length <= std::min(size, beginnings_max); ++length) {
        const bool is_decided =
            classify_probe_answer(*received.first(length)).protocol != probed_protocol::incomplete;
        ENSURE(is_decided or not was_decided, "more bytes make an answer incomplete");
        was_decided = is_decided;
    }
    return 0;
}
