#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/path/volume_test.hpp"

// For tests: the contract of every algorithm, tested once for all (conformance_test.cpp), and how
// to open each.
namespace sluice::fsmutex {

struct tested_algorithm {
    std::string name;
    std::function<result<std::unique_ptr<shared_fs_mutex>>(const io::path_handle&, io::path_view,
                                                           const dependencies&)>
        open;
    bool reports_deaths = false;
    bool leaves_its_file = false;
};

[[nodiscard]] const std::vector<tested_algorithm>& tested_algorithms();

/// A fixture that runs for each algorithm on a disk and in memory. If SLUICE_SECOND_MOUNT has the
/// path of another mount of the volume of TMPDIR, every second open goes through that mount, like
/// an open from another host.
class on_each_algorithm : public testing::TestWithParam<std::tuple<std::size_t, const char*>> {
protected:
    on_each_algorithm();
    [[nodiscard]] const tested_algorithm& tested() const {
        return tested_algorithms()[std::get<0>(GetParam())];
    }
    [[nodiscard]] std::unique_ptr<shared_fs_mutex> open(
        const dependencies& from = dependencies::of_this_machine()) const;
    /// Returns the directory as seen through the first mount or the second.
    [[nodiscard]] const io::path_handle& anchor(std::size_t mount) const {
        return second_anchor and mount % 2 != 0 ? *second_anchor : directory.anchor();
    }

    io::test_directory directory;
    std::optional<io::path_handle> second_anchor;

private:
    mutable std::atomic<std::size_t> openings_ = 0;
};

[[nodiscard]] std::string name_of_instance(
    const testing::TestParamInfo<std::tuple<std::size_t, const char*>>& info);

#define SLUICE_ON_EACH_ALGORITHM(fixture)                                                                 \
    INSTANTIATE_TEST_SUITE_P(algorithm, fixture,                                                          \
                             testing::Combine(testing::Range(std::size_t{0}, tested_algorithms().size()), \
                                              testing::Values("disk", "memory")),                         \
                             name_of_instance)

}  // namespace sluice::fsmutex
