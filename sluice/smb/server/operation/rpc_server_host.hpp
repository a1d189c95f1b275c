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
/// Thread safety: none of its own; the mutex of the pipe guards it, so that its functions may lock
/// any other mutex. Allocates: what it returns.
class rpc_server_host final : public wire::rpc_host {
public:
    /// `host` outlives it.
    rpc_server_host(server_context& host, const user_identity& user);

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
    [[nodiscard]] std::vector<wire::rpc_account> users() override { return names_.users(); }
    [[nodiscard]] std::vector<std::uint32_t> aliases_of(const wire::sid& who) override;
    [[nodiscard]] wire::guid new_handle_id() override;
    [[nodiscard]] std::vector<wire::rpc_session> sessions() override;
    [[nodiscard]] std::vector<wire::rpc_tree> trees() override;
    [[nodiscard]] std::size_t end_sessions(std::string_view client, std::string_view user) override;
    [[nodiscard]] std::vector<std::uint32_t> file_ids() override;
    [[nodiscard]] std::optional<wire::rpc_file> file(std::uint32_t id) override;
    [[nodiscard]] bool end_file(std::uint32_t id) override;

    /// Returns what end_sessions() and end_file() have left to do, without the mutex of the pipe.
    /// Releases the memory that one request needs.
    [[nodiscard]] std::vector<pipe_work> take_work() noexcept {
        numbers_ = std::vector<numbered>();
        return std::exchange(work_, {});
    }

private:
    // The part of an open's number that a client sees, and the number.
    using numbered = std::pair<std::uint32_t, std::uint64_t>;

    [[nodiscard]] bool may_see(const session& one) const;
    [[nodiscard]] std::shared_ptr<open> find_file(std::uint32_t id);

    server_context& host_;
    const user_identity user_;
    account_names names_;
    std::vector<numbered> numbers_;  // the opens at the last call of file_ids(); sorted
    std::vector<pipe_work> work_;
};

}  // namespace sluice::smb::server
