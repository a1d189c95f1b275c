#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "sluice/io/path_handle.hpp"
#include "sluice/io/volume_status.hpp"

namespace sluice::io {

/// How long and how hard to try.
struct atomicity_options {
    std::chrono::nanoseconds time_per_size = std::chrono::milliseconds(250);
    std::size_t write_bytes_min = 1;
    std::size_t write_bytes_max = 16U << 20;
    unsigned writers = 2;
    unsigned readers = 2;
};

/// What was seen of writes of one size.
struct atomicity_row {
    std::size_t write_bytes = 0;
    std::uint64_t writes = 0;
    std::uint64_t reads = 0;
    std::uint64_t torn_reads = 0;  // held bytes of more than one write
    /// Reads that found another write than the same reader's read before: how often a tear could have been
    /// met.
    std::uint64_t fresh_reads = 0;
};

/// What was seen of one way of doing i/o, smallest writes first.
struct atomicity_series {
    bool direct = false;
    std::optional<error> refused;  // why this way cannot be taken here; then there are no rows
    std::vector<atomicity_row> rows;

    /// The largest write such that it and all smaller ones were always seen whole, by readers that did see
    /// writes come and go; 0 if there is none.
    [[nodiscard]] std::size_t whole_bytes_max() const noexcept;
};

struct atomicity_report {
    volume_status volume;
    std::vector<atomicity_series> series;  // buffered, then direct
};

/// Finds out by trying which writes concurrent readers see whole: threads rewrite the front of one file, each
/// with two bytes of its own by turns, at each power of two of bytes, and others look for reads that hold two
/// different bytes.
///
/// A torn read proves that writes of that size are not atomic on this volume. None proves nothing: the moment
/// may have been missed, and another kernel, load or number of processors may show it. Nothing is said about
/// writes at offsets that are no multiple of their size, about other hosts, or about what survives a power
/// cut. Works in a temporary file of `write_bytes_max` bytes in `directory`. Errors: as file_handle::open;
/// ENOSPC; EINVAL if there is no reader, writer or size, or there are more than 127 writers or 1 GiB; EAGAIN
/// if no thread can be started; ENOMEM; EIO. Allocates: write_bytes_max for each reader, twice that for each
/// writer, and the report. Blocks: for time_per_size for each size, twice. Threads: writers + readers, all
/// gone on return.
[[nodiscard]] result<atomicity_report> probe_atomicity(const path_handle& directory,
                                                       const atomicity_options& options = {}) noexcept;

}  // namespace sluice::io
