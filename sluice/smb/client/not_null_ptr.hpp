#pragma once

#include <memory>
#include <utility>

namespace sluice::smb::client {

/// A new object that a function returns: a unique_ptr that is not null until it is moved from. (A
/// task cannot return a result of a plain unique_ptr, because libstdc++ 12 would treat `frame ==
/// nullptr` inside as a comparison of results.)
template <class T>
class [[nodiscard]] not_null_ptr {
public:
    explicit not_null_ptr(std::unique_ptr<T> made) noexcept : made_(std::move(made)) {}

    [[nodiscard]] T* operator->() const noexcept { return made_.get(); }
    [[nodiscard]] T& operator*() const noexcept { return *made_; }
    [[nodiscard]] std::unique_ptr<T> release() noexcept { return std::move(made_); }

private:
    std::unique_ptr<T> made_;
};

}  // namespace sluice::smb::client
