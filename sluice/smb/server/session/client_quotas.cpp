#include "sluice/smb/server/session/client_quotas.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

bool quota_hold::resize(std::size_t amount) noexcept {
    if (try_resize(amount)) return true;
    if (by_) by_.use_->of->rejections_.add(what_, *by_.use_->name);
    return false;
}

bool quota_hold::try_resize(std::size_t amount) noexcept {
    if (amount == amount_) return true;
    if (not by_) return false;
    client_reference::use& use = *by_.use_;
    if (amount > amount_) {
        if (not use.of->take_room(use, what_, amount - amount_)) return false;
    } else {
        use.of->release(use, what_, amount_ - amount);
    }
    amount_ = amount;
    return true;
}

void quota_hold::absorb(quota_hold&& other) noexcept {
    if (other.amount_ == 0) return;
    ENSURE(by_ == other.by_ and what_ == other.what_, "holds of one client and resource are joined");
    amount_ += std::exchange(other.amount_, 0);
}

quota_hold quota_hold::take_all() noexcept {
    quota_hold all;
    all.by_ = by_;
    all.what_ = what_;
    all.amount_ = std::exchange(amount_, 0);
    return all;
}

void quota_hold::reset() noexcept {
    if (amount_ != 0) by_.use_->of->release(*by_.use_, what_, std::exchange(amount_, 0));
    by_ = {};
}

client_quotas::client_quotas(const shared_bounds& of_all, limit_rejections& rejections) noexcept
    : bounds_(of_all), rejections_(rejections) {}

client_quotas::~client_quotas() {
    const lock_guard held(mutex_);
    ENSURE(clients_.empty(), "the quotas outlive what is held of them");
}

client_reference::use& client_quotas::enter(std::string&& name, bool& is_new) {
    const auto [found, inserted] = clients_.try_emplace(std::move(name));
    client_reference::use& use = found->second;
    is_new = inserted;
    if (inserted) {
        use.of = this;
        use.name = &found->first;
    }
    ENSURE(use.of == this and use.name == &found->first, "an entry knows its table and its name");
    // relaxed: under the mutex, as the end of the last one.
    use.references.fetch_add(1, std::memory_order_relaxed);
    return use;
}

client_reference client_quotas::user(std::string_view name) {
    std::string key = "user " + fold(name);
    const lock_guard held(mutex_);
    bool is_new = false;
    return client_reference(enter(std::move(key), is_new));
}

client_reference client_quotas::guest(const client_address& where) {
    std::string key = "guest " + where.text();
    const lock_guard held(mutex_);
    bool is_new = false;
    client_reference::use& entered = enter(std::move(key), is_new);
    bool is_new_group = false;
    if (is_new) entered.group.use_ = &enter("guests", is_new_group);
    ENSURE(static_cast<bool>(entered.group), "a guest is one of the guests");
    return client_reference(entered);
}

quota_hold client_quotas::take(const client_reference& by, limit what, std::size_t amount) noexcept {
    quota_hold hold;
    if (not by or not try_take(*by.use_, what, amount)) return hold;
    hold.by_ = by;
    hold.what_ = what;
    hold.amount_ = amount;
    return hold;
}

std::size_t client_quotas::room_of(const client_reference::use& by, std::size_t which) const noexcept {
    ENSURE(in_use_[which] <= bounds_[which], "no more is in use of a resource than its bound");
    ENSURE(by.held[which] <= in_use_[which], "the holds of a client are part of the amount in use");
    const std::size_t free = bounds_[which] - in_use_[which];
    if (is_restoring_) return free;
    // The members divide the rest of the share of their group.
    const std::size_t of_group = by.group ? by.group.use_->held[which] : 0;
    const std::size_t room = free - std::min(free, of_group);
    return room - std::min(room, by.held[which]);
}

bool client_quotas::try_take(client_reference::use& by, limit what, std::size_t amount) noexcept {
    if (take_room(by, what, amount)) return true;
    rejections_.add(what, *by.name);
    return false;
}

bool client_quotas::take_room(client_reference::use& by, limit what, std::size_t amount) noexcept {
    if (amount == 0) return true;  // nothing is taken, however little is free
    const std::size_t i = index(what);
    const lock_guard held(mutex_);
    if (amount > room_of(by, i)) return false;
    by.held[i] += amount;
    if (by.group) by.group.use_->held[i] += amount;
    in_use_[i] += amount;
    ENSURE(in_use_[i] <= bounds_[i], "no more is in use of a resource than its bound");
    ENSURE(not by.group or by.held[i] <= by.group.use_->held[i],
           "the holds of a member are part of those of its group");
    return true;
}

void client_quotas::release(client_reference::use& by, limit what, std::size_t amount) noexcept {
    const std::size_t i = index(what);
    const lock_guard held(mutex_);
    ENSURE(by.held[i] >= amount and in_use_[i] >= amount, "no more is released than was taken");
    ENSURE(not by.group or by.group.use_->held[i] >= by.held[i],
           "the holds of a member are part of those of its group");
    by.held[i] -= amount;
    if (by.group) by.group.use_->held[i] -= amount;
    in_use_[i] -= amount;
}

void client_quotas::drop(client_reference::use& of) noexcept {
    // Destroyed without the mutex: the last reference to its group may be in it.
    client_map::node_type ended;
    const lock_guard held(mutex_);
    // acquire: what others did with their references; pairs with the release in
    // ~client_reference().
    if (of.references.fetch_sub(1, std::memory_order_acq_rel) != 1)
        return;  // entered again before the mutex was locked
    ended = clients_.extract(*of.name);
    ENSURE(not ended.empty() and &ended.mapped() == &of, "a client is in the table while it is referred to");
    ENSURE(of.held == decltype(of.held){}, "a client without references holds nothing");
}

std::size_t client_quotas::most_of_client(limit what) const noexcept {
    const std::size_t i = index(what);
    const lock_guard held(mutex_);
    std::size_t most = 0;
    for (const auto& [name, use] : clients_)
        most = std::max(most, use.held[i]);
    return most;
}

}  // namespace sluice::smb::server
