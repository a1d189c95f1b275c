#pragma once

#include "sluice/fat/engine/file_system.hpp"
#include "sluice/vfs/node.hpp"

// Internal to the volume.

namespace sluice::fat {

/// Gives the rest of a FAT volume access to the inode of a node. Thread safety: that of the node.
class inode_holder {
public:
    [[nodiscard]] virtual inode& held() const noexcept = 0;

protected:
    ~inode_holder() = default;
};

/// Returns the inode of a node of a FAT volume; null for any other node.
[[nodiscard]] inline inode* inode_of(vfs::node& which) noexcept {
    auto* const own = dynamic_cast<inode_holder*>(&which);
    return own != nullptr ? &own->held() : nullptr;
}

}  // namespace sluice::fat
