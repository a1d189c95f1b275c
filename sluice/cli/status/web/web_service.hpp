#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/cli/status/background_findings.hpp"
#include "sluice/cli/status/findings.hpp"
#include "sluice/cli/status/server_sampler.hpp"
#include "sluice/cli/status/web/web_pages.hpp"
#include "sluice/cli/status/web/web_sessions.hpp"
#include "sluice/discovery/http/http_request.hpp"
#include "sluice/discovery/http/request_listener.hpp"
#include "sluice/smb/server/server.hpp"

namespace sluice::cli {

/// Serves a page about the server over HTTP, on a loopback address or a Unix socket.
///
/// Without a token, every process that can connect sees the page, and nothing changes. With one,
/// the page is for browsers that have sent the token, and can end sessions and close files. A
/// browser sends forms with the cookie of its session and with the token of the form; other
/// programs send `Authorization: Bearer TOKEN` instead. Only requests to its own host names are
/// answered.
///
/// It shares its loop with clients of the server. So it makes one page in each turn of the loop,
/// and reads the totals of the server once a second at most.
///
/// Construct, start(); before the server is destroyed, stop(), and wait for done(). Thread safety:
/// the first loop's thread.
class web_service {
public:
    struct dependencies {
        smb::server::smb_server& server;
        const server_sampler& samples;
        background_findings& host;
        web_sessions* logons;  // null: there is no token
    };
    /// All dependencies outlive it. The file of a Unix socket has mode 0600; stop() removes it.
    /// Errors: those of listening_socket_handle::listen.
    [[nodiscard]] static result<std::unique_ptr<web_service>> open(const dependencies& with,
                                                                   const io::socket_address& at) noexcept;
    web_service(const web_service&) = delete;
    web_service& operator=(const web_service&) = delete;

    void start() { connections_.start(); }
    void stop() noexcept { connections_.stop(); }
    [[nodiscard]] io::task<void> done() noexcept { return connections_.done(); }
    /// Returns the address, with the port that the system chose if it was 0.
    [[nodiscard]] const io::socket_address& address() const noexcept { return at_; }
    /// Returns the address for a browser, or the path of the Unix socket. Allocates: the text.
    [[nodiscard]] std::string url() const;

private:
    struct reply {
        http::http_status status = http::http_status::ok;
        std::string body{};
        std::string_view type = "text/html; charset=utf-8";
        std::string location{};   // the target of a redirection
        std::string cookie{};     // the value of Set-Cookie
        bool is_delayed = false;  // a wrong token was sent
    };
    // The sender of a request.
    struct visitor {
        bool may_see = false;
        bool has_wrong_token = false;
        bool is_program = false;  // it sent the token itself, so it needs no token of a form
        std::string form_token{};
        std::string name{};  // for the log
    };

    web_service(const dependencies& with, io::listening_socket_handle listener, const io::socket_address& at);

    [[nodiscard]] io::task<void> answer(io::socket_handle& socket) noexcept;
    [[nodiscard]] visitor visitor_of(const http::http_request& asked, const io::socket_handle& socket);
    [[nodiscard]] io::task<reply> reply_to(const http::http_request& asked,
                                           const io::socket_handle& socket) noexcept;
    [[nodiscard]] io::task<reply> page(const http::http_request& asked, visitor by) noexcept;
    [[nodiscard]] io::task<reply> files(page_view view) noexcept;
    [[nodiscard]] io::task<reply> overview(page_view view) noexcept;
    [[nodiscard]] std::vector<finding> findings(const smb::server::server_snapshot& totals);
    [[nodiscard]] reply sessions(const page_view& view);
    [[nodiscard]] io::task<reply> act(const http::http_request& asked, const visitor& by) noexcept;
    [[nodiscard]] io::task<bool> end_session(std::uint64_t number, const visitor& by) noexcept;
    [[nodiscard]] io::task<void> take_turn() noexcept;
    [[nodiscard]] std::shared_ptr<const smb::server::server_snapshot> totals(bool has_open_numbers);
    [[nodiscard]] reply log_on(const http::http_request& asked, const visitor& by);
    [[nodiscard]] reply log_off(const http::http_request& asked) noexcept;

    dependencies with_;
    io::socket_address at_;
    std::map<uid_t, std::size_t> accounts_;  // connections of each account to a Unix socket
    std::uint64_t last_page_turn_ = 0;       // the last turn of the loop with a page
    std::shared_ptr<const smb::server::server_snapshot> totals_;  // the last ones, or null
    bool has_open_numbers_ = false;                               // the last ones
    http::request_listener connections_;
};

}  // namespace sluice::cli
