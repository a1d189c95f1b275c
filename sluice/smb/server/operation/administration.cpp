#include "sluice/smb/server/operation/administration.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "sluice/base/ensure.hpp"
#include "sluice/base/held_mutexes.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/server/operation/session_life.hpp"
#include "sluice/smb/wire/fsctl/fsctl_snapshots.hpp"

namespace sluice::smb::server {

std::string address_of(const channel& way) {
    std::string_view address = way.connection->address();
    if (address.starts_with('[') and address.ends_with(']')) address = address.substr(1, address.size() - 2);
    return std::string(address);
}

std::string client_address_of(const session& one) {
    const std::shared_ptr<channel> first = one.first_channel();
    return first == nullptr ? std::string() : address_of(*first);
}

std::string drive_path_of(const open& one) {
    ENSURE(one.node != nullptr and one.through != nullptr, "a file is open through a share");
    held_mutexes::ensure_none();
    std::string path = "C:\\" + one.through->configuration().name + '\\';
    if (one.is_past()) path += wire::gmt_token_of(*one.past->past_time) + '\\';
    path += one.node->path();
    if (const std::string stream = one.node->stream_name(); not stream.empty()) path += ':' + stream;
    std::ranges::replace(path, '/', '\\');
    return path;
}

std::string owner_of(const open& one) {
    if (const std::shared_ptr<session> of = one.session()) return of->user.name;
    const std::optional<durability> kept = one.durable();
    return kept ? kept->owner : std::string();
}

ended_session end_session_by(server_context& host, session& ending, std::string_view by) noexcept {
    const std::string client = client_address_of(ending);
    ended_session done{.opens = ending.in_use().opens};
    done.has_ended = end_session(host, ending, false);
    host.log().write(event_severity::warning, "session ended by administrator",
                     {{"by", by},
                      {"user", ending.user.name},
                      {"client", client},
                      {"session", std::to_string(ending.id)},
                      {"result", done.has_ended ? "ended" : "had ended before"}});
    return done;
}

wire::nt_status close_file_by(server_context& host, open& ending, std::string_view by) noexcept {
    ENSURE(not ending.is_pipe(), "a pipe has no file");
    const std::string user = owner_of(ending);
    const std::string path = drive_path_of(ending);
    const wire::nt_status status = end_open(host, ending);
    host.log().write(event_severity::warning, "file closed by administrator",
                     {{"by", by}, {"user", user}, {"path", path}, {"result", wire::name_of(status)}});
    return status;
}

}  // namespace sluice::smb::server
