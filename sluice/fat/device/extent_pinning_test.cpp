#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "sluice/fat/check/check.hpp"
#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/device/partition_device.hpp"
#include "sluice/fat/engine/extent_pin_table.hpp"
#include "sluice/io/file/page_cache.hpp"
#include "sluice/io/path/volume_test.hpp"

// The extents of a file that can be pinned, and the isolation of readers that hold pins.

namespace sluice::fat {
namespace {

// The data area begins at a page boundary, and clusters are pages.
constexpr const char* in_pages = "-F 16 -s 8 -R 8 -f 2 -r 512";
constexpr std::size_t cluster = 4096;

std::size_t bytes_of(const vfs::host_runs& of) {
    return std::accumulate(of.runs.begin(), of.runs.end(), std::size_t{0},
                           [](std::size_t sum, const vfs::host_run& each) { return sum + each.length; });
}

class extent_pinning : public io::on_each_volume {
protected:
    extent_pinning() { begin(in_pages); }
    ~extent_pinning() override {
        system_.reset();
        const auto report = check(*device_).value();
        EXPECT_TRUE(report.is_consistent()) << text_of(report);
    }

    void begin(const char* format, const mount_options& how = {}) {
        system_.reset();
        const auto image = formatted(20 << 10, format);
        directory.write("image", std::string(reinterpret_cast<const char*>(image.data()), image.size()));
        device_.emplace(file_device::over(open_image()).value());
        mount(how);
    }
    void mount(const mount_options& how) {
        system_.reset();
        system_ = file_system::mount(*device_, read_geometry(*device_).value(), clock_, how).value();
    }
    [[nodiscard]] io::file_handle open_image() const {
        return io::file_handle::open({}, directory.path_of("image"), io::mode::write).value();
    }
    [[nodiscard]] file_system& system() noexcept { return *system_; }

    [[nodiscard]] result<vfs::host_runs> pin_extents(std::string_view path, std::uint64_t offset,
                                                     std::uint64_t length, std::size_t runs_max = 1024) {
        auto file = system().find(path).value();
        return system().pin_extents(*file, {.offset = offset, .length = length}, runs_max);
    }
    // Returns the bytes that the holder of a pin finds in the file of the image.
    [[nodiscard]] std::string seen(const vfs::host_runs& by) const {
        std::string text;
        for (const vfs::host_run& run : by.runs) {
            std::string part(run.length, '\0');
            if (run.place)
                EXPECT_EQ(
                    ::pread(by.file->descriptor(), part.data(), part.size(), static_cast<off_t>(*run.place)),
                    static_cast<ssize_t>(part.size()));
            text += part;
        }
        return text;
    }
    // Fills all available clusters with one byte. Returns the number of bytes.
    std::size_t fill_up(std::string_view path, char what) {
        auto file = system().create(path, false, attributes::none).value();
        run_list::hint hint;
        std::size_t done = 0;
        const std::string piece(cluster, what);
        while (system().write(*file, hint, std::as_bytes(std::span(piece)), done))
            done += piece.size();
        return done;
    }
    // Creates two files in runs of one cluster. A closed file has no reserved clusters.
    void put_in_pieces(const char* first, const char* second, std::size_t pieces) {
        for (std::size_t i = 0; i != pieces; ++i) {
            for (const char* const path : {first, second}) {
                if (i == 0) put(system(), path, {});
                auto file = system().find(path).value();
                run_list::hint hint;
                const std::string part(cluster, static_cast<char>('a' + i % 26));
                ASSERT_TRUE(system().write(*file, hint, std::as_bytes(std::span(part)), i * cluster));
            }
        }
    }

    simulated_clock clock_;
    std::optional<file_device> device_;
    std::unique_ptr<file_system> system_;
};

// A pipe that receives pages by reference.
class spliced {
public:
    spliced() { EXPECT_EQ(::pipe(ends_.data()), 0); }
    spliced(const spliced&) = delete;
    spliced& operator=(const spliced&) = delete;
    ~spliced() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    void take(const vfs::host_runs& from) {
        for (const vfs::host_run& run : from.runs) {
            auto place = static_cast<loff_t>(*run.place);
            ASSERT_EQ(::splice(from.file->descriptor(), &place, ends_[1], nullptr, run.length, 0),
                      static_cast<ssize_t>(run.length));
        }
    }
    [[nodiscard]] std::string received(std::size_t bytes) const {
        std::string text(bytes, '\0');
        std::size_t done = 0;
        while (done != bytes) {
            const ssize_t got = ::read(ends_[0], text.data() + done, bytes - done);
            if (got <= 0) break;
            done += static_cast<std::size_t>(got);
        }
        return text.substr(0, done);
    }

private:
    std::array<int, 2> ends_{};
};

TEST_P(extent_pinning, names_the_runs_of_a_range_in_the_file_of_the_host) {
    ASSERT_TRUE(system().pins_extents());
    put_in_pieces("a", "b", 6);
    const auto pinned = pin_extents("a", 100, 5 * cluster).value();
    EXPECT_EQ(pinned.runs.size(), 6U);
    EXPECT_EQ(seen(pinned), content_of(system(), "a").substr(100, 5 * cluster));
    EXPECT_EQ(bytes_of(pin_extents("a", 5 * cluster, 1 << 20).value()), cluster)
        << "ends at the end of the file";
    EXPECT_TRUE(pin_extents("a", 6 * cluster, 10).value().runs.empty());
    EXPECT_EQ(code(pin_extents("a", 100, 5 * cluster, pinned.runs.size() - 1)), E2BIG);
}

TEST_P(extent_pinning, reports_the_zero_bytes_that_are_not_on_disk) {
    put(system(), "f", std::string(5000, 'x'));
    auto file = system().find("f").value();
    ASSERT_TRUE(system().truncate(*file, 100'000));
    const auto pinned = system().pin_extents(*file, {.offset = 0, .length = 100'000}, 10).value();
    ASSERT_EQ(bytes_of(pinned), 100'000U);
    EXPECT_FALSE(pinned.runs.back().place);
    EXPECT_EQ(pinned.runs.back().length, 95'000U);
    EXPECT_EQ(seen(pinned), content_of(system(), "f"));
}

TEST_P(extent_pinning, keeps_pinned_extents_from_other_files_until_they_are_unpinned) {
    put(system(), "f", std::string(40 * cluster, 'x'));
    const std::uint32_t clusters = system().free_clusters().value() + 40;
    auto pinned = pin_extents("f", 0, 40 * cluster).value();
    ASSERT_TRUE(system().remove(*system().find("f").value()));
    ASSERT_TRUE(system().commit());
    EXPECT_EQ(system().free_clusters().value(), clusters) << "they are reported as free";
    const std::size_t filled = fill_up("others", 'o');
    EXPECT_LE(filled, (std::size_t{clusters} - 40) * cluster);
    EXPECT_EQ(seen(pinned).find('o'), std::string::npos);
    pinned = {};
    // A write without room causes a commit, which checks the pinned clusters again.
    EXPECT_GE(fill_up("more", 'm'), 40 * cluster);
}

TEST_P(extent_pinning, keeps_the_clusters_of_a_truncated_part_as_well) {
    put(system(), "f", std::string(40 * cluster, 'x'));
    const auto pinned = pin_extents("f", 10 * cluster, 20 * cluster).value();
    auto file = system().find("f").value();
    ASSERT_TRUE(system().truncate(*file, cluster));
    ASSERT_TRUE(system().commit());
    (void)fill_up("others", 'o');
    EXPECT_EQ(seen(pinned).find('o'), std::string::npos);
}

TEST_P(extent_pinning, never_exposes_other_files_in_pages_spliced_by_reference) {
    put(system(), "f", std::string(12 * cluster, 'x'));
    spliced reply;
    {
        const auto pinned = pin_extents("f", 0, 12 * cluster).value();
        reply.take(pinned);
    }
    ASSERT_TRUE(system().remove(*system().find("f").value()));
    ASSERT_TRUE(system().commit());
    EXPECT_GE(fill_up("others", 'o'), 12 * cluster);
    const std::string received = reply.received(12 * cluster);
    EXPECT_EQ(received.size(), 12 * cluster);
    EXPECT_EQ(received.find('o'), std::string::npos);
}

TEST_P(extent_pinning, outlives_the_volume) {
    put(system(), "f", std::string(4 * cluster, 'x'));
    const auto kept = pin_extents("f", 0, 4 * cluster).value().kept;
    mount({});
    EXPECT_NE(kept, nullptr);
}

TEST_P(extent_pinning, needs_whole_pages_or_a_volume_without_writers) {
    begin("-F 16 -s 1");
    EXPECT_FALSE(system().pins_extents()) << "a page has clusters of several files";
    put(system(), "f", std::string(5000, 'x'));
    EXPECT_EQ(code(pin_extents("f", 0, 1)), EOPNOTSUPP);
    mount({.is_read_only = true});
    ASSERT_TRUE(system().pins_extents());
    EXPECT_EQ(seen(pin_extents("f", 0, 5000).value()), std::string(5000, 'x'));

    begin("-F 16 -s 8 -R 1 -r 16 -a");
    EXPECT_FALSE(system().pins_extents()) << "clusters begin within a page";
    begin(in_pages, {.discards = false});
    EXPECT_FALSE(system().pins_extents()) << "pages are never evicted from the host's memory";
    mounted_image in_memory(formatted(20 << 10, in_pages));
    EXPECT_FALSE(in_memory.system->pins_extents());
}

TEST(extent_pin_table, reports_pins_by_group_and_remembers_past_ones) {
    const auto pins = std::make_shared<extent_pin_table>(1000);
    const cluster_extent asked{.first = 130, .length = 3};
    EXPECT_FALSE(pins->was_pinned(asked));
    {
        extent_pin one(pins);
        extent_pin other(pins);
        one.add({.first = 2, .length = 127});
        other.add({.first = 190, .length = 10});
        EXPECT_TRUE(pins->is_pinned(asked)) << "a neighbour's";
        EXPECT_TRUE(pins->is_pinned({.first = 128, .length = 1}));
        EXPECT_FALSE(pins->is_pinned({.first = 256, .length = 745}));
    }
    EXPECT_FALSE(pins->is_pinned({.first = 2, .length = 998}));
    EXPECT_TRUE(pins->was_pinned(asked));
    EXPECT_TRUE(pins->was_pinned({.first = 0, .length = 1001}));
    EXPECT_FALSE(pins->was_pinned({.first = 256, .length = 745}));
}

SLUICE_ON_EACH_VOLUME(extent_pinning);

}  // namespace
}  // namespace sluice::fat
