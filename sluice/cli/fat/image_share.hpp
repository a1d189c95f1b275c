#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cli/fat/image_stack.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::cli {

/// The images that a server serves. Each is opened once, whatever the number of shares, of paths to it and of
/// reloads: share modes, locks and leases hold for a file, and two engines on one image would destroy it.
///
/// Thread safety: one thread, that of the loop.
class served_images {
public:
    /// Both outlive it and its volumes.
    served_images(io::io_multiplexer& loop, secret_random_source& random) noexcept
        : loop_(loop), random_(random) {}

    /// How an image is to be served: IMAGE or IMAGE@N.
    struct wish {
        std::string name;
        image_options options;
        bool is_written = false;  // by any share

        [[nodiscard]] bool is_same_use(const wish& other) const {
            return name == other.name and options == other.options;
        }
    };

    /// Returns the volume of an image: the one that is open already if it is the same image, used in the same
    /// way. An image that is written is locked against other writers until its volume goes. Changes are
    /// written to the image a second later, and when the volume goes. Errors, as a sentence for people: no
    /// such file, no FAT volume in it, another program writes to it, an overlay that does not belong to it;
    /// it is open and is to be used in another way now. Allocates: yes. Blocks: for the image.
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

/// Whether two names mean one volume of one image file, by whatever paths.
[[nodiscard]] bool is_same_image(const std::string& a, const std::string& b);

}  // namespace sluice::cli
