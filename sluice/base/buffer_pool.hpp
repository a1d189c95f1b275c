#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sluice/base/ensure.hpp"

namespace sluice {

class buffer_pool;

/// The bytes of the buffers in use for one account, for example for one connection.
/// Lifetime: outlives the buffers taken on it (ENSURE). Thread safety: that of the
/// pool; bytes() any thread.
class buffer_account {
public:
    buffer_account() noexcept = default;
    buffer_account(const buffer_account&) = delete;
    buffer_account& operator=(const buffer_account&) = delete;
    ~buffer_account() { ENSURE(bytes() == 0, "account destroyed before its buffers"); }

    /// Returns the reserved bytes, which are up to twice the requested size.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

private:
    friend class buffer_pool;
    // Only one thread writes, so a load and a store suffice. The counter orders nothing.
    void count(std::size_t more) noexcept {
        bytes_.store(bytes_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
    std::atomic<std::size_t> bytes_{0};
};

/// Memory of a power of two, aligned to its size but at most to a page.
struct aligned_delete {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using aligned_memory = std::unique_ptr<std::byte[], aligned_delete>;

/// A buffer of a buffer_pool, which the destructor returns to the pool. `size()` is the requested
/// size, not the reserved one.
class pool_buffer {
public:
    pool_buffer() noexcept = default;
    pool_buffer(pool_buffer&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          memory_(std::exchange(other.memory_, nullptr)),
          account_(std::exchange(other.account_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          class_(other.class_) {}
    pool_buffer& operator=(pool_buffer&& other) noexcept {
        if (this != &other) {
            reset();
            pool_ = std::exchange(other.pool_, nullptr);
            memory_ = std::exchange(other.memory_, nullptr);
            account_ = std::exchange(other.account_, nullptr);
            size_ = std::exchange(other.size_, 0);
            class_ = other.class_;
        }
        return *this;
    }
    ~pool_buffer() { reset(); }

    [[nodiscard]] explicit operator bool() const noexcept { return memory_ != nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::byte* data() noexcept { return memory_; }
    [[nodiscard]] const std::byte* data() const noexcept { return memory_; }
    [[nodiscard]] std::span<std::byte> bytes() noexcept { return {memory_, size_}; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {memory_, size_}; }
    /// Releases the bytes after the first `size` bytes.
    void shrink(std::size_t size) noexcept {
        ENSURE(size <= size_);
        size_ = size;
    }

private:
    friend class buffer_pool;
    // Most destroyed buffers have been moved from, so only that case is inlined.
    void reset() noexcept {
        if (memory_ != nullptr) release();
    }
    // In a source file: inlined here, it would keep callers from being inlined.
    void release() noexcept;

    buffer_pool* pool_ = nullptr;
    std::byte* memory_ = nullptr;  // owned
    buffer_account* account_ = nullptr;
    std::size_t size_ = 0;
    unsigned class_ = 0;
};

/// Buffers for frames and payloads, kept for the next request in size classes of powers of two. The
/// buffer returned last is reused first, because it is most likely to be in the CPU's cache.
///
/// Keeps at most `kept_bytes_max` of unused buffers and frees the others. A buffer has the content
/// of its last user: it is overwritten before anything is sent. Thread safety: one thread; taken()
/// any. Outlives its buffers. Allocates: when no buffer of the class is kept.
class buffer_pool {
public:
    explicit buffer_pool(std::size_t kept_bytes_max = 64U << 20) noexcept : kept_bytes_max_(kept_bytes_max) {}
    buffer_pool(const buffer_pool&) = delete;
    buffer_pool& operator=(const buffer_pool&) = delete;
    ~buffer_pool() { ENSURE(taken() == 0, "pool destroyed while buffers are in use"); }

    /// Returns a buffer, or an empty one if there is no memory or a frame cannot need that many
    /// bytes. Counted for `account`, if that is not null.
    [[nodiscard]] pool_buffer take(std::size_t bytes, buffer_account* account = nullptr) noexcept {
        const unsigned size_class = class_of(bytes);
        if (size_class >= classes) return {};
        pool_buffer taken;
        std::vector<aligned_memory>& kept = kept_[size_class];
        if (not kept.empty()) {
            taken.memory_ = kept.back().release();
            kept.pop_back();
            kept_bytes_ -= bytes_of(size_class);
        } else {
            taken.memory_ = allocate(bytes_of(size_class)).release();
            if (taken.memory_ == nullptr) return {};
        }
        taken.pool_ = this;
        taken.size_ = bytes;
        taken.class_ = size_class;
        taken.account_ = account;
        count(1, bytes_of(size_class), account);
        return taken;
    }

    /// Returns the bytes of unused buffers. Thread safety: the one thread.
    [[nodiscard]] std::size_t kept_bytes() const noexcept { return kept_bytes_; }
    /// Returns the number of buffers in use.
    [[nodiscard]] std::size_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
    /// Returns their reserved bytes. Any thread, as taken().
    [[nodiscard]] std::size_t taken_bytes() const noexcept { return all_.bytes(); }

private:
    friend class pool_buffer;
    static constexpr unsigned smallest_bits = 9;  // 512 bytes: most requests and replies
    static constexpr unsigned classes = 25 - smallest_bits;

    [[nodiscard]] static constexpr unsigned class_of(std::size_t bytes) noexcept {
        const auto bits = static_cast<unsigned>(std::bit_width(bytes <= 1 ? std::size_t{1} : bytes - 1));
        return bits <= smallest_bits ? 0 : bits - smallest_bits;
    }
    [[nodiscard]] static constexpr std::size_t bytes_of(unsigned size_class) noexcept {
        return std::size_t{1} << (size_class + smallest_bits);
    }

    // Only one thread writes, so a load and a store suffice. The counters order nothing.
    void count(std::size_t more, std::size_t more_bytes, buffer_account* account) noexcept {
        taken_.store(taken_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
        all_.count(more_bytes);
        if (account != nullptr) account->count(more_bytes);
    }

    // Not where malloc stores large blocks, 16 bytes into a page: there the CPU's copy (`rep
    // movsb`, with which the kernel copies file data) takes five times as long
    // (docs/algorithms/data-path.md).
    [[nodiscard]] static aligned_memory allocate(std::size_t bytes) noexcept {
        constexpr std::size_t page_bytes = 4096;
        return aligned_memory(
            static_cast<std::byte*>(std::aligned_alloc(std::min(bytes, page_bytes), bytes)));
    }

    void put_back(aligned_memory memory, unsigned size_class, buffer_account* account) noexcept {
        count(~std::size_t{0}, ~bytes_of(size_class) + 1, account);
        if (bytes_of(size_class) > kept_bytes_max_ - kept_bytes_) return;
        kept_bytes_ += bytes_of(size_class);
        kept_[size_class].push_back(std::move(memory));
    }

    std::array<std::vector<aligned_memory>, classes> kept_;
    std::size_t kept_bytes_ = 0;
    std::size_t kept_bytes_max_;
    std::atomic<std::size_t> taken_{0};
    buffer_account all_;
};

/// Takes buffers from a pool for an account, or for none. Thread safety: as the pool.
class buffer_source {
public:
    // Not explicit: a pool is a source without an account.
    buffer_source(buffer_pool& pool, buffer_account* account = nullptr) noexcept
        : pool_(&pool), account_(account) {}

    /// As buffer_pool::take().
    [[nodiscard]] pool_buffer take(std::size_t bytes) const noexcept { return pool_->take(bytes, account_); }

private:
    buffer_pool* pool_;
    buffer_account* account_;
};

}  // namespace sluice
