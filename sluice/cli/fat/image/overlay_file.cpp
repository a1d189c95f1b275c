#include "sluice/cli/fat/image/overlay_file.hpp"

#include <fmt/core.h>

#include <ctime>

#include "sluice/base/random.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/status/time_text.hpp"
#include "sluice/io/path/file_status.hpp"

namespace sluice::cli {
namespace {

std::string time_text(std::int64_t nanoseconds) {
    const std::time_t seconds = nanoseconds / 1'000'000'000;
    return fmt::format("{}.{:09}Z", utc_text(iso_seconds, seconds), nanoseconds % 1'000'000'000);
}

// Returns the reason why an overlay cannot be used with this image, if there is one.
std::expected<void, std::string> check_binding(fat::overlay_device& overlay, fat::device& image,
                                               std::int64_t modified, overlay_file::purpose wanted) {
    const fat::overlay_binding& binding = overlay.binding();
    const bool is_cut = binding.state == fat::overlay_state::committing;
    if (is_cut and wanted == overlay_file::purpose::write)
        return std::unexpected(
            "an interrupted commit must be finished before writing; run 'sluice fat commit'");
    // After an interrupted commit, the image has a part of the changes; seen through the overlay it
    // is unchanged.
    const auto fingerprint = fat::fingerprint_of(is_cut ? static_cast<fat::device&>(overlay) : image);
    if (not fingerprint) return std::unexpected(reason_of(fingerprint.error()));
    if (*fingerprint != binding.fingerprint)
        return std::unexpected(
            "belongs to another image, or to an earlier state of this one, because the content differs; use "
            "it "
            "with its own image, or discard it with 'sluice fat discard'");
    if (is_cut or binding.image_modified == modified) return {};
    return std::unexpected(fmt::format(
        "the image was modified at {}, but the overlay is for its state of {}; if the content is the same "
        "(copied or touched image), run 'sluice fat rebind', otherwise 'sluice fat discard'",
        time_text(modified), time_text(binding.image_modified)));
}

}  // namespace

result<std::int64_t> modification_of(const io::file_handle& image) {
    const auto status = io::status_of(image);
    if (not status) return failure(status.error());
    if (status->type != io::file_type::regular) return 0;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(status->modified.time_since_epoch()).count();
}

std::expected<std::unique_ptr<overlay_file>, std::string> overlay_file::open(const std::string& path,
                                                                             fat::device& image,
                                                                             std::int64_t modified,
                                                                             purpose wanted) {
    const auto refuse = [&](const std::string& why) { return std::unexpected(path + ": " + why); };
    const bool writes = wanted != purpose::read;
    const bool makes = wanted == purpose::write;
    std::optional<writer_lock> hold;
    if (writes) {
        auto taken = writer_lock::take(path);
        if (not taken) return std::unexpected(taken.error().message());
        hold.emplace(*std::move(taken));
    }
    auto file = io::file_handle::open({}, path, writes ? io::mode::write : io::mode::read,
                                      makes ? io::creation::if_needed : io::creation::open_existing);
    if (not file) return std::unexpected(file.error().message());
    const std::uint64_t most = fat::overlay_layout::for_image(image.size_bytes()).store_bytes();
    auto store = fat::sparse_device::over(*std::move(file), most);
    if (not store) return refuse(reason_of(store.error()));
    if (makes and (*store)->present_bytes() == 0) {
        std::array<std::byte, 16> id{};
        system_random().fill(id);
        const auto made = fat::overlay_device::format(image, **store, modified, id);
        if (not made) return refuse(reason_of(made.error()));
    }
    auto overlay = fat::overlay_device::open(image, **store, (*store)->present_bytes());
    if (not overlay) return refuse(overlay.error());
    if (wanted != purpose::rebind)
        if (const auto fits = check_binding(**overlay, image, modified, wanted); not fits)
            return refuse(fits.error());
    return std::unique_ptr<overlay_file>(
        new overlay_file(std::move(hold), *std::move(store), *std::move(overlay)));
}

result<void> overlay_file::bind_again(fat::device& image, std::int64_t modified) {
    const auto fingerprint = fat::fingerprint_of(image);
    if (not fingerprint) return failure(fingerprint.error());
    fat::overlay_binding binding = overlay_->binding();
    binding.fingerprint = *fingerprint;
    binding.image_modified = modified;
    return overlay_->rebind(binding);
}

result<void> overlay_file::begin_commit() {
    const auto fingerprint = fat::fingerprint_of(*overlay_);
    if (not fingerprint) return failure(fingerprint.error());
    fat::overlay_binding binding = overlay_->binding();
    binding.state = fat::overlay_state::committing;
    binding.fingerprint = *fingerprint;
    return overlay_->rebind(binding);
}

}  // namespace sluice::cli
