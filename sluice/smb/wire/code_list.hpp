#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {

/// A view of a list of 16-bit codes in a message (dialects, ciphers, algorithms), in the
/// sender's order of preference. Codes without an enumerator are kept. The bytes outlive the
/// list. Thread safety: a value.
template <class Code>
class code_list {
public:
    static_assert(std::is_same_v<std::underlying_type_t<Code>, std::uint16_t>);

    constexpr code_list() noexcept = default;
    /// Constructs a list of codes in memory, for an encoder.
    explicit code_list(std::span<const le16> codes) noexcept : bytes_(std::as_bytes(codes)) {}
    /// Constructs a list of received codes. An incomplete code at the end is ignored.
    explicit code_list(bytes_view bytes) noexcept : bytes_(*bytes.first(bytes.size() / 2 * 2)) {}

    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() / 2; }
    [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
    [[nodiscard]] bytes_view bytes() const noexcept { return bytes_; }

    /// Returns the code at `index`, which is less than size().
    [[nodiscard]] Code operator[](std::size_t index) const noexcept {
        const auto code = bytes_.take_at<le16>(index * 2);
        ENSURE(code.has_value());
        return Code(code->value());
    }
    [[nodiscard]] bool contains(Code code) const noexcept {
        for (std::size_t i = 0; i < size(); ++i) {
            if ((*this)[i] == code) return true;
        }
        return false;
    }

    [[nodiscard]] friend bool operator==(const code_list&, const code_list&) noexcept = default;

private:
    bytes_view bytes_;
};

}  // namespace sluice::smb::wire
