#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::smb::server {

/// A refusal: enough facts to understand it, and the change that would avoid it.
struct refusal {
    std::string_view user;
    std::string_view share;
    std::string_view path;
    std::string_view rule;    // that refused it
    std::string_view remedy;  // the change that would allow it
};

/// Explains refusals to the administrator, once each. The same user, file and rule are not
/// explained again within `repeated_after`, and an interval has no more than
/// `explained_per_interval_max` explanations, so that a client that tries every file cannot fill
/// the log. The last one of an interval says that there are more.
/// Monitor: any thread that holds no mutex; `mutex_` guards the memory of refusals, and lines are
/// written without it. Allocates: an entry per refusal that is remembered.
class refusal_log {
public:
    refusal_log(event_log& log, clock_source& clock) noexcept : log_(log), clock_(clock) {}

    void explain(const refusal& why);

    static constexpr std::chrono::minutes repeated_after{10};
    static constexpr std::chrono::seconds interval{60};
    static constexpr std::size_t explained_per_interval_max = 30;
    static constexpr std::size_t remembered_max = 1024;

private:
    enum class decision : std::uint8_t { silent, written, last_of_interval };
    [[nodiscard]] decision decide(std::string key);
    [[nodiscard]] bool is_new(std::string&& key, clock_source::steady_time now) SLUICE_REQUIRES(mutex_);

    event_log& log_;
    clock_source& clock_;
    ranked_mutex<lock_rank::leaf> mutex_;
    std::unordered_map<std::string, clock_source::steady_time> explained_ SLUICE_GUARDED_BY(mutex_);
    clock_source::steady_time interval_began_ SLUICE_GUARDED_BY(mutex_){};
    std::size_t explained_in_interval_ SLUICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::smb::server
