#include "sluice/io/file/clone.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/file/file_copy.hpp"

namespace sluice::io {
namespace {

// Returns whether another way may succeed. EINVAL: also ranges that are not aligned to blocks.
bool suits_not(int code) noexcept {
    return code == EOPNOTSUPP or code == ENOTTY or code == ENOSYS or code == EXDEV or code == EINVAL or
           code == EPERM or code == EACCES;
}

// A copy in progress. The destination is complete from the range's start up to `done`.
class copy {
public:
    copy(const clone_ends& files, const clone_request& request, const clone_options& options,
         extent_type total_bytes) noexcept
        : from_(files.from),
          to_(files.to),
          source_(request.source.offset),
          target_(request.destination_offset),
          total_(total_bytes),
          options_(options) {
        outcome_.method = options.strongest;
    }

    result<clone_result> run(extent_type target_length) noexcept;

private:
    result<bool> reflink() noexcept;
    result<void> copy_hole(extent_type bytes) noexcept;
    result<void> copy_data(extent_type bytes) noexcept;
    result<std::size_t> copy_some(std::size_t bytes_max) noexcept;
    result<std::size_t> copy_some_in_kernel(std::size_t bytes_max) noexcept;
    result<std::size_t> copy_some_by_hand(std::span<std::byte> buffer, std::size_t bytes_max) noexcept;
    result<void> lengthen() noexcept;
    bool goes_on() noexcept {
        outcome_.stopped =
            not options_.observer.goes_on({.done_bytes = outcome_.cloned_bytes, .total_bytes = total_});
        return not outcome_.stopped;
    }

    int from_;
    int to_;
    extent_type source_;
    extent_type target_;
    extent_type total_;
    extent_type target_length_ = 0;
    bool source_ended_ = false;  // earlier than at the start
    const clone_options& options_;
    clone_result outcome_;
};

// Returns false if another way is needed.
result<bool> copy::reflink() noexcept {
    ENSURE(outcome_.cloned_bytes == 0, "a reflink is of the whole range");
    file_clone_range range{};
    range.src_fd = from_;
    range.src_offset = source_;
    range.src_length = total_;
    range.dest_offset = target_;
    while (::ioctl(to_, FICLONERANGE, &range) != 0) {
        if (errno == EINTR) continue;
        if (suits_not(errno)) return false;
        return failure(error::last("FICLONERANGE to", to_));
    }
    outcome_.cloned_bytes = total_;
    outcome_.data_bytes = total_;
    (void)goes_on();
    outcome_.stopped = false;  // the copy was complete
    return true;
}

// The destination reads as zeros past its old end once the file has been lengthened.
result<void> copy::copy_hole(extent_type bytes) noexcept {
    ENSURE(bytes <= total_ - outcome_.cloned_bytes, "copies beyond the range");
    const extent_type at = target_ + outcome_.cloned_bytes;
    if (at < target_length_) {
        const extent_pair within{.offset = at, .length = std::min(bytes, target_length_ - at)};
        auto zeroed = punch_hole(to_, within);
        if (not zeroed and zeroed.error() == std::errc::operation_not_supported)
            zeroed = write_zeros(to_, within);
        if (not zeroed) return zeroed;
    }
    outcome_.cloned_bytes += bytes;
    return {};
}

result<std::size_t> copy::copy_some_in_kernel(std::size_t bytes_max) noexcept {
    auto from = static_cast<off64_t>(source_ + outcome_.cloned_bytes);
    auto to = static_cast<off64_t>(target_ + outcome_.cloned_bytes);
    for (;;) {
        const ssize_t copied =
            checked_byte_count(::copy_file_range(from_, &from, to_, &to, bytes_max, 0), bytes_max);
        if (copied >= 0) return static_cast<std::size_t>(copied);
        if (errno != EINTR) return failure(error::last("copy_file_range to", to_));
    }
}

result<std::size_t> copy::copy_some_by_hand(std::span<std::byte> buffer, std::size_t bytes_max) noexcept {
    ENSURE(not buffer.empty() and bytes_max != 0, "copies nothing, which reads like the end");
    const auto from = static_cast<off_t>(source_ + outcome_.cloned_bytes);
    const auto to = static_cast<off_t>(target_ + outcome_.cloned_bytes);
    const std::span piece = buffer.first(std::min(buffer.size(), bytes_max));
    ssize_t got = 0;
    do {
        got = checked_byte_count(::pread(from_, piece.data(), piece.size(), from), piece.size());
    } while (got < 0 and errno == EINTR);
    if (got < 0) return failure(error::last("read", from_));
    for (ssize_t put = 0; put < got;) {
        const auto left = static_cast<std::size_t>(got - put);
        const ssize_t written = checked_byte_count(::pwrite(to_, piece.data() + put, left, to + put), left);
        if (written < 0 and errno == EINTR) continue;
        if (written < 0) return failure(error::last("write", to_));
        if (written == 0) return failure({EIO, "write", to_});
        put += written;
    }
    return static_cast<std::size_t>(got);
}

result<std::size_t> copy::copy_some(std::size_t bytes_max) noexcept {
    ENSURE(outcome_.method != clone_method::reflink, "a reflink has no steps");
    if (outcome_.method == clone_method::kernel_copy) {
        const auto copied = copy_some_in_kernel(bytes_max);
        // No bytes before the end of the file: the kernel's generated files (/proc) are copied this
        // way.
        const bool nothing = copied and * copied == 0;
        if (not nothing and (copied or not suits_not(copied.error().code()))) return copied;
        outcome_.method = clone_method::user_copy;
    }
    if (not options_.buffer.empty()) return copy_some_by_hand(options_.buffer, bytes_max);
    alignas(4096) std::array<std::byte, limits::clone_stack_buffer_bytes> buffer;
    return copy_some_by_hand(buffer, bytes_max);
}

result<void> copy::copy_data(extent_type bytes) noexcept {
    ENSURE(bytes <= total_ - outcome_.cloned_bytes, "copies beyond the range");
    while (bytes > 0 and goes_on()) {
        const auto step =
            static_cast<std::size_t>(std::min<extent_type>(bytes, limits::clone_step_bytes_max));
        const auto copied = copy_some(step);
        if (not copied) return failure(copied.error());
        if (*copied == 0) {
            source_ended_ = true;
            return {};
        }
        ENSURE(*copied <= step, "a step copied more than it was to");
        outcome_.cloned_bytes += *copied;
        outcome_.data_bytes += *copied;
        bytes -= *copied;
    }
    return {};
}

// For a hole at the end of the range.
result<void> copy::lengthen() noexcept {
    ENSURE(outcome_.cloned_bytes <= total_, "copied beyond the range");
    struct stat status{};
    if (::fstat(to_, &status) != 0) return failure(error::last("fstat", to_));
    const auto end = static_cast<off_t>(target_ + outcome_.cloned_bytes);
    if (not S_ISREG(status.st_mode) or status.st_size >= end) return {};
    while (::ftruncate(to_, end) != 0)
        if (errno != EINTR) return failure(error::last("truncate", to_));
    return {};
}

result<clone_result> copy::run(extent_type target_length) noexcept {
    target_length_ = target_length;
    if (total_ == 0) return outcome_;
    if (outcome_.method == clone_method::reflink) {
        if (not goes_on()) return outcome_;
        const auto done = reflink();
        if (not done) return failure(done.error());
        if (*done) return outcome_;
        outcome_.method = clone_method::kernel_copy;
    }
    while (outcome_.cloned_bytes < total_ and not source_ended_ and not outcome_.stopped) {
        const extent_type at = source_ + outcome_.cloned_bytes;
        const extent_pair rest{.offset = at, .length = total_ - outcome_.cloned_bytes};
        const auto data =
            options_.holes == source_holes::ignored ? result<extent_pair>(rest) : next_data(from_, rest);
        if (not data) return failure(data.error());
        ENSURE(data->offset >= at and data->offset - at <= rest.length, "data outside of the range");
        if (data->offset > at) {
            if (const auto done = copy_hole(data->offset - at); not done) return failure(done.error());
        }
        if (const auto done = copy_data(data->length); not done) return failure(done.error());
        if (data->length == 0) (void)goes_on();
    }
    if (outcome_.cloned_bytes == total_) outcome_.stopped = false;
    ENSURE(outcome_.data_bytes <= outcome_.cloned_bytes, "more data than bytes were copied");
    if (const auto done = lengthen(); not done) return failure(done.error());
    return outcome_;
}

result<bool> are_same_file(int a, int b) noexcept {
    struct stat one{};
    struct stat other{};
    if (::fstat(a, &one) != 0) return failure(error::last("fstat", a));
    if (::fstat(b, &other) != 0) return failure(error::last("fstat", b));
    return one.st_dev == other.st_dev and one.st_ino == other.st_ino;
}

}  // namespace

result<clone_result> clone_extents(const clone_ends& files, const clone_request& request,
                                   const clone_options& options) noexcept {
    constexpr const char* operation = "clone extents";
    constexpr auto offset_max = static_cast<extent_type>(std::numeric_limits<off_t>::max());
    const extent_type end = end_of(request.source, files.from_length);
    const extent_type total = end > request.source.offset ? end - request.source.offset : 0;
    if (total > offset_max or request.destination_offset > offset_max - total)
        return failure({EFBIG, operation, files.to});

    const auto same = are_same_file(files.from, files.to);
    if (not same) return failure(same.error());
    const extent_type a = request.source.offset;
    const extent_type b = request.destination_offset;
    if (*same and total > 0 and (a < b ? b - a : a - b) < total)
        return failure({EINVAL, operation, files.from});
    return copy(files, request, options, total).run(files.to_length);
}

}  // namespace sluice::io
