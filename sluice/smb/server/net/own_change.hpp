#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

/// A change of a file or of its name that the server makes for a client, as the directories see it
/// that clients cache (cached_directories): the events that it causes are not those of another
/// program, and the leases of its directories are broken, except that of the client that makes it.
///
///     own_change seen(r.host());
///     status = co_await r.call(one, [&] {
///         seen.begin(*one.node);
///         const nt_status done = …;  // the change
///         seen.end(done == nt_status::success, one.node.get());
///         return done;
///     });
///     if (status == nt_status::success) seen.break_leases(one);
///
/// While no directory is cached, it does nothing. Loop-owned, in the frame of a request; begin()
/// and end() are called in a call of the file system. Lifetime: the server outlives it. Allocates:
/// names of directories that are cached.
class own_change {
public:
    explicit own_change(server_context& host) noexcept : host_(host) {}
    own_change(const own_change&) = delete;
    own_change& operator=(const own_change&) = delete;
    ~own_change();

    /// The name that a node has now is about to change, or what it shows. `writes`: the change is
    /// what was written to it. Blocks: for the file system.
    void begin(vfs::node& changed, bool writes = false) noexcept;
    /// A name of a directory is about to be created or replaced. Blocks: for the file system.
    void begin_in(vfs::node& directory, std::string_view name) noexcept;
    /// The change has succeeded. `changed`: the node that it has made or changed; null if there is
    /// none any more. Blocks: for the file system.
    void end(vfs::node* changed) noexcept;
    /// The same for a link: the node has the new name, and those that it had.
    void end_link(vfs::node& linked) noexcept;
    /// The change has failed, perhaps in part: the state of the names is not known.
    void fail() noexcept;
    /// One of the two.
    void end(bool has_succeeded, vfs::node* changed) noexcept {
        if (has_succeeded)
            end(changed);
        else
            fail();
    }

    /// Returns whether it has changed a directory that is cached.
    [[nodiscard]] bool concerns_cached() const noexcept { return not places_.empty(); }
    /// Breaks the leases of the directories, except those of the cache that the open's client has
    /// named as that of the directory ([MS-SMB2] 2.2.13.2.10, ParentLeaseKey). On a loop, outside
    /// sections.
    void break_leases(const open& by) noexcept;
    /// The same without exception.
    void break_all_leases() noexcept { break_leases_except(nullptr); }

private:
    struct place {
        vfs::file_key directory{};
        std::string name;
    };
    void add(const vfs::file_key& directory, std::string_view name, const std::optional<name_state>& now,
             bool writes);
    void end_with(const result<vfs::name_place>& now, bool has_all_names) noexcept;
    void break_leases_except(const open* by) noexcept;

    server_context& host_;
    std::vector<place> places_;
    bool is_in_progress_ = false;
};

}  // namespace sluice::smb::server
