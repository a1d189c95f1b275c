#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "sluice/smb/wire/rpc/rpc_host_testing.hpp"
#include "sluice/smb/wire/rpc/rpc_srvsvc.hpp"

namespace sluice::smb::wire {
namespace {

using namespace rpc_testing;

constexpr std::uint16_t connection_list = 8;
constexpr std::uint16_t file_list = 9;
constexpr std::uint16_t file_information = 10;
constexpr std::uint16_t close_file = 11;
constexpr std::uint16_t session_list = 12;
constexpr std::uint16_t delete_session = 13;

class srvsvc_sessions : public testing::Test {
protected:
    srvsvc_sessions() {
        bind(pipe_);
        host_.caller_.is_administrator = true;
    }

    static void add_text(ndr_writer& to, std::string_view text) {
        to.pointer(not text.empty());
        if (not text.empty()) to.text(text);
    }
    struct wanted {
        std::uint32_t level = 0;
        std::uint32_t bytes_max = 0xFFFFFFFF;
        std::uint32_t after = 0;
    };
    // The results of a call for a list, with filters.
    std::vector<std::byte> list(std::uint16_t operation, std::initializer_list<std::string_view> filters,
                                const wanted& how) {
        ndr_writer arguments(2000);
        arguments.pointer(false);
        for (const std::string_view one : filters)
            add_text(arguments, one);
        arguments.u32(how.level);
        arguments.u32(how.level);
        arguments.pointer(true);
        arguments.u32(0);
        arguments.pointer(false);
        arguments.u32(how.bytes_max);
        arguments.pointer(true);
        arguments.u32(how.after);
        return call(pipe_, operation, arguments);
    }
    static std::uint32_t last_number(const std::vector<std::byte>& results) {
        return bytes_view(results).take_at<le32>(results.size() - 4)->value();
    }
    // Consumes the beginning of a list of some entries, and the numbers of each.
    static void expect_numbers(ndr_reader& in, std::uint32_t level, std::uint32_t entries,
                               std::size_t numbers_each) {
        EXPECT_EQ(in.u32(), level);
        EXPECT_EQ(in.u32(), level);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), entries);
        EXPECT_EQ(in.pointer(), entries != 0);
        if (entries != 0) EXPECT_EQ(in.u32(), entries);
        for (std::size_t left = entries * numbers_each; left != 0; --left)
            EXPECT_TRUE(in.u32().has_value());
    }
    static void expect_end(ndr_reader& in, std::uint32_t total, std::uint32_t next, std::uint32_t status) {
        EXPECT_EQ(in.u32(), total);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), next);
        EXPECT_EQ(in.u32(), status);
        EXPECT_EQ(in.remaining(), 0u);
    }
    // The status of a call with these texts and numbers.
    std::uint32_t status_of(std::uint16_t operation, std::initializer_list<std::string_view> texts,
                            std::initializer_list<std::uint32_t> numbers = {}) {
        ndr_writer arguments(2000);
        arguments.pointer(false);
        for (const std::string_view one : texts)
            add_text(arguments, one);
        for (const std::uint32_t one : numbers)
            arguments.u32(one);
        return last_number(call(pipe_, operation, arguments));
    }

    host_of_tests host_;
    whole_pipe pipe_{rpc_service::srvsvc, host_};
};

TEST_F(srvsvc_sessions, are_listed_at_every_level) {
    for (const std::uint32_t level : {0u, 1u, 2u, 10u, 502u}) {
        const auto results = list(session_list, {"", ""}, {.level = level});
        ndr_reader in(results);
        expect_numbers(in, level, 2, level == 0 ? 1 : level == 10 ? 4 : level == 1 ? 6 : level == 2 ? 7 : 8);
        for (const rpc_session& one : host_.sessions_) {
            EXPECT_EQ(in.text(), one.client);
            if (level != 0) EXPECT_EQ(in.text(), one.user);
            if (level == 2 or level == 502) EXPECT_EQ(in.text(), one.client_type);
            if (level == 502) EXPECT_EQ(in.text(), "TCP");
        }
        expect_end(in, 2, 0, rpc_no_error);
    }
    EXPECT_EQ(last_number(list(session_list, {"", ""}, {.level = 3})), rpc_error_invalid_level);
}

TEST_F(srvsvc_sessions, are_filtered_by_client_and_user) {
    for (const auto& [client, user] : {std::pair{"\\\\10.0.0.2", ""}, {"", "BOB"}, {"10.0.0.2", "bob"}}) {
        const auto results = list(session_list, {client, user}, {.level = 10});
        ndr_reader in(results);
        expect_numbers(in, 10, 1, 4);
        EXPECT_EQ(in.text(), "10.0.0.2");
        EXPECT_EQ(in.text(), "bob");
        expect_end(in, 1, 0, rpc_no_error);
    }
    const auto results = list(session_list, {"10.0.0.1", "bob"}, {.level = 10});
    ndr_reader in(results);
    expect_numbers(in, 10, 0, 0);
    expect_end(in, 0, 0, rpc_no_error);
}

TEST_F(srvsvc_sessions, are_listed_in_parts_of_the_preferred_size) {
    const auto first = list(session_list, {"", ""}, {.level = 0, .bytes_max = 1});
    ndr_reader in(first);
    expect_numbers(in, 0, 1, 1);
    EXPECT_EQ(in.text(), "10.0.0.1");
    expect_end(in, 2, 3, rpc_error_more_data);
    const auto second = list(session_list, {"", ""}, {.level = 0, .bytes_max = 1, .after = 3});
    ndr_reader rest(second);
    expect_numbers(rest, 0, 1, 1);
    EXPECT_EQ(rest.text(), "10.0.0.2");
    expect_end(rest, 1, 0, rpc_no_error);
}

TEST_F(srvsvc_sessions, are_listed_in_parts_of_a_limited_number) {
    host_.sessions_.clear();
    for (std::uint32_t id = 1; id != 1500; ++id)
        host_.sessions_.push_back({.id = id, .client = "10.0.0.1", .user = "alice"});
    const auto many = list(session_list, {"", ""}, {.level = 0});
    ASSERT_GT(many.size(), 4000u) << "the first fragment of several";
    EXPECT_EQ(bytes_view(many).take_at<le32>(12)->value(), rpc_listed_max);
}

TEST_F(srvsvc_sessions, have_opens_that_are_listed_in_parts_of_a_limited_size) {
    host_.files_.clear();
    for (std::uint32_t id = 1; id != 100; ++id)
        host_.files_.push_back({.id = id});
    host_.paths_ = {std::string(30'000, 'x')};
    const auto large = list(file_list, {"", ""}, {.level = 3});
    EXPECT_EQ(bytes_view(large).take_at<le32>(12)->value(), 8u);
}

TEST_F(srvsvc_sessions, are_listed_for_administrators_if_they_belong_to_others) {
    host_.caller_.is_administrator = false;
    for (const std::uint32_t level : {1u, 2u, 502u})
        EXPECT_EQ(last_number(list(session_list, {"", ""}, {.level = level})), rpc_error_access_denied);
    for (const std::uint32_t level : {0u, 10u})
        EXPECT_EQ(last_number(list(session_list, {"", ""}, {.level = level})), rpc_no_error);
    EXPECT_EQ(last_number(list(file_list, {"", ""}, {.level = 3})), rpc_error_access_denied);
    EXPECT_EQ(last_number(list(connection_list, {"Data"}, {.level = 1})), rpc_error_access_denied);
    EXPECT_EQ(status_of(file_information, {}, {17, 3}), rpc_error_access_denied);
    host_.caller_.is_guest = true;
    EXPECT_EQ(last_number(list(session_list, {"", ""}, {.level = 10})), rpc_error_access_denied);
}

TEST_F(srvsvc_sessions, are_ended_by_client_and_user) {
    EXPECT_EQ(status_of(delete_session, {"\\\\10.0.0.1", "alice"}), rpc_no_error);
    EXPECT_EQ(status_of(delete_session, {"", "nobody"}), rpc_error_client_not_found);
    EXPECT_EQ(host_.ended_, "10.0.0.1/alice /nobody ");
}

TEST_F(srvsvc_sessions, are_not_all_ended_by_a_call_without_names) {
    EXPECT_EQ(status_of(delete_session, {"", ""}), rpc_error_client_not_found);
    EXPECT_EQ(status_of(delete_session, {"\\\\", ""}), rpc_error_client_not_found);
    EXPECT_EQ(host_.ended_, "");
}

TEST_F(srvsvc_sessions, and_opens_end_for_administrators_only) {
    host_.caller_.is_administrator = false;
    EXPECT_EQ(status_of(delete_session, {"\\\\10.0.0.1", "alice"}), rpc_error_access_denied);
    EXPECT_EQ(status_of(close_file, {}, {17}), rpc_error_access_denied);
    EXPECT_EQ(host_.ended_, "");
}

TEST_F(srvsvc_sessions, have_opens_that_are_listed_filtered_and_closed) {
    const auto results = list(file_list, {"", ""}, {.level = 3});
    ndr_reader in(results);
    expect_numbers(in, 3, 2, 5);
    for (std::size_t i = 0; i != host_.files_.size(); ++i) {
        EXPECT_EQ(in.text(), host_.paths_[i]);
        EXPECT_EQ(in.text(), host_.files_[i].user);
    }
    expect_end(in, 2, 0, rpc_no_error);
    for (const auto& [base, user] : {std::pair{"c:\\data", ""}, {"C:\\Data\\", ""}, {"", "Alice"}}) {
        const auto some = list(file_list, {base, user}, {.level = 2});
        ndr_reader filtered(some);
        expect_numbers(filtered, 2, 1, 0);
        EXPECT_EQ(filtered.u32(), 17u);
        expect_end(filtered, 1, 0, rpc_no_error);
    }
    EXPECT_EQ(last_number(list(file_list, {"", ""}, {.level = 1})), rpc_error_invalid_level);
    EXPECT_EQ(status_of(close_file, {}, {17}), rpc_no_error);
    EXPECT_EQ(status_of(close_file, {}, {18}), rpc_error_file_not_found);
    EXPECT_EQ(host_.ended_, "17 18 ");
}

TEST_F(srvsvc_sessions, have_opens_that_are_described_one_by_one) {
    ndr_writer arguments(200);
    arguments.pointer(false);
    arguments.u32(33);
    arguments.u32(3);
    const auto results = call(pipe_, file_information, arguments);
    ndr_reader in(results);
    for (const std::uint32_t expected : {3u})
        EXPECT_EQ(in.u32(), expected);
    EXPECT_EQ(in.pointer(), true);
    for (const std::uint32_t expected : {33u, 3u, 4u})
        EXPECT_EQ(in.u32(), expected);
    EXPECT_EQ(in.pointer(), true);
    EXPECT_EQ(in.pointer(), true);
    EXPECT_EQ(in.text(), "C:\\Database\\b");
    EXPECT_EQ(in.text(), "bob");
    EXPECT_EQ(in.u32(), rpc_no_error);
    EXPECT_EQ(status_of(file_information, {}, {34, 3}), rpc_error_file_not_found);
    EXPECT_EQ(status_of(file_information, {}, {33, 4}), rpc_error_invalid_level);
}

TEST_F(srvsvc_sessions, continue_a_list_of_opens_after_those_that_a_call_has_examined) {
    host_.files_.clear();
    for (std::uint32_t id = 1; id <= rpc_examined_max + 1; ++id)
        host_.files_.push_back({.id = id, .user = id > rpc_examined_max ? "bob" : "alice"});
    const auto first = list(file_list, {"", "bob"}, {.level = 2});
    ndr_reader in(first);
    expect_numbers(in, 2, 0, 0);
    expect_end(in, 1, rpc_examined_max, rpc_error_more_data);
    const auto second = list(file_list, {"", "bob"}, {.level = 2, .after = rpc_examined_max});
    ndr_reader rest(second);
    expect_numbers(rest, 2, 1, 1);
    expect_end(rest, 1, 0, rpc_no_error);
}

TEST_F(srvsvc_sessions, continue_after_those_that_a_call_has_examined) {
    host_.sessions_.clear();
    for (std::uint32_t id = 1; id <= rpc_examined_max + 1; ++id)
        host_.sessions_.push_back({.id = id, .user = id > rpc_examined_max ? "bob" : "alice"});
    const auto first = list(session_list, {"", "bob"}, {.level = 0});
    ndr_reader in(first);
    expect_numbers(in, 0, 0, 0);
    expect_end(in, 1, rpc_examined_max, rpc_error_more_data);
    const auto second = list(session_list, {"", "bob"}, {.level = 0, .after = rpc_examined_max});
    ndr_reader rest(second);
    expect_numbers(rest, 0, 1, 1);
    EXPECT_EQ(rest.text(), "");
    expect_end(rest, 1, 0, rpc_no_error);
}

TEST_F(srvsvc_sessions, have_opens_of_which_a_call_determines_a_limited_number_of_paths) {
    host_.files_.clear();
    for (std::uint32_t id = 1; id <= rpc_paths_max + 1; ++id)
        host_.files_.push_back({.id = id});
    const auto first = list(file_list, {"C:\\Other", ""}, {.level = 2});
    ndr_reader in(first);
    expect_numbers(in, 2, 0, 0);
    expect_end(in, 1, rpc_paths_max, rpc_error_more_data);
    const auto second = list(file_list, {"C:\\Other", ""}, {.level = 2, .after = rpc_paths_max});
    ndr_reader rest(second);
    expect_numbers(rest, 2, 0, 0);
    expect_end(rest, 0, 0, rpc_no_error);
}

TEST_F(srvsvc_sessions, have_opens_whose_paths_are_not_determined_if_the_call_needs_none) {
    (void)list(file_list, {"", ""}, {.level = 2});
    (void)list(file_list, {"", "nobody"}, {.level = 3});
    EXPECT_EQ(host_.searches_, 0u);
    (void)list(file_list, {"", ""}, {.level = 3});
    EXPECT_EQ(host_.searches_, 2u);
}

TEST_F(srvsvc_sessions, have_tree_connections_that_are_listed_together) {
    host_.trees_.push_back({.id = 2, .session = 9, .client = "10.0.0.2", .user = "bob", .share = "Data"});
    const auto first = list(connection_list, {"Data"}, {.level = 0, .bytes_max = 1});
    ndr_reader in(first);
    expect_numbers(in, 0, 1, 1);
    expect_end(in, 2, 3, rpc_error_more_data);
    const auto second = list(connection_list, {"\\\\10.0.0.2"}, {.level = 0, .bytes_max = 1, .after = 3});
    ndr_reader rest(second);
    expect_numbers(rest, 0, 2, 1);
    expect_end(rest, 2, 0, rpc_no_error);
}

TEST_F(srvsvc_sessions, have_tree_connections_that_are_listed_by_share_or_computer) {
    const auto of_share = list(connection_list, {"data"}, {.level = 1});
    ndr_reader in(of_share);
    expect_numbers(in, 1, 1, 7);
    EXPECT_EQ(in.text(), "alice");
    EXPECT_EQ(in.text(), "10.0.0.1");
    expect_end(in, 1, 0, rpc_no_error);
    const auto of_computer = list(connection_list, {"\\\\10.0.0.2"}, {.level = 1});
    ndr_reader other(of_computer);
    expect_numbers(other, 1, 1, 7);
    EXPECT_EQ(other.text(), "bob");
    EXPECT_EQ(other.text(), "Other");
    EXPECT_EQ(last_number(list(connection_list, {"Data"}, {.level = 0})), rpc_no_error);
    EXPECT_EQ(last_number(list(connection_list, {"Data"}, {.level = 2})), rpc_error_invalid_level);
}

TEST_F(srvsvc_sessions, fault_arguments_that_end_early) {
    for (std::uint16_t operation = connection_list; operation <= delete_session; ++operation) {
        ASSERT_TRUE(pipe_.write(request(operation, {})));
        EXPECT_EQ(fault_of(next_message(pipe_)), 0x6F7u) << operation;
    }
}

}  // namespace
}  // namespace sluice::smb::wire
