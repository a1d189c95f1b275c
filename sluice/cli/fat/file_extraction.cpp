#include "sluice/cli/fat/file_extraction.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "sluice/io/path/file_status.hpp"

namespace sluice::cli {
namespace {

constexpr std::size_t block_bytes = 1U << 20;
// Limit for copies through memory: for small files, querying holes and cloning blocks takes longer
// than copying.
constexpr std::size_t small_file_bytes_max = 128U << 10;
// No longer list of pieces is kept: a hostile file of 4 GiB has millions.
constexpr std::size_t pieces_kept_max = 256;
// Further ranges are only counted: a message for each sector of a bad disk would not help any
// reader.
constexpr std::size_t ranges_listed_max = 64;

}  // namespace

struct file_extraction::copy_in_progress {
    const tree_entry& file;
    const copy_target& to;
    fat::inode_handle source;
    std::optional<new_file> target{};    // becomes `to`
    std::vector<byte_extent> missing{};  // ranges of the file, ascending, not adjacent; at
                                         // most ranges_listed_max
    std::uint64_t unlisted = 0;          // further ones
    std::optional<error> read_error{};
    std::optional<error> write_error{};

    [[nodiscard]] bool goes_on() const noexcept { return not read_error and not write_error; }
    void start_again() {
        target.reset();
        missing.clear();
        unlisted = 0;
        read_error.reset();
        write_error.reset();
    }
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
        // A full file system accepts a part first; the next write reports the reason.
        while (not bytes.empty() and not write_error) {
            const auto done = target->file().write(
                io::io_request<io::const_bytes_type>{.buffers = bytes, .offset = offset});
            if (not done or done->empty()) {
                write_error = done ? error(EIO, "write") : done.error();
            } else {
                offset += done->size();
                bytes = bytes.subspan(done->size());
            }
        }
        return not write_error;
    }
    [[nodiscard]] std::vector<object_problem> problems() const {
        if (read_error) return {problem_of(file.path, *read_error)};
        if (write_error) return {problem_of_target(to.path, *write_error)};
        if (missing.empty()) return {};
        std::string text = "missing, and zero in the copy: bytes ";
        const char* between = "";
        for (const byte_extent& each : missing) {
            text += fmt::format("{}{}-{}", between, each.offset, each.offset + each.length - 1);
            between = ", ";
        }
        if (unlisted != 0) text += fmt::format(" and {} more ranges", unlisted);
        return {problem_of(file.path, text)};
    }
};

std::vector<object_problem> file_extraction::copy(const tree_entry& file, const copy_target& to) {
    progress_.name(file.path);
    auto source = from_.system().find(file.path);
    if (not source) return {problem_of(file.path, source.error())};
    // Before the target is replaced: a file that cannot be read replaces nothing.
    const auto is_followed = find_pieces(file, **source);
    if (not is_followed and policy_ == damaged_file::skip)
        return {problem_of(file.path, is_followed.error())};
    copy_in_progress copy{.file = file, .to = to, .source = *std::move(source)};
    const bool begins_nameless = to.form == new_file::form::nameless and not lacks_nameless_files_;
    copy_content(copy, begins_nameless ? new_file::form::nameless : new_file::form::named);
    lacks_nameless_files_ =
        lacks_nameless_files_ or
        (begins_nameless and copy.write_error and *copy.write_error == std::errc::operation_not_supported);
    if (begins_nameless and lacks_nameless_files_) {
        copy.start_again();
        copy_content(copy, new_file::form::named);
    }
    return copy.problems();
}

// Checks whether the whole cluster chain can be followed, and keeps the pieces if they are few.
result<void> file_extraction::find_pieces(const tree_entry& file, fat::inode& source) {
    pieces_.clear();
    has_all_pieces_ = true;
    const auto done = from_.system().for_each_extent(source, {.offset = 0, .length = file.status.size_bytes},
                                                     [&](const fat::file_system::piece& piece) {
                                                         if (pieces_.size() == pieces_kept_max)
                                                             has_all_pieces_ = false;
                                                         if (has_all_pieces_) pieces_.push_back(piece);
                                                         return true;
                                                     });
    has_all_pieces_ = has_all_pieces_ and done;
    return done;
}

// Reads all of a small file. Returns false if the file is not small, or cannot be read completely;
// then the copy by extents determines which parts are readable.
bool file_extraction::read_small(const tree_entry& file) {
    if (file.status.size_bytes > small_file_bytes_max or not has_all_pieces_) return false;
    room_.resize(std::max(room_.size(), small_file_bytes_max));
    std::uint64_t end = 0;
    for (const fat::file_system::piece& each : pieces_) {
        const auto bytes = std::span(room_).subspan(static_cast<std::size_t>(each.offset),
                                                    static_cast<std::size_t>(each.length));
        end = each.offset + each.length;
        if (not each.place)
            std::ranges::fill(bytes, std::byte{});
        else if (not from_.image().volume().read_at(*each.place, bytes))
            return false;
    }
    return end == file.status.size_bytes;
}

void file_extraction::copy_content(copy_in_progress& copy, new_file::form form) {
    const std::uint64_t size = copy.file.status.size_bytes;
    const bool is_read = read_small(copy.file);
    if (const auto made = make_target(copy, form, is_read); not made) {
        copy.write_error = made.error();
    } else if (is_read) {
        if (size == 0 or copy.write(std::span(room_).first(static_cast<std::size_t>(size)), 0))
            progress_.add(size);
    } else {
        const auto sized = copy.target->file().truncate(size);  // unwritten bytes stay zeros
        if (not sized) copy.write_error = sized.error();
        if (copy.goes_on()) copy_extents(copy);
    }
    if (copy.goes_on()) {
        const auto dated = io::set_times(copy.target->file(), {.modified = copy.file.status.modified});
        if (not dated) copy.write_error = dated.error();
    }
    if (copy.goes_on())
        if (const auto named = copy.target->become(copy.to.name); not named) copy.write_error = named.error();
    copy.target.reset();
}

result<void> file_extraction::make_target(copy_in_progress& copy, new_file::form form, bool is_read) {
    // All its bytes are in memory, and in a new directory it replaces nothing.
    if (is_read and copy.to.is_in_new_directory) {
        auto made = new_file::create_under(copy.to.directory, copy.to.name);
        if (made) copy.target.emplace(*std::move(made));
        if (made or made.error() != std::errc::file_exists)
            return made ? result<void>() : failure(made.error());
    }
    // For a small file the check of become() suffices.
    if (copy.file.status.size_bytes > small_file_bytes_max)
        if (const int code = why_not_replaced(copy.to.directory, copy.to.name); code != 0)
            return failure({code, "replace"});
    auto made = new_file::create(copy.to.directory, form);
    if (not made) return failure(made.error());
    copy.target.emplace(*std::move(made));
    return {};
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
    // This also determines which side an error is on.
    if (not copy_in_kernel(copy, piece)) copy_through_memory(copy, piece);
}

// Returns false if it is not possible or fails: a part may have been copied then.
bool file_extraction::copy_in_kernel(copy_in_progress& copy, const fat::file_system::piece& piece) {
    const auto place = from_.image().volume().location_of(*piece.place);
    if (not place) return false;
    for (std::uint64_t done = 0; done < piece.length;) {
        const byte_extent rest{.offset = place->offset + done, .length = piece.length - done};
        const data_ranges::part part = image_data_.first_of(*place->file, rest);
        if (part.is_data) {
            const auto cloned =
                place->file->clone_extents_to(copy.target->file(),
                                              {.source = {.offset = rest.offset, .length = part.length},
                                               .destination_offset = piece.offset + done},
                                              {.holes = io::source_holes::ignored});
            // Fewer bytes come from an image that is shorter than its volume.
            if (not cloned or cloned->cloned_bytes != part.length) return false;
        }
        done += part.length;
    }
    return true;
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

}  // namespace sluice::cli
