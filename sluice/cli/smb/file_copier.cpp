#include "sluice/cli/smb/file_copier.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <vector>

namespace sluice::cli {

using namespace smb::client;  // NOLINT: the names of one component

void add_progress_options(command_syntax command, copy_options& options) {
    const option_syntax shows = command.add_flag(
        "--progress", options.shows_progress, "show the progress, also if standard error is not a terminal");
    command.add_flag("--quiet", options.is_quiet, "do not show the progress").excludes(shows);
}

std::string file_copier::message_of(const transfer_error& why) {
    if (why.local and (why.local->code() == ENOSPC or why.local->code() == EDQUOT))
        return why.message() + "; free space on this machine, and run the command again with --resume";
    return why.message();
}

void file_copier::run(std::size_t count) {
    if (copy_all(count) != 0)
        share_.fail(share_.url().path, "some files were not copied; run the command again with --resume");
}

std::size_t file_copier::copy_all(std::size_t count) {
    share_.run(for_each_at_once(share_, count, [this](std::size_t file) { return copy_and_report(file); }));
    progress_.clear();
    return count - done_;
}

io::task<void> file_copier::copy_and_report(std::size_t file) noexcept {
    io::task<copy_error> copying = copy(file);
    const copy_error met = co_await std::move(copying);
    if (met) {
        progress_.clear();
        share_.print_error(path_of(file), *met);
    } else
        ++done_;
}

file_copier::file_copier(remote_share& share, const copy_options& how, std::uint64_t total_bytes)
    : names_(share.random(), partial_names::default_key_path()),
      share_(share),
      how_(how),
      progress_(total_bytes, how.progress()) {
    if (how.resumes and not names_.key_problem().empty())
        share.warn(share.url().path, "interrupted copies cannot be resumed: " + names_.key_problem());
}

namespace {

// Ends a comparison whose result is known.
constexpr error difference(EILSEQ, "compare with the server's file");

[[nodiscard]] byte_taker comparing_with(io::file_handle& here, std::vector<std::byte>& room) {
    return [&](bytes_view bytes, std::uint64_t offset) -> result<void> {
        const auto read =
            here.read(io::io_request<io::bytes_type>{std::span(room).first(bytes.size()), offset});
        if (not read) return failure(read.error());
        if (bytes_view(*read) == bytes) return {};
        return failure(difference);
    };
}

[[nodiscard]] bool is_difference(const transfer_error& why) noexcept {
    return why.local and why.local->code() == difference.code();
}

}  // namespace

io::task<file_copier::copy_error> file_copier::compare(remote_file& remote, io::file_handle& here,
                                                       std::uint64_t begin, std::uint64_t end) noexcept {
    std::vector<std::byte> room(download_piece_bytes);
    const byte_taker take = comparing_with(here, room);
    io::task<transferred<std::uint64_t>> reading = download(remote, begin, end, take);
    const auto compared = co_await std::move(reading);
    if (not compared and is_difference(compared.error()))
        co_return "the copy differs from the original, which may have been changed during the copy; copy it "
                  "again";
    if (not compared) co_return compared.error().message();
    if (*compared != end)
        co_return fmt::format("the server's file ended after {} of {} bytes", *compared, end);
    co_return std::nullopt;
}

io::task<transferred<bool>> file_copier::has_same_tail(remote_file& remote, io::file_handle& here,
                                                       std::uint64_t end, std::uint64_t whole) noexcept {
    if (end > whole) co_return false;
    std::vector<std::byte> room(compared_tail_bytes);
    const byte_taker take = comparing_with(here, room);
    const std::uint64_t begin = end > compared_tail_bytes ? end - compared_tail_bytes : 0;
    io::task<transferred<std::uint64_t>> reading = download(remote, begin, end, take);
    const auto compared = co_await std::move(reading);
    if (compared) co_return *compared == end;
    if (is_difference(compared.error())) co_return false;
    co_return std::unexpected(compared.error());
}

io::task<file_copier::copy_error> file_copier::check_version(const std::string& path,
                                                             const file_status& before,
                                                             file_status after) noexcept {
    if (after == file_status{}) {
        io::task<outcome<file_status>> asking = share_.tree().status(path);
        const auto answered = co_await std::move(asking);
        if (not answered) co_return answered.error().message();
        after = *answered;
    }
    const bool is_same = after.end_of_file_bytes == before.end_of_file_bytes and
                         after.last_write_time == before.last_write_time and
                         after.change_time == before.change_time;
    if (is_same) co_return std::nullopt;
    co_return "the file was changed on the server during the copy; copy it again";
}

}  // namespace sluice::cli
