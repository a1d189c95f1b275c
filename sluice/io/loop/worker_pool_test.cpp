#include "sluice/io/loop/worker_pool.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

#include "sluice/io/loop/registration.hpp"

namespace sluice::io {

using detail::operation_record;
namespace {

struct bare_operation final : operation_record {
    void signal_value() noexcept override {}
    void signal_done() noexcept override {}
};

// The part that a call without waiting has done must not be repeated: an append would be in the log
// twice.
TEST(worker_pool, continues_where_an_attempt_without_waiting_has_stopped) {
    const handle file(
        native_handle{.descriptor = ::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_APPEND, 0600),
                      .kind = handle_kind::file,
                      .readable = true,
                      .writable = true,
                      .append_only = true});
    ASSERT_TRUE(file.is_valid());
    std::array<char, 9> text{'o', 'n', 'e', 't', 'w', 'o', 's', 'i', 'x'};
    auto* const bytes = reinterpret_cast<std::byte*>(text.data());
    const std::array<buffer, 3> pieces{buffer(bytes, 3), buffer(bytes + 3, 3), buffer(bytes + 6, 3)};
    registration target;
    target.native = file.native();
    bare_operation op;
    op.target = &target;
    op.kind = operation_kind::write;
    op.pieces = pieces.data();
    op.piece_count = pieces.size();
    ASSERT_EQ(::write(file.descriptor(), text.data(), 4), 4);
    op.transferred = 4;
    perform_blocking(op);
    EXPECT_EQ(op.error_code, 0);
    EXPECT_EQ(op.transferred, 9U);
    std::array<char, 16> got{};
    ASSERT_EQ(::pread(file.descriptor(), got.data(), got.size(), 0), 9);
    EXPECT_EQ(std::string_view(got.data(), 9), "onetwosix");
    perform_blocking(op);
    EXPECT_EQ(op.transferred, 9U) << "nothing is left to do";
    EXPECT_EQ(::lseek(file.descriptor(), 0, SEEK_END), 9);
}

}  // namespace
}  // namespace sluice::io
