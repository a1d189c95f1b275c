// The main function of a fuzz target that is built without libFuzzer: runs it once with every file
// of the given directories. Fails if there is none, so that a missing seed directory is detected.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

bool run_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    // Exactly as long as the file, so that AddressSanitizer detects a read past its end.
    const std::vector<char> read{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::uint8_t> input(read.begin(), read.end());
    if (not file.good() and not file.eof()) {
        std::fprintf(stderr, "cannot read %s\n", path.c_str());
        return false;
    }
    // Not buffered, so that the last line names the seed that stopped the program.
    std::fprintf(stderr, "%s\n", path.filename().c_str());
    return LLVMFuzzerTestOneInput(input.data(), input.size()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t count = 0;
    std::size_t failed = 0;
    for (int i = 1; i < argc; ++i) {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i], ignored)) {
            if (not entry.is_regular_file()) continue;
            ++count;
            if (not run_file(entry.path())) ++failed;
        }
    }
    std::fprintf(stderr, "%zu seeds, %zu failed\n", count, failed);
    return count != 0 and failed == 0 ? 0 : 1;
}
