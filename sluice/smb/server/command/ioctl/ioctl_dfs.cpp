#include <algorithm>

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/share_access.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fsctl/fsctl_dfs.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

[[nodiscard]] std::optional<wire::dfs_referral_request> decode(const wire::ioctl_args& args) {
    if (args.code == wire::control_code::dfs_get_referrals_ex) {
        auto request = wire::decode_dfs_referral_request_ex(args.input);
        if (not request) return std::nullopt;
        return wire::dfs_referral_request{.version_max = request->version_max,
                                          .path = std::move(request->path)};
    }
    ENSURE(args.code == wire::control_code::dfs_get_referrals, "one of two controls");
    auto request = wire::decode_dfs_referral_request(args.input);
    return request ? std::optional(*std::move(request)) : std::nullopt;
}

// \server\share of \server\share\rest, and the share's name. Without a share: a request about
// domains and their controllers.
struct link_path {
    std::string_view whole;
    std::string_view share;
};
[[nodiscard]] link_path split(std::string_view path) noexcept {
    ENSURE(path.starts_with('\\'), "the caller has checked it");
    const std::size_t slash = path.find('\\', 1);
    if (slash == std::string_view::npos or slash == 1) return {};  // no server
    const std::string_view share = path.substr(slash + 1, path.find('\\', slash + 1) - (slash + 1));
    return {.whole = path.substr(0, slash + 1 + share.size()), .share = share};
}

// Those that fit, at least one ([MS-DFSC] 3.2.5.1).
[[nodiscard]] bool fit(wire::dfs_referral_reply& reply, std::size_t bytes_max) noexcept {
    ENSURE(not reply.targets.empty(), "a referral has targets");
    while (not reply.targets.empty()) {
        const auto bytes = wire::encoded_bytes_of(reply);
        if (bytes and *bytes <= bytes_max) return true;
        reply.targets.pop_back();
    }
    return false;
}

[[nodiscard]] nt_status reply_with(control& c, const wire::dfs_referral_reply& reply) {
    byte_writer* const output = c.begin_output(wire::encoded_bytes_of(reply).value());
    if (output == nullptr) return nt_status::insufficient_resources;
    ENSURE(encode(*output, reply).has_value(), "a reply that was measured is encoded");
    return nt_status::success;
}

}  // namespace

// The server has links only, each of them a share ([MS-DFSC] 3.2.5.5). A user that may not connect
// to a share gets no referral for it.
io::task<nt_status> get_dfs_referrals(control& c) {
    // Clients are to know from this status that no share is part of a distributed file system.
    if (not c.r.host().has_referrals())
        co_return c.r.tree->target->is_pipes() ? nt_status::fs_driver_required : nt_status::not_found;
    const auto asked = decode(c.args);
    if (not asked or asked->version_max == 0) co_return nt_status::invalid_parameter;
    if (asked->path.empty()) co_return nt_status::not_found;
    if (not asked->path.starts_with('\\')) co_return nt_status::invalid_parameter;
    const link_path link = split(asked->path);
    const std::shared_ptr<share> named =
        link.share.empty() ? nullptr : c.r.host().find_share(std::string(link.share));
    if (named == nullptr or not named->is_referral()) co_return nt_status::not_found;
    if (refusal_of(c.r.host().configuration(), *c.r.session, *named) != share_refusal::none)
        co_return nt_status::not_found;
    const auto consumed = wire::utf16_bytes_of(link.whole);
    if (not consumed) co_return nt_status::invalid_parameter;
    ENSURE(*consumed <= wire::dfs_path_bytes_max, "a part of a path is no longer than the path");
    wire::dfs_referral_reply reply{
        .version = std::min(asked->version_max, wire::dfs_version_max),
        .path_consumed_bytes = static_cast<std::uint16_t>(*consumed),
        .time_to_live_seconds = static_cast<std::uint32_t>(limits::referral_time_to_live.count()),
        .path = std::string(link.whole),
        .targets = named->configuration().referral};
    if (fit(reply, c.args.output_bytes_max)) co_return reply_with(c, reply);
    // The status is a warning: the reply has its usual form ([MS-SMB2] 3.3.4.4).
    co_return c.begin_output(8) == nullptr ? nt_status::insufficient_resources : nt_status::buffer_overflow;
}

}  // namespace sluice::smb::server
