#include "sluice/cli/status/status_service.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <span>

#include "sluice/cli/status/status_document.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::cli {

using smb::server::server_snapshot;
using smb::server::smb_server;

namespace {

constexpr std::size_t question_bytes_max = 64;
constexpr std::size_t sessions_slice = 64;

[[nodiscard]] bool is_line(std::string_view text) {
    return text.ends_with('\n');
}

// The request: the words of the line, docs/formats/status.md.
enum class question : unsigned char { totals, opens, unknown };
[[nodiscard]] question question_in(std::string_view line) noexcept {
    while (line.ends_with('\n') or line.ends_with('\r'))
        line.remove_suffix(1);
    if (line.empty() or line == "status") return question::totals;
    return line == "status opens" ? question::opens : question::unknown;
}

[[nodiscard]] bool may_ask(const io::socket_handle& who) noexcept {
    const auto peer = who.peer_credentials();
    return peer and (peer->user == 0 or peer->user == ::geteuid());
}

}  // namespace

result<std::unique_ptr<status_service>> status_service::open(smb_server& server,
                                                             const server_sampler& samples,
                                                             const std::string& path) noexcept {
    const auto address = io::socket_address::local(path);
    if (not address) return failure(address.error());
    // Only its owner may access it from the first moment. No other thread creates files yet.
    const mode_t before = ::umask(0177);
    auto listener = io::listening_socket_handle::listen(*address, {.replace_stale = true});
    (void)::umask(before);
    if (not listener) return failure(listener.error());
    if (const auto attached = listener->set_multiplexer(&server.context().loop()); not attached)
        return failure(attached.error());
    return std::unique_ptr<status_service>(new status_service(server, samples, *std::move(listener), path));
}

status_service::status_service(smb_server& server, const server_sampler& samples,
                               io::listening_socket_handle listener, std::string path)
    : server_(server),
      samples_(samples),
      path_(std::move(path)),
      connections_(server.context().loop(), std::move(listener),
                   [this](io::socket_handle& socket) { return answer(socket); }) {}

status_service::~status_service() {
    (void)::unlink(path_.c_str());
}

io::task<void> status_service::answer(io::socket_handle& socket) noexcept {
    if (not may_ask(socket)) co_return;
    const std::string line = co_await http::co_read_until(socket, question_bytes_max, is_line);
    const question asked = question_in(line);
    if (asked == question::unknown) {
        (void)co_await http::co_write_all(socket, status_refusal("unknown request"));
        co_return;
    }
    const server_snapshot totals = server_.snapshot({.has_totals = true});
    json_writer to;
    open_totals sum;
    write_status_head(to, totals, samples_.rates(), samples_.loop_delays_ms());
    io::task<bool> writing = write_sessions(socket, to, totals.session_ids);
    bool is_listening = co_await std::move(writing);
    if (not is_listening) co_return;
    writing = write_opens(socket, to, sum, totals.open_numbers, asked == question::opens);
    is_listening = co_await std::move(writing);
    if (not is_listening) co_return;
    write_status_tail(to, totals, sum);
    (void)co_await http::co_write_all(socket, to.take() + "\n");
}

io::task<bool> status_service::write_sessions(io::socket_handle& socket, json_writer& to,
                                              const std::vector<std::uint64_t>& ids) noexcept {
    to.key("sessions").begin_array();
    for (std::span<const std::uint64_t> left(ids); not left.empty();) {
        const auto slice = left.first(std::min(left.size(), sessions_slice));
        left = left.subspan(slice.size());
        const server_snapshot seen = server_.snapshot({.sessions = slice});
        for (const auto& one : seen.sessions)
            write_session(to, one);
        const auto sent = co_await http::co_write_all(socket, to.take());
        if (not sent) co_return false;
        co_await io::yield(server_.context().loop());
    }
    to.end_array();
    co_return true;
}

io::task<bool> status_service::write_opens(io::socket_handle& socket, json_writer& to, open_totals& sum,
                                           const std::vector<std::uint64_t>& numbers, bool lists) noexcept {
    const std::size_t slice_max = lists ? open_totals::slice_with_names : open_totals::slice;
    if (lists) to.key("opens").begin_array();
    for (std::span<const std::uint64_t> left(numbers); not left.empty();) {
        const auto slice = left.first(std::min(left.size(), slice_max));
        left = left.subspan(slice.size());
        const server_snapshot seen = server_.snapshot({.has_names = lists, .opens = slice});
        for (const auto& one : seen.opens) {
            sum.add(one);
            if (lists) write_open(to, one);
        }
        const auto sent = co_await http::co_write_all(socket, to.take());
        if (not sent) co_return false;
        co_await io::yield(server_.context().loop());
    }
    if (lists) to.end_array();
    co_return true;
}

}  // namespace sluice::cli
