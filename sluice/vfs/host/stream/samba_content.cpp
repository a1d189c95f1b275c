#include "sluice/vfs/host/stream/samba_content.hpp"

#include <algorithm>

#include "sluice/io/path/volume_status.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/host/host_transfer.hpp"

namespace sluice::vfs {
namespace {

constexpr std::size_t step_bytes = 1U << 20;

constexpr io::extent_pair no_data{.offset = 0, .length = 0};

// The range in which one of two contents has data, up to the end of the one that begins first.
io::extent_pair first_of(io::extent_pair one, io::extent_pair other) noexcept {
    if (one.length == 0) return other;
    if (other.length == 0) return one;
    return one.offset <= other.offset ? one : other;
}

result<io::extent_pair> next_data_of(node_data& stream, io::extent_pair within) {
    std::array<io::extent_pair, 1> storage{};
    const auto found = stream.allocated_ranges(within.offset, within.length, storage);
    if (not found) return failure(found.error());
    return found->empty() ? no_data : found->front();
}

}  // namespace

result<void> samba_content::read(std::span<std::byte> into, std::uint64_t offset) {
    ENSURE(offset <= size_bytes_ and into.size() <= size_bytes_ - offset, "reads beyond the content");
    if (not file_.is_valid()) {
        const auto part = std::span(in_memory_).subspan(static_cast<std::size_t>(offset)).first(into.size());
        std::ranges::copy(part, into.begin());
        return {};
    }
    const auto got = read_waiting(file_, into, offset);
    if (not got) return failure(got.error());
    if (*got != into.size()) return failure({EIO, "read stream"});
    return {};
}

result<io::extent_pair> samba_content::next_data(std::uint64_t offset) const {
    const io::extent_pair rest{.offset = offset, .length = size_bytes_ - offset};
    if (not file_.is_valid() or rest.length == 0) return rest;
    std::array<io::extent_pair, 1> storage{};
    const auto found = file_.extents(rest, storage);
    if (not found) return failure(found.error());
    return found->empty() ? no_data : found->front();
}

result<std::uint64_t> samba_content::data_bytes() const {
    std::uint64_t sum = 0;
    for (std::uint64_t at = 0;;) {
        const auto next = next_data(at);
        if (not next) return failure(next.error());
        if (next->length == 0) return sum;
        sum += next->length;
        at = next->offset + next->length;
    }
}

result<void> samba_content::copy_to(io::file_handle& empty, std::uint64_t kept_free_bytes) {
    const auto needed = data_bytes();
    if (not needed) return failure(needed.error());
    const auto space = io::volume_of(empty);
    if (not space) return failure(space.error());
    const bool fits =
        space->available_bytes >= kept_free_bytes and * needed <= space->available_bytes - kept_free_bytes;
    if (not file_.is_valid()) {
        if (not fits) return failure({ENOSPC, "copy stream"});
        return write_waiting(&empty, in_memory_, 0);
    }
    const auto copied =
        clone_file(file_, empty, {.offset = 0, .length = size_bytes_}, 0, /*only_shared=*/not fits);
    if (not copied and not fits) return failure({ENOSPC, "copy stream"});
    if (not copied) return failure(copied.error());
    const auto sized = empty.truncate(size_bytes_);  // it may end with a hole
    if (not sized) return failure(sized.error());
    return {};
}

result<bool> samba_content::is_equal(node_data& other, std::uint64_t other_size_bytes,
                                     io::io_multiplexer& loop) {
    if (other_size_bytes != size_bytes_) return false;
    std::vector<std::byte> step(static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes_, step_bytes)));
    std::vector<std::byte> other_step(step.size());
    for (std::uint64_t at = 0; at != size_bytes_;) {
        const auto here = next_data(at);
        if (not here) return failure(here.error());
        const auto there = next_data_of(other, {.offset = at, .length = size_bytes_ - at});
        if (not there) return failure(there.error());
        const io::extent_pair next = first_of(*here, *there);
        if (next.length == 0) return true;  // holes up to the end
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(next.length, step.size()));
        const auto wanted = std::span(step).first(count);
        const auto compared = std::span(other_step).first(count);
        if (const auto done = read(wanted, next.offset); not done) return failure(done.error());
        const auto got = io::sync_wait(loop, other.co_read(compared, next.offset, nullptr));
        if (not got) return failure(got.error());
        if (*got != count or not std::ranges::equal(wanted, compared)) return false;
        at = next.offset + count;
    }
    return true;
}

}  // namespace sluice::vfs
