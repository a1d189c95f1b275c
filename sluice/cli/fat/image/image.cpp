#include "sluice/cli/fat/image/image.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

namespace sluice::cli {
namespace {

std::string without_outer_slashes(std::string path) {
    path.erase(0, std::min(path.find_first_not_of('/'), path.size()));
    path.erase(path.find_last_not_of('/') + 1);
    return path;
}

}  // namespace

image_name parse_image(const std::string& text) {
    image_name name;
    const std::size_t colon = text.find(":/");
    name.has_path = colon != text.npos;
    name.file = text.substr(0, colon);
    if (name.has_path) name.path = without_outer_slashes(text.substr(colon + 1));
    std::error_code ignored;
    const std::size_t at = name.file.rfind('@');
    if (at == name.file.npos or std::filesystem::exists(name.file, ignored)) return name;
    std::uint32_t number = 0;
    const char* const end = name.file.data() + name.file.size();
    const auto parsed = std::from_chars(name.file.data() + at + 1, end, number);
    if (parsed.ec != std::errc{} or parsed.ptr != end) return name;
    name.partition = number;
    name.file.resize(at);
    return name;
}

opened_image::opened_image(const image_name& name, image_use use, const image_options& options)
    : opened_image(name, use, options, [](const std::string& why) { fail(why); }) {}

opened_image::opened_image(const image_name& name, image_use use, const image_options& options,
                           const std::function<void(const std::string&)>& rejected)
    : path_(name.file), use_(use) {
    auto stack = image_stack::open(name, use, options);
    if (not stack and stack.error().is_volume_rejected) rejected(stack.error().message);
    if (not stack) fail(stack.error().message);
    stack_ = *std::move(stack);
    if (stack_->previous_writer_died())
        warn(fmt::format("{0}: the last writer did not finish; run 'sluice fat check {0}'", path_));
    if (const std::uint32_t pending = stack_->pending_batches(); pending != 0)
        warn(fmt::format(
            "{}: {} batches are in {} and not in the image yet; they are included here, and the next writer "
            "writes them to the image",
            path_, pending, journal_of(path_)));
}

fat::geometry opened_image::shape() {
    const auto verdict = fat::assess_boot_sector(volume());
    if (not verdict) fail(fmt::format("{}: {}", path_, verdict.error()));
    const auto rejection = rejection_of(*verdict, path_);
    if (not rejection) return verdict->shape;
    if (verdict->trust == fat::boot_trust::wrong or use_ == image_use::write) fail(*rejection);
    warn(*rejection);
    return verdict->shape;
}

mounted_image::mounted_image(const image_name& name, image_use use, const image_options& options,
                             fat::lookup_strategy strategy)
    : image_(name, use, options) {
    auto how = mount_options_of(options).value();  // validated when it was parsed
    if (options.time_zone.empty() and source_date()) how.zone = fat::time_zone::utc();
    how.is_read_only = use == image_use::read;
    how.strategy = strategy;
    how.is_known_consistent = image_.is_known_consistent();
    system_ =
        value_or_fail(fat::file_system::mount(image_.volume(), image_.shape(), clock_, how), image_.path());
    if (system_->was_dirty() and not image_.is_known_consistent())
        warn(fmt::format("{0}: the volume was not unmounted; run 'sluice fat check {0}'", image_.path()));
}

void mounted_image::finish() {
    succeed_or_fail(system_->unmount(), image_.path());
}

}  // namespace sluice::cli
