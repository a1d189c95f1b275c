#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/auth/logon/negotiator.hpp"
#include "sluice/smb/auth/logon/nt_hash.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/fsctl/fsctl_range.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Requests that other SMB servers carried out, according to published vulnerabilities
// (docs/cves.md), although the client had not obtained the right to make them.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::access_mask;
using wire::command;
using wire::nt_status;

class open_without_write_access : public served {
protected:
    open_without_write_access()
        : served([](smb::server::server_configuration& configuration) {
              volume = configuration.shares.back().volume.get();
          }) {
        const wire::file_id written = client().create("file").file;
        EXPECT_EQ(client().call(command::write, wire::write_args{.file = written, .data = content}).status(),
                  nt_status::success);
        auto how = compliant_client::for_everything();
        how.desired_access = access_mask::read_data | access_mask::read_attributes | access_mask::read_ea |
                             access_mask::read_control;
        file = client().create("file", how).file;
    }

    [[nodiscard]] nt_status control(wire::control_code code, bytes_view input) {
        const wire::ioctl_args args{.code = code, .file = file, .output_bytes_max = 1024, .input = input};
        return client().call(command::ioctl, args).status();
    }

    [[nodiscard]] nt_status set(wire::info_type type, wire::file_information_class what, bytes_view input,
                                std::uint32_t additional_information = 0) {
        const wire::set_info_args args{.type = type,
                                       .information_class = static_cast<std::uint8_t>(what),
                                       .additional_information = additional_information,
                                       .file = file,
                                       .input = input};
        return client().call(command::set_info, args).status();
    }

    void expect_unchanged() {
        const auto got = client().call(command::read, wire::read_args{.file = file, .length_bytes = 100});
        const auto reply = wire::decode_read_reply(got.message());
        ASSERT_TRUE(reply);
        EXPECT_TRUE(std::ranges::equal(reply->data, content));
    }

    // An empty, self-relative descriptor.
    static constexpr std::array empty_descriptor{
        std::byte{1}, std::byte{}, std::byte{}, std::byte{0x80}, std::byte{}, std::byte{}, std::byte{},
        std::byte{},  std::byte{}, std::byte{}, std::byte{},     std::byte{}, std::byte{}, std::byte{},
        std::byte{},  std::byte{}, std::byte{}, std::byte{},     std::byte{}, std::byte{}};
    static constexpr std::array content{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    static inline vfs::volume* volume = nullptr;  // the share is a view of it
    wire::file_id file;
};

TEST_F(open_without_write_access, refuses_each_control_that_changes_the_file) {
    std::array<std::byte, 16> room{};
    byte_writer writer(room);
    wire::encode_set_zero_data(writer, {.offset = 0, .length = sizeof content});
    const bytes_view zeros = *writer.finish();
    EXPECT_EQ(control(wire::control_code::set_zero_data, zeros), nt_status::access_denied);
    EXPECT_EQ(control(wire::control_code::set_sparse, {}), nt_status::access_denied);
    EXPECT_EQ(control(wire::control_code::set_compression, {}), nt_status::access_denied);
    EXPECT_EQ(control(wire::control_code::file_level_trim, {}), nt_status::access_denied);
    EXPECT_EQ(control(wire::control_code::set_reparse_point, {}), nt_status::access_denied);
    EXPECT_EQ(control(wire::control_code::delete_reparse_point, {}), nt_status::access_denied);
    expect_unchanged();
}

TEST_F(open_without_write_access, refuses_each_kind_of_file_information) {
    using enum wire::file_information_class;
    const std::array<std::byte, 128> zeros{};
    for (const auto what :
         {basic, end_of_file, allocation, valid_data_length, full_ea, disposition, disposition_ex})
        EXPECT_EQ(set(wire::info_type::file, what, zeros), nt_status::access_denied) << int(what);
    expect_unchanged();
}

TEST_F(open_without_write_access, refuses_a_rename_by_another_or_by_an_empty_name) {
    for (const char* const name : {"other", ""}) {
        std::array<std::byte, 256> room{};
        byte_writer writer(room);
        ASSERT_TRUE(encode(writer, wire::rename_information{.replace_if_exists = true, .target = name}));
        EXPECT_NE(set(wire::info_type::file, wire::file_information_class::rename, *writer.finish()),
                  nt_status::success);
    }
    auto how = compliant_client::for_everything();
    how.disposition = wire::create_disposition::open;
    client().create("file", how);
    expect_unchanged();
}

TEST_F(open_without_write_access, refuses_each_part_of_a_security_descriptor) {
    // Owner, group, DACL, SACL, label, attribute, scope, backup.
    for (const std::uint32_t part : {1U, 2U, 4U, 8U, 0x10U, 0x20U, 0x40U, 0x10000U})
        EXPECT_EQ(set(wire::info_type::security, {}, empty_descriptor, part), nt_status::access_denied)
            << part;
}

// Storing the default would detach it from the mode of the file, which it follows.
TEST_F(open_without_write_access, stores_no_security_descriptor_when_no_part_is_named) {
    EXPECT_EQ(set(wire::info_type::security, {}, empty_descriptor, 0), nt_status::success);
    const auto node = volume->find("file", vfs::follow_links::no);
    ASSERT_TRUE(node);
    const auto stored = (*node)->attached()->security();
    ASSERT_TRUE(stored);
    EXPECT_TRUE(stored->empty());
}

class previous_session : public served {
protected:
    // Sends a first token and, if there is a password, the second; both name the first client's
    // session as the previous one. Returns the status of the last reply.
    nt_status replace_session_of_first_client(compliant_client& attacker, const std::string& password) {
        const auth::credentials who{.user = "u",
                                    .domain = {},
                                    .workstation = {},
                                    .target_name = {},
                                    .hash = auth::nt_hash::of_password(password).value()};
        auth::initiating_negotiator initiator(who, where_.secrets, where_.clock);
        std::vector<std::byte> token;
        nt_status last = nt_status::success;
        for (int leg = 0; leg != 2; ++leg) {
            const auto step = initiator.step(token);
            const auto* const next = std::get_if<auth::step_continue>(&step);
            if (next == nullptr) break;
            const auto said =
                attacker.call(command::session_setup,
                              wire::session_setup_args{.previous_session_id = client().current_ids().session,
                                                       .security_blob = next->token});
            last = said.status();
            if (last != nt_status::more_processing_required or password.empty()) break;
            attacker.use_ids({.session = said.message().header().session_id});
            const auto blob = wire::decode_session_setup_reply(said.message())->security_blob;
            token.assign(blob.begin(), blob.end());
        }
        return last;
    }
};

TEST_F(previous_session, outlives_a_logon_that_fails_or_that_is_not_completed) {
    compliant_client attacker(where_);
    EXPECT_EQ(replace_session_of_first_client(attacker, ""), nt_status::more_processing_required);
    EXPECT_NE(client().create("still served").file, wire::file_id{});
    attacker.use_ids({});
    EXPECT_EQ(replace_session_of_first_client(attacker, "wrong"), nt_status::logon_failure);
    EXPECT_NE(client().create("still served").file, wire::file_id{});
}

TEST_F(previous_session, ends_when_its_user_has_logged_on_again) {
    compliant_client again(where_);
    EXPECT_EQ(replace_session_of_first_client(again, "p"), nt_status::success);
    EXPECT_EQ(client().connect_tree("files"), nt_status::user_session_deleted);
}

class server_of_others : public served {};

class durable_open : public served {
protected:
    durable_open() {
        auto how = compliant_client::for_everything();
        how.oplock_level = wire::oplock_level::batch;
        how.contexts.durable = true;
        file_ = first_->create("file", how).file;
        first_->close_connection();
    }

    [[nodiscard]] nt_status reconnect_as(const std::string& user) {
        where_.admit(user);
        compliant_client& client = *clients_.emplace_back(std::make_unique<compliant_client>(where_));
        EXPECT_EQ(client.log_on(user, "p"), nt_status::success);
        EXPECT_EQ(client.connect_tree("files"), nt_status::success);
        auto how = compliant_client::for_everything();
        how.oplock_level = wire::oplock_level::batch;
        how.contexts.durable_reconnect = file_;
        return client.answer_to(client.send_create("file", how)).status();
    }

    wire::file_id file_{};
    // The destructor of one lets the timeout of the open pass.
    std::vector<std::unique_ptr<compliant_client>> clients_;
};

TEST_F(durable_open, is_reopened_only_for_its_own_user) {
    EXPECT_EQ(reconnect_as("v"), nt_status::access_denied);
    EXPECT_EQ(reconnect_as("u"), nt_status::success);
}

class lost_client : public served {
protected:
    lost_client() : lost_(where_, 2) {
        EXPECT_EQ(lost_.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(lost_.connect_tree("files"), nt_status::success);
    }
    // Opens "f", which the end of the open deletes, and caches its handle if `key` is not 0.
    void open_to_delete(std::uint8_t key) {
        auto how = compliant_client::for_everything();
        how.options = wire::create_options::delete_on_close;
        if (key != 0) lease(how, key);
        (void)lost_.create("f", how);
    }
    static void lease(wire::create_args& how, std::uint8_t key) {
        how.oplock_level = wire::oplock_level::lease;
        how.contexts.lease = wire::lease{.key = {{std::byte{key}}},
                                         .state = wire::lease_state::read | wire::lease_state::handle};
    }

    compliant_client lost_;
};

// The end of the first open breaks the lease of the second one, which has no channel any more.
TEST_F(lost_client, keeps_no_durable_open_that_the_end_of_another_has_ended) {
    open_to_delete(0);
    auto durable = compliant_client::for_everything();
    lease(durable, 1);
    durable.contexts.durable_v2.emplace();
    durable.contexts.durable_v2->create_guid.bytes[0] = std::byte{1};
    ASSERT_NE(lost_.create("f", durable).contexts.lease->state, wire::lease_state::none);
    lost_.close_connection();
    EXPECT_EQ(first_->call(command::echo, wire::echo_args{}).status(), nt_status::success);
    EXPECT_EQ(where_.server->gauges().opens, 0U);
}

TEST_F(lost_client, ends_opens_that_end_each_other_one_after_the_other) {
    for (std::uint8_t key = 1; key != 200; ++key)
        open_to_delete(key);
    lost_.close_connection();
    EXPECT_EQ(first_->call(command::echo, wire::echo_args{}).status(), nt_status::success);
    EXPECT_EQ(where_.server->gauges().opens, 0U);
    EXPECT_EQ(where_.server->gauges().files, 0U);
}

TEST_F(server_of_others, connection_ends_when_its_client_negotiates_again) {
    const std::array dialects{le16(0x0302)};
    compliant_client another(where_);
    const auto said =
        another.call(command::negotiate,
                     wire::negotiate_args{.dialects = wire::code_list<wire::dialect>(std::span(dialects))});
    EXPECT_EQ(said.status(), nt_status::network_name_deleted) << "the server has closed the connection";
    EXPECT_EQ(client().call(command::echo, wire::echo_args{}).status(), nt_status::success);
}

// A client that sends its first request before it has negotiated a dialect.
class hasty_client final : private simulated_client {
public:
    explicit hasty_client(world& where) : simulated_client(where.connect(), where.clock, 1), where_(where) {}

    // Returns whether the server answered.
    bool is_answered() {
        put(command::session_setup, wire::session_setup_args{.security_blob = blob_});
        bool was_answered = false;
        where_.clients.spawn(exchange(was_answered));
        where_.run();
        return was_answered;
    }

private:
    io::task<void> exchange(bool& was_answered) {
        io::task<bool> sending = send();
        const bool was_sent = co_await std::move(sending);
        EXPECT_TRUE(was_sent);
        io::task<bool> taking = take_reply();
        was_answered = co_await std::move(taking);
    }
    void take_message(const wire::message_view&) override {}
    void adjust(wire::header&) override {}

    static constexpr std::array blob_{std::byte{1}, std::byte{2}};
    world& where_;
};

TEST_F(server_of_others, connection_ends_when_its_client_logs_on_before_it_has_negotiated) {
    hasty_client hasty(where_);
    EXPECT_FALSE(hasty.is_answered());
    EXPECT_EQ(client().call(command::echo, wire::echo_args{}).status(), nt_status::success);
}

TEST_F(server_of_others, compound_with_a_wrong_signature_is_refused_and_others_are_served) {
    compliant_client attacker(where_);
    ASSERT_EQ(attacker.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(attacker.connect_tree("files"), nt_status::success);
    attacker.flags = wire::header_flags::signed_message;  // the signature is zero
    attacker.begin_compound();
    const std::uint64_t first = attacker.send_create("first");
    const std::uint64_t second = attacker.send_create("second");
    attacker.end_compound();
    EXPECT_NE(attacker.answer_to(first).status(), nt_status::success);
    EXPECT_NE(attacker.answer_to(second).status(), nt_status::success);
    EXPECT_EQ(client().call(command::echo, wire::echo_args{}).status(), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
