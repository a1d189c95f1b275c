#pragma once

#include <memory>
#include <utility>

#include "sluice/io/task/call_threads.hpp"

namespace sluice::vfs {

/// An object that fs_domain::discard() destroys, on a worker if necessary. It contains its queue
/// link, so that discarding it allocates nothing.
class discardable : public io::queued_call {
public:
    virtual ~discardable() = default;
    discardable(const discardable&) = delete;
    discardable& operator=(const discardable&) = delete;

protected:
    discardable() noexcept = default;

private:
    friend class fs_domain;

    bool carry_out() noexcept final {
        const std::shared_ptr<const void> released_last = std::move(kept_);
        delete this;
        return false;
    }

    std::shared_ptr<const void> kept_;  // dependencies that must exist until it is destroyed
};

}  // namespace sluice::vfs
