#pragma once

#include <cstdint>

namespace sluice::io {

/// Which system call transfers one piece, and how its arguments are made: see system_call.hpp.
struct piece_call {
    std::int16_t number = -1;
    bool takes_list = false;    // of buffers, instead of one
    bool takes_offset = false;  // as the fourth argument
    bool any_will_do = false;   // the transfer is complete however little it moves, as reads of streams are
    std::uint16_t fourth = 0;   // without an offset
    std::uint8_t sixth = 0;

    [[nodiscard]] constexpr bool is_known() const noexcept { return number >= 0; }
};

}  // namespace sluice::io
