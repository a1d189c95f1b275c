// The cost of a FAT volume beyond the transfers: data, lookups, names.

#include <algorithm>
#include <string_view>

#include "bench/fat/fat_workloads.hpp"

int main(int argc, char** argv) {
    using namespace sluice::bench;
    const bool is_quick =
        std::any_of(argv, argv + argc, [](std::string_view argument) { return argument == "--quick"; });
    benchmark all("fat", "What does a file on a FAT volume cost beyond its transfers?");
    add_sequential(all, is_quick);
    add_random(all, is_quick);
    add_appends(all, is_quick);
    add_steps(all, is_quick);
    add_names(all, is_quick);
    add_aside(all, is_quick);
    add_two_writers(all, is_quick);
    return all.main(argc, argv);
}
