#include "sluice/cli/fat/data_ranges.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "sluice/base/ensure.hpp"

namespace sluice::cli {
namespace {

constexpr std::uint64_t offset_max = std::numeric_limits<std::int64_t>::max();
// If requests go backwards through a long run of data, each such range is queried once.
constexpr std::uint64_t backward_bytes = 64U << 20;

}  // namespace

data_ranges::part data_ranges::first_of(const io::file_handle& file, byte_extent range) noexcept {
    ENSURE(range.length != 0);
    if (range.offset < first_ or range.offset >= end_) ask(file, range.offset);
    return {.length = std::min(range.length, end_ - range.offset), .is_data = is_data_};
}

void data_ranges::ask(const io::file_handle& file, std::uint64_t offset) noexcept {
    const bool goes_backwards = offset < first_;
    const auto next_run = [&](std::uint64_t from, io::extent_pair& run) {
        std::span<io::extent_pair> storage(&run, 1);
        const auto found = file.extents({.offset = from, .length = offset_max - from}, storage);
        if (not found) run = {.offset = from, .length = offset_max - from};
        return found ? found->size() : 1;
    };
    io::extent_pair run{};
    const bool has_data = next_run(offset, run) != 0;
    // A range past the end of the file counts as data: reading it fails, as it should.
    const std::uint64_t length = has_data ? run.offset + run.length : file.maximum_extent().value_or(0);
    is_data_ = (has_data and run.offset == offset) or offset >= length;
    first_ = offset;
    end_ = has_data ? (is_data_ ? length : run.offset) : (is_data_ ? offset_max : length);
    if (not is_data_ or not goes_backwards) return;
    const std::uint64_t before = offset / backward_bytes * backward_bytes;
    if (next_run(before, run) != 0 and run.offset == before and run.offset + run.length == end_)
        first_ = before;
}

}  // namespace sluice::cli
