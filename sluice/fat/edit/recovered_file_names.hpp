#pragma once

#include <string_view>
#include <vector>

#include "sluice/fat/edit/directory_slots.hpp"

namespace sluice::fat {

/// Names for the files that repair creates in the root: FSCK0000.REC to FSCK9999.REC, then
/// FSC10000.REC to FSC99999.REC. There are more of them than slots in a directory.
///
/// Thread safety: none of its own.
class recovered_file_names {
public:
    /// Reads the root to find the names in use. Errors: those of the device. Allocates: a bit per
    /// name.
    [[nodiscard]] static result<recovered_file_names> in(directory_slots& root);

    /// Returns the next name that is not in the root and was not returned before. The first number
    /// is one more than the highest in the root. Complexity: amortised O(1).
    [[nodiscard]] short_name_bytes next() noexcept;

    static constexpr std::uint32_t count = 100'000;

private:
    recovered_file_names() : is_taken_(count) {}

    std::vector<bool> is_taken_;
    std::uint32_t next_ = 0;
};

}  // namespace sluice::fat
