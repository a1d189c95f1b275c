#include "sluice/fsmutex/conformance_testing.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <tuple>

#include "sluice/fsmutex/atomic_append.hpp"
#include "sluice/fsmutex/byte_ranges.hpp"
#include "sluice/fsmutex/lock_files.hpp"
#include "sluice/fsmutex/memory_map.hpp"

namespace sluice::fsmutex {

const std::vector<tested_algorithm>& tested_algorithms() {
    static const std::vector<tested_algorithm> all{
        {.name = "byte_ranges", .open = byte_ranges::open, .leaves_its_file = true},
        {.name = "atomic_append", .open = atomic_append::open, .reports_deaths = true},
        {.name = "lock_files", .open = lock_files::open, .reports_deaths = true, .leaves_its_file = true},
        {.name = "memory_map", .open = memory_map::open, .reports_deaths = true},
    };
    return all;
}

namespace {

std::string directory_of(const std::string& volume) {
    if (volume == "memory") return "/dev/shm";
    const char* const chosen = std::getenv("TMPDIR");
    return chosen != nullptr ? chosen : std::filesystem::current_path().string();
}

}  // namespace

on_each_algorithm::on_each_algorithm() : directory(directory_of(std::get<1>(GetParam()))) {
    const char* const mount = std::getenv("SLUICE_SECOND_MOUNT");
    if (mount == nullptr or std::get<1>(GetParam()) != std::string("disk")) return;
    second_anchor =
        io::path_handle::open(mount + directory.path().substr(directory.path().rfind('/'))).value();
}

std::unique_ptr<shared_fs_mutex> on_each_algorithm::open(const dependencies& from) const {
    // Processes forked in sequence begin with the same count, and have consecutive numbers.
    const std::size_t mount = openings_.fetch_add(1) + static_cast<std::size_t>(::getpid());
    auto opened = tested().open(anchor(mount), "locks", from);
    if (not opened) throw std::runtime_error(opened.error().message());
    return std::move(*opened);
}

std::string name_of_instance(const testing::TestParamInfo<std::tuple<std::size_t, const char*>>& info) {
    return tested_algorithms()[std::get<0>(info.param)].name + "_on_" + std::get<1>(info.param);
}

}  // namespace sluice::fsmutex
