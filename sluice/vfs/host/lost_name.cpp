#include "sluice/vfs/host/lost_name.hpp"

#include <cerrno>

#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/host_tree.hpp"

namespace sluice::vfs {
namespace {

bool is_missing(const error& why) noexcept {
    const int code = why.code();
    return code == ENOENT or code == ENOTDIR or code == ELOOP or code == ENOLINK;
}

}  // namespace

bool has_lost_name(host_tree& tree, const io::handle& file, std::string_view known) {
    if (known.empty()) return false;  // the root
    const account_identity::pause as_process;
    const auto itself = io::status_of(file, io::stat_fields::inode);
    if (not itself) return false;
    // The file may be a link, or what a link leads to.
    for (const io::follow links : {io::follow::no, io::follow::yes}) {
        const auto named = io::status_at(tree.root(), known, links, io::stat_fields::inode);
        if (named and named->is_same_inode(*itself)) return false;
        if (not named and not is_missing(named.error())) return false;
    }
    const std::string shown = shown_path(known);
    for (const follow_links links : {follow_links::no, follow_links::yes}) {
        const auto found = tree.open(shown, links, name_match::any_case);
        if (not found and not is_missing(found.error())) return false;
        if (not found) continue;
        const auto status = io::status_of(found->open, io::stat_fields::inode);
        if (not status or status->is_same_inode(*itself)) return false;
    }
    return true;
}

}  // namespace sluice::vfs
