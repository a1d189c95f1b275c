#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bench/fat/fat_image.hpp"
#include "bench/fat/fat_workloads.hpp"

namespace sluice::bench {
namespace {

constexpr std::uint64_t mebi = 1U << 20;
constexpr std::string_view content = "short\n";

std::string long_name(std::uint64_t number) {
    const std::string digits = std::to_string(number);
    return "A long name, number " + std::string(6 - digits.size(), '0') + digits + ".text";
}

// A volume of clusters of the minimum size, with an empty directory; and files outside, for
// programs that copy.
class names_stage {
public:
    names_stage() : image_(64 * mebi, {.type = fat::fat_type::fat32, .cluster_bytes = 512}) {
        const mounted_fat volume(image_);
        volume->create("d", true, fat::attributes::none).value();
        volume->unmount().value();
        std::string made = "/dev/shm/sluice_bench_XXXXXX";
        ENSURE(mkdtemp(made.data()) != nullptr);
        outside_ = made;
    }
    names_stage(const names_stage&) = delete;
    names_stage& operator=(const names_stage&) = delete;
    ~names_stage() {
        std::error_code ignored;
        std::filesystem::remove_all(outside_, ignored);
    }

    [[nodiscard]] const fat_image& image() const noexcept { return image_; }

    // The names are also arguments of a program, prepared before it starts.
    void prepare(std::uint64_t names) {
        for (std::uint64_t i = paths_.size(); i < names; ++i)
            paths_.push_back("d/" + long_name(i));
    }
    void create(const mounted_fat& volume, std::uint64_t names) const {
        const auto from = std::as_bytes(std::span(content));
        for (const std::string& path : std::span(paths_).first(names)) {
            fat::run_list::hint hint;
            volume->write(*volume.make(path), hint, from, 0).value();
        }
        volume->commit().value();
    }
    void remove(const mounted_fat& volume, std::uint64_t names) const {
        for (const std::string& path : std::span(paths_).first(names))
            volume.remove(path);
        volume->commit().value();
    }
    [[nodiscard]] std::vector<std::string> mcopy(std::uint64_t names) const {
        std::vector<std::string> command{"mcopy", "-i", image_.path()};
        for (std::uint64_t i = 0; i != names; ++i) {
            command.push_back(outside_ / long_name(i));
            if (not std::filesystem::exists(command.back())) std::ofstream(command.back()) << content;
        }
        command.emplace_back("::/d");
        return command;
    }
    [[nodiscard]] std::vector<std::string> mdel() const { return {"mdel", "-i", image_.path(), "::/d/*"}; }

private:
    fat_image image_;
    std::filesystem::path outside_;
    std::vector<std::string> paths_;
};

// Writes the data of each file with a separate call, like our subject, and the directory's bytes at
// once.
void create_raw(run& repeat, names_stage& on) {
    constexpr std::uint64_t set_bytes = 128;  // an entry and three of its name
    const int file = on.image().descriptor();
    const std::uint64_t place = on.image().shape().data_offset + 16 * mebi;
    repeat.measure([&] {
        for (std::uint64_t i = 0; i != repeat.operations(); ++i) {
            ENSURE(pwrite(file, content.data(), content.size(), static_cast<off_t>(place + i * 512)) ==
                   static_cast<ssize_t>(content.size()));
        }
        for (std::uint64_t left = repeat.operations() * set_bytes; left != 0;) {
            const auto part = std::min<std::uint64_t>(left, transfer_buffer().size());
            ENSURE(pwrite(file, transfer_buffer().data(), part, static_cast<off_t>(place - 8 * mebi)) ==
                   static_cast<ssize_t>(part));
            left -= part;
        }
    });
}

void create_ours(run& repeat, names_stage& on) {
    on.prepare(repeat.operations());
    const mounted_fat volume(on.image());
    volume.look_for_free();
    const std::uint64_t calls_before = volume.device_calls();
    repeat.measure([&] { on.create(volume, repeat.operations()); });
    repeat.note("device_calls_per_op", static_cast<double>(volume.device_calls() - calls_before) /
                                           static_cast<double>(repeat.operations()));
    on.remove(volume, repeat.operations());
    volume->unmount().value();
}

void remove_ours(run& repeat, names_stage& on) {
    on.prepare(repeat.operations());
    const mounted_fat volume(on.image());
    on.create(volume, repeat.operations());
    repeat.measure([&] { on.remove(volume, repeat.operations()); });
    volume->unmount().value();
}

void create_mtools(run& repeat, names_stage& on) {
    measure_program(repeat, on.mcopy(repeat.operations()));
    (void)run_program(on.mdel());
}

// Removes files that our library created.
void remove_mtools(run& repeat, names_stage& on) {
    {
        on.prepare(repeat.operations());
        const mounted_fat volume(on.image());
        on.create(volume, repeat.operations());
        volume->unmount().value();
    }
    measure_program(repeat, on.mdel());
}

}  // namespace

void add_names(benchmark& to, bool is_quick) {
    // The harness uses a tenth of them with --quick.
    const auto options_of = [=](const char* series, std::uint64_t names) {
        return workload_options{.name = std::string(series) + '_' + std::to_string(names),
                                .series = workload_series{series, "names", static_cast<double>(names)},
                                .operations = is_quick ? names * 10 : names};
    };
    const std::vector<std::uint64_t> counts =
        is_quick ? std::vector<std::uint64_t>{200, 1'000} : std::vector<std::uint64_t>{200, 1'000, 10'000};
    // A volume for each: deleted names of another subject would slow a search.
    const auto stage_for = [](const std::string& workload) {
        return [=]() -> names_stage& { return stage_of<names_stage>(workload); };
    };
    for (const std::uint64_t names : counts) {
        const workload_options options = options_of("create_names", names);
        const auto stage = stage_for(options.name);
        to.add(options)
            .subject("limit", [=](run& r) { create_raw(r, stage()); })
            .subject("sluice.fat", [=](run& r) { create_ours(r, stage()); });
    }
    // The time of mcopy grows faster than the square of their number: 10,000 would take minutes at
    // least.
    workload_options few = options_of("create_names", counts.front());
    few.name += "_mtools";
    few.repeats_max = 3;
    const auto stage_of_few = stage_for(few.name);
    to.add(few).subject("mtools", [=](run& r) { create_mtools(r, stage_of_few()); });
    for (const std::uint64_t names : counts) {
        const workload_options options = options_of("delete_names", names);
        const auto stage = stage_for(options.name);
        to.add(options)
            .subject("sluice.fat", [=](run& r) { remove_ours(r, stage()); })
            .subject("mtools", [=](run& r) { remove_mtools(r, stage()); });
    }
}

}  // namespace sluice::bench
