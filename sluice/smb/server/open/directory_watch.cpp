#include "sluice/smb/server/open/directory_watch.hpp"

#include <cerrno>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/vfs/node_children.hpp"

namespace sluice::smb::server {

directory_watch::~directory_watch() {
    watch_.reset();  // no event comes after that
    if (is_added_) in_.remove(directory_, this);
}

result<std::unique_ptr<directory_watch>> directory_watch::begin(cached_directories& in,
                                                                vfs::change_feed& feed, vfs::node& directory,
                                                                std::weak_ptr<open> by, quota_hold counted) {
    ENSURE(directory.children() != nullptr, "a directory is watched");
    if (not feed.reports_all_changes(directory)) return failure({EOPNOTSUPP, "watch"});
    std::unique_ptr<directory_watch> made(new directory_watch(in, directory.key(), std::move(counted)));
    made->is_added_ = in.add(made->directory_, made.get(), std::move(by));
    if (not made->is_added_) return failure({ENOSPC, "watch"});
    auto watch = feed.watch(directory, false, *made);
    if (not watch) return failure(watch.error());
    made->watch_ = *std::move(watch);
    return made;
}

void directory_watch::changed(const vfs::change& what) noexcept {
    in_.record_event(directory_, what.path, what.kind == vfs::change_kind::modified);
}

void directory_watch::deactivate() noexcept {
    is_active_.store(false, std::memory_order_seq_cst);  // pairs with is_active()
    in_.record_loss(directory_);
}

}  // namespace sluice::smb::server
