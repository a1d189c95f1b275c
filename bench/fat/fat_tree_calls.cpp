// The lower bound in bench/fat_tree.py: only the system calls that create the files of a tree.
//
//     fat_tree_calls SOURCE TARGET THREADS
//
// Reads the files of the directory SOURCE into memory. Then THREADS threads create them in the new
// directory TARGET, with the calls that every copy needs (openat, pwrite, utimensat, close). Prints
// the elapsed seconds.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/base/ensure.hpp"

namespace {

struct file {
    std::string name;
    std::string content;
};

std::vector<file> read_all(const char* directory) {
    std::vector<file> all;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        std::ifstream from(entry.path(), std::ios::binary);
        all.push_back({entry.path().filename().string(), std::string(std::istreambuf_iterator(from), {})});
    }
    return all;
}

void make(int directory, const file& what) {
    const int made = ::openat(directory, what.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    ENSURE(made >= 0);
    ENSURE(::pwrite(made, what.content.data(), what.content.size(), 0) ==
           static_cast<ssize_t>(what.content.size()));
    const timespec times[] = {{.tv_sec = 1'000'000'000, .tv_nsec = 0},
                              {.tv_sec = 1'000'000'000, .tv_nsec = 0}};
    ENSURE(::futimens(made, times) == 0);
    ENSURE(::close(made) == 0);
}

}  // namespace

int main(int argc, char** argv) {
    unsigned threads = 0;
    const std::string_view count = argc == 4 ? argv[3] : "";
    if (std::from_chars(count.data(), count.data() + count.size(), threads).ec != std::errc() or
        threads == 0) {
        std::fputs("usage: fat_tree_calls SOURCE TARGET THREADS\n", stderr);
        return 2;
    }
    const std::vector<file> files = read_all(argv[1]);
    ENSURE(::mkdir(argv[2], 0777) == 0);
    const int directory = ::open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ENSURE(directory >= 0);
    const auto begun = std::chrono::steady_clock::now();
    {
        std::atomic<std::size_t> next{0};
        std::vector<std::jthread> running;
        for (unsigned i = 0; i != threads; ++i)
            running.emplace_back([&] {
                // relaxed: each number is used once, and nothing else is shared.
                for (std::size_t at = 0; (at = next.fetch_add(1, std::memory_order_relaxed)) < files.size();)
                    make(directory, files[at]);
            });
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    std::printf("%.6f\n", took.count());
    return 0;
}
