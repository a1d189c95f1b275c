#include "sluice/fat/volume/volume_change_feed.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/volume/volume.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::fat {
namespace {

/// While an object exists, the process cannot open files.
class no_more_descriptors {
public:
    no_more_descriptors() {
        const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        (void)::close(lowest);
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        const rlimit none{.rlim_cur = static_cast<rlim_t>(lowest), .rlim_max = before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    no_more_descriptors(const no_more_descriptors&) = delete;
    no_more_descriptors& operator=(const no_more_descriptors&) = delete;
    ~no_more_descriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

private:
    rlimit before_{};
};

class recorder final : public vfs::change_listener {
public:
    void changed(const vfs::change& what) noexcept override { paths.emplace_back(what.path); }
    void overflowed() noexcept override {}
    void ended() noexcept override {}
    std::vector<std::string> paths;
};

// Clients use descriptors, and a reload may open an image when none is available.
TEST(fat_changes, are_reported_by_a_volume_that_was_opened_without_a_descriptor_to_spare) {
    const auto loop = io::make_simulated_multiplexer({.seed = 1}).value();
    system_clock_source clock;
    memory_device image(formatted(1440, "-F 12"));
    const auto shape = read_geometry(image).value();
    const auto mount = [&] {
        return file_system::mount(image, shape, clock, {.zone = time_zone::utc()}).value();
    };
    std::optional<volume> tested;
    // UndefinedBehaviorSanitizer needs a pipe to inspect an object of a new type, so use all types
    // here once.
    tested.emplace(*loop, mount(), 1);
    tested.reset();
    auto mounted = mount();
    {
        const no_more_descriptors now;
        tested.emplace(*loop, std::move(mounted), 1);
    }
    recorder seen;
    const auto root = tested->find("", vfs::follow_links::yes).value();
    const auto watch = tested->changes()->watch(*root, false, seen).value();
    ASSERT_TRUE(tested->create("f", {}));
    EXPECT_TRUE(io::sync_wait(*loop, tested->changes()->co_changed()));
    tested->changes()->deliver();
    EXPECT_EQ(seen.paths.front(), "f");
}

}  // namespace
}  // namespace sluice::fat
