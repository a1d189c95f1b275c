#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/wire/rpc/rpc_host.hpp"

// A server for the fuzz targets of the pipes, with a few of everything.

namespace sluice::fuzzing {

class rpc_fixed_host final : public smb::wire::rpc_host {
public:
    explicit rpc_fixed_host(bool is_administrator = true) : is_administrator_(is_administrator) {}

    std::string name() const override { return "SERVER"; }
    std::string comment() const override { return "\xFF"; }
    std::string domain() const override { return "WORKGROUP"; }
    std::vector<smb::wire::rpc_share> shares() const override {
        std::vector<smb::wire::rpc_share> shares(40, {.name = "data", .comment = std::string(30, 'c')});
        shares.push_back({.name = "IPC$", .type = smb::wire::rpc_share::ipc});
        return shares;
    }
    smb::wire::unix_time now() const override { return {.seconds = -1, .nanoseconds = 999'999'999}; }
    smb::wire::rpc_caller caller() const override {
        return {.name = "alice", .domain = "SERVER", .is_administrator = is_administrator_};
    }
    smb::wire::rpc_domain account_domain() const override {
        return {.name = "SERVER", .id = {5, {21, 1, 2, 3}}};
    }
    std::optional<smb::wire::rpc_account> account_of(const smb::wire::sid& who) override {
        if (who.authority() != 1) return std::nullopt;
        return everyone();
    }
    std::optional<smb::wire::rpc_account> account_named(std::string_view name) override {
        if (name.size() % 2 == 0) return std::nullopt;
        return everyone();
    }
    std::optional<smb::wire::rpc_account> user_numbered(std::uint32_t number) override {
        return number == 1001 ? std::optional(alice()) : std::nullopt;
    }
    std::optional<smb::wire::rpc_account> user_named(std::string_view name) override {
        return is_same_user(name, "alice") ? std::optional(alice()) : std::nullopt;
    }
    std::vector<smb::wire::rpc_account> users_after(std::uint32_t after, std::size_t most) override {
        if (after >= 1001 or most == 0) return {};
        return {alice()};
    }
    std::size_t user_count() override { return 1; }
    bool is_same_user(std::string_view one, std::string_view other) const override {
        return equal_ignoring_case(one, other);
    }
    std::vector<std::uint32_t> aliases_of(const smb::wire::sid& who) override {
        if (who.authority() != 5) return {};
        return {544, 545};
    }
    // The first handle has the ID 1, as in the inputs that rpc_seeds writes.
    smb::wire::guid new_handle_id() override {
        smb::wire::guid fresh;
        fresh.bytes.front() = static_cast<std::byte>(++handles_);
        return fresh;
    }
    // As of a server that has more than one call examines.
    smb::wire::rpc_part<smb::wire::rpc_session> sessions(std::uint32_t after) override {
        smb::wire::rpc_part<smb::wire::rpc_session> part;
        if (after < 1)
            part.entries.push_back(
                {.id = 1, .client = "10.0.0.1", .user = "alice", .client_type = "SMB 3.1.1"});
        if (after < 2) part.entries.push_back({.id = 2, .client = "10.0.0.2", .user = "\xFF"});
        part.has_more = after < 1000;
        part.last = 1000;
        return part;
    }
    smb::wire::rpc_part<smb::wire::rpc_tree> trees(std::uint32_t after) override {
        smb::wire::rpc_part<smb::wire::rpc_tree> part;
        if (after < 1)
            part.entries.resize(
                3, {.id = 1, .session = 1, .client = "10.0.0.1", .user = "alice", .share = "data"});
        if (after < 5) part.entries.push_back({.id = 1, .session = 5, .user = "bob", .share = "data"});
        return part;
    }
    std::vector<smb::wire::rpc_logged_on> logged_on(std::uint32_t after) override {
        std::vector<smb::wire::rpc_logged_on> users;
        if (after < 1) users.push_back({.id = 1, .user = "alice"});
        if (after < 0xFFFFFFFF) users.push_back({.id = 0xFFFFFFFF, .user = "\xFF"});
        return users;
    }
    std::size_t end_sessions(std::string_view client, std::string_view user) override {
        return client.size() + user.size();
    }
    smb::wire::rpc_part<std::uint32_t> file_ids(std::uint32_t after) override {
        smb::wire::rpc_part<std::uint32_t> part{.last = 0xFFFFFFFF, .has_more = after < 0xFFFFFFFF};
        for (const std::uint32_t id : {1U, 2U, 0xFFFFFFFFU})
            if (id > after) part.entries.push_back(id);
        return part;
    }
    std::optional<smb::wire::rpc_file> file(std::uint32_t id) override {
        if (id == 2) return std::nullopt;
        return smb::wire::rpc_file{.id = id, .user = "alice"};
    }
    std::optional<std::string> path_of_file(std::uint32_t id) override {
        if (id == 3) return std::nullopt;
        return std::string(30'000, 'x');
    }
    bool end_file(std::uint32_t id) override { return id == 1; }

private:
    smb::wire::rpc_account alice() const {
        return {.id = {5, {21, 1, 2, 3, 1001}},
                .use = smb::wire::sid_use::user,
                .name = "alice",
                .domain = account_domain()};
    }
    smb::wire::rpc_account everyone() const {
        return {.id = smb::wire::sid_everyone,
                .use = smb::wire::sid_use::well_known_group,
                .name = "Everyone",
                .domain = {.name = {}, .id = {1, std::initializer_list<std::uint32_t>{}}}};
    }

    bool is_administrator_;
    unsigned handles_ = 0;
};

}  // namespace sluice::fuzzing
