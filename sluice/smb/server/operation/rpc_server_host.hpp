#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/smb/server/metadata/account_names.hpp"
#include "sluice/smb/server/open/named_pipe.hpp"
#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/wire/rpc/rpc_host.hpp"

namespace sluice::smb::server {

class server_context;

/// The reports and actions of a server on its pipes, for the user of one session.
/// Thread safety: none of its own; it belongs to the holder of the pipe's `requests`, who holds no
/// mutex. Allocates: what it returns.
class rpc_server_host final : public wire::rpc_host {
public:
    /// `host` outlives it.
    rpc_server_host(server_context& host, const session& of);

    [[nodiscard]] std::string name() const override;
    [[nodiscard]] std::string comment() const override;
    [[nodiscard]] std::string domain() const override;
    [[nodiscard]] std::vector<wire::rpc_share> shares() const override;
    [[nodiscard]] wire::unix_time now() const override;
    [[nodiscard]] wire::rpc_caller caller() const override;
    [[nodiscard]] wire::rpc_domain account_domain() const override { return names_.own_domain(); }
    [[nodiscard]] std::optional<wire::rpc_account> account_of(const wire::sid& who) override {
        return names_.of(who);
    }
    [[nodiscard]] std::optional<wire::rpc_account> account_named(std::string_view name) override {
        return names_.named(name);
    }
    [[nodiscard]] std::optional<wire::rpc_account> user_numbered(std::uint32_t number) override {
        return names_.user_numbered(number);
    }
    [[nodiscard]] std::optional<wire::rpc_account> user_named(std::string_view name) override {
        return names_.user_named(name);
    }
    [[nodiscard]] std::vector<wire::rpc_account> users_after(std::uint32_t after, std::size_t most) override {
        return names_.users_after(after, most);
    }
    [[nodiscard]] std::size_t user_count() override { return names_.user_count(); }
    [[nodiscard]] bool is_same_user(std::string_view one, std::string_view other) const override;
    [[nodiscard]] std::vector<std::uint32_t> aliases_of(const wire::sid& who) override;
    [[nodiscard]] wire::guid new_handle_id() override;
    [[nodiscard]] wire::rpc_part<wire::rpc_session> sessions(std::uint32_t after) override;
    [[nodiscard]] wire::rpc_part<wire::rpc_tree> trees(std::uint32_t after) override;
    [[nodiscard]] std::vector<wire::rpc_logged_on> logged_on(std::uint32_t after) override;
    [[nodiscard]] std::size_t end_sessions(std::string_view client, std::string_view user) override;
    [[nodiscard]] wire::rpc_part<std::uint32_t> file_ids(std::uint32_t after) override;
    [[nodiscard]] std::optional<wire::rpc_file> file(std::uint32_t id) override;
    [[nodiscard]] std::optional<std::string> path_of_file(std::uint32_t id) override;
    [[nodiscard]] bool end_file(std::uint32_t id) override;

    /// Returns the work that end_sessions() and end_file() have left, for a later part of the
    /// request.
    [[nodiscard]] std::vector<pipe_work> take_work() noexcept { return std::exchange(work_, {}); }

private:
    [[nodiscard]] bool is_administrator() const;
    [[nodiscard]] std::uint64_t id_at(std::uint32_t position) const noexcept;
    /// Returns the sessions of the caller's account with larger IDs, in the order of these.
    [[nodiscard]] std::vector<std::shared_ptr<session>> own_sessions_after(std::uint64_t id) const;
    [[nodiscard]] std::shared_ptr<open> find_file(std::uint32_t id) const;
    [[nodiscard]] pipe_work end_of(std::shared_ptr<session> ending) const;

    server_context& host_;
    const user_identity user_;
    const std::uint64_t session_id_;
    account_names names_;
    std::vector<pipe_work> work_;
};

}  // namespace sluice::smb::server
