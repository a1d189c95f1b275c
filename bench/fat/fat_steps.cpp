#include <unistd.h>

#include "bench/fat/fat_image.hpp"
#include "bench/fat/fat_workloads.hpp"

// The first measurement of this file system: a file created and read in requests of one cluster.

namespace sluice::bench {
namespace {

constexpr std::uint64_t mebi = 1U << 20;
constexpr std::size_t request_bytes = 512;  // and a cluster

class steps_stage {
public:
    explicit steps_stage(std::uint64_t mib)
        : bytes_(mib * mebi),
          image_(30 * mebi, {.type = fat::fat_type::fat16, .cluster_bytes = request_bytes}) {
        const mounted_fat volume(image_);
        volume.put("f", bytes_, request_bytes);
        volume->unmount().value();
    }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] const fat_image& image() const noexcept { return image_; }
    [[nodiscard]] std::uint64_t place() const noexcept { return image_.shape().data_offset; }

private:
    std::uint64_t bytes_;
    fat_image image_;
};

void note_steps(run& repeat, std::uint64_t steps) {
    repeat.note("steps", static_cast<double>(steps));
}

void create(run& repeat, steps_stage& on, fat::lookup_strategy strategy) {
    const mounted_fat volume(on.image(), strategy);
    volume.look_for_free();
    const std::uint64_t steps_before = volume.steps();
    repeat.measure([&] {
        volume.put("new", on.bytes(), request_bytes);
        volume->commit().value();
    });
    note_steps(repeat, volume.steps() - steps_before);
    volume.remove("new");
    volume->unmount().value();
}

void read(run& repeat, steps_stage& on, fat::lookup_strategy strategy) {
    const mounted_fat volume(on.image(), strategy);
    repeat.measure([&] {
        const auto file = volume->find("f").value();
        fat::run_list::hint hint;
        const auto into = transfer_buffer().first(request_bytes);
        for (std::uint64_t at = 0; at < on.bytes(); at += request_bytes)
            ENSURE(volume->read(*file, hint, into, at).value() == request_bytes);
    });
    note_steps(repeat, volume.steps());
}

void by_calls(run& repeat, steps_stage& on, bool is_write) {
    const int file = on.image().descriptor();
    std::byte* const memory = transfer_buffer().data();
    repeat.measure([&] {
        for (std::uint64_t at = 0; at < on.bytes(); at += request_bytes) {
            const auto place = static_cast<off_t>(on.place() + at + (is_write ? on.bytes() : 0));
            const ssize_t done = is_write ? pwrite(file, memory, request_bytes, place)
                                          : pread(file, memory, request_bytes, place);
            ENSURE(done == request_bytes);
        }
    });
}

}  // namespace

void add_steps(benchmark& to, bool is_quick) {
    const std::vector<std::uint64_t> sizes =
        is_quick ? std::vector<std::uint64_t>{1, 3} : std::vector<std::uint64_t>{1, 3, 5, 7, 9};
    for (const bool is_write : {true, false}) {
        for (const std::uint64_t mib : sizes) {
            const std::string series = is_write ? "blog_create" : "blog_read";
            const std::string suffix = '_' + std::to_string(mib);
            const workload_series at{series, "MiB", static_cast<double>(mib)};
            const auto stage = [=]() -> steps_stage& { return stage_of<steps_stage>(series + suffix, mib); };
            const auto by = [=](fat::lookup_strategy strategy) {
                return [=](run& r) { is_write ? create(r, stage(), strategy) : read(r, stage(), strategy); };
            };
            to.add({.name = series + suffix, .series = at})
                .subject("limit", [=](run& r) { by_calls(r, stage(), is_write); })
                .subject("sluice.runs", by(fat::lookup_strategy::runs))
                .subject("sluice.cursor", by(fat::lookup_strategy::cursor));
            to.add({.name = series + "_naive" + suffix, .series = at, .repeats_max = 1})
                .subject("sluice.naive", by(fat::lookup_strategy::naive));
        }
    }
}

}  // namespace sluice::bench
