#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <random>

#include "bench/fat/fat_image.hpp"
#include "bench/fat/fat_workloads.hpp"
#include "sluice/base/endian.hpp"

namespace sluice::bench {
namespace {

constexpr std::uint64_t mebi = 1U << 20;
constexpr std::size_t block_bytes = 4096;  // a request, and a cluster

/// The layout of a file of `mib` MiB.
struct file_shape {
    std::uint64_t mib;
    bool is_in_pieces;
    [[nodiscard]] std::uint32_t blocks() const noexcept {
        return static_cast<std::uint32_t>(mib * mebi / block_bytes);
    }
};

using block = std::array<std::byte, block_bytes>;

// Returns the number at the start of a block: its number in the file.
std::uint32_t number_in(const block& of) {
    std::uint32_t number = 0;
    std::memcpy(&number, of.data(), sizeof number);
    return number;
}

// A volume with a file whose blocks have their number, and the position of each; and a mount for
// each strategy, which keeps its caches between repeats.
class random_stage {
public:
    explicit random_stage(file_shape shape)
        : shape_(shape),
          image_(2 * shape.mib * mebi + 300 * mebi,
                 {.type = fat::fat_type::fat32, .cluster_bytes = block_bytes}) {
        {
            const mounted_fat volume(image_);
            const std::uint32_t a = volume.put("a", shape.mib * mebi, mebi)->chain.first();
            const std::uint32_t b = volume.put("b", shape.mib * mebi, mebi)->chain.first();
            volume->unmount().value();
            if (shape.is_in_pieces) interleave(a, b);
        }
        const mounted_fat volume(image_);
        const auto file = volume->find("a").value();
        fat::run_list::hint hint;
        block each{};
        for (std::uint32_t number = 0; number != shape.blocks(); ++number) {
            std::memcpy(each.data(), &number, sizeof number);
            volume->write(*file, hint, each, std::uint64_t{number} * block_bytes).value();
        }
        find_places(volume, *file);
        volume->unmount().value();
    }

    [[nodiscard]] const file_shape& shape() const noexcept { return shape_; }
    [[nodiscard]] int descriptor() const noexcept { return image_.descriptor(); }
    [[nodiscard]] std::uint64_t place_of(std::uint32_t number) const noexcept { return places_[number]; }
    [[nodiscard]] std::size_t runs() const noexcept { return runs_; }
    [[nodiscard]] const mounted_fat& mounted(fat::lookup_strategy strategy) {
        auto& there = mounts_[strategy];
        if (there == nullptr) there = std::make_unique<mounted_fat>(image_, strategy);
        return *there;
    }

private:
    // Two chains exchange their successors at each of their clusters: both stay complete, in pieces
    // of one cluster.
    void interleave(std::uint32_t a, std::uint32_t b) const {
        const auto lead = [&](std::uint32_t from, std::uint32_t to) {
            const le32 entry(to);
            for (std::uint32_t copy = 0; copy != image_.shape().fat_count; ++copy) {
                ENSURE(pwrite(descriptor(), &entry, sizeof entry,
                              static_cast<off_t>(image_.shape().fat_copy_offset(copy) + 4ULL * from)) ==
                       sizeof entry);
            }
        };
        for (std::uint32_t i = 0; i + 1 != shape_.blocks(); ++i) {
            lead(a + i, b + i + 1);
            lead(b + i, a + i + 1);
        }
    }
    void find_places(const mounted_fat& volume, fat::inode& file) {
        const auto visit = [&](const fat::file_system::piece& piece) {
            ++runs_;
            for (std::uint64_t done = 0; done != piece.length; done += block_bytes)
                places_.push_back(*piece.place + done);
            return true;
        };
        volume->for_each_extent(file, {.offset = 0, .length = shape_.mib * mebi}, visit).value();
        ENSURE(places_.size() == shape_.blocks());
        ENSURE(runs_ == (shape_.is_in_pieces ? shape_.blocks() : 1));
    }

    file_shape shape_;
    fat_image image_;
    std::vector<std::uint64_t> places_;
    std::size_t runs_ = 0;
    std::map<fat::lookup_strategy, std::unique_ptr<mounted_fat>> mounts_;
};

// Different blocks each time: a second subject with the same blocks would find them in the CPU's
// cache.
class random_blocks {
public:
    explicit random_blocks(const file_shape& of) : lots_(++last_seed), pick_(0, of.blocks() - 1) {}
    [[nodiscard]] std::uint32_t next() { return pick_(lots_); }

private:
    static inline unsigned last_seed = 0;
    std::minstd_rand lots_;
    std::uniform_int_distribution<std::uint32_t> pick_;
};

void by_pread(run& repeat, random_stage& on) {
    random_blocks blocks(on.shape());
    block into;
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            const std::uint32_t number = blocks.next();
            ENSURE(pread(on.descriptor(), into.data(), into.size(),
                         static_cast<off_t>(on.place_of(number))) == block_bytes);
            ENSURE(number_in(into) == number);
        }
    });
}

void by_strategy(run& repeat, random_stage& on, fat::lookup_strategy strategy) {
    // Walking a chain is slow enough for fewer operations to be exact.
    if (strategy != fat::lookup_strategy::runs)
        repeat.did(std::max<std::uint64_t>(repeat.operations() / 200, 1));
    const mounted_fat& volume = on.mounted(strategy);
    const auto file = volume->find("a").value();
    fat::run_list::hint hint;
    random_blocks blocks(on.shape());
    block into;
    const std::uint64_t steps_before = volume.steps();
    const std::uint64_t calls_before = volume.device_calls();
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            const std::uint32_t number = blocks.next();
            ENSURE(volume->read(*file, hint, into, std::uint64_t{number} * block_bytes).value() ==
                   block_bytes);
            ENSURE(number_in(into) == number);
        }
    });
    const auto operations = static_cast<double>(repeat.operations());
    repeat.note("steps_per_op", static_cast<double>(volume.steps() - steps_before) / operations);
    repeat.note("device_calls_per_op",
                static_cast<double>(volume.device_calls() - calls_before) / operations);
    repeat.note("file_runs", static_cast<double>(on.runs()));
}

// --- appends

constexpr std::uint64_t appends_max = 4096;

class append_stage {
public:
    explicit append_stage(std::uint64_t mib)
        : bytes_(mib * mebi),
          image_(bytes_ + 300 * mebi, {.type = fat::fat_type::fat32, .cluster_bytes = block_bytes}) {
        const mounted_fat volume(image_);
        volume.put("f", bytes_, mebi);
        volume->unmount().value();
    }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] const fat_image& image() const noexcept { return image_; }
    /// Returns an offset without data.
    [[nodiscard]] std::uint64_t free_place() const noexcept {
        return image_.shape().data_offset + bytes_ + 8 * mebi;
    }

private:
    std::uint64_t bytes_;
    fat_image image_;
};

void append_raw(run& repeat, append_stage& on) {
    std::uint64_t place = on.free_place();
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left, place += block_bytes) {
            ENSURE(pwrite(on.image().descriptor(), transfer_buffer().data(), block_bytes,
                          static_cast<off_t>(place)) == block_bytes);
        }
    });
}

// The first append, which follows the chain to its end, is not measured. Nothing is committed
// during the measurement.
void append_ours(run& repeat, append_stage& on) {
    const mounted_fat volume(on.image());
    const auto file = volume->find("f").value();
    fat::run_list::hint hint;
    const std::span<const std::byte> from = transfer_buffer().first(block_bytes);
    std::uint64_t end = on.bytes();
    volume->write(*file, hint, from, end).value();
    const std::uint64_t steps_before = volume.steps();
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left)
            volume->write(*file, hint, from, end += block_bytes).value();
    });
    repeat.note("steps_per_op", static_cast<double>(volume.steps() - steps_before) /
                                    static_cast<double>(repeat.operations()));
    volume->truncate(*file, on.bytes()).value();
    volume->unmount().value();
}

}  // namespace

void add_random(benchmark& to, bool is_quick) {
    std::vector<file_shape> shapes{{.mib = 100, .is_in_pieces = false}, {.mib = 100, .is_in_pieces = true}};
    if (not is_quick)
        shapes = {
            {.mib = 1, .is_in_pieces = false}, shapes[0], {.mib = 1024, .is_in_pieces = false}, shapes[1]};
    for (const file_shape& shape : shapes) {
        const std::string name = std::string(shape.is_in_pieces ? "random_read_in_pieces_" : "random_read_") +
                                 std::to_string(shape.mib);
        const auto stage = [=]() -> random_stage& { return stage_of<random_stage>(name, shape); };
        const auto by = [=](fat::lookup_strategy strategy) {
            return [=](run& r) { by_strategy(r, stage(), strategy); };
        };
        to.add({.name = name,
                .metric = metric::cpu_per_operation,
                .operations = 100'000,
                .cpu = cpu_clock::thread})
            .subject("limit", [=](run& r) { by_pread(r, stage()); })
            .subject("sluice.runs", by(fat::lookup_strategy::runs))
            .subject("sluice.cursor", by(fat::lookup_strategy::cursor))
            .subject("sluice.naive", by(fat::lookup_strategy::naive));
    }
}

void add_appends(benchmark& to, bool is_quick) {
    const std::vector<std::uint64_t> sizes =
        is_quick ? std::vector<std::uint64_t>{1, 100} : std::vector<std::uint64_t>{1, 10, 100, 1024};
    for (const std::uint64_t mib : sizes) {
        const std::string name = "append_" + std::to_string(mib);
        const auto stage = [=]() -> append_stage& { return stage_of<append_stage>(name, mib); };
        to.add({.name = name,
                .series = workload_series{"append", "MiB before", static_cast<double>(mib)},
                .metric = metric::cpu_per_operation,
                .operations = appends_max,
                .cpu = cpu_clock::thread})
            .subject("limit", [=](run& r) { append_raw(r, stage()); })
            .subject("sluice.fat", [=](run& r) { append_ours(r, stage()); });
    }
}

}  // namespace sluice::bench
