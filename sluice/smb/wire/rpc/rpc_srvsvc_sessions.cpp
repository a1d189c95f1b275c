#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/wire/rpc/rpc_srvsvc_lists.hpp"

// Sessions, opens and tree connections, [MS-SRVS] 3.1.4.1 to 3.1.4.6.

namespace sluice::smb::wire {
namespace {

// Flags of a session, 2.2.2.3.
constexpr std::uint32_t session_of_guest = 1;
constexpr std::uint32_t session_unencrypted = 2;

bool is_session_level(std::uint32_t level) noexcept {
    constexpr std::array<std::uint32_t, 5> levels = {0, 1, 2, 10, 502};
    return std::ranges::find(levels, level) != levels.end();
}

// Return whether a name passes a filter; an empty one lets all pass.
bool passes(std::string_view name, std::string_view filter) {
    return filter.empty() or equal_ignoring_case(name, filter);
}

bool user_passes(const rpc_host& host, std::string_view user, std::string_view filter) {
    return filter.empty() or host.is_same_user(user, filter);
}

// Clients write the name of a computer after two backslashes.
std::string_view computer_of(std::string_view text) noexcept {
    if (text.starts_with("\\\\")) text.remove_prefix(2);
    return text;
}

// Writes the fixed part of a SESSION_INFO structure, 2.2.4.11 to 2.2.4.15.
void put_session(ndr_writer& out, std::uint32_t level, const rpc_session& one) {
    out.pointer(true);
    if (level == 0) return;
    out.pointer(true);
    if (level != 10) out.u32(one.opens);
    out.u32(one.seconds);
    out.u32(0);  // idle, which is not measured
    if (level == 10) return;
    out.u32((one.is_guest ? session_of_guest : 0) | (one.is_encrypted ? 0 : session_unencrypted));
    if (level >= 2) out.pointer(true);
    if (level == 502) out.pointer(true);
}

void put_session_texts(ndr_writer& out, std::uint32_t level, const rpc_session& one) {
    out.text(one.client);
    if (level == 0) return;
    out.text(one.user);
    if (level == 2 or level == 502) out.text(one.client_type);
    if (level == 502) out.text("TCP");
}

// An open, with its path if that is needed.
struct listed_file {
    rpc_file of{};
    std::string path{};
};

// Writes the fixed part of FILE_INFO_2 or FILE_INFO_3, 2.2.4.6 and 2.2.4.7.
void put_file(ndr_writer& out, std::uint32_t level, const listed_file& one) {
    out.u32(one.of.id);
    if (level == 2) return;
    out.u32(one.of.permissions);
    out.u32(one.of.locks);
    out.pointer(true);
    out.pointer(true);
}

void put_file_texts(ndr_writer& out, std::uint32_t level, const listed_file& one) {
    if (level == 2) return;
    out.text(one.path);
    out.text(one.of.user);
}

// Writes the fixed part of CONNECTION_INFO_0 or CONNECTION_INFO_1, 2.2.4.1 and 2.2.4.2.
void put_tree(ndr_writer& out, std::uint32_t level, const rpc_tree& one) {
    out.u32(one.id);
    if (level == 0) return;
    out.u32(one.type);
    out.u32(one.opens);
    out.u32(1);  // users
    out.u32(one.seconds);
    out.pointer(true);
    out.pointer(true);
}

// Whether a path is a directory, or beneath it.
bool is_beneath(std::string_view path, std::string_view directory) {
    if (directory.ends_with('\\')) directory.remove_suffix(1);
    if (directory.size() > path.size()) return false;
    const std::string_view rest = path.substr(directory.size());
    return equal_ignoring_case(path.substr(0, directory.size()), directory) and
           (rest.empty() or rest.front() == '\\');
}

rpc_fault put_only_status(ndr_writer& out, std::uint32_t status) {
    out.u32(status);
    return rpc_fault::none;
}

}  // namespace

rpc_fault session_enum(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto client = server ? in.pointed_text() : std::nullopt;
    const auto user = client ? in.pointed_text() : std::nullopt;
    const auto asked = user ? take_rpc_enum(in) : std::nullopt;
    if (!asked) return rpc_fault::bad_stub_data;
    const auto refuse = [&](std::uint32_t why) { return put_no_list(out, *asked, why), rpc_fault::none; };
    if (!is_session_level(asked->level)) return refuse(rpc_error_invalid_level);
    const rpc_caller who = host.caller();
    const bool is_public = asked->level == 0 or asked->level == 10;
    if (!who.is_administrator and (!is_public or who.is_guest or who.is_anonymous))
        return refuse(rpc_error_access_denied);
    rpc_listing<rpc_session> listing(*asked);
    rpc_part<rpc_session> part = host.sessions(asked->after);
    if (part.has_more) listing.stops_after(part.last);
    for (rpc_session& one : part.entries) {
        if (!passes(one.client, computer_of(*client)) or !user_passes(host, one.user, *user)) continue;
        const std::size_t bytes = one.client.size() + one.user.size() + one.client_type.size();
        if (!listing.add(one.id, std::move(one), bytes)) break;
    }
    listing.write(
        out, [&](const rpc_session& one) { put_session(out, asked->level, one); },
        [&](const rpc_session& one) { put_session_texts(out, asked->level, one); });
    return rpc_fault::none;
}

rpc_fault session_del(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto client = server ? in.pointed_text() : std::nullopt;
    const auto user = client ? in.pointed_text() : std::nullopt;
    if (!user) return rpc_fault::bad_stub_data;
    if (!host.caller().is_administrator) return put_only_status(out, rpc_error_access_denied);
    // Without a name, the call would end everything.
    const std::string_view computer = computer_of(*client);
    const bool names_some = !computer.empty() or !user->empty();
    const bool found = names_some and host.end_sessions(computer, *user) != 0;
    return put_only_status(out, found ? rpc_no_error : rpc_error_client_not_found);
}

rpc_fault file_enum(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto base = server ? in.pointed_text() : std::nullopt;
    const auto user = base ? in.pointed_text() : std::nullopt;
    const auto asked = user ? take_rpc_enum(in) : std::nullopt;
    if (!asked) return rpc_fault::bad_stub_data;
    const auto refuse = [&](std::uint32_t why) { return put_no_list(out, *asked, why), rpc_fault::none; };
    if (asked->level != 2 and asked->level != 3) return refuse(rpc_error_invalid_level);
    if (!host.caller().is_administrator) return refuse(rpc_error_access_denied);
    rpc_listing<listed_file> listing(*asked);
    const rpc_part<std::uint32_t> part = host.file_ids(asked->after);
    if (part.has_more) listing.stops_after(part.last);
    const bool has_paths = asked->level == 3 or !base->empty();
    std::size_t paths = 0;
    std::uint32_t examined = asked->after;
    for (const std::uint32_t id : part.entries) {
        auto of = host.file(id);
        if (of and user_passes(host, of->user, *user)) {
            if (has_paths and paths++ == rpc_paths_max) {
                listing.stops_after(examined);
                break;
            }
            auto path = has_paths ? host.path_of_file(id) : std::string();
            if (path and (base->empty() or is_beneath(*path, *base))) {
                const std::size_t bytes = path->size() + of->user.size();
                if (!listing.add(id, listed_file{*std::move(of), *std::move(path)}, bytes)) break;
            }
        }
        examined = id;
    }
    listing.write(
        out, [&](const listed_file& one) { put_file(out, asked->level, one); },
        [&](const listed_file& one) { put_file_texts(out, asked->level, one); });
    return rpc_fault::none;
}

rpc_fault file_get_info(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto id = server ? in.u32() : std::nullopt;
    const auto level = id ? in.u32() : std::nullopt;
    if (!level) return rpc_fault::bad_stub_data;
    const bool is_level = *level == 2 or * level == 3;
    const bool may = host.caller().is_administrator;
    auto of = is_level and may ? host.file(*id) : std::nullopt;
    auto path = of ? host.path_of_file(*id) : std::nullopt;
    out.u32(*level);
    out.pointer(path.has_value());
    if (path) {
        const listed_file one{.of = *std::move(of), .path = *std::move(path)};
        put_file(out, *level, one);
        put_file_texts(out, *level, one);
        return put_only_status(out, rpc_no_error);
    }
    if (!is_level) return put_only_status(out, rpc_error_invalid_level);
    return put_only_status(out, may ? rpc_error_file_not_found : rpc_error_access_denied);
}

rpc_fault file_close(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto id = server ? in.u32() : std::nullopt;
    if (!id) return rpc_fault::bad_stub_data;
    if (!host.caller().is_administrator) return put_only_status(out, rpc_error_access_denied);
    return put_only_status(out, host.end_file(*id) ? rpc_no_error : rpc_error_file_not_found);
}

rpc_fault connection_enum(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto qualifier = server ? in.pointed_text() : std::nullopt;
    const auto asked = qualifier ? take_rpc_enum(in) : std::nullopt;
    if (!asked) return rpc_fault::bad_stub_data;
    const auto refuse = [&](std::uint32_t why) { return put_no_list(out, *asked, why), rpc_fault::none; };
    if (asked->level > 1) return refuse(rpc_error_invalid_level);
    if (!host.caller().is_administrator) return refuse(rpc_error_access_denied);
    // The qualifier is a share, or a computer after two backslashes. The results have the other.
    const bool is_of_computer = qualifier->starts_with("\\\\");
    rpc_listing<rpc_tree> listing(*asked);
    rpc_part<rpc_tree> part = host.trees(asked->after);
    if (part.has_more) listing.stops_after(part.last);
    for (auto first = part.entries.begin(); first != part.entries.end();) {
        // The tree connections of one session, which has one position.
        const std::uint32_t position = first->session;
        std::vector<rpc_tree> some;
        std::size_t bytes = 0;
        for (; first != part.entries.end() and first->session == position; ++first) {
            const std::string_view name = is_of_computer ? first->client : first->share;
            if (!passes(name, computer_of(*qualifier))) continue;
            bytes += first->client.size() + first->user.size() + first->share.size();
            some.push_back(std::move(*first));
        }
        if (!some.empty() and !listing.add(position, std::move(some), bytes)) break;
    }
    listing.write(
        out, [&](const rpc_tree& one) { put_tree(out, asked->level, one); },
        [&](const rpc_tree& one) {
            if (asked->level == 0) return;
            out.text(one.user);
            out.text(is_of_computer ? one.share : one.client);
        });
    return rpc_fault::none;
}

}  // namespace sluice::smb::wire
