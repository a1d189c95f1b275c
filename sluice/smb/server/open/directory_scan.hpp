#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/server/core/fifo_lock.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/short_name.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::smb::server {

/// The work of a check of access, as a number of examined names: of reading a security descriptor,
/// and of each of its parts of this size.
inline constexpr std::size_t names_per_security_descriptor = 4;
inline constexpr std::size_t descriptor_bytes_per_name = 256;

/// The state of QUERY_DIRECTORY on an open directory ([MS-FSA] 2.1.5.6.3): the names that match a
/// pattern, `.` and `..` first. A pattern without wildcards is looked up, not searched for.
///
/// Invariants:
///   1. A name that was peeked at stays, with what it refers to, until it is taken.
///   2. link_node_ is set only if found_node_ is: it is a link that was looked up, whose target
///      found_node_ is.
/// The volume and the directory outlive it. Thread safety: `turn` is a monitor; the rest belongs to
/// the query that holds it, on any thread.
class directory_scan {
public:
    directory_scan(vfs::volume& volume, vfs::node& directory) noexcept
        : volume_(volume), directory_(directory) {}
    directory_scan(const directory_scan&) = delete;
    directory_scan& operator=(const directory_scan&) = delete;
    ~directory_scan() {
        if (listing_ != nullptr) directory_.domain().discard(std::move(listing_));
        for (vfs::node_ptr* const held : {&found_node_, &link_node_}) {
            if (*held == nullptr) continue;
            vfs::fs_domain& its = (*held)->domain();
            its.discard(std::move(*held));
        }
    }

    /// Held by the query that continues the scan.
    fifo_lock turn;
    /// The domain in which its calls run; null: that of the directory. Belongs to the holder of the
    /// turn.
    vfs::fs_domain* domain = nullptr;

    /// Begins the scan, or begins it again with another pattern.
    void start(std::string pattern);
    /// Begins it again with the same pattern. Another scan was started before.
    void restart();
    [[nodiscard]] bool is_started() const noexcept { return not pattern_.empty(); }

    /// Returns the next match; the same one until it is taken. Valid until then. Null at the end,
    /// and if `names_left` names were examined without a match. Subtracts the examined names from
    /// `names_left`. Errors: those of the listing. Blocks: for the file system. Allocates: nothing
    /// per name.
    [[nodiscard]] result<const vfs::listed_name*> peek(std::size_t& names_left) noexcept;
    /// Returns whether all matches were taken.
    [[nodiscard]] bool is_at_end() const noexcept { return next_ == nullptr and stage_ == stage::end; }
    /// Returns the stored security descriptor of the match that was peeked at, which is neither `.`
    /// nor `..`. Errors, Blocks: as directory_listing::security. Allocates: the result.
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept;
    /// Returns the short name of the match that was peeked at; empty if it has none. Blocks: for
    /// the file system.
    [[nodiscard]] vfs::short_name alternate_name() noexcept;
    /// Blocks: for the file system.
    void take() noexcept;
    /// Takes a match that is not shown to the client. Blocks: as take.
    void skip() noexcept;

    /// Returns whether any match was taken since the start.
    [[nodiscard]] bool has_returned_any() const noexcept { return has_returned_any_; }

private:
    enum class stage : std::uint8_t { dot, dot_dot, names, end };

    [[nodiscard]] result<const vfs::listed_name*> advance() noexcept;
    [[nodiscard]] result<const vfs::listed_name*> next_name() noexcept;
    [[nodiscard]] result<const vfs::listed_name*> look_up();
    [[nodiscard]] result<const vfs::listed_name*> describe(std::string_view name, vfs::node& found);
    [[nodiscard]] result<const vfs::listed_name*> describe_parent();
    [[nodiscard]] bool matches(std::string_view name) const noexcept;
    [[nodiscard]] bool matches(const vfs::listed_name& name) noexcept;
    void forget_found() noexcept;

    vfs::volume& volume_;
    vfs::node& directory_;
    std::string pattern_;
    bool has_wildcards_ = false;
    bool matches_all_ = false;
    bool has_returned_any_ = false;
    stage stage_ = stage::end;
    std::unique_ptr<vfs::directory_listing> listing_;
    const vfs::listed_name* next_ = nullptr;  // peeked at, not taken
    vfs::listed_name found_;                  // entries that the listing does not contain
    std::string found_name_;
    vfs::node_ptr found_node_;  // to which found_ refers, if it is neither `.` nor `..`
    vfs::node_ptr link_node_;   // the link that has the name of found_, if it is one
};

}  // namespace sluice::smb::server
