#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/cli/byte_size.hpp"
#include "sluice/cli/fat/build_time.hpp"
#include "sluice/cli/fat/failure.hpp"
#include "sluice/cli/fat/image/image_stack.hpp"
#include "sluice/fat/engine/file_system.hpp"

namespace sluice::cli {

/// Parses a name. A file that is really called "a@1" or "a:/b" is named with a path before it.
[[nodiscard]] image_name parse_image(const std::string& text);

/// An image, opened, with the volume found in it; locked against other writers if it is opened for
/// writing. Prints the reason and leaves on failure.
class opened_image {
public:
    opened_image(const image_name& name, image_use use, const image_options& options);
    /// The same; calls `rejected(why)`, which does not return, if the image has no FAT volume, or
    /// several.
    opened_image(const image_name& name, image_use use, const image_options& options,
                 const std::function<void(const std::string&)>& rejected);

    [[nodiscard]] fat::device& volume() noexcept { return stack_->volume(); }
    /// Returns the number of bytes of the image before the volume.
    [[nodiscard]] std::uint64_t volume_offset() const noexcept { return stack_->where().offset; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// Returns image_stack::is_known_consistent().
    [[nodiscard]] bool is_known_consistent() const noexcept { return stack_->is_known_consistent(); }
    /// Returns its geometry. Leaves with the reason if there is none, or if the backup of the boot
    /// sector is right instead. If the volume does not decide which one is right, prints a warning;
    /// leaves if the image is opened for writing. Blocks: for the image.
    [[nodiscard]] fat::geometry shape();

private:
    std::string path_;
    image_use use_;
    std::unique_ptr<image_stack> stack_;
};

/// A mounted image. The order of the members is that of their dependencies.
class mounted_image {
public:
    mounted_image(const image_name& name, image_use use, const image_options& options,
                  fat::lookup_strategy strategy = fat::lookup_strategy::runs);

    [[nodiscard]] fat::file_system& system() noexcept { return *system_; }
    [[nodiscard]] opened_image& image() noexcept { return image_; }
    /// Writes everything and marks the volume clean; leaves with the reason on failure.
    void finish();

private:
    opened_image image_;
    build_clock clock_{source_date()};
    std::unique_ptr<fat::file_system> system_;
};

}  // namespace sluice::cli
