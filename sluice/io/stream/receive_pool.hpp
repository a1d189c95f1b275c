#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/result.hpp"

namespace sluice::io {

class io_multiplexer;

namespace detail {

class receiving;

// A stream that may wait for a buffer, as its pool sees it.
class buffer_waiter {
public:
    buffer_waiter(const buffer_waiter&) = delete;
    buffer_waiter& operator=(const buffer_waiter&) = delete;

    list_hook<buffer_waiter> link;  // in the list of its pool

protected:
    buffer_waiter() noexcept = default;
    ~buffer_waiter() = default;

private:
    friend class receive_slots;

    /// Resumes with this buffer; `none`: without one. The pool has removed the stream from the
    /// list.
    virtual void resume(std::uint32_t index) noexcept = 0;
};

// The state that a pool shares with its leases and streams, at an address of its own, so that the
// pool may be moved.
class receive_slots {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    receive_slots(io_multiplexer& multiplexer, std::uint32_t count, std::size_t bytes_each) noexcept
        : multiplexer_(multiplexer), count_(count), bytes_each_(bytes_each) {}
    receive_slots(const receive_slots&) = delete;
    receive_slots& operator=(const receive_slots&) = delete;
    ~receive_slots();

    [[nodiscard]] result<void> open() noexcept;
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return multiplexer_; }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint32_t in_use() const noexcept { return in_use_; }
    [[nodiscard]] std::span<std::byte> bytes(std::uint32_t index) const noexcept {
        return {memory_.get() + index * bytes_each_, bytes_each_};
    }
    /// Returns the kernel's name for the pool, if the kernel itself provides the buffers.
    [[nodiscard]] std::optional<unsigned> group() const noexcept { return group_; }

    /// Returns a free buffer, or `none`. Only where the kernel does not provide them.
    [[nodiscard]] std::uint32_t take() noexcept;
    /// Records that the kernel has provided this buffer.
    void count_use() noexcept { ++in_use_; }
    /// Returns a buffer to the pool. The stream that has waited longest resumes.
    void release(std::uint32_t index) noexcept;

    void wait(buffer_waiter& stream) noexcept;
    void stop_waiting(buffer_waiter& stream) noexcept;
    /// For a stream that ends without using the buffer that it was woken for.
    void wake_another() noexcept;

private:
    io_multiplexer& multiplexer_;
    std::uint32_t count_;
    std::size_t bytes_each_;
    std::uint32_t in_use_ = 0;
    std::uint32_t first_free_ = none;
    std::optional<unsigned> group_;
    std::unique_ptr<std::byte[]> memory_;
    std::unique_ptr<std::uint32_t[]> next_free_;
    // The streams that wait, oldest first.
    intrusive_list<buffer_waiter, &buffer_waiter::link> waiting_;
};

}  // namespace detail

/// Bytes that a receive_stream has received, in a buffer of its pool, to which it returns on
/// destruction. Move-only; empty when default-constructed or moved from, and at end of file. Must
/// be destroyed on the multiplexer's thread, before the pool. Destroying it signals no receiver:
/// streams that waited for a buffer resume from the loop.
class received_buffer {
public:
    received_buffer() noexcept = default;
    received_buffer(received_buffer&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)),
          index_(other.index_),
          bytes_(std::exchange(other.bytes_, {})) {}
    received_buffer& operator=(received_buffer&& other) noexcept {
        received_buffer taken(std::move(other));
        std::swap(slots_, taken.slots_);
        std::swap(index_, taken.index_);
        std::swap(bytes_, taken.bytes_);
        return *this;
    }
    ~received_buffer() {
        if (slots_ != nullptr) slots_->release(index_);
    }

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
    [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

private:
    friend class detail::receiving;
    received_buffer(detail::receive_slots& slots, std::uint32_t index, std::size_t size) noexcept
        : slots_(&slots), index_(index), bytes_(slots.bytes(index).first(size)) {}

    detail::receive_slots* slots_ = nullptr;
    std::uint32_t index_ = 0;
    std::span<std::byte> bytes_;
};

/// The number of buffers, and their length.
struct receive_pool_size {
    std::uint32_t count;
    std::size_t bytes_each;
};

/// Buffers that many receive_streams of one multiplexer share. An idle stream occupies none.
///
/// Must outlive its streams and the buffers they have delivered; must be destroyed before its
/// multiplexer. ENSURE checks the buffers. Thread safety: as the multiplexer.
class receive_pool {
public:
    // The capacity of one buffer ring of the kernel.
    static constexpr std::uint32_t count_max = 32768;

    /// Errors: EINVAL for no buffers, no bytes, or more than `count_max`; EOPNOTSUPP for a
    /// multiplexer for several threads; ENOMEM. Allocates: all memory of the pool; with io_uring
    /// also a page or more that the kernel pins.
    [[nodiscard]] static result<receive_pool> make(io_multiplexer& multiplexer,
                                                   receive_pool_size size) noexcept;

    [[nodiscard]] std::uint32_t count() const noexcept { return slots_->count(); }
    /// Returns the number of buffers that receivers have, or that are being read into for one.
    [[nodiscard]] std::uint32_t in_use() const noexcept { return slots_->in_use(); }
    /// Returns whether the kernel picks the buffers (io_uring), instead of a read into each.
    [[nodiscard]] bool is_provided() const noexcept { return slots_->group().has_value(); }

private:
    friend class detail::receiving;
    explicit receive_pool(std::unique_ptr<detail::receive_slots> slots) noexcept : slots_(std::move(slots)) {}

    std::unique_ptr<detail::receive_slots> slots_;
};

}  // namespace sluice::io
