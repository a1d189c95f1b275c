#include "bench/fat/fat_image.hpp"
#include "bench/fat/fat_workloads.hpp"
#include "sluice/fat/codec/journal_format.hpp"
#include "sluice/fat/codec/overlay_format.hpp"
#include "sluice/fat/device/journal_device.hpp"
#include "sluice/fat/device/overlay_device.hpp"
#include "sluice/fat/device/sparse_device.hpp"
#include "sluice/io/path/path_handle.hpp"

// The cost of a journal and of an overlay.

namespace sluice::bench {
namespace {

constexpr std::uint64_t mebi = 1U << 20;
constexpr std::array<std::byte, 16> some_id{};

enum class aside : std::uint8_t { nothing, journal, overlay };

std::unique_ptr<fat::sparse_device> fresh_file(const char* directory, std::uint64_t bytes_max) {
    auto file = io::file_handle::temp_inode(io::path_handle::open(directory).value()).value();
    return fat::sparse_device::over(std::move(file), bytes_max).value();
}

// A mounted volume, with its journal or overlay in a new file next to the image.
class volume_with {
public:
    volume_with(aside what, const fat_image& image, const char* directory) : image_(image.device()) {
        const fat::geometry& shape = image.shape();
        fat::device* on = &image_;
        if (what == aside::journal) {
            const fat::journal_device::place where{.in_image = {.offset = 0, .length = image_.size_bytes()},
                                                   .dirty_mark = shape.dirty_byte_offset()};
            file_ = fresh_file(directory, fat::journal_bytes_max);
            fat::journal_device::format(image_, *file_, where, true, some_id).value();
            journal_ = fat::journal_device::open(image_, *file_, where, false).value();
            on = journal_.get();
        } else if (what == aside::overlay) {
            file_ = fresh_file(directory, fat::overlay_layout::for_image(image_.size_bytes()).store_bytes());
            fat::overlay_device::format(image_, *file_, 0, some_id).value();
            overlay_ = fat::overlay_device::open(image_, *file_, file_->present_bytes()).value();
            on = overlay_.get();
        }
        system_ = fat::file_system::mount(*on, shape, clock_, {.discards = false}).value();
        // Searches the table for free clusters.
        put("first", std::span(transfer_buffer()).first(1));
        remove("first");
        system_->commit().value();
    }

    void put(const std::string& path, std::span<const std::byte> content, std::uint64_t times = 1) {
        const auto file = system_->create(path, false, fat::attributes::archive).value();
        fat::run_list::hint hint;
        for (std::uint64_t i = 0; i != times; ++i)
            system_->write(*file, hint, content, i * content.size()).value();
    }
    void remove(const std::string& path) { system_->remove(*system_->find(path).value()).value(); }
    /// Makes everything durable, in the image where it belongs there.
    void finish() {
        system_->unmount().value();
        if (journal_ != nullptr) journal_->recover().value();
    }

private:
    static constexpr sluice::system_clock_source clock_{};
    fat::file_device image_;
    std::unique_ptr<fat::sparse_device> file_;
    std::unique_ptr<fat::journal_device> journal_;
    std::unique_ptr<fat::overlay_device> overlay_;
    std::unique_ptr<fat::file_system> system_;
};

struct what_is_put {
    std::uint64_t files;
    std::uint64_t mib_each;  // 0: a few bytes
    const char* directory;
};

void put_all(run& repeat, const fat_image& image, const what_is_put& how, aside what) {
    const std::span<const std::byte> block = transfer_buffer();
    const auto path = [](std::uint64_t number) { return "A long name, number " + std::to_string(number); };
    {
        volume_with volume(what, image, how.directory);
        repeat.measure([&] {
            for (std::uint64_t i = 0; i != how.files; ++i)
                volume.put(path(i), how.mib_each == 0 ? block.first(6) : block,
                           std::max<std::uint64_t>(1, how.mib_each));
            volume.finish();
        });
    }
    if (what == aside::overlay) return;  // the image is unchanged
    volume_with volume(aside::nothing, image, how.directory);
    for (std::uint64_t i = 0; i != how.files; ++i)
        volume.remove(path(i));
    volume.finish();
}

}  // namespace

void add_aside(benchmark& to, bool is_quick) {
    const auto add = [&](const std::string& name, const what_is_put& how) {
        const auto image = [=]() -> fat_image& {
            const std::uint64_t bytes = (how.files * how.mib_each + 64) * mebi;
            return stage_of<fat_image>(name, bytes,
                                       fat::format_options{.cluster_bytes = how.mib_each == 0 ? 512U : 4096U},
                                       how.directory);
        };
        const auto with = [=](aside what) { return [=](run& r) { put_all(r, image(), how, what); }; };
        workload_options options{.name = name, .operations = is_quick ? 10U : 1U, .repeats_max = 9};
        if (how.mib_each == 0) options.operations *= how.files;
        to.add(options)
            .subject("limit", with(aside::nothing))
            .subject("sluice.journal", with(aside::journal))
            .subject("sluice.overlay", with(aside::overlay));
    };
    for (const char* const directory : {"/dev/shm", "."}) {
        const std::string where = std::string_view(directory) == "." ? "_disk" : "";
        add("aside_create_1000" + where, {.files = 1000, .mib_each = 0, .directory = directory});
        if (not is_quick)
            add("aside_write_256" + where, {.files = 1, .mib_each = 256, .directory = directory});
    }
}

}  // namespace sluice::bench
