#include "sluice/cli/serve/serve_shares.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/cli/hardening/openat2.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/serve/serve_rules.hpp"
#include "sluice/cli/serve/share_snapshots.hpp"
#include "sluice/cli/serve/share_streams.hpp"
#include "sluice/vfs/host/host_snapshots.hpp"
#include "sluice/vfs/host/host_volume.hpp"

namespace sluice::cli {

namespace {

[[nodiscard]] bool is_image(const std::string& path) {
    std::error_code unknown;
    return std::filesystem::exists(parse_image(path).file, unknown) and
           not std::filesystem::is_directory(path, unknown);
}

// Returns whether any share of an image is writable: the shares have one engine.
[[nodiscard]] bool is_written(const serve_options& options, const share_options& image) {
    return not options.read_only and std::ranges::any_of(options.shares, [&](const share_options& each) {
        return not each.read_only and is_image(each.path) and is_same_image(each.path, image.path);
    });
}

[[nodiscard]] smb::server::guest_access guests_of(const share_options& share, const serve_options& options) {
    using enum smb::server::guest_access;
    if (share.guest.empty()) return options.guest_write ? write : read;
    if (share.guest == "off") return none;
    return share.guest == "write" ? write : read;
}

// The configuration of a share, without the volume.
[[nodiscard]] smb::server::share_configuration configuration_of(const share_options& share,
                                                                const serve_options& options,
                                                                bool read_only) {
    smb::server::share_configuration configuration;
    configuration.name = share.name;
    configuration.comment = share.comment;
    configuration.source = share.referral.empty() ? share.path + text_of(share.image) : referral_text(share);
    std::ranges::transform(share.referral, std::back_inserter(configuration.referral), referral_path);
    configuration.size_limit_bytes = share.size_limit;
    configuration.is_read_only = read_only;
    configuration.is_hidden = share.hidden or share.name.ends_with('$');
    configuration.hides_unreadable = share.hide_unreadable and share.referral.empty();
    ENSURE(share.expanded.connect.is_given() != share.users.empty(), "expand_users() was called");
    configuration.users = share.expanded.connect;
    configuration.read_only_users = share.expanded.read_only;
    configuration.write_users = share.expanded.write;
    configuration.auditors = share.expanded.audit;
    configuration.guests = guests_of(share, options);
    configuration.hosts = host_rules_of(share.allowed_hosts, share.denied_hosts);
    if (share.encrypt) configuration.encryption = smb::server::protection::required;
    return configuration;
}

}  // namespace

std::string ambiguity_of_pattern(const serve_options& options, const share_roots& answered) {
    const std::string& general = options.previous_versions;
    const auto inherits = [&](const share_options& each) {
        const auto root = answered.find(each.path);
        return each.referral.empty() and each.previous_versions.empty() and root != answered.end() and
               root->second and root->second->is_directory;
    };
    if (not general.starts_with('/') or std::ranges::count_if(options.shares, inherits) < 2) return {};
    return fmt::format(
        "invalid value '{}' for previous-versions: it would apply to several shares; use a path that is "
        "relative to each of them, or set it for each share",
        general);
}

std::string problem_of_image(const share_options& share) {
    if (share.offloads) return share.path + ": 'offload' does not apply to disk images";
    if (share.files != share_file_rules{})
        return share.path +
               ": 'owner', 'group', 'file-mode', 'folder-mode', 'inherit-owner', 'hide', "
               "'hide-dot-files', 'reject' and 'recycle' do not apply to disk images; remove them";
    if (share.short_names == "off")
        return share.path + ": disk images always have short names; remove 'short-names'";
    if (not share.previous_versions.empty() and share.previous_versions != no_previous_versions)
        return share.path + ": 'previous-versions' does not apply to disk images";
    return "";
}

std::string problem_of_directory(const share_options& share) {
    if (share.image == image_options{}) return "";
    return share.path + ": not a disk image, which is required for" + text_of(share.image);
}

share_opener::reopened share_opener::open(const serve_options& options) {
    share_roots roots;
    if (not options.homes.empty()) roots = find_home_roots(options, from_.account_of);
    for (const share_options& share : options.shares) {
        if (not share.referral.empty() or share.is_home) continue;
        roots.emplace(share.path, answer_of(find_share_root(share.path)));
        if (const std::string snapshots = snapshot_directory_of(options, share); not snapshots.empty())
            roots.emplace(snapshots, answer_of(find_share_root(snapshots)));
    }
    return reopen(options, roots);
}

share_opener::reopened share_opener::reopen(const serve_options& options, const share_roots& answered) {
    serve_options answering = options;  // a call for another share could hang
    std::erase_if(answering.shares,
                  [&](const share_options& share) { return not answered.contains(share.path); });
    reopened done;
    if (std::string problem = ambiguity_of_pattern(options, answered); not problem.empty()) {
        done.shares = std::unexpected(std::move(problem));
        return done;
    }
    if (const auto opened = open_homes(options, answered); not opened) {
        done.shares = std::unexpected("homes: " + opened.error());
        return done;
    }
    std::vector<served> next;
    for (const share_options& share : options.shares) {
        if (not share.referral.empty()) {
            done.shares->push_back(configuration_of(share, options, false));
            continue;
        }
        const streams_root streams = streams_root_of(options.shares, share, answered);
        served one = wanted(share, options);
        one.streams_root = streams.path;
        std::shared_ptr<vfs::volume> volume;
        const auto root = answered.find(share.path);
        if (root != answered.end()) one.root = known_root(root->second);
        if (root != answered.end() and share.is_home and not one.root) {
            done.without_homes.push_back({.user = share.name, .why = root->second.error()});
            continue;
        }
        if (root != answered.end() and streams.unanswered.empty()) {
            auto opened = volume_of(one, answering);
            // The directory of one user must not stop the others.
            if (not opened and share.is_home) {
                done.without_homes.push_back({.user = share.name, .why = opened.error()});
                continue;
            }
            if (not opened) {
                done.shares = std::unexpected(fmt::format("share '{}': {}", share.name, opened.error()));
                return done;
            }
            volume = *std::move(opened);
        } else {
            const std::string awaited = share.is_home ? roots_of_homes(options) : share.path;
            volume = keep(one, root != answered.end() ? streams.unanswered : awaited, done);
            if (volume == nullptr) continue;
        }
        one.volume = volume;
        auto snapshots = snapshots_of(one, options, answered, done);
        if (not snapshots) {
            done.shares = std::unexpected(fmt::format("share '{}': {}", share.name, snapshots.error()));
            return done;
        }
        one.snapshots = *snapshots;
        if (*snapshots != nullptr) from_.domains.add(share.name, **snapshots);
        done.shares->push_back(
            configuration_of(share, options, share.read_only or options.read_only or one.read_only));
        one.files_number = number_of_files(one);
        done.shares->back().file_rules = one.files_number;
        done.shares->back().volume = std::move(volume);
        done.shares->back().snapshots = *std::move(snapshots);
        if (is_continuously_available(options, share) and from_.journals != nullptr) {
            // Null: a reload has added it. The next start of the server opens its journal.
            done.shares->back().journal = from_.journals->of(share);
            done.shares->back().continuous_availability = done.shares->back().journal != nullptr;
        }
        next.push_back(std::move(one));
    }
    now_ = std::move(next);
    return done;
}

// A share with these options, before the calls of its file system.
share_opener::served share_opener::wanted(const share_options& share, const serve_options& options) {
    return {.share = share,
            .root = {},
            .read_only = share.read_only or options.read_only,
            .offloads = share.offloads or options.offload,
            .short_names = (share.short_names.empty() ? options.short_names : share.short_names) == "on",
            .quotas = options.quotas,
            .files = share.files,
            .volume = {},
            .pattern = std::string(snapshot_pattern_of(options, share))};
}

// The number of the rules that the share's volume has: as long as they are the same, that of the
// share of this name.
std::uint64_t share_opener::number_of_files(const served& one) {
    const auto now =
        std::ranges::find_if(now_, [&](const served& each) { return each.share.name == one.share.name; });
    return now != now_.end() and now->files == one.files ? now->files_number : ++files_numbers_;
}

// The volume that the server has, or a new one.
share_opener::volume_result share_opener::volume_of(const served& wanted, const serve_options& options) {
    const share_options& share = wanted.share;
    if (wanted.root and wanted.root->is_directory and share.image == image_options{})
        for (const served& now : now_)
            if (now.is_same_directory(wanted))
                if (auto volume = now.volume.lock()) {
                    from_.domains.add(share.name, *volume);
                    return volume;
                }
    if (const std::string why = from_.hardening.why_not(share, wanted.read_only); not why.empty())
        return std::unexpected(why);
    if (not share.is_home and is_image(share.path)) return open_image(share, options);
    return open_directory(wanted);
}

share_opener::volume_result share_opener::open_image(const share_options& share,
                                                     const serve_options& options) {
    if (std::string problem = problem_of_image(share); not problem.empty()) return std::unexpected(problem);
    return from_.images.open(
        {.name = share.path, .options = share.image, .is_written = is_written(options, share)});
}

// Opens the directory of the directories of users, if its file system has answered.
std::expected<void, std::string> share_opener::open_homes(const serve_options& options,
                                                          const share_roots& answered) {
    homes_.reset();
    const auto is_answered = [&](const share_options& share) {
        return share.is_home and answered.contains(share.path);
    };
    if (std::ranges::none_of(options.shares, is_answered)) return {};
    auto homes = home_directories::open(options, from_.account_of);
    if (not homes) return std::unexpected(std::move(homes.error()));
    if (std::string why = from_.hardening.why_not_read(options.homes); not why.empty())
        return std::unexpected(std::move(why));
    homes_ = *std::move(homes);
    return {};
}

// No link can be on the way to the directory of a user.
std::expected<io::path_handle, std::string> share_opener::open_root(const share_options& share) const {
    if (share.is_home) return homes_->open_home(share.name);
    auto opened = io::path_handle::open(share.path, io::confinement::beneath);
    if (not opened) return std::unexpected(about(share.path, opened.error()));
    return *std::move(opened);
}

share_opener::volume_result share_opener::open_directory(const served& wanted) {
    const share_options& share = wanted.share;
    if (std::string problem = problem_of_directory(share); not problem.empty())
        return std::unexpected(problem);
    auto root = open_root(share);
    if (not root) return std::unexpected(std::move(root.error()));
    auto opened = vfs::host_volume::open(from_.loop, *std::move(root),
                                         {.read_only = wanted.read_only,
                                          .short_names = wanted.short_names,
                                          .offers_quotas = wanted.quotas,
                                          .created = wanted.files.created,
                                          .hidden_names = wanted.files.hidden_names,
                                          .rejected_names = wanted.files.rejected_names,
                                          .recycle = wanted.files.recycle,
                                          .streams_root = wanted.streams_root,
                                          .domains = &from_.domains.table(),
                                          .offload_always = wanted.offloads});
    if (not opened) {
        std::string why = about(share.path, opened.error());
        if (is_for_lack_of_openat2(opened.error())) why += fmt::format("; {}", openat2_remedy);
        return std::unexpected(std::move(why));
    }
    from_.domains.add(share.name, **opened);
    return *std::move(opened);
}

// The snapshots that the server has, or those of the directory; null if the share has none.
share_opener::snapshots_result share_opener::snapshots_of(served& one, const serve_options& options,
                                                          const share_roots& answered, reopened& done) {
    const std::string where = snapshot_directory_of(options, one.share);
    if (where.empty()) return nullptr;
    const bool is_image = one.root and not one.root->is_directory;
    if (is_image) return nullptr;
    const auto root = answered.find(where);
    const bool has_answered = root != answered.end();
    if (has_answered) one.snapshot_root = known_root(root->second);
    for (const served& now : now_) {
        const bool is_same = now.is_same_directory(one) and now.pattern == one.pattern and
                             (not has_answered or now.snapshot_root == one.snapshot_root);
        if (not is_same) continue;
        one.snapshot_root = now.snapshot_root;
        if (auto known = now.snapshots.lock()) return known;
    }
    if (has_answered) return open_snapshots(one, where, done);
    done.needed.push_back(where);
    done.without_snapshots.push_back(one.share);
    done.without_snapshots.back().path = where;
    return nullptr;
}

share_opener::snapshots_result share_opener::open_snapshots(const served& one, const std::string& where,
                                                            reopened& done) {
    std::string why = from_.hardening.why_not_read(where);
    if (why.empty()) {
        auto pattern = vfs::snapshot_pattern::parse(one.pattern);
        ENSURE(pattern.has_value(), "checked when the options were read");
        auto opened = vfs::host_snapshots::open(from_.loop, one.share.path, *std::move(pattern),
                                                {.short_names = one.short_names,
                                                 .hidden_names = one.files.hidden_names,
                                                 .rejected_names = one.files.rejected_names,
                                                 .label = one.share.name,
                                                 .domains = &from_.domains.table(),
                                                 .offload_always = one.offloads});
        if (opened) return *std::move(opened);
        why = about(where, opened.error()) + std::string(vfs::remedy_for_snapshots(opened.error()));
    }
    // A pattern for all shares may suit some of them only. And clients may remove the directory,
    // which must not prevent a reload.
    const bool must_exist = not one.share.previous_versions.empty() and now_.empty();
    if (must_exist) return std::unexpected("previous-versions: " + why);
    done.missing_snapshots.push_back({.share = one.share.name, .why = std::move(why)});
    return nullptr;
}

// The volume of a share that cannot be opened before the file system of `awaited` answers, if the
// server has it by this name. `one` gets the options that this volume was opened with.
std::shared_ptr<vfs::volume> share_opener::keep(served& one, const std::string& awaited,
                                                reopened& done) const {
    const auto now = std::ranges::find_if(now_, [&](const served& each) {
        return each.share.name == one.share.name and each.share.path == one.share.path and
               each.share.is_home == one.share.is_home;
    });
    std::shared_ptr<vfs::volume> volume = now != now_.end() ? now->volume.lock() : nullptr;
    const bool is_same_root = volume != nullptr and (not one.root or one.root == now->root);
    const bool is_complete = is_same_root and now->read_only == one.read_only and
                             now->offloads == one.offloads and now->short_names == one.short_names and
                             now->quotas == one.quotas and now->files == one.files and
                             now->streams_root == one.streams_root;
    if (not is_complete) done.needed.push_back(awaited);
    share_options reported = one.share;
    reported.path = awaited;
    // One report for the directories of all users.
    std::vector<share_options>& reports = volume != nullptr ? done.kept : done.left_out;
    if (not one.share.is_home or std::ranges::find(reports, true, &share_options::is_home) == reports.end())
        reports.push_back(std::move(reported));
    if (volume == nullptr) return nullptr;
    one.root = now->root;
    one.read_only = now->read_only;
    one.offloads = now->offloads;
    one.short_names = now->short_names;
    one.quotas = now->quotas;
    one.files = now->files;
    one.streams_root = now->streams_root;
    return volume;
}

}  // namespace sluice::cli
