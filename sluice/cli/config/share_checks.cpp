#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/base/error.hpp"
#include "sluice/cli/config/checks.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/cli/serve/serve_shares.hpp"
#include "sluice/cli/serve/share_root.hpp"
#include "sluice/cli/serve/share_snapshots.hpp"

namespace sluice::cli {
namespace {

// The longest name that clients of Windows use ([MS-SRVS] 2.2.4.23: NNLEN).
constexpr std::size_t share_name_max = 80;

// A share with its table in the file.
struct checked_share {
    const share_options& share;
    const table_record& table;
    findings& to;

    void add_error(std::string_view key, std::string_view text) const {
        to.add_error(line_of(table, key), fmt::format("share '{}': {}", share.name, text));
    }
    void add_warning(std::string_view key, std::string_view text) const {
        to.add_warning(line_of(table, key), fmt::format("share '{}': {}", share.name, text));
    }
};

void check_name(const checked_share& one) {
    const std::string& name = one.share.name;
    if (equal_ignoring_case(std::string_view(name), std::string_view("ipc$")))
        one.add_error("name", "the name IPC$ is reserved for the protocol; use another name");
    if (name.size() > share_name_max)
        one.add_warning("name", fmt::format("the name has {} bytes, but clients may support only {}; use a "
                                            "shorter one",
                                            name.size(), share_name_max));
    if (name.find_first_of("\"/\\[]:|<>+=;,*?") != std::string::npos)
        one.add_warning("name",
                        "clients may reject this name; use none of \"/\\[]:|<>+=;,*? in the name of a share");
}

void check_image(const checked_share& one) {
    const share_options& share = one.share;
    if (const std::string problem = problem_of_image(share); not problem.empty())
        return one.add_error("path", problem);
    image_options read = share.image;
    if (read.journal and not read.overlay.empty())
        return one.add_error(
            "journal",
            fmt::format("{}: journal and overlay exclude each other; use one of them", share.path));
    read.overlay.clear();  // the server creates it
    const auto opened = image_stack::open(parse_image(share.path), image_use::read, read);
    if (not opened) one.add_error("path", opened.error().message);
}

void check_directory(const checked_share& one) {
    const share_options& share = one.share;
    if (const std::string problem = problem_of_directory(share); not problem.empty())
        return one.add_error("path", problem);
    if (::access(share.path.c_str(), R_OK | X_OK) != 0)
        return one.add_warning(
            "path",
            fmt::format("{}: this account cannot read the directory; make sure that the account of the "
                        "server has access",
                        share.path));
    if (not share.read_only and ::access(share.path.c_str(), W_OK) != 0)
        one.add_warning("path",
                        fmt::format("{}: this account cannot create files in the directory; make "
                                    "sure that the account of the server has access, or set read-only",
                                    share.path));
}

void check_path(const checked_share& one, share_roots& roots) {
    const std::string& path = one.share.path;
    const auto root = find_share_root(path);
    const int why_not = errno;
    roots.emplace(path, answer_of(root));
    std::error_code unknown;
    const bool is_partition = not root and std::filesystem::exists(parse_image(path).file, unknown);
    if (not root and not is_partition)
        return one.add_error("path", fmt::format("{}; create it, or correct the path",
                                                 error::with_path(why_not, "open", path).message()));
    if (not path.starts_with('/'))
        one.add_warning("path", fmt::format("path '{}' depends on the directory in which the server starts; "
                                            "use an absolute path",
                                            path));
    if (root and root->is_directory) return check_directory(one);
    if (root and not std::filesystem::is_regular_file(path, unknown) and
        not std::filesystem::is_block_file(path, unknown))
        return one.add_error("path", path + ": neither a directory nor a disk image; share one of them");
    check_image(one);
}

void check_snapshots(const serve_options& options, const checked_share& one, share_roots& roots) {
    const std::string where = snapshot_directory_of(options, one.share);
    if (where.empty()) return;
    roots.emplace(where, answer_of(find_share_root(where)));
    if (const auto& root = roots.at(where); not root or not root->is_directory)
        one.add_warning("previous-versions",
                        where + ": not a directory, so the share has no previous versions; create it");
}

// The server gives the second of two shares with one name another name.
void check_duplicates(const serve_options& options, findings& to) {
    std::map<std::string, unsigned> lines;
    for (const table_record& table : options.record->shares) {
        if (table.name.empty()) continue;
        const unsigned line = line_of(table, "name");
        const auto [first, is_new] = lines.emplace(fold(table.name), line);
        if (not is_new)
            to.add_warning(line, fmt::format("share '{}': the share of line {} has this name, too, so the "
                                             "server adds a number to it; use another name",
                                             table.name, first->second));
    }
}

}  // namespace

void check_shares(const serve_options& options, findings& to) {
    const configuration_record& record = *options.record;
    ENSURE(record.shares.size() == options.shares.size(), "all shares are those of the file");
    check_duplicates(options, to);
    share_roots roots;
    for (std::size_t i = 0; i != options.shares.size(); ++i) {
        const checked_share one{.share = options.shares[i], .table = record.shares[i], .to = to};
        check_name(one);
        if (not one.share.referral.empty()) continue;
        if (one.share.path.empty()) continue;  // the reader has reported it
        check_path(one, roots);
        check_snapshots(options, one, roots);
    }
    if (const std::string why = ambiguity_of_pattern(options, roots); not why.empty())
        to.add_error(line_of(record.server, "previous-versions"), why);
}

}  // namespace sluice::cli
