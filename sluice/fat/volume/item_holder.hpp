#pragma once

#include "sluice/fat/engine/file_system.hpp"
#include "sluice/vfs/node.hpp"

// Internal to the volume.

namespace sluice::fat {

/// Gives the rest of a FAT volume access to the item of a node. Thread safety: that of the node.
class item_holder {
public:
    [[nodiscard]] virtual item& held() const noexcept = 0;

protected:
    ~item_holder() = default;
};

/// Returns the item of a node of a FAT volume; null for any other node.
[[nodiscard]] inline item* item_of(vfs::node& which) noexcept {
    auto* const own = dynamic_cast<item_holder*>(&which);
    return own != nullptr ? &own->held() : nullptr;
}

}  // namespace sluice::fat
