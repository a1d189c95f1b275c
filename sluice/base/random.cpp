#include "sluice/base/random.hpp"

#include <sys/random.h>

#include <bit>
#include <cerrno>

#include "sluice/base/ensure.hpp"

namespace sluice {
namespace {

// One step of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators"): a counter in steps of the golden ratio, mixed. Any two seeds, even 0 and 1,
// give unrelated states.
std::uint64_t splitmix64(std::uint64_t& counter) noexcept {
    counter += 0x9e37'79b9'7f4a'7c15;
    std::uint64_t mixed = counter;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58'476d'1ce4'e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d0'49bb'1331'11eb;
    return mixed ^ (mixed >> 31);
}

}  // namespace

std::uint64_t random_source::below(std::uint64_t bound) noexcept {
    ENSURE(bound != 0);
    // 2^64 is rarely a multiple of `bound`: the first 2^64 mod `bound` numbers are discarded,
    // because otherwise the least results would be a little likelier. They are fewer than half of
    // all, so the loop ends soon.
    const std::uint64_t surplus = (0 - bound) % bound;
    for (;;) {
        const std::uint64_t drawn = next_u64();
        if (drawn >= surplus) return drawn % bound;
    }
}

// getrandom rather than std::random_device, which throws, may use only a CPU instruction, and
// allocates.
void system_random::fill(std::span<std::byte> bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t filled = ::getrandom(bytes.data(), bytes.size(), 0);
        if (filled < 0 and errno == EINTR) continue;
        ENSURE(filled > 0, "the kernel has no random numbers; continuing would create guessable secrets");
        bytes = bytes.subspan(static_cast<std::size_t>(filled));
    }
}

std::uint64_t system_random::next_u64() noexcept {
    std::array<std::byte, sizeof(std::uint64_t)> bytes;
    fill(bytes);
    return std::bit_cast<std::uint64_t>(bytes);
}

seeded_random::seeded_random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : words_)
        word = splitmix64(seed);
}

seeded_random::seeded_random(const state& words) noexcept : words_(words) {
    ENSURE((words_[0] | words_[1] | words_[2] | words_[3]) != 0);
}

std::uint64_t seeded_random::next_u64() noexcept {
    auto& [a, b, c, d] = words_;
    const std::uint64_t drawn = std::rotl(b * 5, 7) * 9;
    const std::uint64_t shifted = b << 17;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = std::rotl(d, 45);
    return drawn;
}

// Least byte first on every machine, so that a seed means the same everywhere.
void seeded_random::fill(std::span<std::byte> bytes) noexcept {
    std::uint64_t drawn = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        drawn = i % sizeof(drawn) == 0 ? next_u64() : drawn >> 8;
        bytes[i] = static_cast<std::byte>(drawn & 0xff);
    }
}

void predictable_secrets_for_simulation::fill(std::span<std::byte> bytes) noexcept {
    numbers_.fill(bytes);
}

std::uint64_t predictable_secrets_for_simulation::next_u64() noexcept {
    return numbers_.next_u64();
}

}  // namespace sluice
