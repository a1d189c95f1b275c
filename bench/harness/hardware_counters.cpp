#include "bench/harness/hardware_counters.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sluice::bench {

namespace {

constexpr std::uint64_t l1_data_read_misses =
    PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
constexpr std::array<hardware_counters::event, hardware_counters::count> the_three{{
    {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES},
    {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS},
    {.type = PERF_TYPE_HW_CACHE, .config = l1_data_read_misses},
}};

int open_counter(const hardware_counters::event& what, int leader) noexcept {
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = what.type;
    attributes.config = what.config;
    attributes.read_format = PERF_FORMAT_GROUP;
    attributes.disabled = leader == -1 ? 1 : 0;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    const pid_t this_thread = 0;
    const int any_processor = -1;
    return static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, this_thread, any_processor, leader, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

hardware_counters::hardware_counters() noexcept : hardware_counters(the_three) {}

hardware_counters::hardware_counters(const std::array<event, count>& events) noexcept {
    for (std::size_t i = 0; i != count; ++i)
        if (i == 0 or descriptors_[0] != -1) descriptors_[i] = open_counter(events[i], descriptors_[0]);
}

hardware_counters::~hardware_counters() {
    for (const int descriptor : descriptors_)
        if (descriptor != -1) close(descriptor);
}

void hardware_counters::start() noexcept {
    if (descriptors_[0] == -1) return;
    ioctl(descriptors_[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
    ioctl(descriptors_[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

std::optional<hardware_counters::counts> hardware_counters::stop() noexcept {
    for (const int descriptor : descriptors_)
        if (descriptor == -1) return std::nullopt;
    ioctl(descriptors_[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
    struct {
        std::uint64_t count;
        std::uint64_t values[hardware_counters::count];
    } group{};
    if (read(descriptors_[0], &group, sizeof(group)) != sizeof(group)) return std::nullopt;
    return counts{.cycles = static_cast<double>(group.values[0]),
                  .instructions = static_cast<double>(group.values[1]),
                  .l1_misses = static_cast<double>(group.values[2])};
}

}  // namespace sluice::bench
