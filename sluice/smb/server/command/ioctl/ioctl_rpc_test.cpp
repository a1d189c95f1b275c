#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/core/loop_wait.hpp"
#include "sluice/smb/server/metadata/user_sids.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/net/server_loop.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"
#include "sluice/smb/wire/rpc/rpc_lsa.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"
#include "sluice/smb/wire/rpc/rpc_srvsvc.hpp"

// Calls of the RPC services through a named pipe, by FSCTL_PIPE_TRANSCEIVE.

namespace sluice::smb_simulation {
namespace {

using wire::ndr_reader;
using wire::ndr_writer;

// One pipe of a client, which is bound to its interface.
class bound_pipe {
public:
    bound_pipe(compliant_client& by, std::string_view name, const wire::rpc_syntax& interface) : by_(by) {
        EXPECT_EQ(by_.connect_tree("IPC$"), nt_status::success);
        pipe_ = by_.create(name).file;
        EXPECT_TRUE(
            wire::decode_srvsvc_bind_ack(reply_to(send_fragment(wire::encode_rpc_bind(interface, 1)))));
    }

    // Returns the results of a call.
    std::vector<std::byte> call(std::uint16_t operation, const ndr_writer& arguments) {
        return results_of(send(operation, arguments));
    }
    // The same in two steps.
    std::uint64_t send(std::uint16_t operation, const ndr_writer& arguments) {
        const wire::rpc_call_head head{.allocation_hint = {}, .context = {}, .operation = le16(operation)};
        std::vector<std::byte> body(bytes_of(head).begin(), bytes_of(head).end());
        body.insert(body.end(), arguments.bytes().begin(), arguments.bytes().end());
        std::vector<std::byte> fragment;
        wire::append_rpc_fragment(fragment, {.packet = wire::rpc_packet::request, .call = 2}, body);
        return send_fragment(fragment);
    }
    std::vector<std::byte> results_of(std::uint64_t sent) {
        const auto piece = wire::decode_rpc_response(reply_to(sent));
        EXPECT_TRUE(piece and piece->last);
        if (not piece) return {};
        return {piece->bytes.begin(), piece->bytes.end()};
    }

private:
    std::uint64_t send_fragment(const std::vector<std::byte>& fragment) {
        return by_.send(command::ioctl, wire::ioctl_args{.code = wire::control_code::pipe_transceive,
                                                         .file = pipe_,
                                                         .output_bytes_max = 8192,
                                                         .input = fragment});
    }
    bytes_view reply_to(std::uint64_t sent) {
        last_ = by_.answer_to(sent);
        EXPECT_EQ(last_.status(), nt_status::success);
        const auto reply = wire::decode_ioctl_reply(last_.message());
        EXPECT_TRUE(reply);
        return reply ? reply->output : bytes_view{};
    }

    compliant_client& by_;
    wire::file_id pipe_{};
    compliant_client::answer last_;
};

std::uint32_t status_of_call(const std::vector<std::byte>& results) {
    if (results.size() < sizeof(le32)) return 0xFFFFFFFF;
    return bytes_view(results).take_at<le32>(results.size() - sizeof(le32))->value();
}

class rpc_calls : public command_test {
protected:
    rpc_calls() : command_test([](server::server_configuration& rules) { rules.allows_guests = true; }) {
        where_.admit(std::vector<std::string>{"u", "boss"});
        server_of_test().context().administrators.publish({"Boss"});
    }

    void log_on_boss() { EXPECT_EQ(boss_.log_on("boss", "p"), nt_status::success); }

    // Opens a policy. The rest of the arguments follow its handle.
    static ndr_writer with_policy(bound_pipe& pipe) {
        ndr_writer opening(200);
        opening.pointer(false);
        opening.u32(24);
        for (int i = 0; i != 5; ++i)
            opening.u32(0);
        opening.u32(wire::policy_lookup_names);
        const auto opened = pipe.call(44, opening);
        EXPECT_EQ(status_of_call(opened), 0U);
        ndr_writer arguments(1000);
        arguments.raw(*bytes_view(opened).first(sizeof(wire::rpc_handle)));
        return arguments;
    }
    // LsarLookupNames3 of one name. Returns its SID; std::nullopt if it is not found.
    static std::optional<wire::sid> sid_of_name(bound_pipe& pipe, std::string_view name) {
        ndr_writer arguments = with_policy(pipe);
        arguments.u32(1);
        arguments.u32(1);
        arguments.counted_text_head(name);
        arguments.counted_text(name);
        arguments.u32(0);
        arguments.pointer(false);
        arguments.u16(1);
        for (int i = 0; i != 3; ++i)
            arguments.u32(0);
        const auto results = pipe.call(68, arguments);
        if (status_of_call(results) != 0) return std::nullopt;
        ndr_reader in(results);
        for (int i = 0; i != 5; ++i)  // one domain
            EXPECT_TRUE(in.u32());
        const auto domain = in.counted_text_head();
        EXPECT_EQ(in.pointer(), true);
        EXPECT_TRUE(domain and in.counted_text(*domain) and in.sid_referent());
        for (int i = 0; i != 7; ++i)
            EXPECT_TRUE(in.u32());
        return in.sid_referent();
    }

    static ndr_writer texts(std::initializer_list<std::string_view> all) {
        ndr_writer arguments(1000);
        arguments.pointer(false);
        for (const std::string_view one : all) {
            arguments.pointer(not one.empty());
            if (not one.empty()) arguments.text(one);
        }
        return arguments;
    }
    static ndr_writer list_of(std::initializer_list<std::string_view> filters, std::uint32_t level) {
        ndr_writer arguments = texts(filters);
        arguments.u32(level);
        arguments.u32(level);
        arguments.pointer(false);
        arguments.u32(0xFFFFFFFF);
        arguments.pointer(false);
        return arguments;
    }
    // The users in a list of sessions at level 10.
    static std::vector<std::string> users_of(bound_pipe& pipe) {
        const auto results = pipe.call(12, list_of({"", ""}, 10));
        EXPECT_EQ(status_of_call(results), wire::rpc_no_error);
        ndr_reader in(results);
        EXPECT_TRUE(in.u32() and in.u32() and in.pointer());
        const std::uint32_t count = in.u32().value_or(0);
        for (std::uint32_t left = 2 + 4 * count; left != 0; --left)
            EXPECT_TRUE(in.u32());
        std::vector<std::string> users;
        for (std::uint32_t left = count; left != 0; --left) {
            EXPECT_EQ(in.text(), "127.0.0.1");
            users.push_back(in.text().value_or("?"));
        }
        return users;
    }
    struct listed_file {
        wire::rpc_file of;
        std::string path;
    };
    // The only open in a list at level 3, for the administrator.
    static std::optional<listed_file> only_file(bound_pipe& pipe) {
        const auto results = pipe.call(9, list_of({"", ""}, 3));
        EXPECT_EQ(status_of_call(results), wire::rpc_no_error);
        ndr_reader in(results);
        EXPECT_TRUE(in.u32() and in.u32() and in.pointer());
        if (in.u32() != 1U) return std::nullopt;
        EXPECT_TRUE(in.pointer() and in.u32());
        listed_file one{.of = {.id = in.u32().value_or(0)}, .path = {}};
        one.of.permissions = in.u32().value_or(0);
        one.of.locks = in.u32().value_or(0);
        EXPECT_TRUE(in.pointer() and in.pointer());
        one.path = in.text().value_or("");
        one.of.user = in.text().value_or("");
        return one;
    }

    // Logs the user u on so often, on the connection of the first client.
    void log_on_often(int times) {
        for (; times != 0; --times) {
            client().use_ids({});
            ASSERT_EQ(client().log_on("u", "p"), nt_status::success);
        }
    }

    compliant_client boss_{where_, 2};
};

// Calls `look` in each turn of a loop while it exists.
template <class Look>
class each_turn {
public:
    each_turn(world& where, Look look) : look_(std::move(look)), looking_(*where.loop), where_(where) {
        looking_.spawn(watch());
    }
    ~each_turn() {
        is_over_ = true;
        bool has_ended = false;
        where_.clients.spawn(finish(has_ended));
        where_.run();
        EXPECT_TRUE(has_ended);
    }

private:
    io::task<void> watch() {
        while (not is_over_) {
            look_();
            io::task<void> turn = server::later_turn(*where_.loop);
            co_await std::move(turn);
        }
    }
    io::task<void> finish(bool& has_ended) {
        co_await looking_.join();
        has_ended = true;
    }

    Look look_;
    io::task_group looking_;
    world& where_;
    bool is_over_ = false;
};

TEST_F(rpc_calls, find_the_sid_that_descriptors_have_for_a_user) {
    bound_pipe pipe(client(), "lsarpc", wire::rpc_lsarpc_interface);
    EXPECT_EQ(sid_of_name(pipe, "u"), server::sid_of({.name = "u", .domain = {}}));
    EXPECT_EQ(sid_of_name(pipe, "SLUICE\\Boss"), server::sid_of({.name = "boss", .domain = {}}));
    EXPECT_EQ(sid_of_name(pipe, "nobody"), std::nullopt);
}

TEST_F(rpc_calls, keep_the_users_from_guests) {
    where_.accounts.guest = "u";
    compliant_client guest(where_, 3);
    ASSERT_EQ(guest.log_on("u", "p"), nt_status::success);
    bound_pipe pipe(guest, "lsarpc", wire::rpc_lsarpc_interface);
    EXPECT_EQ(sid_of_name(pipe, "boss"), std::nullopt);
    EXPECT_EQ(sid_of_name(pipe, "Everyone"), wire::sid_everyone);
}

TEST_F(rpc_calls, list_the_sessions_of_all_users_for_administrators_only) {
    log_on_boss();
    bound_pipe pipe(client(), "srvsvc", wire::rpc_srvsvc_interface);
    EXPECT_EQ(users_of(pipe), std::vector<std::string>{"u"});
    bound_pipe of_boss(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    EXPECT_EQ(users_of(of_boss), (std::vector<std::string>{"u", "boss"}));
    server_of_test().context().administrators.publish({});
    EXPECT_EQ(users_of(of_boss), std::vector<std::string>{"boss"});
}

TEST_F(rpc_calls, end_the_sessions_of_a_user) {
    log_on_boss();
    const wire::file_id file = open_for(wire::file_all_access);
    bound_pipe pipe(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    EXPECT_EQ(status_of_call(pipe.call(13, texts({"\\\\127.0.0.1", "U"}))), wire::rpc_no_error);
    EXPECT_EQ(server_of_test().gauges().sessions, 1U);
    const auto lines = where_.log.take();
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_TRUE(
        lines[0].starts_with("session ended by administrator by=boss user=u client=127.0.0.1 session="));
    EXPECT_TRUE(lines[0].ends_with(" result=ended"));
    EXPECT_EQ(close(file), nt_status::user_session_deleted);
    EXPECT_EQ(users_of(pipe), std::vector<std::string>{"boss"});
    EXPECT_EQ(status_of_call(pipe.call(13, texts({"", "u"}))), wire::rpc_error_client_not_found);
    EXPECT_EQ(status_of_call(pipe.call(13, texts({"10.0.0.9", "boss"}))), wire::rpc_error_client_not_found);
}

TEST_F(rpc_calls, end_the_session_that_calls) {
    log_on_boss();
    bound_pipe pipe(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    EXPECT_EQ(status_of_call(pipe.call(13, texts({"", "boss"}))), wire::rpc_no_error);
    EXPECT_EQ(boss_.connect_tree("files"), nt_status::user_session_deleted);
    EXPECT_EQ(server_of_test().gauges().sessions, 1U);
}

TEST_F(rpc_calls, end_many_sessions_in_parts_and_the_own_one_last) {
    constexpr int sessions = 40;
    log_on_boss();
    log_on_often(sessions - 2);
    bound_pipe pipe(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    const auto& all = server_of_test().context().sessions;
    std::size_t before = all.size();
    ASSERT_EQ(before, std::size_t{sessions});
    std::size_t most_in_turn = 0;
    {
        const each_turn counted(where_, [&] {
            most_in_turn = std::max(most_in_turn, before - all.size());
            before = all.size();
        });
        EXPECT_EQ(status_of_call(pipe.call(13, texts({"127.0.0.1", ""}))), wire::rpc_no_error);
    }
    EXPECT_EQ(all.size(), 0U);
    EXPECT_GT(most_in_turn, 0U);
    EXPECT_LE(most_in_turn, server::limits::pipe_ends_per_turn);
    const auto lines = where_.log.take();
    EXPECT_EQ(lines.size(), std::size_t{sessions}) << "each is reported";
    EXPECT_NE(lines.back().find("user=boss"), std::string::npos);
}

TEST_F(rpc_calls, end_few_opens_in_each_turn_with_their_sessions) {
    constexpr int sessions = 12;
    constexpr std::size_t opens_of_each = 6;
    log_on_boss();
    compliant_client again(where_, 3);
    ASSERT_EQ(again.log_on("boss", "p"), nt_status::success);
    where_.admit(std::vector<std::string>{"u", "v", "boss"});
    for (int i = 0; i != sessions; ++i) {
        client().use_ids({});
        ASSERT_EQ(client().log_on(i % 2 == 0 ? "u" : "v", "p"), nt_status::success);
        ASSERT_EQ(client().connect_tree("files"), nt_status::success);
        for (std::size_t j = 0; j != opens_of_each; ++j)
            (void)open_for(wire::file_generic_read);
    }
    bound_pipe first(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    bound_pipe second(again, "srvsvc", wire::rpc_srvsvc_interface);
    const auto& all = server_of_test().context().opens;
    std::size_t before = all.size();
    std::size_t most_in_turn = 0;
    {
        const each_turn counted(where_, [&] {
            most_in_turn = std::max(most_in_turn, before - all.size());
            before = all.size();
        });
        const std::uint64_t of_first = first.send(13, texts({"", "u"}));
        const std::uint64_t of_second = second.send(13, texts({"", "v"}));
        EXPECT_EQ(status_of_call(first.results_of(of_first)), wire::rpc_no_error);
        EXPECT_EQ(status_of_call(second.results_of(of_second)), wire::rpc_no_error);
    }
    EXPECT_EQ(all.size(), 2U) << "the pipes of the administrator";
    EXPECT_GT(most_in_turn, 0U);
    EXPECT_LT(most_in_turn, server::limits::pipe_ends_per_turn + opens_of_each);
}

TEST_F(rpc_calls, do_not_process_a_request_whose_session_has_ended_in_the_same_turn) {
    log_on_boss();
    bound_pipe first(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    const wire::file_id second = boss_.create("srvsvc").file;
    auto& host = server_of_test().context();
    const std::shared_ptr<server::open> of_second = host.opens.find(second);
    const auto fragment = wire::encode_srvsvc_bind(1);
    std::uint64_t ends = 0;
    std::uint64_t written = 0;
    {
        server::one_shot_event<nt_status> granted(*where_.loop);
        const server::pipe_queue::place earlier(host.loops().front()->pipe_requests, host.quotas.user("boss"),
                                                granted);
        ends = first.send(13, texts({"", "boss"}));
        written = boss_.send(command::write, wire::write_args{.file = second, .data = fragment});
        EXPECT_FALSE(boss_.is_answered(written));
    }
    EXPECT_EQ(status_of_call(first.results_of(ends)), wire::rpc_no_error);
    EXPECT_EQ(boss_.answer_to(written).status(), nt_status::user_session_deleted);
    EXPECT_FALSE(of_second->pipe->has_answer());
}

TEST_F(rpc_calls, end_each_session_once_if_several_name_it) {
    constexpr int sessions = 40;
    log_on_boss();
    compliant_client again(where_, 3);
    ASSERT_EQ(again.log_on("boss", "p"), nt_status::success);
    log_on_often(sessions - 1);
    bound_pipe first(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    bound_pipe second(again, "srvsvc", wire::rpc_srvsvc_interface);
    const std::uint64_t of_first = first.send(13, texts({"", "u"}));
    const std::uint64_t of_second = second.send(13, texts({"", "u"}));
    EXPECT_EQ(status_of_call(first.results_of(of_first)), wire::rpc_no_error);
    EXPECT_EQ(status_of_call(second.results_of(of_second)), wire::rpc_no_error)
        << "the sessions have not all ended when it comes";
    EXPECT_EQ(server_of_test().gauges().sessions, 2U);
    EXPECT_EQ(where_.log.take().size(), std::size_t{sessions});
}

TEST_F(rpc_calls, end_no_session_for_others) {
    log_on_boss();
    bound_pipe pipe(client(), "srvsvc", wire::rpc_srvsvc_interface);
    EXPECT_EQ(status_of_call(pipe.call(13, texts({"", "boss"}))), wire::rpc_error_access_denied);
    EXPECT_EQ(status_of_call(pipe.call(13, texts({"", "u"}))), wire::rpc_error_access_denied);
    EXPECT_EQ(server_of_test().gauges().sessions, 2U);
}

TEST_F(rpc_calls, list_and_close_the_opens_of_all_users) {
    log_on_boss();
    const wire::file_id file = open_for(wire::file_all_access, "f");
    bound_pipe pipe(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    const auto listed = only_file(pipe);
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed->path, "C:\\files\\f");
    EXPECT_EQ(listed->of.user, "u");
    EXPECT_EQ(listed->of.permissions, 7U);
    ndr_writer arguments = texts({});
    arguments.u32(listed->of.id);
    EXPECT_EQ(status_of_call(pipe.call(11, arguments)), wire::rpc_no_error);
    EXPECT_EQ(where_.log.take(),
              std::vector<std::string>{
                  "file closed by administrator by=boss user=u path=C:\\files\\f result=STATUS_SUCCESS"});
    EXPECT_EQ(close(file), nt_status::file_closed);
    EXPECT_FALSE(only_file(pipe));
    EXPECT_EQ(status_of_call(pipe.call(11, arguments)), wire::rpc_error_file_not_found);
}

TEST_F(rpc_calls, list_the_tree_connections_of_a_share) {
    log_on_boss();
    bound_pipe pipe(boss_, "srvsvc", wire::rpc_srvsvc_interface);
    const auto results = pipe.call(8, list_of({"files"}, 1));
    ndr_reader in(results);
    EXPECT_TRUE(in.u32() and in.u32() and in.pointer());
    EXPECT_EQ(in.u32(), 1U);
    for (int i = 0; i != 9; ++i)
        EXPECT_TRUE(in.u32());
    EXPECT_EQ(in.text(), "u");
    EXPECT_EQ(in.text(), "127.0.0.1");
    EXPECT_EQ(status_of_call(results), wire::rpc_no_error);
}

TEST_F(rpc_calls, list_each_user_once_who_has_sessions) {
    log_on_boss();
    log_on_often(3);
    bound_pipe pipe(boss_, "wkssvc", wire::rpc_wkssvc_interface);
    const auto results = pipe.call(2, list_of({}, 0));
    EXPECT_EQ(status_of_call(results), wire::rpc_no_error);
    ndr_reader in(results);
    EXPECT_TRUE(in.u32() and in.u32() and in.pointer());
    EXPECT_EQ(in.u32(), 2U);
    EXPECT_TRUE(in.pointer() and in.u32() and in.pointer() and in.pointer());
    EXPECT_EQ(in.text(), "u");
    EXPECT_EQ(in.text(), "boss");
}

TEST_F(rpc_calls, are_processed_one_in_each_turn_of_the_loop) {
    constexpr std::size_t pipes = 5;
    EXPECT_EQ(client().connect_tree("IPC$"), nt_status::success);
    std::vector<wire::file_id> open;
    for (std::size_t i = 0; i != pipes; ++i)
        open.push_back(client().create("srvsvc").file);
    const auto fragment = wire::encode_srvsvc_bind(1);
    const auto& quotas = server_of_test().context().quotas;
    std::size_t before = quotas.in_use(server::limit::pipe_bytes);
    std::size_t turns_with_writes = 0;
    {
        const each_turn counted(where_, [&] {
            const std::size_t now = quotas.in_use(server::limit::pipe_bytes);
            turns_with_writes += now != before ? 1 : 0;
            before = now;
        });
        client().begin_compound();
        std::vector<std::uint64_t> sent;
        for (const wire::file_id& one : open)
            sent.push_back(client().send(command::write, wire::write_args{.file = one, .data = fragment}));
        client().end_compound();
        for (const std::uint64_t one : sent)
            EXPECT_EQ(client().answer_to(one).status(), nt_status::success);
    }
    EXPECT_EQ(turns_with_writes, pipes);
}

TEST_F(rpc_calls, count_the_memory_of_open_objects) {
    bound_pipe pipe(client(), "lsarpc", wire::rpc_lsarpc_interface);
    const auto& quotas = server_of_test().context().quotas;
    const std::size_t before = quotas.in_use(server::limit::pipe_bytes);
    for (std::size_t i = 0; i != wire::rpc_handle_table::handles_max; ++i)
        (void)with_policy(pipe);
    EXPECT_GE(quotas.in_use(server::limit::pipe_bytes),
              before + wire::rpc_handle_table::handles_max * sizeof(wire::rpc_handle));
}

class pipes_with_little_memory : public command_test {
protected:
    pipes_with_little_memory()
        : command_test([](server::server_configuration& rules) {
              rules.bounds.shared[static_cast<std::size_t>(server::limit::pipe_bytes)] = 2000;
          }) {}

    // Writes the beginning of a fragment.
    nt_status write_part(const wire::file_id& pipe) {
        const wire::rpc_head head{.version = le8(5),
                                  .version_minor = {},
                                  .packet = {},
                                  .flags = le8(3),
                                  .representation = le32(0x10),
                                  .fragment_length = le16(5000),
                                  .auth_length = {},
                                  .call = {}};
        const bytes_view bytes = bytes_of(head);
        std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        text.resize(1500);
        return write(pipe, text);
    }
};

TEST_F(pipes_with_little_memory, disconnect_one_that_would_exceed_the_share_of_its_user) {
    const wire::file_id first = open_pipe();
    EXPECT_EQ(write_part(first), nt_status::success);
    const auto& host = server_of_test().context();
    EXPECT_GE(host.quotas.in_use(server::limit::pipe_bytes), 1500U);
    const wire::file_id second = client().create("lsarpc").file;
    EXPECT_EQ(write_part(second), nt_status::pipe_broken);
    EXPECT_EQ(host.rejections.of(server::limit::pipe_bytes), 1U);
    EXPECT_EQ(close(second), nt_status::success);
    EXPECT_EQ(close(first), nt_status::success);
    EXPECT_EQ(host.quotas.in_use(server::limit::pipe_bytes), 0U);
    EXPECT_EQ(write_part(client().create("srvsvc").file), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
