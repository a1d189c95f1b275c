#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/host/stream/stream_record.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_data.hpp"

// Internal to the host volume: the files in which large streams are stored
// (docs/formats/streams.md).

namespace sluice::vfs {

class host_tree;

/// The file that has the streams, as far as the store needs it.
struct stream_file {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t born = 0;  // as in stream_record
    std::uint32_t user_id = 0;
    std::uint32_t group_id = 0;

    /// Errors: EIO. Blocks: for the file system.
    [[nodiscard]] static result<stream_file> of(const io::handle& file) noexcept;

    /// Returns the record that describes it.
    [[nodiscard]] stream_record record(stream_record_kind kind, const stream_id& id) const noexcept {
        return {.kind = kind, .owner = user_id, .id = id, .inode = inode, .born = born};
    }
    /// Returns whether a record was made for it, if the record is of its file system. Without a
    /// birth time, a removed file of another user may have had its inode number: then only if the
    /// owner is the same.
    [[nodiscard]] bool is_described_by(const stream_record& record) const noexcept {
        const bool is_inode = record.inode == inode and record.born == born;
        return is_inode and (born != 0 or record.owner == user_id);
    }
};

/// The directory of one file's large streams, open. Its calls have the identity of the process.
///
/// Thread safety: one thread. Errors of every call: EIO, EACCES; of changes: ENOSPC, EDQUOT, EROFS.
/// Blocks: for the file system. Allocates: names.
class stream_directory {
public:
    /// The open directories that lead to it.
    struct place {
        io::path_handle store;
        io::path_handle above;
        io::directory_handle itself;  // for listing
        std::string name;             // of itself in `above`
        std::uint64_t device = 0;     // that the store is on
    };
    stream_directory(place where, const stream_record& mark, const stream_file& file,
                     bool is_in_memory) noexcept
        : store_(std::move(where.store)),
          above_(std::move(where.above)),
          itself_(std::move(where.itself)),
          name_(std::move(where.name)),
          device_(where.device),
          mark_(mark),
          file_(file),
          is_in_memory_(is_in_memory) {}

    /// Returns whether the streams were made for this file. Otherwise it is a copy of theirs, and
    /// must not change them. A file in a snapshot of a file system is such a copy, although its
    /// inode has the number and the times of the original.
    [[nodiscard]] bool is_own() const noexcept {
        return is_on_file_system_of_file() and file_.is_described_by(mark_);
    }
    [[nodiscard]] bool is_on_file_system_of_file() const noexcept { return device_ == file_.device; }
    /// Returns whether the file may show the streams: they are its own, or those of a file of the
    /// same owner. A restore may give both to another owner than the mark has. Complexity: linear
    /// in the streams, unless the mark decides.
    [[nodiscard]] result<bool> may_be_used() const;
    [[nodiscard]] const stream_record& mark() const noexcept { return mark_; }
    /// Returns the open directories that lead to it.
    [[nodiscard]] const io::path_handle& store() const noexcept { return store_; }
    [[nodiscard]] const io::path_handle& above() const noexcept { return above_; }
    /// Makes the streams those of this file, which no other one may use, and of its owner. Errors:
    /// EIO. Complexity: linear in the streams.
    [[nodiscard]] result<void> claim();

    /// Returns the streams, in no order. Complexity: linear in them.
    [[nodiscard]] result<std::vector<stream_info>> list() const;
    /// Returns the name of a stream as it was created, for one that ignores case; std::nullopt if
    /// there is none. Complexity: linear in the streams, unless the case is the same.
    [[nodiscard]] result<std::optional<std::string>> find(std::string_view stream) const;
    /// Opens a stream, by exactly this name: for writing too if the file system permits that.
    /// Errors: ENOENT.
    [[nodiscard]] result<io::file_handle> open(std::string_view stream, data_access wanted) const;

    enum class existing : bool { refuse, empty };
    /// Creates a stream, with the owner of the file, or empties an existing one. Errors: EEXIST;
    /// ENOENT if this directory was removed; ENOSPC if it has limits::large_streams_per_file_max
    /// others. Complexity: linear in the streams.
    [[nodiscard]] result<io::file_handle> create(std::string_view stream, existing found) const;
    /// Renames a stream; replaces another one. Errors: ENOENT.
    [[nodiscard]] result<void> rename(std::string_view stream, std::string_view to) const;
    /// Removes a stream, in each spelling of its name but `kept`: there is more than one after a
    /// crash. Returns whether it removed any. Complexity: linear in the streams.
    [[nodiscard]] result<bool> remove_every_spelling(std::string_view stream,
                                                     std::string_view kept = {}) const;
    /// Errors: ENOENT.
    [[nodiscard]] result<void> remove(std::string_view stream) const;

    /// Excludes other holders of this lock, in this process and others, until this object is
    /// destroyed. Does nothing on file systems without such locks. Blocks: for them.
    void lock() const noexcept;
    /// Makes the names of the streams, of the directory and of those above it durable.
    [[nodiscard]] result<void> barrier() const;
    /// Copies the streams of another directory, except the one named in any case, durably. Writes
    /// their data with the identity of the thread, whose quota applies. Errors: EEXIST.
    [[nodiscard]] result<void> copy_from(const stream_directory& other, std::string_view except) const;

    /// Removes all streams, and then the directory. Complexity: linear in the streams.
    [[nodiscard]] result<void> remove_streams() const;
    /// Removes the directory if it has no stream. Returns whether it did; does nothing on errors.
    bool remove_if_empty() const noexcept;
    /// Moves the directory of a file that was removed to `lost`, where copies of the file find the
    /// streams. Removes it if it has none. Does nothing on errors.
    void retire() const noexcept;

private:
    [[nodiscard]] result<io::file_handle> open_file(std::string_view stream, int flags) const;
    [[nodiscard]] result<io::file_handle> create_file(std::string_view stream, existing found) const;
    // Makes a file of the directory one of the file's owner.
    [[nodiscard]] result<void> assign(const io::file_handle& stream, const stream_record& mark) const;
    [[nodiscard]] result<void> copy_stream(const stream_directory& other, std::string_view stream) const;
    [[nodiscard]] result<void> check_room(std::string_view stream) const;

    io::path_handle store_;
    io::path_handle above_;
    io::directory_handle itself_;
    std::string name_;
    std::uint64_t device_;
    stream_record mark_;
    stream_file file_;
    bool is_in_memory_;
};

/// The stores of a volume: where the large streams of its files are. Has no state but the volume's,
/// so an object is created for each call.
///
/// The attributes of files are read and written with the identity of the thread, so that the kernel
/// checks its rights to the file; everything in a store with that of the process. Thread safety: as
/// host_tree. Errors of every call: EACCES, also if a store belongs to another account; EIO.
/// Blocks: for the file system. Allocates: names.
class stream_store {
public:
    explicit stream_store(const host_tree& tree) noexcept : tree_(tree) {}

    /// Finds the directory of a file's streams; std::nullopt if it has none. The streams follow a
    /// change of the file's owner now, and those of a nested store move to the store for new
    /// streams of the file, unless the volume is read-only. Errors: EIO if there may be streams,
    /// but the path of the file is not known; EAGAIN if it changes again and again.
    [[nodiscard]] result<std::optional<stream_directory>> find(const io::handle& file) const;
    /// The same for a caller that may change the streams: creates the directory if there is none,
    /// and one with copies if the file is a copy of another. Errors: ENOSPC, also if the attribute
    /// does not fit; EPERM, EROFS; EOPNOTSUPP, also if no directory that leads to the file is on
    /// its file system, or if the store is not. Complexity: for a copy, linear in its large
    /// streams; the stream `removed` is not copied.
    [[nodiscard]] result<stream_directory> find_or_create(const io::handle& file,
                                                          std::string_view removed = {}) const;

    /// Removes all large streams of a file, also those that are left over although an attribute is
    /// the stream; takes them from a copied file. Errors: as find_or_create. Complexity: linear in
    /// the streams.
    [[nodiscard]] result<void> remove_all_large(const io::handle& file) const;

    /// Removes the store in an open directory if no stream of a file is in it; streams in its
    /// `lost` are moved to that of the volume's root. Returns whether one was removed.
    [[nodiscard]] bool remove_empty(const io::path_handle& directory) const noexcept;
    /// Returns the reason why streams cannot be stored outside of attributes: the store in the
    /// volume's root is not usable, or cannot be created. Otherwise std::nullopt.
    [[nodiscard]] std::optional<error> problem() const;

    // For the tools that check and repair a store:

    /// Opens the store of the volume's root. Errors: ENOENT.
    [[nodiscard]] result<io::path_handle> open_root() const;
    /// The same; creates it if there is none.
    [[nodiscard]] result<io::path_handle> make_root() const;
    /// Opens the store in an open directory. Errors: ENOENT.
    [[nodiscard]] static result<io::path_handle> open_nested(const io::path_handle& directory);
    /// Finds the directory that a record names, whether the file may use it or not. Moves it only
    /// from `lost`.
    [[nodiscard]] result<std::optional<stream_directory>> find(const io::handle& file,
                                                               const stream_file& facts,
                                                               const stream_id& id) const;
    /// The streams that a copied file gets: those of a directory, or none if it is null.
    struct copied_streams {
        const stream_directory* from = nullptr;
        std::string_view except{};
    };
    /// Gives a copied file a directory of its own, with copies of streams. `replaced` is the file's
    /// present record. Errors: also EAGAIN if it has changed. Others wait for a lock only while the
    /// record is replaced.
    [[nodiscard]] result<stream_directory> separate(const io::handle& file, const stream_file& facts,
                                                    const stream_record& replaced,
                                                    const copied_streams& copied) const;

private:
    struct located {
        std::optional<stream_directory> streams{};
        bool is_in_base = false;  // in the volume's store_base
    };
    [[nodiscard]] result<located> locate(const io::handle& file, const stream_file& facts,
                                         const stream_id& id) const;
    [[nodiscard]] result<std::optional<stream_directory>> find_in_base(const io::handle& file,
                                                                       const stream_file& facts,
                                                                       const stream_id& id) const;
    void move_to_base(const io::handle& file, const stream_file& facts, stream_directory& found) const;
    [[nodiscard]] result<std::optional<stream_directory>> find_in(const io::path_handle& base,
                                                                  const stream_file& facts,
                                                                  const stream_id& id) const;
    [[nodiscard]] result<stream_directory> open_or_separate(const io::handle& file, const stream_file& facts,
                                                            const stream_record& reference,
                                                            std::string_view removed) const;
    [[nodiscard]] result<void> forget_copied(const io::handle& file) const;
    void follow_owner(stream_directory& streams, const stream_file& facts) const;
    [[nodiscard]] result<stream_directory> create_for(const io::handle& file, const stream_file& facts,
                                                      const stream_id& id) const;
    [[nodiscard]] result<io::path_handle> base_of(const io::handle& file, const stream_file& facts) const;
    [[nodiscard]] bool is_in_memory(std::uint64_t device) const noexcept;
    void move_lost_from(const io::directory_handle& lost) const noexcept;

    const host_tree& tree_;
};

/// The large streams of a file that is about to lose a name: with its last one, they are moved to
/// `lost`, because a copy of the file may refer to them.
///
/// Thread safety: one thread. Lifetime: the file outlives it. Blocks: for the file system, in both.
class outlived_streams {
public:
    /// Finds them; a file without the attribute costs one call. Reports no errors: streams that are
    /// not found now are found by `sluice streams check`.
    outlived_streams(const host_tree& tree, const io::handle& file) noexcept;
    outlived_streams(const outlived_streams&) = delete;
    outlived_streams& operator=(const outlived_streams&) = delete;
    ~outlived_streams() = default;

    /// Moves them if the file has no name any more.
    void retire_if_unused() noexcept;

private:
    const io::handle& file_;
    std::optional<stream_directory> found_;
};

}  // namespace sluice::vfs
