#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "sluice/cli/writer_lock.hpp"
#include "sluice/fat/device/overlay_device.hpp"
#include "sluice/fat/device/sparse_device.hpp"

namespace sluice::cli {

/// Returns the time of the last modification of a regular file, in nanoseconds since 1970; 0 for a
/// block device. Errors: those of the query.
[[nodiscard]] result<std::int64_t> modification_of(const io::file_handle& image);

/// An overlay in a file, over an image that it belongs to.
///
/// Every purpose except read locks the overlay exclusively for the lifetime of this object.
/// Thread safety: one thread, except for the device.
class overlay_file {
public:
    /// The purpose of opening it. Only write creates a missing overlay (an empty file counts as
    /// missing), only commit continues an interrupted commit, and only rebind accepts a changed
    /// image.
    enum class purpose : std::uint8_t { read, write, commit, rebind };

    /// Opens an overlay. `image` outlives it. `modified`: as returned by modification_of.
    /// Errors, as a sentence for people: not an overlay, damaged, locked by another process, for
    /// another image or one that has changed; then the sentence states the difference and the
    /// remedy.
    [[nodiscard]] static std::expected<std::unique_ptr<overlay_file>, std::string> open(
        const std::string& path, fat::device& image, std::int64_t modified, purpose wanted);

    [[nodiscard]] fat::overlay_device& device() noexcept { return *overlay_; }
    /// Binds the overlay to the present state of the image. Errors: those of the devices.
    [[nodiscard]] result<void> bind_again(fat::device& image, std::int64_t modified);
    /// Records durably that the following changes go into the image. Errors: those of the devices.
    [[nodiscard]] result<void> begin_commit();
    /// Discards all changes, durably; the object must not be used afterwards. Errors: those of the
    /// file.
    [[nodiscard]] result<void> empty() { return store_->empty(); }

private:
    overlay_file(std::optional<writer_lock> hold, std::unique_ptr<fat::sparse_device> store,
                 std::unique_ptr<fat::overlay_device> overlay) noexcept
        : hold_(std::move(hold)), store_(std::move(store)), overlay_(std::move(overlay)) {}

    std::optional<writer_lock> hold_;  // first: outlives the file that it protects
    std::unique_ptr<fat::sparse_device> store_;
    std::unique_ptr<fat::overlay_device> overlay_;
};

}  // namespace sluice::cli
