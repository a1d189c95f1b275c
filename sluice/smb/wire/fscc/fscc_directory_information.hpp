#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/smb/wire/fscc/file_attributes.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/fscc/fscc_entry_list.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"

// The reply to QUERY_DIRECTORY: one entry per file, in one of twelve forms that differ in their
// fields. [MS-FSCC] 2.4, the structures whose names end in DirectoryInformation, and
// FileNamesInformation.

namespace sluice::smb::wire {

/// All fields that a form can contain, except names.
struct directory_entry_fields {
    std::uint32_t file_index = 0;
    filetime created{};
    filetime accessed{};
    filetime written{};
    filetime changed{};
    std::uint64_t end_of_file = 0;
    std::uint64_t allocation_bytes = 0;
    file_attributes attributes = file_attributes::none;
    std::uint32_t ea_bytes = 0;
    /// Used for reparse points only. Forms without a field for it store it in the field of
    /// ea_bytes. Both directions apply that here.
    std::uint32_t reparse_tag = 0;
    std::uint64_t file_number = 0;
    file_number_128 file_number_128_bits{};

    [[nodiscard]] friend bool operator==(const directory_entry_fields&,
                                         const directory_entry_fields&) noexcept = default;
};

/// An entry to send. Names are UTF-8. The short name is at most 12 UTF-16 units and may be empty.
struct directory_entry_info {
    directory_entry_fields fields{};
    std::string_view name{};
    std::string_view short_name{};
};

/// A received entry: the fields that its form has, the others zero. Names are UTF-16LE with an even
/// number of bytes.
struct received_directory_entry {
    directory_entry_fields fields{};
    bytes_view name_utf16{};
    bytes_view short_name_utf16{};
};

/// Returns whether `information` is one of the forms.
[[nodiscard]] bool is_directory_form(file_information_class information) noexcept;
/// Returns whether the entries of a form have short names.
[[nodiscard]] bool has_short_names(file_information_class form) noexcept;
/// Returns the length of an entry of a form without its name. A smaller reply cannot hold any
/// entry.
[[nodiscard]] std::size_t directory_entry_bytes_min(file_information_class form) noexcept;

/// A writer that packs entries into `room`, which outlives it. Allocates: nothing. Thread safety:
/// none of its own.
class directory_entry_writer {
public:
    /// `form` is a form.
    directory_entry_writer(mutable_bytes room, file_information_class form) noexcept;

    /// Appends an entry. `no_room`: the entry is the first of the next reply; if it was the first
    /// of this reply, the client's buffer is too small for it. `bad_text`: a name is not UTF-8, or
    /// a short name too long.
    [[nodiscard]] entry_outcome put(const directory_entry_info& entry) noexcept;

    [[nodiscard]] std::size_t count() const noexcept { return list_.count(); }
    [[nodiscard]] mutable_bytes bytes() const noexcept { return list_.bytes(); }

private:
    entry_list_writer list_;
    file_information_class form_;
};

/// A parser of a reply. The bytes outlive the reader and the entries. Allocates: nothing.
class directory_entry_reader {
public:
    /// `form` is a form.
    directory_entry_reader(bytes_view list, file_information_class form) noexcept;

    /// Returns the next entry; std::nullopt after the last entry and after an error.
    /// Errors: `truncated`, `bad_chain`, `range_outside_message`, `bad_text`.
    [[nodiscard]] decoded<std::optional<received_directory_entry>> next() noexcept;

private:
    entry_list_reader list_;
    file_information_class form_;
};

}  // namespace sluice::smb::wire
