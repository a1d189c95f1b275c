#pragma once

#include <memory>
#include <string>

#include "sluice/io/cancel_scope.hpp"
#include "sluice/smb/server/configuration.hpp"
#include "sluice/smb/server/file_state.hpp"

namespace sluice::smb::server {

/// What a tree connects to: a volume with its open files, or IPC$, which has named pipes only.
/// Thread safety: under the server's latch.
class share {
public:
    explicit share(share_configuration configuration) noexcept : configuration_(std::move(configuration)) {}
    /// IPC$.
    share() noexcept { configuration_.name = "IPC$"; }

    [[nodiscard]] const share_configuration& configuration() const noexcept { return configuration_; }
    [[nodiscard]] bool is_pipes() const noexcept { return configuration_.volume == nullptr; }
    /// Not of IPC$.
    [[nodiscard]] vfs::volume& volume() const noexcept {
        ENSURE(not is_pipes(), "IPC$ has no volume");
        return *configuration_.volume;
    }
    [[nodiscard]] file_table& files() noexcept { return files_; }

    /// After a reload left it out nobody may connect any more; what is open stays so, but is not told of
    /// changes.
    void withdraw() noexcept {
        is_withdrawn_ = true;
        feed_scope.cancel();
    }
    [[nodiscard]] bool is_withdrawn() const noexcept { return is_withdrawn_; }

    /// What the volume's change feed runs in.
    io::cancel_scope feed_scope;

private:
    share_configuration configuration_;
    file_table files_;
    bool is_withdrawn_ = false;
};

}  // namespace sluice::smb::server
