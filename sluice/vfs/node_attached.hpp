#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/vfs/node.hpp"

namespace sluice::vfs {

/// A named stream of a file.
struct stream_info {
    std::string name;  // without colons; never empty
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;
};

/// Which named stream to open, and whether it may be created.
struct stream_request {
    std::string_view name;
    bool create = false;
    bool exclusive = false;
};

/// An extended attribute (EA) of a file.
struct extended_attribute {
    std::string name;
    std::vector<std::byte> value;
};

/// The properties of a file, directory or link besides its data and its name: a part of a node.
/// A stream shares the EAs, the security descriptor and the list of streams of its file, but opens
/// and removes none of them, and does not become a link.
///
/// Errors of every call: EOPNOTSUPP if the file system cannot store it; of changes: EROFS,
/// EACCES, EPERM, ENOSPC.
/// Thread safety, Blocks: as node. Allocates: results that have a size.
class node_attached {
public:
    node_attached(const node_attached&) = delete;
    node_attached& operator=(const node_attached&) = delete;

    // --- streams; by default EOPNOTSUPP
    // -----------------------------------------------------------------------

    /// Returns the named streams, in no order. Complexity: linear in them.
    [[nodiscard]] virtual result<std::vector<stream_info>> streams() noexcept;
    /// Returns the status of the file that a stream belongs to. Errors: also EOPNOTSUPP for a node
    /// that is not a stream.
    [[nodiscard]] virtual result<metadata> file_status() noexcept;
    /// Opens a named stream. Errors: ENOENT if there is none and `create` is false; EEXIST if
    /// `create` and `exclusive` and there is one; EILSEQ. Allocates: the node.
    [[nodiscard]] virtual result<node_ptr> open_stream(const stream_request& wanted) noexcept;
    /// Returns whether a change of the streams may wait for the device and for other calls. Errors
    /// of the file system count as false.
    [[nodiscard]] virtual bool streams_may_wait() noexcept { return false; }
    /// Removes all named streams, until an error occurs. Errors: also those of node_names::remove.
    [[nodiscard]] virtual result<void> remove_streams() noexcept;

    // --- extended attributes and security
    // ---------------------------------------------------------------------

    /// Returns the EAs, in no order. Complexity: linear in them.
    [[nodiscard]] virtual result<std::vector<extended_attribute>> extended_attributes() noexcept = 0;
    /// Stores an EA; an empty value removes it. Names are compared without case,
    /// kept as first given.
    [[nodiscard]] virtual result<void> set_extended_attribute(std::string_view name,
                                                              std::span<const std::byte> value) noexcept = 0;

    /// Returns the stored security descriptor, self-relative, as it was given; empty if none was.
    [[nodiscard]] virtual result<std::vector<std::byte>> security() noexcept = 0;
    /// Returns the same, for a caller that has just asked for the status: fewer
    /// calls of the file system.
    [[nodiscard]] virtual result<std::vector<std::byte>> security_as_of(const metadata& /*status*/) noexcept {
        return security();
    }
    /// Stores a security descriptor. Errors: EINVAL if it is too long.
    [[nodiscard]] virtual result<void> set_security(std::span<const std::byte> descriptor) noexcept = 0;

    // --- symbolic links; by default a node is none and cannot become one: EINVAL, EOPNOTSUPP
    // ------------------------------------------------------

    /// Returns where a symbolic link leads, as it is written there. Errors:
    /// EINVAL for anything else.
    [[nodiscard]] virtual result<std::string> read_link() noexcept;
    /// Turns an empty file or directory that only this holds into a symbolic link with its name,
    /// and back, with an empty `target`. It is another file then, and its data is not open any
    /// more. Errors: ENOTEMPTY; EMLINK if the file has other names, by which it would still be
    /// found; EINVAL; as create for the link.
    [[nodiscard]] virtual result<void> become_link(std::string_view target) noexcept;

protected:
    node_attached() = default;
    ~node_attached() = default;
};

/// Returns this part of a node. Errors: EOPNOTSUPP if its volume stores none of it.
/// Allocates, Blocks: nothing. Any thread.
[[nodiscard]] inline result<node_attached*> attached_of(node& of) noexcept {
    if (node_attached* const part = of.attached(); part != nullptr) return part;
    return failure({EOPNOTSUPP, "use streams, attributes or links"});
}

/// Opens a named stream of a node, as node_attached::open_stream. Errors: also as attached_of.
/// Blocks: for the file system.
[[nodiscard]] inline result<node_ptr> open_stream(node& of, const stream_request& wanted) noexcept {
    const auto part = attached_of(of);
    return part ? (*part)->open_stream(wanted) : result<node_ptr>(failure(part.error()));
}

}  // namespace sluice::vfs
