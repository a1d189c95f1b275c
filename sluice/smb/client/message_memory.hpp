#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::client {

class message_pool;

/// Memory for one message on its way; goes back to its pool when dropped.
class message_memory {
public:
    message_memory() noexcept = default;
    message_memory(message_memory&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          bytes_(std::move(other.bytes_)),
          size_(std::exchange(other.size_, 0)) {}
    message_memory& operator=(message_memory&& other) noexcept {
        message_memory taken(std::move(other));
        std::swap(pool_, taken.pool_);
        std::swap(bytes_, taken.bytes_);
        std::swap(size_, taken.size_);
        return *this;
    }
    ~message_memory() { give_back(); }

    [[nodiscard]] explicit operator bool() const noexcept { return bytes_ != nullptr; }
    [[nodiscard]] mutable_bytes bytes() const noexcept { return {bytes_.get(), size_}; }

private:
    friend class message_pool;
    message_memory(message_pool& pool, std::unique_ptr<std::byte[]> bytes, std::size_t size) noexcept
        : pool_(&pool), bytes_(std::move(bytes)), size_(size) {}
    inline void give_back() noexcept;

    message_pool* pool_ = nullptr;
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;  // a power of two
};

/// Memory for messages, kept for the next in sizes of powers of two: a connection that has been through its
/// largest and most crowded moment allocates no more. Thread safety: the loop's thread. Outlives what it has
/// given. Allocates: when it keeps none of the size.
class message_pool {
public:
    message_pool() noexcept = default;
    message_pool(const message_pool&) = delete;
    message_pool& operator=(const message_pool&) = delete;

    /// At least `bytes` of them, holding whatever; nothing if there is no memory.
    [[nodiscard]] message_memory take(std::size_t bytes) noexcept {
        const std::size_t index = index_of(bytes);
        const std::size_t size = smallest_bytes << index;
        auto& kept = kept_[index];
        if (kept.empty()) {
            std::unique_ptr<std::byte[]> fresh(new (std::nothrow) std::byte[size]);
            if (fresh == nullptr) return {};
            return {*this, std::move(fresh), size};
        }
        message_memory taken(*this, std::move(kept.back()), size);
        kept.pop_back();
        return taken;
    }

private:
    friend class message_memory;
    static constexpr std::size_t smallest_bytes = 512;  // a READ or WRITE without its data
    static constexpr std::size_t sizes = 17;            // up to 32 MiB, more than a frame can be

    [[nodiscard]] static std::size_t index_of(std::size_t bytes) noexcept {
        const std::size_t units = (bytes + smallest_bytes - 1) / smallest_bytes;
        const auto index = static_cast<std::size_t>(std::bit_width(units <= 1 ? 0 : units - 1));
        ENSURE(index < sizes, "no frame is that long");
        return index;
    }

    std::array<std::vector<std::unique_ptr<std::byte[]>>, sizes> kept_;
};

void message_memory::give_back() noexcept {
    if (bytes_ == nullptr) return;
    pool_->kept_[message_pool::index_of(size_)].push_back(std::move(bytes_));
}

}  // namespace sluice::smb::client
