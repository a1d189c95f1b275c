#pragma once

#include <sys/types.h>

#include "sluice/vfs/volume.hpp"

namespace sluice::vfs {

struct unix_account {
    uid_t user_id = 0;
    gid_t group_id = 0;
    std::vector<gid_t> groups{};  // besides group_id
};

/// A volume seen with another account's rights: the kernel checks each call as if that account's process had
/// made it, and what is created is the account's. For a server that runs as root, one of these per session.
///
/// The calling thread takes the account's identity for file systems for the length of a call and has its own
/// back after it; other threads are not touched. Reads need none: what was opened stays open. Writes to a
/// file of the host are made at once, on the calling thread, so that quotas and set-user-id bits are the
/// account's affair; they block it for as long as the kernel takes. The volume behind may share what it knows
/// of names (an index) between accounts: whether a name exists in a directory that an account may search but
/// not read can be learned by spelling it in other case.
///
/// Thread safety: as the volume behind, which outlives it; nodes and watches made by it do not outlive it.
class impersonated_volume final : public volume {
public:
    /// Errors: EPERM if the process may not take the account's identity (CAP_SETUID, CAP_SETGID). Allocates:
    /// yes.
    [[nodiscard]] static result<std::unique_ptr<impersonated_volume>> create(volume& behind,
                                                                             unix_account account);
    ~impersonated_volume() override;

    [[nodiscard]] const volume_features& features() const noexcept override { return behind_.features(); }
    [[nodiscard]] const volume_identity& identity() const noexcept override { return identity_; }
    [[nodiscard]] result<volume_space> space() noexcept override { return behind_.space(); }
    [[nodiscard]] result<node_ptr> find(std::string_view path, follow_links links) noexcept override;
    [[nodiscard]] result<found_node> find_with_status(std::string_view path, follow_links links,
                                                      data_access soon) noexcept override;
    [[nodiscard]] result<found_node> find_directory(std::string_view path) noexcept override;
    [[nodiscard]] result<node_ptr> create(std::string_view path,
                                          const creation_request& wanted) noexcept override;
    [[nodiscard]] result<found_node> create_in(node& directory, std::string_view name,
                                               const creation_request& wanted) noexcept override;
    /// Watches are set with the account's rights. Only the feed of the volume behind is to be run.
    [[nodiscard]] change_feed* changes() noexcept override;

private:
    class feed;
    impersonated_volume(volume& behind, unix_account account);

    volume& behind_;
    unix_account account_;
    volume_identity identity_;
    std::vector<gid_t> own_groups_;
    std::unique_ptr<feed> feed_;
};

}  // namespace sluice::vfs
