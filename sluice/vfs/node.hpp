#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/vfs/discardable.hpp"
#include "sluice/vfs/host_runs.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::vfs {

class fs_domain;
class node;
using node_ptr = std::unique_ptr<node>;

/// How a file's data is to be used.
struct data_access {
    bool read = false;
    bool write = false;
};

/// A named stream of a file, or one of its extended attributes.
struct stream_info {
    std::string name;  // without colons; never empty
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;
};
struct extended_attribute {
    std::string name;
    std::vector<std::byte> value;
};

/// One name in a directory. `name` is valid until the next call of the listing.
struct listed_name {
    std::string_view name;
    metadata status;
    bool leads_nowhere = false;  // a symbolic link whose target is missing or outside; `status` is the link's
};

/// The names of a directory, one after the other; `.` and `..` are not among them. A name that stands in the
/// directory throughout is given once; one created or removed meanwhile may come or not.
/// Thread safety: one thread at a time.
class directory_listing : public discardable {
public:
    /// The next name; null at the end. Symbolic links come with the status of what they lead to.
    /// Errors: EIO and those of the file system. Blocks: for the file system.
    [[nodiscard]] virtual result<const listed_name*> next() noexcept = 0;

protected:
    directory_listing() = default;
};

/// What to do when the new name of something is taken.
enum class when_taken : std::uint8_t {
    refuse,   ///< EEXIST
    replace,  ///< a file takes the place of a file; the other lives on while it is open
};

/// Something that exists in a volume and is held: a file, a directory, a symbolic link, or a named stream of
/// one. It stays what it is while its name changes or goes.
///
/// Paths are relative to the volume's root: UTF-8 (lone surrogates as WTF-8), components separated by '/', no
/// leading slash, no empty, `.` or `..` component; the root itself is the empty path. All look-ups ignore
/// case as the volume does.
///
/// Calls without co_ in their name block for the file system: they are what fs_domain::run() carries out.
/// Errors are errno values. What a kind of node cannot do fails with EOPNOTSUPP (streams of a stream, EAs
/// without xattr), ENOTDIR or EISDIR.
///
/// Thread safety: calls that read, and transfers, may run on any thread at any time, several of one node, and
/// during changes of it. Its caller serialises the changes of one node (change, open_data, truncate, rename,
/// follow_stream_name, remove, become_link), and, of one file through whatever node, the changes of its
/// attributes, streams, EAs and security. A view that a node returns is valid until the next change of what
/// it shows. A node may be destroyed on any thread. Coroutines are started on the thread of a loop of
/// volume::serve_on.
class node : public discardable {
public:
    /// That its calls run in: that of the volume, or of the file system that is mounted there.
    [[nodiscard]] virtual fs_domain& domain() noexcept = 0;

    [[nodiscard]] virtual node_kind kind() const noexcept = 0;
    [[nodiscard]] virtual file_key key() const noexcept = 0;
    /// Where it stands now as far as the volume knows: in the case it was created with.
    [[nodiscard]] virtual std::string path() const = 0;
    /// Its absolute path on the host, or in its image: nodes with the same file_key::image have comparable
    /// locations, whatever share they were found through. Two mounts of one directory have two locations.
    [[nodiscard]] virtual std::string location() const { return '/' + path(); }
    /// The name of the stream this is; empty for the unnamed one.
    [[nodiscard]] virtual std::string_view stream_name() const noexcept { return {}; }

    [[nodiscard]] virtual result<metadata> status() noexcept = 0;
    [[nodiscard]] virtual result<void> change(const metadata_change& wanted) noexcept = 0;

    // --- data of a file or a stream
    // -----------------------------------------------------------------------

    /// Whether co_read, co_write and co_flush need no order among each other: a stream's writes read all of
    /// it, change it and write it again. Where not, its caller serialises them for one file, and they never
    /// suspend in a domain whose calls run inline.
    [[nodiscard]] virtual bool transfers_at_once() const noexcept { return false; }

    /// Makes data accessible; again with more access widens it. Before, no transfer works (EBADF).
    /// Errors: EACCES, EPERM, EROFS, ETXTBSY, EISDIR; ENXIO for what is not a regular file.
    [[nodiscard]] virtual result<void> open_data(data_access wanted) noexcept = 0;
    /// Reads at `offset`; fewer bytes than asked for, or none, only at the end of the file. Here and below:
    /// `by` may be null; with it, what still waits for a worker can be withdrawn, and fails with ECANCELED.
    [[nodiscard]] virtual io::task<result<std::size_t>> co_read(
        std::span<std::byte> into, std::uint64_t offset, io::call_withdrawal* by = nullptr) noexcept = 0;
    /// Writes all of it at `offset`, lengthening the file if need be.
    [[nodiscard]] virtual io::task<result<void>> co_write(std::span<const std::byte> from,
                                                          std::uint64_t offset,
                                                          io::call_withdrawal* by = nullptr) noexcept = 0;
    /// Makes data and metadata durable. On a directory: its names.
    [[nodiscard]] virtual io::task<result<void>> co_flush(io::call_withdrawal* by = nullptr) noexcept = 0;
    /// The host's file, for copies that bypass us; null if there is none (streams, images).
    [[nodiscard]] virtual io::file_handle* host_file() noexcept { return nullptr; }
    /// Whether lend() may work: the data lies in a file of the host.
    [[nodiscard]] virtual bool lends() noexcept { return host_file() != nullptr; }
    /// Where a range of it lies there, for transfers that bypass us. What is written meanwhile may show.
    /// Errors: EOPNOTSUPP if it does not lend; E2BIG if it lies in more than `runs_max` runs; EAGAIN if to
    /// know it would take a wait.
    [[nodiscard]] virtual result<host_runs> lend(io::extent_pair range, std::size_t runs_max) noexcept;

    [[nodiscard]] virtual result<void> truncate(std::uint64_t size_bytes) noexcept = 0;
    /// Reserves room, without changing the size. Best effort: ENOSPC if there surely is not enough.
    [[nodiscard]] virtual result<void> allocate(std::uint64_t size_bytes) noexcept = 0;
    /// Makes [offset, offset+length) read as zeros; blocks are freed if `frees_blocks`. Never lengthens.
    [[nodiscard]] virtual result<void> zero(std::uint64_t offset, std::uint64_t length,
                                            bool frees_blocks) noexcept = 0;
    /// The ranges with data within [offset, offset+length), ascending, as many as `storage` holds.
    [[nodiscard]] virtual result<std::span<io::extent_pair>> allocated_ranges(
        std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept = 0;
    /// Copies within the volume, sharing blocks where possible. With `only_shared` fails with EOPNOTSUPP
    /// rather than copy. Returns how many bytes were cloned: fewer at the source's end.
    [[nodiscard]] virtual result<std::uint64_t> clone_to(node& destination, io::extent_pair source,
                                                         std::uint64_t destination_offset,
                                                         bool only_shared) noexcept = 0;

    // --- names
    // ----------------------------------------------------------------------------------------------

    /// Gives it another name. Errors: EEXIST; ENOENT, ENOTDIR as volume::find for the parent; ENOTEMPTY,
    /// EISDIR, ENOTDIR if what is there cannot be replaced; EINVAL for a directory into itself; EXDEV. Of a
    /// stream: `path` is the new stream name.
    [[nodiscard]] virtual result<void> rename(std::string_view path, when_taken taken) noexcept = 0;
    /// Takes the name that another node of this stream has given it. Does nothing for other nodes.
    virtual void follow_stream_name(std::string_view) noexcept {}
    /// Gives a file one more name. Errors: as rename; EPERM for directories; EMLINK; EOPNOTSUPP.
    [[nodiscard]] virtual result<void> link(std::string_view path, when_taken taken) noexcept = 0;
    /// Removes its name (of a stream: the stream). What is held stays usable. Errors: ENOTEMPTY, EBUSY.
    [[nodiscard]] virtual result<void> remove() noexcept = 0;
    /// Where a symbolic link leads, as it is written there.
    [[nodiscard]] virtual result<std::string> read_link() noexcept = 0;
    /// Turns an empty file or directory that only this holds into a symbolic link with its name, and back. It
    /// is another file then, and its data is not open any more. Errors: ENOTEMPTY; EMLINK if the file has
    /// other names, by which it would stay; EINVAL; as create for the link.
    [[nodiscard]] virtual result<void> become_link(std::string_view target) noexcept = 0;

    // --- what hangs on it
    // -----------------------------------------------------------------------------------

    [[nodiscard]] virtual result<std::vector<stream_info>> streams() noexcept = 0;
    /// A named stream. Errors: ENOENT if there is none and `create` is false; EEXIST if `create` and
    /// `exclusive` and there is one.
    struct stream_request {
        std::string_view name;
        bool create = false;
        bool exclusive = false;
    };
    [[nodiscard]] virtual result<node_ptr> open_stream(const stream_request& wanted) noexcept = 0;

    [[nodiscard]] virtual result<std::vector<extended_attribute>> extended_attributes() noexcept = 0;
    /// An empty value removes it. Names are compared without case, kept as first given.
    [[nodiscard]] virtual result<void> set_extended_attribute(std::string_view name,
                                                              std::span<const std::byte> value) noexcept = 0;

    /// The stored security descriptor, self-relative, as it was given; empty if none was.
    [[nodiscard]] virtual result<std::vector<std::byte>> security() noexcept = 0;
    /// The same for who knows the status, asked for just now.
    [[nodiscard]] virtual result<std::vector<std::byte>> security_as_of(const metadata&) noexcept {
        return security();
    }
    [[nodiscard]] virtual result<void> set_security(std::span<const std::byte> descriptor) noexcept = 0;

    // --- a directory
    // ----------------------------------------------------------------------------------------

    [[nodiscard]] virtual result<std::unique_ptr<directory_listing>> list() noexcept = 0;

protected:
    node() = default;
};

}  // namespace sluice::vfs
