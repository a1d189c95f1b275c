#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "tests/interleave/scheduler.hpp"
#include "tests/interleave/simulated_kernel.hpp"

// The parts of a simulated_kernel, for the files that implement it.

namespace sluice::interleave {

inline constexpr unsigned processes_max = 5;
inline constexpr std::size_t page_bytes = 4096;
inline constexpr int first_descriptor = 1 << 20;
inline constexpr int first_process_id = 5000;
inline constexpr std::size_t file_bytes_max = 2U << 20;
inline constexpr std::size_t files_max = 8;
inline constexpr std::size_t arena_bytes = 64U << 20;

// The content of all files, and the memory that processes allocate. Created once: only the used
// part is cleared after a schedule.
struct machine_memory {
    machine_memory()
        : files(map(files_max * file_bytes_max)),
          arena(map(arena_bytes)),
          is_dirty(files_max * file_bytes_max / page_bytes) {}

    static std::byte* map(std::size_t bytes) {
        void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ENSURE(memory != MAP_FAILED);
        return static_cast<std::byte*>(memory);
    }
    [[nodiscard]] bool has_file_byte(const volatile void* address) const noexcept {
        const auto* const at = static_cast<const volatile std::byte*>(address);
        return at >= files and at < files + files_max * file_bytes_max;
    }
    [[nodiscard]] bool is_in_arena(const void* address) const noexcept {
        const auto* const at = static_cast<const std::byte*>(address);
        return at >= arena and at < arena + arena_bytes;
    }
    void dirty(const volatile void* address, std::size_t bytes) noexcept {
        if (bytes == 0) return;
        const auto first = static_cast<std::size_t>(static_cast<const volatile std::byte*>(address) - files);
        for (std::size_t page = first / page_bytes; page <= (first + bytes - 1) / page_bytes; ++page)
            is_dirty[page] = true;
    }
    void clean() noexcept {
        for (std::size_t page = 0; page != is_dirty.size(); ++page)
            if (std::exchange(is_dirty[page], false)) std::memset(files + page * page_bytes, 0, page_bytes);
        arena_used = 0;
    }
    [[nodiscard]] void* allocate(std::size_t bytes) noexcept {
        const std::size_t begin = (arena_used + 63) / 64 * 64;
        if (begin + bytes > arena_bytes) return nullptr;
        arena_used = begin + bytes;
        return arena + begin;
    }

    std::byte* files;
    std::byte* arena;
    std::size_t arena_used = 0;
    std::vector<char> is_dirty;
};
inline machine_memory& memory() {
    static machine_memory all;
    return all;
}

struct held_lock {
    std::uint64_t first;
    std::uint64_t last;
    bool is_exclusive;
    int descriptor;
};

struct file {
    std::string name{};
    bool has_name = true;
    int remover = -1;  // the process that keeps a link of a removed file, because it has it open
    std::byte* bytes = nullptr;
    std::uint64_t size = 0;
    std::vector<held_lock> locks{};
    int writer = -1;  // the process that is writing
};

struct description {
    enum class kind : unsigned char { closed, file, directory, text };
    kind what = kind::closed;
    unsigned process = 0;
    bool appends = false;
    std::size_t file_number = 0;
    std::uint64_t offset = 0;
    std::string text;
};

struct process {
    bool is_alive = true;
    bool is_copying = false;
    const volatile void* loaded = nullptr;
    std::uint64_t loaded_value = 0;
    unsigned loads = 0;
};

// A clock that shows the time of the scenario.
class scenario_clock final : public clock_source {
public:
    [[nodiscard]] steady_time steady_now() const noexcept override {
        return steady_time(std::chrono::hours(1) + std::chrono::nanoseconds(now_ns()));
    }
    [[nodiscard]] utc_time utc_now() const noexcept override {
        return utc_time(std::chrono::seconds(1'800'000'000) + std::chrono::nanoseconds(now_ns()));
    }
};

struct simulated_kernel::state {
    state()
        : chances{seeded_random(1), seeded_random(2), seeded_random(3), seeded_random(4), seeded_random(5)} {}

    std::vector<file> files;
    std::deque<description> descriptions;  // stable addresses while more are opened
    std::array<process, processes_max> processes;
    std::array<seeded_random, processes_max> chances;
    scenario_clock clock;
    std::uint64_t room = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t calls = 0;
    unsigned signals = 0;
    unsigned processors = 1;
    bool is_remote = false;
    bool hides_sizes = false;
    std::size_t made_last = 0;
    int acting = -1;  // outside of the exploration

    static state* current;

    /// Returns the calling process; -1: not a process of the scenario.
    [[nodiscard]] static int caller() noexcept {
        if (current == nullptr) return -1;
        const int running = thread_number();
        return running >= 0 ? running : current->acting;
    }

    [[nodiscard]] description* find(int descriptor) noexcept {
        const auto index = static_cast<std::size_t>(descriptor - first_descriptor);
        if (descriptor < first_descriptor or index >= descriptions.size()) return nullptr;
        return &descriptions[index];
    }
    [[nodiscard]] file& file_of(const description& open) noexcept { return files[open.file_number]; }
    [[nodiscard]] bool is_in_use(std::size_t number) const {
        return files[number].has_name or std::ranges::any_of(descriptions, [&](const description& each) {
                   return each.what == description::kind::file and each.file_number == number;
               });
    }
    // Reuses the slot of a removed file, if there is one: so inode numbers are reused, as on disks.
    [[nodiscard]] std::size_t make_file(std::string_view name) {
        std::size_t number = 0;
        while (number != files.size() and is_in_use(number))
            ++number;
        ENSURE(number != files_max, "a scenario has too many files");
        if (number == files.size()) files.push_back({.bytes = memory().files + number * file_bytes_max});
        std::byte* const bytes = files[number].bytes;
        std::memset(bytes, 0, files[number].size);
        files[number] = {.name = std::string(name), .bytes = bytes};
        made_last = number;
        return number;
    }
    int open(description fresh) {
        descriptions.push_back(std::move(fresh));
        return first_descriptor + static_cast<int>(descriptions.size()) - 1;
    }
    void close(int descriptor) {
        description& closed = *find(descriptor);
        const bool is_file = closed.what == description::kind::file;
        if (is_file) unlock(descriptor, 0, ~std::uint64_t{0});
        closed.what = description::kind::closed;
        if (not is_file or is_open_by(closed.process, closed.file_number)) return;
        file& left = file_of(closed);
        if (left.remover == static_cast<int>(closed.process)) left.remover = -1;
    }
    [[nodiscard]] bool is_open_by(unsigned process, std::size_t number) const {
        return std::ranges::any_of(descriptions, [&](const description& each) {
            return each.what == description::kind::file and each.process == process and
                   each.file_number == number;
        });
    }
    /// Returns whether the server no longer knows the file, although the description is open.
    [[nodiscard]] bool is_stale(const description& open) const {
        const file& of = files[open.file_number];
        return open.what == description::kind::file and is_remote and not of.has_name and of.remover < 0;
    }

    [[nodiscard]] static bool is_in_the_way(const held_lock& other, const held_lock& wanted) {
        return other.descriptor != wanted.descriptor and other.first <= wanted.last and
               wanted.first <= other.last and (other.is_exclusive or wanted.is_exclusive);
    }
    [[nodiscard]] bool is_locked(file& where, const held_lock& wanted) const {
        return std::ranges::any_of(where.locks,
                                   [&](const held_lock& other) { return is_in_the_way(other, wanted); });
    }
    void unlock(int descriptor, std::uint64_t first, std::uint64_t last) {
        file& where = file_of(*find(descriptor));
        std::vector<held_lock> rest;
        for (const held_lock& each : where.locks) {
            if (each.descriptor != descriptor or each.last < first or each.first > last) {
                rest.push_back(each);
                continue;
            }
            if (each.first < first)
                rest.push_back({each.first, first - 1, each.is_exclusive, each.descriptor});
            if (each.last > last) rest.push_back({last + 1, each.last, each.is_exclusive, each.descriptor});
        }
        where.locks = std::move(rest);
        wake_all_on(&where);
        record_change();
    }
    [[nodiscard]] bool try_lock(const held_lock& wanted) {
        file& where = file_of(*find(wanted.descriptor));
        if (is_locked(where, wanted)) return false;
        unlock(wanted.descriptor, wanted.first, wanted.last);  // its previous lock there is
                                                               // converted
        where.locks.push_back(wanted);
        return true;
    }
};

}  // namespace sluice::interleave
