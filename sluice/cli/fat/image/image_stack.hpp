#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "sluice/cli/fat/image/image_options.hpp"
#include "sluice/cli/fat/image/overlay_file.hpp"
#include "sluice/cli/writer_lock.hpp"
#include "sluice/fat/check/boot_trust.hpp"
#include "sluice/fat/codec/geometry.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/device/journal_device.hpp"
#include "sluice/fat/device/partition_device.hpp"

namespace sluice::cli {

/// The object that the command line names: IMAGE, IMAGE@N for its partition N, IMAGE:/PATH for a
/// file or directory on its volume.
struct image_name {
    std::string file;
    std::optional<std::uint32_t> partition;
    std::string path;       // as in vfs: without the first slash, empty for the root
    bool has_path = false;  // the name has a colon
};

enum class image_use : bool { read, write };

/// The reason why an image could not be opened.
struct open_failure {
    std::string message;              // a sentence for people
    bool is_volume_rejected = false;  // the image was opened, and has no FAT volume, or several
};

/// A volume and the devices below it: an image, an overlay over it, a partition of that, a journal.
///
/// A writer of an image locks it exclusively. A writer of an overlay locks the overlay, and shares
/// a lock that keeps writers away from the image. If no lock file can be created next to the image
/// (a read-only medium), writers are not excluded. A reader holds no lock.
/// Thread safety: one thread, except for the device.
class image_stack {
public:
    /// Errors: see open_failure. Allocates: yes. Blocks: for the image, and briefly for its lock.
    [[nodiscard]] static std::expected<std::unique_ptr<image_stack>, open_failure> open(
        const image_name& name, image_use use, const image_options& options);

    /// Replays or leaves the journal, and removes it after a successful replay.
    ~image_stack();

    [[nodiscard]] fat::device& volume() noexcept {
        return journal_ ? static_cast<fat::device&>(*journal_) : *part_;
    }
    /// Returns whether a volume marked dirty is undamaged, because its journal was replayed or is
    /// read with it.
    [[nodiscard]] bool is_known_consistent() const noexcept { return is_known_consistent_; }
    /// Returns the number of batches that are in the journal and not in the image.
    [[nodiscard]] std::uint32_t pending_batches() const noexcept {
        return journal_ ? journal_->pending_batches() : 0;
    }
    /// Returns the location of the volume in the image.
    [[nodiscard]] byte_extent where() const noexcept { return where_; }
    /// Returns whether the previous writer died.
    [[nodiscard]] bool previous_writer_died() const noexcept {
        return hold_ and hold_->previous_holder_died();
    }

private:
    image_stack() noexcept = default;
    [[nodiscard]] std::expected<void, std::string> open_image(const std::string& path, image_use use);
    [[nodiscard]] std::expected<void, std::string> open_overlay(const std::string& path, image_use use);
    [[nodiscard]] std::expected<void, std::string> find_volume(const image_name& name);
    [[nodiscard]] std::expected<void, std::string> open_journal(const std::string& image, image_use use,
                                                                const image_options& options);
    [[nodiscard]] std::expected<void, std::string> carry_out(const fat::journal_device::place& where,
                                                             image_use use);
    [[nodiscard]] std::expected<void, std::string> begin_journal(const fat::journal_device::place& where,
                                                                 const fat::geometry& shape);

    // In the order of their dependencies.
    std::optional<writer_lock> hold_;
    std::unique_ptr<fat::file_device> file_;
    std::int64_t modified_ = 0;
    std::unique_ptr<overlay_file> overlay_;
    std::unique_ptr<fat::partition_device> part_;
    byte_extent where_;
    std::string journal_path_;
    std::unique_ptr<fat::sparse_device> log_;
    std::unique_ptr<fat::journal_device> journal_;
    bool is_known_consistent_ = false;
};

/// Returns why a volume should not be used by its boot sector, with the remedy; std::nullopt if it
/// is consistent. `image`: the name of the image. Allocates: the text.
[[nodiscard]] std::optional<std::string> rejection_of(const fat::boot_verdict& verdict,
                                                      const std::string& image);

/// Returns the name of the journal, next to the image. It exists while the image is used with a
/// journal, and after an interruption.
[[nodiscard]] std::string journal_of(const std::string& image);

/// Returns the name of the marker, next to the image, that exists while an overlay is being
/// committed. It contains the name of the overlay.
[[nodiscard]] std::string commit_marker_of(const std::string& image);

}  // namespace sluice::cli
