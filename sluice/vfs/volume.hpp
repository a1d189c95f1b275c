#pragma once

#include "sluice/vfs/change_feed.hpp"
#include "sluice/vfs/fs_domain.hpp"
#include "sluice/vfs/node.hpp"
#include "sluice/vfs/node_data.hpp"

namespace sluice::vfs {

/// What a volume can do; what it cannot fails with EOPNOTSUPP.
struct volume_features {
    bool is_read_only = false;
    bool has_streams = false;
    bool has_extended_attributes = false;
    bool has_security = false;
    bool has_hard_links = false;
    bool has_symlinks = false;
    bool has_sparse_files = false;
    bool has_block_sharing = false;  // clone_to can share blocks
    std::uint32_t name_units_max = 255;
    std::string type_name{};  // "NTFS" to clients that judge by it; what it really is, in logs
};

struct volume_space {
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t available_bytes = 0;  // to the user it serves
    std::uint32_t block_bytes = 4096;
    std::uint32_t sector_bytes = 512;
};

/// The host's user as whom a volume's files are used, whoever asks for them.
struct acting_user {
    std::uint32_t id = 0;
    std::vector<std::uint32_t> groups{};
};

struct volume_identity {
    std::string label{};
    std::uint64_t serial = 0;
    time_point created{};
    std::optional<acting_user> acts_as{};  // none: nobody's files are closed to us (images; root)
};

/// How a new thing begins.
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

/// A tree of files that can be served: a folder of the host, a disk image. Nothing reached through it lies
/// outside. See `node` for what paths look like.
/// Thread safety: any thread at any time, as far as `node` says. Two threads that create one name decide it
/// among themselves: one fails with EEXIST.
/// Lifetime: the owner destroys the volume after its nodes, listings and watches, which may be destroyed on
/// any thread. A volume with its own change feed, which has a handle on the loop that the volume was created
/// with, must be destroyed on the thread of that loop.
class volume {
public:
    virtual ~volume() = default;
    volume(const volume&) = delete;
    volume& operator=(const volume&) = delete;

    /// The failure domain that calls of this volume and its nodes run in: `co_await volume.domain().run(…)`.
    /// By default one of its own whose calls always run inline. Any thread.
    [[nodiscard]] virtual fs_domain& domain() noexcept { return *domain_; }
    /// Chooses it, before anything is found through the volume.
    void set_domain(std::shared_ptr<fs_domain> domain) noexcept { domain_ = std::move(domain); }

    /// The domain in which to repeat a call that fails with limits::crosses_mount: other file systems are
    /// mounted in the volume's tree, and its lookups, listings and changes of names reach them in calls of
    /// this domain only, which never run inline. A node found in this way has it as its node::domain(). Null:
    /// the volume crosses no mounts, or all of its calls may.
    [[nodiscard]] virtual fs_domain* crossing_domain() noexcept { return nullptr; }

    [[nodiscard]] virtual const volume_features& features() const noexcept = 0;
    [[nodiscard]] virtual const volume_identity& identity() const noexcept = 0;
    [[nodiscard]] virtual result<volume_space> space() noexcept = 0;

    /// What stands at `path`, ignoring case where no name fits exactly. Links in the middle are followed as
    /// long as they stay inside; the last one as `links` says.
    /// Errors: ENOENT if the last component is missing; ENOTDIR if an earlier one is, or is no directory;
    /// EXDEV or ELOOP if a link leads outside or round; EACCES; ENAMETOOLONG; EILSEQ for a name that is not
    /// valid. Blocks: for the file system. Complexity: a miss costs no scan once the directory was indexed.
    [[nodiscard]] virtual result<node_ptr> find(std::string_view path, follow_links links) noexcept = 0;

    /// Finds a node as find() does, with its status, for a caller that needs `soon` next: a volume may need
    /// fewer system calls for all of it. The data may be used only after node::open_data. With
    /// name_match::exact, a volume may report ENOENT for a name that exists in another case: for a caller
    /// that then creates the name, which fails with EEXIST if it exists in any case.
    /// Errors, Blocks: as find, as node::status.
    [[nodiscard]] virtual result<found_node> find_with_status(std::string_view path, follow_links links,
                                                              data_access soon, name_match match) noexcept;

    /// The directory at `path`, whatever links lead there, with its status, for who will make something in
    /// it. Errors, Blocks: as find_with_status; ENOTDIR.
    [[nodiscard]] virtual result<found_node> find_directory(std::string_view path) noexcept;

    /// Makes a new file or directory. Errors: EEXIST if the name is taken, in whatever case; as find.
    [[nodiscard]] virtual result<node_ptr> create(std::string_view path,
                                                  const creation_request& wanted) noexcept = 0;

    /// Makes one in a directory of this volume, and tells its status; `name` is one component. Errors: as
    /// create; ENOTDIR, too, if the directory has gone.
    [[nodiscard]] virtual result<found_node> create_in(node& directory, std::string_view name,
                                                       const creation_request& wanted) noexcept;

    /// Names the loops that nodes will be used on, the one the volume was made with first. Before any is
    /// used. They outlive the volume.
    virtual void serve_on(std::span<io::io_multiplexer* const>) {}

    /// Tells of changes to the names and files in a directory; null if the volume cannot.
    [[nodiscard]] virtual change_feed* changes() noexcept { return nullptr; }

protected:
    /// Allocates: its domain.
    volume();
    explicit volume(std::shared_ptr<fs_domain> domain) noexcept : domain_(std::move(domain)) {}

private:
    std::shared_ptr<fs_domain> domain_;  // never null
};

}  // namespace sluice::vfs
