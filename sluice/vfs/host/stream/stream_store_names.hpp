#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/host/stream/stream_record.hpp"
#include "sluice/vfs/limits.hpp"

// Internal to the host volume: the layout of a stream store, and how its objects are recognised.

namespace sluice::vfs {

inline constexpr std::string_view stream_store_name = ".sluice-streams";

/// Returns whether a name of the host is that of a store, compared like the index of names
/// compares.
[[nodiscard]] bool is_stream_store(std::string_view host_name) noexcept;
/// The same for any component of a host's path.
[[nodiscard]] bool leads_into_stream_store(std::string_view host_path) noexcept;
/// Returns whether an open file is an object of a store, whatever path has led to it. `status` has
/// its type and permissions. Blocks: for the file system, if the permissions are those of such an
/// object.
[[nodiscard]] bool is_in_stream_store(const io::handle& open, const io::file_status& status) noexcept;

/// The permissions of the objects in a store. The sticky bit has no effect on them. It makes them
/// recognisable, because hardly any other file has these bits.
inline constexpr unsigned stream_directory_bits = 01700;
inline constexpr unsigned stream_file_bits = 01600;

inline constexpr std::string_view lost_streams_name = "lost";
inline constexpr char stream_name_prefix = '=';
/// In place of a name: a stream that is not complete. No stream can have this name.
inline constexpr std::string_view incomplete_stream_name = ":import";

/// Directories inherit the set-group-ID bit, whatever mode they are created with.
inline constexpr unsigned inherited_directory_bits = 02000;

/// Returns the directory in the store that contains the directory of an ID.
[[nodiscard]] inline std::string stream_group_of(const stream_id& id) {
    return id.text().substr(0, 2);
}

/// Opens the store in a directory. Errors: ENOENT; EXDEV if it is on another file system; EACCES,
/// also if it is a link or a file, or others own it or have rights to it.
[[nodiscard]] result<io::path_handle> open_store(const io::path_handle& base) noexcept;
/// Whether a new store's name is durable when it is returned.
enum class store_durability : bool { later, now };
/// The same as open_store; creates the store if there is none. Errors: also those of
/// make_store_directory.
[[nodiscard]] result<io::path_handle> make_store(const io::path_handle& base,
                                                 store_durability durable = store_durability::now) noexcept;
/// Returns whether a store that open_store refuses may still be one of the server: a directory of
/// its account to which others have rights, or one of which nothing is known.
[[nodiscard]] bool may_be_own_store(const io::path_handle& base, const error& refusal) noexcept;

/// Creates a directory of a store, with its mark, or opens it. A crash may have left one without a
/// mark: it gets it now, because nothing is stored in an unmarked one. Errors: those of
/// io::directory_handle and store_stream_record.
[[nodiscard]] result<io::directory_handle> make_store_directory(const io::path_handle& base,
                                                                std::string_view name,
                                                                const stream_record& mark) noexcept;
/// Moves the directory of an ID to `lost`, and sets its modification time to the present time.
/// Errors: ENOENT; ENOTEMPTY if `lost` has one of this ID.
[[nodiscard]] result<void> move_to_lost(const io::path_handle& store, const stream_id& id);

/// Waits for a lock of a directory, which ends when it is closed. Does nothing on file systems
/// without such locks.
void lock_streams(const io::directory_handle& directory) noexcept;

/// Calls `sink(entry)` for each entry of a directory that is open for listing, at its start.
/// Returns the error that has ended the listing.
template <class Sink>
result<void> for_each_entry(const io::directory_handle& listed, io::stat_fields wanted, Sink sink) {
    std::vector<io::directory_entry> entries(limits::listed_names_per_batch);
    std::vector<char> storage(limits::listing_storage_bytes);
    std::uint64_t position = 0;
    for (;;) {
        const auto batch = listed.enumerate(
            {.entries = entries, .storage = storage, .position = position, .wanted = wanted});
        if (not batch) return failure(batch.error());
        if (batch->entries.empty()) return {};
        for (const io::directory_entry& each : batch->entries)
            sink(each);
        position = batch->next;
    }
}

}  // namespace sluice::vfs
