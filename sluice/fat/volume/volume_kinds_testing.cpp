#include <filesystem>
#include <optional>

#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/volume/volume.hpp"
#include "sluice/vfs/volume_testing.hpp"

// FAT volumes for the tests that all kinds of volumes must pass.

namespace sluice::vfs {
namespace {

// Formatted by mkfs.fat; at the end of a test, fsck.fat must report no problem.
class fat_under_test final : public tested_volume {
public:
    fat_under_test(io::io_multiplexer& multiplexer, std::size_t kibibytes, const std::string& options)
        : image_(fat::formatted(kibibytes, options)) {
        const auto shape = fat::read_geometry(image_).value();
        auto mounted =
            fat::file_system::mount(image_, shape, clock_, {.zone = fat::time_zone::utc()}).value();
        made_ = std::make_unique<fat::volume>(multiplexer, std::move(mounted), 1U);
    }
    ~fat_under_test() override {
        made_.reset();
        const fat::verdict said = fat::fsck(image_.bytes());
        EXPECT_TRUE(said.is_clean) << said.said;
    }
    [[nodiscard]] volume& tested() noexcept override { return *made_; }

private:
    system_clock_source clock_;
    fat::memory_device image_;
    std::unique_ptr<fat::volume> made_;
};

// In a file, so that reads bypass the engine (file_system::pin_extents).
class fat_in_file final : public tested_volume {
public:
    explicit fat_in_file(io::io_multiplexer& multiplexer)
        : directory_(std::filesystem::current_path().string()) {
        const auto image = fat::formatted(8 << 10, "-F 32 -s 8");
        directory_.write("image", std::string(reinterpret_cast<const char*>(image.data()), image.size()));
        device_.emplace(fat::file_device::over(
                            io::file_handle::open({}, directory_.path_of("image"), io::mode::write).value())
                            .value());
        const auto shape = fat::read_geometry(*device_).value();
        auto mounted =
            fat::file_system::mount(*device_, shape, clock_, {.zone = fat::time_zone::utc()}).value();
        EXPECT_TRUE(mounted->pins_extents());
        made_ = std::make_unique<fat::volume>(multiplexer, std::move(mounted), 1U);
    }
    ~fat_in_file() override {
        made_.reset();
        std::vector<std::byte> bytes(device_->size_bytes());
        EXPECT_TRUE(device_->read_at(0, bytes));
        const fat::verdict said = fat::fsck(bytes);
        EXPECT_TRUE(said.is_clean) << said.said;
    }
    [[nodiscard]] volume& tested() noexcept override { return *made_; }

private:
    io::test_directory directory_;
    system_clock_source clock_;
    std::optional<fat::file_device> device_;
    std::unique_ptr<fat::volume> made_;
};

}  // namespace

std::vector<volume_kind> volume_kinds() {
    return {
        {.name = "fat12",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             return std::make_unique<fat_under_test>(with, 8 << 10, "-F 12 -r 8192");
         }},
        {.name = "fat32",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             return std::make_unique<fat_under_test>(with, 34 << 10, "-F 32 -s 1");
         }},
        {.name = "fat32_in_a_file",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             return std::make_unique<fat_in_file>(with);
         }},
    };
}

}  // namespace sluice::vfs
