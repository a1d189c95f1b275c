#pragma once

#include "sluice/base/result.hpp"
#include "sluice/io/file/extent_pair.hpp"

// Steps of zeroing and copying that file_handle is made of. Not for users.
namespace sluice::io {

/// Where a range ends, cut to `length`: compared by subtraction, so that it cannot wrap.
[[nodiscard]] constexpr extent_type end_of(extent_pair range, extent_type length) noexcept {
    if (range.offset >= length) return length;
    return range.length < length - range.offset ? range.offset + range.length : length;
}

/// The first piece of data in a range, which must lie within the file; of length 0 if there is none.
/// Everything is data where the file system knows no holes, and up to 64 KiB are where the file changes
/// meanwhile: a length of 0 is always that of the end. Errors: EIO.
[[nodiscard]] result<extent_pair> next_data(int descriptor, extent_pair range) noexcept;

/// Gives the blocks of a range back. Errors: EOPNOTSUPP if the file system cannot; as file_handle::zero.
[[nodiscard]] result<void> punch_hole(int descriptor, extent_pair range) noexcept;

/// Writes zeros over a range. Errors: as file_handle::zero.
[[nodiscard]] result<void> write_zeros(int descriptor, extent_pair range) noexcept;

}  // namespace sluice::io
