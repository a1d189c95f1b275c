#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace sluice::smb::server {

enum class event_severity : std::uint8_t { detail, info, warning, error };

/// A fact that belongs to an event: who, which file, why.
struct event_field {
    std::string_view name;
    std::string_view value;
};

/// A destination for the server's events. `what` names the event; the fields give its facts.
/// Thread safety: any thread of the server.
class event_log {
public:
    virtual void write(event_severity severity, std::string_view what,
                       std::initializer_list<event_field> fields) noexcept = 0;

    event_log(const event_log&) = delete;
    event_log& operator=(const event_log&) = delete;

protected:
    event_log() noexcept = default;
    ~event_log() = default;
};

}  // namespace sluice::smb::server
