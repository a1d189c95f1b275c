#include "sluice/smb/server/operation/recycle_report.hpp"

#include <memory>
#include <string>
#include <string_view>

#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

void report_recycle_problem(server_context& host, vfs::volume& of) noexcept {
    const std::string why = of.take_recycle_problem();
    if (why.empty()) return;
    const share_list::snapshot shares = host.shares.current();
    std::string_view name;
    for (const std::shared_ptr<share>& one : *shares)
        if (name.empty() and one->has_volume() and &one->volume() == &of) name = one->configuration().name;
    host.log().write(event_severity::warning, "cannot use the recycle bin", {{"share", name}, {"why", why}});
}

}  // namespace sluice::smb::server
