#pragma once

#include <chrono>
#include <optional>

#include "sluice/vfs/change_feed.hpp"
#include "sluice/vfs/domain/fs_domain.hpp"
#include "sluice/vfs/node.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/volume_quotas.hpp"

namespace sluice::vfs {

/// The capabilities of a volume. Unsupported operations fail with EOPNOTSUPP.
struct volume_features {
    bool is_read_only = false;
    bool has_streams = false;
    bool has_extended_attributes = false;
    bool has_security = false;
    bool has_hard_links = false;
    bool has_symlinks = false;
    bool has_sparse_files = false;
    bool has_block_sharing = false;  // clone_to can share blocks
    bool has_compression = false;    // files can be marked as compressed
    // Keeps every time as it was set, that of the last change included.
    bool has_exact_times = false;
    bool has_short_names = false;  // files with long names have short names, too
    std::uint32_t name_units_max = 255;
    std::string type_name{};  // "NTFS" to clients that check it; the actual type in logs
};

struct volume_space {
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t available_bytes = 0;  // available to the served user
    std::uint32_t block_bytes = 4096;
    std::uint32_t sector_bytes = 512;
};

/// The host user whose identity accesses a volume's files, for all clients.
struct acting_user {
    std::uint32_t id = 0;
    std::vector<std::uint32_t> groups{};
};

struct volume_identity {
    std::string label{};
    std::uint64_t serial = 0;
    time_point created{};
    std::optional<acting_user> acts_as{};  // std::nullopt: all files are accessible (images; root)
};

/// The initial properties of a new file or directory.
struct creation_request {
    node_kind kind = node_kind::file;  // file or directory
    dos_attributes dos = dos_attributes::none;
    std::optional<std::uint16_t> permission_bits{};  // Unix; by default the volume's
};

enum class follow_links : bool { no, yes };

struct found_node {
    node_ptr node;
    metadata status;
};

/// How a lookup compares names: `any_case` prefers the exact name, and otherwise ignores case.
enum class name_match : bool { any_case, exact };

/// A tree of files that can be served: a directory of the host, or a disk image. No path leads out
/// of it. See `node` for the format of paths.
/// Thread safety: any thread at any time, within the rules of `node`. If two threads create the
/// same name, one fails with EEXIST.
/// Lifetime: the owner destroys the volume after its nodes, listings and watches, which may be
/// destroyed on any thread. A volume with its own change feed, which has a handle on the loop that
/// the volume was created with, must be destroyed on the thread of that loop.
class volume {
public:
    virtual ~volume() = default;
    volume(const volume&) = delete;
    volume& operator=(const volume&) = delete;

    /// Returns the failure domain in which calls of this volume and its nodes run: `co_await
    /// volume.domain().run(…)`. By default it is a separate one whose calls always run inline. Any
    /// thread.
    [[nodiscard]] virtual fs_domain& domain() noexcept { return *domain_; }
    /// Sets the domain before the first lookup.
    void set_domain(std::shared_ptr<fs_domain> domain) noexcept { domain_ = std::move(domain); }

    /// Returns the domain in which to repeat a call that fails with limits::crosses_mount: other
    /// file systems are mounted in the volume's tree, and its lookups, listings and changes of
    /// names reach them in calls of this domain only, which never run inline. A node found in this
    /// way has it as its node::domain(). Null: the volume crosses no mounts, or all of its calls
    /// may.
    [[nodiscard]] virtual fs_domain* crossing_domain() noexcept { return nullptr; }

    /// Does a bounded part of the work that the volume needs from time to time: removes old files
    /// from its recycle bin. Returns whether there is more to do now. `now` is the present time;
    /// without it, no file is too old.
    /// Blocks: for the file system. Thread safety: one thread at a time.
    [[nodiscard]] virtual bool tidy(std::optional<std::chrono::system_clock::time_point> /*now*/) noexcept {
        return false;
    }
    /// Returns whether tidy() does anything. Any thread.
    [[nodiscard]] virtual bool needs_tidying() const noexcept { return false; }

    /// Returns the last failure of the recycle bin since the previous call, for the log: a path
    /// and the reason. Empty: none. Any thread. Allocates: yes.
    [[nodiscard]] virtual std::string take_recycle_problem() noexcept { return {}; }

    [[nodiscard]] virtual const volume_features& features() const noexcept = 0;
    [[nodiscard]] virtual const volume_identity& identity() const noexcept = 0;
    [[nodiscard]] virtual result<volume_space> space() noexcept = 0;

    /// Returns the node at `path`. Ignores case if no name matches exactly. Follows links in the
    /// middle as long as they stay inside, and the last one according to `links`. Errors: ENOENT if
    /// the last component is missing, and ENOLINK if it is a link whose target is; ENOTDIR if an
    /// earlier one is missing or is not a directory; EXDEV or ELOOP if a link leads outside or in a
    /// circle; EACCES; ENAMETOOLONG; EILSEQ for an invalid name. Blocks: for the file system.
    /// Complexity: a miss needs no scan after the directory was indexed.
    [[nodiscard]] virtual result<node_ptr> find(std::string_view path, follow_links links) noexcept = 0;

    /// Finds a node as find() does, with its status, for a caller that needs `soon` next: a volume
    /// may need fewer system calls for both together. The data may be used only after
    /// node::open_data. With name_match::exact, a volume may report ENOENT for a name that exists
    /// in another case, or is a link whose target is missing. The caller then creates the name,
    /// which fails with EEXIST if it exists in any case. Errors, Blocks: as find, as node::status.
    [[nodiscard]] virtual result<found_node> find_with_status(std::string_view path, follow_links links,
                                                              data_access soon, name_match match) noexcept;

    /// Returns the directory at `path`, following all links, with its status, for a caller that
    /// creates a name in it. Errors, Blocks: as find_with_status; ENOTDIR.
    [[nodiscard]] virtual result<found_node> find_directory(std::string_view path) noexcept;

    /// Creates a file or directory. Errors: EEXIST if the name exists in any case; as find.
    [[nodiscard]] virtual result<node_ptr> create(std::string_view path,
                                                  const creation_request& wanted) noexcept = 0;

    /// Creates one in a directory of this volume, and returns its status. `name` is one component.
    /// Errors: as create; ENOTDIR also if the directory was removed.
    [[nodiscard]] virtual result<found_node> create_in(node& directory, std::string_view name,
                                                       const creation_request& wanted) noexcept;

    /// Sets the loops on which nodes will be used, beginning with the one that the volume was
    /// created with. Called before any of them is used. They outlive the volume.
    virtual void serve_on(std::span<io::io_multiplexer* const>) {}

    /// Returns the quotas of the volume's users; null if the volume has none, or does not offer
    /// them. They live as long as the volume.
    [[nodiscard]] virtual volume_quotas* quotas() noexcept { return nullptr; }

    /// Returns the feed of changes to names and files; null if the volume has none.
    [[nodiscard]] virtual change_feed* changes() noexcept { return nullptr; }

protected:
    /// Allocates: its domain.
    volume();
    explicit volume(std::shared_ptr<fs_domain> domain) noexcept : domain_(std::move(domain)) {}

private:
    std::shared_ptr<fs_domain> domain_;  // never null
};

}  // namespace sluice::vfs
