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
      opens_(&table.memory_) {}

file_state::~file_state() {
    ENSURE(opens_.empty() and not is_changing(), "an open and a change hold their file");
    table_.forget_stream(*this);
    // Under its key there may be another by now, of a stream that took this one's name.
    const auto found = table_.files_.find(key_);
    if (found == table_.files_.end() or not found->second.expired()) return;
    table_.files_.erase(found);
    table_.change_times.forget(key_);
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
}

void file_state::set_delete_pending(std::shared_ptr<open> by) {
    ENSURE(by != nullptr, "a file is removed by the open that asked for it");
    add_remover(std::move(by));
    protocol_.set_delete_pending();
    goes_.give_up();
    // Should the others not hear of it, whatever they open until the file goes they have open without a name.
    if (peers_) (void)peers_->claim({.up = peer_sign::goes, .unless = peer_sign::none}, goes_);
}

void file_state::add_remover(std::shared_ptr<open> by) {
    if (std::ranges::find(removers_, by) == removers_.end()) removers_.push_back(std::move(by));
}

void file_state::clear_delete_pending() noexcept {
    protocol_.clear_delete_pending();
    removers_.clear();
    goes_.give_up();
}

peer_signs& file_state::peers_among(peer_servers& all) {
    if (not peers_) {
        peers_.emplace(all.file(key_));
        locks_.tell(peers_->file());
    }
    return *peers_;
}

void file_state::wake_caching_waiters() noexcept {
    for (event<wire::nt_status>* waiting : waiters_)
        waiting->set(wire::nt_status::success);
}

std::shared_ptr<file_state> file_table::of(const vfs::file_key& key) {
    if (std::shared_ptr<file_state> known = find(key)) return known;
    std::shared_ptr<file_state> whole_file;
    if (key.stream != 0) whole_file = of(key.whole_file());
    auto fresh = std::allocate_shared<file_state>(std::pmr::polymorphic_allocator<file_state>(&memory_),
                                                  *this, key, std::move(whole_file));
    files_[key] = fresh;
    note_stream(*fresh);
    return fresh;
}

std::shared_ptr<file_state> file_table::find(const vfs::file_key& key) noexcept {
    const auto found = files_.find(key);
    return found == files_.end() ? nullptr : found->second.lock();
}

std::vector<std::shared_ptr<file_state>> file_table::all() {
    std::vector<std::shared_ptr<file_state>> found;
    for (const auto& [key, state] : files_) {
        if (std::shared_ptr<file_state> one = state.lock()) found.push_back(std::move(one));
    }
    return found;
}

void file_table::change_key(file_state& of, const vfs::file_key& key) {
    if (of.key_ == key) return;
    // A stream that has been replaced is not at its key any more: another one is.
    if (find(of.key_).get() == &of) files_.erase(of.key_);
    forget_stream(of);
    change_times.move(of.key_, key);
    of.key_ = key;
    files_[key] = of.weak_from_this();
    note_stream(of);
}

void file_table::forget(file_state& removed) noexcept {
    ENSURE(removed.opens_.empty(), "an open file is in the table");
    forget_stream(removed);
    const auto found = files_.find(removed.key_);
    if (found == files_.end() or found->second.lock().get() != &removed) return;
    files_.erase(found);
    change_times.forget(removed.key_);
}

const std::vector<file_state*>& file_table::streams_of(const vfs::file_key& file) const noexcept {
    static const std::vector<file_state*> none;
    const auto found = streams_.find(file.whole_file());
    return found == streams_.end() ? none : found->second;
}

bool file_table::has_open_streams(const vfs::file_key& file) const noexcept {
    return std::ranges::any_of(streams_of(file), [](file_state* each) { return not each->opens().empty(); });
}

void file_table::note_stream(file_state& one) {
    if (one.key_.stream != 0) streams_[one.key_.whole_file()].push_back(&one);
}

void file_table::forget_stream(file_state& one) noexcept {
    const auto found = streams_.find(one.key_.whole_file());
    if (one.key_.stream == 0 or found == streams_.end()) return;
    std::erase(found->second, &one);
    if (found->second.empty()) streams_.erase(found);
}

}  // namespace sluice::smb::server
