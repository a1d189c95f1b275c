#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "sluice/io/loop/operation.hpp"

namespace sluice::io::detail {

/// A posted item that calls a callable once, and is freed before that.
template <class Callable>
class posted_callable final : public posted_item {
public:
    /// Returns null if there is no memory.
    template <class From>
    [[nodiscard]] static posted_item* make(From&& from) noexcept {
        static_assert(std::is_nothrow_constructible_v<Callable, From>,
                      "post: moving the callable must not throw");
        return new (std::nothrow) posted_callable(std::forward<From>(from));
    }

private:
    template <class From>
    explicit posted_callable(From&& from) : callable_(std::forward<From>(from)) {}

    void invoke() noexcept override {
        Callable taken = std::move(callable_);
        // First, so that the callable may do anything, even destroy the multiplexer's user.
        delete this;
        std::move(taken)();
    }

    Callable callable_;
};

}  // namespace sluice::io::detail
