#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/fat/image/image.hpp"

namespace sluice::cli {

/// The treatment of names of the host that FAT cannot store.
enum class illegal_names : std::uint8_t {
    refuse,  ///< all of them are reported, and nothing is written
    rename,  ///< each is stored under legal_fat_name(), with a number if another source has that
             ///< name; a file of the volume with the resulting name is replaced only if it has
             ///< the same size and time
    skip,    ///< the file, or the directory and everything in it, is reported and skipped
};

/// One file or directory to write. A directory comes before its entries.
struct put_step {
    std::filesystem::path from;
    std::string to;  // the path on the volume
    bool is_directory = false;
    std::uint64_t size_bytes = 0;
    std::filesystem::file_time_type modified{};
};

/// Decides what a command writes to a volume, and reports every problem before anything is written.
///
/// Invariants:
///   1. Two steps have different paths, as FAT compares names.
///   2. The order depends on names only, not on the order in which the host lists a directory: in
///      each directory, first names that could be generated short names ("LONGNA~1.TXT"), then all
///      others; both in ascending order of the bytes of the names on the volume. A directory's
///      entries follow the directory. Because of the first rule, the volume never generates a short
///      name that a later file needs.
/// Thread safety: none. `system` outlives it.
class put_planner {
public:
    put_planner(fat::file_system& system, illegal_names policy) : system_(system), policy_(policy) {}

    /// Adds files and directories of the host that become entries of the directory `into` ("" is
    /// the root). Directories are copied recursively. Symbolic links to files are followed; other
    /// objects are reported and skipped.
    void add_to_directory(const std::vector<std::filesystem::path>& sources, const std::string& into);
    /// Adds one file or directory under a name of the user's choice. The entries of a
    /// directory go to `to`.
    void add_as(const std::filesystem::path& source, const std::string& to);

    /// Adds everything in a directory of the host to the directory `into`.
    void add_entries_of(const std::filesystem::path& directory, const std::string& into);

    /// Returns the steps. Leaves, after all problems have been reported, if there are any.
    [[nodiscard]] std::vector<put_step> finish();

private:
    struct child {
        std::filesystem::path from;
        std::string host_name;
        std::string name{};  // on the volume
        bool is_directory = false;
        bool is_renamed = false;  // FAT cannot store the name of the host
    };
    struct occupant {
        std::filesystem::path from;
        std::string path;
        bool is_directory = false;
    };

    void report(const std::filesystem::path& about, const std::string& why);
    void note(const std::filesystem::path& about, const std::string& what) const;
    [[nodiscard]] std::optional<child> child_of(const std::filesystem::path& from, std::string host_name);
    void name_children(std::vector<child>& children, const std::string& into);
    [[nodiscard]] std::string free_name(const std::string& host_name, const std::string& into) const;
    void add_children(std::vector<child> children, const std::string& into);
    [[nodiscard]] bool add_step(const child& what, const std::string& to);
    void check_volume(const child& what, const std::string& to);

    fat::file_system& system_;
    illegal_names policy_;
    std::map<std::string, occupant> taken_;  // by folded path on the volume
    std::vector<put_step> steps_;
    std::uint64_t problems_ = 0;
    std::uint64_t illegal_ = 0;  // part of problems_
};

/// Writes the steps, in their order. Leaves with the reason if one fails.
void carry_out(fat::file_system& system, const std::vector<put_step>& steps);

}  // namespace sluice::cli
