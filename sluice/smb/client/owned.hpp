#pragma once

#include <memory>
#include <utility>

namespace sluice::smb::client {

/// What a function has made for its caller: a unique_ptr that is not null until it is moved from. (A task
/// cannot give a result of a plain unique_ptr: libstdc++ 12 would take `frame == nullptr` inside for a
/// comparison of results.)
template <class T>
class [[nodiscard]] owned {
public:
    explicit owned(std::unique_ptr<T> made) noexcept : made_(std::move(made)) {}

    [[nodiscard]] T* operator->() const noexcept { return made_.get(); }
    [[nodiscard]] T& operator*() const noexcept { return *made_; }
    [[nodiscard]] std::unique_ptr<T> release() noexcept { return std::move(made_); }

private:
    std::unique_ptr<T> made_;
};

}  // namespace sluice::smb::client
