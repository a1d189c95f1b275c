#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "sluice/base/bytes.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/result.hpp"
#include "sluice/fsmutex/limits.hpp"

namespace sluice::fsmutex {

enum class lock_mode : bool { shared, exclusive };

/// A lockable entity and the mode in which a request locks it. The entity is a 63-bit number; its
/// users agree on the meaning. Thread safety: a value.
class entity {
public:
    static constexpr std::uint64_t exclusive_bit = std::uint64_t{1} << 63;

    constexpr entity() noexcept = default;
    /// The top bit of `number` is ignored.
    constexpr explicit entity(std::uint64_t number, lock_mode mode = lock_mode::exclusive) noexcept
        : bits_(with_mode(number, mode)) {}

    /// Returns the entity of a name, the same on every machine and in every release: 63 bits of its
    /// SipHash-2-4 with the key zero. Two names share an entity with a probability of 2^-63, and
    /// then exclude each other. A user that can choose names can cause that; mutual exclusion still
    /// holds.
    [[nodiscard]] static entity of_bytes(bytes_view name, lock_mode mode = lock_mode::exclusive) noexcept;
    [[nodiscard]] static entity of_name(std::string_view name,
                                        lock_mode mode = lock_mode::exclusive) noexcept {
        return of_bytes({reinterpret_cast<const std::byte*>(name.data()), name.size()}, mode);
    }
    /// Returns an entity that no other caller has, for all practical purposes.
    [[nodiscard]] static entity random(secret_random_source& from,
                                       lock_mode mode = lock_mode::exclusive) noexcept {
        return entity(from.next_u64(), mode);
    }
    /// Returns the entity with the given bits().
    [[nodiscard]] static constexpr entity from_bits(std::uint64_t bits) noexcept {
        return entity(bits, (bits & exclusive_bit) != 0 ? lock_mode::exclusive : lock_mode::shared);
    }

    [[nodiscard]] constexpr std::uint64_t number() const noexcept { return bits_ & ~exclusive_bit; }
    [[nodiscard]] constexpr bool is_exclusive() const noexcept { return (bits_ & exclusive_bit) != 0; }
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }

    /// Returns whether one of the two must wait for the other.
    [[nodiscard]] constexpr bool conflicts_with(entity other) const noexcept {
        return number() == other.number() and (is_exclusive() or other.is_exclusive());
    }
    [[nodiscard]] friend constexpr bool operator==(entity, entity) noexcept = default;

private:
    static constexpr std::uint64_t with_mode(std::uint64_t number, lock_mode mode) noexcept {
        return mode == lock_mode::exclusive ? number | exclusive_bit : number & ~exclusive_bit;
    }
    std::uint64_t bits_ = 0;
};

/// The entities of one request in the form that every algorithm receives: in order of their
/// numbers, each once, exclusive if any occurrence was exclusive. Allocates: if there are more than
/// limits::entities_inline. Thread safety: a value.
class entity_set {
public:
    /// Returns the set of `wanted`. Errors: EINVAL if it is empty; ENOMEM. Complexity: O(n log n).
    [[nodiscard]] static result<entity_set> of(std::span<const entity> wanted) noexcept;

    [[nodiscard]] std::span<const entity> view() const noexcept {
        return {heap_ != nullptr ? heap_.get() : inline_.data(), size_};
    }

private:
    entity_set() noexcept = default;

    std::array<entity, limits::entities_inline> inline_;
    std::unique_ptr<entity[]> heap_;
    std::size_t size_ = 0;
};

/// Returns whether `wanted` has the form of an entity_set. Complexity: linear.
[[nodiscard]] bool is_in_order(std::span<const entity> wanted) noexcept;

/// Returns whether requests for `a` and `b`, both in the form of an entity_set, exclude each other.
/// Complexity: linear.
[[nodiscard]] bool conflict(std::span<const entity> a, std::span<const entity> b) noexcept;

}  // namespace sluice::fsmutex
