#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/call/handle.hpp"
#include "sluice/vfs/domain/fs_domain.hpp"
#include "sluice/vfs/domain/mount_table.hpp"

namespace sluice::vfs {

struct domain_table_options {
    std::size_t workers_max = 8;  // per domain
    /// Returns the text of mountinfo.
    std::function<std::string()> read_mounts = read_mountinfo;
    /// Returns whether that text may have changed since the last call.
    std::function<bool()> have_mounts_changed = mount_changes();
    const clock_source* clock = nullptr;  // null: the system's clock; outlives the domains
};

/// The domains of a process. All files of one file system have the same domain, in every share. The
/// key is the superblock's device in /proc/self/mountinfo.
///
/// Monitor. Thread safety: any thread. A domain exists as long as it has an owner. The table itself
/// only owns the domain for file systems beyond limits::domains_max.
class domain_table {
public:
    explicit domain_table(domain_table_options options = {}) : options_(std::move(options)) {}
    domain_table(const domain_table&) = delete;
    domain_table& operator=(const domain_table&) = delete;

    /// Returns the domain of the file system of `open`. With `always_offloaded`, its calls never
    /// run inline from now on, including those of other owners of the domain.
    /// Errors: those of statx(2); EAGAIN if its calls are never inline and a worker cannot be
    /// started.
    /// Allocates: yes. Blocks: for the file system, which may hang.
    [[nodiscard]] result<std::shared_ptr<fs_domain>> domain_of(const io::handle& open,
                                                               bool always_offloaded = false);

    /// Creates a domain for calls that reach file systems other than that of a volume: mounts below
    /// it, or its snapshots. `name` states which, with the location. Errors: EAGAIN if a worker
    /// cannot be started. Allocates: yes.
    [[nodiscard]] result<std::shared_ptr<fs_domain>> make_crossing_domain(const std::string& name);

    /// Returns whether a name in the directory with this absolute path is a mount point. Reads the
    /// mounts again after they have changed. Blocks: for the kernel.
    [[nodiscard]] bool has_mounts_in(std::string_view directory);

    /// Returns all existing domains, for status and for the final log. Allocates: the result.
    [[nodiscard]] std::vector<std::shared_ptr<fs_domain>> all() const;
    /// Returns the domain with a number, as in inline_call_slot. Returns null if it no longer
    /// exists.
    [[nodiscard]] std::shared_ptr<fs_domain> find(std::uint32_t number) const;

private:
    struct superblock {
        std::uint64_t device = 0;
        std::string where{};
        std::string type{};
    };
    [[nodiscard]] result<superblock> superblock_of(const io::handle& open) const;

    const domain_table_options options_;
    mutable std::mutex mutex_;                       // guards all following members
    std::set<std::string, std::less<>> mounted_in_;  // the directories of all mount points
    bool knows_mounts_ = false;
    std::vector<std::weak_ptr<fs_domain>> crossing_;
    std::map<std::uint64_t, std::weak_ptr<fs_domain>> domains_;  // by device
    std::shared_ptr<fs_domain> overflow_;  // for file systems beyond limits::domains_max
};

}  // namespace sluice::vfs
