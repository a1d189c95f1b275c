#include "sluice/vfs/host/host_place.hpp"

#include <string>

#include "sluice/io/path/fs_location.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_name.hpp"

namespace sluice::vfs {

file_key key_of(const io::file_status& status) noexcept {
    return {.volume = status.device, .file = status.inode, .stream = 0};
}

name_identity identity_in(const io::file_status& status) noexcept {
    return {.key = key_of(status), .changed = time_of(status.changed)};
}

result<name_place> place_on_host(const io::handle& open, const io::handle& asked) noexcept {
    const auto there = io::place_of(open);
    if (not there) return failure(there.error());
    const auto directory = io::status_of(there->directory, io::stat_fields::inode);
    if (not directory) return failure(directory.error());
    const auto itself = io::status_of(asked, identifying_fields);
    if (not itself) return failure(itself.error());
    std::string storage;
    return name_place{.directory = key_of(*directory),
                      .name = std::string(shown_name(there->name, storage)),
                      .identity = identity_in(*itself)};
}

}  // namespace sluice::vfs
