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
#include "sluice/vfs/fs_domain.hpp"
#include "sluice/vfs/mount_table.hpp"

namespace sluice::vfs {

struct domain_table_options {
    std::size_t workers_max = 8;  // per domain
    /// Gives the text of mountinfo.
    std::function<std::string()> read_mounts = read_mountinfo;
    /// Tells whether that may be another text than at the last question.
    std::function<bool()> have_mounts_changed = mount_changes();
    const clock_source* clock = nullptr;  // null: the machine's; outlives the domains
};

/// The domains of a process: whatever lies on one file system, in whatever share, has one domain. The key is
/// the superblock's device in /proc/self/mountinfo.
///
/// Monitor. Thread safety: any thread. A domain exists as long as something holds it. The table holds only
/// the one for file systems beyond limits::domains_max.
class domain_table {
public:
    explicit domain_table(domain_table_options options = {}) : options_(std::move(options)) {}
    domain_table(const domain_table&) = delete;
    domain_table& operator=(const domain_table&) = delete;

    /// The domain of the file system that `open` lies on. With `always_offloaded` its calls, also those of
    /// others that have it already, never run inline from now on.
    /// Errors: those of statx(2); EAGAIN if its calls are never inline and no worker can be started.
    /// Allocates: yes. Blocks: for the file system, which may hang.
    [[nodiscard]] result<std::shared_ptr<fs_domain>> domain_of(const io::handle& open,
                                                               bool always_offloaded = false);

    /// A domain for the calls of one volume that reach other file systems beneath it; `name` is where the
    /// volume is. Errors: EAGAIN if no worker can be started. Allocates: yes.
    [[nodiscard]] result<std::shared_ptr<fs_domain>> make_crossing_domain(const std::string& name);

    /// Whether something is mounted on a name in the directory with this absolute path. The mounts are read
    /// again when they have changed. Blocks: for the kernel.
    [[nodiscard]] bool has_mounts_in(std::string_view directory);

    /// All there are now, for status and for the log at the end. Allocates: what it returns.
    [[nodiscard]] std::vector<std::shared_ptr<fs_domain>> all() const;
    /// That with a number, as inline_call_slot gives it. Returns null if there is none any more.
    [[nodiscard]] std::shared_ptr<fs_domain> find(std::uint32_t number) const;

private:
    struct superblock {
        std::uint64_t device = 0;
        std::string where{};
        std::string type{};
    };
    [[nodiscard]] result<superblock> superblock_of(const io::handle& open) const;

    const domain_table_options options_;
    mutable std::mutex mutex_;                       // guards what follows
    std::set<std::string, std::less<>> mounted_in_;  // the directories of all mount points
    bool knows_mounts_ = false;
    std::vector<std::weak_ptr<fs_domain>> crossing_;
    std::map<std::uint64_t, std::weak_ptr<fs_domain>> domains_;  // by device
    std::shared_ptr<fs_domain> overflow_;  // for file systems beyond limits::domains_max
};

}  // namespace sluice::vfs
