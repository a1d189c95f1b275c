#include "sluice/vfs/host/host_attributes.hpp"

#include <chrono>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/limits.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr std::string_view user_prefix = "user.";
constexpr std::size_t attribute_name_bytes_max = 255;

// Calls `sink(name)` for each attribute. Files that do not support attributes have none.
template <class Sink>
result<void> for_each_attribute(const io::handle& open, Sink sink) {
    std::vector<char> storage(limits::attribute_bytes_max);
    const auto listed = io::list_xattrs(open, storage);
    if (not listed) return failure(listed.error());
    for (std::string_view rest = *listed; not rest.empty();)
        sink(io::take_xattr_name(rest));
    return {};
}

bool is_foreign_user_attribute(std::string_view name) noexcept {
    return name.starts_with(user_prefix) and not name.starts_with(own_prefix);
}

// Maps the error of an attribute that was removed after it was listed to ENOENT.
error as_missing(const error& why) noexcept {
    return why.code() == ENODATA ? error(ENOENT, "getxattr") : why;
}

bool is_system_time(time_point when) noexcept {
    return time_of(system_time_of(when)) == when;
}

// The times that the file is to have.
time_point modified_after(const metadata_change& wanted, const metadata& before) noexcept {
    return wanted.modified.value_or(before.modified);
}
time_point accessed_after(const metadata_change& wanted, const metadata& before) noexcept {
    return wanted.accessed.value_or(before.accessed);
}

// Returns whether the host alone would report other times than these.
bool keeps_times(const metadata_change& wanted, const metadata& before) noexcept {
    const time_point modified = modified_after(wanted, before);
    const time_point accessed = accessed_after(wanted, before);
    return wanted.changed or accessed < modified or not is_system_time(modified) or
           not is_system_time(accessed);
}

// The range of times that all file systems can store: FAT begins in 1980, and others end with 31
// bits of seconds since 1970.
constexpr time_point first_common{std::chrono::sys_days{std::chrono::year(1980) / 1 / 2}};
constexpr time_point last_common{std::chrono::sys_days{std::chrono::year(2038) / 1 / 19}};

[[nodiscard]] bool may_exceed_host(time_point wanted) noexcept {
    return wanted < first_common or wanted > last_common;
}

// Returns whether the host reports the limit of its range because `wanted` is outside of it. Other
// times that it reports are of a change since.
[[nodiscard]] bool is_limit_for(time_point wanted, time_point reported) noexcept {
    constexpr std::chrono::seconds granularity_max(2);
    const time_point set = time_of(system_time_of(wanted));
    if (set < first_common) return reported <= first_common and reported > set + granularity_max;
    return set > last_common and reported >= last_common and reported < set - granularity_max;
}
[[nodiscard]] std::optional<time_point> limit_for(time_point wanted, time_point reported) noexcept {
    return is_limit_for(wanted, reported) ? std::optional(reported) : std::nullopt;
}

// Returns whether the host reports a limit of its range in place of a time that the file is to
// have.
bool exceeds_host(const io::handle& open, const metadata_change& wanted, const metadata& before) noexcept {
    const time_point modified = modified_after(wanted, before);
    const time_point accessed = accessed_after(wanted, before);
    if (not may_exceed_host(modified) and not may_exceed_host(accessed)) return false;
    const auto present = io::status_of(open, io::stat_fields::modified | io::stat_fields::accessed);
    return present and (is_limit_for(modified, time_of(present->modified)) or
                        is_limit_for(accessed, time_of(present->accessed)));
}

// Stores the record with the times that the host cannot report. The attribute's own change time is
// known only afterwards, so this repeats itself if it was not the expected one.
result<void> store_times(const io::handle& open, const metadata_change& wanted, const metadata& before,
                         stored_metadata fresh) noexcept {
    for (unsigned attempts = 1;; ++attempts) {
        const auto present = io::status_of(
            open, io::stat_fields::modified | io::stat_fields::accessed | io::stat_fields::changed);
        if (not present) return failure(present.error());
        const time_point modified = modified_after(wanted, before);
        const time_point accessed = accessed_after(wanted, before);
        const auto modified_limit = limit_for(modified, time_of(present->modified));
        const auto accessed_limit = limit_for(accessed, time_of(present->accessed));
        const bool is_accessed_kept = accessed < modified or not is_system_time(accessed) or accessed_limit;
        const bool is_as_reported = is_system_time(modified) and not modified_limit;
        fresh.times = stored_times{
            .modified = is_as_reported ? time_of(present->modified) : modified,
            .accessed = is_accessed_kept ? std::optional(accessed) : std::nullopt,
            .changed = wanted.changed,
            .stored = time_of(std::chrono::system_clock::now()),
            .modified_limit = modified_limit,
            .accessed_limit = accessed_limit,
        };
        if (const auto done = store_metadata(open, fresh); not done) return done;
        if (not wanted.changed or attempts == limits::change_time_stores_max) return {};
        const auto after = io::status_of(open, io::stat_fields::changed);
        if (not after or is_change_time_of_storing(fresh.times->stored, time_of(after->changed))) return {};
    }
}

}  // namespace

result<std::string> find_attribute(const io::handle& open, std::string_view prefix, std::string_view name) {
    std::string exact(prefix);
    exact += name;
    if (exact.size() > attribute_name_bytes_max) return failure(error::with_path(ENAMETOOLONG, "find", name));
    // An exact match, which is the usual case, avoids the list.
    if (io::xattr_bytes(open, exact)) return exact;
    std::string found;
    const auto done = for_each_attribute(open, [&](std::string_view each) {
        if (not each.starts_with(prefix) or not equal_ignoring_case(each.substr(prefix.size()), name)) return;
        if (prefix == user_prefix and not is_foreign_user_attribute(each)) return;
        if (found.empty() or each < found) found = each;
    });
    if (not done) return failure(done.error());
    if (found.empty()) return failure(error::with_path(ENOENT, "find attribute", name));
    return found;
}

result<std::vector<std::byte>> load_attribute(const io::handle& open, const std::string& attribute) {
    for (unsigned attempts = 1;; ++attempts) {
        const auto size = io::xattr_bytes(open, attribute);
        if (not size) return failure(as_missing(size.error()));
        std::vector<std::byte> value(*size);
        const auto bytes = io::fetch_xattr(open, attribute, value);
        const bool has_grown = not bytes and bytes.error().code() == ERANGE;
        if (has_grown and attempts != limits::attribute_reads_max) continue;
        if (not bytes) return failure(as_missing(bytes.error()));
        value.resize(bytes->size());
        return value;
    }
}

result<void> store_attribute(const io::handle& open, const std::string& attribute,
                             std::span<const std::byte> value, io::xattr_creation create) noexcept {
    const auto done = io::store_xattr(open, attribute, value, create);
    if (done) return {};
    const int code = done.error().code();
    // The value exceeds the limit of all file systems, or of this one: the client gets ENOSPC.
    if (code == E2BIG or code == ERANGE) return failure({ENOSPC, "setxattr", open.descriptor()});
    return done;
}

result<small_streams> list_small_streams(const io::handle& open) {
    // Names and sizes are not content: an account that may not read the file sees them, too.
    const account_identity::pause as_process;
    small_streams found;
    const auto done = for_each_attribute(open, [&](std::string_view each) {
        found.has_reference = found.has_reference or each == streams_attribute;
        if (not each.starts_with(stream_prefix) or each.size() == stream_prefix.size()) return;
        const auto size = io::xattr_bytes(open, each);
        if (not size) {
            // Removed in the meantime, or moved to the store; then the reference may be newer than
            // the list.
            found.has_reference = true;
            return;
        }
        found.streams.push_back({.name = std::string(each.substr(stream_prefix.size())),
                                 .size_bytes = *size,
                                 .allocated_bytes = *size});
    });
    if (not done and done.error().code() != EOPNOTSUPP) return failure(done.error());
    return found;
}

result<found_small_stream> find_small_stream(const io::handle& open, std::string_view name) {
    found_small_stream found{.attribute = std::string(stream_prefix)};
    found.attribute += name;
    if (found.attribute.size() > attribute_name_bytes_max)
        return failure(error::with_path(ENAMETOOLONG, "find stream", name));
    // An exact match, which is the usual case, avoids the list.
    if (io::xattr_bytes(open, found.attribute)) return found;
    found.attribute.clear();
    const auto done = for_each_attribute(open, [&](std::string_view each) {
        found.has_reference = found.has_reference or each == streams_attribute;
        if (not each.starts_with(stream_prefix)) return;
        if (not equal_ignoring_case(each.substr(stream_prefix.size()), name)) return;
        if (found.attribute.empty() or each < found.attribute) found.attribute = each;
    });
    if (not done) return failure(done.error());
    return found;
}

result<std::vector<extended_attribute>> list_extended_attributes(const io::handle& open) {
    std::vector<extended_attribute> found;
    const auto done = for_each_attribute(open, [&](std::string_view each) {
        if (not is_foreign_user_attribute(each)) return;
        auto value = load_attribute(open, std::string(each));
        if (not value) return;  // removed in the meantime
        found.push_back({.name = std::string(each.substr(user_prefix.size())), .value = std::move(*value)});
    });
    if (not done and done.error().code() != EOPNOTSUPP) return failure(done.error());
    return found;
}

result<void> change_extended_attribute(const io::handle& open, std::string_view name,
                                       std::span<const std::byte> value) {
    std::string attribute(user_prefix);
    attribute += name;
    if (const auto valid = check_stream_name(name); not valid) return valid;
    constexpr std::string_view own_name = own_prefix.substr(user_prefix.size());
    if (fold(name).starts_with(fold(own_name))) return failure(error::with_path(EACCES, "set EA", name));
    const auto present = find_attribute(open, user_prefix, name);
    if (not present and present.error() != std::errc::no_such_file_or_directory)
        return failure(present.error());
    if (present) attribute = *present;
    if (not value.empty()) return store_attribute(open, attribute, value);
    if (not present) return {};
    const auto done = io::remove_xattr(open, attribute);
    if (not done and done.error().code() != ENODATA) return done;
    return {};
}

result<std::vector<std::byte>> load_security(const io::handle& open) {
    auto found = load_attribute(open, security_attribute);
    if (found) return found;
    const int code = found.error().code();
    if (code == ENOENT or code == EPERM) return std::vector<std::byte>{};
    return found;
}

result<void> store_security(const io::handle& open, std::span<const std::byte> descriptor) {
    if (not descriptor.empty()) return store_attribute(open, security_attribute, descriptor);
    const auto done = io::remove_xattr(open, security_attribute);
    if (not done and done.error().code() != ENODATA) return done;
    return {};
}

result<void> apply_change(const io::handle& open, const metadata_change& wanted,
                          const metadata& before) noexcept {
    if (wanted.is_empty()) return {};
    const bool has_attributes = wanted.born or wanted.dos or wanted.is_sparse;
    bool has_times = keeps_times(wanted, before);
    const bool may_be_cut =
        may_exceed_host(modified_after(wanted, before)) or may_exceed_host(accessed_after(wanted, before));
    std::optional<stored_metadata> stored;
    if (has_attributes or has_times or may_be_cut) {
        auto loaded = load_metadata(open);
        if (not loaded) return failure(loaded.error());
        stored = *std::move(loaded);
    }
    const stored_metadata shown =
        stored.value_or(stored_metadata{.dos = before.dos, .is_sparse = before.is_sparse});
    stored_metadata fresh = shown;
    if (wanted.born) fresh.born = wanted.born;
    if (wanted.dos) fresh.dos = *wanted.dos;
    if (wanted.is_sparse) fresh.is_sparse = *wanted.is_sparse;
    fresh.times.reset();
    if (has_attributes and not has_times and stored != fresh) {
        const auto done = store_metadata(open, fresh);
        // A link cannot have extended attributes. Those that it shows without them need no store.
        const bool is_shown = before.kind == node_kind::symlink and fresh == shown;
        if (not done and not is_shown) return done;
    }
    // After the attributes, because storing them changes times on some file systems.
    if (wanted.accessed or wanted.modified) {
        // Both, because the reported time of access may be that of modification.
        const auto modified =
            wanted.modified ? std::optional(system_time_of(*wanted.modified)) : std::nullopt;
        const auto accessed = system_time_of(wanted.accessed.value_or(before.accessed));
        if (const auto done = io::set_times(open, {.accessed = accessed, .modified = modified}); not done)
            return done;
    }
    has_times = has_times or exceeds_host(open, wanted, before);
    // A file system without attributes, or without room for them, keeps the times that it can.
    if (not has_times or store_times(open, wanted, before, fresh) or not has_attributes) return {};
    return store_metadata(open, fresh);
}

}  // namespace sluice::vfs
