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
/// writers of records wait for each other. Invariant: files_held_ is the sum of the files of all
/// tables.
class short_name_tables {
public:
    using table_ptr = std::shared_ptr<const directory_short_names>;  // never null
    enum class may_write : bool { no, yes };

    /// Returns the short names of a directory, which may be open for any purpose. They are empty if
    /// the calling account may not list it, or if it has more than limits::short_named_files_max
    /// files. Errors: those of reading the directory. Allocates: yes. Blocks: for the file system.
    /// Complexity: O(1) if it has not changed, else linear in its files.
    [[nodiscard]] result<table_ptr> of(const io::handle& directory, may_write writes);
    /// Returns the name of the file with this short name, if any. Errors: as above. Without a `~`
    /// in the name, computes the short names only if a client has chosen one in this directory.
    [[nodiscard]] result<std::optional<std::string>> find(const io::handle& directory,
                                                          std::string_view wanted, may_write writes);
    /// Sets the short name of a file; an empty one removes it. Errors: EEXIST if it is another
    /// file's name or short name; ENOENT; EOPNOTSUPP; ENOSPC; EROFS; EACCES.
    [[nodiscard]] result<void> set(const io::handle& directory, std::string_view name,
                                   const short_name& wanted);

private:
    struct directory_id {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        [[nodiscard]] friend bool operator==(const directory_id&, const directory_id&) noexcept = default;
    };
    struct held_table {
        directory_id id;
        io::file_status::time_point changed{};
        bool is_settled = false;
        table_ptr table;
    };
    using table_list = std::vector<held_table>;  // the most recently used first

    [[nodiscard]] static result<table_ptr> compute(const io::handle& directory,
                                                   const std::vector<std::byte>& record,
                                                   const table_ptr& before);
    void write(const io::handle& directory, const std::vector<std::byte>& before,
               const std::vector<std::byte>& after) noexcept;
    [[nodiscard]] table_list::iterator search(const directory_id& id) noexcept;
    void hold(held_table fresh);

    std::mutex records_;  // held while a record is read and written again
    std::mutex mutex_;    // guards what follows
    table_list tables_;
    std::size_t files_held_ = 0;
};

}  // namespace sluice::vfs
