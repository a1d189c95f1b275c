#pragma once

#include <cstdint>

#include "sluice/base/bytes.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::cli {

/// The data and the holes of a file, for many queries about neighbouring ranges. The file system is
/// queried once for all ranges of one run of data: on tmpfs a query takes time in proportion to
/// that run.
///
/// The answer may be out of date if the file changes. Thread safety: one thread.
class data_ranges {
public:
    struct part {
        std::uint64_t length = 0;  // from the start of the requested range; not 0
        bool is_data = true;
    };
    /// Returns the first part of `range`, which is not empty. If the file system does
    /// not know, it is data.
    /// Allocates: nothing. Blocks: for the file system. Complexity: constant, if the previous run
    /// of data or hole has the start of `range`.
    [[nodiscard]] part first_of(const io::file_handle& file, byte_extent range) noexcept;

private:
    void ask(const io::file_handle& file, std::uint64_t offset) noexcept;

    std::uint64_t first_ = 0;  // the known range: [first_, end_)
    std::uint64_t end_ = 0;
    bool is_data_ = false;
};

}  // namespace sluice::cli
