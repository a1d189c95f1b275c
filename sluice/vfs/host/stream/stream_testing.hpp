#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/host/stream/stream_record.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

// For tests: streams of a host directory, and the files in which large ones are stored.
namespace sluice::vfs {

/// A directory on the file system of the working directory, which on most machines has little room
/// for attributes, and its volume.
class stream_test : public testing::Test {
protected:
    static constexpr data_access both{.read = true, .write = true};

    explicit stream_test(const std::string& parent = std::filesystem::current_path().string())
        : scratch(parent) {}
    void SetUp() override {
        scratch.write("f", "main");
        if (not volume->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    }

    void reopen(const host_volume_options& options = {}) {
        volume.reset();
        volume = host_volume::open(*multiplexer, scratch.path(), options).value();
    }
    [[nodiscard]] node_ptr at(std::string_view path) {
        auto found = volume->find(path, follow_links::yes);
        if (not found) ADD_FAILURE() << path << ": " << found.error().message();
        return found ? std::move(*found) : nullptr;
    }
    /// Opens or creates a stream, for reading and writing.
    [[nodiscard]] node_ptr stream(std::string_view path, std::string_view name) {
        auto made = at(path)->attached()->open_stream({.name = name, .create = true});
        if (not made) ADD_FAILURE() << name << ": " << made.error().message();
        if (not made) return nullptr;
        EXPECT_EQ(code((*made)->data()->open_data(both)), 0);
        return std::move(*made);
    }
    [[nodiscard]] result<void> write(node& to, std::string_view text, std::uint64_t offset = 0) {
        return io::sync_wait(*multiplexer, to.data()->co_write(std::as_bytes(std::span(text)), offset));
    }
    node_ptr put(std::string_view path, std::string_view name, std::string_view text) {
        node_ptr made = stream(path, name);
        EXPECT_EQ(code(write(*made, text)), 0) << name;
        return made;
    }
    [[nodiscard]] std::string read(node& from, std::uint64_t offset = 0) {
        std::string text(1U << 20, '\0');
        const auto into = std::as_writable_bytes(std::span(text));
        const auto count = io::sync_wait(*multiplexer, from.data()->co_read(into, offset));
        if (not count) return "error " + std::to_string(count.error().code());
        text.resize(*count);
        return text;
    }
    /// Returns the content of a stream, for a new node; "error N" if there is none.
    [[nodiscard]] std::string content(std::string_view path, std::string_view name) {
        auto found = at(path)->attached()->open_stream({.name = name});
        if (not found) return "error " + std::to_string(found.error().code());
        if (const auto granted = (*found)->data()->open_data({.read = true}); not granted)
            return "error " + std::to_string(granted.error().code());
        return read(**found);
    }
    /// Returns the streams of a file as "name size", sorted.
    [[nodiscard]] std::vector<std::string> streams(std::string_view path) {
        std::vector<std::string> found;
        const auto all = at(path)->attached()->streams();
        EXPECT_EQ(code(all), 0);
        if (not all) return found;
        for (const stream_info& each : *all)
            found.push_back(each.name + ' ' + std::to_string(each.size_bytes));
        std::ranges::sort(found);
        return found;
    }
    /// Returns the files in the stores of the directory, without their directories, sorted: those
    /// that are not in `lost`, or those that are.
    [[nodiscard]] std::vector<std::string> stored() const { return stored(false); }
    [[nodiscard]] std::vector<std::string> lost() const { return stored(true); }
    /// Gives a new file the reference of another, as a copy with attributes does.
    void copy_reference(const std::string& from, const std::string& to) const {
        const auto original = io::file_handle::open({}, scratch.path_of(from)).value();
        scratch.write(to, "");
        const auto copy = io::file_handle::open({}, scratch.path_of(to), io::mode::write).value();
        ASSERT_TRUE(
            store_stream_record(copy, load_stream_record(original).value().value(), record_storing::replace));
    }
    /// Returns the directory in which the large streams of a file are.
    [[nodiscard]] std::filesystem::path directory_of(const std::string& name) const {
        const auto file = io::file_handle::open({}, scratch.path_of(name)).value();
        const auto record = load_stream_record(file).value();
        if (not record) return {};
        const std::string id = record->id.text();
        return std::filesystem::path(scratch.path()) / ".sluice-streams" / id.substr(0, 2) / id;
    }

private:
    [[nodiscard]] std::vector<std::string> stored(bool is_lost) const {
        std::vector<std::string> found;
        for (const auto& each : std::filesystem::recursive_directory_iterator(scratch.path()))
            if (each.is_regular_file() and each.path().filename().string().starts_with('=') and
                each.path().string().contains("/lost/") == is_lost)
                found.push_back(each.path().filename().string());
        std::ranges::sort(found);
        return found;
    }

protected:
    io::test_directory scratch;
    std::unique_ptr<io::io_multiplexer> multiplexer = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> volume = host_volume::open(*multiplexer, scratch.path()).value();
    const std::string large = std::string(10'000, 'L');
};

}  // namespace sluice::vfs
