#pragma once

#include <cstdint>

namespace sluice::io {

/// The system call that transfers one segment, and the form of its arguments: see system_call.hpp.
struct piece_call {
    std::int16_t number = -1;
    bool takes_list = false;    // of buffers, instead of one
    bool takes_offset = false;  // as the fourth argument
    bool any_will_do = false;   // any number of bytes completes the transfer, as
                                // for reads of streams
    std::uint16_t fourth = 0;   // without an offset
    std::uint8_t sixth = 0;

    [[nodiscard]] constexpr bool is_known() const noexcept { return number >= 0; }
};

}  // namespace sluice::io
