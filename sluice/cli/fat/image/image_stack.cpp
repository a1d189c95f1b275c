#include "sluice/cli/fat/image/image_stack.hpp"

#include <filesystem>
#include <fstream>

#include "sluice/base/random.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/codec/table_entry.hpp"
#include "sluice/fat/engine/allocation_table.hpp"
#include "sluice/fat/partition/partition.hpp"

namespace sluice::cli {
namespace {

using outcome = std::expected<void, std::string>;

// A part of an overlay may be in the image, which is not a consistent volume then.
outcome check_no_commit(const std::string& image) {
    std::ifstream marker(commit_marker_of(image));
    if (not marker) return {};
    std::string overlay;
    std::getline(marker, overlay);
    return std::unexpected(image + ": a commit to this image was interrupted; run 'sluice fat commit " +
                           image + " --overlay " + overlay + "' to finish it");
}

bool has_journal(const std::string& image) {
    std::error_code unknown;
    const std::string path = journal_of(image);
    return std::filesystem::exists(path, unknown) and std::filesystem::file_size(path, unknown) != 0;
}

}  // namespace

std::optional<std::string> rejection_of(const fat::boot_verdict& verdict, const std::string& image) {
    switch (verdict.trust) {
        case fat::boot_trust::consistent:
            return std::nullopt;
        case fat::boot_trust::wrong:
            return image + ": the boot sector is damaged: " + verdict.differences +
                   "; the volume agrees with the backup; run 'sluice fat repair " + image + "'";
        case fat::boot_trust::doubtful:
            return image + ": the boot sector and its backup differ: " + verdict.differences +
                   "; the volume does not show which one is right; run 'sluice fat check " + image +
                   "', then 'sluice fat repair --boot-sector first' or 'backup'";
    }
    return std::nullopt;
}

std::string journal_of(const std::string& image) {
    return image + ".journal";
}

std::string commit_marker_of(const std::string& image) {
    return image + ".commit";
}

std::expected<std::unique_ptr<image_stack>, open_failure> image_stack::open(const image_name& name,
                                                                            image_use use,
                                                                            const image_options& options) {
    if (options.journal and not options.overlay.empty())
        return std::unexpected(
            open_failure{name.file + ": journal and overlay exclude each other; use one of them"});
    if (not options.overlay.empty() and has_journal(name.file))
        return std::unexpected(open_failure{name.file +
                                            ": has a journal with pending changes; run 'sluice fat repair " +
                                            name.file + "' to write them"});
    std::unique_ptr<image_stack> made(new image_stack);
    outcome done = options.overlay.empty() ? check_no_commit(name.file) : outcome();
    if (done) done = made->open_image(name.file, options.overlay.empty() ? use : image_use::read);
    if (done and not options.overlay.empty()) {
        if (use == image_use::write) {
            auto hold = writer_lock::keep_writers_away(name.file);
            if (hold) made->hold_.emplace(*std::move(hold));
            const bool is_elsewhere = not hold and (hold.error() == std::errc::read_only_file_system or
                                                    hold.error() == std::errc::permission_denied);
            if (not hold and not is_elsewhere) return std::unexpected(open_failure{hold.error().message()});
        }
        done = made->open_overlay(options.overlay, use);
    }
    if (done) {
        done = made->find_volume(name);
        if (not done)
            return std::unexpected(open_failure{.message = done.error(), .is_volume_rejected = true});
    }
    if (done) done = made->open_journal(name.file, use, options);
    if (not done) return std::unexpected(open_failure{done.error()});
    return made;
}

outcome image_stack::open_image(const std::string& path, image_use use) {
    const bool writes = use == image_use::write;
    auto file = io::file_handle::open({}, path, writes ? io::mode::write : io::mode::read);
    if (not file) return std::unexpected(file.error().message());
    if (writes) {
        auto hold = writer_lock::take(path);
        if (not hold) return std::unexpected(hold.error().message());
        hold_.emplace(*std::move(hold));
    }
    const auto modified = modification_of(*file);
    if (not modified) return std::unexpected(path + ": " + reason_of(modified.error()));
    modified_ = *modified;
    auto device = fat::file_device::over(*std::move(file));
    if (not device) return std::unexpected(path + ": " + reason_of(device.error()));
    file_ = std::make_unique<fat::file_device>(*std::move(device));
    return {};
}

outcome image_stack::open_overlay(const std::string& path, image_use use) {
    using enum overlay_file::purpose;
    auto opened = overlay_file::open(path, *file_, modified_, use == image_use::write ? write : read);
    if (not opened) return std::unexpected(opened.error());
    overlay_ = *std::move(opened);
    return {};
}

outcome image_stack::find_volume(const image_name& name) {
    fat::device& whole = overlay_ ? static_cast<fat::device&>(overlay_->device()) : *file_;
    const auto where = fat::find_volume(whole, name.partition);
    if (not where) return std::unexpected(name.file + ": " + where.error().message);
    where_ = *where;
    auto part = fat::partition_device::of(whole, where_);
    if (not part) return std::unexpected(name.file + ": " + reason_of(part.error()));
    part_ = std::make_unique<fat::partition_device>(*std::move(part));
    return {};
}

// An existing journal is always used: without it, the volume may be inconsistent.
outcome image_stack::open_journal(const std::string& image, image_use use, const image_options& options) {
    const bool writes = use == image_use::write;
    journal_path_ = journal_of(image);
    const bool is_there = has_journal(image);
    if (not is_there and not(options.journal and writes)) return {};
    const auto shape = fat::read_geometry(*part_);
    if (not shape) return {};  // the next query of the geometry reports why
    fat::journal_device::place where{.in_image = where_};
    if (shape->has_extended_fields) where.dirty_mark = shape->dirty_byte_offset();
    auto file = io::file_handle::open({}, journal_path_, writes ? io::mode::write : io::mode::read,
                                      writes ? io::creation::if_needed : io::creation::open_existing);
    if (not file) return std::unexpected(file.error().message());
    auto log = fat::sparse_device::over(*std::move(file), fat::journal_bytes_max);
    if (not log) return std::unexpected(journal_path_ + ": " + reason_of(log.error()));
    log_ = *std::move(log);
    if (is_there)
        if (const auto done = carry_out(where, use); not done) return done;
    return options.journal and writes ? begin_journal(where, *shape) : outcome();
}

outcome image_stack::carry_out(const fat::journal_device::place& where, image_use use) {
    const bool writes = use == image_use::write;
    auto opened = fat::journal_device::open(*part_, *log_, where, not writes);
    if (not opened) return std::unexpected(journal_path_ + ": " + opened.error());
    is_known_consistent_ = (*opened)->binding().was_clean;
    if (not writes) {
        journal_ = *std::move(opened);
        return {};
    }
    auto done = (*opened)->recover();
    // The journal must not be replayed after changes that bypass it.
    if (done) done = log_->empty();
    if (not done) return std::unexpected(journal_path_ + ": " + reason_of(done.error()));
    std::error_code ignored;
    std::filesystem::remove(journal_path_, ignored);
    return {};
}

outcome image_stack::begin_journal(const fat::journal_device::place& where, const fat::geometry& shape) {
    const auto refuse = [&](const error& why) {
        return std::unexpected(journal_path_ + ": " + reason_of(why));
    };
    // The file that was replayed has been removed.
    auto file = io::file_handle::open({}, journal_path_, io::mode::write, io::creation::if_needed);
    if (not file) return std::unexpected(file.error().message());
    auto log = fat::sparse_device::over(*std::move(file), fat::journal_bytes_max);
    if (not log) return refuse(log.error());
    log_ = *std::move(log);
    bool was_clean = not shape.is_dirty;
    if (const std::uint32_t bit = fat::clean_bit(shape.type); bit != 0) {
        const auto flags = fat::allocation_table(*part_, shape).reserved_entry(1);
        if (not flags) return refuse(flags.error());
        was_clean = was_clean and (*flags & bit) != 0;
    }
    std::array<std::byte, 16> id{};
    system_random().fill(id);
    const auto made =
        fat::journal_device::format(*part_, *log_, where, was_clean or is_known_consistent_, id);
    if (not made) return refuse(made.error());
    auto opened = fat::journal_device::open(*part_, *log_, where, false);
    if (not opened) return std::unexpected(journal_path_ + ": " + opened.error());
    journal_ = *std::move(opened);
    return {};
}

image_stack::~image_stack() {
    if (journal_ == nullptr or not journal_->is_writable()) return;
    // An unfinished batch does not count; then the journal stays, and the next user replays the
    // finished ones.
    if (not journal_->recover() or not log_->empty()) return;
    std::error_code ignored;
    std::filesystem::remove(journal_path_, ignored);
}

}  // namespace sluice::cli
