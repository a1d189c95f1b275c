#include "sluice/smb/client/directory.hpp"

#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::client {

using wire::nt_status;

namespace {

constexpr const char* step = "list";
constexpr auto form = wire::file_information_class::full_directory;

[[nodiscard]] file_status status_of(const wire::directory_entry_fields& fields) noexcept {
    return {.creation_time = fields.created,
            .last_access_time = fields.accessed,
            .last_write_time = fields.written,
            .change_time = fields.changed,
            .allocation_bytes = fields.allocation_bytes,
            .end_of_file_bytes = fields.end_of_file,
            .attributes = fields.attributes};
}

// Appends the entries of one reply to the list and returns their number.
[[nodiscard]] outcome<std::size_t> take_entries(bytes_view entries, std::vector<directory_entry>& into) {
    wire::directory_entry_reader reader(entries, form);
    for (std::size_t count = 0;; ++count) {
        const auto next = reader.next();
        if (not next) return failed(client_error::of_protocol(step, "an invalid list of entries"));
        if (not*next) return count;
        auto name = wire::utf8_of((*next)->name_utf16);
        if (not name) return failed(client_error::of_protocol(step, "a name that is not valid UTF-16"));
        if (*name == "." or *name == "..") continue;
        if (not is_safe_name(*name))
            return failed(client_error::of_protocol(step, "an unsafe name in the listing"));
        into.push_back({.name = std::move(*name), .status = status_of((*next)->fields)});
    }
}

}  // namespace

bool is_safe_name(std::string_view name) noexcept {
    if (name.empty() or name == "." or name == "..") return false;
    return name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

io::task<outcome<std::vector<directory_entry>>> list(remote_file& directory,
                                                     std::size_t entries_max) noexcept {
    constexpr std::string_view all("*\0", 2);
    connection& over = directory.in().of().first();
    std::vector<directory_entry> entries;
    for (std::size_t listed = 0; listed <= entries_max;) {
        request_options how = directory.in().request(step);
        how.payload_bytes = limits::listing_bytes;
        const wire::query_directory_args asked{.information_class = wire::directory_class::full_directory,
                                               .file = directory.id(),
                                               .pattern = std::as_bytes(std::span(all)),
                                               .output_bytes_max = limits::listing_bytes};
        io::task<outcome<reply>> asking = over.call(wire::command::query_directory, asked, how);
        const outcome<reply> answered = co_await std::move(asking);
        if (not answered) {
            const nt_status status = answered.error().status();
            // Servers also report an empty directory this way.
            if (status == nt_status::no_more_files or status == nt_status::no_such_file)
                co_return std::move(entries);
            co_return failed(answered.error());
        }
        const auto said = wire::decode_query_directory_reply(*wire::message_view::of(answered->message));
        if (not said) co_return failed(client_error::of_protocol(step, "invalid QUERY_DIRECTORY reply"));
        const outcome<std::size_t> taken = take_entries(said->entries, entries);
        if (not taken) co_return failed(taken.error());
        if (*taken == 0) co_return std::move(entries);
        listed += *taken;
    }
    co_return failed(client_error::of_protocol(step, "too many entries in the directory"));
}

io::task<outcome<std::vector<directory_entry>>> list(tree& in, std::string path) noexcept {
    const open_options how{
        .access = wire::access_mask::list_directory | wire::access_mask::read_attributes,
        .shares = wire::share_access::read | wire::share_access::write | wire::share_access::remove,
        .options = wire::create_options::directory_file};
    io::task<outcome<not_null_ptr<remote_file>>> opening = in.open(std::move(path), how);
    const auto directory = co_await std::move(opening);
    if (not directory) co_return failed(directory.error());
    io::task<outcome<std::vector<directory_entry>>> listing = list(**directory);
    auto entries = co_await std::move(listing);
    io::task<outcome<file_status>> close_task = (*directory)->co_close();
    (void)co_await std::move(close_task);
    co_return std::move(entries);
}

}  // namespace sluice::smb::client
