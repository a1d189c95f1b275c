#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/mutex.hpp"
#include "sluice/vfs/domain/domain_table.hpp"
#include "sluice/vfs/snapshot/snapshots.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::cli {

/// The failure domains of a server's directories, and the shares in each, for the log of a stop.
///
/// Monitor; `table()` is one itself. Thread safety: any thread. Allocates: yes.
class share_domains {
public:
    /// The table of the domains.
    [[nodiscard]] vfs::domain_table& table() noexcept { return table_; }

    /// Records that a share is in this domain.
    void add(const std::string& share, vfs::volume& of);
    /// The same for the domain of its snapshots, after that of its volume.
    void add(const std::string& share, vfs::snapshots& of);

    /// A domain with a call that has not ended.
    struct stuck_domain {
        std::string shares;  // their names
        std::string where;   // where the file system is mounted
        std::size_t calls = 0;
        std::chrono::seconds age{};  // the age of the oldest call
    };
    [[nodiscard]] std::vector<stuck_domain> stuck() const;
    /// Returns whether any domain has a running or queued call.
    [[nodiscard]] bool are_busy() const;

private:
    struct member {
        std::string share;
        std::uint32_t domain = 0;  // fs_domain::number()
    };
    vfs::domain_table table_;
    mutable mutex mutex_;
    std::vector<member> members_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::cli
