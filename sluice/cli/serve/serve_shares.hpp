#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/fat/image/image_share.hpp"
#include "sluice/cli/hardening/hardening.hpp"
#include "sluice/cli/serve/homes/home_directories.hpp"
#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/share_domains.hpp"
#include "sluice/cli/serve/share_journals.hpp"
#include "sluice/cli/serve/share_root.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/smb/server/session/configuration.hpp"
#include "sluice/vfs/snapshot/snapshots.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::cli {

/// The objects that the shares of `sluice serve` are opened with. All outlive the shares.
struct share_sources {
    io::io_multiplexer& loop;  // the first one
    served_images& images;
    share_domains& domains;
    const server_hardening& hardening;
    const share_journals* journals = nullptr;  // of persistent handles; null: none
    account_lookup account_of{};               // for new directories of users
};

/// Either all shares, or the reason why one of them cannot be opened.
using opened_shares = std::expected<std::vector<smb::server::share_configuration>, std::string>;

// Each of these functions returns the reason why a share cannot be served, or an empty text.
// Allocates: the text. Blocks: nothing.

/// Checks the settings of a share that is a disk image.
[[nodiscard]] std::string problem_of_image(const share_options& share);
/// Checks the settings of a share that is a directory.
[[nodiscard]] std::string problem_of_directory(const share_options& share);
/// Checks that the general pattern of previous versions can be that of all shares that inherit it.
[[nodiscard]] std::string ambiguity_of_pattern(const serve_options& options, const share_roots& answered);

/// Opens the shares of `sluice serve`, and again when the configuration is reloaded.
///
/// Loop-owned. Allocates: yes.
class share_opener {
public:
    explicit share_opener(share_sources from) noexcept : from_(std::move(from)) {}

    /// A share without previous versions, because the directory of its snapshots cannot be opened.
    struct missing_directory {
        std::string share;
        std::string why;
    };
    struct reopened {
        opened_shares shares;
        // Their file systems do not answer, or those of the stores of their streams: `path` is on
        // it. The server has the volumes of the first, but not of the second.
        std::vector<share_options> kept{};
        std::vector<share_options> left_out{};
        // The file systems of their snapshots do not answer: `path` is the directory of these.
        std::vector<share_options> without_snapshots{};
        std::vector<missing_directory> missing_snapshots{};
        // The users whose directories cannot be opened.
        std::vector<user_without_home> without_homes{};
        std::vector<std::string> needed{};  // the paths of those whose options need an answer
    };
    /// Opens all shares of the options. Blocks: for their file systems.
    [[nodiscard]] reopened open(const serve_options& options);

    /// Opens the shares of the options whose file systems have answered. A directory whose root and
    /// options are the same keeps its volume. A share whose file system has not answered keeps its
    /// volume, if it is served by the same name from the same path; otherwise it is left out. The
    /// same applies to a share within a share that has not answered, because the large streams of
    /// its files are there. No call for these shares. On error, the next call compares with the
    /// shares of the last success. Blocks: for the file systems that have answered.
    [[nodiscard]] reopened reopen(const serve_options& options, const share_roots& answered);

private:
    struct served {
        share_options share;
        std::optional<share_root> root;
        bool read_only = false;
        bool offloads = false;
        bool short_names = false;
        bool quotas = false;
        share_file_rules files{};
        std::uint64_t files_number = 0;  // another one for other rules
        std::string streams_root{};      // the root that has its large streams
        std::weak_ptr<vfs::volume> volume;
        std::string pattern{};                      // for its snapshots; empty: it has none
        std::optional<share_root> snapshot_root{};  // the directory that contains them
        std::weak_ptr<vfs::snapshots> snapshots{};

        [[nodiscard]] bool is_same_directory(const served& other) const {
            return share.path == other.share.path and share.is_home == other.share.is_home and
                   root == other.root and read_only == other.read_only and offloads == other.offloads and
                   short_names == other.short_names and quotas == other.quotas and files == other.files and
                   streams_root == other.streams_root;
        }
    };
    using volume_result = std::expected<std::shared_ptr<vfs::volume>, std::string>;

    [[nodiscard]] volume_result volume_of(const served& wanted, const serve_options& options);
    [[nodiscard]] volume_result open_image(const share_options& share, const serve_options& options);
    [[nodiscard]] volume_result open_directory(const served& wanted);
    [[nodiscard]] std::expected<io::path_handle, std::string> open_root(const share_options& share) const;
    [[nodiscard]] std::expected<void, std::string> open_homes(const serve_options& options,
                                                              const share_roots& answered);
    [[nodiscard]] static served wanted(const share_options& share, const serve_options& options);
    using snapshots_result = std::expected<std::shared_ptr<vfs::snapshots>, std::string>;
    [[nodiscard]] snapshots_result snapshots_of(served& one, const serve_options& options,
                                                const share_roots& answered, reopened& done);
    [[nodiscard]] snapshots_result open_snapshots(const served& one, const std::string& where,
                                                  reopened& done);
    [[nodiscard]] std::shared_ptr<vfs::volume> keep(served& one, const std::string& awaited,
                                                    reopened& done) const;

    [[nodiscard]] std::uint64_t number_of_files(const served& one);

    share_sources from_;
    std::uint64_t files_numbers_ = 0;
    std::vector<served> now_;  // as the server has them
    std::optional<home_directories> homes_;
};

}  // namespace sluice::cli
