#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/wire/rpc/rpc_pipe_testing.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"

// A server for tests of its pipes, and the client's side of one call.

namespace sluice::smb::wire::rpc_testing {

class host_of_tests final : public rpc_host {
public:
    std::string name() const override { return "SERVER"; }
    std::string comment() const override { return "töst"; }
    std::string domain() const override { return "WORKGROUP"; }
    std::vector<rpc_share> shares() const override { return shares_; }
    unix_time now() const override { return {.seconds = 1'700'000'000, .nanoseconds = 250'000'000}; }
    rpc_caller caller() const override { return caller_; }
    rpc_domain account_domain() const override { return {.name = "SERVER", .id = {5, {21, 1, 2, 3}}}; }
    std::optional<rpc_account> account_of(const sid& who) override {
        const auto found = std::ranges::find(accounts_, who, &rpc_account::id);
        return found == accounts_.end() ? std::nullopt : std::optional(*found);
    }
    std::optional<rpc_account> account_named(std::string_view name) override {
        const auto found = std::ranges::find(accounts_, name, &rpc_account::name);
        return found == accounts_.end() ? std::nullopt : std::optional(*found);
    }
    // The accounts are in the order of their numbers.
    std::optional<rpc_account> user_numbered(std::uint32_t number) override {
        ++searches_;
        const auto found = std::ranges::find_if(accounts_, [&](const rpc_account& one) {
            return one.use == sid_use::user and number_of(one) == number;
        });
        return found == accounts_.end() ? std::nullopt : std::optional(*found);
    }
    std::optional<rpc_account> user_named(std::string_view name) override {
        ++searches_;
        const auto found = std::ranges::find_if(accounts_, [&](const rpc_account& one) {
            return one.use == sid_use::user and is_same_user(one.name, name);
        });
        return found == accounts_.end() ? std::nullopt : std::optional(*found);
    }
    std::vector<rpc_account> users_after(std::uint32_t after, std::size_t most) override {
        std::vector<rpc_account> found;
        for (const rpc_account& one : accounts_)
            if (one.use == sid_use::user and number_of(one) > after and found.size() != most)
                found.push_back(one);
        return found;
    }
    std::size_t user_count() override {
        return static_cast<std::size_t>(std::ranges::count(accounts_, sid_use::user, &rpc_account::use));
    }
    bool is_same_user(std::string_view one, std::string_view other) const override {
        return equal_ignoring_case(one, other);
    }
    std::vector<std::uint32_t> aliases_of(const sid& who) override {
        if (!account_of(who)) return {};
        return {545};
    }
    rpc_part<rpc_session> sessions(std::uint32_t after) override {
        return part_of(sessions_, &rpc_session::id, after);
    }
    rpc_part<rpc_tree> trees(std::uint32_t after) override {
        return part_of(trees_, &rpc_tree::session, after);
    }
    std::vector<rpc_logged_on> logged_on(std::uint32_t after) override {
        return part_of(logged_on_, &rpc_logged_on::id, after).entries;
    }
    std::size_t end_sessions(std::string_view client, std::string_view user) override {
        ended_ += std::string(client) + '/' + std::string(user) + ' ';
        return user == "nobody" ? 0 : 1;
    }
    rpc_part<std::uint32_t> file_ids(std::uint32_t after) override {
        const rpc_part<rpc_file> files = part_of(files_, &rpc_file::id, after);
        rpc_part<std::uint32_t> ids{.last = files.last, .has_more = files.has_more};
        for (const rpc_file& one : files.entries)
            ids.entries.push_back(one.id);
        return ids;
    }
    std::optional<std::string> path_of_file(std::uint32_t id) override {
        ++searches_;
        const auto found = std::ranges::find(files_, id, &rpc_file::id);
        if (found == files_.end()) return std::nullopt;
        return paths_[static_cast<std::size_t>(found - files_.begin()) % paths_.size()];
    }
    std::optional<rpc_file> file(std::uint32_t id) override {
        const auto found = std::ranges::find(files_, id, &rpc_file::id);
        return found == files_.end() ? std::nullopt : std::optional(*found);
    }
    bool end_file(std::uint32_t id) override {
        ended_ += std::to_string(id) + ' ';
        return file(id).has_value();
    }
    guid new_handle_id() override {
        guid fresh;
        fresh.bytes.front() = static_cast<std::byte>(++handles_);
        return fresh;
    }

    std::vector<rpc_share> shares_ = {
        {.name = "Data", .comment = "files", .type = rpc_share::disk_tree},
        {.name = "IPC$", .comment = "", .type = rpc_share::ipc | rpc_share::special}};
    std::vector<rpc_session> sessions_ = {
        {.id = 3,
         .client = "10.0.0.1",
         .user = "alice",
         .client_type = "SMB 3.1.1",
         .opens = 2,
         .seconds = 5},
        {.id = 9, .client = "10.0.0.2", .user = "bob", .client_type = "SMB 2.1", .is_guest = true}};
    std::vector<rpc_tree> trees_ = {
        {.id = 1,
         .session = 3,
         .opens = 2,
         .seconds = 5,
         .client = "10.0.0.1",
         .user = "alice",
         .share = "Data"},
        {.id = 1, .session = 9, .client = "10.0.0.2", .user = "bob", .share = "Other"}};
    std::vector<rpc_logged_on> logged_on_ = {{.id = 3, .user = "alice"}, {.id = 9, .user = "bob"}};
    std::vector<rpc_file> files_ = {{.id = 17, .permissions = 1, .user = "alice"},
                                    {.id = 33, .permissions = 3, .locks = 4, .user = "bob"}};
    // The files have these paths in turn.
    std::vector<std::string> paths_ = {"C:\\Data\\a", "C:\\Database\\b"};
    std::string ended_;         // what calls have ended
    std::size_t searches_ = 0;  // number of searches for a user or a path
    rpc_caller caller_{.name = "alice", .domain = "SERVER"};
    std::vector<rpc_account> accounts_ = {
        {.id = sid_everyone, .use = sid_use::well_known_group, .name = "Everyone", .domain = {{}, world}},
        {.id = {5, {21, 7, 8, 9, 10}},
         .use = sid_use::user,
         .name = "alice",
         .domain = {.name = "SERVER", .id = {5, {21, 7, 8, 9}}}}};

private:
    // As the server: it examines a limited number of entries.
    template <class Entry>
    static rpc_part<Entry> part_of(const std::vector<Entry>& all, std::uint32_t Entry::* position,
                                   std::uint32_t after) {
        rpc_part<Entry> part;
        for (const Entry& one : all) {
            if (one.*position <= after) continue;
            part.has_more = part.entries.size() == rpc_examined_max;
            if (part.has_more) break;
            part.entries.push_back(one);
            part.last = one.*position;
        }
        return part;
    }
    static std::uint32_t number_of(const rpc_account& one) { return one.id.sub_authorities().back(); }

    static constexpr sid world{1, std::initializer_list<std::uint32_t>{}};
    unsigned handles_ = 0;
};

struct message {
    rpc_head head;
    std::vector<std::byte> body;
};

// Reads one fragment with a sufficiently large buffer.
inline message next_message(whole_pipe& pipe) {
    std::vector<std::byte> room(8192);
    const auto read = pipe.read(room);
    EXPECT_FALSE(read.more);
    room.resize(read.bytes);
    const auto head = bytes_view(room).take<rpc_head>();
    EXPECT_TRUE(head.has_value());
    if (!head) return {};
    EXPECT_EQ(head->fragment_length.value(), room.size());
    return {.head = *head, .body = {room.begin() + sizeof(rpc_head), room.end()}};
}

inline rpc_packet kind(const message& received) {
    return rpc_packet(received.head.packet.value());
}

inline void bind(whole_pipe& pipe, const rpc_syntax& interface = rpc_srvsvc_interface) {
    ASSERT_TRUE(pipe.write(encode_rpc_bind(interface, 1)));
    std::vector<std::byte> room(4280);
    const auto read = pipe.read(room);
    ASSERT_TRUE(decode_srvsvc_bind_ack(*bytes_view(room).first(read.bytes)).has_value());
}

inline std::vector<std::byte> request(std::uint16_t operation, bytes_view arguments,
                                      std::uint8_t flags = rpc_first_fragment | rpc_last_fragment) {
    const rpc_call_head head{.allocation_hint = {}, .context = {}, .operation = le16(operation)};
    std::vector<std::byte> body(bytes_of(head).begin(), bytes_of(head).end());
    body.insert(body.end(), arguments.begin(), arguments.end());
    std::vector<std::byte> out;
    append_rpc_fragment(out, {.packet = rpc_packet::request, .flags = flags, .call = 7}, body);
    return out;
}

inline std::uint32_t fault_of(const message& reply) {
    EXPECT_EQ(kind(reply), rpc_packet::fault);
    return bytes_view(reply.body).take_at<le32>(8)->value();
}

// Expects a fault for arguments that end early, anywhere.
inline void expect_truncated_fault(whole_pipe& pipe, std::uint16_t operation, bytes_view arguments) {
    for (std::size_t size = 0; size != arguments.size(); ++size) {
        ASSERT_TRUE(pipe.write(request(operation, *arguments.first(size))));
        ASSERT_EQ(fault_of(next_message(pipe)), 0x6F7u)
            << "operation " << operation << ", " << size << " of " << arguments.size() << " bytes";
    }
}

// Executes one call and returns its results, or no bytes if it faults.
inline std::vector<std::byte> execute(whole_pipe& pipe, std::uint16_t operation,
                                      const ndr_writer& arguments) {
    EXPECT_TRUE(pipe.write(request(operation, arguments.bytes())));
    const message reply = next_message(pipe);
    EXPECT_EQ(kind(reply), rpc_packet::response);
    return {reply.body.begin() + sizeof(rpc_call_head), reply.body.end()};
}

// The same. Before, each beginning of the arguments is refused: if one had an effect, the results
// or the host of the test would show it.
inline std::vector<std::byte> call(whole_pipe& pipe, std::uint16_t operation, const ndr_writer& arguments) {
    constexpr std::size_t bytes_max = 2000;
    if (arguments.bytes().size() <= bytes_max) expect_truncated_fault(pipe, operation, arguments.bytes());
    return execute(pipe, operation, arguments);
}

inline ndr_writer server_and(std::uint32_t level) {
    ndr_writer arguments(1000);
    arguments.pointer(true);
    arguments.text("\\\\SERVER");
    arguments.u32(level);
    return arguments;
}

}  // namespace sluice::smb::wire::rpc_testing
