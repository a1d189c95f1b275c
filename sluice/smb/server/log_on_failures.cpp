#include "sluice/smb/server/log_on_failures.hpp"

#include <algorithm>

#include "sluice/smb/server/limits.hpp"

namespace sluice::smb::server {

std::chrono::milliseconds log_on_failures::failed(const std::string& address) {
    if (not entries_.contains(address)) make_room();
    entry& known = entries_[address];
    const auto now = clock_.steady_now();
    if (now - known.latest > forgiven_after) known.failures = 0;
    known.latest = now;
    ++known.failures;
    if (known.failures <= limits::log_on_failures_free) return std::chrono::milliseconds(0);
    const unsigned doublings = std::min(known.failures - limits::log_on_failures_free, 16U);
    return std::min(limits::log_on_delay_max, std::chrono::milliseconds(50) * (1U << doublings));
}

void log_on_failures::make_room() {
    if (entries_.size() < addresses_max) return;
    const auto oldest =
        std::ranges::min_element(entries_, {}, [](const auto& one) { return one.second.latest; });
    entries_.erase(oldest);
}

}  // namespace sluice::smb::server
