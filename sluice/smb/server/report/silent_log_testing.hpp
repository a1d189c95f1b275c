#pragma once

#include <initializer_list>
#include <string_view>

#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::smb::server {

/// A log that keeps nothing. Thread safety: any thread.
class silent_log final : public event_log {
public:
    void write(event_severity, std::string_view, std::initializer_list<event_field>) noexcept override {}
};

}  // namespace sluice::smb::server
