#pragma once

#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::vfs {

/// A volume with another account's rights. The kernel checks each call as if that account's process
/// had made it, and new files belong to the account. A server that runs as root uses one per
/// session.
///
/// The calling thread assumes the account's identity for file systems for the duration of a call.
/// Other threads are not affected. Reads do not need the identity, because open files stay open.
/// Writes to a file of the host are plain calls on one thread, so that quotas and set-user-id bits
/// apply to the account: on the loop if calls of the domain run inline, otherwise on a worker. The
/// underlying volume's index of names is shared between accounts. It is used for an account only in
/// directories that the account may list.
///
/// Immutable. Thread safety: as the underlying volume, which outlives it. Lifetime: nodes, listings
/// and watches created by it share its account, and need only the underlying volume.
class impersonated_volume final : public volume {
public:
    /// Creates the volume. Errors: EPERM if the process may not assume the account's identity
    /// (CAP_SETUID, CAP_SETGID). Allocates: yes.
    [[nodiscard]] static result<std::unique_ptr<impersonated_volume>> create(volume& underlying,
                                                                             unix_account account);
    ~impersonated_volume() override;

    /// Returns another volume with the rights of the same account. Allocates: yes.
    [[nodiscard]] std::unique_ptr<impersonated_volume> same_account_on(volume& other) const;
    [[nodiscard]] const account_identity& account() const noexcept { return *account_; }

    [[nodiscard]] fs_domain& domain() noexcept override { return underlying_.domain(); }
    [[nodiscard]] fs_domain* crossing_domain() noexcept override { return underlying_.crossing_domain(); }
    [[nodiscard]] const volume_features& features() const noexcept override { return underlying_.features(); }
    [[nodiscard]] const volume_identity& identity() const noexcept override { return identity_; }
    [[nodiscard]] result<volume_space> space() noexcept override { return underlying_.space(); }
    /// Returns those of the underlying volume, with the rights of the process.
    [[nodiscard]] volume_quotas* quotas() noexcept override { return underlying_.quotas(); }
    [[nodiscard]] result<node_ptr> find(std::string_view path, follow_links links) noexcept override;
    [[nodiscard]] result<found_node> find_with_status(std::string_view path, follow_links links,
                                                      data_access soon, name_match match) noexcept override;
    [[nodiscard]] result<found_node> find_directory(std::string_view path) noexcept override;
    [[nodiscard]] result<node_ptr> create(std::string_view path,
                                          const creation_request& wanted) noexcept override;
    [[nodiscard]] result<found_node> create_in(node& directory, std::string_view name,
                                               const creation_request& wanted) noexcept override;
    /// Returns a feed whose watches report only names that the account may list. Only the feed of
    /// the underlying volume must be run.
    [[nodiscard]] change_feed* changes() noexcept override;

private:
    class feed;
    impersonated_volume(volume& underlying, account_ptr account);

    volume& underlying_;
    account_ptr account_;
    volume_identity identity_;
    std::unique_ptr<feed> feed_;
};

}  // namespace sluice::vfs
