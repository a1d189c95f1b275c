#include "sluice/cli/fat/host_reader.hpp"

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::cli {
namespace {

constexpr std::uint64_t block_bytes_max = 1U << 20;
constexpr std::uint64_t bytes_ahead_max = 8U << 20;
constexpr std::size_t blocks_ahead_max = 256;
// A waiting consumer is woken for several blocks at once, since most are small.
constexpr std::size_t blocks_per_wake_up = 16;

}  // namespace

host_reader::host_reader(std::vector<std::filesystem::path> files) : files_(std::move(files)) {
    if (files_.size() < 2) return;
    try {
        thread_ = std::jthread([this] { read_all(); });
    } catch (const std::system_error&) {  // no thread can be started
    }
}

host_reader::~host_reader() {
    {
        const std::scoped_lock guard(mutex_);
        is_ended_ = true;
    }
    changed_.notify_all();
}

bool host_reader::has_room() const noexcept {
    return blocks_.size() < blocks_ahead_max and bytes_ <= bytes_ahead_max - block_bytes_max;
}

void host_reader::read_all() {
    while (present_ != files_.size()) {
        host_block made = read_block();
        std::unique_lock guard(mutex_);
        bytes_ += made.bytes.size();
        blocks_.push_back(std::move(made));
        const bool is_full = not has_room();
        if (is_full or blocks_.size() % blocks_per_wake_up == 0 or present_ == files_.size())
            changed_.notify_all();
        changed_.wait(guard, [&] { return is_ended_ or has_room(); });
        if (is_ended_) return;
    }
}

host_block host_reader::next() {
    if (not thread_.joinable()) return read_block();
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return not blocks_.empty(); });
    const bool was_full = not has_room();
    host_block taken = std::move(blocks_.front());
    blocks_.pop_front();
    bytes_ -= taken.bytes.size();
    if (was_full and has_room()) changed_.notify_all();
    return taken;
}

// Reads one block, and moves to the next file after the last one.
host_block host_reader::read_block() {
    ENSURE(present_ != files_.size(), "no block after the last");
    host_block made{.offset = offset_};
    const auto end_file = [&](std::optional<error> problem) {
        made.problem = problem;
        made.is_last = true;
        open_ = {};
        offset_ = 0;
        ++present_;
        return std::move(made);
    };
    if (not open_.is_valid()) {
        auto opened = io::file_handle::open({}, files_[present_].string());
        if (not opened) return end_file(opened.error());
        open_ = *std::move(opened);
    }
    const auto status = io::status_of(open_, io::stat_fields::size | io::stat_fields::modified);
    if (not status) return end_file(status.error());
    made.file_bytes = status->size_bytes;
    const std::uint64_t rest = made.file_bytes - std::min(made.file_bytes, offset_);
    // One more byte than expected, so that a short read proves the end.
    made.bytes.resize(static_cast<std::size_t>(std::min(block_bytes_max, rest + 1)));
    const auto got =
        open_.read(io::io_request<io::bytes_type>{.buffers = std::span(made.bytes), .offset = offset_});
    if (not got) return end_file(got.error());
    const bool is_end = got->size() < made.bytes.size();
    made.bytes.resize(got->size());
    offset_ += made.bytes.size();
    made.modified = status->modified;
    return is_end ? end_file(std::nullopt) : std::move(made);
}

}  // namespace sluice::cli
