#include "tests/user_handles/terminal_handle.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/when_all.hpp"
#include "sluice/io/task/with_deadline.hpp"

// A handle for a character device, which a user adds: a terminal and the program that draws it.

namespace sluice::user_handles {
namespace {

using namespace std::chrono_literals;
using io::task;

class terminals : public io::coroutine_test {
protected:
    terminals() {
        int keyboard = -1;
        int screen = -1;
        const winsize size{.ws_row = 25, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
        termios mode{};
        mode.c_lflag = ICANON;
        mode.c_cflag = CREAD;
        mode.c_cc[VEOF] = 4;
        if (::openpty(&keyboard, &screen, nullptr, &mode, &size) != 0) return;
        keyboard_ = terminal_handle(keyboard);
        terminal_ = terminal_handle(screen);
    }
    void SetUp() override {
        if (not terminal_.is_valid()) GTEST_SKIP() << "this system has no pseudo terminals";
        ASSERT_TRUE(keyboard_.set_multiplexer(multiplexer_.get()).has_value());
        ASSERT_TRUE(terminal_.set_multiplexer(multiplexer_.get()).has_value());
    }

    task<std::string> read_line(deadline within = {}) {
        std::array<char, 100> room{};
        const auto line = co_await terminal_.async_read_line({room}, within);
        co_return line ? std::string(*line) : "error " + std::to_string(line.error().code());
    }
    task<std::size_t> type(std::string_view text) {
        const auto typed = co_await keyboard_.async_write_text({text});
        co_return typed ? typed->size() : 0;
    }

    terminal_handle keyboard_;
    terminal_handle terminal_;
};

TEST_P(terminals, return_a_line_when_it_is_complete) {
    EXPECT_EQ(run(type("hel")), 3U);
    EXPECT_EQ(run(read_line(1ms)), "error " + std::to_string(ETIMEDOUT));
    EXPECT_EQ(run(type("lo\nwor")), 6U);
    EXPECT_EQ(run(read_line()), "hello\n");
    EXPECT_EQ(run(type("ld\n")), 3U);
    EXPECT_EQ(run(read_line()), "world\n");
}

TEST_P(terminals, serve_readers_in_the_order_they_came) {
    std::array<std::array<char, 100>, 3> rooms{};
    std::vector<std::string> lines;
    struct noting {
        std::vector<std::string>* lines;
        void set_value(line_result&& got) noexcept { lines->emplace_back(got.value_or("failed")); }
        void set_done() noexcept {}
    };
    using state_type = decltype(io::connect(terminal_.async_read_line({}), noting{}));
    std::vector<std::unique_ptr<state_type>> states;
    for (auto& room : rooms) {
        states.push_back(
            std::make_unique<state_type>(io::connect(terminal_.async_read_line({room}), noting{&lines})));
        states.back()->start();
    }
    EXPECT_EQ(run(type("a\nb\nc\n")), 6U);
    while (lines.size() < 3)
        ASSERT_TRUE(multiplexer_->run().has_value());
    EXPECT_EQ(lines, (std::vector<std::string>{"a\n", "b\n", "c\n"}));
}

TEST_P(terminals, wait_until_more_text_fits) {
    const std::string much(1 << 16, 'x');  // more than the terminal holds
    const auto draw = [&]() -> task<bool> {
        const auto drawn = co_await terminal_.async_write_text({much});
        co_return drawn.has_value();
    };
    const auto both = [&]() -> task<bool> {
        auto drawing = draw();
        auto& self = *this;
        const auto watch = [&self]() -> task<std::size_t> {
            std::size_t seen = 0;
            std::array<char, 4096> room{};
            while (seen < (1U << 16)) {
                const auto got = co_await self.keyboard_.async_read_line({room});
                if (not got) break;
                seen += got->size();
            }
            co_return seen;
        };
        const auto [drawn, seen] = co_await io::when_all(std::move(drawing), watch());
        co_return drawn and seen == (1U << 16);
    };
    EXPECT_TRUE(run(both()));
}

TEST_P(terminals, are_left_when_their_scope_is_cancelled) {
    const auto line = run(io::with_deadline(*multiplexer_, read_line(), 1ms));
    ASSERT_FALSE(line.has_value());
    EXPECT_EQ(line.error().code(), ETIMEDOUT);
}

TEST_P(terminals, report_the_end_of_the_device) {
    ASSERT_TRUE(keyboard_.close().has_value());
    const auto line = run(read_line());
    EXPECT_TRUE(line.empty() or line == "error " + std::to_string(EIO)) << line;
}

TEST_P(terminals, have_operations_that_need_no_multiplexer) {
    const auto size = terminal_.size();
    ASSERT_TRUE(size.has_value());
    EXPECT_EQ(size->rows, 25);
    EXPECT_EQ(size->columns, 80);
}

SLUICE_TEST_COROUTINES_OVER_ALL(terminals);

}  // namespace
}  // namespace sluice::user_handles
