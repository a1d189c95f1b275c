#pragma once

#include <cstddef>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/rpc/rpc_pdu.hpp"
#include "sluice/smb/wire/rpc/rpc_pipe_testing.hpp"

namespace sluice::fuzzing {

/// Reads all replies of a pipe, which are complete fragments, and calls `look` with each. Returns
/// the size of all.
template <class Look>
std::size_t read_fragments(smb::wire::rpc_testing::whole_pipe& pipe, Look look) {
    std::size_t bytes = 0;
    while (pipe.readable_bytes() != 0) {
        std::vector<std::byte> room(smb::wire::rpc_fragment_bytes_sent_max);
        const auto read = pipe.read(room);
        const bytes_view fragment = *bytes_view(room).first(read.bytes);
        const auto head = fragment.take<smb::wire::rpc_head>();
        ENSURE(!read.more and head and checked(*head) and head->fragment_length.value() == fragment.size());
        look(fragment);
        bytes += fragment.size();
    }
    return bytes;
}
inline std::size_t read_fragments(smb::wire::rpc_testing::whole_pipe& pipe) {
    return read_fragments(pipe, [](bytes_view) {});
}

}  // namespace sluice::fuzzing
