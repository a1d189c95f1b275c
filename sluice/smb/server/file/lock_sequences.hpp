#pragma once

#include <array>
#include <cstdint>

namespace sluice::smb::server {

/// The LOCK requests of an open that were carried out last, so that a request that a client repeats
/// after a disconnection is not carried out twice ([MS-SMB2] 3.3.1.10, Open.LockSequenceArray).
/// Thread safety: under the mutex of the file of its open.
class lock_sequences {
public:
    static constexpr std::uint32_t index_max = 64;

    /// Returns whether the request is the one that was last carried out at its index; otherwise
    /// forgets that one. Indices from 1 to index_max count.
    [[nodiscard]] bool is_repeated(std::uint32_t index, std::uint8_t number) noexcept {
        if (index == 0 or index > index_max) return false;
        std::uint8_t& last = last_[index - 1];
        if (last == number) return true;
        last = none;
        return false;
    }
    /// Returns the same, and forgets nothing.
    [[nodiscard]] bool has(std::uint32_t index, std::uint8_t number) const noexcept {
        return index != 0 and index <= index_max and last_[index - 1] == number;
    }
    void record(std::uint32_t index, std::uint8_t number) noexcept {
        if (index != 0 and index <= index_max) last_[index - 1] = number;
    }

    /// All of them by index, with `none` where there is no request: for a record of the open.
    using numbers = std::array<std::uint8_t, index_max>;
    static constexpr std::uint8_t none = 0xff;  // numbers have four bits
    [[nodiscard]] const numbers& all() const noexcept { return last_; }
    void restore(const numbers& recorded) noexcept { last_ = recorded; }

private:
    numbers last_ = [] {
        std::array<std::uint8_t, index_max> empty{};
        empty.fill(none);
        return empty;
    }();
};

}  // namespace sluice::smb::server
