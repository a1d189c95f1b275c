// The client against our server: every dialect and protection, reads and writes of
// all lengths, errors.

#include <gtest/gtest.h>

#include <optional>

#include "sluice/smb/client/limits.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "tests/smb_client/rig.hpp"

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::server::protection;
using smb::server::server_configuration;
using smb::wire::dialect;
using smb::wire::nt_status;

constexpr open_options for_everything{
    .access =
        smb::wire::file_generic_read | smb::wire::file_generic_write | smb::wire::access_mask::delete_object,
    .disposition = smb::wire::create_disposition::open_if,
};

[[nodiscard]] std::vector<std::byte> pattern(std::size_t bytes, unsigned seed = 1) {
    std::vector<std::byte> made(bytes);
    std::uint32_t state = seed;
    for (std::byte& each : made)
        each = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24);
    return made;
}

// Writes everything, in pieces of the permitted size, and returns the bytes that are then read.
[[nodiscard]] io::task<outcome<std::vector<std::byte>>> there_and_back(tree& in, std::string path,
                                                                       std::span<const std::byte> data) {
    auto opening = in.open(std::move(path), for_everything);
    const auto file = co_await std::move(opening);
    if (not file) co_return failed(file.error());
    for (std::size_t at = 0; at < data.size();) {
        const std::size_t piece = std::min<std::size_t>(data.size() - at, (*file)->write_bytes_max());
        auto writing = (*file)->co_write(data.subspan(at, piece), at);
        const auto wrote = co_await std::move(writing);
        if (not wrote) co_return failed(wrote.error());
        at += *wrote;
    }
    std::vector<std::byte> back(data.size() + 10);
    std::size_t got = 0;
    for (;;) {
        const std::size_t piece = std::min<std::size_t>(back.size() - got, (*file)->read_bytes_max());
        auto reading = (*file)->co_read(std::span(back).subspan(got, piece), got);
        const auto read = co_await std::move(reading);
        if (not read) co_return failed(read.error());
        got += *read;
        if (*read == 0 or got == back.size()) break;
    }
    back.resize(got);
    auto close_task = (*file)->co_close();
    const auto closed = co_await std::move(close_task);
    if (not closed) co_return failed(closed.error());
    EXPECT_EQ(closed->end_of_file_bytes, data.size());
    co_return std::move(back);
}

struct way {
    const char* name;
    dialect newest;
    bool signs;
    bool encrypts;
};

class every_way : public testing::TestWithParam<way> {};

TEST_P(every_way, carries_files_of_all_lengths_there_and_back) {
    rig world;
    const way& how = GetParam();
    connection_options options;
    options.dialect_max = how.newest;
    options.signs = how.signs;
    if (how.encrypts) options.encryption = encryption::required;
    logged_on client(world, options);
    ASSERT_FALSE(client.error) << client.error->message();
    EXPECT_EQ(client.connection->agreed().dialect, how.newest);
    for (const std::size_t bytes : {0U, 1U, 4096U, 65536U, 70000U, 3U << 20}) {
        const auto data = pattern(bytes);
        const auto back = world.wait_for(there_and_back(*client.tree, "f" + std::to_string(bytes), data));
        ASSERT_TRUE(back) << back.error().message();
        EXPECT_TRUE(*back == data) << bytes;
    }
}

INSTANTIATE_TEST_SUITE_P(client, every_way,
                         testing::Values(way{"v311_signed", dialect::smb_3_1_1, true, false},
                                         way{"v311_unsigned", dialect::smb_3_1_1, false, false},
                                         way{"v311_encrypted", dialect::smb_3_1_1, true, true},
                                         way{"v302_signed", dialect::smb_3_0_2, true, false},
                                         way{"v302_encrypted", dialect::smb_3_0_2, true, true},
                                         way{"v300_signed", dialect::smb_3_0, true, false},
                                         way{"v210_signed", dialect::smb_2_1, true, false},
                                         way{"v210_unsigned", dialect::smb_2_1, false, false}),
                         [](const auto& which) { return which.param.name; });

// Many concurrent reads, each into its place.
[[nodiscard]] io::task<void> read_part(remote_file& file, std::span<std::byte> into, std::size_t at,
                                       int& good) {
    auto reading = file.co_read(into, at);
    const auto read = co_await std::move(reading);
    if (read and *read == into.size()) ++good;
}

[[nodiscard]] io::task<int> read_all_at_once(io::io_multiplexer& loop, remote_file& file,
                                             std::span<std::byte> into, std::size_t piece) {
    int good = 0;
    io::task_group readers(loop);
    for (std::size_t at = 0; at < into.size(); at += piece)
        readers.spawn(read_part(file, into.subspan(at, std::min(piece, into.size() - at)), at, good));
    co_await readers.join();
    co_return good;
}

// An open file of known content. The parameter: whether the client signs.
class large_file : public testing::TestWithParam<bool> {
protected:
    large_file() {
        connection_options options;
        options.signs = GetParam();
        client_.emplace(world_, options);
    }
    void SetUp() override {
        ASSERT_FALSE(client_->error);
        ASSERT_TRUE(world_.wait_for(there_and_back(*client_->tree, "f", data_)));
        auto opened = world_.wait_for(client_->tree->open("f", {}));
        ASSERT_TRUE(opened);
        file_.emplace(*std::move(opened));
    }

    const std::vector<std::byte> data_ = pattern(5 << 20);
    rig world_;
    std::optional<logged_on> client_;
    std::optional<not_null_ptr<remote_file>> file_;
};
INSTANTIATE_TEST_SUITE_P(to_a_client, large_file, testing::Bool(),
                         [](const auto& which) { return which.param ? "that_signs" : "that_does_not_sign"; });

TEST_P(large_file, is_read_in_many_pieces_at_once) {
    for (const std::size_t piece : {5000U, 65536U, 1U << 20}) {
        std::vector<std::byte> back(data_.size());
        const int good = world_.wait_for(read_all_at_once(*world_.loop, **file_, back, piece));
        EXPECT_EQ(good, (data_.size() + piece - 1) / piece);
        EXPECT_TRUE(back == data_) << piece;
    }
}

// A READ whose data is discarded, between two whose data is used.
[[nodiscard]] io::task<outcome<reply>> read_and_discard(remote_file& file, std::span<std::byte> into) {
    request_options how = file.in().request("read");
    how.payload_bytes = into.size();
    how.into = into;
    how.discards = true;
    const smb::wire::read_args asked{.file = file.id(),
                                     .length_bytes = static_cast<std::uint32_t>(into.size()),
                                     .padding = static_cast<std::uint8_t>(smb::wire::read_reply_data_offset)};
    auto asking = file.in().of().first().call(smb::wire::command::read, asked, how);
    co_return co_await std::move(asking);
}

TEST_P(large_file, is_discarded_on_request_and_the_stream_stays_synchronised) {
    for (const std::size_t bytes : {smb::client::limits::direct_read_bytes_min, std::size_t{300'000}}) {
        std::vector<std::byte> untouched(bytes);
        const auto discarded = world_.wait_for(read_and_discard(**file_, untouched));
        ASSERT_TRUE(discarded) << discarded.error().message();
        EXPECT_EQ(discarded->read_bytes, bytes);
        EXPECT_TRUE(untouched == std::vector<std::byte>(bytes));
        std::vector<std::byte> back(bytes);
        EXPECT_EQ(world_.wait_for((*file_)->co_read(back, 0)).value_or(0), bytes);
        EXPECT_TRUE(std::ranges::equal(back, std::span(data_).first(bytes)));
    }
}

TEST(client, reports_the_reasons_of_the_server) {
    rig world;
    logged_on client(world);
    ASSERT_FALSE(client.error);
    const auto missing = world.wait_for(client.tree->open("no/such", {}));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().status(), nt_status::object_path_not_found);
    EXPECT_EQ(missing.error().code(), ENOENT);
    EXPECT_EQ(missing.error().message(),
              "open: a directory in the path does not exist (STATUS_OBJECT_PATH_NOT_FOUND)");
    EXPECT_FALSE(missing.error().is_of_connection());
    EXPECT_FALSE(client.connection->is_broken());
}

TEST(client, refuses_a_wrong_password_and_can_try_again) {
    rig world;
    auto opened =
        world.wait_for(connection::open(world.dependencies(), world.connect(), {.server_name = "server"}));
    ASSERT_TRUE(opened);
    const auto wrong = world.wait_for(session::log_on(**opened, rig::who("q")));
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().status(), nt_status::logon_failure);
    const auto right = world.wait_for(session::log_on(**opened, rig::who()));
    EXPECT_TRUE(right) << right.error().message();
    world.wait_for((*opened)->close());
}

TEST(client, creates_lists_renames_and_removes) {
    rig world;
    logged_on client(world);
    ASSERT_FALSE(client.error);
    tree& share = *client.tree;
    ASSERT_TRUE(world.wait_for(share.create_directory("a")));
    const auto again = world.wait_for(share.create_directory("a"));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().status(), nt_status::object_name_collision);
    std::vector<std::string> names;
    for (int i = 0; i != 120; ++i) {
        names.push_back("file with a longer name " + std::to_string(1000 + i));
        ASSERT_TRUE(world.wait_for(there_and_back(share, "a/" + names.back(), pattern(3))));
    }
    const auto listed = world.wait_for(list(share, "a"));
    ASSERT_TRUE(listed);
    std::vector<std::string> found;
    for (const directory_entry& each : *listed) {
        found.push_back(each.name);
        EXPECT_EQ(each.status.end_of_file_bytes, 3U);
    }
    std::ranges::sort(found);
    EXPECT_EQ(found, names);

    ASSERT_TRUE(world.wait_for(share.rename("a/" + names[0], "b", false)));
    const auto collision = world.wait_for(share.rename("a/" + names[1], "b", false));
    ASSERT_FALSE(collision);
    EXPECT_EQ(collision.error().status(), nt_status::object_name_collision);
    ASSERT_TRUE(world.wait_for(share.rename("a/" + names[1], "b", true)));
    const auto full = world.wait_for(share.remove("a", true));
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().status(), nt_status::directory_not_empty);
    for (int i = 2; i != 120; ++i)
        ASSERT_TRUE(world.wait_for(share.remove("a/" + names[i], false)));
    ASSERT_TRUE(world.wait_for(share.remove("a", true)));
    const auto status = world.wait_for(share.status("b"));
    ASSERT_TRUE(status);
    EXPECT_EQ(status->end_of_file_bytes, 3U);
    EXPECT_FALSE(is_directory(*status));
}

TEST(client, sets_sizes_and_times) {
    rig world;
    logged_on client(world);
    const auto file = world.wait_for(client.tree->open("f", for_everything));
    ASSERT_TRUE(file);
    ASSERT_TRUE(world.wait_for((*file)->set_size(12345)));
    const smb::wire::filetime long_ago(smb::wire::filetime_ticks_at_unix_epoch + 10'000'000);
    ASSERT_TRUE(world.wait_for((*file)->set_times({.written = long_ago})));
    ASSERT_TRUE(world.wait_for((*file)->co_flush()));
    const auto status = world.wait_for((*file)->co_status());
    ASSERT_TRUE(status);
    EXPECT_EQ(status->end_of_file_bytes, 12345U);
    EXPECT_EQ(status->last_write_time, long_ago);
    ASSERT_TRUE(world.wait_for((*file)->delete_on_close()));
    ASSERT_TRUE(world.wait_for((*file)->co_close()));
    EXPECT_FALSE(world.wait_for(client.tree->status("f")));
}

TEST(client, signs_for_a_server_that_requires_signing) {
    rig world([](server_configuration& c) { c.signing = protection::required; });
    connection_options options;
    options.signs = false;
    logged_on client(world, options);
    ASSERT_FALSE(client.error);
    EXPECT_TRUE(client.connection->security().signs_all);
    EXPECT_TRUE(world.wait_for(there_and_back(*client.tree, "f", pattern(100000))));
}

TEST(client, every_request_fails_when_the_server_ends) {
    rig world;
    logged_on client(world);
    const auto file = world.wait_for(client.tree->open("f", for_everything));
    ASSERT_TRUE(file);
    world.stop();
    std::vector<std::byte> room(10);
    const auto read = world.wait_for((*file)->co_read(room, 0));
    ASSERT_FALSE(read);
    EXPECT_TRUE(read.error().is_of_connection());
    EXPECT_TRUE(client.connection->is_broken());
    EXPECT_FALSE(world.wait_for((*file)->co_read(room, 0)));
}

}  // namespace
}  // namespace sluice::smb_client_testing
