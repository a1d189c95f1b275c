#include "sluice/smb/wire/file/query_directory.hpp"

#include <algorithm>

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/core/loop_wait.hpp"
#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/file/output_body.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::server {

using wire::nt_status;
using wire::query_directory_flags;

namespace {

[[nodiscard]] wire::file_information_class form_of(const wire::query_directory_args& args) noexcept {
    return static_cast<wire::file_information_class>(args.information_class);
}

[[nodiscard]] nt_status check(const request& r, const open& of,
                              const wire::query_directory_args& args) noexcept {
    if (not of.is_directory()) return nt_status::invalid_parameter;
    if (not of.grants(wire::access_mask::list_directory)) return nt_status::access_denied;
    if (not wire::is_directory_form(form_of(args))) return nt_status::invalid_info_class;
    const bool is_large = wire::has(r.connection().agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    if (args.output_bytes_max > bytes_max or not r.charge_covers(args.output_bytes_max))
        return nt_status::invalid_parameter;
    if (args.output_bytes_max < wire::directory_entry_bytes_min(form_of(args)))
        return nt_status::info_length_mismatch;
    return nt_status::success;
}

// The parameters of one query, and the destination of the names.
struct scan_request {
    std::string pattern;
    bool restarts = false;
    bool is_single = false;  // one name at most
    bool shows_short_names = false;
    wire::directory_entry_writer& list;
    set_change_times& times;
    std::uint64_t image = 0;             // the directory's file_key::image
    const accessor* shown_to = nullptr;  // whose unreadable names are omitted; null: all are shown
};

// A pattern is a name of a file that may have wildcards ([MS-FSCC] 2.1.5).
[[nodiscard]] std::expected<std::string, nt_status> pattern_of(const wire::query_directory_args& args) {
    auto pattern = wire::utf8_of(args.pattern);
    if (not pattern) return std::unexpected(nt_status::invalid_parameter);
    const bool is_invalid = std::ranges::any_of(*pattern, [](char c) {
        return static_cast<unsigned char>(c) < 0x20 or std::string_view("/\\:|").contains(c);
    });
    if (is_invalid or args.pattern.size() > 2 * limits::component_units_max)
        return std::unexpected(nt_status::object_name_invalid);
    return *std::move(pattern);
}

[[nodiscard]] wire::directory_entry_info entry_of(const vfs::listed_name& from,
                                                  const vfs::short_name& short_name, set_change_times& times,
                                                  std::uint64_t image) noexcept {
    vfs::metadata status = from.status;
    times.show_in(status, {.image = image, .volume = status.volume, .file = status.id});
    const wire::open_information known = open_information_of(status);
    wire::directory_entry_info entry{.fields = {.created = known.creation_time,
                                                .accessed = known.last_access_time,
                                                .written = known.last_write_time,
                                                .changed = known.change_time,
                                                .end_of_file = known.end_of_file_bytes,
                                                .allocation_bytes = known.allocation_bytes,
                                                .attributes = known.attributes,
                                                .file_number = from.status.id},
                                     .name = from.name,
                                     .short_name = short_name.view()};
    if (from.leads_nowhere) entry.fields.reparse_tag = wire::reparse_tag_symlink;
    // The parent of a share's root is not visible to clients ([MS-FSA] 2.1.5.6.3.8 permits 0).
    if (from.name == "..") entry.fields.file_number = 0;
    const le64 number(entry.fields.file_number);
    const bytes_view number_bytes = bytes_of(number);
    std::copy(number_bytes.begin(), number_bytes.end(), entry.fields.file_number_128_bits.begin());
    return entry;
}

// Subtracts the work from the names that the call may still examine.
[[nodiscard]] bool is_shown(directory_scan& scan, const vfs::listed_name& name, const accessor& to,
                            std::size_t& names_left) {
    if (name.name == "." or name.name == "..") return true;
    const result<std::vector<std::byte>> stored = scan.security();
    const std::size_t bytes = stored ? stored->size() : 0;
    names_left -= std::min(names_left, names_per_security_descriptor - 1 + bytes / descriptor_bytes_per_name);
    return is_shown_to(to, name.status, stored);
}

// Names that do not fit any more stay in the scan for the next query. Returns PENDING if the call
// has to end before a name is found that is shown.
[[nodiscard]] nt_status fill(directory_scan& scan, const scan_request& asked) {
    wire::directory_entry_writer& list = asked.list;
    std::size_t names_left = limits::names_examined_per_call_max;
    for (;;) {
        const result<const vfs::listed_name*> next = scan.peek(names_left);
        // Entries found before an error are returned first.
        if (not next) return list.count() != 0 ? nt_status::success : status_of(next.error());
        if (*next == nullptr) break;
        if (asked.shown_to != nullptr and not is_shown(scan, **next, *asked.shown_to, names_left)) {
            scan.skip();
            continue;
        }
        const vfs::short_name other = asked.shows_short_names ? scan.alternate_name() : vfs::short_name();
        const wire::entry_outcome outcome = list.put(entry_of(**next, other, asked.times, asked.image));
        if (outcome == wire::entry_outcome::no_room) {
            if (list.count() == 0) return nt_status::buffer_overflow;
            break;
        }
        if (outcome == wire::entry_outcome::bad_text) {
            scan.skip();  // it has no name on the wire
            continue;
        }
        scan.take();
        if (asked.is_single) break;
    }
    if (list.count() != 0) return nt_status::success;
    return scan.is_at_end() ? nt_status::no_more_files : nt_status::pending;
}

// Carries a query out. A pattern that comes while the scan is in progress is ignored: the first one
// holds. A restart without a pattern keeps it, too ([MS-FSA] 2.1.5.6.3).
[[nodiscard]] nt_status continue_scan(directory_scan& scan, const scan_request& asked) {
    if (not scan.is_started() or (asked.restarts and not asked.pattern.empty()))
        scan.start(asked.pattern);
    else if (asked.restarts)
        scan.restart();
    const bool is_first = not scan.has_returned_any();
    const nt_status status = fill(scan, asked);
    return status == nt_status::no_more_files and is_first ? nt_status::no_such_file : status;
}

// Continues a query of which no examined name matches and is shown. Other requests of the loop are
// served in between.
[[nodiscard, gnu::noinline]] io::task<nt_status> search_further(request& r, directory_scan& scan,
                                                                scan_request& asked) noexcept {
    ENSURE(scan.is_started() and not scan.is_at_end() and asked.list.count() == 0,
           "a query continues if it has no name yet, and names are left");
    asked.restarts = false;
    nt_status status = nt_status::pending;
    while (status == nt_status::pending) {
        io::task<void> others = next_turn(r.loop());
        co_await within_work(std::move(others));
        if (r.interrupted()) co_return *r.interrupted();
        status = co_await r.call(*scan.domain, [&] { return continue_scan(scan, asked); });
    }
    co_return status;
}

}  // namespace

io::task<nt_status> serve_query_directory(request& r) {
    const auto args = wire::decode_query_directory(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    const std::shared_ptr<open> of = r.find_open(args->file);
    if (of == nullptr) co_return nt_status::file_closed;
    if (const nt_status refused = check(r, *of, *args); refused != nt_status::success) co_return refused;
    auto pattern = pattern_of(*args);
    if (not pattern) co_return pattern.error();
    pool_buffer room = r.answer.buffers().take(args->output_bytes_max);
    if (not room) co_return nt_status::insufficient_resources;
    wire::directory_entry_writer list(room.bytes(), form_of(*args));
    const accessor by = r.accessor();
    scan_request asked{.pattern = *std::move(pattern),
                       .restarts = wire::has_any(
                           args->flags, query_directory_flags::restart_scans | query_directory_flags::reopen),
                       .is_single = wire::has(args->flags, query_directory_flags::return_single_entry),
                       .shows_short_names = wire::has_short_names(form_of(*args)),
                       .list = list,
                       .times = r.host().files.change_times,
                       .image = of->file->image,
                       .shown_to = r.tree->target->configuration().hides_unreadable ? &by : nullptr};
    const std::shared_ptr<directory_scan> scan = of->scan(r.files().volume());
    if (scan == nullptr) co_return nt_status::file_closed;
    change_turn turn(r, scan->turn);
    if (not turn.is_taken()) {
        const nt_status refused = co_await turn.wait();
        if (refused != nt_status::success) co_return refused;
    }
    const auto call = [&] { return continue_scan(*scan, asked); };
    if (scan->domain == nullptr) scan->domain = &of->node->domain();
    nt_status status = co_await r.call(*scan->domain, call);
    vfs::fs_domain* const beyond = r.files().volume().crossing_domain();
    if (status == crosses_mount and beyond != nullptr) {
        scan->domain = beyond;  // from now on: the listing may ask a mounted file system
        status = co_await r.call(*beyond, call);
    }
    if (status == nt_status::pending) {
        io::task<nt_status> searching = search_further(r, *scan, asked);
        status = co_await std::move(searching);
    }
    if (status != nt_status::success) co_return status;

    byte_writer* const body = r.begin_reply(sizeof(wire::output_body));
    if (body == nullptr) co_return nt_status::insufficient_resources;
    const std::size_t bytes = list.bytes().size();
    wire::encode_output_body_head(*body, bytes);
    room.shrink(bytes);
    r.answer.attach(std::move(room));
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
