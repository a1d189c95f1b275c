#include "bench/fat/fat_image.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::bench {
namespace {

constexpr int not_installed = 127;

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

struct outcome {
    int status = 0;
    double cpu_ns = 0;
};

outcome run_to_end(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& each : command)
        arguments.push_back(const_cast<char*>(each.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ENSURE(posix_spawn_file_actions_init(&actions) == 0);
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
        ENSURE(posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0) == 0);
    }
    pid_t child = 0;
    const int spawned = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (spawned != 0) return {.status = not_installed};
    int status = 0;
    rusage used{};
    ENSURE(wait4(child, &status, 0, &used) == child);
    return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .cpu_ns = (seconds_of(used.ru_utime) + seconds_of(used.ru_stime)) * 1e9};
}

io::file_handle made_image(std::uint64_t bytes, const char* directory) {
    auto file = io::file_handle::temp_inode(io::path_handle::open(directory).value()).value();
    const std::span<std::byte> block = transfer_buffer();
    std::ranges::fill(block, std::byte{0x55});
    for (std::uint64_t at = 0; at < bytes; at += block.size()) {
        const auto part =
            block.first(static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), bytes - at)));
        ENSURE(file.write(io::io_request<io::const_bytes_type>{part, at}).bytes_transferred() == part.size());
    }
    return file;
}

}  // namespace

result<void> counting_device::read_at(std::uint64_t offset, io::buffers_type pieces) noexcept {
    calls_.fetch_add(1, std::memory_order_relaxed);
    return below_.read_at(offset, pieces);
}

result<void> counting_device::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    calls_.fetch_add(1, std::memory_order_relaxed);
    return below_.write_at(offset, pieces);
}

result<void> counting_device::punch_hole(byte_extent range) noexcept {
    calls_.fetch_add(1, std::memory_order_relaxed);
    return below_.punch_hole(range);
}

fat_image::fat_image(std::uint64_t bytes, const fat::format_options& how, const char* directory)
    : file_(made_image(bytes, directory)) {
    const auto plan = fat::plan_format(bytes, how);
    ENSURE(plan.has_value(), "the size of the workload fits its options");
    shape_ = plan->shape;
    auto on = device();
    fat::format(on, *plan).value();
}

std::string fat_image::path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.descriptor());
}

fat::file_device fat_image::device() const {
    io::native_handle native = file_.native();
    native.descriptor = fcntl(native.descriptor, F_DUPFD_CLOEXEC, 0);
    ENSURE(native.descriptor >= 0);
    return fat::file_device::over(io::file_handle(native)).value();
}

mounted_fat::mounted_fat(const fat_image& image, fat::lookup_strategy strategy)
    : device_(image.device()),
      system_(
          fat::file_system::mount(device_, image.shape(), clock_, {.strategy = strategy, .discards = false})
              .value()) {}

fat::inode_handle mounted_fat::make(const std::string& path) const {
    return system_->create(path, false, fat::attributes::archive).value();
}

fat::inode_handle mounted_fat::put(const std::string& path, std::uint64_t bytes,
                                   std::size_t request_bytes) const {
    auto file = make(path);
    fat::run_list::hint hint;
    const std::span<const std::byte> block = transfer_buffer();
    for (std::uint64_t at = 0; at < bytes; at += request_bytes)
        system_->write(*file, hint, block.first(request_bytes), at).value();
    return file;
}

void mounted_fat::remove(const std::string& path) const {
    system_->remove(*system_->find(path).value()).value();
}

void mounted_fat::look_for_free() const {
    put("first", 1, 1);
    remove("first");
    system_->commit().value();
}

std::span<std::byte> transfer_buffer() noexcept {
    alignas(4096) static std::array<std::byte, 1 << 20> bytes{};
    return bytes;
}

void measure_program(run& repeat, const std::vector<std::string>& command) {
    outcome ended;
    repeat.measure([&] { ended = run_to_end(command); });
    if (ended.status == not_installed) {
        repeat.skip(command.front() + " is not installed");
        return;
    }
    if (ended.status != 0)
        throw std::runtime_error(command.front() + " ended with " + std::to_string(ended.status));
    repeat.cpu_spent(ended.cpu_ns);
}

int run_program(const std::vector<std::string>& command) {
    return run_to_end(command).status;
}

}  // namespace sluice::bench
