#include "sluice/fsmutex/best_available.hpp"

#include <gtest/gtest.h>

#include "sluice/io/path/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

class the_best_algorithm : public testing::Test {
protected:
    [[nodiscard]] algorithm best(const std::string& name) const {
        return best_available(directory.anchor(), name).value().which;
    }
    io::test_directory directory{"/dev/shm"};
};

TEST_F(the_best_algorithm, maps_memory_where_no_other_host_can_mount_the_volume_and_reports_why) {
    const auto choice = best_available(directory.anchor(), "new").value();
    EXPECT_EQ(choice.which, algorithm::memory_map);
    EXPECT_NE(choice.reason.find("tmpfs"), std::string::npos) << choice.reason;
    EXPECT_EQ(best_available({}, directory.path_of("new")).value().which, algorithm::memory_map);
}

TEST_F(the_best_algorithm, is_the_one_that_others_use_already) {
    for (const algorithm used : {algorithm::lock_files, algorithm::atomic_append, algorithm::memory_map}) {
        const std::string name(name_of(used));
        const auto mutex = open(used, directory.anchor(), name).value();
        EXPECT_EQ(mutex->which(), used);
        EXPECT_EQ(best(name), used) << name;
    }
}

TEST_F(the_best_algorithm, reports_an_error_for_a_missing_directory) {
    EXPECT_EQ(best_available(directory.anchor(), "none/new").error(), std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace sluice::fsmutex
