#include "sluice/smb/server/metadata/description.hpp"

#include <array>
#include <cstring>

#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

using wire::file_attributes;

namespace {

[[nodiscard]] wire::guid guid_of(const std::array<le64, 2>& numbers) noexcept {
    wire::guid made;
    static_assert(sizeof numbers == sizeof made);
    std::memcpy(&made, numbers.data(), sizeof made);
    ENSURE(made != wire::guid{}, "an object ID is not empty");
    return made;
}

}  // namespace

file_attributes attributes_of(const vfs::metadata& status) noexcept {
    // The four that FAT has share their values with the wire's.
    auto attributes = static_cast<file_attributes>(status.dos);
    if (status.kind == vfs::node_kind::directory) attributes |= file_attributes::directory;
    if (status.kind == vfs::node_kind::symlink) attributes |= file_attributes::reparse_point;
    if (status.is_sparse) attributes |= file_attributes::sparse_file;
    if (status.is_compressed) attributes |= file_attributes::compressed;
    return attributes == file_attributes::none ? file_attributes::normal : attributes;
}

vfs::dos_attributes dos_attributes_of(file_attributes wanted) noexcept {
    const file_attributes kept = wanted & (file_attributes::read_only | file_attributes::hidden |
                                           file_attributes::system | file_attributes::archive);
    return static_cast<vfs::dos_attributes>(kept);
}

wire::file_number_128 wide_file_number(std::uint64_t number) noexcept {
    wire::file_number_128 wide{};
    const le64 low(number);
    std::memcpy(wide.data(), &low, sizeof low);
    return wide;
}

// The number of a file, which may be 0, is unique in its file system only.
wire::guid object_id_of(const vfs::metadata& file) noexcept {
    constexpr std::uint64_t never_empty = 1ULL << 63;
    return guid_of({le64(file.id), le64(file.volume | never_empty)});
}

// The serial number of a disk image may be 0.
wire::guid object_id_of(const vfs::volume_identity& volume) noexcept {
    return guid_of({le64(volume.serial), le64(1)});
}

wire::open_information open_information_of(const vfs::metadata& status) noexcept {
    const bool is_directory = status.kind == vfs::node_kind::directory;
    return {.creation_time = wire::filetime_of(status.born),
            .last_access_time = wire::filetime_of(status.accessed),
            .last_write_time = wire::filetime_of(status.modified),
            .change_time = wire::filetime_of(status.changed),
            .allocation_bytes = is_directory ? 0 : status.allocated_bytes,
            .end_of_file_bytes = is_directory ? 0 : status.size_bytes,
            .attributes = attributes_of(status)};
}

}  // namespace sluice::smb::server
