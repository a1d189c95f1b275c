#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/fscc/fscc_entry_list.hpp"

// The filter and the entries of CHANGE_NOTIFY.

namespace sluice::smb::wire {

/// The kinds of change that a watcher requests, [MS-SMB2] 2.2.35.
enum class notify_filter : std::uint32_t {
    none = 0,
    file_name = 0x001,
    dir_name = 0x002,
    attributes = 0x004,
    size = 0x008,
    last_write = 0x010,
    last_access = 0x020,
    creation = 0x040,
    ea = 0x080,
    security = 0x100,
    stream_name = 0x200,
    stream_size = 0x400,
    stream_write = 0x800,
};
template <>
inline constexpr bool is_bit_flags<notify_filter> = true;

/// The kind of a change, [MS-FSCC] 2.7.1. A server may send values without an enumerator.
enum class notify_action : std::uint32_t {
    added = 1,
    removed = 2,
    modified = 3,
    renamed_old_name = 4,
    renamed_new_name = 5,
    added_stream = 6,
    removed_stream = 7,
    modified_stream = 8,
    removed_by_delete = 9,
    id_not_tunnelled = 10,
    tunnelled_id_collision = 11,
};

/// One change. The name is UTF-8, relative to the watched directory, with backslashes.
struct notify_information {
    notify_action action = notify_action::modified;
    std::string_view name{};
};
/// A received change: the name as UTF-16LE with an even number of bytes.
struct received_notify {
    notify_action action = notify_action::modified;
    bytes_view name_utf16{};
};

/// A writer of FILE_NOTIFY_INFORMATION, [MS-FSCC] 2.7.1. When an entry does not fit, the server
/// answers STATUS_NOTIFY_ENUM_DIR without a list. `room` outlives the writer. Allocates: nothing.
class notify_writer {
public:
    explicit notify_writer(mutable_bytes room) noexcept : list_(room, 4) {}
    [[nodiscard]] entry_outcome put(const notify_information& change) noexcept;
    [[nodiscard]] std::size_t count() const noexcept { return list_.count(); }
    [[nodiscard]] mutable_bytes bytes() const noexcept { return list_.bytes(); }

private:
    entry_list_writer list_;
};

/// A parser of such a list. The bytes outlive it. Allocates: nothing.
class notify_reader {
public:
    explicit notify_reader(bytes_view list) noexcept;
    /// Returns the next change; std::nullopt after the last change and after an error.
    /// Errors: `truncated`, `bad_chain`, `range_outside_message`, `bad_text`.
    [[nodiscard]] decoded<std::optional<received_notify>> next() noexcept;

private:
    entry_list_reader list_;
};

}  // namespace sluice::smb::wire
