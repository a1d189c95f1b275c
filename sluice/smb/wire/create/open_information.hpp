#pragma once

#include <cstddef>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/fscc/file_attributes.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"

namespace sluice::smb::wire {

/// The attributes of a file in the responses to CREATE and CLOSE.
struct open_information {
    filetime creation_time;
    filetime last_access_time;
    filetime last_write_time;
    filetime change_time;
    std::uint64_t allocation_bytes = 0;
    std::uint64_t end_of_file_bytes = 0;
    file_attributes attributes = file_attributes::none;

    [[nodiscard]] friend bool operator==(const open_information&, const open_information&) noexcept = default;
};

/// The wire format of `open_information`.
struct raw_open_information {
    le64 creation_time;     //  0
    le64 last_access_time;  //  8
    le64 last_write_time;   // 16
    le64 change_time;       // 24
    le64 allocation_size;   // 32
    le64 end_of_file;       // 40
    le32 attributes;        // 48
};
static_assert(sizeof(raw_open_information) == 52 and wire_type<raw_open_information>);
static_assert(offsetof(raw_open_information, allocation_size) == 32 and
              offsetof(raw_open_information, attributes) == 48);

[[nodiscard]] constexpr open_information decode_open_information(const raw_open_information& raw) noexcept {
    return {.creation_time = filetime(raw.creation_time),
            .last_access_time = filetime(raw.last_access_time),
            .last_write_time = filetime(raw.last_write_time),
            .change_time = filetime(raw.change_time),
            .allocation_bytes = raw.allocation_size.value(),
            .end_of_file_bytes = raw.end_of_file.value(),
            .attributes = file_attributes(raw.attributes.value())};
}

[[nodiscard]] constexpr raw_open_information encode_open_information(const open_information& info) noexcept {
    return {.creation_time = info.creation_time.wire(),
            .last_access_time = info.last_access_time.wire(),
            .last_write_time = info.last_write_time.wire(),
            .change_time = info.change_time.wire(),
            .allocation_size = le64(info.allocation_bytes),
            .end_of_file = le64(info.end_of_file_bytes),
            .attributes = le32(bits_of(info.attributes))};
}

}  // namespace sluice::smb::wire
