// Sessions and opens of the server, for its pipes.

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/server/operation/rpc_server_host.hpp"
#include "sluice/smb/server/operation/session_life.hpp"

namespace sluice::smb::server {

namespace {

struct client_text {
    std::string address;
    std::string dialect;
};
using clients = std::unordered_map<const connection_handle*, client_text>;

// Returns the address of "10.0.0.1:5000" or "[fe80::1]:5000".
[[nodiscard]] std::string address_of(std::string_view peer) {
    peer = peer.substr(0, peer.rfind(':'));
    if (peer.starts_with('[') and peer.ends_with(']')) peer = peer.substr(1, peer.size() - 2);
    return std::string(peer);
}

// In one pass under the mutex of the registry of connections, in which a connection exists.
[[nodiscard]] clients clients_of(const connection_registry& connections) {
    clients all;
    (void)connections.read_each([&](const connection& one) {
        ENSURE(one.admitted.handle != nullptr, "a connection has its handle before others find it");
        channel_status status = one.status();
        all[one.admitted.handle.get()] = {.address = address_of(status.peer),
                                          .dialect = std::move(status.dialect)};
    });
    return all;
}

[[nodiscard]] client_text client_of(const session& one, const clients& all) {
    for (const std::shared_ptr<channel>& way : one.channels())
        if (const auto found = all.find(way->connection.get()); found != all.end()) return found->second;
    return {};
}

// Returns whether its user is known, and does not change any more.
[[nodiscard]] bool is_established(const session& one) noexcept {
    const session::phase now = one.state();
    return now == session::phase::valid or now == session::phase::expired;
}

[[nodiscard]] std::uint32_t seconds_between(clock_source::utc_time from, clock_source::utc_time to) noexcept {
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(passed, 0, UINT32_MAX));
}

[[nodiscard]] std::uint32_t permissions_of(wire::access_mask access) noexcept {
    using wire::access_mask;
    std::uint32_t granted = 0;
    if (wire::has(access, access_mask::read_data)) granted |= wire::rpc_file::may_read;
    if (wire::has_any(access, access_mask::write_data | access_mask::append_data))
        granted |= wire::rpc_file::may_write | wire::rpc_file::may_create;
    return granted;
}

[[nodiscard]] std::uint32_t locks_of(const open& one) noexcept {
    ENSURE(one.file != nullptr, "an open has locks of a file");
    const file_section held(*one.file);
    return static_cast<std::uint32_t>(one.file->locks(held).held_by(one));
}

// Returns the path with the share as a directory of a drive, as for the path of the share itself.
[[nodiscard]] std::string path_of(const open& one) {
    ENSURE(one.node != nullptr and one.through != nullptr, "a file is open through a share");
    std::string path = "C:\\" + one.through->configuration().name + '\\' + one.node->path();
    if (const std::string stream = one.node->stream_name(); not stream.empty()) path += ':' + stream;
    std::ranges::replace(path, '/', '\\');
    return path;
}

[[nodiscard]] std::string user_of(const open& one) {
    if (const std::shared_ptr<session> of = one.session()) return of->user.name;
    const std::optional<durability> kept = one.durable();
    return kept ? kept->owner : std::string();
}

}  // namespace

// Others see their own sessions.
bool rpc_server_host::may_see(const session& one) const {
    if (not is_established(one)) return false;
    if (host_.administrators.contain(user_)) return true;
    return one.user.is_guest == user_.is_guest and one.user.is_anonymous == user_.is_anonymous and
           equal_ignoring_case(std::string_view(one.user.name), std::string_view(user_.name));
}

std::vector<wire::rpc_session> rpc_server_host::sessions() {
    const clients from = clients_of(host_.connections);
    const clock_source::utc_time now = host_.clock().utc_now();
    std::vector<wire::rpc_session> listed;
    for (const std::shared_ptr<session>& one : host_.sessions.all()) {
        if (not may_see(*one)) continue;
        client_text client = client_of(*one, from);
        listed.push_back({.id = static_cast<std::uint32_t>(one->id),
                          .client = std::move(client.address),
                          .user = one->user.name,
                          .client_type = "SMB " + client.dialect,
                          .opens = static_cast<std::uint32_t>(one->in_use().opens),
                          .seconds = seconds_between(one->since, now),
                          .is_guest = one->user.is_guest or one->user.is_anonymous,
                          .is_encrypted = one->requires_encryption});
    }
    std::ranges::sort(listed, {}, &wire::rpc_session::id);
    return listed;
}

std::vector<wire::rpc_tree> rpc_server_host::trees() {
    const clients from = clients_of(host_.connections);
    const clock_source::utc_time now = host_.clock().utc_now();
    std::vector<std::shared_ptr<session>> all = host_.sessions.all();
    std::ranges::sort(all, {}, [](const std::shared_ptr<session>& one) { return one->id; });
    std::vector<wire::rpc_tree> listed;
    for (const std::shared_ptr<session>& one : all) {
        if (not may_see(*one)) continue;
        const client_text client = client_of(*one, from);
        for (const session::tree_use& use : one->tree_uses()) {
            const share& target = *use.of->target;
            listed.push_back({.id = static_cast<std::uint32_t>(listed.size() + 1),
                              .type = target.is_pipes() ? wire::rpc_share::ipc : wire::rpc_share::disk_tree,
                              .opens = static_cast<std::uint32_t>(use.opens),
                              .seconds = seconds_between(one->since, now),
                              .client = client.address,
                              .user = one->user.name,
                              .share = target.configuration().name});
        }
    }
    return listed;
}

std::size_t rpc_server_host::end_sessions(std::string_view client, std::string_view user) {
    ENSURE(not client.empty() or not user.empty(), "a call that ends sessions names some of them");
    const clients from = client.empty() ? clients() : clients_of(host_.connections);
    std::size_t ended = 0;
    for (std::shared_ptr<session>& one : host_.sessions.all()) {
        if (not is_established(*one)) continue;
        if (not user.empty() and not equal_ignoring_case(std::string_view(one->user.name), user)) continue;
        if (not client.empty() and not equal_ignoring_case(client_of(*one, from).address, client)) continue;
        // Not kept as durable: the client would have the opens back at once.
        work_.emplace_back(
            [&host = host_, ending = std::move(one)]() noexcept { end_session(host, *ending, false); });
        ++ended;
    }
    if (ended != 0) {
        // Without the mutex, as all events.
        work_.emplace_back([&host = host_, by = user_.name, ended]() noexcept {
            host.log().write(event_severity::warning, "an administrator ended sessions",
                             {{"by", by}, {"sessions", std::to_string(ended)}});
        });
    }
    return ended;
}

std::vector<std::uint32_t> rpc_server_host::file_ids() {
    numbers_.clear();
    for (const std::uint64_t number : host_.opens.numbers())
        numbers_.emplace_back(static_cast<std::uint32_t>(number), number);
    std::ranges::sort(numbers_);
    std::vector<std::uint32_t> ids;
    for (const auto& [id, number] : numbers_)
        if (ids.empty() or ids.back() != id) ids.push_back(id);
    ENSURE(ids.size() <= numbers_.size(), "an ID belongs to an open");
    return ids;
}

// A client sees no opens whose numbers end alike: it could not name one of them.
std::shared_ptr<open> rpc_server_host::find_file(std::uint32_t id) {
    auto of = std::ranges::equal_range(numbers_, id, {}, &numbered::first);
    if (of.empty()) {
        (void)file_ids();
        of = std::ranges::equal_range(numbers_, id, {}, &numbered::first);
    }
    if (of.size() != 1) return nullptr;
    std::shared_ptr<open> found = host_.opens.find_persistent(of.front().second);
    ENSURE(found == nullptr or static_cast<std::uint32_t>(found->id.persistent_part.value()) == id,
           "an open is found by the end of its number");
    const bool is_shown = found != nullptr and found->is_live() and not found->is_pipe();
    return is_shown ? found : nullptr;
}

std::optional<wire::rpc_file> rpc_server_host::file(std::uint32_t id) {
    const std::shared_ptr<open> one = find_file(id);
    if (one == nullptr) return std::nullopt;
    ENSURE(one->node != nullptr and one->file != nullptr, "every open except that of a pipe has a file");
    return wire::rpc_file{.id = id,
                          .permissions = permissions_of(one->access),
                          .locks = locks_of(*one),
                          .path = path_of(*one),
                          .user = user_of(*one)};
}

bool rpc_server_host::end_file(std::uint32_t id) {
    std::shared_ptr<open> one = find_file(id);
    if (one == nullptr) return false;
    work_.emplace_back([&host = host_, by = user_.name, ending = std::move(one)]() noexcept {
        (void)end_open(host, *ending);
        host.log().write(event_severity::warning, "an administrator closed an open", {{"by", by}});
    });
    return true;
}

}  // namespace sluice::smb::server
