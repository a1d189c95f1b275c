#include "sluice/smb/server/metadata/description.hpp"

namespace sluice::smb::server {

using wire::file_attributes;

file_attributes attributes_of(const vfs::metadata& status) noexcept {
    // The four that FAT has share their values with the wire's.
    auto attributes = static_cast<file_attributes>(status.dos);
    if (status.kind == vfs::node_kind::directory) attributes |= file_attributes::directory;
    if (status.kind == vfs::node_kind::symlink) attributes |= file_attributes::reparse_point;
    if (status.is_sparse) attributes |= file_attributes::sparse_file;
    return attributes == file_attributes::none ? file_attributes::normal : attributes;
}

vfs::dos_attributes dos_attributes_of(file_attributes wanted) noexcept {
    const file_attributes kept = wanted & (file_attributes::read_only | file_attributes::hidden |
                                           file_attributes::system | file_attributes::archive);
    return static_cast<vfs::dos_attributes>(kept);
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
