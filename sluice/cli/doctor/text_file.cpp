#include "sluice/cli/doctor/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::cli::doctor {
namespace {

constexpr std::string_view blanks = " \t\r\n";

}  // namespace

std::string text_of_file(const std::string& path, std::size_t bytes_max) {
    std::string text;
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return text;
    struct stat status{};
    const bool is_file = ::fstat(descriptor, &status) == 0 and S_ISREG(status.st_mode);
    constexpr std::size_t piece = 4096;
    while (is_file and text.size() < bytes_max) {
        const std::size_t before = text.size();
        text.resize(before + piece);
        const ssize_t got = ::read(descriptor, text.data() + before, piece);
        text.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
        if (got <= 0 and not(got < 0 and errno == EINTR)) break;
    }
    ::close(descriptor);
    if (text.size() > bytes_max) text.resize(bytes_max);
    return text;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (not text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        if (end == text.npos) break;
        text.remove_prefix(end + 1);
    }
    return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (;;) {
        const std::size_t begin = line.find_first_not_of(blanks);
        if (begin == line.npos) return words;
        const std::size_t end = line.find_first_of(blanks, begin);
        words.push_back(line.substr(begin, end - begin));
        if (end == line.npos) return words;
        line.remove_prefix(end);
    }
}

std::string_view trimmed(std::string_view text) noexcept {
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace sluice::cli::doctor
