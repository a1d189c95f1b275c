#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>

#include "sluice/vfs/host/host_metadata.hpp"

namespace sluice::vfs {

/// Of the extended attributes that are ours (docs/formats/host_metadata.md), what is asked of a file each
/// time it is opened.
struct own_attributes {
    std::optional<stored_metadata> metadata{};
    bool has_security = false;
};

/// The attributes of files looked at before, which are asked for by name, one of the dearer calls.
///
/// Whoever changes an attribute changes the change time with it, but for two changes within one tick of the
/// kernel's clock. So what was asked when the last change was some ticks ago, which is what note() is to be
/// told, holds as long as that time does; also when the number now is another file's, which is younger.
/// Thread safety: one thread at a time. Allocates: nothing. Complexity: O(1); entries displace each other.
class attribute_memory {
public:
    /// Null: not known.
    [[nodiscard]] const own_attributes* find(const file_key& file, time_point change_time) const noexcept {
        const entry& there = entries_[place_of(file)];
        return there.file == file and there.change_time == change_time ? &there.own : nullptr;
    }
    void note(const file_key& file, time_point change_time, const own_attributes& own) noexcept {
        entries_[place_of(file)] = {.file = file, .change_time = change_time, .own = own};
    }

private:
    static constexpr std::size_t count = 1021;
    struct entry {
        file_key file{};
        time_point change_time{};
        own_attributes own{};
    };
    [[nodiscard]] static std::size_t place_of(const file_key& file) noexcept {
        return std::hash<file_key>{}(file) % count;
    }

    std::array<entry, count> entries_{};
};

}  // namespace sluice::vfs
