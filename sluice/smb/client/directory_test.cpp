#include "sluice/smb/client/directory.hpp"

#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "tests/smb_client/relay.hpp"
#include "tests/smb_client/rig.hpp"

// Invalid names and listings of a server.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::command;
using smb::wire::nt_status;

// Lists `names` in every directory, repeatedly and without an end.
[[nodiscard]] relay::editor lists_for_ever(std::vector<std::string> names, int& replies) {
    return [names = std::move(names), &replies](std::vector<std::byte>& message) {
        auto header = smb::wire::decode_header(message).value();
        if (header.command != command::query_directory) return;
        ++replies;
        std::array<std::byte, 1000> room{};
        smb::wire::directory_entry_writer entries(room, smb::wire::file_information_class::full_directory);
        for (const std::string& name : names)
            EXPECT_EQ(entries.put({.name = name}), smb::wire::entry_outcome::written);
        header.status = nt_status::success;
        message.assign(smb::wire::header_bytes + 16 + room.size(), std::byte{});
        byte_writer writer{mutable_bytes(message)};
        encode(writer, header);
        encode(writer, smb::wire::query_directory_reply{.entries = entries.bytes()});
        message.resize(writer.finish()->size());
    };
}

struct listing {
    outcome<std::vector<directory_entry>> outcome;
    int replies = 0;
};

[[nodiscard]] io::task<outcome<std::vector<directory_entry>>> list_root(tree& in, std::size_t entries_max) {
    const open_options how{.access = smb::wire::access_mask::list_directory,
                           .options = smb::wire::create_options::directory_file};
    auto opening = in.open("", how);
    const auto directory = co_await std::move(opening);
    if (not directory) co_return failed(directory.error());
    auto listing = list(**directory, entries_max);
    co_return co_await std::move(listing);
}

// Disables signatures, which would detect the relay.
[[nodiscard]] listing list_at(std::vector<std::string> names, std::size_t entries_max) {
    rig world;
    listing made{.outcome = std::vector<directory_entry>()};
    relay between(*world.loop, world.connect(), lists_for_ever(std::move(names), made.replies));
    connection_options options;
    options.signs = false;
    logged_on client(world, options, between.take_clients_end());
    EXPECT_FALSE(client.error) << client.error->message();
    if (not client.error) made.outcome = world.wait_for(list_root(*client.tree, entries_max));
    return made;
}

TEST(endless_directory, ends_at_the_limit) {
    const listing made = list_at({"a", "b", "c"}, 10);
    ASSERT_FALSE(made.outcome);
    EXPECT_EQ(made.outcome.error().message(), "list: protocol error: too many entries in the directory");
    EXPECT_EQ(made.replies, 4) << "the twelve names of four replies exceed the limit";
}

TEST(endless_directory, ends_at_the_limit_if_it_contains_only_itself) {
    const listing made = list_at({".", ".."}, 10);
    ASSERT_FALSE(made.outcome);
    EXPECT_EQ(made.outcome.error().which(), client_error::kind::protocol);
    EXPECT_EQ(made.replies, 6);
}

TEST(endless_directory, differs_from_a_directory_with_exactly_the_limit) {
    rig world;
    logged_on client(world);
    ASSERT_FALSE(client.error);
    for (const char* const name : {"a", "b", "c"})
        ASSERT_TRUE(world.wait_for(client.tree->create_directory(name)));
    const auto listed = world.wait_for(list_root(*client.tree, 5));
    ASSERT_TRUE(listed) << listed.error().message();
    EXPECT_EQ(listed->size(), 3U) << "without . and ..";
    EXPECT_FALSE(world.wait_for(list_root(*client.tree, 4)));
}

TEST(remote_names, names_of_other_places_are_not_safe) {
    for (const std::string_view name :
         {std::string_view(""), std::string_view("."), std::string_view(".."), std::string_view("a/b"),
          std::string_view("..\\x"), std::string_view("a\0b", 3)})
        EXPECT_FALSE(is_safe_name(name));
    for (const std::string_view name : {"a", "...", ".hidden", "x.y", " "})
        EXPECT_TRUE(is_safe_name(name)) << name;
}

}  // namespace
}  // namespace sluice::smb_client_testing
