#include "sluice/cli/fat/image/existing_content.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <span>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/volume_status.hpp"

#ifdef SLUICE_HAVE_BLKID
#include <blkid/blkid.h>
#endif

namespace sluice::cli {
namespace {

// A write lease is only granted on a file that is not open elsewhere. If another process opens the
// file at that moment, the kernel sends a signal: SIGURG has no effect.
image_users users_of_file(const io::file_handle& image) noexcept {
    const int descriptor = image.descriptor();
    const bool is_granted =
        ::fcntl(descriptor, F_SETSIG, SIGURG) == 0 and ::fcntl(descriptor, F_SETLEASE, F_WRLCK) == 0;
    if (not is_granted) return errno == EAGAIN ? image_users::some : image_users::unknown;
    (void)::fcntl(descriptor, F_SETLEASE, F_UNLCK);
    const auto volume = io::volume_of(image);
    constexpr std::uint64_t fuse = 0x65735546;
    const bool is_seen_by_others =
        not volume or volume->reach == io::volume_reach::other_hosts or volume->magic == fuse;
    return is_seen_by_others ? image_users::unknown : image_users::none;
}

// The kernel grants exclusive use of a block device once, and a mount has acquired it.
image_users users_of_device(const std::string& path) noexcept {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
    if (descriptor < 0) return errno == EBUSY ? image_users::some : image_users::unknown;
    ::close(descriptor);
    return image_users::none;
}

#ifdef SLUICE_HAVE_BLKID

// More formats than any image has; a bound, because libblkid decides when the loop ends.
constexpr int formats_max = 64;

struct probe_deleter {
    void operator()(blkid_probe probe) const noexcept { blkid_free_probe(probe); }
};
using probe_owner = std::unique_ptr<std::remove_pointer_t<blkid_probe>, probe_deleter>;

void add_value(blkid_probe probe, const char* key, const char* suffix, std::vector<std::string>& into) {
    const char* value = nullptr;
    if (blkid_probe_lookup_value(probe, key, &value, nullptr) != 0) return;
    std::string format = std::string(value) + suffix;
    if (std::ranges::find(into, format) == into.end()) into.push_back(std::move(format));
}

std::expected<std::vector<std::string>, std::string> formats_in(const io::file_handle& image,
                                                                byte_extent where) {
    std::vector<std::string> found;
    if (where.length == 0) return found;  // libblkid takes 0 for the whole image
    const probe_owner probe(blkid_new_probe());
    if (probe == nullptr) return std::unexpected("libblkid: out of memory");
    if (blkid_probe_set_device(probe.get(), image.descriptor(), static_cast<blkid_loff_t>(where.offset),
                               static_cast<blkid_loff_t>(where.length)) != 0)
        return std::unexpected("cannot examine the existing data");
    blkid_probe_enable_superblocks(probe.get(), 1);
    blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE | BLKID_SUBLKS_BADCSUM);
    blkid_probe_enable_partitions(probe.get(), 1);
    for (int i = 0; i != formats_max; ++i) {
        const int outcome = blkid_do_probe(probe.get());
        if (outcome < 0) return std::unexpected("cannot read the existing data");
        if (outcome > 0) break;
        add_value(probe.get(), "TYPE", "", found);
        add_value(probe.get(), "PTTYPE", " partition table", found);
    }
    return found;
}

#else

std::expected<std::vector<std::string>, std::string> formats_in(const io::file_handle&, byte_extent) {
    return std::vector<std::string>();
}

#endif

// Disk formats have their signatures here, except for copies at the end.
constexpr std::uint64_t examined_bytes = 128U << 10;

result<bool> begins_with_data(fat::file_device& image, byte_extent where) {
    std::vector<std::byte> start(static_cast<std::size_t>(std::min(examined_bytes, where.length)));
    if (const auto read = image.read_at(where.offset, std::span<std::byte>(start)); not read)
        return failure(read.error());
    return std::ranges::any_of(start, [](std::byte each) { return each != std::byte{}; });
}

}  // namespace

std::expected<std::vector<std::string>, std::string> content_of(fat::file_device& image, byte_extent where) {
    const auto place = image.location_of(where.offset);
    ENSURE(place.has_value(), "an image is a file");
    auto found = formats_in(*place->file, where);
    if (not found or not found->empty()) return found;
    const auto has_data = begins_with_data(image, where);
    if (not has_data) return std::unexpected(has_data.error().message());
    if (*has_data) found->push_back("data of an unknown format");
    return found;
}

image_users users_of(const io::file_handle& image, const std::string& path) {
    const auto status = io::status_of(image, io::stat_fields::type);
    if (not status) return image_users::unknown;
    return status->type == io::file_type::regular ? users_of_file(image) : users_of_device(path);
}

}  // namespace sluice::cli
