#pragma once

#include <cstdint>
#include <string>

#include "sluice/vfs/host/name_index.hpp"

namespace sluice::vfs {

class domain_table;

struct host_volume_options {
    bool read_only = false;
    bool follow_links = true;           // false: a path through a symbolic link fails with ELOOP
    bool map_hidden_dot_files = false;  // names beginning with a dot are `hidden`
                                        // unless stored otherwise
    // For new files, without the bits of the process's umask.
    std::uint16_t file_permission_bits = 0644;
    std::uint16_t directory_permission_bits = 0755;
    std::string label{};  // by default the directory's name
    index_limits index{};
    /// Provides the volume with the domain of its file system; null: its calls are always inline.
    domain_table* domains = nullptr;
    bool offload_always = false;  // with `domains`: no call of the file system runs on a loop
};

}  // namespace sluice::vfs
