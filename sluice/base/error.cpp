#include "sluice/base/error.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace sluice {
namespace {

// One remembered path, a sequence lock. Invariants:
//   1. `number` is `writing` while a thread fills the words, else the number of the note stored in
//      them.
//   2. A reader that sees the same number before and after copying has a complete copy of that
//      note.
// The words are atomic because a reader may copy while a writer of a later note stores.
struct note {
    static constexpr std::uint32_t writing = 0xffff'ffff;
    static constexpr std::size_t word_count = (error::recorded_path_bytes + 8) / 8;

    std::atomic<std::uint32_t> number{writing};
    std::array<std::atomic<std::uint64_t>, word_count> words{};
};

constexpr std::uint32_t number_mask = 0x3fff'ffff;  // keeps -(2 + number) within 32 bits

std::array<note, error::recorded_paths> notes;
std::atomic<std::uint32_t> next_note{0};

std::uint32_t remember(std::string_view path) noexcept {
    const std::uint32_t number = next_note.fetch_add(1, std::memory_order_relaxed) & number_mask;
    note& entry = notes[number % error::recorded_paths];

    std::array<std::uint64_t, note::word_count> words{};
    const std::size_t kept = std::min<std::size_t>(path.size(), error::recorded_path_bytes - 1);
    std::memcpy(words.data(), path.data() + (path.size() - kept), kept);

    entry.number.store(note::writing, std::memory_order_relaxed);
    // Pairs with the acquire fence in recall(): a reader that sees one of the words below sees
    // `writing` or later.
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < words.size(); ++i)
        entry.words[i].store(words[i], std::memory_order_relaxed);
    entry.number.store(number, std::memory_order_release);  // pairs with the first load in recall()
    return number;
}

std::string recall(std::uint32_t number) {
    const note& entry = notes[number % error::recorded_paths];
    if (entry.number.load(std::memory_order_acquire) != number) return "(a path no longer remembered)";
    std::array<std::uint64_t, note::word_count> words{};
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = entry.words[i].load(std::memory_order_relaxed);
    // Pairs with the release fence in remember().
    std::atomic_thread_fence(std::memory_order_acquire);
    if (entry.number.load(std::memory_order_relaxed) != number) return "(a path no longer remembered)";
    return reinterpret_cast<const char*>(words.data());
}

}  // namespace

error error::with_path(int code, const char* operation, std::string_view path) noexcept {
    return {code, operation, -2 - static_cast<std::int32_t>(remember(path))};
}

std::string error::message() const {
    std::string text;
    if (subject_ >= 0) {
        text = "descriptor " + std::to_string(subject_) + ": ";
    } else if (subject_ < no_descriptor) {
        text = recall(static_cast<std::uint32_t>(-(subject_ + 2))) + ": ";
    }
    return text + operation_ + ": " + std::generic_category().message(code_);
}

}  // namespace sluice
