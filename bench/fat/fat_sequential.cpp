#include <fcntl.h>
#include <unistd.h>

#include "bench/fat/fat_image.hpp"
#include "bench/fat/fat_workloads.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::bench {
namespace {

constexpr std::uint64_t mebi = 1U << 20;

// The size of a file in MiB, and the number of such files per repeat.
struct file_size {
    std::uint64_t mib;
    std::uint64_t files;
    const char* directory = "/dev/shm";
    [[nodiscard]] bool is_on_disk() const noexcept { return std::string_view(directory) == "."; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return mib * mebi; }
};

// A volume with a file of that size, and space for as many more as a repeat writes; and the same
// file outside.
class sequential_stage {
public:
    explicit sequential_stage(file_size size)
        : size_(size),
          image_(size.bytes() * (size.files + 1) + 64 * mebi, {.cluster_bytes = 4096}, size.directory) {
        const mounted_fat volume(image_);
        const auto file = volume.put("f", size.bytes(), mebi);
        volume->flush(*file).value();
        volume
            ->for_each_extent(*file, {.offset = 0, .length = size.bytes()},
                              [&](const auto& piece) {
                                  ENSURE(piece.length == size.bytes(), "the file is in one piece");
                                  place_ = *piece.place;
                                  return true;
                              })
            .value();
    }

    [[nodiscard]] const file_size& size() const noexcept { return size_; }
    [[nodiscard]] const fat_image& image() const noexcept { return image_; }
    [[nodiscard]] std::uint64_t place() const noexcept { return place_; }
    /// Returns a file outside with the same bytes, created on the first call.
    [[nodiscard]] std::string outside() {
        if (not outside_) {
            outside_ = io::file_handle::temp_inode(io::path_handle::open("/dev/shm").value()).value();
            for (std::uint64_t at = 0; at < size_.bytes(); at += mebi) {
                ENSURE(pwrite(outside_->descriptor(), transfer_buffer().data(), mebi,
                              static_cast<off_t>(at)) == static_cast<ssize_t>(mebi));
            }
        }
        return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(outside_->descriptor());
    }

private:
    file_size size_;
    fat_image image_;
    std::uint64_t place_ = 0;
    std::optional<io::file_handle> outside_;
};

void by_pread(run& repeat, sequential_stage& on) {
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left)
            for (std::uint64_t at = 0; at < on.size().bytes(); at += mebi) {
                ENSURE(pread(on.image().descriptor(), transfer_buffer().data(), mebi,
                             static_cast<off_t>(on.place() + at)) == static_cast<ssize_t>(mebi));
            }
    });
}

// Writes into the free space, where the file system allocates new data, durably.
void by_pwrite(run& repeat, sequential_stage& on) {
    std::uint64_t place = on.place() + on.size().bytes();
    repeat.measure([&] {
        for (auto left = repeat.operations() * on.size().mib; left != 0; --left, place += mebi) {
            ENSURE(pwrite(on.image().descriptor(), transfer_buffer().data(), mebi,
                          static_cast<off_t>(place)) == static_cast<ssize_t>(mebi));
        }
        ENSURE(fdatasync(on.image().descriptor()) == 0);
    });
}

// The kernel's own copy, between the image and a file outside.
void by_copy_file_range(run& repeat, sequential_stage& on, bool is_write) {
    const int outside = open(on.outside().c_str(), O_RDWR | O_CLOEXEC);
    ENSURE(outside >= 0);
    const int image = on.image().descriptor();
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            auto in_image = static_cast<off64_t>(on.place() + (is_write ? on.size().bytes() : 0));
            for (off64_t at = 0; at < static_cast<off64_t>(on.size().bytes());) {
                const ssize_t moved = is_write ? copy_file_range(outside, &at, image, &in_image, mebi, 0)
                                               : copy_file_range(image, &in_image, outside, &at, mebi, 0);
                ENSURE(moved > 0);
            }
        }
    });
    close(outside);
}

void note_calls(run& repeat, const sequential_stage& on, std::uint64_t calls) {
    repeat.note("device_calls_per_mib",
                static_cast<double>(calls) / static_cast<double>(repeat.operations() * on.size().mib));
}

// Mounted, but without any cached state: finding the file and following its chain is included.
void read_ours(run& repeat, sequential_stage& on) {
    const mounted_fat volume(on.image());
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            const auto file = volume->find("f").value();
            fat::run_list::hint hint;
            for (std::uint64_t at = 0; at < on.size().bytes(); at += mebi)
                ENSURE(volume->read(*file, hint, transfer_buffer(), at).value() == mebi);
        }
    });
    note_calls(repeat, on, volume.device_calls());
}

// The file takes so long that the machine changes its speed in the meantime. So the subjects
// alternate, with consecutive pieces. They read the same pieces, because the speed depends on their
// position in memory by a factor of three, and so many that no cache has any of them left for the
// other. Each pass begins with finding the file.
constexpr std::uint64_t turn_bytes = 105 * mebi;  // 39 make 4,095 MiB

void read_in_turns(turns& subjects, sequential_stage& on) {
    const mounted_fat volume(on.image());
    ENSURE(on.size().bytes() % turn_bytes == 0);
    const auto in_pieces = [&](std::uint64_t& at, const auto& read) {
        for (const std::uint64_t end = at + turn_bytes; at != end; at += mebi)
            ENSURE(read(at) == mebi);
        at %= on.size().bytes();
    };
    std::uint64_t raw_at = 0;
    const auto raw = [&](std::uint64_t) {
        in_pieces(raw_at, [&](std::uint64_t at) {
            return static_cast<std::uint64_t>(pread(on.image().descriptor(), transfer_buffer().data(), mebi,
                                                    static_cast<off_t>(on.place() + at)));
        });
    };
    std::uint64_t our_at = 0;
    fat::inode_handle file;
    fat::run_list::hint hint;
    const auto ours = [&](std::uint64_t) {
        if (our_at == 0) {
            file = {};
            file = volume->find("f").value();
            hint = {};
        }
        in_pieces(our_at,
                  [&](std::uint64_t at) { return volume->read(*file, hint, transfer_buffer(), at).value(); });
    };
    const turns::turn both[] = {raw, ours};
    subjects.measure(both);
}

// From creating the names to having everything durable, in order. The volume has been written to
// before, so the search of its table for free clusters is over.
void write_ours(run& repeat, sequential_stage& on) {
    const mounted_fat volume(on.image());
    volume.look_for_free();
    const std::uint64_t calls_before = volume.device_calls();
    const auto name = [](std::uint64_t number) { return "new" + std::to_string(number); };
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left)
            volume.put(name(left), on.size().bytes(), mebi);
        volume->commit().value();
    });
    note_calls(repeat, on, volume.device_calls() - calls_before);
    for (auto left = repeat.operations(); left != 0; --left)
        volume.remove(name(left));
    volume->unmount().value();
}

// A program for each repeat, so one file, however many the others use.
void by_program(run& repeat, const std::vector<std::string>& command) {
    repeat.did(1);
    measure_program(repeat, command);
}

void mcopy_in(run& repeat, sequential_stage& on) {
    by_program(repeat, {"mcopy", "-i", on.image().path(), on.outside(), "::/m"});
    (void)run_program({"mdel", "-i", on.image().path(), "::/m"});
}

}  // namespace

namespace {

void add_file(benchmark& to, const file_size& size, bool is_write) {
    const std::string series =
        std::string(is_write ? "write_file" : "read_file") + (size.is_on_disk() ? "_disk" : "");
    const std::string name = series + '_' + std::to_string(size.mib);
    const auto stage = [=]() -> sequential_stage& { return stage_of<sequential_stage>(name, size); };
    workload_options options{.name = name,
                             .series = workload_series{series, "MiB", static_cast<double>(size.mib)},
                             .metric = metric::gigabytes_per_second,
                             .operations = size.files,
                             .bytes_per_operation = size.bytes()};
    if (size.mib > 1024 and not is_write) {
        options.operations = 1;
        options.bytes_per_operation = turn_bytes;
        to.add(options).subjects_in_turns({"limit", "sluice.fat"},
                                          [=](turns& both) { read_in_turns(both, stage()); });
        return;
    }
    if (size.mib > 1024) options.repeats_max = 3;
    workload& added = to.add(options);
    added.subject("limit", [=](run& r) { is_write ? by_pwrite(r, stage()) : by_pread(r, stage()); });
    added.subject("sluice.fat", [=](run& r) { is_write ? write_ours(r, stage()) : read_ours(r, stage()); });
    if (size.mib >= 1024 or size.is_on_disk())
        return;  // the others take minutes, and grow with the size alone
    added.subject("copy_file_range", [=](run& r) { by_copy_file_range(r, stage(), is_write); });
    if (is_write) {
        added.subject("mtools", [=](run& r) { mcopy_in(r, stage()); });
    } else {
        added.subject("mtools",
                      [=](run& r) { by_program(r, {"mcopy", "-i", stage().image().path(), "::/f", "-"}); });
        added.subject("7zip",
                      [=](run& r) { by_program(r, {"7z", "e", "-so", stage().image().path(), "f"}); });
    }
}

}  // namespace

void add_sequential(benchmark& to, bool is_quick) {
    std::vector<file_size> sizes{{.mib = 16, .files = 8}};
    if (not is_quick) {
        sizes = {{.mib = 1, .files = 32},
                 sizes[0],
                 {.mib = 256, .files = 1},
                 {.mib = 256, .files = 1, .directory = "."},
                 {.mib = 1024, .files = 1},
                 // One byte less than 4 GiB is the largest file there is.
                 {.mib = 4095, .files = 1}};
    }
    for (const bool is_write : {true, false})
        for (const file_size& size : sizes)
            add_file(to, size, is_write);
}

}  // namespace sluice::bench
