#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sluice/base/ensure.hpp"
#include "sluice/io/task/cancel_scope.hpp"
#include "sluice/smb/server/session/configuration.hpp"

namespace sluice::smb::server {

/// The change feed of a volume in progress: for all shares of the volume that are not withdrawn.
struct volume_feed {
    std::shared_ptr<vfs::volume> volume;
    io::cancel_scope scope{};
};

/// A volume under a name that clients connect to, or IPC$, which has named pipes only. The open files belong
/// to the server: several shares may reach one file. Thread safety: the caller holds the server's latch.
class share {
public:
    /// `domain`: its number for reports of what the loops do (domain_names); 0 for none.
    explicit share(share_configuration configuration, std::uint32_t domain = 0) noexcept
        : configuration_(std::move(configuration)), domain_(domain) {}
    /// IPC$.
    share() noexcept { configuration_.name = "IPC$"; }

    [[nodiscard]] const share_configuration& configuration() const noexcept { return configuration_; }
    [[nodiscard]] bool is_pipes() const noexcept { return configuration_.volume == nullptr; }
    /// Not of IPC$.
    [[nodiscard]] vfs::volume& volume() const noexcept {
        ENSURE(not is_pipes(), "IPC$ has no volume");
        return *configuration_.volume;
    }

    [[nodiscard]] std::uint32_t domain() const noexcept { return domain_; }

    /// After a reload without it, no client can connect to it any more. Opens stay, but are not notified of
    /// changes unless another share serves the volume.
    void withdraw() noexcept {
        is_withdrawn_ = true;
        feed.reset();
    }
    [[nodiscard]] bool is_withdrawn() const noexcept { return is_withdrawn_; }

    /// Null if the volume has none, or the share is withdrawn. The last share to release it ends the feed.
    std::shared_ptr<volume_feed> feed;

    /// How many files are open through it; kept by their states.
    std::size_t open_files = 0;

private:
    share_configuration configuration_;
    std::uint32_t domain_ = 0;
    bool is_withdrawn_ = false;
};

}  // namespace sluice::smb::server
