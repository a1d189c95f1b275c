#include "sluice/cli/status/status_socket.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace sluice::cli {
namespace {

TEST(status_socket, only_the_names_of_status_sockets_are_asked) {
    for (const std::string& path : {status_socket_path(445), second_status_socket_path(1445)})
        EXPECT_TRUE(is_status_socket_name(std::filesystem::path(path).filename().native())) << path;
    EXPECT_TRUE(is_status_socket_name("status.sock"));
    for (const std::string_view name :
         {"", ".sock", "web.sock", "445", "445.socket", "445-.sock", "-1.sock", "445-1-2.sock", "x445.sock"})
        EXPECT_FALSE(is_status_socket_name(name)) << name;
}

}  // namespace
}  // namespace sluice::cli
