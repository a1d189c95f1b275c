#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "sluice/vfs/domain/discardable.hpp"
#include "sluice/vfs/node.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/short_name.hpp"

namespace sluice::vfs {

/// A name in a directory. The names are valid until the next call of the listing.
struct listed_name {
    std::string_view name;
    metadata status;
    // A symbolic link with a missing or outside target; `status` is the link's.
    bool leads_nowhere = false;
};

/// The names of a directory, one after the other, without `.` and `..`. A name that is in the
/// directory during the complete listing is returned once. A name that is created or removed during
/// the listing may be returned. Thread safety: one thread at a time. Lifetime: the volume outlives
/// it; the directory's node need not.
class directory_listing : public discardable {
public:
    /// Returns the next name; null at the end. A symbolic link has the status of its target.
    /// Errors: EIO and those of the file system. Blocks: for the file system.
    [[nodiscard]] virtual result<const listed_name*> next() noexcept = 0;

    /// Returns the stored security descriptor of the name that next() returned last, as
    /// node_attached::security; that of the target for a symbolic link that leads somewhere. Needs
    /// fewer calls than to find the node. By default EOPNOTSUPP. Errors: EOPNOTSUPP; ENOENT if the
    /// name was removed; EACCES; EIO. Blocks: for the file system. Allocates: the result.
    [[nodiscard]] virtual result<std::vector<std::byte>> security() noexcept {
        return failure({EOPNOTSUPP, "get security"});
    }
    /// Returns the short name of the name that next() returned last, as node_names::alternate_name
    /// for the name itself, also if it is a link. Empty also if it cannot be determined. The first
    /// call may compute the short names of the directory, so it is made only if they are needed. By
    /// default empty. Blocks: for the file system. Allocates: what the volume keeps for the
    /// directory.
    [[nodiscard]] virtual short_name alternate_name() noexcept { return {}; }

protected:
    directory_listing() = default;
};

/// The names in a directory: a part of a node. The volume looks up and creates single names
/// (volume::find, volume::create_in), because it alone compares names.
/// Thread safety, Blocks: as node.
class node_children {
public:
    node_children(const node_children&) = delete;
    node_children& operator=(const node_children&) = delete;

    /// Begins a listing. Errors: ENOTDIR if the node is no longer a directory; EACCES.
    /// Allocates: the listing.
    [[nodiscard]] virtual result<std::unique_ptr<directory_listing>> list() noexcept = 0;

    /// Returns the identity of the file that has a name in the directory now. Does not follow a
    /// link. `name` is one component, in the case of the directory's entry. Errors: ENOENT;
    /// EOPNOTSUPP, as by default.
    [[nodiscard]] virtual result<name_identity> identity_of(std::string_view /*name*/) noexcept {
        return failure({EOPNOTSUPP, "identify"});
    }

protected:
    node_children() = default;
    ~node_children() = default;
};

/// Begins a listing of a node. Errors: as node_children::list; ENOTDIR for other nodes.
/// Blocks: for the file system. Allocates: the listing.
[[nodiscard]] inline result<std::unique_ptr<directory_listing>> list(node& of) noexcept {
    if (node_children* const part = of.children(); part != nullptr) return part->list();
    return failure({ENOTDIR, "list"});
}

}  // namespace sluice::vfs
