#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/session/share.hpp"

namespace sluice::smb::server {

/// The shares that clients can connect to: snapshots, of which a reload publishes the next.
/// Monitor: any thread; `mutex_` guards the pointer to the snapshot, which is immutable. Its rank
/// allows a reader that holds any other mutex. Allocates: a snapshot, when it is published.
class share_list {
public:
    using snapshot = std::shared_ptr<const std::vector<std::shared_ptr<share>>>;

    share_list() : current_(std::make_shared<std::vector<std::shared_ptr<share>>>()) {}
    share_list(const share_list&) = delete;
    share_list& operator=(const share_list&) = delete;

    /// Never null. A caller that iterates keeps it.
    [[nodiscard]] snapshot current() const noexcept {
        const lock_guard held(mutex_);
        return current_;
    }
    void publish(std::vector<std::shared_ptr<share>> fresh) {
        snapshot next = std::make_shared<const std::vector<std::shared_ptr<share>>>(std::move(fresh));
        const lock_guard held(mutex_);
        current_.swap(next);  // the one before is released without the mutex
    }

private:
    mutable ranked_mutex<lock_rank::memory> mutex_;
    snapshot current_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server
