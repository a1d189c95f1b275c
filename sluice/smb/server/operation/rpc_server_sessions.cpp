// Sessions and opens of the server, for its pipes.

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/administration.hpp"
#include "sluice/smb/server/operation/rpc_server_host.hpp"

namespace sluice::smb::server {

namespace {

[[nodiscard]] bool comes_from(const session& one, std::string_view client) {
    return std::ranges::any_of(one.channels(), [&](const std::shared_ptr<channel>& way) {
        return equal_ignoring_case(std::string_view(address_of(*way)), client);
    });
}

// Returns the position of a session in a list: the last 32 bits of its ID. A list does not show one
// with a position of 0, after which it could not continue.
[[nodiscard]] std::uint32_t position_of(const session& one) noexcept {
    return static_cast<std::uint32_t>(one.id);
}

// Returns a position after which a list continues with the sessions after one, and perhaps with
// that one again.
[[nodiscard]] std::uint32_t end_at(const session& last) noexcept {
    const std::uint32_t position = position_of(last);
    return position != 0 ? position : UINT32_MAX;
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

}  // namespace

// IDs are given in order, and begin below 2^31: so this is the position itself for a long time.
std::uint64_t rpc_server_host::id_at(std::uint32_t position) const noexcept {
    if (position == 0) return 0;
    const std::uint64_t last = host_.sessions.last_id();
    const std::uint64_t distance = static_cast<std::uint32_t>(last) - position;
    return distance > last ? position : last - distance;
}

// Others see their own sessions.
wire::rpc_part<wire::rpc_session> rpc_server_host::sessions(std::uint32_t after) {
    const bool sees_all = is_administrator();
    const clock_source::utc_time now = host_.clock().utc_now();
    // Ordinary users get their own sessions in one part, whatever others have.
    auto examined = sees_all ? host_.sessions.after(id_at(after), wire::rpc_examined_max + 1)
                             : own_sessions_after(id_at(after));
    wire::rpc_part<wire::rpc_session> part;
    part.has_more = examined.size() > wire::rpc_examined_max;
    if (part.has_more) examined.resize(wire::rpc_examined_max);
    for (const std::shared_ptr<session>& one : examined) {
        const bool is_shown = is_established(*one) and position_of(*one) != 0;
        if (not is_shown) continue;
        part.entries.push_back({.id = position_of(*one),
                                .client = client_address_of(*one),
                                .user = one->user.name,
                                .client_type = "SMB " + std::string(one->agreed.dialect_name()),
                                .opens = static_cast<std::uint32_t>(one->in_use().opens),
                                .seconds = seconds_between(one->since, now),
                                .is_guest = one->user.is_guest or one->user.is_anonymous,
                                .is_encrypted = one->requires_encryption});
    }
    ENSURE(part.entries.size() <= examined.size(), "a session that is listed was examined");
    if (part.has_more) part.last = end_at(*examined.back());
    return part;
}

std::vector<std::shared_ptr<session>> rpc_server_host::own_sessions_after(std::uint64_t id) const {
    std::vector<std::shared_ptr<session>> own = host_.sessions.all();
    std::erase_if(own, [&](const std::shared_ptr<session>& one) {
        return one->id <= id or not is_same_account(host_.accounts(), one->user, user_);
    });
    std::ranges::sort(own, {}, [](const std::shared_ptr<session>& one) { return one->id; });
    return own;
}

wire::rpc_part<wire::rpc_tree> rpc_server_host::trees(std::uint32_t after) {
    const clock_source::utc_time now = host_.clock().utc_now();
    wire::rpc_part<wire::rpc_tree> part;
    std::size_t examined = 0;
    for (const std::shared_ptr<session>& one : host_.sessions.after(id_at(after), wire::rpc_examined_max)) {
        ++examined;
        part.last = end_at(*one);
        if (is_established(*one) and position_of(*one) != 0) {
            const std::string client = client_address_of(*one);
            for (const session::tree_use& use : one->tree_uses()) {
                examined += 1 + use.opens;
                const share& target = *use.of->target;
                part.entries.push_back(
                    {.id = use.of->id,
                     .session = position_of(*one),
                     .type = target.is_pipes() ? wire::rpc_share::ipc : wire::rpc_share::disk_tree,
                     .opens = static_cast<std::uint32_t>(use.opens),
                     .seconds = seconds_between(one->since, now),
                     .client = client,
                     .user = one->user.name,
                     .share = target.configuration().name});
            }
        }
        part.has_more = examined >= wire::rpc_examined_max;
        if (part.has_more) break;
    }
    ENSURE(part.entries.size() <= examined, "a tree connection that is listed was examined");
    return part;
}

std::vector<wire::rpc_logged_on> rpc_server_host::logged_on(std::uint32_t after) {
    const std::uint64_t id = id_at(after);
    std::unordered_set<std::string> known;
    std::vector<wire::rpc_logged_on> listed;
    for (const std::shared_ptr<session>& one : host_.sessions.all()) {
        const bool is_shown = is_established(*one) and position_of(*one) != 0;
        if (not is_shown or not known.insert(fold(one->user.name)).second) continue;
        if (one->id > id) listed.push_back({.id = position_of(*one), .user = one->user.name});
    }
    ENSURE(listed.size() <= known.size(), "a user is listed once");
    return listed;
}

std::size_t rpc_server_host::end_sessions(std::string_view client, std::string_view user) {
    ENSURE(not client.empty() or not user.empty(), "a call that ends sessions names some of them");
    std::size_t found = 0;
    pipe_work end_of_own;  // comes last, so that the session lives until the work is done
    for (std::shared_ptr<session>& one : host_.sessions.all()) {
        if (not is_established(*one)) continue;
        if (not user.empty() and not is_same_user(one->user.name, user)) continue;
        if (not client.empty() and not comes_from(*one, client)) continue;
        ++found;
        // Each session is queued once, however often calls name it.
        if (not one->claim_end()) continue;
        const bool is_own = one->id == session_id_;
        pipe_work end = end_of(std::move(one));
        if (is_own)
            end_of_own = std::move(end);
        else
            work_.push_back(std::move(end));
    }
    if (end_of_own) work_.push_back(std::move(end_of_own));
    ENSURE(work_.size() <= found, "a session that ends was found");
    return found;
}

pipe_work rpc_server_host::end_of(std::shared_ptr<session> ending) const {
    return [&host = host_, by = user_.name, ending = std::move(ending)]() noexcept {
        return 1 + end_session_by(host, *ending, by).opens;
    };
}

wire::rpc_part<std::uint32_t> rpc_server_host::file_ids(std::uint32_t after) {
    wire::rpc_part<std::uint32_t> part{.entries = host_.opens.ends_after(after, wire::rpc_examined_max + 1)};
    part.has_more = part.entries.size() > wire::rpc_examined_max;
    if (part.has_more) {
        part.entries.pop_back();
        part.last = part.entries.back();
    }
    return part;
}

// A client sees no opens whose numbers end alike: it could not name one of them.
std::shared_ptr<open> rpc_server_host::find_file(std::uint32_t id) const {
    std::shared_ptr<open> found = host_.opens.find_by_end(id);
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
                          .user = owner_of(*one)};
}

std::optional<std::string> rpc_server_host::path_of_file(std::uint32_t id) {
    const std::shared_ptr<open> one = find_file(id);
    if (one == nullptr) return std::nullopt;
    return drive_path_of(*one);
}

bool rpc_server_host::end_file(std::uint32_t id) {
    std::shared_ptr<open> one = find_file(id);
    if (one == nullptr) return false;
    work_.emplace_back([&host = host_, by = user_.name, ending = std::move(one)]() noexcept {
        (void)close_file_by(host, *ending, by);
        return std::size_t{1};
    });
    return true;
}

}  // namespace sluice::smb::server
