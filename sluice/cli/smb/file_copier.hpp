#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/cli/fat/progress.hpp"
#include "sluice/cli/smb/partial_names.hpp"
#include "sluice/cli/smb/remote_tree.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::cli {

/// An interrupted copy of a shorter file starts over: that costs less than verifying the partial
/// file.
inline constexpr std::uint64_t resumable_bytes_min = 1U << 20;

/// The length of the end of a partial file that is compared with the source before a copy is
/// resumed.
inline constexpr std::uint64_t compared_tail_bytes = 1U << 20;

/// The options that get and put share.
struct copy_options {
    remote_options remote;
    bool is_recursive = false;
    bool resumes = false;
    bool verifies = false;
    bool shows_progress = false;
    bool is_quiet = false;
    bool follows_links = false;  ///< of this machine, below a directory that is copied

    [[nodiscard]] progress_mode progress() const noexcept {
        if (is_quiet) return progress_mode::never;
        return shows_progress ? progress_mode::always : progress_mode::on_terminal;
    }
};
/// Adds --progress and --quiet.
void add_progress_options(command_syntax command, copy_options& options);

/// Copies files between a share and this machine, several at a time, with a progress bar: the
/// common part of get and put. A file that cannot be copied is reported, and the copy continues
/// with the others. Thread safety: one thread.
class file_copier {
public:
    /// The reason why a file was not copied; std::nullopt: it was copied.
    using copy_error = std::optional<std::string>;

    file_copier(const file_copier&) = delete;
    file_copier& operator=(const file_copier&) = delete;
    virtual ~file_copier() = default;

    /// Copies the files 0 to `count` - 1. Prints the reason and leaves if not all could be copied.
    /// Blocks.
    void run(std::size_t count);
    /// The same, and returns how many could not be copied, for which it has printed the reasons.
    [[nodiscard]] std::size_t copy_all(std::size_t count);

protected:
    /// Both outlive this; `total_bytes`: of all files.
    file_copier(remote_share& share, const copy_options& how, std::uint64_t total_bytes);

    /// Returns the path of a file on the share, for messages.
    [[nodiscard]] virtual const std::string& path_of(std::size_t file) const noexcept = 0;
    [[nodiscard]] virtual io::task<copy_error> copy(std::size_t file) noexcept = 0;

    /// Compares the bytes from `begin` to `end` of both files. Returns why they are not the same;
    /// std::nullopt if they are. Suspends. Allocates: a piece's buffer.
    [[nodiscard]] static io::task<copy_error> compare(smb::client::remote_file& remote, io::file_handle& here,
                                                      std::uint64_t begin, std::uint64_t end) noexcept;

    /// Returns whether the last compared_tail_bytes before `end` are the same in both files, of
    /// which neither may be longer than `whole`: the proof that an interrupted copy may be
    /// resumed at `end`. Suspends.
    [[nodiscard]] static io::task<smb::client::transferred<bool>> has_same_tail(
        smb::client::remote_file& remote, io::file_handle& here, std::uint64_t end,
        std::uint64_t whole) noexcept;

    /// Returns why a file that had the status `before` when the copy began is not the same version
    /// when it was closed; std::nullopt if it is. `after` is empty if the server did not report
    /// it; then it is queried.
    [[nodiscard]] io::task<copy_error> check_version(const std::string& path,
                                                     const smb::client::file_status& before,
                                                     smb::client::file_status after) noexcept;

    /// Returns the text of an error of a transfer, with a remedy if the disk of this machine is
    /// full.
    [[nodiscard]] static std::string message_of(const smb::client::transfer_error& why);

    /// Names of partial files. Prints a warning if --resume cannot find them.
    partial_names names_;
    remote_share& share_;
    const copy_options& how_;
    progress_bar progress_;

private:
    [[nodiscard]] io::task<void> copy_and_report(std::size_t file) noexcept;

    std::size_t done_ = 0;
};

}  // namespace sluice::cli
