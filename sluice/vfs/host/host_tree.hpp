#pragma once

#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/buffered_write_hint.hpp"
#include "sluice/vfs/host/host_metadata.hpp"
#include "sluice/vfs/host/host_volume_options.hpp"
#include "sluice/vfs/host/known_regular_files.hpp"
#include "sluice/vfs/host/name/short_name_tables.hpp"
#include "sluice/vfs/host/private_attributes.hpp"
#include "sluice/vfs/host/recycle_problem.hpp"
#include "sluice/vfs/volume.hpp"

// Internal to the host volume: its state that its nodes share. Paths here are the host's, relative
// to the root, without a leading slash. An empty path is the root.

namespace sluice::vfs {

/// The status fields that a node needs.
inline constexpr io::stat_fields node_fields =
    io::stat_fields::type | io::stat_fields::permissions | io::stat_fields::links | io::stat_fields::owner |
    io::stat_fields::accessed | io::stat_fields::modified | io::stat_fields::changed |
    io::stat_fields::inode | io::stat_fields::size | io::stat_fields::allocated | io::stat_fields::born;

/// The place for a new name, and the existing name there, ignoring case.
struct host_place {
    std::string path;                    // the directory in the host's spelling,
                                         // the name as requested
    std::optional<std::string> taken{};  // the existing name that conflicts, with its path
};

/// The directory of the volume, and the lookup of names in it. Immutable after the volume is in
/// use, except members that are monitors or atomic. Thread safety: any thread.
class host_tree {
public:
    host_tree(io::io_multiplexer& with, io::path_handle from, const host_volume_options& chosen,
              reports_all_changes reach)
        : loops{&with},
          options(chosen),
          index(chosen.watched ? chosen.index : index_limits{.directories_max = 0}, reach),
          root_(std::move(from)),
          random_(chosen.random != nullptr ? chosen.random : &kernel_random_) {}

    struct found_path {
        io::handle open;  // for naming only (O_PATH)
        bool is_as_spelled = false;
    };
    /// Opens a client's path. Errors: as volume::find; with name_match::exact, ENOENT also for a
    /// name that exists in another case, and instead of ENOLINK.
    [[nodiscard]] result<found_path> open(std::string_view shown, follow_links links, name_match match);

    struct opened_file {
        io::file_handle file;
        io::file_status status;
        bool is_nonblocking = false;  // O_NONBLOCK, which must be cleared before a transfer
    };
    /// Opens a client's path for its data directly, which saves reopening a name's descriptor
    /// through /proc. Returns std::nullopt unless a regular file was found there before and is
    /// still there, on the root's file system, accessible to the server, and without a lease of
    /// another process. Otherwise use open().
    [[nodiscard]] std::optional<opened_file> open_known_file(std::string_view shown, follow_links links,
                                                             data_access wanted) noexcept;

    /// Opens the directory at a client's path, for reading if permitted. Queries on the result then
    /// do not need /proc. Errors: as volume::find; ENOTDIR.
    [[nodiscard]] result<io::handle> open_directory(std::string_view shown);

    /// Returns the place at which a client's path is to be created. Errors: as volume::find for the
    /// parent; EEXIST for the root.
    [[nodiscard]] result<host_place> place(std::string_view shown);
    /// The same for a name in an open directory.
    [[nodiscard]] result<host_place> place_in(const io::handle& directory, std::string_view path,
                                              std::string_view shown_name);

    /// Returns the short names of an open directory, and later those that were last computed; null
    /// if the volume has no short names, or an error occurs.
    [[nodiscard]] short_name_tables::table_ptr short_names_in(const io::handle& directory);
    [[nodiscard]] short_name_tables::table_ptr last_short_names_in(const io::handle& directory);
    /// Returns, or sets, the short name of the file at a host's path. Errors: as
    /// node_names::alternate_name and set_alternate_name.
    [[nodiscard]] result<short_name> short_name_at(std::string_view path);
    [[nodiscard]] result<void> set_short_name_at(std::string_view path, const short_name& wanted);

    struct opened_directory {
        io::handle directory;
        io::file_status status;
    };
    /// Creates a file, for reading and writing, or a directory, in an open directory of the file
    /// system `device`. Errors: those of io::file_handle and io::directory_handle; ENOTDIR if the
    /// directory was removed.
    [[nodiscard]] result<opened_file> make_file(const io::handle& directory, std::uint64_t device,
                                                std::string_view name,
                                                unsigned permission_bits) const noexcept;
    [[nodiscard]] result<opened_directory> make_directory(const io::handle& directory, std::string_view name,
                                                          unsigned permission_bits) const noexcept;

    /// Opens a host's path. Errors: as volume::find.
    [[nodiscard]] result<io::handle> open_exactly(std::string_view path, follow_links links) const noexcept;

    /// Returns the current path of an open file, relative to the root; std::nullopt if it was
    /// removed or moved out, and without `may_ask` also if only the file system knows.
    [[nodiscard]] std::optional<std::string> present_path(const io::handle& open, bool may_ask = true) const;

    [[nodiscard]] bool is_root(const io::file_status& status) const noexcept {
        return status.inode == root_inode and status.device == root_device;
    }
    [[nodiscard]] dot_names dots() const noexcept {
        return options.map_hidden_dot_files ? dot_names::hidden : dot_names::plain;
    }
    /// Returns whether clients cannot use a name of the host, or a path: that of a stream store, or
    /// a rejected one.
    [[nodiscard]] bool is_excluded(std::string_view host_name) const;
    [[nodiscard]] bool leads_to_excluded(std::string_view host_path) const;
    /// Returns the error of a lookup of a path that leads there.
    [[nodiscard]] error error_of_excluded(std::string_view host_path) const;
    /// The same for an open file, whatever path has led to it. `status` has its type and
    /// permissions. Blocks: for the file system, but rarely.
    [[nodiscard]] bool is_excluded(const io::handle& open, const io::file_status& status) const;
    /// Returns whether a name is that of the recycle bin, in any case and wherever it is.
    [[nodiscard]] bool is_recycle_bin(std::string_view host_name) const {
        return options.recycle and equal_ignoring_case(host_name, options.recycle->directory);
    }
    /// Returns whether files of the recycle bin are removed by their age, or the oldest ones first.
    [[nodiscard]] bool has_ages_in_bin() const noexcept {
        return options.recycle and (options.recycle->age_max.count() != 0 or options.recycle->bytes_max != 0);
    }
    /// Returns whether an open file is the recycle bin that the server uses. If another program has
    /// removed the bin, another file may have its inode number.
    [[nodiscard]] bool is_recycle_bin(const file_key& file, const io::handle& open) const {
        return options.recycle and file.volume == root_device and file.file != 0 and
               file.file == bin_state.inode.load(std::memory_order_relaxed) and
               present_path(open) == options.recycle->directory;
    }
    /// Adds the attributes that the name of a file implies.
    void add_implied_attributes(metadata& shown, std::string_view host_name) const {
        if (options.hidden_names.match(host_name) or is_recycle_bin(host_name))
            shown.dos = shown.dos | dos_attributes::hidden;
    }
    /// Errors: EROFS if the volume is read-only.
    [[nodiscard]] result<void> may_change() const noexcept;

    [[nodiscard]] fs_domain& domain() const noexcept { return owner->domain(); }

    /// Sets the domain whose calls, and no others, cross mounts from now on. Errors: EMFILE.
    [[nodiscard]] result<void> set_crossing_domain(std::shared_ptr<fs_domain> workers) noexcept;
    [[nodiscard]] fs_domain* crossing_domain() const noexcept { return crossing_domain_.get(); }
    /// Returns whether this call may cross mounts.
    [[nodiscard]] bool may_cross() const noexcept {
        return crossing_domain_ == nullptr or fs_domain::of_this_call() == crossing_domain_.get();
    }
    /// Returns the domain of the nodes that this call finds.
    [[nodiscard]] fs_domain& domain_of_found() const noexcept {
        return crossing_domain_ != nullptr and may_cross() ? *crossing_domain_ : domain();
    }
    /// Returns the root directory with the restrictions of this call.
    [[nodiscard]] const io::path_handle& root() const noexcept {
        return may_cross() ? root_ : one_mount_root_;
    }
    /// Returns the directory in which new streams of files on the root's file system are stored:
    /// the topmost one of that file system on the way from the options' streams_root to the root.
    /// Confined to that file system, and without symbolic links.
    [[nodiscard]] const io::path_handle& store_base() const noexcept { return store_places_.front(); }
    /// Returns that directory, those of the same file system beneath it that lead to the root, and
    /// the root, with the same restrictions: each may have a store, perhaps an older one.
    [[nodiscard]] const std::vector<io::path_handle>& store_places() const noexcept { return store_places_; }
    /// Sets them from the options, before the first lookup. Errors: as io::path_handle::open.
    [[nodiscard]] result<void> open_store_places();
    [[nodiscard]] secret_random_source& random() const noexcept { return *random_; }

    /// Maps an error of a call that may not cross mounts: EXDEV then means that the path crosses
    /// one.
    [[nodiscard]] error as_crossing(const error& why) const noexcept {
        return why.code() == EXDEV and not may_cross() ? error(limits::crosses_mount, "find") : why;
    }
    template <class T>
    [[nodiscard]] result<T> as_crossing(result<T> found) const noexcept {
        if (found) return found;
        return failure(as_crossing(found.error()));
    }
    /// Returns the volume's own loop.
    [[nodiscard]] io::io_multiplexer& multiplexer() const noexcept { return *loops.front(); }
    /// Returns the loop of the calling thread, one of `loops`.
    [[nodiscard]] io::io_multiplexer& multiplexer_here() const noexcept;

    volume* owner = nullptr;                 // set before the first lookup
    std::vector<io::io_multiplexer*> loops;  // on which nodes are used; never empty
    host_volume_options options;
    name_index index;
    short_name_tables short_names;
    attribute_memory attributes;
    known_regular_files seen;  // by the host's path, if a client spells it the same way
    std::uint64_t root_device = 0;
    std::uint64_t root_inode = 0;
    bool keeps_attributes = false;
    bool root_is_in_memory = false;
    bool reads_by_ring = false;  // the file system reads without a worker of the kernel
    buffered_write_hint writes;
    bool has_modes = true;  // false: one owner and one mode for all files
    mutable recycle_state bin_state;

private:
    struct parent_directory {
        std::string path;
        io::path_handle open;
    };
    // Directories that may be on other mounts are scanned for each lookup, because a kernel call
    // that watches a hanging directory must not hold the lock of the index.
    [[nodiscard]] name_index::look lookup_mode() const noexcept {
        return crossing_domain_ != nullptr and may_cross() ? name_index::look::through_directory
                                                           : name_index::look::in_index;
    }
    [[nodiscard]] bool is_link(std::string_view path) const noexcept;
    [[nodiscard]] result<parent_directory> open_parent(std::string_view path);
    [[nodiscard]] bool is_reserved_for_bin(const io::handle& directory, std::string_view name) const;
    [[nodiscard]] result<host_place> place_of(const io::handle& directory, std::string_view path,
                                              std::string_view name);
    // Likewise, directories that may be on other mounts share no mutex with the others.
    [[nodiscard]] short_name_tables::reach reach_of_call() const noexcept {
        using enum short_name_tables::reach;
        return crossing_domain_ != nullptr and may_cross() ? all_mounts : one_mount;
    }
    [[nodiscard]] short_name_tables::caller short_name_caller() const noexcept {
        using enum short_name_tables::may_write;
        return {.writes = options.read_only ? no : yes, .where = reach_of_call()};
    }
    [[nodiscard]] result<std::optional<std::string>> find_name(const io::handle& directory,
                                                               std::string_view wanted);
    [[nodiscard]] result<std::string> correct_case(std::string_view path);
    [[nodiscard]] result<std::string> correct_every_component(std::string_view path);
    [[nodiscard]] result<void> add_store_place(const io::path_handle& directory);

    io::path_handle root_;
    io::path_handle one_mount_root_;
    std::vector<io::path_handle> store_places_;
    mutable system_random kernel_random_;
    secret_random_source* const random_;
    std::shared_ptr<fs_domain> crossing_domain_;
};

/// Returns the kernel's name of an open file: an absolute path. Returns an empty string if it has
/// none.
[[nodiscard]] std::string link_of(const io::handle& open);

}  // namespace sluice::vfs
