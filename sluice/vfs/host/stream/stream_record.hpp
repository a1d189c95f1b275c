#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/bytes.hpp"
#include "sluice/base/random.hpp"
#include "sluice/io/call/handle.hpp"

// The attribute that connects a file with its large streams, and marks the objects of a stream
// store: docs/formats/streams.md.

namespace sluice::vfs {

inline constexpr const char* streams_attribute = "user.sluice.streams";

/// The name of a file's directory in a stream store. Random, so that no client can guess it.
struct stream_id {
    std::array<std::byte, 16> bytes{};

    [[nodiscard]] static stream_id create(secret_random_source& source) noexcept {
        stream_id fresh;
        source.fill(fresh.bytes);
        return fresh;
    }
    /// Returns its digits, 32 in lower case. Allocates: the text.
    [[nodiscard]] std::string text() const;
    /// Returns the ID with exactly this text; otherwise std::nullopt.
    [[nodiscard]] static std::optional<stream_id> parse(std::string_view text) noexcept;

    [[nodiscard]] friend constexpr auto operator<=>(const stream_id&, const stream_id&) noexcept = default;
};

enum class stream_record_kind : std::uint8_t {
    reference = 1,  ///< on a file: it has streams in a store
    mark = 2,       ///< on a directory or a file of a store
};

struct stream_record {
    stream_record_kind kind = stream_record_kind::reference;
    std::uint32_t owner = 0;  // the user ID of the file
    stream_id id{};
    // The file: the number of its inode, and when it was created, in nanoseconds since 1970 (0: not
    // known). The number alone is used again after the file was removed.
    std::uint64_t inode = 0;
    std::uint64_t born = 0;

    [[nodiscard]] friend constexpr bool operator==(const stream_record&,
                                                   const stream_record&) noexcept = default;
};

inline constexpr std::size_t stream_record_bytes = 40;

[[nodiscard]] std::array<std::byte, stream_record_bytes> encode(const stream_record& what) noexcept;
/// Returns std::nullopt for another length, version or kind.
[[nodiscard]] std::optional<stream_record> decode_stream_record(bytes_view bytes) noexcept;

/// Returns the record of an open file; std::nullopt if it has none, cannot have any, or has one
/// that is not valid. Errors: EACCES, EIO. Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<std::optional<stream_record>> load_stream_record(const io::handle& open) noexcept;

enum class record_storing : std::uint8_t { only_if_none, replace };

/// Errors: EEXIST with only_if_none; ENOSPC, also if the attribute does not fit; EACCES, EPERM,
/// EROFS. Blocks: for the file system.
[[nodiscard]] result<void> store_stream_record(const io::handle& open, const stream_record& what,
                                               record_storing how) noexcept;

}  // namespace sluice::vfs
