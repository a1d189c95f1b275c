#include "sluice/cli/fat/file_extraction.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>

#include "sluice/base/random.hpp"
#include "sluice/io/file_status.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_bytes = 1U << 20;
// Ranges beyond that are counted only: a message for each sector of a bad disk would help no reader.
constexpr std::size_t ranges_listed_max = 64;

// Errors of the host that every further file would meet, too.
bool ends_the_command(const error& why) noexcept {
    return why == std::errc::no_space_on_device or why == std::errc::read_only_file_system or
           why.code() == EDQUOT;
}

// Where a copy grows until it is complete, so that a file there before is replaced by a whole one or not at
// all. Nobody can guess the name and put something else there.
fs::path beside(const fs::path& to) {
    system_random numbers;
    return to.parent_path() / fmt::format(".sluice-{:016x}", numbers.next_u64());
}

// A device or a pipe that a file was renamed over would be gone, for all programs.
int why_not_replaced(const fs::path& to) noexcept {
    std::error_code unknown;
    const fs::file_status there = fs::symlink_status(to, unknown);
    if (not fs::exists(there) or fs::is_regular_file(there) or fs::is_symlink(there)) return 0;
    return fs::is_directory(there) ? EISDIR : EEXIST;
}

}  // namespace

struct file_extraction::copy_in_progress {
    const tree_entry& file;
    const fs::path& to;
    fs::path growing;  // becomes `to`
    fat::item_handle source;
    io::file_handle target{};
    std::vector<byte_extent>
        missing{};               // ranges of the file, ascending, not adjacent; at most ranges_listed_max
    std::uint64_t unlisted = 0;  // further ones
    std::optional<error> read_error{};
    std::optional<error> write_error{};

    [[nodiscard]] bool goes_on() const noexcept { return not read_error and not write_error; }
    void miss(byte_extent range) {
        if (not missing.empty() and unlisted == 0 and
            missing.back().offset + missing.back().length == range.offset) {
            missing.back().length += range.length;
        } else if (missing.size() == ranges_listed_max) {
            ++unlisted;
        } else {
            missing.push_back(range);
        }
    }
    [[nodiscard]] bool write(std::span<const std::byte> bytes, std::uint64_t offset) {
        const auto done =
            target.write(io::io_request<io::const_bytes_type>{.buffers = bytes, .offset = offset});
        if (not done)
            write_error = done.error();
        else if (done->size() != bytes.size())
            write_error = error(EIO, "write");
        return not write_error;
    }
};

void file_extraction::copy(const tree_entry& file, const fs::path& to) {
    progress_.name(shown(file.path));
    auto source = from_.system().find(file.path);
    if (not source) return skipped_.report(file.path, source.error());
    const byte_extent all{.offset = 0, .length = file.status.size_bytes};
    // Before the target is replaced: a file that cannot be read replaces nothing.
    const auto is_followed = from_.system().for_each_extent(**source, all, [](const auto&) { return true; });
    if (not is_followed and policy_ == damaged_file::skip)
        return skipped_.report(file.path, is_followed.error());
    if (const int code = why_not_replaced(to); code != 0)
        return skipped_.report_target(to.string(), error(code, "replace"));
    copy_in_progress copy{.file = file, .to = to, .growing = beside(to), .source = *std::move(source)};
    auto target =
        io::file_handle::open({}, copy.growing.string(), io::mode::write, io::creation::only_if_not_exist);
    if (not target) {
        if (ends_the_command(target.error())) fail_fat(fat_message(target.error(), to.string()));
        return skipped_.report_target(to.string(), target.error());
    }
    copy.target = *std::move(target);
    if (const auto sized = copy.target.truncate(file.status.size_bytes); not sized)  // the rest stays zeros
        copy.write_error = sized.error();
    if (copy.goes_on()) copy_extents(copy);
    finish(copy);
}

void file_extraction::copy_extents(copy_in_progress& copy) {
    std::uint64_t end = 0;
    const std::uint64_t size = copy.file.status.size_bytes;
    const auto visited = from_.system().for_each_extent(*copy.source, {.offset = 0, .length = size},
                                                        [&](const fat::file_system::piece& piece) {
                                                            progress_.add(piece.length);
                                                            end = piece.offset + piece.length;
                                                            if (piece.place) copy_piece(copy, piece);
                                                            return copy.goes_on();
                                                        });
    if (visited or not copy.goes_on()) return;
    if (policy_ == damaged_file::skip)
        copy.read_error = visited.error();
    else
        copy.miss({.offset = end, .length = size - end});
}

void file_extraction::copy_piece(copy_in_progress& copy, const fat::file_system::piece& piece) {
    const auto place = from_.image().volume().place_of(*piece.place);
    if (place) {
        const auto done = place->file->clone_extents_to(
            copy.target, {.source = {.offset = place->offset, .length = piece.length},
                          .destination_offset = piece.offset});
        // Fewer bytes come from an image that is shorter than its volume.
        if (done and done->cloned_bytes == piece.length) return;
    }
    // Also to find out which side an error is of.
    copy_through_memory(copy, piece);
}

void file_extraction::copy_through_memory(copy_in_progress& copy, const fat::file_system::piece& piece) {
    room_.resize(block_bytes);
    for (std::uint64_t done = 0; done < piece.length and copy.goes_on();) {
        const byte_extent part{.offset = piece.offset + done,
                               .length = std::min<std::uint64_t>(block_bytes, piece.length - done)};
        const auto bytes = std::span(room_).first(static_cast<std::size_t>(part.length));
        const std::uint64_t place = *piece.place + done;
        done += part.length;
        const auto read = from_.image().volume().read_at(place, bytes);
        if (read)
            (void)copy.write(bytes, part.offset);
        else if (policy_ == damaged_file::skip)
            copy.read_error = read.error();
        else
            copy_by_sectors(copy, part, place);
    }
}

// Copies the readable sectors of a block that cannot be read at once.
void file_extraction::copy_by_sectors(copy_in_progress& copy, byte_extent in_file, std::uint64_t place) {
    const std::uint64_t sector_bytes = from_.system().shape().sector_bytes;
    for (std::uint64_t done = 0; done < in_file.length and copy.goes_on();) {
        const std::uint64_t length = std::min(sector_bytes, in_file.length - done);
        const auto bytes = std::span(room_).first(static_cast<std::size_t>(length));
        const std::uint64_t offset = in_file.offset + done;
        if (from_.image().volume().read_at(place + done, bytes))
            (void)copy.write(bytes, offset);
        else
            copy.miss({.offset = offset, .length = length});
        done += length;
    }
}

void file_extraction::report_missing(const copy_in_progress& copy) {
    if (copy.missing.empty()) return;
    std::string text = "missing, and zero in the copy: bytes ";
    const char* between = "";
    for (const byte_extent& each : copy.missing) {
        text += fmt::format("{}{}-{}", between, each.offset, each.offset + each.length - 1);
        between = ", ";
    }
    if (copy.unlisted != 0) text += fmt::format(" and {} more ranges", copy.unlisted);
    skipped_.report(copy.file.path, text);
}

void file_extraction::finish(copy_in_progress& copy) {
    if (copy.goes_on()) {
        const auto dated = io::set_times(copy.target, {.modified = copy.file.status.modified});
        if (not dated) copy.write_error = dated.error();
    }
    const auto closed = copy.target.close();
    if (copy.goes_on() and not closed) copy.write_error = closed.error();
    if (copy.goes_on()) {
        std::error_code why;
        fs::rename(copy.growing, copy.to, why);
        if (not why) return report_missing(copy);
        copy.write_error = error(why.value(), "rename");
    }
    std::error_code ignored;
    fs::remove(copy.growing, ignored);
    if (copy.read_error) return skipped_.report(copy.file.path, *copy.read_error);
    if (ends_the_command(*copy.write_error)) fail_fat(fat_message(*copy.write_error, copy.to.string()));
    skipped_.report_target(copy.to.string(), *copy.write_error);
}

}  // namespace sluice::cli
