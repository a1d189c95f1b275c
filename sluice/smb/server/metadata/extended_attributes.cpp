#include "sluice/smb/server/metadata/extended_attributes.hpp"

#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"
#include "sluice/vfs/node_attached.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// Names of EAs have no characters that are reserved for paths, streams and wildcards.
[[nodiscard]] bool is_ea_name(std::string_view name) noexcept {
    return name.find_first_of("\\/:*?\"<>|,+=[];") == std::string_view::npos;
}

}  // namespace

nt_status change_extended_attributes(vfs::node& node, bytes_view list) {
    wire::ea_list_reader checked(list);
    for (;;) {
        const auto next = checked.next();
        if (not next) return nt_status::ea_list_inconsistent;
        if (not*next) break;
        if (not is_ea_name((*next)->name)) return nt_status::invalid_ea_name;
    }
    const auto attached = vfs::attached_of(node);
    if (not attached) return status_of(attached.error());
    wire::ea_list_reader reader(list);
    for (auto next = reader.next(); next and *next; next = reader.next()) {
        const auto written = (*attached)->set_extended_attribute((*next)->name, (*next)->value.span());
        if (not written) return status_of(written.error());
    }
    return nt_status::success;
}

}  // namespace sluice::smb::server
