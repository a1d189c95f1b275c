#include "sluice/smb/server/session/session.hpp"

#include <algorithm>

namespace sluice::smb::server {

user_identity identity_of(const auth::step_done& who) {
    if (who.is_anonymous) return {.name = {}, .domain = {}, .is_guest = false, .is_anonymous = true};
    return {.name = who.user, .domain = who.domain, .is_guest = who.is_guest, .is_anonymous = false};
}

bool is_same_account(const auth::account_source& accounts, const user_identity& one,
                     const user_identity& other) noexcept {
    if (one.is_anonymous or other.is_anonymous or one.is_guest != other.is_guest) return false;
    return accounts.is_same({one.name, one.domain}, {other.name, other.domain});
}

session::~session() {
    ENSURE(channels_.empty() and opens_.empty(), "a session ends before it goes");
    ENSURE(until_opens_ended_.empty(), "a waiter holds the session");
}

bool session::make_valid(std::optional<auth::nt_hash> proof) noexcept {
    const session_section held(mutex_);
    if (state() == phase::gone) return false;
    proof_ = std::move(proof);
    ++lifetimes_;  // the timer of an earlier lifetime is outdated
    // release: the members set before; pairs with state().
    phase_.store(phase::valid, std::memory_order_release);
    return true;
}

bool session::expire(std::uint32_t number) noexcept {
    const session_section held(mutex_);
    if (state() != phase::valid or lifetimes_ != number) return false;
    lifetime_.reset();
    phase_.store(phase::expired, std::memory_order_release);
    ENSURE(not lifetime_, "the timer of an expired session has begun");
    return true;
}

std::uint32_t session::next_lifetime() const noexcept {
    const session_section held(mutex_);
    return lifetimes_ + 1;
}

std::optional<timer_queue::entry> session::set_lifetime(std::uint32_t number,
                                                        const timer_queue::entry& fresh) noexcept {
    const session_section held(mutex_);
    if (state() == phase::gone or number != lifetimes_ + 1) return fresh;
    lifetimes_ = number;
    ENSURE(state() == phase::valid or state() == phase::expired,
           "a session that has authenticated has a lifetime");
    return std::exchange(lifetime_, fresh);
}

bool session::has_proof() const noexcept {
    const session_section held(mutex_);
    return proof_.has_value();
}

bool session::has_proof_of(const auth::nt_hash& now) const noexcept {
    const session_section held(mutex_);
    return proof_ and auth::equal_in_constant_time(now.view(), proof_->view());
}

bool session::is_any_established() const noexcept {
    return std::ranges::any_of(channels_, [](const auto& one) { return one->is_established(); });
}

session::ended_objects session::end_all() noexcept {
    ENSURE(state() != phase::gone, "a session ends once");
    phase_.store(phase::gone, std::memory_order_release);
    ended_objects left;
    left.channels = std::exchange(channels_, {});
    for (const std::shared_ptr<channel>& one : left.channels)
        one->end();
    for (const auto& [number, one] : trees_)
        left.trees.push_back(one);
    trees_.clear();
    for (const auto& [number, one] : opens_)
        left.opens.push_back(one.one);
    opens_.clear();
    left.lifetime = std::exchange(lifetime_, std::nullopt);
    ENSURE(channels_.empty() and trees_.empty() and opens_.empty(),
           "nothing is left of a session that is gone");
    return left;
}

void session::signal_opens_ended() noexcept {
    event_wakes<wire::nt_status> woken;
    const session_section held(mutex_);
    ENSURE(state() == phase::gone and not have_opens_ended_, "the opens of a session end once, after it");
    have_opens_ended_ = true;
    until_opens_ended_.wake_all(woken);
}

bool session::have_opens_ended(waiter& blocked) noexcept {
    const session_section held(mutex_);
    ENSURE(state() == phase::gone, "a session ends before its opens");
    if (not have_opens_ended_) until_opens_ended_.add(blocked);
    return have_opens_ended_;
}

void session::forget(waiter& one) noexcept {
    const session_section held(mutex_);
    one.leave();
}

void session::take_out(channel& ending) noexcept {
    ENSURE(std::erase_if(channels_, [&](const auto& one) { return one.get() == &ending; }) == 1,
           "a channel that has not ended is in the list of its session");
    ending.end();
}

bool session::add(const std::shared_ptr<channel>& fresh, std::shared_ptr<channel>& evicted) {
    ENSURE(fresh->session.get() == this and not fresh->is_established(),
           "a channel is added to its own session, before its client has authenticated on it");
    const session_section held(mutex_);
    if (state() == phase::gone) return false;
    if (channels_.size() >= limits::channels_per_session_max) {
        // A copy of a request that binds the session begins a channel, but never establishes one.
        const auto oldest =
            std::ranges::find_if(channels_, [](const auto& one) { return not one->is_established(); });
        if (oldest == channels_.end()) return false;
        evicted = *oldest;
        take_out(*evicted);
    }
    channels_.push_back(fresh);
    ENSURE(channels_.size() <= limits::channels_per_session_max,
           "a session has no more channels than the bound");
    return true;
}

bool session::establish(channel& of) noexcept {
    const session_section held(mutex_);
    ENSURE(of.session.get() == this, "a channel is established in its own session");
    if (state() == phase::gone or of.has_ended()) return false;
    of.set_established(true);
    return true;
}

std::shared_ptr<channel> session::first_channel() const noexcept {
    const session_section held(mutex_);
    const auto found = std::ranges::find_if(channels_, [](const auto& one) { return one->is_established(); });
    ENSURE(found == channels_.end() or (*found)->session.get() == this,
           "a channel in the list of a session is one of it");
    return found == channels_.end() ? nullptr : *found;
}

std::vector<std::shared_ptr<channel>> session::channels() const {
    const session_section held(mutex_);
    return channels_;
}

result<void> session::make_ciphers(channel& of, secret_random_source& random) noexcept {
    ENSURE(of.session.get() == this, "a channel gets the keys of its own session");
    ENSURE(encryption_key.has_value() == decryption_key.has_value(),
           "a session has both encryption keys or none");
    if (not encryption_key) return {};
    const session_section held(mutex_);  // the key counts its sealers
    return of.make_ciphers(*encryption_key, *decryption_key, random);
}

void session::begin_binding_ids(std::uint64_t first_signed) noexcept {
    ENSURE(signing_key.has_value(), "message ids are those that a key signs");
    const session_section held(mutex_);
    binding_ids_ = auth::used_message_ids({.first = 0, .end = first_signed});
}

bool session::claim_binding_id(std::uint64_t number) noexcept {
    ENSURE(signing_key.has_value(), "message ids are those that a key signs");
    const session_section held(mutex_);
    return binding_ids_.claim(number, 1) == auth::used_message_ids::claim_result::fresh;
}

bool session::add(const std::shared_ptr<tree>& fresh) {
    ENSURE(fresh->id == 0, "a tree gets its number from its session");
    const session_section held(mutex_);
    if (state() == phase::gone or trees_.size() >= limits::trees_per_session_max) return false;
    fresh->id = next_tree_id_++;
    trees_.emplace(fresh->id, fresh);
    return true;
}

std::shared_ptr<tree> session::find_tree(std::uint32_t number) const noexcept {
    const session_section held(mutex_);
    const auto found = trees_.find(number);
    ENSURE(found == trees_.end() or found->second->id == number, "a tree has the number it is found by");
    return found == trees_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<tree>> session::trees() const {
    const session_section held(mutex_);
    std::vector<std::shared_ptr<tree>> all;
    for (const auto& [number, one] : trees_)
        all.push_back(one);
    return all;
}

std::vector<session::tree_use> session::tree_uses() const {
    const session_section held(mutex_);
    std::map<std::uint32_t, std::size_t> opens;
    for (const auto& [number, one] : opens_)
        ++opens[one.tree_id];
    std::vector<tree_use> all;
    for (const auto& [number, one] : trees_)
        all.push_back({.of = one, .opens = opens[number]});
    return all;
}

std::optional<std::vector<std::shared_ptr<open>>> session::end_tree(const tree& ending) {
    std::shared_ptr<tree> ended;  // perhaps the last to hold it: released without the mutex
    const session_section held(mutex_);
    const auto found = trees_.find(ending.id);
    if (found == trees_.end() or found->second.get() != &ending) return std::nullopt;
    ended = std::move(found->second);
    trees_.erase(found);
    ENSURE(ended->id == ending.id, "a tree has the number it is found by");
    std::vector<std::shared_ptr<open>> its_own;
    for (const auto& [number, one] : opens_)
        if (one.tree_id == ending.id) its_own.push_back(one.one);
    return its_own;
}

void session::remove(std::uint64_t number) noexcept {
    std::shared_ptr<open> removed;  // perhaps the last to hold it: released without the mutex
    const session_section held(mutex_);
    const auto found = opens_.find(number);
    if (found == opens_.end()) return;
    removed = std::move(found->second.one);
    opens_.erase(found);
}

session::counts session::in_use() const noexcept {
    const session_section held(mutex_);
    return {.channels = channels_.size(), .trees = trees_.size(), .opens = opens_.size()};
}

}  // namespace sluice::smb::server
