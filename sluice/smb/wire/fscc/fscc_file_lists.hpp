#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/smb/wire/fscc/fscc_entry_list.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"

// The information classes that are lists. Each has a writer and a reader. The writer takes names in
// UTF-8 and returns for each entry whether it was added. The reader returns names as UTF-16LE with
// an even number of bytes; utf8_of() converts them. Neither allocates; both borrow the bytes.
// Readers fail with `truncated`, `bad_chain`, `range_outside_message` or `bad_text`, and return no
// entries after an error.

namespace sluice::smb::wire {

/// FileStreamInformation, [MS-FSCC] 2.4: the data streams of a file. A name is ":name:$DATA"; the
/// unnamed stream is "::$DATA".
struct stream_information {
    std::string_view name{};
    std::uint64_t size_bytes = 0;
    std::uint64_t allocation_bytes = 0;
};
struct received_stream {
    bytes_view name_utf16{};
    std::uint64_t size_bytes = 0;
    std::uint64_t allocation_bytes = 0;
};
class stream_list_writer {
public:
    explicit stream_list_writer(mutable_bytes room) noexcept : list_(room, 8) {}
    [[nodiscard]] entry_outcome put(const stream_information& stream) noexcept;
    [[nodiscard]] mutable_bytes bytes() const noexcept { return list_.bytes(); }

private:
    entry_list_writer list_;
};
class stream_list_reader {
public:
    explicit stream_list_reader(bytes_view list) noexcept;
    [[nodiscard]] decoded<std::optional<received_stream>> next() noexcept;

private:
    entry_list_reader list_;
};

/// An extended attribute, [MS-FSCC] 2.4: the form of FileFullEaInformation and of the EA create
/// context. The name consists of single bytes on the wire, without a terminator. The value may be
/// empty, which in a set request means "remove".
struct extended_attribute {
    std::string_view name{};
    bytes_view value{};
    /// FILE_NEED_EA: a client that does not understand it must not open the file.
    bool needed = false;
};
class ea_list_writer {
public:
    explicit ea_list_writer(mutable_bytes room) noexcept : list_(room, 4) {}
    /// Appends an entry. `bad_text`: a name that is empty, longer than 255 bytes or contains a
    /// zero, or a value over 65535 bytes.
    [[nodiscard]] entry_outcome put(const extended_attribute& attribute) noexcept;
    [[nodiscard]] mutable_bytes bytes() const noexcept { return list_.bytes(); }

private:
    entry_list_writer list_;
};
class ea_list_reader {
public:
    explicit ea_list_reader(bytes_view list) noexcept;
    /// Errors: also `bad_value` for an empty name, one that contains a zero, and one without a
    /// terminator.
    [[nodiscard]] decoded<std::optional<extended_attribute>> next() noexcept;

private:
    entry_list_reader list_;
};

/// FILE_GET_EA_INFORMATION, [MS-FSCC] 2.4: the names that a query requests.
class ea_name_list_writer {
public:
    explicit ea_name_list_writer(mutable_bytes room) noexcept : list_(room, 4) {}
    /// Appends a name. `bad_text` as for ea_list_writer.
    [[nodiscard]] entry_outcome put(std::string_view name) noexcept;
    [[nodiscard]] mutable_bytes bytes() const noexcept { return list_.bytes(); }

private:
    entry_list_writer list_;
};
class ea_name_list_reader {
public:
    explicit ea_name_list_reader(bytes_view list) noexcept;
    /// Errors: as for ea_list_reader.
    [[nodiscard]] decoded<std::optional<std::string_view>> next() noexcept;

private:
    entry_list_reader list_;
};

/// FileHardLinkInformation, [MS-FSCC] 2.4: the names of a file, each with the
/// number of its directory.
struct hard_link {
    std::uint64_t directory_number = 0;
    std::string_view name{};
};
struct received_hard_link {
    std::uint64_t directory_number = 0;
    bytes_view name_utf16{};
};
class hard_link_list_writer {
public:
    /// Requires 8 bytes for the list's head. Without them put() returns `no_room` and bytes() is
    /// empty.
    explicit hard_link_list_writer(mutable_bytes room) noexcept;
    [[nodiscard]] entry_outcome put(const hard_link& link) noexcept;
    /// Writes the head and returns the list. `bytes_needed`: the length of the complete list,
    /// including entries that did not fit.
    [[nodiscard]] mutable_bytes finish(std::uint32_t bytes_needed) noexcept;

private:
    mutable_bytes room_;
    entry_list_writer list_;
};
class hard_link_list_reader {
public:
    /// Errors: `truncated` without a head.
    [[nodiscard]] static decoded<hard_link_list_reader> of(bytes_view bytes) noexcept;
    [[nodiscard]] decoded<std::optional<received_hard_link>> next() noexcept;
    [[nodiscard]] std::uint32_t bytes_needed() const noexcept { return bytes_needed_; }

private:
    hard_link_list_reader(bytes_view list, std::uint32_t bytes_needed, std::uint32_t left) noexcept;
    entry_list_reader list_;
    std::uint32_t bytes_needed_;
    std::uint32_t left_;
};

}  // namespace sluice::smb::wire
