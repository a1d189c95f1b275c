#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cli/fat/image/image_stack.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::cli {

/// The images that a server serves. Each is opened once, independent of the number of shares, paths
/// and reloads: share modes, locks and leases apply to a file, and two engines on one image would
/// destroy it.
///
/// Thread safety: one thread, that of the loop.
class served_images {
public:
    /// Both outlive it and its volumes.
    served_images(io::io_multiplexer& loop, secret_random_source& random) noexcept
        : loop_(loop), random_(random) {}

    /// The image to serve, IMAGE or IMAGE@N, and how.
    struct wish {
        std::string name;
        image_options options;
        bool is_written = false;  // by any share

        [[nodiscard]] bool is_same_use(const wish& other) const {
            return name == other.name and options == other.options;
        }
    };

    /// Returns the volume of an image: the one that is already open if it is the same image with
    /// the same options. A writable image is locked against other writers until its volume is
    /// destroyed. Changes are written to the image a second later, and when the volume is
    /// destroyed. Errors, as a sentence for people: no such file, no FAT volume in it, another
    /// program writes to it, an overlay for another image; it is open with other options.
    /// Allocates: yes. Blocks: for the image.
    [[nodiscard]] std::expected<std::shared_ptr<vfs::volume>, std::string> open(const wish& wanted);

private:
    struct opened {
        wish how;
        io::file_status file;
        std::weak_ptr<vfs::volume> volume;
    };

    io::io_multiplexer& loop_;
    secret_random_source& random_;
    std::vector<opened> opened_;
};

/// Returns whether two names refer to one volume of one image file, by whatever paths.
[[nodiscard]] bool is_same_image(const std::string& a, const std::string& b);

}  // namespace sluice::cli
