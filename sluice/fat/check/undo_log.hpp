#pragma once

#include <expected>
#include <string>
#include <vector>

#include "sluice/fat/codec/undo_format.hpp"

namespace sluice::fat {

/// An undo file that has been read. It is untrusted input until its records are checked.
///
/// Invariants:
///   1. Every record is inside the volume, and no two have a byte in common.
///   2. Every record had its checksum when the log was opened.
/// Thread safety: none of its own.
class undo_log {
public:
    /// Reads all records. `present_bytes` is the length of the file. An incomplete last record of
    /// an interrupted repair is ignored, because its range has not changed yet. Errors, as a
    /// sentence to display: not an undo file, damaged, unreadable. `log` outlives the object.
    /// Allocates: 24 bytes per record, 1 MiB. Complexity: linear in the file.
    [[nodiscard]] static std::expected<undo_log, std::string> open(device& log, std::uint64_t present_bytes);

    [[nodiscard]] const undo_binding& binding() const noexcept { return binding_; }
    [[nodiscard]] std::uint64_t recorded_bytes() const noexcept;

    /// Checks that `image` is the one that the file belongs to, in the state after the repair, or
    /// after an interrupted repair or undo. `image_modified` is the time of its last modification;
    /// 0: unknown. Errors, as a sentence: the difference.
    [[nodiscard]] std::expected<void, std::string> check_image(device& image, std::int64_t image_modified);

    /// Writes the original bytes back, durably. It can be interrupted and repeated. Errors, as a
    /// sentence: the image is too short; those of the devices.
    [[nodiscard]] std::expected<void, std::string> apply(device& image);

private:
    struct entry {
        byte_extent range;    // in the volume
        std::uint64_t place;  // offset of the bytes in the file
    };
    class original_view;

    undo_log(device& log, const undo_binding& binding) noexcept : log_(&log), binding_(binding) {}
    [[nodiscard]] std::expected<void, std::string> read_records(std::uint64_t present_bytes);
    [[nodiscard]] bool is_disjoint() const;
    [[nodiscard]] result<std::uint32_t> changed_checksum(device& volume);
    [[nodiscard]] result<void> set_state(undo_state state);

    device* log_;
    undo_binding binding_;
    std::vector<entry> entries_;
    std::uint64_t end_ = undo_records_offset;
};

}  // namespace sluice::fat
