#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sluice/io/path/path_handle.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::io {

/// The system calls that the probe examines, one each. For tests, which script them.
class atomicity_calls {
public:
    atomicity_calls() noexcept = default;
    atomicity_calls(const atomicity_calls&) = delete;
    atomicity_calls& operator=(const atomicity_calls&) = delete;
    virtual ~atomicity_calls() = default;

    /// pread(2) and pwrite(2). Any thread; several at a time.
    [[nodiscard]] virtual std::ptrdiff_t read(int descriptor, std::span<std::byte> into,
                                              extent_type offset) noexcept;
    [[nodiscard]] virtual std::ptrdiff_t write(int descriptor, std::span<const std::byte> from,
                                               extent_type offset) noexcept;
};

/// The kind of I/O to try: through the page cache, past it (O_DIRECT), or both in this order.
enum class atomicity_io : unsigned char { buffered, direct, both };

/// The parameters of a probe.
struct atomicity_options {
    std::chrono::nanoseconds time_per_size = std::chrono::milliseconds(250);
    std::size_t write_bytes_min = 1;
    std::size_t write_bytes_max = 16U << 20;
    unsigned writers = 2;
    unsigned readers = 2;
    extent_type offset_bytes = 0;  ///< offset of all writes and reads in the file
    atomicity_io io = atomicity_io::both;
    atomicity_calls* calls = nullptr;  ///< null: the system's
};

/// The result for one size.
struct atomicity_row {
    std::size_t write_bytes = 0;
    std::uint64_t writes = 0;
    std::uint64_t reads = 0;
    std::uint64_t torn_reads = 0;  ///< reads whose one call returned bytes of more than one write
    /// Reads that found another write than the same reader's previous read: the opportunities to
    /// see a torn read.
    std::uint64_t fresh_reads = 0;
    /// Calls that transferred less than requested. They are not continued: a second call is another
    /// read, or another write.
    std::uint64_t short_reads = 0;
    std::uint64_t short_writes = 0;
};

/// The results for one way of doing I/O, smallest writes first.
struct atomicity_series {
    bool direct = false;
    /// The reason why this kind is not supported here; then there are no rows.
    std::optional<error> refused;
    std::vector<atomicity_row> rows;

    /// Returns the largest write such that it and all smaller ones were always read complete, each
    /// in one call, by readers that did see the writes change; 0 if there is none.
    [[nodiscard]] std::size_t whole_bytes_max() const noexcept;
    /// Returns the smallest write with a torn read; 0 if there is none.
    [[nodiscard]] std::size_t torn_bytes_min() const noexcept;
};

struct atomicity_report {
    volume_status volume;
    std::vector<atomicity_series> series;  ///< buffered, then direct
};

/// Determines by experiment which writes are atomic for concurrent readers. Threads rewrite one
/// range of one file, each with two alternating byte values of its own, at each power of two of
/// bytes. Other threads search for reads that return two different bytes.
///
/// Each write and each read is exactly one system call, and the range has one value before the
/// first of them. So a torn read is caused by the file system: it proves that writes of that size
/// are not atomic on this volume. The absence of torn reads proves nothing: the moment may have
/// been missed, and another kernel, load or number of CPUs may show one. The result does not apply
/// to other offsets, other hosts, or power failures.
///
/// Works in a temporary file of `offset_bytes + write_bytes_max` bytes in `directory`. Errors: as
/// file_handle::open; ENOSPC; EINVAL if there is no reader, writer or size, more than 127 writers,
/// or a size or offset of more than 1 GiB; EAGAIN if no thread can be started; ENOMEM; EIO.
/// Allocates: write_bytes_max for each reader, twice that for each writer, and the report. Blocks:
/// for time_per_size for each size, and each kind of I/O. Threads: writers + readers, which end
/// before it returns.
[[nodiscard]] result<atomicity_report> probe_atomicity(const path_handle& directory,
                                                       const atomicity_options& options = {}) noexcept;

}  // namespace sluice::io
