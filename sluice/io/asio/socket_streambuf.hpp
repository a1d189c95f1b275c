#pragma once

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <asio/wait_traits.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <streambuf>
#include <system_error>
#include <utility>
#include <vector>

#include "sluice/io/asio/message.hpp"
#include "sluice/io/asio/resolver.hpp"
#include "sluice/io/asio/stream_socket.hpp"
#include "sluice/io/asio/waitable_timer.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"

namespace sluice::io {

namespace detail {

/// A context for blocking sockets; no thread runs it. Costs two descriptors.
class asio_blocking_context {
public:
    /// Throws: std::system_error if it cannot be created.
    [[nodiscard]] static std::shared_ptr<asio_context> create() {
        auto made = std::make_shared<asio_blocking_context>();
        return {made, &made->context_};
    }
    asio_blocking_context() : multiplexer_(make_multiplexer()), context_(*multiplexer_) {}

private:
    [[nodiscard]] static std::unique_ptr<io_multiplexer> make_multiplexer() {
        auto made = make_epoll_multiplexer(0, run_by::one);
        if (not made) throw std::system_error(std::error_code(made.error()), made.error().operation());
        return std::move(*made);
    }

    std::unique_ptr<io_multiplexer> multiplexer_;
    asio_context context_;
};

}  // namespace detail

namespace asio_names {

/// Asio's basic_socket_streambuf: a connection as a blocking std::streambuf. Operations that have
/// to wait end with timed_out when the expiry time has come; error() then returns it.
///
/// Every call that transfers, connect(), and the destructor, which writes the buffer, block until
/// the expiry time or, without one, until the peer acts. Allocates: two buffers of 512 bytes and,
/// unless it is created from a socket, a context. Throws: std::system_error if there are no
/// descriptors for that context. Thread safety: one thread at a time.
template <class Protocol, class Clock = std::chrono::steady_clock, class Traits = asio::wait_traits<Clock>>
class basic_socket_streambuf : public std::streambuf {
public:
    using protocol_type = Protocol;
    using endpoint_type = typename Protocol::endpoint;
    using clock_type = Clock;
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;

    basic_socket_streambuf() : context_(detail::asio_blocking_context::create()), socket_(*context_) {
        clear_buffers();
    }
    explicit basic_socket_streambuf(basic_stream_socket<Protocol> socket) : socket_(std::move(socket)) {
        clear_buffers();
    }
    basic_socket_streambuf(basic_socket_streambuf&& other)
        : context_(other.context_), socket_(std::move(other.socket_)) {
        take_state_of(other);
    }
    basic_socket_streambuf& operator=(basic_socket_streambuf&& other) {
        if (this == &other) return *this;
        close();
        socket_ = std::move(other.socket_);
        context_ = other.context_;
        take_state_of(other);
        return *this;
    }
    ~basic_socket_streambuf() override { (void)flush(); }

    /// Connects to an endpoint or, given a host and a service or other arguments of resolve(), to
    /// the first of its addresses that accepts. Returns null if that fails. Name lookups ignore the
    /// expiry time.
    basic_socket_streambuf* connect(const endpoint_type& peer) {
        clear_buffers();
        why_.clear();
        connect_to_first(std::array{peer});
        return this_unless_failed();
    }
    template <class... Query>
    basic_socket_streambuf* connect(Query... query) {
        clear_buffers();
        why_.clear();
        basic_resolver<Protocol> resolver(socket_.get_executor());
        const auto found = resolver.resolve(query..., why_);
        if (not why_) connect_to_first(found);
        return this_unless_failed();
    }
    basic_socket_streambuf* close() {
        (void)flush();
        socket_.close(why_);
        clear_buffers();
        return this_unless_failed();
    }

    [[nodiscard]] basic_socket<Protocol>& socket() noexcept { return socket_; }
    /// Returns the error of the last operation.
    [[nodiscard]] const asio::error_code& error() const noexcept { return why_; }

    [[nodiscard]] time_point expiry() const noexcept { return expiry_; }
    void expires_at(const time_point& when) noexcept { expiry_ = when; }
    void expires_after(const duration& time) noexcept { expiry_ = Clock::now() + time; }

protected:
    int_type underflow() override {
        buffer into(reinterpret_cast<std::byte*>(input_.data() + putback_max), input_.size() - putback_max);
        const std::size_t count = transfer(detail::asio_message_call({&into, 1}, 0));
        if (count == 0 and not why_) why_ = asio::error::eof;
        if (why_) return traits_type::eof();
        char* const first = input_.data() + putback_max;
        setg(input_.data(), first, first + count);
        return traits_type::to_int_type(*first);
    }
    int_type overflow(int_type next) override {
        const bool has_next = not traits_type::eq_int_type(next, traits_type::eof());
        if (output_.empty()) {
            const char only = traits_type::to_char_type(next);
            return not has_next or write(&only, 1) ? traits_type::not_eof(next) : traits_type::eof();
        }
        if (not flush()) return traits_type::eof();
        if (has_next) sputc(traits_type::to_char_type(next));
        return traits_type::not_eof(next);
    }
    int sync() override { return flush() ? 0 : -1; }
    /// setbuf(nullptr, 0), before anything is written, makes each character be written at once.
    std::streambuf* setbuf(char* memory, std::streamsize size) override {
        if (pptr() != pbase() or memory != nullptr or size != 0) return nullptr;
        output_.clear();
        setp(nullptr, nullptr);
        return this;
    }

private:
    static constexpr std::size_t buffer_bytes = 512;
    static constexpr std::size_t putback_max = 8;

    [[nodiscard]] basic_socket_streambuf* this_unless_failed() noexcept { return why_ ? nullptr : this; }
    void clear_buffers() noexcept {
        char* const first = input_.data() + putback_max;
        setg(input_.data(), first, first);
        setp(output_.data(), output_.data() + output_.size());
    }
    // The other one is then in the state of a new object.
    void take_state_of(basic_socket_streambuf& other) {
        why_ = std::exchange(other.why_, {});
        expiry_ = std::exchange(other.expiry_, time_point::max());
        const std::ptrdiff_t read = other.gptr() - other.eback();
        const std::ptrdiff_t arrived = other.egptr() - other.eback();
        const auto unwritten = static_cast<int>(other.pptr() - other.pbase());
        input_ = std::exchange(other.input_, std::vector<char>(buffer_bytes));
        output_ = std::exchange(other.output_, std::vector<char>(buffer_bytes));
        other.clear_buffers();
        setg(input_.data(), input_.data() + read, input_.data() + arrived);
        setp(output_.data(), output_.data() + output_.size());
        pbump(unwritten);
    }
    [[nodiscard]] bool flush() {
        const auto unwritten = static_cast<std::size_t>(pptr() - pbase());
        if (unwritten == 0) return true;
        const bool is_written = write(pbase(), unwritten);
        if (is_written) setp(output_.data(), output_.data() + output_.size());
        return is_written;
    }
    [[nodiscard]] bool write(const char* from, std::size_t bytes) {
        while (bytes != 0) {
            const_buffer piece(reinterpret_cast<const std::byte*>(from), bytes);
            const std::size_t count = transfer(detail::asio_message_call({&piece, 1}, 0, {}));
            if (why_) return false;
            from += count;
            bytes -= count;
        }
        return true;
    }
    [[nodiscard]] std::size_t transfer(detail::asio_message_call call) {
        while (not has_expired()) {
            if (const std::optional<int> code = call.attempt({.descriptor = socket_.native_handle()})) {
                why_ = *code == 0 ? asio::error_code() : detail::asio_errno(*code);
                return *code == 0 ? call.take()->count : 0;
            }
            wait(call.waits_for());
        }
        return 0;
    }
    template <class Endpoints>
    void connect_to_first(const Endpoints& endpoints) {
        why_ = asio::error::not_found;
        for (const auto& each : endpoints) {
            connect_once(endpoint_type(each));
            if (not why_) return;
        }
    }
    void connect_once(const endpoint_type& peer) {
        socket_.close(why_);
        socket_.open(peer.protocol(), why_);
        if (why_ or has_expired()) return;
        int code = begin_connect(socket_.native_handle(), detail::address_of(peer));
        while (code == EINPROGRESS and not has_expired()) {
            wait(direction::out);
            code = connect_outcome(socket_.native_handle());
        }
        if (code != EINPROGRESS) why_ = code == 0 ? asio::error_code() : detail::asio_errno(code);
    }
    // Sets the error if the time has come. The clock is read again after each wait, because it may
    // be set back.
    [[nodiscard]] bool has_expired() {
        if (Clock::now() <= expiry_) return false;
        why_ = asio::error::timed_out;
        return true;
    }
    // The call that follows reports errors of the wait.
    void wait(direction which) {
        const deadline within = expiry_ == time_point::max()
                                    ? deadline()
                                    : deadline(detail::asio_sleep_until<Clock, Traits>(expiry_));
        (void)wait_ready({.descriptor = socket_.native_handle()}, which, within);
    }

    std::shared_ptr<asio_context> context_;  // null: the socket brought its own
    basic_stream_socket<Protocol> socket_;
    asio::error_code why_;
    time_point expiry_ = time_point::max();
    std::vector<char> input_ = std::vector<char>(buffer_bytes);
    std::vector<char> output_ = std::vector<char>(buffer_bytes);  // empty: nothing is buffered
};

}  // namespace asio_names
}  // namespace sluice::io
