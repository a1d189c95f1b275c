#include "sluice/smb/wire/create/create.hpp"

#include <array>
#include <optional>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"

// CREATE ([MS-SMB2] 3.3.5.9). A CREATE that fails late leaves neither an open
// nor a mark on the file.

namespace sluice::smb_simulation {
namespace {

using wire::create_disposition;
using wire::create_options;

class failed_create : public command_test {
protected:
    // A CREATE asks for the status of the file several times; each time, this may fail.
    void make_unreliable(std::uint32_t per_mille) {
        auto& volume =
            dynamic_cast<vfs::memory_volume&>(server_of_test().context().find_share("files")->volume());
        volume.set_faults({.seed = 5, .status_fails = per_mille});
    }
    static constexpr unsigned attempts = 100;
};

TEST_F(failed_create, leaves_no_open) {
    (void)client().create("f");
    make_unreliable(300);
    std::size_t successes = 0;
    for (unsigned i = 0; i != attempts; ++i)
        if (client().try_create("f", compliant_client::for_everything()) == nt_status::success) ++successes;
    EXPECT_GT(successes, 0U);
    EXPECT_LT(successes, attempts);
    EXPECT_EQ(server_of_test().gauges().opens, 1 + successes);
}

TEST_F(failed_create, does_not_remove_the_file_that_it_was_to_remove_when_closed) {
    (void)client().create("f");
    auto how = compliant_client::for_everything();
    how.disposition = wire::create_disposition::open;
    how.options = wire::create_options::delete_on_close;
    make_unreliable(300);
    unsigned failures = 0;
    for (unsigned i = 0; i != attempts; ++i) {
        const nt_status status = client().try_create("f", how);
        ASSERT_NE(status, nt_status::delete_pending) << "a CREATE that failed has removed the file";
        if (status != nt_status::success) ++failures;
    }
    EXPECT_GT(failures, 0U);
}

class create_without_streams : public command_test {
protected:
    create_without_streams()
        : command_test([](server::server_configuration& rules) {
              dynamic_cast<vfs::memory_volume&>(*rules.shares.back().volume).omit_streams();
          }) {}
};

// smbtorture's create_no_streams.no_stream.
TEST_F(create_without_streams, rejects_each_name_of_a_stream) {
    (void)client().create("f");
    for (const std::string_view name : {"f::$DATA", "f:s", "f:s:$DATA", "missing::$DATA", "missing:s"}) {
        auto how = compliant_client::for_everything();
        how.disposition = create_disposition::open;
        EXPECT_EQ(client().try_create(name, how), nt_status::object_name_invalid) << name;
    }
}

class create_command : public command_test {
protected:
    using command_test::command_test;

    nt_status create(void (*adjust)(wire::create_args&), std::string_view name = "f") {
        auto how = compliant_client::for_everything();
        adjust(how);
        return client().try_create(name, how);
    }
    // The action of a CREATE of "f" with this disposition, or its error.
    struct outcome {
        nt_status status;
        wire::create_action action = wire::create_action::opened;
        [[nodiscard]] friend bool operator==(const outcome&, const outcome&) = default;
    };
    outcome create_with(create_disposition disposition) {
        auto how = compliant_client::for_everything();
        how.disposition = disposition;
        const auto said = client().answer_to(client().send_create("f", how));
        if (said.status() != nt_status::success) return {said.status()};
        const auto reply = wire::decode_create_reply(said.message()).value();
        EXPECT_EQ(close(reply.file), nt_status::success);
        return {said.status(), reply.action};
    }
};

TEST_F(create_command, refuses_arguments_without_a_meaning) {
    EXPECT_EQ(create([](wire::create_args& how) { how.impersonation_level = wire::impersonation_level(4); }),
              nt_status::bad_impersonation_level);
    EXPECT_EQ(create([](wire::create_args& how) { how.disposition = create_disposition(6); }),
              nt_status::invalid_parameter);
    EXPECT_EQ(create([](wire::create_args& how) { how.share_access = wire::share_access(8); }),
              nt_status::invalid_parameter);
    EXPECT_EQ(create([](wire::create_args& how) { how.options = create_options(0x0100'0000); }),
              nt_status::invalid_parameter);
    EXPECT_EQ(create([](wire::create_args& how) {
                  how.options = create_options::directory_file | create_options::non_directory_file;
              }),
              nt_status::invalid_parameter);
    EXPECT_EQ(
        create([](wire::create_args& how) { how.file_attributes = wire::file_attributes(0x8000'0000); }),
        nt_status::invalid_parameter);
}

TEST_F(create_command, ignores_attributes_of_checksums) {
    EXPECT_EQ(create([](wire::create_args& how) {
                  how.file_attributes =
                      wire::file_attributes::integrity_stream | wire::file_attributes::no_scrub_data;
              }),
              nt_status::success);
}

TEST_F(create_command, refuses_rights_that_it_does_not_know_or_grant) {
    EXPECT_EQ(create([](wire::create_args& how) { how.desired_access = access_mask::none; }),
              nt_status::access_denied);
    EXPECT_EQ(create([](wire::create_args& how) { how.desired_access = access_mask(0x0400'0000); }),
              nt_status::access_denied);
    EXPECT_EQ(
        create([](wire::create_args& how) { how.desired_access = access_mask::access_system_security; }),
        nt_status::privilege_not_held);
}

// A server with two users, one of whom may change audit lists.
class auditing : public create_command {
protected:
    auditing()
        : create_command([](server::server_configuration& rules) { rules.shares.back().auditors = {"U"}; }) {
        where_.admit(std::vector<std::string>{"u", "v"});
    }
    static wire::create_args for_audit_list() {
        auto how = compliant_client::for_everything();
        how.desired_access = access_mask::access_system_security | access_mask::read_control;
        return how;
    }
    nt_status set_audit_list(const wire::file_id& file) {
        wire::security_descriptor given{.control = wire::descriptor_control::sacl_present};
        given.sacl.emplace();
        std::array<std::byte, 64> room{};
        byte_writer writer(room);
        EXPECT_TRUE(encode(writer, given));
        return status_of(command::set_info, wire::set_info_args{.type = wire::info_type::security,
                                                                .additional_information = sacl,
                                                                .file = file,
                                                                .input = *writer.finish()});
    }
    // Whether the file has an audit list; std::nullopt: the open may not query that.
    std::optional<bool> has_audit_list(const wire::file_id& file) {
        const auto said =
            client().call(command::query_info, wire::query_info_args{.type = wire::info_type::security,
                                                                     .output_bytes_max = 4096,
                                                                     .additional_information = sacl,
                                                                     .file = file});
        if (said.status() != nt_status::success) return std::nullopt;
        return wire::decode_security_descriptor(output_of(said))->sacl.has_value();
    }
    static constexpr auto sacl = bits_of(wire::security_information::sacl);
};

TEST_F(auditing, needs_the_right_which_only_auditors_get) {
    const wire::file_id file = client().create("f", for_audit_list()).file;
    EXPECT_EQ(has_audit_list(file), false);
    EXPECT_EQ(set_audit_list(file), nt_status::success);
    EXPECT_EQ(has_audit_list(file), true);
    EXPECT_EQ(has_audit_list(client().create("f", for_audit_list()).file), true);
    auto how = for_audit_list();
    how.desired_access = access_mask::maximum_allowed;
    const wire::file_id without_it = client().create("f", how).file;
    EXPECT_EQ(has_audit_list(without_it), std::nullopt);
    EXPECT_EQ(set_audit_list(without_it), nt_status::access_denied);
    compliant_client other(where_, 2);
    ASSERT_EQ(other.log_on("v", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("files"), nt_status::success);
    EXPECT_EQ(other.try_create("f", for_audit_list()), nt_status::privilege_not_held);
}

TEST_F(create_command, refuses_options_that_it_does_not_support) {
    EXPECT_EQ(create([](wire::create_args& how) { how.options = create_options::open_by_file_id; }),
              nt_status::not_supported);
    EXPECT_EQ(create([](wire::create_args& how) { how.file_attributes = wire::file_attributes::encrypted; }),
              nt_status::access_denied);
}

TEST_F(create_command, reports_what_its_disposition_did) {
    using enum create_disposition;
    using wire::create_action;
    EXPECT_EQ(create_with(open), (outcome{nt_status::object_name_not_found}));
    EXPECT_EQ(create_with(overwrite), (outcome{nt_status::object_name_not_found}));
    EXPECT_EQ(create_with(create_disposition::create), (outcome{nt_status::success, create_action::created}));
    EXPECT_EQ(create_with(create_disposition::create), (outcome{nt_status::object_name_collision}));
    EXPECT_EQ(create_with(open), (outcome{nt_status::success, create_action::opened}));
    EXPECT_EQ(create_with(open_if), (outcome{nt_status::success, create_action::opened}));
    EXPECT_EQ(create_with(overwrite_if), (outcome{nt_status::success, create_action::overwritten}));
    EXPECT_EQ(create_with(supersede), (outcome{nt_status::success, create_action::superseded}));
}

TEST_F(create_command, refuses_a_file_as_a_directory_and_a_directory_as_a_file) {
    (void)open_directory();
    (void)open_for(wire::file_all_access);
    EXPECT_EQ(create([](wire::create_args& how) { how.options = create_options::directory_file; }),
              nt_status::not_a_directory);
    EXPECT_EQ(create([](wire::create_args& how) { how.options = create_options::non_directory_file; }, "d"),
              nt_status::file_is_a_directory);
}

TEST_F(create_command, refuses_an_open_that_the_share_modes_of_others_exclude) {
    auto how = compliant_client::for_everything();
    how.share_access = wire::share_access::read;
    (void)client().create("f", how);
    EXPECT_EQ(create([](wire::create_args&) {}), nt_status::sharing_violation);
    EXPECT_EQ(create([](wire::create_args& other) { other.desired_access = access_mask::read_attributes; }),
              nt_status::success)
        << "attributes are not shared";
}

// The order of [MS-FSA] 2.1.5.1.2: the attributes that an overwrite must name, the access check
// with the read-only attribute (2.1.5.1.2.1), and then the share modes (2.1.5.1.2.2).
TEST_F(create_command, reports_attributes_that_exclude_an_open_before_the_share_modes_that_do) {
    using enum create_disposition;
    struct request {
        create_disposition disposition;
        access_mask access;
        create_options options = create_options::none;
        wire::file_attributes attributes = wire::file_attributes::normal;
    };
    const auto ask = [this](const request& wanted, std::string_view name) {
        auto how = compliant_client::for_everything();
        how.disposition = wanted.disposition;
        how.desired_access = wanted.access;
        how.options = wanted.options;
        how.file_attributes = wanted.attributes;
        return client().try_create(name, how);
    };
    constexpr auto hidden = wire::file_attributes::hidden;
    const auto hold = [this](std::string_view name, wire::file_attributes attributes) {
        auto how = compliant_client::for_everything();
        how.file_attributes = attributes;
        how.share_access = wire::share_access::none;
        (void)client().create(name, how);
    };
    hold("hidden", hidden);
    hold("system", wire::file_attributes::system);
    hold("read-only", wire::file_attributes::read_only);
    const request overwriting{.disposition = overwrite, .access = access_mask::write_data};
    EXPECT_EQ(ask(overwriting, "hidden"), nt_status::access_denied);
    EXPECT_EQ(ask(overwriting, "system"), nt_status::access_denied);
    EXPECT_EQ(ask(overwriting, "read-only"), nt_status::access_denied);
    EXPECT_EQ(ask({.disposition = open, .access = access_mask::write_data}, "read-only"),
              nt_status::access_denied);
    EXPECT_EQ(ask({.disposition = open,
                   .access = access_mask::delete_object,
                   .options = create_options::delete_on_close},
                  "read-only"),
              nt_status::cannot_delete);

    EXPECT_EQ(
        ask({.disposition = overwrite, .access = access_mask::write_data, .attributes = hidden}, "hidden"),
        nt_status::sharing_violation);
    EXPECT_EQ(ask({.disposition = open, .access = access_mask::write_data}, "hidden"),
              nt_status::sharing_violation);
    EXPECT_EQ(ask({.disposition = open, .access = access_mask::read_data}, "read-only"),
              nt_status::sharing_violation);
}

// The attributes are those of the file, which overwriting a stream does not change.
TEST_F(create_command, overwrites_a_stream_of_a_hidden_file_without_naming_the_attribute) {
    auto how = compliant_client::for_everything();
    how.file_attributes = wire::file_attributes::hidden;
    (void)client().create("hidden", how);
    (void)client().create("hidden:stream");
    EXPECT_EQ(create([](wire::create_args& over) { over.disposition = create_disposition::overwrite; },
                     "hidden:stream"),
              nt_status::success);
    EXPECT_EQ(create([](wire::create_args& over) { over.disposition = create_disposition::overwrite; },
                     "hidden::$DATA"),
              nt_status::access_denied);
}

TEST_F(create_command, opens_the_pipes_of_services_that_exist) {
    EXPECT_NE(open_pipe("srvsvc"), wire::file_id{});
    EXPECT_EQ(create([](wire::create_args&) {}, "no_service"), nt_status::object_name_not_found);
}

}  // namespace
}  // namespace sluice::smb_simulation
