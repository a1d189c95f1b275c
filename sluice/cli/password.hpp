#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "sluice/base/result.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::cli {

/// A password, overwritten on destruction. Thread safety: a value.
class secret_text {
public:
    /// The longest password that any of the functions below accepts.
    static constexpr std::size_t bytes_max = 1024;

    secret_text() { text_.reserve(bytes_max); }  // so that growth leaves no copies in freed memory
    ~secret_text() { clear(); }
    secret_text(secret_text&& other) noexcept : text_(std::move(other.text_)) { other.clear(); }
    secret_text& operator=(secret_text&&) = delete;

    /// Returns whether there was room.
    bool append(char next) {
        if (text_.size() == bytes_max) return false;
        text_ += next;
        return true;
    }
    void remove_last() noexcept { text_.pop_back(); }
    [[nodiscard]] std::string_view view() const noexcept { return text_; }

private:
    void clear() noexcept {
        // A short string is stored in the object itself, and remains there when the object is moved
        // from.
        text_.resize(text_.capacity());
        smb::auth::wipe(std::as_writable_bytes(std::span(text_)));
        text_.clear();
    }
    std::string text_;
};

/// Reads a password from standard input: from a terminal after asking for it, without showing it;
/// from a pipe, its first line. If the input ends early, returns the part before its end. Fails the
/// command if there is no input, or if the password is longer than secret_text::bytes_max.
[[nodiscard]] secret_text ask_password(const std::string& prompt);

/// Reads the first line of a file. Errors: those of open(2) and read(2); EMSGSIZE for a line that
/// is too long; ENODATA for an empty file.
[[nodiscard]] result<secret_text> password_in_file(const std::string& path);

/// Returns the message about an error of these functions; `source` is the path, or "standard
/// input".
[[nodiscard]] std::string password_problem(const std::string& source, const error& why);

/// Returns a new random password that is easy to type: no ambiguous characters, in groups; 99 bits.
[[nodiscard]] std::string make_password();

}  // namespace sluice::cli
