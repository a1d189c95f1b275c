#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/cli/fat/progress.hpp"
#include "sluice/cli/smb/remote_tree.hpp"
#include "sluice/io/file_handle.hpp"

namespace sluice::cli {

/// What get and put are told alike.
struct copy_options {
    remote_options remote;
    bool is_recursive = false;
    bool resumes = false;
    bool verifies = false;
};

/// Copies files between a share and this machine, several at a time, with a progress bar: what get and put
/// have in common. A file that cannot be copied is complained of, and the others go on. Thread safety: one
/// thread.
class file_copier {
public:
    /// Why a file was not copied; nothing: it was.
    using trouble = std::optional<std::string>;

    file_copier(const file_copier&) = delete;
    file_copier& operator=(const file_copier&) = delete;
    virtual ~file_copier() = default;

    /// Copies the files 0 to `count` - 1. Prints why and leaves if not all could be copied. Blocks.
    void run(std::size_t count);

protected:
    /// Both must outlive this; `total_bytes` of all files.
    file_copier(remote_share& share, const copy_options& how, std::uint64_t total_bytes)
        : share_(share), how_(how), progress_(total_bytes) {}

    /// The name on the share of a file, to complain of it.
    [[nodiscard]] virtual const std::string& path_of(std::size_t file) const noexcept = 0;
    [[nodiscard]] virtual io::task<trouble> copy(std::size_t file) noexcept = 0;

    /// Whether the first `end` bytes of both files are the same: reads everything once more.
    /// `if_shorter` is the trouble if the server's file ends before. Suspends. Allocates: a piece's buffer.
    [[nodiscard]] static io::task<trouble> compare(smb::client::remote_file& remote, io::file_handle& here,
                                                   std::uint64_t end, const char* if_shorter) noexcept;

    remote_share& share_;
    const copy_options& how_;
    progress_bar progress_;

private:
    [[nodiscard]] io::task<void> copy_or_complain(std::size_t file) noexcept;

    std::size_t done_ = 0;
};

}  // namespace sluice::cli
