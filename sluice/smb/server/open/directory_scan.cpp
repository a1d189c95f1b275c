#include "sluice/smb/server/open/directory_scan.hpp"

#include <algorithm>
#include <utility>

#include "sluice/smb/wire/fscc/wildcard.hpp"
#include "sluice/vfs/limits.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

namespace {

// Returns whether a lookup has failed only because there is no such name, however unusual the name.
[[nodiscard]] bool is_absence(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory or why == std::errc::not_a_directory or
           why == std::errc::illegal_byte_sequence or why == std::errc::filename_too_long;
}

[[nodiscard]] std::string child_of(const std::string& directory, std::string_view name) {
    return directory.empty() ? std::string(name) : directory + '/' + std::string(name);
}

// Each star of a pattern costs time for each name, but several in a row match what one matches.
// "*.*" is an exception: it also matches names without a dot.
[[nodiscard]] std::string without_repeated_stars(const std::string& pattern) {
    std::string kept = pattern;
    const auto repeated = std::ranges::unique(kept, [](char a, char b) { return a == '*' and b == '*'; });
    kept.erase(repeated.begin(), repeated.end());
    return kept == "*.*" and kept != pattern ? "**.*" : kept;
}

}  // namespace

void directory_scan::start(std::string pattern) {
    if (pattern.empty()) pattern = "*";
    pattern_ = without_repeated_stars(pattern);
    matches_all_ = pattern_ == "*" or pattern_ == "*.*";
    has_wildcards_ = wire::has_wildcard(pattern_);
    ENSURE(has_wildcards_ or not matches_all_, "the pattern of all names has a wildcard");
    restart();
}

void directory_scan::restart() {
    ENSURE(is_started(), "a scan has a pattern before it is restarted");
    has_returned_any_ = false;
    stage_ = stage::dot;
    listing_.reset();
    next_ = nullptr;
    forget_found();
}

void directory_scan::forget_found() noexcept {
    ENSURE(link_node_ == nullptr or found_node_ != nullptr, "invariant 2");
    link_node_.reset();
    found_node_.reset();
}

bool directory_scan::matches(std::string_view name) const noexcept {
    return matches_all_ or wire::wildcard_matches(pattern_, name);
}

// The name is the one that the listing has returned last.
bool directory_scan::matches(const vfs::listed_name& name) noexcept {
    if (matches(name.name)) return true;
    const vfs::short_name other = listing_->alternate_name();
    return not other.empty() and matches(other.view());
}

result<const vfs::listed_name*> directory_scan::peek(std::size_t& names_left) noexcept {
    ENSURE(is_started(), "a scan is started before names are taken");
    for (; next_ == nullptr and stage_ != stage::end and names_left != 0; --names_left) {
        const result<const vfs::listed_name*> next = advance();
        if (not next) return next;
        next_ = *next;
    }
    return next_;
}

result<std::vector<std::byte>> directory_scan::security() noexcept {
    ENSURE(next_ != nullptr, "nothing was peeked at");
    if (next_ != &found_) return listing_->security();
    ENSURE(found_node_ != nullptr, "the directory and its parent are listed without their security");
    const auto attached = vfs::attached_of(*found_node_);
    return attached ? (*attached)->security_as_of(found_.status)
                    : result<std::vector<std::byte>>(failure(attached.error()));
}

vfs::short_name directory_scan::alternate_name() noexcept {
    ENSURE(next_ != nullptr, "nothing was peeked at");
    if (next_ != &found_) return listing_->alternate_name();
    if (found_node_ == nullptr or not volume_.features().has_short_names) return {};
    const auto names = vfs::names_of(link_node_ != nullptr ? *link_node_ : *found_node_);
    const auto found = names ? (*names)->alternate_name() : failure(names.error());
    return found ? *found : vfs::short_name();
}

void directory_scan::take() noexcept {
    skip();
    has_returned_any_ = true;
}

void directory_scan::skip() noexcept {
    ENSURE(next_ != nullptr, "nothing was peeked at");
    next_ = nullptr;
    forget_found();
}

// One step; null if it brought nothing.
result<const vfs::listed_name*> directory_scan::advance() noexcept {
    ENSURE(next_ == nullptr, "a name stays until it is taken");
    switch (stage_) {
        case stage::dot: {
            stage_ = stage::dot_dot;
            if (not matches(".")) return nullptr;
            const result<vfs::metadata> status = directory_.status();
            if (not status) return failure(status.error());
            found_ = {.name = ".", .status = *status};
            return &found_;
        }
        case stage::dot_dot:
            stage_ = stage::names;
            return matches("..") ? describe_parent() : nullptr;
        case stage::names:
            return has_wildcards_ ? next_name() : look_up();
        case stage::end:
            break;
    }
    return nullptr;
}

// Examines one name; null if it does not match.
result<const vfs::listed_name*> directory_scan::next_name() noexcept {
    if (listing_ == nullptr) {
        auto listing = vfs::list(directory_);
        if (not listing) return failure(listing.error());
        listing_ = *std::move(listing);
    }
    const result<const vfs::listed_name*> name = listing_->next();
    if (not name) return name;
    if (*name == nullptr) {
        stage_ = stage::end;
        listing_.reset();
        return nullptr;
    }
    return matches(**name) ? *name : nullptr;
}

// The root's parent is not visible to clients: the root is listed in its place.
result<const vfs::listed_name*> directory_scan::describe_parent() {
    const std::string path = directory_.path();
    const std::string_view parent = vfs::split_path(path).parent;
    const result<vfs::node_ptr> found = volume_.find(parent, vfs::follow_links::yes);
    if (not found) return failure(found.error());
    return describe("..", **found);
}

result<const vfs::listed_name*> directory_scan::look_up() {
    stage_ = stage::end;
    if (pattern_ == "." or pattern_ == "..") return nullptr;  // given before
    const std::string path = child_of(directory_.path(), pattern_);
    result<vfs::node_ptr> found = volume_.find(path, vfs::follow_links::no);
    if (not found) {
        // It is repeated.
        if (found.error().code() == vfs::limits::crosses_mount) stage_ = stage::names;
        if (is_absence(found.error())) return nullptr;
        return failure(found.error());
    }
    // The name as in the directory. The target of a link is listed under that name.
    const std::string listed_path = (*found)->path();
    found_name_ = vfs::split_path(listed_path).name;
    found_node_ = *std::move(found);
    if (found_node_->kind() == vfs::node_kind::symlink) {
        result<vfs::node_ptr> target = volume_.find(path, vfs::follow_links::yes);
        if (target) link_node_ = std::exchange(found_node_, *std::move(target));
    }
    return describe(found_name_, *found_node_);
}

result<const vfs::listed_name*> directory_scan::describe(std::string_view name, vfs::node& found) {
    const result<vfs::metadata> status = found.status();
    if (not status) return failure(status.error());
    found_ = {.name = name, .status = *status, .leads_nowhere = found.kind() == vfs::node_kind::symlink};
    return &found_;
}

}  // namespace sluice::smb::server
