#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/smb/wire/rpc/rpc_host_testing.hpp"
#include "sluice/smb/wire/rpc/rpc_lsa.hpp"

namespace sluice::smb::wire {
namespace {

using namespace rpc_testing;

constexpr std::uint32_t none = 0xFFFFFFFF;
constexpr std::uint32_t maximum_allowed = 0x02000000;
constexpr sid nobody{5, {21, 1, 1, 1, 1}};

nt_status status_of(const std::vector<std::byte>& results) {
    return nt_status(bytes_view(results).take_at<le32>(results.size() - 4)->value());
}

class lsarpc : public testing::Test {
protected:
    lsarpc() { bind(pipe_, rpc_lsarpc_interface); }

    std::vector<std::byte> open(std::uint32_t rights, std::uint16_t operation = 44) {
        ndr_writer arguments(200);
        arguments.pointer(true);
        if (operation == 44)
            arguments.text("\\\\SERVER");
        else
            arguments.u16('\\');
        arguments.u32(24);
        for (int i = 0; i != 4; ++i)
            arguments.u32(0);
        arguments.pointer(true);  // quality of service
        arguments.u32(12);
        arguments.u16(2);
        arguments.u16(1);
        arguments.u32(rights);
        return call(pipe_, operation, arguments);
    }
    // An opened policy, and the arguments of a call that begin with it.
    ndr_writer with_policy(std::uint32_t rights = maximum_allowed) {
        const auto opened = open(rights);
        EXPECT_EQ(status_of(opened), nt_status::success);
        ndr_writer arguments(20'000);
        arguments.raw(*bytes_view(opened).first(20));
        return arguments;
    }
    static void add_sids(ndr_writer& to, const std::vector<sid>& sids, bool has_options) {
        const auto count = static_cast<std::uint32_t>(sids.size());
        to.u32(count);
        to.pointer(count != 0);
        if (count != 0) to.u32(count);
        for (std::uint32_t i = 0; i != count; ++i)
            to.pointer(true);
        for (const sid& who : sids)
            to.sid_referent(who);
        add_end(to, has_options);
    }
    static void add_names(ndr_writer& to, std::initializer_list<std::string> names, bool has_options) {
        to.u32(static_cast<std::uint32_t>(names.size()));
        to.u32(static_cast<std::uint32_t>(names.size()));
        for (const std::string& name : names)
            to.counted_text_head(name);
        for (const std::string& name : names)
            to.counted_text(name);
        add_end(to, has_options);
    }
    static void add_end(ndr_writer& to, bool has_options, std::uint16_t level = 1) {
        to.u32(0);
        to.pointer(false);
        to.u16(level);
        to.u32(0);
        if (not has_options) return;
        to.u32(0);
        to.u32(2);
    }
    // The domains of the two accounts that the server of the tests knows.
    static void expect_domains(ndr_reader& in) {
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), 2u);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), 2u);
        EXPECT_EQ(in.u32(), 2u);
        const auto world = in.counted_text_head();
        EXPECT_EQ(in.pointer(), true);
        const auto server = in.counted_text_head();
        EXPECT_EQ(in.pointer(), true);
        EXPECT_FALSE(world->is_present);
        EXPECT_EQ(in.sid_referent(), sid(1, std::initializer_list<std::uint32_t>{}));
        EXPECT_EQ(in.counted_text(*server), "SERVER");
        EXPECT_EQ(in.sid_referent(), sid(5, {21, 7, 8, 9}));
    }

    host_of_tests host_;
    whole_pipe pipe_{rpc_service::lsarpc, host_};
};

TEST_F(lsarpc, opens_and_closes_policies) {
    for (const std::uint16_t operation : {std::uint16_t{6}, std::uint16_t{44}}) {
        const auto opened = open(policy_lookup_names, operation);
        EXPECT_EQ(status_of(opened), nt_status::success);
        ndr_writer arguments(200);
        arguments.raw(*bytes_view(opened).first(20));
        const auto closed = call(pipe_, 0, arguments);
        EXPECT_EQ(status_of(closed), nt_status::success);
        EXPECT_EQ(std::vector(closed.begin(), closed.begin() + 20), std::vector<std::byte>(20));
        ASSERT_TRUE(pipe_.write(request(0, arguments.bytes())));
        EXPECT_EQ(fault_of(next_message(pipe_)), 0x1C00001Au) << "closed before";
    }
}

TEST_F(lsarpc, refuses_rights_to_change_the_policy) {
    const auto opened = open(policy_lookup_names | 0x10);
    EXPECT_EQ(status_of(opened), nt_status::access_denied);
    EXPECT_EQ(std::vector(opened.begin(), opened.begin() + 20), std::vector<std::byte>(20));
}

TEST_F(lsarpc, refuses_a_policy_to_the_anonymous) {
    host_.caller_.is_anonymous = true;
    EXPECT_EQ(status_of(open(policy_lookup_names)), nt_status::access_denied);
}

TEST_F(lsarpc, opens_a_limited_number_of_policies) {
    for (std::size_t i = 0; i != rpc_handle_table::handles_max; ++i)
        EXPECT_EQ(status_of(open(policy_lookup_names)), nt_status::success);
    EXPECT_EQ(status_of(open(policy_lookup_names)), nt_status::insufficient_resources);
}

TEST_F(lsarpc, accepts_no_handle_of_another_pipe) {
    const ndr_writer policy = with_policy();
    whole_pipe other(rpc_service::lsarpc, host_);
    bind(other, rpc_lsarpc_interface);
    ASSERT_TRUE(other.write(request(0, policy.bytes())));
    EXPECT_EQ(fault_of(next_message(other)), 0x1C00001Au);
}

TEST_F(lsarpc, names_known_sids_and_returns_the_text_of_others) {
    for (const bool has_flags : {false, true}) {
        ndr_writer arguments = with_policy();
        add_sids(arguments, {sid_everyone, nobody, {5, {21, 7, 8, 9, 10}}}, has_flags);
        const auto results = call(pipe_, has_flags ? 57 : 15, arguments);
        ndr_reader in(results);
        expect_domains(in);
        EXPECT_EQ(in.u32(), 3u);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), 3u);
        std::vector<ndr_counted_text> heads;
        const std::uint16_t uses[] = {5, 8, 1};
        const std::uint32_t domains[] = {0, none, 1};
        for (int i = 0; i != 3; ++i) {
            EXPECT_EQ(in.u16(), uses[i]);
            heads.push_back(in.counted_text_head().value());
            EXPECT_EQ(in.u32(), domains[i]);
            if (has_flags) EXPECT_EQ(in.u32(), 0u);
        }
        EXPECT_EQ(in.counted_text(heads[0]), "Everyone");
        EXPECT_EQ(in.counted_text(heads[1]), "S-1-5-21-1-1-1-1");
        EXPECT_EQ(in.counted_text(heads[2]), "alice");
        EXPECT_EQ(in.u32(), 2u) << "mapped";
        EXPECT_EQ(in.u32(), 0x107u) << "STATUS_SOME_NOT_MAPPED";
        EXPECT_EQ(in.remaining(), 0u);
    }
}

TEST_F(lsarpc, reports_whether_all_sids_or_none_have_names) {
    ndr_writer all = with_policy();
    add_sids(all, {sid_everyone}, false);
    EXPECT_EQ(status_of(call(pipe_, 15, all)), nt_status::success);
    ndr_writer unknown = with_policy();
    add_sids(unknown, {nobody}, false);
    EXPECT_EQ(status_of(call(pipe_, 15, unknown)), nt_status::none_mapped);
    ndr_writer empty = with_policy();
    add_sids(empty, {}, false);
    EXPECT_EQ(status_of(call(pipe_, 15, empty)), nt_status::success);
}

TEST_F(lsarpc, finds_the_sids_of_names_in_each_form) {
    for (const std::uint16_t operation : {std::uint16_t{14}, std::uint16_t{58}, std::uint16_t{68}}) {
        ndr_writer arguments = with_policy();
        add_names(arguments, {"Everyone", "nobody", "alice"}, operation != 14);
        const auto results = call(pipe_, operation, arguments);
        ndr_reader in(results);
        expect_domains(in);
        EXPECT_EQ(in.u32(), 3u);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), 3u);
        const std::uint16_t uses[] = {5, 8, 1};
        const std::uint32_t relative[] = {0, none, 10};
        const std::uint32_t domains[] = {0, none, 1};
        for (int i = 0; i != 3; ++i) {
            EXPECT_EQ(in.u16(), uses[i]);
            if (operation == 68)
                EXPECT_EQ(in.pointer(), i != 1);
            else
                EXPECT_EQ(in.u32(), relative[i]);
            EXPECT_EQ(in.u32(), domains[i]);
            if (operation != 14) EXPECT_EQ(in.u32(), 0u);
        }
        if (operation == 68) {
            EXPECT_EQ(in.sid_referent(), sid_everyone);
            EXPECT_EQ(in.sid_referent(), sid(5, {21, 7, 8, 9, 10}));
        }
        EXPECT_EQ(in.u32(), 2u);
        EXPECT_EQ(in.u32(), 0x107u);
        EXPECT_EQ(in.remaining(), 0u);
    }
}

TEST_F(lsarpc, looks_nothing_up_without_the_right) {
    ndr_writer arguments = with_policy(policy_view_local_information);
    add_names(arguments, {"alice"}, false);
    EXPECT_EQ(status_of(call(pipe_, 14, arguments)), nt_status::access_denied);
    ndr_writer information = with_policy(policy_lookup_names);
    information.u16(5);
    EXPECT_EQ(status_of(call(pipe_, 7, information)), nt_status::access_denied);
}

TEST_F(lsarpc, refuses_an_unknown_scope_of_a_search) {
    ndr_writer arguments = with_policy();
    arguments.u32(0);
    arguments.pointer(false);
    add_end(arguments, false, 8);
    EXPECT_EQ(status_of(call(pipe_, 15, arguments)), nt_status::invalid_parameter);
}

TEST_F(lsarpc, faults_a_lookup_of_too_many_sids) {
    ndr_writer arguments = with_policy();
    arguments.u32(1001);
    arguments.pointer(true);
    arguments.u32(1001);
    for (int i = 0; i != 1001; ++i)
        arguments.pointer(true);
    ASSERT_TRUE(pipe_.write(request(15, *arguments.bytes().first(4000))));
    EXPECT_EQ(fault_of(next_message(pipe_)), 0x6F7u);
}

TEST_F(lsarpc, describes_the_domains_of_the_server) {
    for (const std::uint16_t which : std::initializer_list<std::uint16_t>{3, 5, 6, 12, 14, 2}) {
        ndr_writer arguments = with_policy();
        arguments.u16(which);
        const auto results = call(pipe_, which == 14 ? 46 : 7, arguments);
        ndr_reader in(results);
        EXPECT_EQ(in.pointer(), which != 2);
        if (which == 2) {
            EXPECT_EQ(in.u32(), 0xC000000Du) << "STATUS_INVALID_PARAMETER";
            continue;
        }
        EXPECT_EQ(in.u16(), which);
        EXPECT_TRUE(in.raw(2).has_value()) << "the arms are aligned to 8 bytes";
        if (which == 6) {
            EXPECT_EQ(in.u16(), 3) << "primary";
        } else {
            const auto name = in.counted_text_head();
            if (which == 12) EXPECT_TRUE(in.raw(2 * 8 + 16).has_value()) << "no DNS names, no GUID";
            const bool has_sid = which == 5 or which == 14;
            EXPECT_EQ(in.pointer(), has_sid);
            EXPECT_EQ(in.counted_text(*name), has_sid ? "SERVER" : "WORKGROUP");
            if (has_sid) EXPECT_EQ(in.sid_referent(), sid(5, {21, 1, 2, 3}));
        }
        EXPECT_EQ(in.u32(), 0u);
        EXPECT_EQ(in.remaining(), 0u);
    }
}

TEST_F(lsarpc, returns_the_name_of_the_caller) {
    for (const bool wants_domain : {true, false}) {
        ndr_writer arguments(200);
        arguments.pointer(false);
        arguments.pointer(false);
        arguments.pointer(wants_domain);
        if (wants_domain) arguments.pointer(false);
        const auto results = call(pipe_, 45, arguments);
        ndr_reader in(results);
        EXPECT_EQ(in.pointer(), true);
        const auto name = in.counted_text_head();
        EXPECT_EQ(in.counted_text(*name), "alice");
        EXPECT_EQ(in.pointer(), wants_domain);
        if (wants_domain) {
            EXPECT_EQ(in.pointer(), true);
            const auto domain = in.counted_text_head();
            EXPECT_EQ(in.counted_text(*domain), "SERVER");
        }
        EXPECT_EQ(in.u32(), 0u);
        EXPECT_EQ(in.remaining(), 0u);
    }
}

TEST_F(lsarpc, faults_arguments_that_end_early) {
    for (const std::uint16_t operation :
         std::initializer_list<std::uint16_t>{0, 6, 7, 14, 15, 44, 45, 46, 57, 58, 68}) {
        ASSERT_TRUE(pipe_.write(request(operation, {})));
        EXPECT_EQ(fault_of(next_message(pipe_)), 0x6F7u) << operation;
    }
}

}  // namespace
}  // namespace sluice::smb::wire
