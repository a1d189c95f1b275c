#include "sluice/smb/server/file/file_state.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

file_state::file_state(file_table& table, const vfs::file_key& key,
                       std::shared_ptr<file_state> whole_file) noexcept
    : base(std::move(whole_file)),
      table_(table),
      key_(key),
      protocol_(base == nullptr ? nullptr : &base->protocol_),
      opens_(&table.shard_of(key).memory) {
    ENSURE((key.stream != 0) == (base != nullptr), "a stream has a file, and a file none");
    ENSURE(base == nullptr or base->key_ == key.whole_file(),
           "the file of a stream is found by the stream's key");
}

file_state::~file_state() {
    ENSURE(opens_.empty() and pending_writes_ == 0 and pending_changes_ == 0,
           "an open and a change hold their file");
    ENSURE(waiters_.empty() and locks_.is_empty(), "waiters hold their file, and locks end with their open");
    file_table::shard& in = table_.shard_of(key_);
    const lock_guard held(in.mutex);
    // Under its key there may be another by now, of a stream that took this one's name, or made since the
    // last owner of this one has released it.
    if (file_table::remove_from(in, *this, key_)) table_.change_times.forget(key_);
}

set_change_times& file_state::change_times() noexcept {
    return table_.change_times;
}

void file_state::add(open& one) {
    opens_.push_back(&one);
}

void file_state::remove(open& one) noexcept {
    const auto found = std::ranges::find(opens_, &one);
    ENSURE(found != opens_.end(), "an open is removed once from its file");
    opens_.erase(found);
    if (may_have_changed()) note_change();
}

void file_state::end_write() noexcept {
    ENSURE(pending_writes_ != 0, "a write ends once");
    --pending_writes_;
    ++ended_changes_;
    note_change();
}

void file_state::end_change() noexcept {
    ENSURE(pending_changes_ != 0, "a change ends once");
    --pending_changes_;
    ++ended_changes_;
    note_change();
}

// With opens, the state stays and counts the change itself.
void file_state::note_change() noexcept {
    if (opens_.empty()) table_.note_changed_file();
}

void file_state::set_delete_pending(std::shared_ptr<open> by) {
    ENSURE(by != nullptr, "a file is removed by the open that asked for it");
    add_remover(std::move(by));
    protocol_.set_delete_pending();
    ENSURE(is_delete_pending(), "a file that an open deletes takes no opens any more");
    goes_.cancel();
    // If the claim fails, others may open the file until it is removed. Then they have a file
    // without a name open.
    if (peers_)
        (void)peers_->claim({.up = share_mode_lock_byte::goes, .unless = share_mode_lock_byte::none}, goes_);
}

void file_state::add_remover(std::shared_ptr<open> by) {
    if (std::ranges::find(removers_, by) == removers_.end()) removers_.push_back(std::move(by));
}

void file_state::clear_delete_pending() noexcept {
    protocol_.clear_delete_pending();
    ENSURE(not is_delete_pending() or opens_.empty(), "a file with opens is not being removed");
    removers_.clear();
    goes_.cancel();
}

share_mode_lock_bytes& file_state::peers_among(peer_servers& all) {
    if (not peers_) {
        ENSURE(locks_.is_empty(), "other servers are shown the file before bytes of it are locked");
        peers_.emplace(all.file(key_));
        locks_.tell(peers_->file());
    }
    return *peers_;
}

void file_state::wake_caching_waiters() noexcept {
    for (event<wire::nt_status>* waiting : waiters_)
        waiting->set(wire::nt_status::success);
}

std::shared_ptr<file_state> file_table::find_in(const shard& in, const vfs::file_key& key) noexcept {
    const auto found = in.files.find(key);
    return found == in.files.end() ? nullptr : found->second.owner.lock();
}

std::shared_ptr<file_state> file_table::of_in(shard& in, const vfs::file_key& key) {
    if (std::shared_ptr<file_state> known = find_in(in, key)) return known;
    ENSURE(&shard_of(key) == &in, "a file and its streams are in one shard");
    std::shared_ptr<file_state> whole_file;
    if (key.stream != 0) whole_file = of_in(in, key.whole_file());
    // One that is being destroyed forgets its time no more, if this one takes its entry.
    change_times.forget(key);
    auto fresh = std::allocate_shared<file_state>(std::pmr::polymorphic_allocator<file_state>(&in.memory),
                                                  *this, key, std::move(whole_file));
    add_to(in, *fresh, key);
    return fresh;
}

std::shared_ptr<file_state> file_table::of(const vfs::file_key& key) {
    shard& in = shard_of(key);
    const lock_guard held(in.mutex);
    return of_in(in, key);
}

std::shared_ptr<file_state> file_table::find(const vfs::file_key& key) noexcept {
    const shard& in = shard_of(key);
    const lock_guard held(in.mutex);
    return find_in(in, key);
}

void file_table::change_key(file_state& of, const vfs::file_key& key) {
    const vfs::file_key before = of.key_;
    if (before == key) return;
    ENSURE((before.stream == 0) == (key.stream == 0), "a stream stays a stream, and a file a file");
    change_times.move(before, key);
    of.key_ = key;
    shard& to = shard_of(key);
    shard& from = shard_of(before);
    {
        const lock_guard held(to.mutex);
        // A stream that has been replaced is not at its key any more: another one is.
        if (&from == &to) (void)remove_from(to, of, before);
        add_to(to, of, key);
    }
    if (&from == &to) return;
    // Afterwards, so that it is always found under one of its keys.
    const lock_guard held(from.mutex);
    (void)remove_from(from, of, before);
}

void file_table::forget(file_state& removed) noexcept {
    ENSURE(removed.opens_.empty(), "an open file is in the table");
    ENSURE(removed.protocol_.entries().empty(), "a file that a CREATE joins is in the table");
    shard& in = shard_of(removed.key_);
    const lock_guard held(in.mutex);
    if (remove_from(in, removed, removed.key_)) change_times.forget(removed.key_);
}

std::vector<std::shared_ptr<file_state>> file_table::streams_of(const vfs::file_key& file) const {
    std::vector<std::shared_ptr<file_state>> open;
    const shard& in = shard_of(file);
    const lock_guard held(in.mutex);
    const auto found = in.streams.find(file.whole_file());
    if (found == in.streams.end()) return open;
    for (const entry& each : found->second)
        if (std::shared_ptr<file_state> one = each.owner.lock()) open.push_back(std::move(one));
    return open;
}

bool file_table::has_open_streams(const vfs::file_key& file) const noexcept {
    return std::ranges::any_of(streams_of(file), [](const auto& each) { return not each->opens().empty(); });
}

std::size_t file_table::size() const noexcept {
    std::size_t sum = 0;
    for (const shard& in : shards_) {
        const lock_guard held(in.mutex);
        sum += in.files.size();
    }
    return sum;
}

void file_table::add_to(shard& in, file_state& one, const vfs::file_key& key) {
    ENSURE(one.key_ == key, "an entry leads to a state of its key");
    const entry added{.state = &one, .owner = one.weak_from_this()};
    in.files[key] = added;
    if (key.stream != 0) in.streams[key.whole_file()].push_back(added);
}

bool file_table::remove_from(shard& in, const file_state& one, const vfs::file_key& key) noexcept {
    if (const auto file = in.streams.find(key.whole_file()); key.stream != 0 and file != in.streams.end()) {
        ENSURE(not file->second.empty(), "a file in the list of streams has some");
        std::erase_if(file->second, [&one](const entry& each) { return each.state == &one; });
        if (file->second.empty()) in.streams.erase(file);
    }
    const auto found = in.files.find(key);
    if (found == in.files.end() or found->second.state != &one) return false;
    in.files.erase(found);
    return true;
}

}  // namespace sluice::smb::server
