#include "sluice/smb/server/session/client_quotas.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

bool quota_hold::resize(std::size_t amount) noexcept {
    if (amount == amount_) return true;
    if (not by_) return false;
    client_reference::use& use = *by_.use_;
    if (amount > amount_) {
        if (not use.of->try_take(use, what_, amount - amount_)) return false;
    } else {
        use.of->release(use, what_, amount_ - amount);
    }
    amount_ = amount;
    return true;
}

void quota_hold::reset() noexcept {
    if (amount_ != 0) by_.use_->of->release(*by_.use_, what_, std::exchange(amount_, 0));
    by_ = {};
}

client_quotas::client_quotas(const shared_bounds& of_all, limit_rejections& rejections) noexcept
    : bounds_(of_all), rejections_(rejections) {}

client_quotas::~client_quotas() {
    ENSURE(clients_.empty(), "the quotas outlive what is held of them");
}

client_reference client_quotas::enter(std::string name) {
    const auto [found, is_new] = clients_.try_emplace(std::move(name));
    if (is_new) {
        found->second.of = this;
        found->second.name = &found->first;
    }
    return client_reference(found->second);
}

client_reference client_quotas::user(std::string_view name) {
    return enter("user " + fold(name));
}

client_reference client_quotas::guest(const client_address& where) {
    client_reference entered = enter("guest " + where.text());
    if (not entered.use_->group) entered.use_->group = enter("guests");
    return entered;
}

quota_hold client_quotas::take(const client_reference& by, limit what, std::size_t amount) noexcept {
    quota_hold hold;
    if (not by or not try_take(*by.use_, what, amount)) return hold;
    hold.by_ = by;
    hold.what_ = what;
    hold.amount_ = amount;
    return hold;
}

bool client_quotas::try_take(client_reference::use& by, limit what, std::size_t amount) noexcept {
    if (amount == 0) return true;  // nothing is taken, however little is free
    const std::size_t i = index(what);
    const std::size_t free = bounds_[i] - in_use_[i];
    client_reference::use* const group = by.group.use_;
    // The members divide the rest of the share of their group.
    const std::size_t of_group = group != nullptr ? group->held[i] : 0;
    const std::size_t room = free - std::min(free, of_group);
    if (amount > room or by.held[i] > room - amount) {
        rejections_.add(what, *by.name);
        return false;
    }
    by.held[i] += amount;
    if (group != nullptr) group->held[i] += amount;
    in_use_[i] += amount;
    return true;
}

void client_quotas::release(client_reference::use& by, limit what, std::size_t amount) noexcept {
    const std::size_t i = index(what);
    ENSURE(by.held[i] >= amount and in_use_[i] >= amount, "no more is released than was taken");
    by.held[i] -= amount;
    if (by.group) by.group.use_->held[i] -= amount;
    in_use_[i] -= amount;
}

void client_quotas::leave(client_reference::use& of) noexcept {
    // After the entry is gone: the group may leave by it.
    const client_reference group = std::move(of.group);
    const auto found = clients_.find(*of.name);
    ENSURE(found != clients_.end() and &found->second == &of);
    clients_.erase(found);
}

std::size_t client_quotas::most_of_client(limit what) const noexcept {
    std::size_t most = 0;
    for (const auto& [name, use] : clients_)
        most = std::max(most, use.held[index(what)]);
    return most;
}

}  // namespace sluice::smb::server
