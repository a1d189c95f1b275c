#pragma once

#include <unistd.h>

#include <utility>

namespace sluice::cli {

/// A file descriptor that the destructor closes. Thread safety: a value.
class descriptor {
public:
    explicit descriptor(int number = -1) noexcept : number_(number) {}
    descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        if (number_ >= 0) ::close(number_);
        number_ = std::exchange(other.number_, -1);
        return *this;
    }
    ~descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }
    [[nodiscard]] int get() const noexcept { return number_; }

private:
    int number_;
};

}  // namespace sluice::cli
