#include "sluice/io/file/atomicity_probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/file_status.hpp"

namespace sluice::io {
namespace {

constexpr std::size_t page_bytes = 4096;
// Alignment of direct I/O where the kernel does not report it.
constexpr std::size_t sector_bytes = 512;

struct free_memory {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using page_aligned = std::unique_ptr<std::byte[], free_memory>;

constexpr std::size_t in_whole_pages(std::size_t bytes) noexcept {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

page_aligned allocate_pages(std::size_t bytes) {
    page_aligned memory(static_cast<std::byte*>(std::aligned_alloc(page_bytes, in_whole_pages(bytes))));
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

// A file with one description per thread, so that no thread waits for the description of another.
struct worker {
    file_handle file;
    page_aligned memory;
    std::size_t second_pattern = 0;  // where in memory; writers only
    bool writes = false;
    std::uint64_t transfers = 0;
    std::uint64_t torn = 0;
    std::uint64_t fresh = 0;
    std::uint64_t cut_short = 0;
    std::optional<error> failed;
};

// The range that all of them write and read, and the calls they use.
struct place {
    atomicity_calls& calls;
    extent_type offset;
    std::size_t bytes;
};

void write_until(worker& self, const place& where, const std::atomic<bool>& stop) noexcept {
    ENSURE(self.writes and where.bytes <= self.second_pattern, "a pattern is as long as the longest write");
    while (not stop.load(std::memory_order_relaxed)) {
        // Two alternating patterns: a writer that is alone for a time slice must not write the
        // bytes that are in the file already.
        const std::size_t pattern = self.transfers % 2 == 0 ? 0 : self.second_pattern;
        const std::ptrdiff_t written =
            checked_byte_count(where.calls.write(self.file.descriptor(),
                                                 {self.memory.get() + pattern, where.bytes}, where.offset),
                               where.bytes);
        if (written < 0 and errno == EINTR) continue;
        if (written <= 0) {
            self.failed = written < 0 ? error::last("write", self.file.descriptor())
                                      : error(ENOSPC, "write", self.file.descriptor());
            return;
        }
        self.cut_short += static_cast<std::size_t>(written) != where.bytes ? 1 : 0;
        ++self.transfers;
    }
}

void read_until(worker& self, const place& where, const std::atomic<bool>& stop) noexcept {
    ENSURE(not self.writes, "a writer reads nothing");
    std::byte seen_before{};
    while (not stop.load(std::memory_order_relaxed)) {
        // One call. A short call is not continued, because a second call would see the file at
        // another time, and a difference between the two is not a torn read of the file system.
        const std::ptrdiff_t got = checked_byte_count(
            where.calls.read(self.file.descriptor(), {self.memory.get(), where.bytes}, where.offset),
            where.bytes);
        if (got < 0 and errno == EINTR) continue;
        if (got <= 0) {
            self.failed = got < 0 ? error::last("read", self.file.descriptor())
                                  : error(EIO, "read", self.file.descriptor());
            return;
        }
        const auto length = static_cast<std::size_t>(got);
        self.cut_short += length != where.bytes ? 1 : 0;
        const std::byte* const data = self.memory.get();
        // Every byte equal to its neighbour: all equal.
        const bool whole = std::memcmp(data, data + 1, length - 1) == 0;
        self.torn += whole ? 0 : 1;
        const bool stale = whole and data[0] == seen_before;
        self.fresh += stale ? 0 : 1;
        // On a busy machine the writers may wait for this very CPU. A thread that sleeps, unlike
        // one that yields, gets it back in the middle of their work.
        if (stale) std::this_thread::sleep_for(std::chrono::microseconds(20));
        seen_before = data[0];
        ++self.transfers;
    }
}

// Fills the range with one value before the first read: writes of another size have left a mixture
// of values there.
result<void> fill(worker& with, const place& where) noexcept {
    ENSURE(with.writes, "a reader has no pattern");
    for (std::size_t done = 0; done != where.bytes;) {
        const const_bytes_type left(with.memory.get() + done, where.bytes - done);
        const std::ptrdiff_t written = checked_byte_count(
            where.calls.write(with.file.descriptor(), left, where.offset + done), left.size());
        if (written < 0 and errno == EINTR) continue;
        if (written < 0) return failure(error::last("write", with.file.descriptor()));
        if (written == 0) return failure({ENOSPC, "write", with.file.descriptor()});
        done += static_cast<std::size_t>(written);
    }
    return {};
}

result<atomicity_row> try_size(std::vector<worker>& workers, const place& where,
                               std::chrono::nanoseconds time) {
    ENSURE(not workers.empty() and workers.front().writes, "the first worker writes before others read");
    if (const auto filled = fill(workers.front(), where); not filled) return failure(filled.error());
    std::atomic<bool> stop = false;
    {
        std::vector<std::jthread> threads;
        // Declared after the threads, so that it is set before they are joined, also when
        // one cannot be started.
        const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> stop_at_exit(
            &stop, [](std::atomic<bool>* flag) { flag->store(true, std::memory_order_relaxed); });
        for (worker& each : workers) {
            each.transfers = each.torn = each.fresh = each.cut_short = 0;
            threads.emplace_back([&each, where, &stop] {
                each.writes ? write_until(each, where, stop) : read_until(each, where, stop);
            });
        }
        std::this_thread::sleep_for(time);
    }
    atomicity_row row{.write_bytes = where.bytes};
    for (const worker& each : workers) {
        if (each.failed) return failure(*each.failed);
        (each.writes ? row.writes : row.reads) += each.transfers;
        (each.writes ? row.short_writes : row.short_reads) += each.cut_short;
        row.torn_reads += each.torn;
        row.fresh_reads += each.fresh;
    }
    return row;
}

result<std::vector<worker>> make_workers(const path_handle& directory, path_view name,
                                         const atomicity_options& options, caching cached) {
    ENSURE(options.writers <= 127, "each writer has two values of a byte, and zero is none of them");
    std::vector<worker> workers(options.writers + options.readers);
    for (std::size_t i = 0; i < workers.size(); ++i) {
        auto file = file_handle::open(directory, name, mode::write, creation::open_existing, cached);
        if (not file) return failure(file.error());
        worker& each = workers[i];
        each.file = std::move(*file);
        each.writes = i < options.writers;
        const std::size_t one_pattern = in_whole_pages(options.write_bytes_max);
        each.memory = allocate_pages(each.writes ? 2 * one_pattern : one_pattern);
        if (not each.writes) continue;
        // No two patterns of all writers are equal, and none is the zeros that the file begins
        // with.
        each.second_pattern = one_pattern;
        std::memset(each.memory.get(), static_cast<int>(2 * i + 1), one_pattern);
        std::memset(each.memory.get() + one_pattern, static_cast<int>(2 * i + 2), one_pattern);
    }
    return workers;
}

// Returns the size of the smallest transfer, which for direct I/O is the alignment.
std::size_t smallest(const file_handle& file, bool direct, std::size_t wanted) noexcept {
    if (not direct) return std::bit_ceil(wanted);
    const auto status = status_of(file, stat_fields::direct_io);
    const std::size_t alignment =
        status and status->direct_offset_alignment_bytes > 0
            ? std::max(status->direct_offset_alignment_bytes, status->direct_memory_alignment_bytes)
            : sector_bytes;
    return std::bit_ceil(std::max(wanted, alignment));
}

// Returns whether direct I/O is not supported here (EINVAL, EOPNOTSUPP), when opening or at the
// first transfer.
bool is_refusal(const error& why) noexcept {
    return why == std::errc::invalid_argument or why == std::errc::operation_not_supported;
}

result<atomicity_series> try_series(const path_handle& directory, path_view name,
                                    const atomicity_options& options, bool direct) {
    atomicity_calls of_the_system;
    atomicity_calls& calls = options.calls != nullptr ? *options.calls : of_the_system;
    atomicity_series series{.direct = direct, .refused = {}, .rows = {}};
    auto workers = make_workers(directory, name, options, direct ? caching::only_metadata : caching::all);
    if (not workers) {
        if (not direct or not is_refusal(workers.error())) return failure(workers.error());
        series.refused = workers.error();
        return series;
    }
    for (std::size_t bytes = smallest(workers->front().file, direct, options.write_bytes_min);
         bytes <= options.write_bytes_max; bytes *= 2) {
        ENSURE(std::has_single_bit(bytes), "sizes are doubled");
        const place where{.calls = calls, .offset = options.offset_bytes, .bytes = bytes};
        const auto row = try_size(*workers, where, options.time_per_size);
        if (not row) {
            if (not direct or not series.rows.empty() or not is_refusal(row.error()))
                return failure(row.error());
            series.refused = row.error();
            return series;
        }
        series.rows.push_back(*row);
    }
    return series;
}

result<atomicity_report> probe(const path_handle& directory, const atomicity_options& options) {
    const auto volume = volume_of(directory);
    if (not volume) return failure(volume.error());
    auto file = file_handle::temp_file(directory, caching::all);
    if (not file) return failure(file.error());
    const auto path = file->current_path();
    if (not path) return failure(path.error());
    const std::string name = path->substr(path->rfind('/') + 1);

    // Full length at once, so that no write changes it: the probe tests rewriting.
    const std::size_t length = options.offset_bytes + options.write_bytes_max;
    const page_aligned content = allocate_pages(length);
    std::memset(content.get(), 0, length);
    const auto filled = file->write(io_request<const_bytes_type>{const_bytes_type(content.get(), length), 0});
    if (not filled) return failure(filled.error());
    if (filled->size() != length) return failure({ENOSPC, "write", file->descriptor()});
    if (const auto saved = file->barrier(barrier_kind::wait_data_only); not saved)
        return failure(saved.error());

    atomicity_report report{.volume = *volume, .series = {}};
    for (const bool direct : {false, true}) {
        if (options.io == (direct ? atomicity_io::buffered : atomicity_io::direct)) continue;
        auto series = try_series(directory, name, options, direct);
        if (not series) return failure(series.error());
        report.series.push_back(std::move(*series));
    }
    return report;
}

}  // namespace

std::size_t atomicity_series::whole_bytes_max() const noexcept {
    std::size_t largest = 0;
    for (const atomicity_row& row : rows) {
        if (row.torn_reads > 0 or row.fresh_reads == 0 or row.short_reads > 0 or row.short_writes > 0) break;
        largest = row.write_bytes;
    }
    return largest;
}

std::size_t atomicity_series::torn_bytes_min() const noexcept {
    const auto torn =
        std::find_if(rows.begin(), rows.end(), [](const atomicity_row& row) { return row.torn_reads > 0; });
    return torn == rows.end() ? 0 : torn->write_bytes;
}

std::ptrdiff_t atomicity_calls::read(int descriptor, std::span<std::byte> into, extent_type offset) noexcept {
    return ::pread(descriptor, into.data(), into.size(), static_cast<off_t>(offset));
}

std::ptrdiff_t atomicity_calls::write(int descriptor, std::span<const std::byte> from,
                                      extent_type offset) noexcept {
    return ::pwrite(descriptor, from.data(), from.size(), static_cast<off_t>(offset));
}

result<atomicity_report> probe_atomicity(const path_handle& directory,
                                         const atomicity_options& options) noexcept {
    constexpr std::size_t bytes_limit = std::size_t{1} << 30;
    constexpr unsigned writers_limit = 127;  // two values of a byte for each, and zero
    if (options.writers == 0 or options.writers > writers_limit or options.readers == 0 or
        options.write_bytes_min == 0 or options.write_bytes_max < options.write_bytes_min or
        options.write_bytes_max > bytes_limit or options.offset_bytes > bytes_limit)
        return failure({EINVAL, "probe atomicity", directory.descriptor()});
    // The one place of these files that allocates and starts threads: their exceptions end here.
    try {
        return probe(directory, options);
    } catch (const std::system_error& no_thread) {
        return failure({no_thread.code().value(), "start a thread"});
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "allocate buffers"});
    }
}

}  // namespace sluice::io
