#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/polite_client.hpp"

// A change time that a client sets: hosts let nobody set it, so it is the server's to remember.

namespace sluice::smb_simulation {
namespace {

using smb::wire::basic_information;
using smb::wire::command;
using smb::wire::file_information_class;
using smb::wire::filetime;
using smb::wire::nt_status;

constexpr filetime long_ago(std::uint64_t{126'000'000'000'000'000});  // in 2000
constexpr filetime freeze(~std::uint64_t{0});
constexpr filetime thaw(~std::uint64_t{1});

class change_time : public served {
protected:
    void set(const smb::wire::create_reply& of, const basic_information& what) {
        std::array<std::byte, 64> room{};
        byte_writer writer(room);
        encode(writer, what);
        const smb::wire::set_info_args wish{
            .information_class = static_cast<std::uint8_t>(file_information_class::basic),
            .file = of.file,
            .input = *writer.finish()};
        EXPECT_EQ(client().call(command::set_info, wish).status(), nt_status::success);
    }
    basic_information basic(const smb::wire::create_reply& of) {
        const smb::wire::query_info_args question{
            .information_class = static_cast<std::uint8_t>(file_information_class::basic),
            .output_bytes_max = 100,
            .file = of.file};
        const auto told = client().call(command::query_info, question);
        const auto reply = smb::wire::decode_query_info_reply(told.message()).value();
        return smb::wire::decode_basic_information(reply.output).value();
    }
    filetime listed(std::string_view name) {
        constexpr auto form = file_information_class::id_both_directory;
        auto how = polite_client::for_everything();
        how.options = smb::wire::create_options::directory_file;
        const auto root = client().create("", how);
        const std::string pattern = smb::wire::utf16_of(name).value();
        const auto told = client().call(
            command::query_directory, smb::wire::query_directory_args{
                                          .information_class = smb::wire::directory_class::id_both_directory,
                                          .file = root.file,
                                          .pattern = std::as_bytes(std::span(pattern)),
                                          .output_bytes_max = 1000});
        const auto reply = smb::wire::decode_query_directory_reply(told.message()).value();
        smb::wire::directory_entry_reader entries(reply.entries, form);
        return entries.next().value().value().fields.changed;
    }
    void write(const smb::wire::create_reply& to) {
        const std::array<std::byte, 3> data{};
        EXPECT_EQ(
            client().call(command::write, smb::wire::write_args{.file = to.file, .data = data}).status(),
            nt_status::success);
    }
};

TEST_F(change_time, that_was_set_is_told_of_the_open_and_in_listings_until_another_open_changes_the_file) {
    const auto one = client().create("f");
    set(one, {.changed = long_ago});
    EXPECT_EQ(basic(one).changed, long_ago);
    EXPECT_EQ(listed("f"), long_ago);
    const auto other = client().create("f");
    EXPECT_EQ(basic(other).changed, long_ago);
    write(other);
    EXPECT_GT(basic(one).changed, long_ago);
    EXPECT_GT(listed("f"), long_ago);
}

TEST_F(change_time, that_was_set_or_frozen_stays_whatever_is_done_through_the_open_until_it_is_thawed) {
    const auto one = client().create("f");
    set(one, {.changed = long_ago});
    write(one);
    set(one, {.attributes = smb::wire::file_attributes::hidden});
    EXPECT_EQ(basic(one).changed, long_ago);
    set(one, {.changed = thaw});
    EXPECT_EQ(basic(one).changed, long_ago);
    write(one);
    const filetime moved = basic(one).changed;
    EXPECT_GT(moved, long_ago);
    set(one, {.changed = freeze});
    write(one);
    EXPECT_EQ(basic(one).changed, moved);
}

}  // namespace
}  // namespace sluice::smb_simulation
