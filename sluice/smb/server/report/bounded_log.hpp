#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "sluice/base/clock.hpp"
#include "sluice/base/mutex.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::smb::server {

/// A log that writes to another, at most `lines_of_peer_max` lines of each event and peer (the
/// field `peer`, without the port) per `interval`, and `lines_max` of each event, so that a client
/// that repeats an event can neither fill the disk nor hide the events of others. Lines beyond are
/// counted; the next line of that event in a later interval comes with their number. Events of the
/// severity `detail` pass: they are written on request only.
///
/// Monitor: any thread that holds no mutex of the server (ENSURE in checked builds); `mutex_`
/// guards the counts, and lines are written without it. Allocates: an entry for each event, and for
/// each event and peer of an interval.
class bounded_log final : public event_log {
public:
    bounded_log(event_log& to, const clock_source& clock) noexcept : to_(to), clock_(clock) {}

    void write(event_severity severity, std::string_view what,
               std::initializer_list<event_field> fields) noexcept override;

    static constexpr std::chrono::seconds interval{60};
    static constexpr std::uint32_t lines_of_peer_max = 30;
    static constexpr std::uint32_t lines_max = 600;
    static constexpr std::size_t entries_max = 4096;

private:
    struct entry {
        clock_source::steady_time began{};
        std::uint32_t lines = 0;
        std::uint64_t suppressed = 0;
    };

    struct decision {
        bool is_written = true;
        bool is_last = false;                 // of this interval
        std::uint64_t suppressed_before = 0;  // in earlier intervals
    };
    [[nodiscard]] decision decide(std::string_view what, std::string_view peer) noexcept;
    [[nodiscard]] decision decide(const std::string& key, std::uint32_t lines_at_most)
        SLUICE_REQUIRES(mutex_);

    event_log& to_;
    const clock_source& clock_;
    mutex mutex_;
    std::unordered_map<std::string, entry> events_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server
