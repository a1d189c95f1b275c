#include "sluice/smb/server/file/pending_creates.hpp"

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

name_key::name_key(const vfs::file_key& parent, std::string_view component, std::uint64_t stream)
    : parent_(parent), stream_(stream), folded_(fold(component)) {
    vfs::file_key mixed = parent;
    mixed.stream = stream;
    hash_ = std::hash<std::string>{}(folded_) ^ std::hash<vfs::file_key>{}(mixed);
}

pending_creates::place* pending_creates::shard::find(const name_key& name) noexcept {
    for (place& one : names)
        if (one.name_ == name) return &one;
    return nullptr;
}

bool pending_creates::begin(place& fresh, waiter& blocked) noexcept {
    shard& in = shard_of(fresh.name_);
    const lock_guard held(in.mutex);
    ENSURE(not fresh.link_.is_linked(), "a pending create begins once");
    if (place* const other = in.find(fresh.name_)) {
        other->waiters_.add(blocked);
        return false;
    }
    in.names.push_back(fresh);
    count_.fetch_add(1, std::memory_order_seq_cst);  // pairs with has_any()
    return true;
}

void pending_creates::end(place& ending) noexcept {
    event_wakes<wire::nt_status> woken;
    shard& in = shard_of(ending.name_);
    const lock_guard held(in.mutex);
    if (not ending.link_.is_linked()) return;
    in.names.erase(ending);
    // seq_cst: pairs with has_any().
    ENSURE(count_.fetch_sub(1, std::memory_order_seq_cst) != 0, "a pending name is counted");
    ending.waiters_.wake_all(woken);
}

bool pending_creates::is_pending(const name_key& name, waiter& blocked) noexcept {
    shard& in = shard_of(name);
    const lock_guard held(in.mutex);
    place* const found = in.find(name);
    if (found != nullptr) found->waiters_.add(blocked);
    return found != nullptr;
}

void pending_creates::forget(const name_key& name, waiter& one) noexcept {
    const lock_guard held(shard_of(name).mutex);
    one.leave();
}

}  // namespace sluice::smb::server
