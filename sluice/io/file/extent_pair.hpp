#pragma once

#include <limits>

#include "sluice/io/call/request.hpp"

namespace sluice::io {

/// A range of a file.
struct extent_pair {
    static constexpr extent_type to_the_end = std::numeric_limits<extent_type>::max();

    extent_type offset = 0;
    extent_type length = to_the_end;  // to_the_end: the length of the file, now or later

    [[nodiscard]] friend constexpr bool operator==(const extent_pair&, const extent_pair&) noexcept = default;
};

}  // namespace sluice::io
