#include "sluice/cli/serve/share_streams.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

share_options share_of(const std::string& path, bool read_only = false) {
    share_options share;
    share.name = share.path = path;
    share.read_only = read_only;
    return share;
}

// Directories that do not exist, so that no symbolic link is resolved.
class streams_roots : public testing::Test {
protected:
    streams_root of(const std::string& path) const {
        return streams_root_of(shares, share_of(path), answered);
    }
    const std::vector<share_options> shares{share_of("/no-such/a/b/c"), share_of("/no-such/a", true),
                                            share_of("/no-such/a/b"), share_of("/no-such/ab")};
    share_roots answered{
        {"/no-such/a/b/c", {}}, {"/no-such/a", {}}, {"/no-such/a/b", {}}, {"/no-such/ab", {}}};
};

TEST_F(streams_roots, are_those_of_the_outermost_share_even_if_it_is_read_only) {
    EXPECT_EQ(of("/no-such/a/b/c").path, "/no-such/a");
    EXPECT_EQ(of("/no-such/a/b").path, "/no-such/a");
    EXPECT_EQ(of("/no-such/a/b").unanswered, "");
}

TEST_F(streams_roots, are_their_own_if_no_other_share_contains_them) {
    EXPECT_EQ(of("/no-such/a").path, "");
    EXPECT_EQ(of("/no-such/ab").path, "");
}

TEST_F(streams_roots, name_the_share_whose_file_system_has_not_answered) {
    answered.erase("/no-such/a/b");
    EXPECT_EQ(of("/no-such/a/b/c").unanswered, "") << "another share has the streams";
    answered.erase("/no-such/a");
    EXPECT_EQ(of("/no-such/a/b/c").path, "/no-such/a");
    EXPECT_EQ(of("/no-such/a/b/c").unanswered, "/no-such/a");
}

}  // namespace
}  // namespace sluice::cli
