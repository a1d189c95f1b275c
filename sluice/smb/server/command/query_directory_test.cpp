#include "sluice/smb/wire/file/query_directory.hpp"

#include <vector>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/utf16.hpp"

// QUERY_DIRECTORY ([MS-SMB2] 3.3.5.18).

namespace sluice::smb_simulation {
namespace {

using wire::query_directory_flags;

class query_directory_command : public command_test {
protected:
    struct listing {
        nt_status status;
        std::vector<std::string> names{};
        [[nodiscard]] friend bool operator==(const listing&, const listing&) = default;
    };

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

}  // namespace
}  // namespace sluice::smb_simulation
