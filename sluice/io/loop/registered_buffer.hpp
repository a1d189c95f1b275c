#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace sluice::io {

class io_multiplexer;

/// Page-aligned memory that a multiplexer has made known to the kernel, if that is of use to it: i/o from and
/// to it (any part of it, in requests of one piece) then spares the kernel finding the pages each time. Made
/// by io_multiplexer::allocate_registered_buffer; move-only; frees the memory.
///
/// No i/o may be pending on it when it goes, and it must go before its multiplexer. Thread safety: as the
/// multiplexer; the bytes are the owner's.
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

    /// All of it: the size asked for, rounded up to pages.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_; }

    /// Whether the kernel knows of it. If not (epoll; a limit on pinned memory) it is memory like any other.
    [[nodiscard]] bool is_registered() const noexcept { return registrar_ != nullptr; }

private:
    friend class io_multiplexer;
    explicit registered_buffer(std::span<std::byte> memory) noexcept : memory_(memory) {}

    io_multiplexer* registrar_ = nullptr;
    unsigned index_ = 0;  // what the multiplexer calls it
    std::span<std::byte> memory_;
};

}  // namespace sluice::io
