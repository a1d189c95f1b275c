#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/call/handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/host/name/directory_short_names.hpp"

namespace sluice::vfs {

/// The short names in the directories of a host volume. They are computed from all names of a
/// directory and its record, and kept for as long as the directory's change time remains the same:
/// new, removed and renamed files and a new record change it. A table that was computed within some
/// ticks of the kernel's clock after a change serves only as the former state of the next one.
///
/// Records are written if two files compete for a short name, and for a client's choice. The former
/// is only tried: without the right, or the room, the result depends on memory, and on the times of
/// birth after a restart.
///
/// Monitor. Thread safety: any thread. No lock is held during calls of the file system, except that
/// writers of records wait for each other while they read a record again and store it. A directory
/// is scanned before that, unless other threads have stored its record several times since. Calls
/// that may wait for a mount that hangs have a mutex of their own for that, so that the others do
/// not wait for them. If both kinds change the record of one directory at the same time, one of the
/// changes may be lost.
/// Invariant: files_held_ is the sum of the files of all tables.
class short_name_tables {
public:
    using table_ptr = std::shared_ptr<const directory_short_names>;  // never null
    enum class may_write : bool { no, yes };
    enum class reach : bool { one_mount, all_mounts };
    struct caller {
        may_write writes = may_write::no;
        reach where = reach::one_mount;
    };

    /// Returns the short names of a directory, which may be open for any purpose. They are empty if
    /// the calling account may not list it, or if it has more than limits::short_named_files_max
    /// files. Errors: those of reading the directory. Allocates: yes. Blocks: for the file system.
    /// Complexity: O(1) if it has not changed, else linear in its files.
    [[nodiscard]] result<table_ptr> of(const io::handle& directory, const caller& by);
    /// Returns the last computed short names of a directory, even if it has changed since; computes
    /// them if there are none in memory. The caller may list the directory. Errors, Allocates,
    /// Blocks, Complexity: as of().
    [[nodiscard]] result<table_ptr> last_of(const io::handle& directory, const caller& by);
    /// Returns the short name of the file with exactly this name, as directory_short_names::of.
    /// Errors, Allocates, Blocks, Complexity: as of(), but O(1) for a name that has the form of a
    /// short name, unless a client has chosen another.
    [[nodiscard]] result<short_name> of_file(const io::handle& directory, std::string_view name,
                                             const caller& by);
    /// Returns the name of the file with this short name, if any. Errors: as above. Computes the
    /// short names only if `wanted` has the form of a generated one, or is a choice of a client.
    [[nodiscard]] result<std::optional<std::string>> find(const io::handle& directory,
                                                          std::string_view wanted, const caller& by);
    /// Sets the short name of a file; an empty one removes it. Errors: EEXIST if it is another
    /// file's name or short name; ENOENT; EOPNOTSUPP, also if the directory has too many files;
    /// ENOSPC; EROFS; EACCES, also if the account may not list the directory. Complexity: linear
    /// in the files.
    [[nodiscard]] result<void> set(const io::handle& directory, std::string_view name,
                                   const short_name& wanted, reach where);

private:
    struct directory_id {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        [[nodiscard]] friend bool operator==(const directory_id&, const directory_id&) noexcept = default;
    };
    struct held_table {
        directory_id id;
        io::file_status::time_point changed{};
        bool is_unambiguous = false;
        table_ptr table;
    };
    using table_list = std::vector<held_table>;  // the most recently used first
    struct scanned {
        std::vector<std::byte> record;  // that the table was computed from
        table_ptr table;
    };

    // Computes and holds the table of a directory with that status.
    [[nodiscard]] result<scanned> scan(const io::handle& directory, const io::file_status& status,
                                       const table_ptr& before);
    [[nodiscard]] table_ptr held_for(const directory_id& id);
    [[nodiscard]] static result<table_ptr> compute(const io::handle& directory,
                                                   const std::vector<std::byte>& record,
                                                   const table_ptr& before);
    void write(const io::handle& directory, const std::vector<std::byte>& before,
               const std::vector<std::byte>& after, reach where) noexcept;
    // The mutex that is held while a record is read and written again.
    [[nodiscard]] std::mutex& records_of(reach where) noexcept {
        return where == reach::all_mounts ? distant_records_ : records_;
    }
    [[nodiscard]] table_list::iterator search(const directory_id& id) noexcept;
    void hold(held_table fresh);

    std::mutex records_;
    std::mutex distant_records_;
    std::mutex mutex_;  // guards what follows
    table_list tables_;
    std::size_t files_held_ = 0;
};

}  // namespace sluice::vfs
