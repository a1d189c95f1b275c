#include "sluice/smb/server/operation/rpc_server_host.hpp"

#include "sluice/smb/server/metadata/share_access.hpp"
#include "sluice/smb/server/metadata/user_sids.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

rpc_server_host::rpc_server_host(server_context& host, const session& of)
    : host_(host),
      user_(of.user),
      session_id_(of.id),
      // A guest has proved no password, and must not learn the names of users.
      names_(host.configuration().name, host.names().netbios_domain,
             is_known(of.user) ? &host.user_names : nullptr) {}

std::string rpc_server_host::name() const {
    return host_.configuration().name;
}

std::string rpc_server_host::comment() const {
    return host_.configuration().comment;
}

std::string rpc_server_host::domain() const {
    return host_.names().netbios_domain;
}

wire::unix_time rpc_server_host::now() const {
    return wire::unix_time_of(wire::filetime_of(host_.clock().utc_now()));
}

std::vector<wire::rpc_share> rpc_server_host::shares() const {
    std::vector<wire::rpc_share> listed;
    const std::shared_ptr<session> by = host_.find_session(session_id_);
    if (by == nullptr) return listed;
    const share_list::snapshot all = host_.shares.current();
    for (const std::shared_ptr<share>& one : *all) {
        const share_configuration& settings = one->configuration();
        if (one->is_withdrawn() or settings.is_hidden) continue;
        if (not is_listed_for(host_.configuration(), *by, *one)) continue;
        // Clients hide names that end in a dollar sign; this server reports which of its shares
        // are hidden.
        wire::rpc_share shown{.name = settings.name,
                              .comment = one->is_pipes() ? "Pipes of the server" : settings.comment,
                              .type = one->is_pipes() ? wire::rpc_share::ipc | wire::rpc_share::special
                                                      : wire::rpc_share::disk_tree,
                              .flags = 0,
                              .access_max = access_max_of(*one, by->user)};
        if (one->is_referral()) shown.flags |= wire::rpc_share::dfs | wire::rpc_share::dfs_root;
        if (settings.hides_unreadable) shown.flags |= wire::rpc_share::access_based_directory_enum;
        if (settings.encryption == protection::required) shown.flags |= wire::rpc_share::encrypt_data;
        listed.push_back(std::move(shown));
    }
    return listed;
}

wire::rpc_caller rpc_server_host::caller() const {
    if (user_.is_anonymous)
        return {.name = "ANONYMOUS LOGON", .domain = "NT AUTHORITY", .is_anonymous = true};
    return {.name = user_.name,
            .domain = host_.configuration().name,
            .is_guest = user_.is_guest,
            .is_administrator = is_administrator()};
}

bool rpc_server_host::is_administrator() const {
    const bool is_one = host_.administrators.contain(host_.accounts(), user_);
    ENSURE(not is_one or is_known(user_), "an administrator has proved a password");
    return is_one;
}

bool rpc_server_host::is_same_user(std::string_view one, std::string_view other) const {
    return host_.accounts().is_same({.user = one, .domain = {}}, {.user = other, .domain = {}});
}

std::vector<std::uint32_t> rpc_server_host::aliases_of(const wire::sid& who) {
    const std::optional<wire::rpc_account> found = names_.of(who);
    if (not found or found->domain.name != names_.own_domain().name or found->use != wire::sid_use::user)
        return {};
    std::vector<std::uint32_t> numbers{wire::sid_users.sub_authorities().back()};
    if (host_.administrators.contain(host_.accounts(), {.name = found->name, .domain = {}}))
        numbers.push_back(wire::sid_administrators.sub_authorities().back());
    ENSURE(numbers.size() <= 2, "an administrator is a user, too");
    return numbers;
}

wire::guid rpc_server_host::new_handle_id() {
    wire::guid fresh;
    host_.random().fill(fresh.bytes);
    return fresh;
}

}  // namespace sluice::smb::server
