#pragma once

#include <memory>
#include <string>

#include "sluice/cli/fat/image/image.hpp"
#include "sluice/fat/check/undo_recorder.hpp"
#include "sluice/fat/device/sparse_device.hpp"

namespace sluice::cli {

/// The undo file of a repair while it is written. Leaves with the reason if something fails.
/// Thread safety: one thread.
class undo_file {
public:
    /// Creates the file, durably. It must not exist: an earlier repair may need it. Only its owner
    /// can read it, because it contains parts of the image.
    undo_file(const std::string& path, opened_image& image, const fat::geometry& shape);

    /// Returns the volume to repair instead of that of the image.
    [[nodiscard]] fat::device& volume() noexcept { return *recorder_; }
    /// Ends the recording. Removes a file without a record; returns whether there is one.
    bool finish();

private:
    std::string path_;
    opened_image& image_;
    std::unique_ptr<fat::sparse_device> store_;
    std::unique_ptr<fat::undo_recorder> recorder_;
};

}  // namespace sluice::cli
