#pragma once

#include "sluice/base/result.hpp"
#include "sluice/io/file/extent_pair.hpp"

// Steps of zeroing and copying for file_handle. Not for users.
namespace sluice::io {

/// Returns the end of a range, limited to `length`: compared by subtraction, so that it cannot
/// wrap.
[[nodiscard]] constexpr extent_type end_of(extent_pair range, extent_type length) noexcept {
    if (range.offset >= length) return length;
    return range.length < length - range.offset ? range.offset + range.length : length;
}

/// Returns the first segment of data in a range, which must be within the file; of length 0 if
/// there is none. Where the file system does not support holes, everything is data. Where the file
/// changes during the call, up to 64 KiB are reported as data, so a length of 0 always means the
/// end. Errors: EIO.
[[nodiscard]] result<extent_pair> next_data(int descriptor, extent_pair range) noexcept;

/// Frees the blocks of a range. Errors: EOPNOTSUPP if the file system does not support it;
/// otherwise as file_handle::zero.
[[nodiscard]] result<void> punch_hole(int descriptor, extent_pair range) noexcept;

/// Writes zeros over a range. Errors: as file_handle::zero.
[[nodiscard]] result<void> write_zeros(int descriptor, extent_pair range) noexcept;

}  // namespace sluice::io
