#pragma once

#include <optional>
#include <string_view>

#include "sluice/smb/client/tree_connection.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"

namespace sluice::smb::client {

/// The times to set. Absent times are not changed.
struct file_times {
    wire::filetime created{};
    wire::filetime accessed{};
    wire::filetime written{};
};

/// A file or directory open on the server. `co_await co_close()` it; otherwise it stays open until
/// the session ends. Thread safety: the loop's thread. The tree outlives it.
class remote_file {
public:
    remote_file(tree_connection& in, wire::file_id id, const file_status& status) noexcept
        : tree_(in), id_(id), status_(status) {}

    /// Returns the status that the server reported when it was opened.
    [[nodiscard]] const file_status& status() const noexcept { return status_; }
    [[nodiscard]] wire::file_id id() const noexcept { return id_; }

    /// Reads at `offset_bytes` into `into`, which is not longer than read_bytes_max(). Returns the
    /// number of bytes: fewer at the end of the file, zero after it. `into` must stay valid until
    /// completion. If this fails, its content is unspecified. Errors: `status`, `io`, `protocol`.
    /// Allocates: nothing once warm, if the thread has an io::frame_pool. Suspends.
    [[nodiscard]] io::task<outcome<std::size_t>> co_read(mutable_bytes into,
                                                         std::uint64_t offset_bytes) noexcept;

    /// Writes `from` at `offset_bytes`. `from` is not longer than write_bytes_max() and must not
    /// change until completion. Returns the number of bytes that the server accepted. Errors,
    /// Allocates, Suspends: as co_read().
    [[nodiscard]] io::task<outcome<std::size_t>> co_write(
        bytes_view from, std::uint64_t offset_bytes,
        wire::write_flags flags = wire::write_flags::none) noexcept;

    [[nodiscard]] std::uint32_t read_bytes_max() const noexcept { return over().read_bytes_max(); }
    [[nodiscard]] std::uint32_t write_bytes_max() const noexcept { return over().write_bytes_max(); }

    /// Flushes the written data to the server's disk.
    [[nodiscard]] io::task<outcome<void>> co_flush() noexcept;

    /// Closes it. Returns the final status, if the server reports it.
    [[nodiscard]] io::task<outcome<file_status>> co_close() noexcept;

    /// Queries the current status.
    [[nodiscard]] io::task<outcome<file_status>> co_status() noexcept;
    /// Queries the number of the file on its volume, which differs from that of a new file with the
    /// same name. Returns 0 if the server does not support such numbers.
    [[nodiscard]] io::task<outcome<std::uint64_t>> co_file_number() noexcept;
    /// Queries whether it has streams besides that of its data ([MS-FSCC] 2.4.49). Returns false if
    /// the server does not support streams. Errors: as co_status(). Suspends.
    [[nodiscard]] io::task<outcome<bool>> co_has_named_streams() noexcept;
    [[nodiscard]] io::task<outcome<void>> set_size(std::uint64_t bytes) noexcept;
    [[nodiscard]] io::task<outcome<void>> set_times(file_times times) noexcept;
    /// Marks it for deletion on close. Errors: `directory_not_empty`, `cannot_delete`.
    [[nodiscard]] io::task<outcome<void>> delete_on_close() noexcept;
    [[nodiscard]] io::task<outcome<void>> rename(std::string to, bool replaces) noexcept;

    [[nodiscard]] tree_connection& in() const noexcept { return tree_; }

private:
    [[nodiscard]] connection& over() const noexcept { return tree_.of().first(); }
    [[nodiscard]] io::task<outcome<void>> set_information(const char* step,
                                                          wire::file_information_class which,
                                                          bytes_view encoded) noexcept;

    tree_connection& tree_;
    wire::file_id id_;
    file_status status_;
};

}  // namespace sluice::smb::client
