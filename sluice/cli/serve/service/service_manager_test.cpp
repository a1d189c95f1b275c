#include "sluice/cli/serve/service/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "sluice/cli/serve/service/environment_value.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

void unexpected(std::string_view text) {
    ADD_FAILURE() << text;
}

// Plays the manager, at an abstract name.
class service_reports : public testing::Test {
protected:
    service_reports() : name_("@sluice-test-" + std::to_string(::getpid())) {
        socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        std::ranges::copy(name_, address.sun_path);
        address.sun_path[0] = '\0';
        const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
        EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), bytes), 0);
    }
    ~service_reports() override { ::close(socket_); }

    [[nodiscard]] service_environment watched_every(const std::string& usec) const {
        return {.notify_socket = name_, .watchdog_usec = usec, .watchdog_pid = std::to_string(::getpid())};
    }
    // Returns the next report; empty if there is none.
    [[nodiscard]] std::string next() const {
        std::array<char, 2048> room{};
        const ssize_t got = ::recv(socket_, room.data(), room.size(), 0);
        return got < 0 ? std::string() : std::string(room.data(), static_cast<std::size_t>(got));
    }

    std::string name_;
    int socket_ = -1;
    service_manager::clock::time_point now_{};
};

TEST_F(service_reports, say_that_the_server_is_alive_four_times_per_interval) {
    service_manager manager(watched_every("20000000"), unexpected);
    manager.keep_alive(now_, 0);
    EXPECT_EQ(next(), "WATCHDOG=1");
    manager.keep_alive(now_ + 4999ms, 0);
    EXPECT_EQ(next(), "");
    manager.keep_alive(now_ + 5s, 0);
    EXPECT_EQ(next(), "WATCHDOG=1");
}

TEST_F(service_reports, do_not_say_that_the_server_is_alive_while_a_loop_is_stuck) {
    service_manager manager(watched_every("20000000"), unexpected);
    manager.keep_alive(now_ + 10s, 1);
    EXPECT_EQ(next(), "");
    manager.keep_alive(now_ + 20s, 0);
    EXPECT_EQ(next(), "WATCHDOG=1");
}

TEST_F(service_reports, do_not_say_that_the_server_is_alive_if_another_process_is_watched) {
    service_environment other = watched_every("20000000");
    other.watchdog_pid = "1";
    service_manager manager(other, unexpected);
    manager.keep_alive(now_, 0);
    EXPECT_EQ(next(), "");
}

TEST_F(service_reports, end_a_reload_with_the_status_that_it_has_set) {
    service_manager manager({.notify_socket = name_}, unexpected);
    manager.ready("serves 1 share");
    EXPECT_EQ(next(), "READY=1\nSTATUS=serves 1 share");
    manager.reloaded();
    EXPECT_EQ(next(), "") << "no reload was in progress";
    manager.reloading();
    EXPECT_TRUE(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    manager.set_status("serves 2 shares");
    manager.reloaded();
    EXPECT_EQ(next(), "READY=1\nSTATUS=serves 2 shares");
}

TEST_F(service_reports, say_nothing_else_after_a_stop_has_begun) {
    service_manager manager({.notify_socket = name_}, unexpected);
    manager.reloading();
    (void)next();
    manager.stopping();
    EXPECT_TRUE(next().starts_with("STOPPING=1\n"));
    manager.stopping();
    manager.reloaded();
    manager.reloading();
    manager.ready("serves");
    manager.set_status("serves");
    EXPECT_EQ(next(), "");
}

TEST_F(service_reports, contain_no_line_that_a_status_has_brought) {
    service_manager manager({.notify_socket = name_}, unexpected);
    manager.ready("a\nMAINPID=1");
    EXPECT_EQ(next(), "READY=1\nSTATUS=a?MAINPID=1");
}

TEST_F(service_reports, are_kept_in_order_while_the_manager_receives_none) {
    service_manager manager({.notify_socket = name_}, unexpected);
    std::size_t sent = 0;
    for (; sent != 4096; ++sent)
        manager.set_status(std::to_string(sent));  // more than a queue has room for
    std::size_t received = 0;
    std::string last;
    for (std::string report = next(); not report.empty(); report = next(), ++received)
        last = report;
    EXPECT_LT(received, sent);
    EXPECT_EQ(last, "STATUS=" + std::to_string(received - 1));
    for (std::size_t i = sent - service_manager::reports_kept_max; i != sent; ++i) {
        manager.keep_alive(now_, 0);
        EXPECT_EQ(next(), "STATUS=" + std::to_string(i));
    }
    EXPECT_EQ(next(), "");
}

TEST_F(service_reports, are_sent_to_nothing_but_a_socket_of_datagrams) {
    for (const std::string& name :
         {std::string("relative"), std::string("@"), std::string("/"), std::string(200, '/'),
          std::string("/dev/null"), std::string("vsock:2:9")}) {
        service_manager manager({.notify_socket = name},
                                [](std::string_view text) { EXPECT_TRUE(text.contains("NOTIFY_SOCKET")); });
        EXPECT_FALSE(manager.is_present()) << name;
        manager.ready("serves");
        manager.keep_alive(now_, 0);
    }
}

TEST(numbers_of_the_environment, have_decimal_digits_only) {
    EXPECT_EQ(number_of("17", 20), 17U);
    for (const char* const wrong : {"", " 1", "1 ", "-1", "+1", "0x1", "21", "99999999999999999999999"})
        EXPECT_EQ(number_of(wrong, 20), std::nullopt) << wrong;
}

}  // namespace
}  // namespace sluice::cli
