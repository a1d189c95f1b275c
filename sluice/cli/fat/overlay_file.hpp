#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "sluice/cli/write_hold.hpp"
#include "sluice/fat/device/overlay_device.hpp"
#include "sluice/fat/device/sparse_device.hpp"

namespace sluice::cli {

/// When a regular file was changed last, in nanoseconds since 1970; 0 for a block device. Errors: of asking.
[[nodiscard]] result<std::int64_t> modification_of(const io::file_handle& image);

/// An overlay in a file, over an image that it belongs to.
///
/// Who does not just read holds the overlay for itself until it goes.
/// Thread safety: one thread, but for the device.
class overlay_file {
public:
    /// What it is wanted for. Only write makes one where there is none (an empty file is none), only commit
    /// goes on with what a commit had begun, and only rebind does without knowing the image again.
    enum class purpose : std::uint8_t { read, write, commit, rebind };

    /// `image` outlives it. `modified` as modification_of has it.
    /// Errors, as a sentence for people: no overlay, damaged, held by somebody, of another image or of one
    /// that has changed, and then what is different and what can be done.
    [[nodiscard]] static std::expected<std::unique_ptr<overlay_file>, std::string> open(
        const std::string& path, fat::device& image, std::int64_t modified, purpose wanted);

    [[nodiscard]] fat::overlay_device& device() noexcept { return *overlay_; }
    /// Says that its image now is what the image is now. Errors: of the devices.
    [[nodiscard]] result<void> bind_again(fat::device& image, std::int64_t modified);
    /// Says durably that what follows goes into the image. Errors: of the devices.
    [[nodiscard]] result<void> begin_commit();
    /// Makes it as if it had never been, durably; nothing else may be done with it then. Errors: of the file.
    [[nodiscard]] result<void> empty() { return store_->empty(); }

private:
    overlay_file(std::optional<write_hold> hold, std::unique_ptr<fat::sparse_device> store,
                 std::unique_ptr<fat::overlay_device> overlay) noexcept
        : hold_(std::move(hold)), store_(std::move(store)), overlay_(std::move(overlay)) {}

    std::optional<write_hold> hold_;  // first: outlives what it protects
    std::unique_ptr<fat::sparse_device> store_;
    std::unique_ptr<fat::overlay_device> overlay_;
};

}  // namespace sluice::cli
