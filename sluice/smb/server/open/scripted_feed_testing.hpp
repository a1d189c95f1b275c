#pragma once

#include <memory>

#include "sluice/vfs/change_feed.hpp"

namespace sluice::smb::server {

/// A change feed whose changes a test reports to its last listener. Thread safety: none.
class scripted_feed final : public vfs::change_feed {
public:
    [[nodiscard]] result<std::unique_ptr<vfs::change_watch>> watch(
        vfs::node&, bool, vfs::change_listener& new_listener) noexcept override {
        class kept final : public vfs::change_watch {};
        listener = &new_listener;
        return std::make_unique<kept>();
    }
    [[nodiscard]] io::task<bool> co_changed() noexcept override { co_return false; }
    void deliver() noexcept override {}

    vfs::change_listener* listener = nullptr;
};

}  // namespace sluice::smb::server
