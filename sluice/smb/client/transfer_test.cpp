#include "sluice/smb/client/transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/smb_client/rig.hpp"

// Complete files, copied from servers that announce a wrong length.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component

constexpr std::uint64_t mebibyte = 1U << 20;

class transfers : public testing::Test {
protected:
    transfers() : client(world) {}
    void SetUp() override { ASSERT_FALSE(client.error) << client.error->message(); }

    // Creates a file of this size and returns it open.
    [[nodiscard]] std::unique_ptr<remote_file> make_file(const std::string& name, std::uint64_t bytes) {
        const open_options how{.access = smb::wire::file_generic_read | smb::wire::file_generic_write |
                                         smb::wire::access_mask::delete_object,
                               .disposition = smb::wire::create_disposition::create};
        auto opened = world.wait_for(client.tree->open(name, how));
        EXPECT_TRUE(opened);
        auto file = opened->release();
        EXPECT_TRUE(world.wait_for(file->set_size(bytes)));
        return file;
    }
    // The offset at which a download of the bytes up to `end` ended, and the number of bytes it
    // returned.
    struct ending {
        std::uint64_t at = 0;
        std::uint64_t given = 0;
        [[nodiscard]] friend bool operator==(const ending&, const ending&) noexcept = default;
    };
    [[nodiscard]] ending download_up_to(remote_file& file, std::uint64_t end, std::uint64_t begin = 0) {
        ending made;
        const byte_taker take = [&](bytes_view bytes, std::uint64_t offset) -> result<void> {
            EXPECT_EQ(offset, begin + made.given);
            EXPECT_TRUE(holds(bytes, offset)) << "at " << offset;
            made.given += bytes.size();
            return {};
        };
        const auto ended = world.wait_for(download(file, begin, end, take));
        EXPECT_TRUE(ended);
        made.at = ended.value_or(0);
        return made;
    }

    // The content of the uploaded files. Each byte depends on its offset.
    [[nodiscard]] static std::byte byte_at(std::uint64_t offset) {
        return static_cast<std::byte>(offset ^ offset >> 8 ^ offset >> 16);
    }
    // Returns whether the bytes are those of the file from `offset` on.
    [[nodiscard]] bool holds(bytes_view bytes, std::uint64_t offset) const {
        return std::ranges::all_of(bytes.span(), [&](std::byte one) {
            return one == (has_content ? byte_at(offset++) : std::byte{0});
        });
    }

    bool has_content = false;
    rig world;
    logged_on client;
};

TEST_F(transfers, download_reads_nothing_after_the_announced_end) {
    const auto file = make_file("f", 40 * mebibyte);
    for (const std::uint64_t end : {std::uint64_t{0}, std::uint64_t{1}, 2 * mebibyte, 9 * mebibyte + 5})
        EXPECT_EQ(download_up_to(*file, end), (ending{.at = end, .given = end}));
    EXPECT_EQ(download_up_to(*file, 5 * mebibyte, 3 * mebibyte + 1),
              (ending{.at = 5 * mebibyte, .given = 2 * mebibyte - 1}));
}

TEST_F(transfers, download_of_a_file_that_is_shorter_than_announced_returns_where_it_ended) {
    const auto file = make_file("f", 3 * mebibyte + 7);
    EXPECT_EQ(download_up_to(*file, 64 * mebibyte),
              (ending{.at = 3 * mebibyte + 7, .given = 3 * mebibyte + 7}));
    EXPECT_EQ(download_up_to(*file, 64 * mebibyte, 10 * mebibyte), (ending{.at = 10 * mebibyte, .given = 0}));
}

TEST_F(transfers, upload_stores_the_bytes_that_it_is_given) {
    const auto file = make_file("f", 0);
    constexpr std::uint64_t length = 2 * mebibyte + 3;
    const byte_source give = [](mutable_bytes into, std::uint64_t offset) -> result<std::size_t> {
        const std::size_t given = static_cast<std::size_t>(
            std::min<std::uint64_t>(into.size(), offset < length ? length - offset : 0));
        for (std::size_t i = 0; i != given; ++i)
            into.data()[i] = byte_at(offset + i);
        return given;
    };
    has_content = true;
    const auto ended = world.wait_for(upload(*file, 0, length, give));
    ASSERT_TRUE(ended);
    EXPECT_EQ(*ended, length);
    EXPECT_EQ(download_up_to(*file, 64 * mebibyte), (ending{.at = length, .given = length}));
}

TEST_F(transfers, end_with_the_error_of_this_side) {
    const auto file = make_file("f", 3 * mebibyte);
    const byte_taker full = [](bytes_view, std::uint64_t) -> result<void> {
        return failure(error(std::errc::no_space_on_device, "store"));
    };
    const auto ended = world.wait_for(download(*file, 0, 3 * mebibyte, full));
    ASSERT_FALSE(ended);
    EXPECT_FALSE(ended.error().remote);
    EXPECT_EQ(ended.error().local, std::errc::no_space_on_device);
    EXPECT_FALSE(ended.error().is_of_connection());
}

}  // namespace
}  // namespace sluice::smb_client_testing
