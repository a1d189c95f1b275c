#include "sluice/cli/serve/root_fence.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>  // mkdtemp

#include <filesystem>

namespace sluice::cli {
namespace {

class root_fence_test : public testing::Test {
protected:
    root_fence_test() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
    ~root_fence_test() override { std::filesystem::remove(path_); }
    [[nodiscard]] auto claim() { return root_fence::claim(path_, std::chrono::steady_clock::now()); }
    std::string path_ = std::filesystem::temp_directory_path() / "sluice-fence-XXXXXX";
};

TEST_F(root_fence_test, excludes_another_server_until_it_ends) {
    EXPECT_FALSE(root_fence::is_claimed(path_));
    {
        const auto mine = claim();
        ASSERT_TRUE(mine.has_value() and mine->has_value());
        EXPECT_TRUE(root_fence::is_claimed(path_));
        const auto theirs = claim();
        ASSERT_TRUE(theirs.has_value());
        EXPECT_FALSE(theirs->has_value());
    }
    EXPECT_FALSE(root_fence::is_claimed(path_));
    EXPECT_TRUE(claim().value().has_value());
}

TEST_F(root_fence_test, reports_a_missing_directory_as_an_error) {
    EXPECT_FALSE(root_fence::claim(path_ + "/none", std::chrono::steady_clock::now()).has_value());
    EXPECT_FALSE(root_fence::is_claimed(path_ + "/none"));
}

}  // namespace
}  // namespace sluice::cli
