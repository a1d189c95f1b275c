#include "sluice/fsmutex/queue/slot_window.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "sluice/fsmutex/queue/queue_format.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

using queue_format::page_bytes;

class a_slot_window : public testing::Test {
protected:
    ~a_slot_window() override { ::close(file); }
    void write(std::uint64_t where, char what) {
        const std::string bytes(8, what);
        ASSERT_EQ(::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(where)), 8);
    }

    io::test_directory directory{std::filesystem::current_path().string()};
    const int file = [this] {
        directory.write("queue", std::string(3 * page_bytes, 'a'));
        return ::open(directory.path_of("queue").c_str(), O_RDWR | O_CLOEXEC);
    }();
    slot_window window;
};

TEST_F(a_slot_window, shows_concurrent_writes) {
    window.open(file, page_bytes + 128);
    write(page_bytes, 'b');
    EXPECT_EQ(window.word_at(page_bytes), 0x6262'6262'6262'6262U);
    std::array<std::byte, 128> slot{};
    write(page_bytes + 8, 'c');
    EXPECT_TRUE(window.copy(page_bytes, slot));
    EXPECT_EQ(slot[7], std::byte{'b'});
    EXPECT_EQ(slot[8], std::byte{'c'});
    EXPECT_EQ(slot[16], std::byte{'a'});
}

// The blocks of other pages may be freed: reading a hole allocates a block, and raises SIGBUS on a
// full volume.
TEST_F(a_slot_window, covers_the_page_of_its_request_and_no_other) {
    EXPECT_FALSE(window.covers(page_bytes)) << "before it was opened";
    window.open(file, page_bytes + 128);
    EXPECT_TRUE(window.covers(page_bytes));
    EXPECT_TRUE(window.covers(2 * page_bytes - 1));
    EXPECT_FALSE(window.covers(page_bytes - 1));
    EXPECT_FALSE(window.covers(2 * page_bytes));
    EXPECT_EQ(window.word_at(0), std::nullopt);
    window.open(file, 2 * page_bytes);
    EXPECT_FALSE(window.covers(page_bytes));
    EXPECT_TRUE(window.covers(2 * page_bytes));
    window.close();
    EXPECT_FALSE(window.covers(2 * page_bytes));
}

TEST_F(a_slot_window, covers_nothing_where_nothing_can_be_mapped) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    window.open(pipe[0], page_bytes);
    EXPECT_FALSE(window.covers(page_bytes));
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST_F(a_slot_window, survives_that_the_file_is_cut_and_shows_it_again_when_it_is_opened) {
    window.open(file, page_bytes + 128);
    ASSERT_EQ(::ftruncate(file, page_bytes), 0);
    std::array<std::byte, 128> slot{};
    EXPECT_FALSE(window.copy(page_bytes, slot));
    EXPECT_EQ(slot[0], std::byte{});
    ASSERT_EQ(::ftruncate(file, 3 * page_bytes), 0);
    write(page_bytes, 'e');
    EXPECT_EQ(window.word_at(page_bytes), 0U) << "no mixture of old and new content";
    EXPECT_FALSE(window.copy(page_bytes, slot));
    window.open(file, page_bytes + 128);
    EXPECT_TRUE(window.copy(page_bytes, slot));
    EXPECT_EQ(window.word_at(page_bytes), 0x6565'6565'6565'6565U);
}

TEST_F(a_slot_window, is_cut_by_a_word_as_by_a_copy) {
    window.open(file, page_bytes);
    ASSERT_EQ(::ftruncate(file, 0), 0);
    EXPECT_EQ(window.word_at(page_bytes), 0U);
    std::array<std::byte, 8> bytes{};
    EXPECT_FALSE(window.copy(page_bytes, bytes));
}

TEST_F(a_slot_window, follows_a_file_for_mebibytes) {
    constexpr std::uint64_t far = 5U << 20;
    ASSERT_EQ(::ftruncate(file, far + page_bytes), 0);
    window.open(file, page_bytes);
    window.open(file, far);
    write(far, 'd');
    EXPECT_EQ(window.word_at(far), 0x6464'6464'6464'6464U);
    window.open(file, page_bytes);
    EXPECT_EQ(window.word_at(page_bytes), 0x6161'6161'6161'6161U);
}

}  // namespace
}  // namespace sluice::fsmutex
