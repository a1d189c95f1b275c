#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "sluice/io/path/path_handle.hpp"

// For tests: a separate directory, on the volume of the test.
namespace sluice::io {

/// A new directory beneath `parent`, open, and removed with its content at the end.
class test_directory {
public:
    explicit test_directory(const std::string& parent);
    test_directory(const test_directory&) = delete;
    test_directory& operator=(const test_directory&) = delete;
    ~test_directory();

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + '/' + name; }
    [[nodiscard]] const path_handle& anchor() const noexcept { return anchor_; }
    [[nodiscard]] path_handle confined(confinement limit = confinement::beneath) const;

    void write(const std::string& name, const std::string& content) const;
    [[nodiscard]] std::string content(const std::string& name) const;
    [[nodiscard]] bool exists(const std::string& name) const;
    [[nodiscard]] std::size_t entry_count() const;

private:
    std::string path_;
    path_handle anchor_;
};

/// A fixture run once on the volume of $TMPDIR (or the current directory), which on most machines
/// is a disk, and once in memory.
class on_each_volume : public testing::TestWithParam<const char*> {
protected:
    on_each_volume();
    test_directory directory;
};

#define SLUICE_ON_EACH_VOLUME(fixture)                                           \
    INSTANTIATE_TEST_SUITE_P(volume, fixture, testing::Values("disk", "memory"), \
                             [](const auto& tested) { return std::string(tested.param); })

}  // namespace sluice::io
