#include <unistd.h>

#include <array>
#include <thread>

#include "bench/fat/fat_image.hpp"
#include "bench/fat/fat_workloads.hpp"

namespace sluice::bench {
namespace {

constexpr std::uint64_t mebi = 1U << 20;
constexpr std::size_t request_bytes = 64U << 10;

class two_writers_stage {
public:
    explicit two_writers_stage(std::uint64_t mib)
        : image_((2 * mib + mib / 2 + 300) * mebi, {.type = fat::fat_type::fat32, .cluster_bytes = 4096}) {}
    [[nodiscard]] const fat_image& image() const noexcept { return image_; }

private:
    fat_image image_;
};

// write(which, offset) for each request of two files, each in a thread of its own.
template <class Write>
void write_both(std::uint64_t bytes, const Write& write) {
    const auto all_of = [&](std::size_t which) {
        for (std::uint64_t at = 0; at < bytes; at += request_bytes)
            write(which, at);
    };
    const std::jthread other(all_of, std::size_t{1});
    all_of(0);
}

void by_pwrite(run& repeat, two_writers_stage& on) {
    const std::uint64_t bytes = repeat.operations() * mebi;
    const std::uint64_t place = on.image().shape().data_offset;
    repeat.measure([&] {
        write_both(bytes, [&](std::size_t which, std::uint64_t at) {
            ENSURE(pwrite(on.image().descriptor(), transfer_buffer().data(), request_bytes,
                          static_cast<off_t>(place + which * bytes + at)) == request_bytes);
        });
    });
}

std::size_t runs_of(const mounted_fat& volume, fat::inode& file, std::uint64_t bytes) {
    std::size_t runs = 0;
    const auto count = [&](const fat::file_system::piece&) { return ++runs != 0; };
    volume->for_each_extent(file, {.offset = 0, .length = bytes}, count).value();
    return runs;
}

void by_us(run& repeat, two_writers_stage& on) {
    const std::uint64_t bytes = repeat.operations() * mebi;
    const mounted_fat volume(on.image());
    volume.look_for_free();
    std::array files{volume.make("a"), volume.make("b")};
    std::array<fat::run_list::hint, 2> hints;
    const std::span<const std::byte> from = transfer_buffer().first(request_bytes);
    repeat.measure([&] {
        write_both(bytes, [&](std::size_t which, std::uint64_t at) {
            volume->write(*files[which], hints[which], from, at).value();
        });
        volume->commit().value();
    });
    repeat.note("runs_of_worse_file", static_cast<double>(std::max(runs_of(volume, *files[0], bytes),
                                                                   runs_of(volume, *files[1], bytes))));
    for (fat::inode_handle& each : files)
        volume->remove(*each).value();
    files = {};
    volume->unmount().value();
}

}  // namespace

void add_two_writers(benchmark& to, bool is_quick) {
    constexpr std::uint64_t mib = 1024;
    const std::string name = "two_writers";
    const auto stage = [=]() -> two_writers_stage& {
        return stage_of<two_writers_stage>(name, is_quick ? mib / 10 : mib);
    };
    to.add({.name = name,
            .metric = metric::gigabytes_per_second,
            .operations = mib,
            .bytes_per_operation = 2 * mebi,
            .repeats_max = 5})
        .subject("limit", [=](run& r) { by_pwrite(r, stage()); })
        .subject("sluice.fat", [=](run& r) { by_us(r, stage()); });
}

}  // namespace sluice::bench
