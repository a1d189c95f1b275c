#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/smb/server/report/snapshot.hpp"

namespace sluice::cli {

enum class finding_severity : std::uint8_t { info, warning, error };

/// A fact about a server that its administrator should know.
struct finding {
    finding_severity severity = finding_severity::info;
    std::string what;  // a sentence without a full stop
    std::string hint;  // what to do; may be empty
};

/// A source of findings, for the web page. Thread safety: the first loop's thread calls it.
class findings_source {
public:
    /// Appends the findings of now to the list. It does not block: work that takes long is done
    /// elsewhere, before. Allocates: the list.
    virtual void add_findings(const smb::server::server_snapshot& totals, std::vector<finding>& to) = 0;

    findings_source(const findings_source&) = delete;
    findings_source& operator=(const findings_source&) = delete;

protected:
    findings_source() noexcept = default;
    ~findings_source() = default;
};

/// The findings that the totals of a server contain: event loops that were stuck, and limits that
/// were reached, or of which 80% are in use. Limits whose rejections are not counted, such as
/// credits, are in full use by design.
class totals_findings final : public findings_source {
public:
    void add_findings(const smb::server::server_snapshot& totals, std::vector<finding>& to) override;
};

}  // namespace sluice::cli
