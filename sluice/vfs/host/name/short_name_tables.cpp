#include "sluice/vfs/host/name/short_name_tables.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/name/directory_names.hpp"

namespace sluice::vfs {
namespace {

using bytes = std::vector<std::byte>;

// A directory without a record, with one that is too long, or without attributes, has an empty one.
bytes load_record(const io::handle& directory) {
    std::array<std::byte, short_name_record_bytes_max> storage;
    const auto found = io::fetch_xattr(directory, short_names_attribute, storage);
    return found ? bytes(found->begin(), found->end()) : bytes{};
}

// Returns whether the record has a choice of a client that satisfies the condition.
template <class Condition>
bool has_choice(const io::handle& directory, Condition is_it) {
    return std::ranges::any_of(decode_short_names(load_record(directory)).entries,
                               [&](const short_name_record::entry& each) {
                                   return each.what == short_name_record::kind::chosen and is_it(each);
                               });
}

result<void> store_record(const io::handle& directory, const bytes& record) noexcept {
    if (not record.empty()) return store_attribute(directory, short_names_attribute, record);
    const auto done = io::remove_xattr(directory, short_names_attribute);
    if (not done and done.error().code() != ENODATA) return done;
    return {};
}

// A file on another mount, which may hang, is treated as the youngest.
time_point birth_of(const io::handle& directory, const std::string& name) noexcept {
    const borrowed_directory base(directory, io::confinement::beneath_one_mount_no_symlinks);
    const auto status =
        io::status_at(base.get(), name, io::follow::no, io::stat_fields::born | io::stat_fields::modified);
    if (not status) return time_point::max();
    return time_of(status->born.value_or(status->modified));
}

}  // namespace

result<short_name_tables::table_ptr> short_name_tables::compute(const io::handle& directory,
                                                                const bytes& record,
                                                                const table_ptr& before) {
    std::vector<std::string> names;
    bool is_too_large = false;
    const auto read = for_each_name(directory, [&](std::string_view name) {
        is_too_large = names.size() == limits::short_named_files_max;
        if (not is_too_large) names.emplace_back(name);
        return not is_too_large;
    });
    if (not read) return failure(read.error());
    if (is_too_large)
        return std::make_shared<const directory_short_names>(directory_short_names::too_many_files{});
    unsigned births = 0;
    return std::make_shared<const directory_short_names>(
        std::move(names), decode_short_names(record), before.get(), [&](const std::string& name) {
            return ++births <= limits::short_name_births_max ? birth_of(directory, name) : time_point::max();
        });
}

// Another thread may have changed the record since; its next reader writes it again.
void short_name_tables::write(const io::handle& directory, const bytes& before, const bytes& after,
                              reach where) noexcept {
    const std::scoped_lock guard(records_of(where));
    if (load_record(directory) == before) (void)store_record(directory, after);
}

result<short_name_tables::scanned> short_name_tables::scan(const io::handle& directory,
                                                           const io::file_status& status,
                                                           const table_ptr& before) {
    scanned found{.record = load_record(directory), .table = nullptr};
    constexpr auto unambiguous_after = std::chrono::milliseconds(100);
    const bool is_unambiguous = std::chrono::system_clock::now() - status.changed > unambiguous_after;
    auto computed = compute(directory, found.record, before);
    if (not computed) return failure(computed.error());
    found.table = *std::move(computed);
    hold({.id = {.device = status.device, .inode = status.inode},
          .changed = status.changed,
          .is_unambiguous = is_unambiguous,
          .table = found.table});
    return found;
}

result<short_name_tables::table_ptr> short_name_tables::of(const io::handle& directory, const caller& by) {
    if (account_identity::is_in_use() and not may_list(directory))
        return std::make_shared<const directory_short_names>();
    const auto status = io::status_of(directory, io::stat_fields::inode | io::stat_fields::changed);
    if (not status) return failure(status.error());
    table_ptr before;
    {
        const std::scoped_lock guard(mutex_);
        if (const auto held = search({.device = status->device, .inode = status->inode});
            held != tables_.end()) {
            std::rotate(tables_.begin(), held, held + 1);
            before = tables_.front().table;
            if (tables_.front().is_unambiguous and tables_.front().changed == status->changed) return before;
        }
    }
    const auto found = scan(directory, *status, before);
    if (not found) return failure(found.error());
    // The record of a directory with too many files stays for when it has fewer again.
    const bytes wanted =
        found->table->has_too_many_files() ? found->record : encode_short_names(found->table->record());
    if (wanted != found->record and by.writes == may_write::yes)
        write(directory, found->record, wanted, by.where);
    return found->table;
}

short_name_tables::table_ptr short_name_tables::held_for(const directory_id& id) {
    const std::scoped_lock guard(mutex_);
    const auto held = search(id);
    return held == tables_.end() ? nullptr : held->table;
}

result<short_name_tables::table_ptr> short_name_tables::last_of(const io::handle& directory,
                                                                const caller& by) {
    const auto status = io::status_of(directory, io::stat_fields::inode);
    if (not status) return failure(status.error());
    if (table_ptr held = held_for({.device = status->device, .inode = status->inode})) return held;
    return of(directory, by);
}

result<short_name> short_name_tables::of_file(const io::handle& directory, std::string_view name,
                                              const caller& by) {
    if (is_short_name(name)) {
        const std::uint32_t number = record_number(name);
        if (not has_choice(directory, [&](const auto& each) { return each.number == number; }))
            return short_name{};
    }
    const auto table = of(directory, by);
    if (not table) return failure(table.error());
    return (*table)->of(name);
}

result<std::optional<std::string>> short_name_tables::find(const io::handle& directory,
                                                           std::string_view wanted, const caller& by) {
    if (not is_short_name(wanted)) return std::nullopt;
    const short_name as_stored(wanted);
    if (not may_be_generated(wanted) and
        not has_choice(directory, [&](const auto& each) { return each.name == as_stored; }))
        return std::nullopt;
    const auto table = of(directory, by);
    if (not table) return failure(table.error());
    const std::string_view found = (*table)->find(as_stored);
    if (found.empty()) return std::nullopt;
    return std::string(found);
}

namespace {

// Returns the record of a directory with the choice of a short name for a file.
result<short_name_record> record_with_choice(const directory_short_names& table, std::string_view name,
                                             const short_name& wanted) {
    const auto refused = [&](int code) { return failure(error::with_path(code, "set short name", name)); };
    if (table.has_too_many_files()) return refused(EOPNOTSUPP);
    if (not table.has(name)) return refused(ENOENT);
    const std::string_view other = wanted.empty() ? std::string_view() : table.find(wanted);
    if (not other.empty() and other != name) return refused(EEXIST);
    short_name_record record = table.record();
    const short_name_record::entry chosen{
        .number = record_number(name), .what = short_name_record::kind::chosen, .name = wanted};
    std::erase_if(record.entries, [&](const short_name_record::entry& each) {
        return each.what == chosen.what and each.number == chosen.number;
    });
    record.entries.push_back(chosen);
    if (not has_room_for_choices(record)) return refused(ENOSPC);
    return record;
}

}  // namespace

// The scan, which may take long, comes before the mutex. If another thread has stored a record
// since then, it may have chosen the same short name, or given another file one: the scan is
// repeated. A table in memory does not serve, because it does not have the record that it was
// computed from.
result<void> short_name_tables::set(const io::handle& directory, std::string_view name,
                                    const short_name& wanted, reach where) {
    // Without this right the directory would seem to have no files.
    if (account_identity::is_in_use() and not may_list(directory))
        return failure(error::with_path(EACCES, "set short name", name));
    constexpr unsigned scans_without_mutex = 4;
    for (unsigned scans = 0;; ++scans) {
        std::unique_lock guard(records_of(where), std::defer_lock);
        const bool excludes_others = scans == scans_without_mutex;
        if (excludes_others) guard.lock();
        const auto status = io::status_of(directory, io::stat_fields::inode | io::stat_fields::changed);
        if (not status) return failure(status.error());
        const auto found =
            scan(directory, *status, held_for({.device = status->device, .inode = status->inode}));
        if (not found) return failure(found.error());
        const auto record = record_with_choice(*found->table, name, wanted);
        if (not record) return failure(record.error());
        if (not excludes_others) guard.lock();
        if (excludes_others or load_record(directory) == found->record)
            return store_record(directory, encode_short_names(*record));
    }
}

short_name_tables::table_list::iterator short_name_tables::search(const directory_id& id) noexcept {
    return std::ranges::find(tables_, id, &held_table::id);
}

void short_name_tables::hold(held_table fresh) {
    const std::scoped_lock guard(mutex_);
    if (const auto held = search(fresh.id); held != tables_.end()) {
        files_held_ -= held->table->file_count();
        tables_.erase(held);
    }
    files_held_ += fresh.table->file_count();
    tables_.insert(tables_.begin(), std::move(fresh));
    while (tables_.size() > 1 and (tables_.size() > limits::short_name_directories_max or
                                   files_held_ > limits::short_named_files_held_max)) {
        ENSURE(files_held_ >= tables_.back().table->file_count(), "the files of all tables are counted");
        files_held_ -= tables_.back().table->file_count();
        tables_.pop_back();
    }
}

}  // namespace sluice::vfs
