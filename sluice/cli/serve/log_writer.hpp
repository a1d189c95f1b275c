#pragma once

#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::cli {

/// Writes the events of the server to standard error: text for people on a terminal, logfmt
/// otherwise.
/// Thread safety: any thread.
class log_writer final : public smb::server::event_log {
public:
    enum class format : unsigned char { human_readable, logfmt };

    explicit log_writer(smb::server::event_severity least) noexcept;
    void write(smb::server::event_severity severity, std::string_view what,
               std::initializer_list<smb::server::event_field> fields) noexcept override;

private:
    format format_;
    smb::server::event_severity least_;
};

}  // namespace sluice::cli
