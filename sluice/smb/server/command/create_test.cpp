#include "sluice/smb/wire/create/create.hpp"

#include "sluice/smb/server/command/command_testing.hpp"

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
        if (client().try_create("f", polite_client::for_everything()) == nt_status::success) ++successes;
    EXPECT_GT(successes, 0U);
    EXPECT_LT(successes, attempts);
    EXPECT_EQ(server_of_test().gauges().opens, 1 + successes);
}

TEST_F(failed_create, does_not_remove_the_file_that_it_was_to_remove_when_closed) {
    (void)client().create("f");
    auto how = polite_client::for_everything();
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

class create_command : public command_test {
protected:
    nt_status create(void (*adjust)(wire::create_args&), std::string_view name = "f") {
        auto how = polite_client::for_everything();
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
        auto how = polite_client::for_everything();
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

TEST_F(create_command, refuses_rights_that_it_does_not_know_or_grant) {
    EXPECT_EQ(create([](wire::create_args& how) { how.desired_access = access_mask::none; }),
              nt_status::access_denied);
    EXPECT_EQ(create([](wire::create_args& how) { how.desired_access = access_mask(0x0400'0000); }),
              nt_status::access_denied);
    EXPECT_EQ(
        create([](wire::create_args& how) { how.desired_access = access_mask::access_system_security; }),
        nt_status::privilege_not_held);
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
    auto how = polite_client::for_everything();
    how.share_access = wire::share_access::read;
    (void)client().create("f", how);
    EXPECT_EQ(create([](wire::create_args&) {}), nt_status::sharing_violation);
    EXPECT_EQ(create([](wire::create_args& other) { other.desired_access = access_mask::read_attributes; }),
              nt_status::success)
        << "attributes are not shared";
}

TEST_F(create_command, opens_the_pipes_of_services_that_exist) {
    EXPECT_NE(open_pipe("srvsvc"), wire::file_id{});
    EXPECT_EQ(create([](wire::create_args&) {}, "no_service"), nt_status::object_name_not_found);
}

}  // namespace
}  // namespace sluice::smb_simulation
