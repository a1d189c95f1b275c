#include "sluice/cli/user_import.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/migration/smbpasswd.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/cli/user_names.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::cli {
namespace {

using smb::server::user_database;

constexpr std::size_t file_bytes_max = std::size_t{4} << 20;

struct file_closer {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
};

// Not by the name /dev/stdin: a socket has none that can be opened, and a file would be opened
// again, from its beginning and with the rights of this process.
[[nodiscard]] std::FILE* open_standard_input() noexcept {
    const int copy = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy < 0) return nullptr;
    std::FILE* const file = ::fdopen(copy, "r");
    if (file != nullptr) return file;
    const int why_not = errno;
    ::close(copy);
    errno = why_not;
    return nullptr;
}

// The content of a file of hashes, overwritten on destruction.
class secret_content {
public:
    // One allocation, so that no growth leaves a copy.
    secret_content() : bytes_(new char[file_bytes_max + 1]) {}
    secret_content(const secret_content&) = delete;
    secret_content& operator=(const secret_content&) = delete;
    ~secret_content() { smb::auth::wipe(std::as_writable_bytes(std::span(bytes_.get(), size_))); }

    // Leaves if the file cannot be read, or is too large.
    void read(const std::string& path) {
        const bool is_standard = path == "-";
        const std::string name = is_standard ? "standard input" : path;
        const std::unique_ptr<std::FILE, file_closer> file(is_standard ? open_standard_input()
                                                                       : std::fopen(path.c_str(), "re"));
        if (file == nullptr) fail(error::with_path(errno, "open", name).message());
        std::setvbuf(file.get(), nullptr, _IONBF, 0);  // its buffer would keep a copy
        size_ = std::fread(bytes_.get(), 1, file_bytes_max + 1, file.get());
        if (std::ferror(file.get()) != 0) fail(error::with_path(errno, "read", name).message());
        if (size_ > file_bytes_max) fail(name + ": larger than 4 MiB; split it");
        struct stat status{};
        if (::fstat(::fileno(file.get()), &status) == 0 and S_ISREG(status.st_mode) and
            (status.st_mode & 0077) != 0)
            warn(name +
                 ": other accounts can read the hashes, which are as secret as passwords; use chmod 600");
    }
    [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get(), size_}; }

private:
    std::unique_ptr<char[]> bytes_;
    std::size_t size_ = 0;
};

// The users of the file that can log on. The others are reported.
struct importable {
    std::vector<user_database::stored_user> users;
    std::size_t skipped = 0;
    std::size_t refused = 0;  // malformed lines, and names that the users file cannot have
};

[[nodiscard]] importable read_users(std::string_view text, const std::string& file) {
    importable found;
    std::set<std::string> names;
    const auto refuse = [&](unsigned line, std::string_view why) {
        warn(fmt::format("{}: line {}: {}", file, line, why));
        ++found.refused;
    };
    for (unsigned number = 1; not text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        smbpasswd_line line = parse_smbpasswd(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.skip == smbpasswd_skip::blank) continue;
        if (line.skip == smbpasswd_skip::malformed) {
            refuse(number, text_of(line.skip));
        } else if (line.skip != smbpasswd_skip::none) {
            fmt::print("skipped {}: {}\n", terminal_text(line.name), text_of(line.skip));
            ++found.skipped;
        } else if (const std::string rule = validate_user_name(line.name); not rule.empty()) {
            refuse(number, fmt::format("invalid name '{}' of a user: {}", line.name, rule));
        } else if (not names.insert(fold(line.name)).second) {
            refuse(number, fmt::format("user '{}' is in the file twice; the first line is used", line.name));
        } else {
            found.users.push_back({.name = std::move(line.name), .hash = *std::move(line.hash)});
        }
    }
    return found;
}

// Returns the result that add_stored() would have.
[[nodiscard]] user_database::stored_names planned(const user_database& users, const importable& found,
                                                  bool replaces) {
    user_database::stored_names names;
    for (const user_database::stored_user& one : found.users)
        (not users.contains(one.name) ? names.added
         : replaces                   ? names.replaced
                                      : names.kept)
            .push_back(one.name);
    return names;
}

void print_names(const char* what, const std::vector<std::string>& names, const char* why) {
    for (const std::string& name : names)
        fmt::print("{} {}{}\n", what, terminal_text(name), why);
}

}  // namespace

void import_users(user_database& users, const user_import& how) {
    secret_content content;
    content.read(how.file);
    if (is_tdb(content.view()))
        fail(
            how.file +
            ": a tdb database, whose records are binary; run 'pdbedit -L -w' as root, and import its output");
    const importable found = read_users(content.view(), how.file);
    if (found.users.empty() and found.skipped == 0)
        fail(how.file + ": no users in the form of smbpasswd; 'pdbedit -L -w' prints it");
    user_database::stored_names done = planned(users, found, how.replaces);
    if (not how.only_prints and not found.users.empty()) {
        auto stored = users.add_stored(found.users, how.replaces);
        if (not stored) fail(stored.error().message());
        done = *std::move(stored);
    }
    print_names("added", done.added, "");
    print_names("replaced", done.replaced, "");
    print_names("kept", done.kept, ": the user exists; --replace replaces the password");
    fmt::print("{}{} added, {} replaced, {} kept, {} skipped\n", how.only_prints ? "nothing changed; " : "",
               done.added.size(), done.replaced.size(), done.kept.size(), found.skipped + found.refused);
    if (found.refused != 0) leave(exit_code::failure);
}

}  // namespace sluice::cli
