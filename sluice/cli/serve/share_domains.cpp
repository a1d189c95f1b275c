#include "sluice/cli/serve/share_domains.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::cli {

void share_domains::add(const std::string& share, vfs::volume& of) {
    const lock_guard guard(mutex_);
    // A reload opens shares again; they may be elsewhere now.
    std::erase_if(members_, [&](const member& each) { return each.share == share; });
    members_.push_back({.share = share, .domain = of.domain().number()});
    if (vfs::fs_domain* const beneath = of.crossing_domain())
        members_.push_back({.share = share, .domain = beneath->number()});
}

void share_domains::add(const std::string& share, vfs::snapshots& of) {
    const lock_guard guard(mutex_);
    const std::uint32_t domain = of.domain().number();
    ENSURE(domain != 0, "a domain has a number");
    std::erase_if(members_,
                  [&](const member& each) { return each.share == share and each.domain == domain; });
    members_.push_back({.share = share, .domain = domain});
}

std::vector<share_domains::stuck_domain> share_domains::stuck() const {
    std::vector<stuck_domain> found;
    for (const std::shared_ptr<vfs::fs_domain>& domain : table_.all()) {
        const io::call_statistics calls = domain->statistics();
        if (calls.running == 0) continue;
        stuck_domain one{.shares = {},
                         .where = domain->name(),
                         .calls = calls.running,
                         .age = std::chrono::duration_cast<std::chrono::seconds>(calls.oldest_age)};
        const lock_guard guard(mutex_);
        for (const member& each : members_) {
            if (each.domain != domain->number()) continue;
            if (not one.shares.empty()) one.shares += ", ";
            one.shares += each.share;
        }
        found.push_back(std::move(one));
    }
    return found;
}

bool share_domains::are_busy() const {
    return std::ranges::any_of(table_.all(), [](const std::shared_ptr<vfs::fs_domain>& each) {
        const io::call_statistics calls = each->statistics();
        return calls.running != 0 or calls.queued != 0;
    });
}

}  // namespace sluice::cli
