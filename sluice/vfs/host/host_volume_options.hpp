#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/base/random.hpp"
#include "sluice/vfs/host/creation_rules.hpp"
#include "sluice/vfs/host/name/name_index.hpp"
#include "sluice/vfs/host/name/name_patterns.hpp"
#include "sluice/vfs/host/recycle_rules.hpp"

namespace sluice::vfs {

class domain_table;

struct host_volume_options {
    bool read_only = false;
    bool follow_links = true;  // false: a path through a symbolic link fails with ELOOP
    // Names beginning with a dot are `hidden` unless stored otherwise.
    bool map_hidden_dot_files = false;
    // Files whose name has not the form of a short name have one, too.
    bool short_names = false;
    // Offers the quotas of the file system. Those of other users than that of the process need
    // CAP_SYS_ADMIN.
    bool offers_quotas = false;
    // For new files and directories, less the umask of the process, or as a default ACL of their
    // directory restricts them. Others may never write, even with a umask of 0.
    std::uint16_t file_permission_bits = 0664;
    std::uint16_t directory_permission_bits = 0775;
    // In addition: owners and modes that the umask has no effect on.
    creation_rules created{};
    // Names with the attribute `hidden`, whatever is stored.
    name_patterns hidden_names{};
    // Names that do not exist for clients, and cannot be created; with all that is beneath them.
    name_patterns rejected_names{};
    // Files that clients delete are moved to a bin, which is not for a volume that is read-only.
    std::optional<recycle_rules> recycle{};
    // Without it, there is no change feed, and a lookup in another case reads the directory, so
    // that the volume needs no inotify queue.
    bool watched = true;
    std::string label{};  // by default the directory's name
    index_limits index{};
    /// The root of the outermost volume that contains this one. Streams that are too large for
    /// attributes are stored in it, or in the topmost directory of this volume's file system
    /// between the two, so that both volumes find them. Empty: this volume's root.
    std::string streams_root{};
    /// The source of the names of streams, for any thread; null: the kernel's. Outlives the volume.
    secret_random_source* random = nullptr;
    /// Provides the volume with the domain of its file system; null: its calls are always inline.
    domain_table* domains = nullptr;
    bool offload_always = false;  // with `domains`: no call of the file system runs on a loop
};

}  // namespace sluice::vfs
