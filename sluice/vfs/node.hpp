#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sluice/io/task/task.hpp"
#include "sluice/vfs/domain/discardable.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::vfs {

class fs_domain;
class node;
class node_attached;
class node_children;
class node_data;
class node_names;
using node_ptr = std::unique_ptr<node>;

/// An open object of a volume: a file, a directory, a symbolic link, or a named stream of one. It
/// remains the same object while its name changes or is removed. Parts contain the calls that only
/// some kinds of nodes have.
///
/// Paths are relative to the volume's root: UTF-8 (lone surrogates as WTF-8), components separated
/// by '/', no leading slash, no empty, `.` or `..` component. The root itself is the empty path.
/// Lookups ignore case in the same way as the volume.
///
/// Calls without co_ in their name block for the file system: fs_domain::run() executes them.
/// Errors are errno values. EIO and those of the file system are among the errors of every call.
///
/// Thread safety: calls that read, and transfers, may run on any thread at any time, several for
/// one node, and during its changes. The caller serialises the changes of one node (change,
/// open_data, truncate, rename, follow_stream_name, remove, become_link) and, for one file through
/// any node, the changes of its attributes, streams, EAs and security. A view that a node returns
/// is valid until the next change of the viewed value. A node may be destroyed on any thread.
/// Coroutines are started on the thread of a loop of volume::serve_on. This holds for the parts,
/// too.
class node : public discardable {
public:
    /// Returns the domain that the calls of this node and its parts run in: that of the volume, or
    /// of the file system that is mounted there. Any thread.
    [[nodiscard]] fs_domain& domain() const noexcept { return domain_; }

    /// Returns the kind of the node. Only node_attached::become_link changes it.
    [[nodiscard]] virtual node_kind kind() const noexcept = 0;
    /// Returns its identity among all nodes of the process.
    [[nodiscard]] virtual file_key key() const noexcept = 0;
    /// Returns its current path as far as the volume knows, in the case it was created with.
    /// Allocates: the result. Blocks: for the file system, but only in a call of its domain.
    [[nodiscard]] virtual std::string path() const = 0;
    /// Returns its absolute path on the host, or in its image. Nodes with the same file_key::image
    /// have comparable locations, for any share they were found through. Two mounts of one
    /// directory have two locations. Allocates, Blocks: as path.
    [[nodiscard]] virtual std::string location() const { return '/' + path(); }
    /// Returns the name of the stream; empty for other nodes. By value: another open
    /// may rename the stream.
    /// Allocates: the result.
    [[nodiscard]] virtual std::string stream_name() const { return {}; }

    /// Returns times, sizes and attributes. Errors: ENOENT for a stream that is removed. Blocks:
    /// for the file system.
    [[nodiscard]] virtual result<metadata> status() noexcept = 0;
    /// Changes the fields that `wanted` has values for. Errors: EROFS; EACCES, EPERM; EOPNOTSUPP if
    /// the volume cannot store one. Blocks: for the file system.
    [[nodiscard]] virtual result<void> change(const metadata_change& wanted) noexcept = 0;
    /// Makes the data and the metadata durable, and the names in a directory. `by`, which may be
    /// null, can cancel a call that still waits for a worker. Errors: ECANCELED if the call was
    /// cancelled. Suspends. Allocates: the coroutine.
    [[nodiscard]] virtual io::task<result<void>> co_flush(io::call_cancellation* by = nullptr) noexcept = 0;

    /// Returns a part; null if the node does not have it. Every node has names(). The parts of a
    /// node are fixed when it is found, so any thread may call these at any time. After
    /// become_link, calls of a part that does not fit the new kind fail. A caller that needs the
    /// parts of the new kind finds the node again. Lifetime: the node's. Allocates: nothing.
    /// Complexity: constant.
    /// @{
    /// The bytes of a file or a stream.
    [[nodiscard]] virtual node_data* data() noexcept = 0;
    /// Rename, link, remove; never null.
    [[nodiscard]] virtual node_names* names() noexcept = 0;
    /// Streams, EAs, security, link targets.
    [[nodiscard]] virtual node_attached* attached() noexcept = 0;
    [[nodiscard]] virtual node_children* children() noexcept = 0;  ///< the names in a directory
    /// @}

protected:
    /// The domain outlives the node.
    explicit node(fs_domain& domain) noexcept : domain_(domain) {}

private:
    fs_domain& domain_;
};

}  // namespace sluice::vfs
