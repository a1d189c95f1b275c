#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

/// A name that is stored inline unless it is long. A scan of thousands of names therefore reads
/// memory in one direction and allocates nothing for each name.
/// Allocates: for names longer than `in_place_bytes`. Thread safety: none of its own.
class name_text {
public:
    static constexpr std::size_t in_place_bytes = 38;

    name_text() noexcept = default;
    template <std::convertible_to<std::string_view> Text>
        requires(not std::same_as<Text, name_text>)
    name_text(const Text& text) {
        assign(text);
    }
    name_text(const name_text& other) { assign(other.view()); }
    name_text(name_text&& other) noexcept
        : size_(std::exchange(other.size_, std::uint16_t{0})),
          here_(other.here_),
          elsewhere_(std::move(other.elsewhere_)) {}
    name_text& operator=(name_text other) noexcept {
        size_ = std::exchange(other.size_, std::uint16_t{0});
        here_ = other.here_;
        elsewhere_ = std::move(other.elsewhere_);
        return *this;
    }
    ~name_text() = default;

    [[nodiscard]] std::string_view view() const noexcept {
        return {size_ > in_place_bytes ? elsewhere_.get() : here_.data(), size_};
    }
    operator std::string_view() const noexcept { return view(); }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    friend bool operator==(const name_text& a, std::string_view b) noexcept { return a.view() == b; }

private:
    void assign(std::string_view text) {
        ENSURE(text.size() <= UINT16_MAX);
        size_ = static_cast<std::uint16_t>(text.size());
        if (size_ > in_place_bytes) elsewhere_ = std::make_unique_for_overwrite<char[]>(size_);
        if (size_ != 0)
            std::memcpy(size_ > in_place_bytes ? elsewhere_.get() : here_.data(), text.data(), size_);
    }

    std::uint16_t size_ = 0;
    std::array<char, in_place_bytes> here_{};
    std::unique_ptr<char[]> elsewhere_;
};

}  // namespace sluice::fat
