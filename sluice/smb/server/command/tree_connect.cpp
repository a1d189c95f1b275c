#include "sluice/smb/wire/message/tree_connect.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/metadata/share_access.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/session_life.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// The share's name in \\server\share. Every server name is accepted, because clients may know the
// server by any name.
[[nodiscard]] std::string share_name_of(std::string_view path) {
    if (not path.starts_with("\\\\")) return {};
    const std::size_t slash = path.find('\\', 2);
    return slash == std::string_view::npos ? std::string{} : std::string(path.substr(slash + 1));
}

// Lets a client detect a changed negotiation: only the keys of 3.1.1 depend on it
// ([MS-SMB2] 3.3.5.7).
[[nodiscard]] bool lacks_protection(const request& r) noexcept {
    const bool has_key = r.channel->signer != nullptr;  // guests and the anonymous have none
    return r.connection().agreed.is_at_least(wire::dialect::smb_3_1_1) and has_key and
           not r.is_reply_signed() and r.encrypted_by == nullptr;
}

[[nodiscard]] nt_status may_connect(const request& r, const share& wanted) {
    const session& by = *r.session;
    const share_refusal refused = refusal_of(r.host().configuration(), by, wanted);
    if (refused == share_refusal::not_listed)
        r.host().log().write(event_severity::warning, "share access denied",
                             {{"user", by.user.name},
                              {"share", wanted.configuration().name},
                              {"rule", "the share allows only the users in its list"},
                              {"hint", "add the user to the share's list, or remove the list"}});
    if (refused == share_refusal::denied_host)
        r.host().log().write(event_severity::warning, "share access denied",
                             {{"user", by.user.name},
                              {"peer", r.connection().peer_text()},
                              {"share", wanted.configuration().name},
                              {"rule", "the share denies an address of the client"},
                              {"hint", "change allowed-host or denied-host of the share"}});
    return refused == share_refusal::none ? nt_status::success : nt_status::access_denied;
}

// With impersonation, the user's files are worked with as the Unix account of that name: what the
// kernel refuses that account, it refuses us.
[[nodiscard]] nt_status impersonate(const request& r, tree& fresh) {
    const auto& account_of = r.host().configuration().account_of;
    if (not account_of or not fresh.target->has_volume()) return nt_status::success;
    const user_identity& user = r.session->user;
    const std::optional<vfs::unix_account> account = user.is_anonymous ? std::nullopt : account_of(user.name);
    if (not account) {
        r.host().log().write(event_severity::warning, "share access denied",
                             {{"user", r.session->user.name},
                              {"share", fresh.target->configuration().name},
                              {"rule", "with --impersonate every user needs a Unix account of the same name"},
                              {"hint", "create the account, or serve without --impersonate"}});
        return nt_status::access_denied;
    }
    auto volume = vfs::impersonated_volume::create(fresh.target->volume(), *account);
    if (not volume) return nt_status::access_denied;
    fresh.impersonated = *std::move(volume);
    return nt_status::success;
}

[[nodiscard]] wire::share_flags flags_of(const share_configuration& rules) noexcept {
    wire::share_flags flags = wire::share_flags::manual_caching;
    if (not rules.referral.empty()) flags |= wire::share_flags::dfs | wire::share_flags::dfs_root;
    if (rules.encryption == protection::required) flags |= wire::share_flags::encrypt_data;
    if (rules.hides_unreadable) flags |= wire::share_flags::access_based_directory_enum;
    return flags;
}

// After the session lists the tree: a reload, or a channel from another address, may have come
// since the rights were checked. Returns whether the tree has ended.
[[nodiscard]] bool ends_again(const request& r, const tree& fresh) {
    session& by = *r.session;
    if (end_tree_beyond_rights(r.host(), by, fresh)) return true;
    if (not fresh.target->configuration().hosts.are_given()) return false;
    if (refusal_of(r.host().configuration(), by, *fresh.target) == share_refusal::none) return false;
    end_tree(r.host(), by, fresh);
    return true;
}

}  // namespace

io::task<nt_status> serve_tree_connect(request& r) {
    if (lacks_protection(r)) {
        r.connection().close("TREE_CONNECT is neither signed nor encrypted");
        co_return nt_status::access_denied;
    }
    const auto args = wire::decode_tree_connect(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    const auto path = wire::utf8_of(args->path);
    if (not path) co_return nt_status::invalid_parameter;
    const std::shared_ptr<share> wanted = r.host().find_share(share_name_of(*path));
    if (wanted == nullptr) co_return nt_status::bad_network_name;
    if (const nt_status refused = may_connect(r, *wanted); refused != nt_status::success) co_return refused;
    session& by = *r.session;
    ENSURE(static_cast<bool>(by.admitted.client), "a session that is served has a client");
    quota_hold counted = r.host().quotas.take(by.admitted.client, limit::trees);
    if (counted.amount() == 0) co_return nt_status::insufficient_resources;

    byte_writer* const body = r.begin_reply(16);
    if (body == nullptr) co_return nt_status::insufficient_resources;
    auto fresh = std::make_shared<tree>();
    fresh->target = wanted;
    fresh->counted = std::move(counted);
    fresh->access_max = access_max_of(*wanted, by.user);
    fresh->audits = may_audit(*wanted, fresh->access_max, by.user);
    fresh->requires_encryption = wanted->configuration().encryption == protection::required;
    if (const nt_status refused = impersonate(r, *fresh); refused != nt_status::success) {
        r.answer.discard();
        co_return refused;
    }
    if (not by.add(fresh)) {
        r.answer.discard();
        if (by.state() == session::phase::gone) co_return nt_status::user_session_deleted;
        r.host().rejections.add(limit::trees_per_session, by.admitted.client.name());
        co_return nt_status::insufficient_resources;
    }
    if (ends_again(r, *fresh)) {
        r.answer.discard();
        co_return nt_status::access_denied;
    }
    wire::share_flags flags = flags_of(wanted->configuration());
    // Lets clients that negotiated it request compression of READs, and compress WRITEs.
    const bool announces_compression =
        r.host().configuration().compresses and r.connection().agreed.is_at_least(wire::dialect::smb_3_1_1);
    if (announces_compression and wanted->has_volume()) flags |= wire::share_flags::compress_data;
    const bool is_available = wanted->configuration().continuous_availability and
                              r.connection().agreed.is_at_least(wire::dialect::smb_3_0);
    wire::share_capabilities capabilities = wire::share_capabilities::none;
    if (wanted->is_referral()) capabilities = wire::share_capabilities::dfs;
    if (is_available) capabilities = wire::share_capabilities::continuous_availability;
    encode(*body, wire::tree_connect_reply{
                      .type = wanted->is_pipes() ? wire::share_type::pipe : wire::share_type::disk,
                      .flags = flags,
                      .capabilities = capabilities,
                      .maximal_access = fresh->access_max});
    r.compound().tree_id = fresh->id;
    r.tree = std::move(fresh);
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
