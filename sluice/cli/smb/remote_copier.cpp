#include "sluice/cli/smb/remote_copier.hpp"

#include <algorithm>

#include "sluice/smb/client/server_copy.hpp"

namespace sluice::cli {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::create_options;
using smb::wire::nt_status;

constexpr smb::wire::share_access share_all =
    smb::wire::share_access::read | smb::wire::share_access::write | smb::wire::share_access::remove;

[[nodiscard]] bool is_same_version(const file_status& a, const file_status& b) noexcept {
    return a.end_of_file_bytes == b.end_of_file_bytes and a.last_write_time == b.last_write_time and
           a.change_time == b.change_time;
}

// Returns whether a server returns this status if it cannot copy between two files.
[[nodiscard]] bool cannot_copy(nt_status status) noexcept {
    return status == nt_status::not_supported or status == nt_status::invalid_device_request or
           status == nt_status::object_name_not_found or status == nt_status::not_implemented or
           status == nt_status::invalid_parameter or status == nt_status::access_denied;
}

class remote_copier final : public file_copier {
public:
    remote_copier(remote_share& from, remote_share& to, const copy_options& how,
                  std::vector<copied_file>& files)
        : file_copier(from, how, total_of(files)), to_(to), files_(files) {}

private:
    [[nodiscard]] static std::uint64_t total_of(const std::vector<copied_file>& files) noexcept {
        std::uint64_t bytes = 0;
        for (const copied_file& each : files)
            bytes += each.from.status.end_of_file_bytes;
        return bytes;
    }

    [[nodiscard]] const std::string& path_of(std::size_t file) const noexcept override {
        return files_[file].from.path;
    }

    [[nodiscard]] io::task<copy_error> copy(std::size_t number) noexcept override {
        copied_file& file = files_[number];
        progress_.name(file.from.path);
        // A file that is removed after the copy must not change during it.
        const open_options reading{.shares = file.is_moved ? smb::wire::share_access::read : share_all,
                                   .options = create_options::non_directory_file};
        io::task<outcome<not_null_ptr<remote_file>>> opening = share_.tree().open(file.from.path, reading);
        const auto source = co_await std::move(opening);
        if (not source) co_return source.error().message();
        io::task<copy_error> sending = copy_open(file, **source);
        copy_error met = co_await std::move(sending);
        io::task<outcome<file_status>> close_task = (*source)->co_close();
        (void)co_await std::move(close_task);
        if (met) co_return met;
        // The version that fill() has compared: a later one was not copied.
        file.version = (*source)->status();
        file.is_copied = true;
        co_return std::nullopt;
    }

    // Writes a partial file next to the target, and renames it when it is complete.
    io::task<copy_error> copy_open(copied_file& file, remote_file& source) noexcept {
        io::task<outcome<std::uint64_t>> asking = source.co_file_number();
        const auto number = co_await std::move(asking);
        file.number = number.value_or(0);
        const std::size_t slash = file.to.rfind('/');
        const std::string directory = slash == std::string::npos ? std::string() : file.to.substr(0, slash);
        const open_options creating{
            .access = smb::wire::file_generic_read | smb::wire::file_generic_write |
                      smb::wire::access_mask::delete_object,
            .shares = smb::wire::share_access::none,
            .disposition = smb::wire::create_disposition::create,
            .options = create_options::non_directory_file | create_options::open_reparse_point};
        io::task<outcome<not_null_ptr<remote_file>>> opening =
            to_.tree().open(joined_path(directory, names_.fresh_name()), creating);
        const auto target = co_await std::move(opening);
        if (not target) co_return about_target(file, target.error());
        io::task<copy_error> filling = fill(file, source, **target);
        const copy_error met = co_await std::move(filling);
        if (met) {
            io::task<outcome<void>> removing = (*target)->delete_on_close();
            (void)co_await std::move(removing);
        }
        io::task<outcome<file_status>> close_task = (*target)->co_close();
        const auto closed = co_await std::move(close_task);
        if (not met and not closed) co_return about_target(file, closed.error());
        co_return met;
    }

    io::task<copy_error> fill(const copied_file& file, remote_file& source, remote_file& target) noexcept {
        const std::uint64_t size = source.status().end_of_file_bytes;
        io::task<outcome<void>> copying = copy_bytes(source, target, size);
        const auto copied = co_await std::move(copying);
        if (not copied) co_return copied.error().message();
        io::task<outcome<void>> timing = target.set_times({.written = source.status().last_write_time});
        const auto timed = co_await std::move(timing);
        if (not timed) co_return about_target(file, timed.error());
        io::task<outcome<void>> flushing = target.co_flush();
        const auto flushed = co_await std::move(flushing);
        if (not flushed) co_return about_target(file, flushed.error());
        io::task<outcome<file_status>> asking = target.co_status();
        const auto made = co_await std::move(asking);
        if (not made) co_return about_target(file, made.error());
        io::task<outcome<file_status>> asking_source = source.co_status();
        const auto now = co_await std::move(asking_source);
        if (not now) co_return now.error().message();
        if (not is_same_version(source.status(), *now) or made->end_of_file_bytes != size)
            co_return "the file was changed on the server during the copy; copy it again";
        io::task<outcome<void>> renaming = target.rename(file.to, file.may_replace);
        const auto renamed = co_await std::move(renaming);
        if (not renamed) co_return about_target(file, renamed.error());
        co_return std::nullopt;
    }

    io::task<outcome<void>> copy_bytes(remote_file& source, remote_file& target,
                                       std::uint64_t size) noexcept {
        if (&source.in().of() == &target.in().of() and copies_on_server_) {
            io::task<outcome<void>> copying = copy_on_server(source, target, size);
            const auto copied = co_await std::move(copying);
            if (copied) {
                progress_.add(size);
                co_return outcome<void>{};
            }
            if (copied.error().is_of_connection() or not cannot_copy(copied.error().status()))
                co_return failed(copied.error());
            copies_on_server_ = false;
        }
        std::vector<std::byte> room(
            std::min({upload_piece_bytes, source.read_bytes_max(), target.write_bytes_max()}));
        for (std::uint64_t at = 0; at != size;) {
            const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), size - at));
            const mutable_bytes into(std::span(room).first(want));
            io::task<outcome<std::size_t>> reading = source.co_read(into, at);
            const auto got = co_await std::move(reading);
            if (not got) co_return failed(got.error());
            if (*got == 0)
                co_return failed(client_error::of_policy("read", "the file became shorter; copy it again"));
            for (std::size_t sent = 0; sent != *got;) {
                const bytes_view rest(std::span<const std::byte>(room).subspan(sent, *got - sent));
                io::task<outcome<std::size_t>> writing = target.co_write(rest, at + sent);
                const auto wrote = co_await std::move(writing);
                if (not wrote) co_return failed(wrote.error());
                if (*wrote == 0)
                    co_return failed(client_error::of_protocol("write", "the server writes no bytes"));
                sent += *wrote;
            }
            at += *got;
            progress_.add(*got);
        }
        co_return outcome<void>{};
    }

    [[nodiscard]] std::string about_target(const copied_file& file, const client_error& why) const {
        return to_.url().text_of(file.to) + ": " + why.message();
    }

    remote_share& to_;
    std::vector<copied_file>& files_;
    bool copies_on_server_ = true;
};

}  // namespace

std::unique_ptr<file_copier> create_remote_copier(remote_share& from, remote_share& to,
                                                  const copy_options& how, std::vector<copied_file>& files) {
    return std::make_unique<remote_copier>(from, to, how, files);
}

io::task<file_copier::copy_error> remove_copied(remote_share& from, const copied_file& file) noexcept {
    const open_options how{
        .access = smb::wire::access_mask::delete_object | smb::wire::access_mask::read_attributes,
        .shares = smb::wire::share_access::read,
        .options = create_options::open_reparse_point | create_options::non_directory_file};
    io::task<outcome<not_null_ptr<remote_file>>> opening = from.tree().open(file.from.path, how);
    const auto opened = co_await std::move(opening);
    if (not opened) co_return opened.error().message();
    io::task<outcome<std::uint64_t>> asking = (*opened)->co_file_number();
    const auto number = co_await std::move(asking);
    file_copier::copy_error met;
    if (not file.is_copied or not is_same_version(file.version, (*opened)->status()) or
        number.value_or(0) != file.number)
        met = "the file was changed after it was copied, so it is not removed";
    // Without both, another version with the same size and time is not detected.
    if (not met and file.number == 0 and file.version.change_time == smb::wire::filetime{})
        met = "the server reports neither file numbers nor change times, so the file is not removed";
    if (not met) {
        io::task<outcome<void>> removing = (*opened)->delete_on_close();
        const auto removed = co_await std::move(removing);
        if (not removed) met = removed.error().message();
    }
    io::task<outcome<file_status>> close_task = (*opened)->co_close();
    const auto closed = co_await std::move(close_task);
    if (not met and not closed) met = closed.error().message();
    co_return met;
}

}  // namespace sluice::cli
