#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace sluice::io {

class io_multiplexer;

/// Page-aligned memory that a multiplexer has registered with the kernel, if that is useful. For
/// I/O from and to any part of it, in requests of one segment, the kernel then does not have to
/// look the pages up each time. Created by io_multiplexer::allocate_registered_buffer; move-only;
/// frees the memory.
///
/// No I/O may be pending on it when it is destroyed, and it must be destroyed before its
/// multiplexer. Thread safety: as the multiplexer; the bytes are the owner's.
class registered_buffer {
public:
    registered_buffer() noexcept = default;
    registered_buffer(registered_buffer&& other) noexcept
        : registrar_(std::exchange(other.registrar_, nullptr)),
          index_(other.index_),
          memory_(std::exchange(other.memory_, {})) {}
    registered_buffer& operator=(registered_buffer&& other) noexcept {
        std::swap(registrar_, other.registrar_);
        std::swap(index_, other.index_);
        std::swap(memory_, other.memory_);
        return *this;
    }
    ~registered_buffer();

    /// Returns all of it: the requested size, rounded up to pages.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_; }

    /// Returns whether the kernel knows of it. If not (epoll; a limit on pinned memory) it is
    /// ordinary memory.
    [[nodiscard]] bool is_registered() const noexcept { return registrar_ != nullptr; }

private:
    friend class io_multiplexer;
    explicit registered_buffer(std::span<std::byte> memory) noexcept : memory_(memory) {}

    io_multiplexer* registrar_ = nullptr;
    unsigned index_ = 0;  // its name in the multiplexer
    std::span<std::byte> memory_;
};

}  // namespace sluice::io
