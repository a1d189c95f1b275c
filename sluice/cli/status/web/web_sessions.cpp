#include "sluice/cli/status/web/web_sessions.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>

#include "sluice/base/bytes.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/base/result.hpp"

namespace sluice::cli {

namespace {

[[nodiscard]] bytes_view bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text));
}

[[nodiscard]] smb::auth::secret_bytes<32> random_key(secret_random_source& random) noexcept {
    smb::auth::secret_bytes<32> key;
    random.fill(key.mutable_view());
    return key;
}

[[nodiscard]] std::string problem_of(const struct stat& status) {
    if (not S_ISREG(status.st_mode)) return "not a regular file";
    const bool is_own = status.st_uid == ::geteuid() or status.st_uid == 0;
    if (not is_own) return "it belongs to another account; use a file of this account or of root";
    if ((status.st_mode & 077) == 0) return "";
    return fmt::format("other accounts can access it (mode {:04o}); run 'chmod 600' on it",
                       status.st_mode & 07777);
}

[[nodiscard]] std::string first_line(std::string text) {
    text.resize(std::min(text.find('\n'), text.size()));
    while (text.ends_with('\r') or text.ends_with(' '))
        text.pop_back();
    return text;
}

}  // namespace

std::expected<std::string, std::string> read_web_token(const std::string& path) {
    // O_NONBLOCK: the open of a pipe does not wait for a writer.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return std::unexpected(error::with_path(errno, "open", path).message());
    struct stat status{};
    // fstat(2) of an open file does not fail; all zeros are not a regular file.
    (void)::fstat(file, &status);
    std::string problem = problem_of(status);
    std::string text(web_token_bytes_max + 2, '\0');
    const ssize_t got = problem.empty() ? ::read(file, text.data(), text.size()) : 0;
    (void)::close(file);
    if (got < 0) return std::unexpected(error::with_path(errno, "read", path).message());
    text.resize(static_cast<std::size_t>(got));
    std::string token = first_line(std::move(text));
    if (problem.empty() and (token.size() < web_token_bytes_min or token.size() > web_token_bytes_max))
        problem = fmt::format(
            "its first line has {} characters; a token has {} to {}, as from 'openssl rand "
            "-hex 16'",
            token.size(), web_token_bytes_min, web_token_bytes_max);
    if (not problem.empty()) return std::unexpected(fmt::format("{}: {}", path, problem));
    return token;
}

web_sessions::web_sessions(std::string_view token, const clock_source& clock, secret_random_source& random)
    : clock_(clock), random_(random), codes_(random_key(random).view()), token_code_(code_of(token)) {
    ENSURE(not token.empty(), "an empty token would admit everyone");
}

smb::auth::secret_bytes<32> web_sessions::code_of(std::string_view text) const noexcept {
    const bytes_view part = bytes_of(text);
    return codes_.code(std::span(&part, 1));
}

bool web_sessions::is_token(std::string_view given) const noexcept {
    return smb::auth::equal_in_constant_time(code_of(given).view(), token_code_.view());
}

bool web_sessions::is_same(std::string_view one, std::string_view other) noexcept {
    return smb::auth::equal_in_constant_time(bytes_of(one), bytes_of(other));
}

std::string web_sessions::make_secret() noexcept {
    return fmt::format("{:016x}{:016x}", random_.next_u64(), random_.next_u64());
}

void web_sessions::remove_expired() noexcept {
    const clock_source::steady_time now = clock_.steady_now();
    std::erase_if(sessions_,
                  [&](const session& one) { return now - one.used > idle_max or now - one.began > age_max; });
}

std::string web_sessions::begin() {
    remove_expired();
    if (sessions_.size() == sessions_max)
        sessions_.erase(std::ranges::min_element(sessions_, {}, &session::used));
    const clock_source::steady_time now = clock_.steady_now();
    sessions_.push_back({.number = ++last_number_,
                         .cookie = make_secret(),
                         .form_token = make_secret(),
                         .began = now,
                         .used = now});
    ENSURE(sessions_.size() <= sessions_max, "the oldest session made room");
    return sessions_.back().cookie;
}

void web_sessions::end(std::string_view cookie) noexcept {
    std::erase_if(sessions_, [&](const session& one) { return is_same(one.cookie, cookie); });
}

std::optional<web_sessions::found_session> web_sessions::find(std::string_view cookie) {
    remove_expired();
    for (session& one : sessions_) {
        if (not is_same(one.cookie, cookie)) continue;
        one.used = clock_.steady_now();
        return found_session{.number = one.number, .form_token = one.form_token};
    }
    return std::nullopt;
}

std::string_view web_cookie_in(std::string_view header) noexcept {
    while (not header.empty()) {
        const std::size_t end = std::min(header.find(';'), header.size());
        std::string_view pair = header.substr(0, end);
        header.remove_prefix(std::min(end + 1, header.size()));
        pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
        if (pair.starts_with(web_cookie_name) and pair.substr(web_cookie_name.size()).starts_with('='))
            return pair.substr(web_cookie_name.size() + 1);
    }
    return {};
}

}  // namespace sluice::cli
