#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/smb/wire/rpc/rpc_pipe.hpp"
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
    std::vector<rpc_account> users() override {
        std::vector<rpc_account> found;
        std::ranges::copy_if(accounts_, std::back_inserter(found),
                             [](const rpc_account& one) { return one.use == sid_use::user; });
        return found;
    }
    std::vector<std::uint32_t> aliases_of(const sid& who) override {
        if (!account_of(who)) return {};
        return {545};
    }
    std::vector<rpc_session> sessions() override { return sessions_; }
    std::vector<rpc_tree> trees() override { return trees_; }
    std::size_t end_sessions(std::string_view client, std::string_view user) override {
        ended_ += std::string(client) + '/' + std::string(user) + ' ';
        return user == "nobody" ? 0 : 1;
    }
    std::vector<std::uint32_t> file_ids() override {
        std::vector<std::uint32_t> ids;
        for (const rpc_file& one : files_)
            ids.push_back(one.id);
        return ids;
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
        {.id = 1, .opens = 2, .seconds = 5, .client = "10.0.0.1", .user = "alice", .share = "Data"},
        {.id = 2, .client = "10.0.0.2", .user = "bob", .share = "Other"}};
    std::vector<rpc_file> files_ = {
        {.id = 17, .permissions = 1, .path = "C:\\Data\\a", .user = "alice"},
        {.id = 33, .permissions = 3, .locks = 4, .path = "C:\\Database\\b", .user = "bob"}};
    std::string ended_;  // what calls have ended
    rpc_caller caller_{.name = "alice", .domain = "SERVER"};
    std::vector<rpc_account> accounts_ = {
        {.id = sid_everyone, .use = sid_use::well_known_group, .name = "Everyone", .domain = {{}, world}},
        {.id = {5, {21, 7, 8, 9, 10}},
         .use = sid_use::user,
         .name = "alice",
         .domain = {.name = "SERVER", .id = {5, {21, 7, 8, 9}}}}};

private:
    static constexpr sid world{1, std::initializer_list<std::uint32_t>{}};
    unsigned handles_ = 0;
};

struct message {
    rpc_head head;
    std::vector<std::byte> body;
};

// Reads one fragment with a sufficiently large buffer.
inline message next_message(rpc_pipe& pipe) {
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

inline void bind(rpc_pipe& pipe, const rpc_syntax& interface = rpc_srvsvc_interface) {
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

// Executes one call and returns its results, or no bytes if it faults.
inline std::vector<std::byte> call(rpc_pipe& pipe, std::uint16_t operation, const ndr_writer& arguments) {
    EXPECT_TRUE(pipe.write(request(operation, arguments.bytes())));
    const message reply = next_message(pipe);
    EXPECT_EQ(kind(reply), rpc_packet::response);
    return {reply.body.begin() + sizeof(rpc_call_head), reply.body.end()};
}

inline ndr_writer server_and(std::uint32_t level) {
    ndr_writer arguments(1000);
    arguments.pointer(true);
    arguments.text("\\\\SERVER");
    arguments.u32(level);
    return arguments;
}

inline std::uint32_t fault_of(const message& reply) {
    EXPECT_EQ(kind(reply), rpc_packet::fault);
    return bytes_view(reply.body).take_at<le32>(8)->value();
}

}  // namespace sluice::smb::wire::rpc_testing
