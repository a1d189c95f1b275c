#include "sluice/fat/device/recording_device.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

void recording_device::remember(event one) {
    ENSURE(one.kind != event_kind::write or one.bytes.size() == one.range.length);
    const std::lock_guard hold(mutex_);
    log_.push_back(std::move(one));
}

void recording_device::clear_log() noexcept {
    const std::lock_guard hold(mutex_);
    log_.clear();
}

result<void> recording_device::replay(const event& one, device& image) noexcept {
    switch (one.kind) {
        case event_kind::write:
            ENSURE(one.bytes.size() == one.range.length, "a recorded write has its bytes");
            return image.write_at(one.range.offset, std::span<const std::byte>(one.bytes));
        case event_kind::hole:
            return image.punch_hole(one.range);
        case event_kind::barrier:
            return {};
    }
    return {};
}

result<void> recording_device::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    event one{.kind = event_kind::write, .range = {offset, bytes_in(pieces)}, .bytes = {}};
    for (const io::const_buffer& piece : pieces)
        one.bytes.insert(one.bytes.end(), piece.bytes().begin(), piece.bytes().end());
    const result<void> done = below_.write_at(offset, pieces);
    if (done) remember(std::move(one));
    return done;
}

result<void> recording_device::barrier(io::barrier_kind kind) noexcept {
    const result<void> done = below_.barrier(kind);
    const bool waits = kind == io::barrier_kind::wait_all or kind == io::barrier_kind::wait_data_only;
    if (done and waits) remember({.kind = event_kind::barrier, .range = {}, .bytes = {}});
    return done;
}

result<void> recording_device::punch_hole(byte_extent range) noexcept {
    const result<void> done = below_.punch_hole(range);
    if (done) remember({.kind = event_kind::hole, .range = range, .bytes = {}});
    return done;
}

bool recording_device::discard(byte_extent range) noexcept {
    const bool is_forgotten = below_.discard(range);
    remember({.kind = event_kind::hole, .range = range, .bytes = {}});
    return is_forgotten;
}

}  // namespace sluice::fat
