#pragma once

#include "sluice/base/result.hpp"
#include "sluice/io/path/confinement.hpp"
#include "sluice/io/path/path_view.hpp"

// The system calls that open a path, confined or not. Not for users.
namespace sluice::io {

/// The directory that a path is relative to, with its confinement: a path_handle without its owner.
/// A negative descriptor is the current directory, which cannot be confined.
struct anchor_directory {
    int descriptor = -1;
    confinement limit = confinement::none;
};

struct open_how_at {
    int flags = 0;                 // O_CLOEXEC is added
    unsigned permission_bits = 0;  // for a created file
    const char* operation = "open";
};

/// Returns the descriptor for the `*at` system calls relative to `base`: its own, or the current
/// directory's.
[[nodiscard]] int directory_of(const anchor_directory& base) noexcept;

/// Opens `path` relative to `base`, with its confinement. The caller owns the descriptor. Errors:
/// see path_handle::open, and those of `open(2)`. Allocates: nothing.
[[nodiscard]] result<int> open_at(const anchor_directory& base, const terminated_path& path,
                                  open_how_at how) noexcept;

}  // namespace sluice::io
