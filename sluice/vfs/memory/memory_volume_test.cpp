#include "sluice/vfs/memory/memory_volume.hpp"

#include <gtest/gtest.h>

#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

// The properties of the volume in memory that other volumes do not have.

namespace sluice::vfs {
namespace {

using namespace std::chrono_literals;

class memory_volume_test : public testing::Test {
protected:
    [[nodiscard]] node_ptr open_file(std::string_view path) {
        auto made = on.create(path, {}).value();
        EXPECT_EQ(code(made->data()->open_data({.read = true, .write = true})), 0);
        return made;
    }
    result<void> write(node& to, std::string_view text, std::uint64_t offset = 0) {
        return io::sync_wait(*multiplexer, to.data()->co_write(std::as_bytes(std::span(text)), offset));
    }
    [[nodiscard]] int read(node& from) {
        std::array<std::byte, 16> into;
        return code(io::sync_wait(*multiplexer, from.data()->co_read(into, 0)));
    }

    std::unique_ptr<io::simulated_multiplexer> multiplexer =
        io::make_simulated_multiplexer({.seed = 7}).value();
    simulated_clock& clock = multiplexer->clock_of_simulation();
    memory_volume on{*multiplexer, clock, {.capacity_bytes = 16 * 4096}};
};

TEST_F(memory_volume_test, times_come_from_the_clock_it_was_given) {
    const auto file = open_file("f");
    const time_point made = time_of(clock.utc_now());
    EXPECT_EQ(file->status().value().born, made);
    clock.advance(1h);
    ASSERT_EQ(code(write(*file, "x")), 0);
    EXPECT_GE(file->status().value().modified, made + 1h);
    EXPECT_EQ(file->status().value().born, made);
}

TEST_F(memory_volume_test, space_runs_out_and_is_freed) {
    const auto file = open_file("f");
    const std::string page(4096, 'x');
    for (std::uint64_t i = 0; i < 16; ++i)
        ASSERT_EQ(code(write(*file, page, i * 8192)), 0);
    EXPECT_EQ(code(write(*file, "y", 1 << 20)), ENOSPC);
    EXPECT_EQ(on.space().value().free_bytes, 0U);
    EXPECT_EQ(code(file->data()->allocate(1 << 20)), ENOSPC);
    ASSERT_EQ(code(file->data()->zero(0, 4096, true)), 0);
    EXPECT_EQ(on.space().value().free_bytes, 4096U);
    EXPECT_EQ(code(write(*file, "y", 1 << 20)), 0);
    ASSERT_EQ(code(file->data()->truncate(0)), 0);
    EXPECT_EQ(on.space().value().free_bytes, 16U * 4096);
}

TEST_F(memory_volume_test, a_write_without_space_does_not_change_the_file) {
    const auto file = open_file("f");
    ASSERT_EQ(code(write(*file, "before")), 0);
    EXPECT_EQ(code(write(*file, std::string(17 * 4096, 'x'))), ENOSPC);
    EXPECT_EQ(file->status().value().size_bytes, 6U);
}

TEST_F(memory_volume_test, configured_faults_make_operations_fail) {
    const auto file = open_file("f");
    on.set_faults({.read_fails = 1000});
    EXPECT_EQ(read(*file), EIO);
    on.set_faults({.write_fails = 1000});
    EXPECT_EQ(read(*file), 0);
    EXPECT_EQ(code(write(*file, "x")), EIO);
    EXPECT_EQ(code(io::sync_wait(*multiplexer, file->co_flush())), EIO);
    on.set_faults({.create_fails = 1000});
    EXPECT_EQ(code(on.create("g", {})), ENOSPC);
    EXPECT_EQ(code(on.find("g", follow_links::no)), ENOENT);
}

TEST_F(memory_volume_test, the_same_seed_repeats_faults_and_delays) {
    const auto file = open_file("f");
    const auto run = [&] {
        on.set_faults({.seed = 42, .read_fails = 300, .delay_max = 10ms});
        std::string outcomes;
        for (int i = 0; i < 50; ++i)
            outcomes += read(*file) == 0 ? '.' : '!';
        return outcomes;
    };
    const auto before = clock.steady_now();
    const std::string first = run();
    EXPECT_GT(clock.steady_now() - before, 50ms) << "delays take simulated time";
    EXPECT_NE(first.find('!'), first.npos);
    EXPECT_NE(first.find('.'), first.npos);
    EXPECT_EQ(run(), first);
}

TEST_F(memory_volume_test, a_file_may_be_longer_than_memory) {
    const auto file = open_file("f");
    ASSERT_EQ(code(file->data()->truncate(1ULL << 50)), 0);
    ASSERT_EQ(code(write(*file, "end", (1ULL << 50) - 3)), 0);
    EXPECT_EQ(file->status().value().size_bytes, 1ULL << 50);
    EXPECT_LE(file->status().value().allocated_bytes, 4096U);
    EXPECT_EQ(code(write(*file, "x", INT64_MAX)), EFBIG);
}

TEST(memory_volume, a_stopped_volume_can_be_read_but_not_changed) {
    static bool is_stopped = false;
    const auto multiplexer = io::make_simulated_multiplexer({}).value();
    memory_volume on(*multiplexer, multiplexer->clock_of_simulation(),
                     {.faults = {.is_stopped = []() noexcept { return is_stopped; }}});
    const auto file = on.create("f", {}).value();
    is_stopped = true;
    EXPECT_EQ(code(on.create("g", {})), EIO);
    EXPECT_EQ(code(file->change({.is_sparse = true})), EIO);
    EXPECT_EQ(code(file->names()->rename("g", when_taken::refuse)), EIO);
    EXPECT_EQ(code(on.find("f", follow_links::no)), 0);
    is_stopped = false;
    EXPECT_EQ(code(on.create("g", {})), 0);
}

TEST(memory_volume, a_read_only_volume_rejects_all_changes) {
    const auto multiplexer = io::make_simulated_multiplexer({}).value();
    memory_volume on(*multiplexer, multiplexer->clock_of_simulation(), {.read_only = true});
    EXPECT_EQ(code(on.create("f", {})), EROFS);
    EXPECT_EQ(code(on.find("", follow_links::no).value()->change({.is_sparse = true})), EROFS);
}

}  // namespace
}  // namespace sluice::vfs
