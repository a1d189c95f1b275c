#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/vfs/short_name.hpp"

// The short names of a directory's files that do not follow from the names alone, as one extended
// attribute of the directory: docs/formats/host_metadata.md.

namespace sluice::vfs {

inline constexpr const char* short_names_attribute = "user.sluice.short_names";
/// ext4 has about 4000 bytes for all attributes of a file, which others need, too.
inline constexpr std::size_t short_name_record_bytes_max = 2000;

/// Returns the number of a name, or of a short name, in records: the same for names that are
/// equal_ignoring_case(). Two names may have the same one. Allocates: a copy of the name.
[[nodiscard]] std::uint32_t record_number(std::string_view name);

struct short_name_record {
    enum class kind : std::uint8_t {
        generated,  ///< short_name_for(name, `attempt`) is the short name
        used_up,    ///< files whose first short name has this number get one with a hash
        chosen,     ///< a client has set `name`
    };
    struct entry {
        std::uint32_t number = 0;
        kind what = kind::generated;
        std::uint8_t attempt = 0;  // if generated; below plain_short_name_attempts
        short_name name{};         // if chosen; empty: a client has removed it

        [[nodiscard]] friend bool operator==(const entry&, const entry&) noexcept = default;
    };

    std::vector<entry> entries{};
};

/// Returns the record as the bytes of the attribute; none for an empty record. Entries that do not
/// fit into short_name_record_bytes_max are left out, the chosen ones last. Allocates: the bytes.
[[nodiscard]] std::vector<std::byte> encode_short_names(const short_name_record& what);
/// Returns whether all chosen entries fit.
[[nodiscard]] bool has_room_for_choices(const short_name_record& what) noexcept;
/// Returns the entries that are intact: none for an unknown version, and for more than
/// short_name_record_bytes_max. Allocates: the entries.
[[nodiscard]] short_name_record decode_short_names(bytes_view bytes);

}  // namespace sluice::vfs
