#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sluice/vfs/host/name/short_name_record.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::vfs {

/// The short names of the files in a directory. A file whose name has not the form of a short name
/// has the first short name of short_name_for() that is free. The oldest file without one chooses
/// first. The result remains the same if other files come and go:
///   - a file keeps the short name that it had before, in memory;
///   - if two files would have the same first short name, the record has the attempts of all
///     whose names have no hash, and states that further ones have a hash.
/// A client's choice has precedence over both. No file has a short name that is another's name.
///
/// Invariants:
///   1. files_ is sorted by name, and the names are unique.
///   2. taken_ has each short name of a file, and each name of that form, with the file it finds.
/// Immutable. Thread safety: any thread. Allocates: about 150 bytes for each file. Containers that
/// depend on hashes are avoided: clients choose the names, and other programs the record.
class directory_short_names {
public:
    directory_short_names() noexcept = default;
    /// Constructs the result for a directory with too many files: none has a short name.
    struct too_many_files {};
    explicit directory_short_names(too_many_files) noexcept : has_too_many_files_(true) {}
    /// `before` is an earlier state of the directory, or null. `born` is asked for files that
    /// compete. Complexity: O(n log n) in the files, and up to short_name_attempts_max for each.
    directory_short_names(std::vector<std::string> names, const short_name_record& record,
                          const directory_short_names* before,
                          const std::function<time_point(const std::string& name)>& born);

    /// Returns whether there is a file of exactly this name.
    [[nodiscard]] bool has(std::string_view name) const noexcept { return at(name) != nullptr; }
    /// Returns the short name of the file with exactly this name; empty if there is none, and for
    /// names that have the form of one, unless a client has chosen another.
    [[nodiscard]] short_name of(std::string_view name) const noexcept;
    /// Returns the name of the file whose short name, or name in any case, is this one; empty if
    /// there is none. It is valid as long as the object.
    [[nodiscard]] std::string_view find(const short_name& wanted) const noexcept;
    /// Returns the record to store. Complexity: linear. Allocates: the record, and 50 bytes for
    /// each file.
    [[nodiscard]] short_name_record record() const;
    [[nodiscard]] std::size_t file_count() const noexcept { return files_.size(); }
    [[nodiscard]] bool has_too_many_files() const noexcept { return has_too_many_files_; }

private:
    // How a file has got its short name: the attempts of short_name_for(), and these.
    static constexpr std::uint8_t by_none = 0xff;    // it has none, or not yet
    static constexpr std::uint8_t by_client = 0xfe;  // chosen, or removed
    static_assert(short_name_attempts_max < by_client);

    struct file {
        std::string name;
        short_name own{};
        std::uint8_t how = by_none;
    };
    using sorted_entries = std::span<const short_name_record::entry>;  // by number, then by kind
    struct competitor {
        short_name first;  // that it tries
        time_point born{};
        std::uint32_t index = 0;
    };

    [[nodiscard]] const file* at(std::string_view name) const noexcept;
    [[nodiscard]] static bool generates(const file& one) noexcept;
    bool claim(std::uint32_t index, const short_name& wanted, std::uint8_t how);
    void claim_recorded(sorted_entries record);
    void claim_as_before(const directory_short_names& before);
    void claim_first_free(sorted_entries record,
                          const std::function<time_point(const std::string& name)>& born);
    void claim_from(std::uint32_t index, std::uint32_t attempt);

    std::vector<file> files_;
    std::map<short_name, std::uint32_t> taken_;
    std::vector<std::uint32_t> used_up_;  // record numbers, sorted
    bool has_too_many_files_ = false;
};

}  // namespace sluice::vfs
