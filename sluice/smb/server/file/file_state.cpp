#include "sluice/smb/server/file/file_state.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

file_state::file_state(file_table& table, const vfs::file_key& key,
                       std::shared_ptr<file_state> whole_file) noexcept
    : base(std::move(whole_file)),
      image(key.image),
      table_(table),
      mutex_(base == nullptr ? own_mutex_ : base->own_mutex_),
      key_(key),
      protocol_(base == nullptr ? nullptr : &base->protocol_),
      opens_(&table.shard_of(key).memory) {
    ENSURE((key.stream != 0) == (base != nullptr), "a stream has a file, and a file none");
    ENSURE(base == nullptr or base->base == nullptr, "the file of a stream is not a stream");
}

// The last owner: no other thread knows it, except by the table, which does not return it any more.
file_state::~file_state() {
    ENSURE(opens_.empty() and pending_writes_ == 0 and pending_changes_ == 0,
           "an open and a change hold their file");
    ENSURE(waiters_.empty() and locks_.is_empty(), "waiters hold their file, and locks end with their open");
    file_table::shard& in = table_.shard_of(key_);
    const lock_guard held(in.mutex);
    // Under its key there may be another by now, of a stream that took this one's name, or made
    // since the last owner of this one has released it.
    if (file_table::remove_from(in, *this, key_)) table_.change_times.forget(key_);
}

set_change_times& file_state::change_times() noexcept {
    return table_.change_times;
}

void file_state::show_change_time(vfs::metadata& status) noexcept {
    if (table_.change_times.is_empty()) return;
    const file_section held(*this);
    table_.change_times.show_in(status, key_);
}

void file_state::set_change_time(const set_change_times::shown_time& time) {
    const file_section held(*this);
    table_.change_times.set(key_, time);
}

std::optional<set_change_times::shown_time> file_state::shown_change_time() noexcept {
    if (table_.change_times.is_empty()) return std::nullopt;
    const file_section held(*this);
    return table_.change_times.find(key_);
}

void file_state::add(const file_section& held, open& one) {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    opens_.push_back(&one);
}

void file_state::remove(const file_section& held, open& one) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    const auto found = std::ranges::find(opens_, &one);
    ENSURE(found != opens_.end(), "an open is removed once from its file");
    opens_.erase(found);
    table_.change_times.end_with(&one, key_);
    if (may_have_changed(held)) record_change();
}

void file_state::begin_write(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    ++pending_writes_;
}

void file_state::end_write(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    ENSURE(pending_writes_ != 0, "a write ends once");
    --pending_writes_;
    count_ended_change();
    record_change();
}

void file_state::begin_change() noexcept {
    const file_section held(*this);
    ++pending_changes_;
}

void file_state::end_change() noexcept {
    const file_section held(*this);
    ENSURE(pending_changes_ != 0, "a change ends once");
    --pending_changes_;
    count_ended_change();
    record_change();
}

bool file_state::is_changing() noexcept {
    const file_section held(*this);
    return pending_writes_ != 0 or pending_changes_ != 0;
}

bool file_state::may_have_changed(const file_section& held) const noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return ended_changes() != 0 or pending_writes_ != 0 or pending_changes_ != 0;
}

// With opens, the state stays and counts the change itself.
void file_state::record_change() noexcept {
    if (opens_.empty()) table_.count_changed_file();
}

bool file_state::is_delete_pending(const file_section& held) const noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return protocol_.phase() == delete_phase::delete_pending or protocol_.phase() == delete_phase::removing;
}

bool file_state::is_delete_pending() noexcept {
    const file_section held(*this);
    return is_delete_pending(held);
}

bool file_state::is_undone(waiter& blocked) noexcept {
    const file_section held(*this);
    return protocol_.is_undone(blocked);
}

bool file_state::refuses_opens() noexcept {
    const file_section held(*this);
    return protocol_.refuses_joins();
}

void file_state::set_delete_pending(const file_section& held, std::shared_ptr<open> by) {
    ENSURE(by != nullptr, "a file is removed by the open that asked for it");
    add_remover(held, std::move(by));
    protocol_.set_delete_pending();
    ENSURE(is_delete_pending(held), "a file that an open deletes takes no opens any more");
    goes_.cancel();
    // If the claim fails, others may open the file until it is removed. Then they have a file
    // without a name open.
    if (peers_)
        (void)peers_->claim({.up = share_mode_lock_byte::goes, .unless = share_mode_lock_byte::none}, goes_);
}

void file_state::add_remover(const file_section& held, std::shared_ptr<open> by) {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    if (std::ranges::find(removers_, by) == removers_.end()) removers_.push_back(std::move(by));
}

std::vector<std::shared_ptr<open>> file_state::take_removers(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return std::exchange(removers_, {});
}

std::vector<std::shared_ptr<open>> file_state::clear_delete_pending(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    protocol_.clear_delete_pending();
    ENSURE(not is_delete_pending(held) or opens_.empty(), "a file with opens is not being removed");
    goes_.cancel();
    return std::exchange(removers_, {});
}

void file_state::end_removal(const file_section& held, name_right& right, bool is_removed) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    protocol_.end_removal(right, is_removed);
    if (not is_delete_pending(held)) goes_.cancel();
}

share_mode_lock_bytes* file_state::peers(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return peers_ ? &*peers_ : nullptr;
}

share_mode_lock_bytes& file_state::peers_among(const file_section& held, peer_servers& all) {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    if (not peers_) {
        ENSURE(locks_.is_empty(), "other servers are shown the file before bytes of it are locked");
        peers_.emplace(all.file(key_));
        locks_.coordinate_with(peers_->file());
        ENSURE(base == nullptr or base->base == nullptr, "the file of a stream is not a stream");
        has_peers_.store(true, std::memory_order_release);  // pairs with has_peers()
    }
    return *peers_;
}

void file_state::add_caching_waiter(const file_section& held, one_shot_event<wire::nt_status>& waiting) {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    waiters_.push_back(&waiting);
}

void file_state::remove_caching_waiter(const file_section& held,
                                       one_shot_event<wire::nt_status>& waiting) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    ENSURE(std::erase(waiters_, &waiting) == 1, "a waiter is in the list until it leaves");
}

void file_state::wake_caching_waiters(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    for (one_shot_event<wire::nt_status>* waiting : waiters_)
        waiting->set(wire::nt_status::success);
}

void file_state::forget(waiter& one) noexcept {
    const file_section held(*this);
    protocol_.forget(one);
}

bool file_state::allows_read(const open& who, byte_range_locks::range where) noexcept {
    if (not has_any_lock()) return true;
    const file_section held(*this);
    return locks_.allows_read(who, where);
}

bool file_state::allows_write(const open& who, byte_range_locks::range where) noexcept {
    if (not has_any_lock()) return true;
    const file_section held(*this);
    return locks_.allows_write(who, where);
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

void file_table::change_key(const file_section& held_file, file_state& of, const vfs::file_key& key) {
    ENSURE(held_file.is_of(of), "a file is used in a section of its own");
    const vfs::file_key before = of.key_;
    if (before == key) return;
    ENSURE((before.stream == 0) == (key.stream == 0), "a stream stays a stream, and a file a file");
    ENSURE(before.image == key.image, "a file stays in its image");
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

void file_table::forget(const file_section& held_file, file_state& removed) noexcept {
    ENSURE(held_file.is_of(removed), "a file is used in a section of its own");
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

std::vector<std::shared_ptr<file_state>> file_table::streams_of(const file_section& held,
                                                                const file_state& file) const {
    ENSURE(held.is_of(file), "the streams of a file are in its section");
    std::vector<std::shared_ptr<file_state>> open = streams_of(file.key(held));
    std::erase_if(open, [&](const auto& each) { return not held.is_of(*each); });
    return open;
}

bool file_table::has_open_streams(const file_section& held, file_state& file) const noexcept {
    return std::ranges::any_of(streams_of(held, file),
                               [&](const auto& each) { return not each->opens(held).empty(); });
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
