#pragma once

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string>
#include <string_view>

#include "sluice/base/deadline.hpp"
#include "sluice/io/sender/user_operation.hpp"

namespace sluice::user_handles {

/// The request types of the handle: a line of text to fill, one to send.
struct line_request {
    std::span<char> room{};
};
struct text_request {
    std::string_view text{};
};
/// Its result types.
using line_result = result<std::string_view>;
using text_result = result<std::string_view>;

namespace detail {

class line_call final : public io::ready_call {
public:
    using result_type = line_result;
    static constexpr const char* name = "read a line";

    line_call() noexcept = default;
    explicit line_call(const line_request& request) noexcept : room_(request.room) {}

    [[nodiscard]] std::optional<int> attempt(const io::native_handle& on) noexcept override {
        const ssize_t got = ::read(on.descriptor, room_.data(), room_.size());
        if (got < 0) return errno == EAGAIN or errno == EINTR ? std::nullopt : std::optional(errno);
        got_ = static_cast<std::size_t>(got);
        return 0;
    }
    [[nodiscard]] std::string_view take() noexcept { return {room_.data(), got_}; }

private:
    std::span<char> room_;
    std::size_t got_ = 0;
};

class text_call final : public io::ready_call {
public:
    using result_type = text_result;
    static constexpr const char* name = "write text";

    text_call() noexcept = default;
    explicit text_call(const text_request& request) noexcept : text_(request.text) {}

    [[nodiscard]] std::optional<int> attempt(const io::native_handle& on) noexcept override {
        while (done_ < text_.size()) {
            const ssize_t put = ::write(on.descriptor, text_.data() + done_, text_.size() - done_);
            if (put < 0 and errno != EINTR) return errno == EAGAIN ? std::nullopt : std::optional(errno);
            if (put > 0) done_ += static_cast<std::size_t>(put);
        }
        return 0;
    }
    [[nodiscard]] std::string_view take() noexcept {
        done_ = 0;
        return text_;
    }

private:
    std::string_view text_;
    std::size_t done_ = 0;
};

}  // namespace detail

/// A character device: a terminal, read line by line.
class terminal_handle : public io::multiplexable_handle {
public:
    terminal_handle() noexcept = default;
    explicit terminal_handle(int descriptor) noexcept
        : multiplexable_handle({.descriptor = descriptor,
                                .kind = io::handle_kind::pipe,
                                .readable = true,
                                .writable = true,
                                .nonblocking = true}) {
        (void)::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    }

    struct window {
        unsigned short rows;
        unsigned short columns;
    };
    /// An operation that never waits needs no multiplexer.
    [[nodiscard]] result<window> size() const noexcept {
        winsize now{};
        if (::ioctl(descriptor(), TIOCGWINSZ, &now) != 0)
            return failure(error::last("TIOCGWINSZ", descriptor()));
        return window{.rows = now.ws_row, .columns = now.ws_col};
    }

    [[nodiscard]] auto async_read_line(const line_request& request, deadline within = {}) noexcept {
        return io::call_sender<detail::line_call>(*this, io::direction::in, within,
                                                  detail::line_call(request));
    }
    [[nodiscard]] auto async_write_text(const text_request& request, deadline within = {}) noexcept {
        return io::call_sender<detail::text_call>(*this, io::direction::out, within,
                                                  detail::text_call(request));
    }
};

}  // namespace sluice::user_handles
