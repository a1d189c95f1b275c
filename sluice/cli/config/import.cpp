#include "sluice/cli/config/import.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <string_view>

#include "sluice/base/error.hpp"
#include "sluice/cli/descriptor.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/migration/smb_conf.hpp"
#include "sluice/cli/migration/smb_import.hpp"
#include "sluice/cli/serve/serve_options.hpp"

namespace sluice::cli {
namespace {

// Reads a file. An included one may be a device or a pipe, which could block or have no end.
[[nodiscard]] std::expected<std::string, std::string> content_of(const std::string& path) {
    const auto refuse = [&](int code, const char* operation) {
        return std::unexpected(error::with_path(code, operation, path).message());
    };
    const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (file.get() < 0) return refuse(errno, "open");
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return refuse(errno, "stat");
    if (not S_ISREG(status.st_mode)) return std::unexpected(path + ": not a regular file");
    std::string text(smb_conf_limits::file_bytes_max + 1, '\0');
    std::size_t filled = 0;
    while (filled != text.size()) {
        const ssize_t got = ::read(file.get(), text.data() + filled, text.size() - filled);
        if (got < 0 and errno != EINTR) return refuse(errno, "read");
        if (got == 0) break;
        filled += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    text.resize(filled);
    return text;
}

// Returns 0, or the reason why not all was written.
[[nodiscard]] int write_all(int file, std::string_view text) {
    while (not text.empty()) {
        const ssize_t put = ::write(file, text.data(), text.size());
        if (put < 0 and errno != EINTR) return errno;
        text.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
    }
    return 0;
}

// Gives a complete file its name, which no other file has. Returns 0 or the reason why not.
[[nodiscard]] int publish(const std::string& from, const std::string& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL and errno != ENOSYS) return errno;  // the file system cannot do it
    if (::link(from.c_str(), to.c_str()) != 0) return errno;
    ::unlink(from.c_str());
    return 0;
}

// A file with this name is always complete.
void write_new(const std::string& path, std::string_view text) {
    const auto refuse = [&](int code, const char* operation) {
        if (code == EEXIST) fail(path + ": the file exists; remove it, or choose another name for --output");
        fail(error::with_path(code, operation, path).message());
    };
    struct stat unused{};
    if (::lstat(path.c_str(), &unused) == 0) refuse(EEXIST, "create");
    std::string temporary = path + ".XXXXXX";
    const descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
    if (file.get() < 0) refuse(errno, "create");
    const auto discard = [&](int code, const char* operation) {
        ::unlink(temporary.c_str());
        refuse(code, operation);
    };
    if (const int why_not = write_all(file.get(), text); why_not != 0) discard(why_not, "write");
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(file.get(), 0644 & ~mask) != 0 or ::fsync(file.get()) != 0) discard(errno, "write");
    if (const int why_not = publish(temporary, path); why_not != 0) discard(why_not, "create");
}

void report(const smb_imported& imported, const std::string& file) {
    std::string by_default;
    for (const smb_note& each : imported.notes) {
        if (each.kind != smb_note_kind::standard)
            warn(text_of(each));
        else if (by_default.find(each.subject) == std::string::npos)
            by_default += (by_default.empty() ? "" : ", ") + each.subject;
    }
    if (not by_default.empty()) warn(fmt::format("{}: sluice does this by default: {}", file, by_default));
}

// The values of Samba have other rules: a name may be too long, for example.
void report_errors(const smb_imported& imported, const std::string& name) {
    serve_options options;
    if (read_configuration_text(imported.toml, name, options)) return;
    for (const setting_problem& each : options.record->problems)
        warn(fmt::format("{}: {}; correct this value of the result", name, each.text));
}

}  // namespace

void import_configuration(const config_import& how) {
    const auto content = content_of(how.file);
    if (not content) fail(content.error());
    const smb_conf read = parse_smb_conf(how.file, *content, content_of);
    const known_settings& known = all_settings();
    const smb_imported imported = import_smb_conf(read, known.server, known.share);
    report(imported, how.file);
    if (imported.shares == 0) fail(how.file + ": no share can be imported");
    report_errors(imported, how.output.empty() ? "standard output" : how.output);
    if (how.output.empty())
        fmt::print("{}", imported.toml);
    else
        write_new(how.output, imported.toml);
}

}  // namespace sluice::cli
