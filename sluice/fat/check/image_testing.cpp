#include "sluice/fat/check/image_testing.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "sluice/base/random.hpp"

namespace sluice::fat {
namespace {

// A file that is removed at the end of the scope.
class scratch_file {
public:
    scratch_file() {
        std::string name = "/dev/shm/sluice_fat_XXXXXX";
        const int descriptor = mkstemp(name.data());
        EXPECT_GE(descriptor, 0);
        path_ = name;
        (void)std::fclose(fdopen(descriptor, "r"));
    }
    scratch_file(const scratch_file&) = delete;
    scratch_file& operator=(const scratch_file&) = delete;
    ~scratch_file() { std::filesystem::remove(path_); }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    // Writes zeros as holes, because most of an image is zeros, and there are thousands of images.
    void write(std::span<const std::byte> bytes) const {
        std::filesystem::resize_file(path_, bytes.size());
        std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
        constexpr std::size_t block_bytes = 4096;
        static constexpr std::array<std::byte, block_bytes> zeros{};
        for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
            const auto block = bytes.subspan(at, std::min(block_bytes, bytes.size() - at));
            if (std::memcmp(block.data(), zeros.data(), block.size()) == 0) continue;
            file.seekp(static_cast<std::streamoff>(at));
            file.write(reinterpret_cast<const char*>(block.data()),
                       static_cast<std::streamsize>(block.size()));
        }
        EXPECT_TRUE(file.flush().good());
    }
    [[nodiscard]] std::vector<std::byte> read() const {
        std::vector<std::byte> bytes(std::filesystem::file_size(path_));
        std::ifstream file(path_, std::ios::binary);
        file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        EXPECT_TRUE(file.good());
        return bytes;
    }

private:
    std::string path_;
};

struct outcome {
    int code = 0;
    std::string printed;
};
outcome run(const std::string& command) {
    std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    outcome found;
    std::array<char, 4096> part;
    for (std::size_t bytes = 0; (bytes = std::fread(part.data(), 1, part.size(), pipe)) != 0;)
        found.printed.append(part.data(), bytes);
    found.code = pclose(pipe);
    return found;
}

std::vector<std::byte> format_new_image(std::size_t kibibytes, const std::string& options) {
    const scratch_file file;
    std::filesystem::resize_file(file.path(), kibibytes * 1024);
    const outcome made = run("PATH=$PATH:/usr/sbin mkfs.fat -i 12345678 " + options + ' ' + file.path());
    EXPECT_EQ(made.code, 0) << made.printed;
    return file.read();
}

}  // namespace

// Creates each kind of image once, because all images of a kind are equal.
std::vector<std::byte> formatted(std::size_t kibibytes, const std::string& options) {
    static std::map<std::pair<std::size_t, std::string>, std::vector<std::byte>> made_before;
    auto& image = made_before[{kibibytes, options}];
    if (image.empty()) image = format_new_image(kibibytes, options);
    return image;
}

verdict fsck(std::span<const std::byte> image) {
    const scratch_file file;
    file.write(image);
    const outcome said = run("PATH=$PATH:/usr/sbin fsck.fat -n -v " + file.path());
    return {.is_clean = said.code == 0, .said = said.printed};
}

std::string run_on(std::span<const std::byte> image, const std::string& command) {
    const scratch_file file;
    file.write(image);
    std::string full = command;
    for (std::size_t at = 0; (at = full.find('%', at)) != full.npos;)
        full.replace(at, 1, file.path());
    return run(full).printed;
}

std::vector<std::byte> pattern(std::uint64_t seed, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    seeded_random(seed).fill(made);
    return made;
}

std::string content_of(file_system& of, std::string_view path) {
    const auto found = of.find(path);
    if (not found) return "(missing)";
    std::string text(of.status(**found).size_bytes, '\0');
    run_list::hint hint;
    const auto read = of.read(**found, hint, std::as_writable_bytes(std::span(text)), 0);
    if (not read) return "(unreadable)";
    EXPECT_EQ(*read, text.size());
    return text;
}

void put(file_system& into, std::string_view path, std::string_view content) {
    auto file = into.find(path);
    if (not file) file = into.create(path, false, attributes::none);
    ASSERT_EQ(code(file), 0) << path;
    run_list::hint hint;
    ASSERT_EQ(code(into.truncate(**file, 0)), 0);
    ASSERT_EQ(code(into.write(**file, hint, std::as_bytes(std::span(content)), 0)), 0) << path;
}

std::string picture(file_system& of, const std::string& path) {
    const auto directory = of.find(path);
    if (not directory) return "(missing " + path + ")\n";
    std::vector<std::pair<std::string, bool>> names;
    for (std::uint32_t slot = 0;;) {
        const auto next = of.list(**directory, slot);
        EXPECT_EQ(code(next), 0) << path;
        if (not next or not*next) break;
        names.emplace_back((*next)->name, (*next)->status.is_directory);
        slot = (*next)->slot + 1;
    }
    std::ranges::sort(names);
    std::string all;
    for (const auto& [name, is_directory] : names) {
        const std::string full = path.empty() ? name : path + '/' + name;
        if (is_directory) {
            all += full + "/\n" + picture(of, full);
        } else {
            const std::string text = content_of(of, full);
            all += full + ' ' + std::to_string(text.size()) + ' ' +
                   std::to_string(std::hash<std::string>()(text)) + '\n';
        }
    }
    return all;
}

}  // namespace sluice::fat
