#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/volume.hpp"

// For tests: every implementation of a volume, and helper functions to use one.
namespace sluice::vfs {

/// A volume under test, and its dependencies.
class tested_volume {
public:
    virtual ~tested_volume() = default;
    [[nodiscard]] virtual volume& tested() noexcept = 0;
};

struct volume_kind {
    const char* name;
    std::unique_ptr<tested_volume> (*make)(io::io_multiplexer& multiplexer);
};
/// Returns the kinds of volume that a test program covers. Here they are a directory on a disk, one
/// in a file system in memory, and the memory volume; other programs have other implementations.
[[nodiscard]] std::vector<volume_kind> volume_kinds();

/// The tests that every implementation must pass.
class volume_test : public testing::TestWithParam<volume_kind> {
protected:
    volume_test();

    [[nodiscard]] volume& on() noexcept { return tested_->tested(); }
    [[nodiscard]] result<node_ptr> find(std::string_view path, follow_links links = follow_links::yes) {
        return on().find(path, links);
    }
    /// Finds a node that must exist.
    [[nodiscard]] node_ptr at(std::string_view path, follow_links links = follow_links::yes);
    node_ptr make_file(std::string_view path, std::string_view content = {});
    node_ptr make_directory(std::string_view path);
    node_ptr make_link(std::string_view path, std::string_view target);
    result<void> write(node& to, std::string_view content, std::uint64_t offset = 0);
    [[nodiscard]] result<std::string> read(node& from, std::uint64_t offset = 0, std::size_t bytes = 4096);
    /// Returns the complete content of the file at a path.
    [[nodiscard]] std::string content(std::string_view path);
    [[nodiscard]] std::map<std::string, metadata> list(std::string_view path);
    [[nodiscard]] std::vector<std::string> names(std::string_view path);
    /// Returns the cause of an error; 0 for success.
    template <class T>
    [[nodiscard]] static int code(const result<T>& of) noexcept {
        return of ? 0 : of.error().code();
    }

    std::unique_ptr<io::io_multiplexer> multiplexer_;
    std::unique_ptr<tested_volume> tested_;
};

inline constexpr data_access reads{.read = true, .write = false};
inline constexpr data_access writes{.read = true, .write = true};

/// Skips the rest of a test on a volume without the feature.
#define SLUICE_NEEDS(feature) \
    if (not on().features().feature) GTEST_SKIP() << "the volume does not support it"

#define SLUICE_TEST_EVERY_VOLUME(fixture)                                    \
    INSTANTIATE_TEST_SUITE_P(on, fixture, testing::ValuesIn(volume_kinds()), \
                             [](const auto& tested) { return std::string(tested.param.name); })

}  // namespace sluice::vfs
