#include "sluice/smb/wire/file/query_directory.hpp"

#include <string>
#include <vector>

#include "sluice/smb/server/command/security_testing.hpp"
#include "sluice/smb/server/open/directory_scan.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/node_attached.hpp"

// QUERY_DIRECTORY ([MS-SMB2] 3.3.5.18).

namespace sluice::smb_simulation {
namespace {

using wire::query_directory_flags;

class query_directory_command : public security_command_test {
protected:
    using security_command_test::security_command_test;

    struct listing {
        nt_status status;
        std::vector<std::string> names{};
        [[nodiscard]] friend bool operator==(const listing&, const listing&) = default;
    };

    // The form with the shortest entries.
    static constexpr wire::query_directory_args only_names{.information_class = wire::directory_class::names,
                                                           .output_bytes_max = 65'536};

    listing list(const wire::file_id& directory, std::string_view pattern = "*",
                 wire::query_directory_args how = {}) {
        const std::string spelled = wire::utf16_of(pattern).value();
        how.file = directory;
        how.pattern = std::as_bytes(std::span(spelled));
        if (how.output_bytes_max == 0) how.output_bytes_max = 4096;
        const auto said = client().call(command::query_directory, how);
        listing made{.status = said.status()};
        if (made.status != nt_status::success) return made;
        wire::directory_entry_reader entries(
            wire::decode_query_directory_reply(said.message())->entries,
            static_cast<wire::file_information_class>(how.information_class));
        for (auto entry = entries.next(); entry and *entry; entry = entries.next())
            made.names.push_back(wire::utf8_of((*entry)->name_utf16).value());
        return made;
    }
    [[nodiscard]] wire::file_id directory_of(std::initializer_list<std::string> names) {
        const wire::file_id made = open_directory("d");
        for (const std::string& name : names)
            EXPECT_EQ(close(open_for(wire::file_all_access, "d\\" + name)), nt_status::success);
        return made;
    }
};

TEST_F(query_directory_command, lists_all_names_that_match_and_then_no_more) {
    const wire::file_id directory = directory_of({"a.txt", "b.txt", "c.bin"});
    EXPECT_EQ(list(directory, "*.txt"), (listing{nt_status::success, {"a.txt", "b.txt"}}));
    EXPECT_EQ(list(directory, "*.txt"), (listing{nt_status::no_more_files}));
}

TEST_F(query_directory_command, keeps_the_first_pattern_until_the_scan_is_restarted) {
    const wire::file_id directory = directory_of({"a", "b"});
    EXPECT_EQ(list(directory, "a"), (listing{nt_status::success, {"a"}}));
    EXPECT_EQ(list(directory, "b"), (listing{nt_status::no_more_files}));
    EXPECT_EQ(list(directory, "b", {.flags = query_directory_flags::restart_scans}),
              (listing{nt_status::success, {"b"}}));
}

TEST_F(query_directory_command, restarts_without_a_pattern_with_the_last_one) {
    const wire::file_id directory = directory_of({"a", "b"});
    EXPECT_EQ(list(directory, "b"), (listing{nt_status::success, {"b"}}));
    EXPECT_EQ(list(directory, "", {.flags = query_directory_flags::restart_scans}),
              (listing{nt_status::success, {"b"}}));
}

TEST_F(query_directory_command, gives_the_parent_the_file_number_zero_and_other_names_their_own) {
    const wire::file_id directory = directory_of({"a"});
    const std::string all = wire::utf16_of("*").value();
    for (const auto form :
         {wire::directory_class::id_both_directory, wire::directory_class::id_full_directory}) {
        const auto said =
            client().call(command::query_directory,
                          wire::query_directory_args{.information_class = form,
                                                     .flags = query_directory_flags::restart_scans,
                                                     .file = directory,
                                                     .pattern = std::as_bytes(std::span(all)),
                                                     .output_bytes_max = 4096});
        ASSERT_EQ(said.status(), nt_status::success);
        wire::directory_entry_reader entries(wire::decode_query_directory_reply(said.message())->entries,
                                             static_cast<wire::file_information_class>(form));
        EXPECT_NE(entries.next().value()->fields.file_number, 0U) << "the directory";
        EXPECT_EQ(entries.next().value()->fields.file_number, 0U) << "its parent";
        EXPECT_NE(entries.next().value()->fields.file_number, 0U) << "a file in it";
    }
}

TEST_F(query_directory_command, answers_one_name_at_a_time_if_asked) {
    const wire::file_id directory = directory_of({"a"});
    const wire::query_directory_args one{.flags = query_directory_flags::return_single_entry};
    EXPECT_EQ(list(directory, "*", one), (listing{nt_status::success, {"."}}));
    EXPECT_EQ(list(directory, "*", one), (listing{nt_status::success, {".."}}));
    EXPECT_EQ(list(directory, "*", one), (listing{nt_status::success, {"a"}}));
}

TEST_F(query_directory_command, reports_that_nothing_matches_a_pattern) {
    EXPECT_EQ(list(directory_of({"a"}), "z"), (listing{nt_status::no_such_file}));
}

TEST_F(query_directory_command, refuses_output_without_room_for_an_entry) {
    const wire::file_id directory = directory_of({"a_name_that_takes_some_room"});
    const std::uint32_t least = static_cast<std::uint32_t>(
        wire::directory_entry_bytes_min(wire::file_information_class::both_directory));
    EXPECT_EQ(list(directory, "*", {.output_bytes_max = least - 1}),
              (listing{nt_status::info_length_mismatch}));
    EXPECT_EQ(list(directory, "a*", {.output_bytes_max = least + 2}), (listing{nt_status::buffer_overflow}));
}

TEST_F(query_directory_command, refuses_patterns_that_are_paths) {
    EXPECT_EQ(list(open_directory(), "a\\*"), (listing{nt_status::object_name_invalid}));
    EXPECT_EQ(list(open_directory(), "a:b"), (listing{nt_status::object_name_invalid}));
    EXPECT_EQ(list(open_directory(), std::string(256, '*')), (listing{nt_status::object_name_invalid}));
}

TEST_F(query_directory_command, refuses_opens_that_cannot_be_listed) {
    EXPECT_EQ(list(open_for(wire::file_all_access)), (listing{nt_status::invalid_parameter}));
    EXPECT_EQ(list(open_directory("d", access_mask::read_attributes)), (listing{nt_status::access_denied}));
    EXPECT_EQ(list(closed_file()), (listing{nt_status::file_closed}));
}

TEST_F(query_directory_command, refuses_classes_that_are_of_no_listing) {
    EXPECT_EQ(list(open_directory(), "*", {.information_class = wire::directory_class(4)}),
              (listing{nt_status::invalid_info_class}));
}

// --- access-based enumeration
// -----------------------------------------------------------------------------------

class access_based_listing : public query_directory_command {
protected:
    access_based_listing()
        : query_directory_command(
              [](server::server_configuration& rules) { rules.shares.back().hides_unreadable = true; }) {}

    // Creates a file that grants only these rights to the user.
    void make(std::string_view name, access_mask rights) {
        const wire::file_id file = open_for(wire::file_all_access, name);
        EXPECT_EQ(set_security(file, with_dacl({{.rights = rights, .who = sid_of_user("u")}})),
                  nt_status::success);
        EXPECT_EQ(close(file), nt_status::success);
    }
    // The same without a client, for many files.
    void make_directly(std::string_view name, access_mask rights) {
        vfs::volume& volume = server_of_test().context().find_share("files")->volume();
        const auto made = volume.create(name, {}).value();
        const auto descriptor = with_dacl({{.rights = rights, .who = sid_of_user("u")}});
        ASSERT_TRUE(made->attached()->set_security(bytes_of_descriptor(descriptor)));
    }
    void make_hidden(std::string_view name) { make_directly(name, access_mask::none); }

    static constexpr std::size_t names_checked_per_call =
        server::limits::names_examined_per_call_max / server::names_per_security_descriptor;
};

TEST_F(access_based_listing, omits_files_that_the_user_may_not_read_completely) {
    const wire::file_id directory = open_directory();
    make("d\\all", wire::file_all_access);
    make("d\\read", wire::file_generic_read);
    make("d\\generic", access_mask::generic_read);
    make("d\\no_data", without(wire::file_generic_read, access_mask::read_data));
    make("d\\no_ea", without(wire::file_generic_read, access_mask::read_ea));
    make("d\\no_attributes", without(wire::file_generic_read, access_mask::read_attributes));
    make("d\\write", wire::file_generic_write);
    make("d\\nothing", access_mask::none);
    EXPECT_EQ(list(directory), (listing{nt_status::success, {".", "..", "all", "generic", "read"}}));
}

TEST_F(access_based_listing, shows_files_without_a_descriptor_by_their_mode) {
    EXPECT_EQ(list(directory_of({"a", "b"})), (listing{nt_status::success, {".", "..", "a", "b"}}));
}

TEST_F(access_based_listing, omits_a_name_that_is_asked_for_without_wildcards) {
    const wire::file_id directory = open_directory();
    make("d\\hidden", wire::file_generic_write);
    make("d\\shown", wire::file_generic_read);
    EXPECT_EQ(list(directory, "hidden"), (listing{nt_status::no_such_file}));
    const wire::query_directory_args again{.flags = query_directory_flags::restart_scans};
    EXPECT_EQ(list(directory, "SHOWN", again), (listing{nt_status::success, {"shown"}}));
}

TEST_F(access_based_listing, omits_a_file_whose_descriptor_is_damaged) {
    const wire::file_id directory = directory_of({"f"});
    vfs::volume& volume = server_of_test().context().find_share("files")->volume();
    const auto file = volume.find("d/f", vfs::follow_links::no).value();
    ASSERT_TRUE(file->attached()->set_security(std::vector<std::byte>(7, std::byte{1})));
    EXPECT_EQ(list(directory), (listing{nt_status::success, {".", ".."}}));
}

TEST_F(access_based_listing, finds_names_after_more_hidden_ones_than_one_call_examines) {
    const wire::file_id directory = open_directory();
    constexpr std::size_t many = 2 * names_checked_per_call + 1;
    for (std::size_t i = 0; i != many; ++i)
        make_hidden("d/h" + std::to_string(i));
    make("d\\shown", wire::file_generic_read);
    const wire::query_directory_args again{.flags = query_directory_flags::restart_scans};
    EXPECT_EQ(list(directory, "*h*"), (listing{nt_status::success, {"shown"}}));
    EXPECT_EQ(list(directory, "*h*"), (listing{nt_status::no_more_files}));
    EXPECT_EQ(list(directory, "h*", again), (listing{nt_status::no_such_file}));
    std::vector<std::string> found;
    for (listing part = list(directory, "*", again); part.status == nt_status::success;
         part = list(directory))
        found.insert(found.end(), part.names.begin(), part.names.end());
    EXPECT_EQ(found, (std::vector<std::string>{".", "..", "shown"}));
}

TEST_F(access_based_listing, returns_no_more_names_at_once_than_one_call_checks) {
    const wire::file_id directory = open_directory();
    constexpr std::size_t many = names_checked_per_call + 100;
    for (std::size_t i = 0; i != many; ++i)
        make_directly("d/" + std::to_string(i), wire::file_generic_read);
    const listing first = list(directory, "*", only_names);
    EXPECT_EQ(first.status, nt_status::success);
    EXPECT_LE(first.names.size(), names_checked_per_call + 2);
    EXPECT_EQ(first.names.size() + list(directory, "*", only_names).names.size(), many + 2);
}

TEST_F(query_directory_command, ends_a_call_after_many_names_whether_they_match_or_not) {
    const wire::file_id directory = open_directory();
    constexpr std::size_t many = server::limits::names_examined_per_call_max + 100;
    vfs::volume& volume = server_of_test().context().find_share("files")->volume();
    for (std::size_t i = 0; i != many; ++i)
        ASSERT_TRUE(volume.create("d/" + std::to_string(i), {}));
    ASSERT_TRUE(volume.create("d/z", {}));
    const listing first = list(directory, "*", only_names);
    EXPECT_LE(first.names.size(), server::limits::names_examined_per_call_max);
    EXPECT_EQ(first.names.size() + list(directory, "*", only_names).names.size(), many + 3);

    const wire::query_directory_args again{.flags = query_directory_flags::restart_scans};
    EXPECT_EQ(list(directory, "z*", again), (listing{nt_status::success, {"z"}}));
    EXPECT_EQ(list(directory, "z*"), (listing{nt_status::no_more_files}));
    EXPECT_EQ(list(directory, "y*", again), (listing{nt_status::no_such_file}));
}

TEST_F(query_directory_command, lists_files_that_the_user_may_not_read_on_other_shares) {
    const wire::file_id directory = open_directory();
    const wire::file_id file = open_for(wire::file_all_access, "d\\unreadable");
    EXPECT_EQ(set_security(file, with_dacl({})), nt_status::success);
    EXPECT_EQ(list(directory, "u*"), (listing{nt_status::success, {"unreadable"}}));
}

}  // namespace
}  // namespace sluice::smb_simulation
