#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/vfs/node.hpp"
#include "sluice/vfs/short_name.hpp"

namespace sluice::vfs {

/// The action if a new name already exists.
enum class when_taken : std::uint8_t {
    refuse,   ///< EEXIST
    replace,  ///< a file replaces a file; the old one exists as long as it is open
};

/// A file as one of its names shows it at one moment. While two are equal, nothing has changed the
/// file in between, except within one tick of the file system's clock.
struct name_identity {
    file_key key{};
    time_point changed{};  // from the file system, even if a client has set another

    [[nodiscard]] friend bool operator==(const name_identity&, const name_identity&) noexcept = default;
};

/// Where a node has its name: the directory, and the name in the case of its entry there.
struct name_place {
    file_key directory{};
    std::string name;
    name_identity identity{};
};

/// The name of a file, directory, link or stream: a part of a node. Errors of every call: EROFS;
/// EACCES, EPERM; EBUSY for the root.
/// Thread safety, Blocks: as node.
class node_names {
public:
    node_names(const node_names&) = delete;
    node_names& operator=(const node_names&) = delete;

    /// Renames it. Errors: EEXIST; ENOENT, ENOTDIR as volume::find for the parent; ENOTEMPTY,
    /// EISDIR, ENOTDIR if the existing file cannot be replaced; EINVAL for a directory into itself;
    /// EXDEV. For a stream, `path` is the new stream name.
    [[nodiscard]] virtual result<void> rename(std::string_view path, when_taken taken) noexcept = 0;
    /// Updates the name after a rename through another node of this stream. Does nothing for other
    /// nodes. Allocates: the name. Blocks: nothing.
    virtual void follow_stream_name(std::string_view /*name*/) noexcept {}
    /// Adds a name to a file. Errors: as rename; EPERM for directories; EMLINK. The default
    /// implementation fails with EOPNOTSUPP: streams, and volumes without hard links.
    [[nodiscard]] virtual result<void> link(std::string_view path, when_taken taken) noexcept;
    /// Returns its short name, which a lookup finds like its name. Empty if it has none: on volumes
    /// without short names (the default), for streams, and for names that have the form of one.
    /// Errors: also ENOENT.
    [[nodiscard]] virtual result<short_name> alternate_name() noexcept { return short_name{}; }
    /// Sets its short name; an empty one removes it. Errors: EEXIST if another file of the
    /// directory has it as name or short name; ENOENT, ENOSPC; EOPNOTSUPP, as by default, and if
    /// the directory has too many files.
    [[nodiscard]] virtual result<void> set_alternate_name(const short_name& name) noexcept;
    /// Returns where its name is now; one of the names, if it has several; for a stream, that of
    /// its file. Needs no right to the directory. Errors: ENOENT if it has no name; EBUSY for the
    /// root; EAGAIN; EOPNOTSUPP, as by default. Allocates: the name.
    [[nodiscard]] virtual result<name_place> place() noexcept;
    /// Removes its name for a client that deletes the file: as remove(), but a volume with a
    /// recycle bin moves a regular file there. Errors: also EXDEV if the bin is on another file
    /// system; ENOSPC. The file then keeps its name.
    [[nodiscard]] virtual result<void> recycle() noexcept { return remove(); }
    /// Returns whether the path by which the file was found is no longer one of this file: another
    /// server has moved it, to a recycle bin perhaps. A caller that wants the file of that path
    /// treats it as removed.
    [[nodiscard]] virtual bool has_lost_name() noexcept { return false; }
    /// Removes its name; for a stream, the stream. The node remains usable. Errors: ENOENT,
    /// ENOTEMPTY.
    [[nodiscard]] virtual result<void> remove() noexcept = 0;

protected:
    node_names() = default;
    ~node_names() = default;
};

inline result<void> node_names::link(std::string_view /*path*/, when_taken /*taken*/) noexcept {
    return failure({EOPNOTSUPP, "link"});
}

inline result<name_place> node_names::place() noexcept {
    return failure({EOPNOTSUPP, "find the name"});
}

inline result<void> node_names::set_alternate_name(const short_name& /*name*/) noexcept {
    return failure({EOPNOTSUPP, "set short name"});
}

/// Returns the name part of a node. Errors: EOPNOTSUPP if it has none. Allocates, Blocks: nothing.
/// Any thread.
[[nodiscard]] inline result<node_names*> names_of(node& of) noexcept {
    if (node_names* const part = of.names(); part != nullptr) return part;
    return failure({EOPNOTSUPP, "change a name"});
}

/// Removes the name of a node for a client, as node_names::recycle. Errors: also as names_of.
/// Blocks: for the file system.
[[nodiscard]] inline result<void> recycle(node& of) noexcept {
    const auto part = names_of(of);
    return part ? (*part)->recycle() : result<void>(failure(part.error()));
}

/// Returns whether a file has lost the name by which it was found, as node_names::has_lost_name.
/// Blocks: for the file system.
[[nodiscard]] inline bool has_lost_name(node& of) noexcept {
    node_names* const part = of.names();
    return part != nullptr and part->has_lost_name();
}

/// Removes the name of a node, as node_names::remove. Errors: also as names_of. Blocks:
/// for the file system.
[[nodiscard]] inline result<void> remove(node& of) noexcept {
    const auto part = names_of(of);
    return part ? (*part)->remove() : result<void>(failure(part.error()));
}

}  // namespace sluice::vfs
