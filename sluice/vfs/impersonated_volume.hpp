#pragma once

#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::vfs {

/// A volume seen with another account's rights: the kernel checks each call as if that account's process had
/// made it, and what is created is the account's. For a server that runs as root, one of these per session.
///
/// The calling thread takes the account's identity for file systems for the length of a call and has its own
/// back after it; other threads are not touched. Reads need none: what was opened stays open. Writes to a
/// file of the host are plain calls on one thread, so that quotas and set-user-id bits are the account's
/// affair: the loop's if calls of the domain run inline, and otherwise a worker. What the volume behind knows
/// of names (its index) is shared between accounts, and used for an account only in directories that it may
/// list.
///
/// Immutable. Thread safety: as the volume behind, which outlives it. Lifetime: nodes, listings and watches
/// made by it share its account, and need only the volume behind.
class impersonated_volume final : public volume {
public:
    /// Errors: EPERM if the process may not take the account's identity (CAP_SETUID, CAP_SETGID). Allocates:
    /// yes.
    [[nodiscard]] static result<std::unique_ptr<impersonated_volume>> create(volume& behind,
                                                                             unix_account account);
    ~impersonated_volume() override;

    [[nodiscard]] fs_domain& domain() noexcept override { return behind_.domain(); }
    [[nodiscard]] fs_domain* crossing_domain() noexcept override { return behind_.crossing_domain(); }
    [[nodiscard]] const volume_features& features() const noexcept override { return behind_.features(); }
    [[nodiscard]] const volume_identity& identity() const noexcept override { return identity_; }
    [[nodiscard]] result<volume_space> space() noexcept override { return behind_.space(); }
    [[nodiscard]] result<node_ptr> find(std::string_view path, follow_links links) noexcept override;
    [[nodiscard]] result<found_node> find_with_status(std::string_view path, follow_links links,
                                                      data_access soon, name_match match) noexcept override;
    [[nodiscard]] result<found_node> find_directory(std::string_view path) noexcept override;
    [[nodiscard]] result<node_ptr> create(std::string_view path,
                                          const creation_request& wanted) noexcept override;
    [[nodiscard]] result<found_node> create_in(node& directory, std::string_view name,
                                               const creation_request& wanted) noexcept override;
    /// Watches report only what the account may list. Only the feed of the volume behind is to be run.
    [[nodiscard]] change_feed* changes() noexcept override;

private:
    class feed;
    impersonated_volume(volume& behind, account_ptr account);

    volume& behind_;
    account_ptr account_;
    volume_identity identity_;
    std::unique_ptr<feed> feed_;
};

}  // namespace sluice::vfs
