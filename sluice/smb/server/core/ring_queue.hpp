#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

/// A queue in a ring of memory. Unlike a deque, it allocates only when it exceeds its greatest
/// length so far. Thread safety: none of its own. Complexity: O(1), push amortised.
template <class T>
class ring_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// The `index`-th from the front.
    [[nodiscard]] T& operator[](std::size_t index) noexcept {
        ENSURE(index < size_);
        return ring_[(front_ + index) & (ring_.size() - 1)];
    }
    [[nodiscard]] T& front() noexcept { return (*this)[0]; }

    void push_back(T value) {
        if (size_ == ring_.size()) grow();
        ++size_;
        (*this)[size_ - 1] = std::move(value);
    }
    /// Destroys the front element, also its resources.
    void pop_front() noexcept {
        front() = T{};
        front_ = (front_ + 1) & (ring_.size() - 1);
        --size_;
    }
    void clear() noexcept {
        while (not empty())
            pop_front();
    }

private:
    static constexpr std::size_t size_first = 16;

    void grow() {
        std::vector<T> larger(ring_.empty() ? size_first : ring_.size() * 2);
        for (std::size_t i = 0; i != size_; ++i)
            larger[i] = std::move((*this)[i]);
        ring_ = std::move(larger);
        front_ = 0;
    }

    std::vector<T> ring_;  // a power of two of them, or none
    std::size_t front_ = 0;
    std::size_t size_ = 0;
};

}  // namespace sluice::smb::server
