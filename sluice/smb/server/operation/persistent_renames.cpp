#include "sluice/smb/server/operation/persistent_renames.hpp"

#include "sluice/smb/server/operation/persistent_opens.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// Visits the persistent opens of a file and of its streams, by whatever name. If the rename concerns
// another name of the file, a second name in the record leads to the same file.
template <class Visit>
void for_each_record(server_context& host, open& by, Visit visit) noexcept {
    const std::shared_ptr<file_state> file = by.file->base != nullptr ? by.file->base : by.file;
    ENSURE(file->base == nullptr, "the file of a stream is not a stream");
    const file_section held(*file);
    const auto visit_all = [&](file_state& each) {
        if (each.persistent_opens(held) == 0) return;
        for (open* const one : each.opens(held))
            if (persistence* const its = one->in_file(held).persistent.get()) visit(held, *one, *its);
    };
    visit_all(*file);
    for (const std::shared_ptr<file_state>& stream : host.files.streams_of(file->key(held)))
        visit_all(*stream);
}

}  // namespace

nt_status begin_rename(server_context& host, open& by, std::string_view target) noexcept {
    if (not host.has_persistent_opens() or by.is_directory()) return nt_status::success;
    nt_status status = nt_status::success;
    const handle_journal* const journal = by.through->configuration().journal.get();
    for_each_record(host, by, [&](const file_section&, open& one, persistence&) {
        if (target.size() > handle_record::path_bytes_max) status = nt_status::insufficient_resources;
        if (one.through->configuration().journal.get() != journal) status = nt_status::access_denied;
    });
    if (status != nt_status::success) return status;
    for_each_record(host, by, [&](const file_section& held, open& one, persistence& its) {
        its.other_path = target;
        record_state(held, one);
    });
    return nt_status::success;
}

void end_rename(server_context& host, open& by) noexcept {
    if (not host.has_persistent_opens() or by.is_directory()) return;
    for_each_record(host, by, [](const file_section& held, open& one, persistence& its) {
        ENSURE(not its.path.empty(), "a record has a name");
        its.path = one.node->path();
        its.other_path.clear();
        record_state(held, one);
    });
}

}  // namespace sluice::smb::server
