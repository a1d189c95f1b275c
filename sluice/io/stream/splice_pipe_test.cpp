// The pipe that transfers go through, as its owner sees it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <type_traits>

#include "sluice/io/stream/splice.hpp"

namespace sluice::io {
namespace {

static_assert(not std::is_copy_constructible_v<transit_pipe> and not std::is_copy_assignable_v<transit_pipe>);
static_assert(not std::is_copy_constructible_v<splice_pipe> and not std::is_copy_assignable_v<splice_pipe>);

// As a transfer leaves them that has failed on its way to the target.
void leave_bytes(splice_pipe& in, std::string_view bytes) {
    ASSERT_EQ(::write(in.transit().writer.descriptor, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    in.transit().add(bytes.size());
}

std::string read_bytes(splice_pipe& from) {
    std::array<char, 16> memory{};
    const auto got = from.reader().read(io_request<bytes_type>{std::as_writable_bytes(std::span(memory))},
                                        deadline::zero());
    return got ? std::string(memory.data(), got->size()) : got.error().message();
}

TEST(splice_pipe, pending_bytes_move_with_the_pipe_and_stay_out_of_reach_of_the_one_moved_from) {
    auto first = splice_pipe::create().value();
    leave_bytes(first, "left");
    splice_pipe second = std::move(first);
    first.discard();  // NOLINT: the state after the move is the subject
    EXPECT_EQ(first.pending(), 0U);
    EXPECT_EQ(first.capacity(), 0U);
    EXPECT_EQ(second.pending(), 4U);
    EXPECT_EQ(read_bytes(second), "left");
}

TEST(splice_pipe, one_that_was_moved_from_is_usable_once_assigned_to) {
    auto first = splice_pipe::create().value();
    const splice_pipe second = std::move(first);
    first = splice_pipe::create(4096).value();
    leave_bytes(first, "new");
    EXPECT_EQ(first.pending(), 3U);
    first.discard();
    EXPECT_EQ(first.pending(), 0U);
}

}  // namespace
}  // namespace sluice::io
