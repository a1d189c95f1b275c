#include "sluice/smb/client/wire_path.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "sluice/smb/client/limits.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::client {
namespace {

[[nodiscard]] std::string utf8_path_of(std::string_view path) {
    const auto made = wire_path_of(path, "open");
    return made ? wire::utf8_of(std::as_bytes(std::span(*made))).value() : made.error().message();
}

TEST(wire_path, has_backslashes_between_names_and_none_at_the_ends) {
    EXPECT_EQ(utf8_path_of("a/b/c"), "a\\b\\c");
    EXPECT_EQ(utf8_path_of("//a\\b/"), "a\\b");
    EXPECT_EQ(utf8_path_of(""), "");
    EXPECT_EQ(utf8_path_of("/"), "");
}

TEST(wire_path, rejects_paths_that_cannot_be_sent) {
    EXPECT_EQ(utf8_path_of(std::string_view("a\0b", 3)), "open: the path contains a NUL");
    EXPECT_EQ(utf8_path_of("\xff"), "open: the path is not UTF-8, which SMB requires");
    EXPECT_EQ(utf8_path_of(std::string(limits::path_bytes_max, 'a')).size(), limits::path_bytes_max);
    EXPECT_EQ(utf8_path_of(std::string(limits::path_bytes_max + 1, 'a')),
              "open: the path is too long for SMB");
}

}  // namespace
}  // namespace sluice::smb::client
