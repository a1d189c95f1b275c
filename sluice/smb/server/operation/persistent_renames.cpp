#include "sluice/smb/server/operation/persistent_renames.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sluice/smb/server/operation/persistent_opens.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

using open_list = std::vector<std::shared_ptr<open>>;

// The opens of a file and of its streams that have a record, by whatever name, and those that have
// been closed and only remove it. The file is marked, so no other one gets a record.
[[nodiscard]] open_list recorded_opens(server_context& host, const open& by) {
    const std::shared_ptr<file_state> file = by.file->base != nullptr ? by.file->base : by.file;
    ENSURE(file->base == nullptr, "the file of a stream is not a stream");
    open_list found;
    const file_section held(*file);
    const auto add = [&](open& one) {
        if (one.in_file(held).persistent != nullptr) found.push_back(one.shared_from_this());
    };
    const auto add_all = [&](file_state& each) {
        for (open* const one : each.opens(held))
            add(*one);
        for (const std::shared_ptr<open>& one : each.removers(held))
            if (std::ranges::find(each.opens(held), one.get()) == each.opens(held).end()) add(*one);
    };
    add_all(*file);
    for (const std::shared_ptr<file_state>& stream : host.files.streams_of(held, *file))
        add_all(*stream);
    return found;
}

// Calls `change` with the record of an open, and stores it.
template <class Change>
void change_record(open& one, Change change) noexcept {
    const file_section held(*one.file);
    persistence* const its = one.in_file(held).persistent.get();
    if (its == nullptr) return;
    change(*its);
    record_state(held, one);
}

// Whether a path in the share of `by` leads to the same file in that of `one`: both shares have the
// same journal, or the file has the same place and path in both.
[[nodiscard]] bool has_same_root(const open& one, const open& by) {
    if (one.through->configuration().journal == by.through->configuration().journal) return true;
    return one.node->location() == by.node->location() and one.node->path() == by.node->path();
}

}  // namespace

nt_status begin_rename(server_context& host, open& by, std::string_view target) noexcept {
    if (not host.has_persistent_opens()) return nt_status::success;
    const open_list recorded = recorded_opens(host, by);
    if (recorded.empty()) return nt_status::success;
    if (target.size() > handle_record::path_bytes_max) return nt_status::insufficient_resources;
    if (not std::ranges::all_of(recorded, [&](const auto& one) { return has_same_root(*one, by); }))
        return nt_status::access_denied;
    for (const std::shared_ptr<open>& one : recorded)
        change_record(*one, [&](persistence& its) { its.other_path = target; });
    return nt_status::success;
}

void end_rename(server_context& host, open& by, bool has_succeeded) noexcept {
    if (not host.has_persistent_opens()) return;
    for (const std::shared_ptr<open>& one : recorded_opens(host, by)) {
        // Not in the section, because it asks the kernel. The path that the client has named may
        // lead through links; the one without them may be too long for the record.
        std::string now = one->node->path();
        change_record(*one, [&](persistence& its) {
            ENSURE(not its.path.empty(), "a record has a name");
            if (now.size() > handle_record::path_bytes_max) now = has_succeeded ? its.other_path : its.path;
            // The node may not know its new name, for example if it held another name of the file.
            if (has_succeeded and now == its.path) return;
            // The client knows the old name until it gets the reply.
            its.other_path = has_succeeded ? std::exchange(its.path, std::move(now)) : std::string();
        });
    }
}

}  // namespace sluice::smb::server
