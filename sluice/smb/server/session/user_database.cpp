#include "sluice/smb/server/session/user_database.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/fs_location.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::size_t file_bytes_max = 1U << 20;
constexpr std::size_t hash_bytes = 16;
constexpr std::string_view forbidden_in_names = ":\"/\\[]|<>+=;,?*@";
constexpr std::string_view digits = "0123456789abcdef";

void append_hex(std::string& text, bytes_view bytes) {
    for (const std::byte one : bytes) {
        text += digits[std::to_integer<unsigned>(one) >> 4];
        text += digits[std::to_integer<unsigned>(one) & 15];
    }
}

[[nodiscard]] std::optional<auth::nt_hash> hash_of_hex(std::string_view text) noexcept {
    auth::secret_bytes<hash_bytes> bytes;
    if (text.size() != 2 * hash_bytes) return std::nullopt;
    for (std::size_t i = 0; i != hash_bytes; ++i) {
        const std::size_t high = digits.find(text[2 * i]);
        const std::size_t low = digits.find(text[2 * i + 1]);
        if (high == std::string_view::npos or low == std::string_view::npos) return std::nullopt;
        bytes.mutable_view()[i] = static_cast<std::byte>(high << 4 | low);
    }
    return auth::nt_hash(std::move(bytes));
}

[[nodiscard]] std::string_view directory_of(std::string_view path) noexcept {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view(".")
                                           : path.substr(0, std::max<std::size_t>(slash, 1));
}

// Makes every directory of the path that is missing.
[[nodiscard]] result<void> make_directories(std::string_view directory) {
    for (std::size_t end = directory.find('/', 1);; end = directory.find('/', end + 1)) {
        const std::string part(directory.substr(0, end));
        const auto made = io::directory_handle::open({}, part, io::mode::none, io::creation::if_needed, 0700);
        if (not made) return failure(made.error());
        if (end == std::string_view::npos) return {};
    }
}

}  // namespace

std::string user_database::default_path() {
    const char* const configured = std::getenv("XDG_CONFIG_HOME");
    const char* const home = std::getenv("HOME");
    if (configured != nullptr and *configured == '/') return std::string(configured) + "/sluice/users";
    if (home != nullptr and *home == '/' and std::string_view(home) != "/root")
        return std::string(home) + "/.config/sluice/users";
    return "/etc/sluice/users";
}

bool user_database::is_valid_name(std::string_view name) noexcept {
    return not name.empty() and name.size() <= 64 and std::ranges::none_of(name, [](char c) {
        return static_cast<unsigned char>(c) < 0x20 or forbidden_in_names.contains(c);
    });
}

namespace {

// A remark in the first line names the version, from the second on: an older program would take the
// file for one of its own.
constexpr std::string_view version_remark = "# sluice-users version ";

[[nodiscard]] bool has_later_version(std::string_view text) noexcept {
    const std::string_view line = text.substr(0, text.find('\n'));
    return line.starts_with(version_remark) and line.substr(version_remark.size()) != "1";
}

// "version 2", with at most as many characters as a number has.
[[nodiscard]] std::string shown_version(std::string_view text) {
    constexpr std::size_t digits_max = 10;
    std::string shown = "version ";
    for (const char c : text.substr(version_remark.size(), digits_max)) {
        if (c < '0' or c > '9') break;
        shown += c;
    }
    return shown;
}

}  // namespace

result<user_database::user_map> user_database::parse(std::string_view text, std::string_view path) {
    user_map users;
    if (has_later_version(text))
        return failure(error::with_path(ENOTSUP,
                                        "read users (this program supports version 1; use a newer sluice)",
                                        std::string(path) + ": " + shown_version(text)));
    for (unsigned number = 1; not text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.empty() or line.starts_with('#')) continue;
        const std::size_t colon = line.find(':');
        const std::string_view name = line.substr(0, colon);
        auto hash = colon == std::string_view::npos ? std::nullopt : hash_of_hex(line.substr(colon + 1));
        if (not hash or not is_valid_name(name))
            return failure(error::with_path(EINVAL, "read a user, which must be NAME:HASH",
                                            std::string(path) + ": line " + std::to_string(number)));
        users.insert_or_assign(fold(name), user{std::string(name), *std::move(hash)});
    }
    return users;
}

result<user_database::user_map> user_database::read(const std::string& path) {
    auto file = io::file_handle::open({}, path);
    if (not file) return failure(file.error());
    const auto status = io::status_of(*file);
    if (not status) return failure(status.error());
    if ((status->permission_bits & 0077) != 0)
        return failure(
            error::with_path(EACCES, "read users, which other accounts can access (use chmod 600)", path));
    if (status->size_bytes > file_bytes_max) return failure(error::with_path(EFBIG, "read users", path));
    std::string text(static_cast<std::size_t>(status->size_bytes), '\0');
    std::size_t filled = 0;
    while (filled != text.size()) {
        const auto room = std::as_writable_bytes(std::span(text)).subspan(filled);
        const auto got = file->read({.buffers = room, .offset = filled});
        if (not got) return failure(got.error());
        if (got.bytes_transferred() == 0) break;
        filled += got.bytes_transferred();
    }
    text.resize(filled);
    return parse(text, path);
}

result<std::unique_ptr<user_database>> user_database::load(std::string path, edit_exclusion editing) {
    auto users = read(path);
    if (not users) return failure(users.error());
    auto loaded = std::make_unique<user_database>();
    loaded->path_ = std::move(path);
    loaded->exclude_editors_ = std::move(editing);
    loaded->publish(*users);
    return loaded;
}

result<std::unique_ptr<user_database>> user_database::open(std::string path, edit_exclusion editing) {
    auto loaded = load(path, editing);
    if (loaded or loaded.error() != std::errc::no_such_file_or_directory) return loaded;
    auto empty = std::make_unique<user_database>();
    empty->path_ = std::move(path);
    empty->exclude_editors_ = std::move(editing);
    return empty;
}

result<void> user_database::reload() {
    if (path_.empty()) return {};
    const lock_guard alone(editing_);
    auto users = read(path_);
    // There was no file before, either: open().
    const bool is_still_missing =
        not users and users.error() == std::errc::no_such_file_or_directory and names().empty();
    if (is_still_missing) return {};
    if (not users) return failure(users.error());
    publish(*users);
    return {};
}

void user_database::publish(user_map& users) noexcept {
    const lock_guard held(mutex_);
    users_.swap(users);
    record_change();
}

result<void> user_database::admit(std::span<const admission> only) {
    std::map<std::string, admitted_user> fresh;
    for (const admission& one : only) {
        if (not is_valid_name(one.name)) return failure({EINVAL, "admit a user: invalid name"});
        admitted_user& user = fresh[fold(one.name)];
        user.name = one.name;
        if (not one.password) continue;
        auto given = auth::nt_hash::of_password(*one.password);
        if (not given) return failure({EINVAL, "hash a password, which must be UTF-8"});
        user.hash.emplace(*std::move(given));
    }
    const lock_guard held(mutex_);
    admitted_.reset();
    if (not only.empty()) admitted_.emplace(std::move(fresh));
    record_change();
    return {};
}

std::optional<auth::account> user_database::find(std::string_view user, std::string_view) noexcept {
    const std::string key = fold(user);
    const lock_guard held(mutex_);
    if (admitted_) {
        const auto admitted = admitted_->find(key);
        if (admitted == admitted_->end()) return std::nullopt;
        if (admitted->second.hash) return auth::account{.hash = admitted->second.hash->copy()};
    }
    const auto found = users_.find(key);
    if (found == users_.end()) return std::nullopt;
    return auth::account{.hash = found->second.hash.copy()};
}

bool user_database::is_same(const account_name& one, const account_name& other) const noexcept {
    return equal_ignoring_case(one.user, other.user);
}

std::vector<std::string> user_database::found_names() const {
    const lock_guard held(mutex_);
    std::vector<std::string> all;
    if (not admitted_) {
        for (const auto& [key, one] : users_)
            all.push_back(one.name);
        return all;
    }
    // One without a password of its own may have left the file.
    for (const auto& [key, one] : *admitted_)
        if (one.hash or users_.contains(key)) all.push_back(one.name);
    return all;
}

std::vector<std::string> user_database::names() const {
    std::vector<std::string> all;
    const lock_guard held(mutex_);
    for (const auto& [key, one] : users_)
        all.push_back(one.name);
    return all;
}

bool user_database::contains(std::string_view name) const {
    const std::string key = fold(name);
    const lock_guard held(mutex_);
    return users_.contains(key);
}

template <class Edit>
result<void> user_database::edit(Edit&& change) {
    if (not path_.empty()) {
        const lock_guard alone(editing_);
        return edit_file(change);
    }
    const lock_guard held(mutex_);
    return change(users_);
}

// Keeps other editors away, starts from what the file says now, and stores the change.
template <class Edit>
result<void> user_database::edit_file(Edit&& change) {
    if (const auto made = make_directories(directory_of(path_)); not made) return made;
    const auto held = exclude_editors_(path_);
    if (not held) return failure(held.error());
    auto users = read(path_);
    if (not users and users.error() != std::errc::no_such_file_or_directory) return failure(users.error());
    user_map next = users ? *std::move(users) : user_map{};
    if (const result<void> changed = change(next); not changed) return changed;
    if (const result<void> stored = store(next, **held); not stored) return stored;
    publish(next);
    return {};
}

result<void> user_database::store(const user_map& users, users_edit& edit) const {
    std::string text = "# The users of sluice. As secret as their passwords. Edit with: sluice user\n";
    for (const auto& [key, one] : users) {
        text += one.name + ':';
        append_hex(text, one.hash.view());
        text += '\n';
    }
    // read() would refuse it.
    if (text.size() > file_bytes_max)
        return failure(error::with_path(EFBIG, "store more than 1 MiB of users", path_));
    const std::string fresh_path = path_ + ".new";
    auto fresh = io::file_handle::open({}, fresh_path, io::mode::write, io::creation::always_new,
                                       io::caching::all, io::open_flag::none, 0600);
    if (not fresh) return failure(fresh.error());
    std::span<const std::byte> rest = std::as_bytes(std::span(text));
    while (not rest.empty()) {
        const auto put = fresh->write({.buffers = rest, .offset = text.size() - rest.size()});
        if (not put) return failure(put.error());
        rest = rest.subspan(put.bytes_transferred());
    }
    if (const auto prepared = edit.prepare(*fresh); not prepared) return prepared;
    if (const auto safe = fresh->barrier(); not safe) return failure(safe.error());
    return io::relink(*fresh, {}, path_);
}

result<void> user_database::set(std::string_view name, std::string_view password) {
    if (not is_valid_name(name)) return failure({EINVAL, "set a user: invalid name"});
    auto hash = auth::nt_hash::of_password(password);
    if (not hash) return failure({EINVAL, "hash a password, which must be UTF-8"});
    return edit([&](user_map& users) -> result<void> {
        users.insert_or_assign(fold(name), user{std::string(name), hash->copy()});
        return {};
    });
}

result<user_database::stored_names> user_database::add_stored(std::span<const stored_user> fresh,
                                                              bool replaces) {
    for (const stored_user& one : fresh)
        if (not is_valid_name(one.name)) return failure({EINVAL, "add a user: invalid name"});
    stored_names done;
    const result<void> edited = edit([&](user_map& users) -> result<void> {
        for (const stored_user& one : fresh) {
            const std::string key = fold(one.name);
            const bool is_known = users.contains(key);
            (not is_known ? done.added : replaces ? done.replaced : done.kept).push_back(one.name);
            if (not is_known or replaces) users.insert_or_assign(key, user{one.name, one.hash.copy()});
        }
        return {};
    });
    if (not edited) return failure(edited.error());
    return done;
}

result<void> user_database::remove(std::string_view name) {
    return edit([&](user_map& users) -> result<void> {
        if (users.erase(fold(name)) == 0) return failure({ENOENT, "remove a user: no such user"});
        return {};
    });
}

}  // namespace sluice::smb::server
