#pragma once

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <utility>

#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/clients/simulated_client.hpp"

namespace sluice::smb_simulation {

/// A client that repeats an operation, so that the work of the server for it can be counted. It
/// sends one request after another, each after the previous reply, unsigned, and allocates nothing
/// once warm. Each operation returns whether the server has carried it out.
///
/// Thread safety: the loop's thread.
class steady_client final : private simulated_client {
public:
    /// The directory and the file in it that the client uses; the directory exists.
    struct files {
        std::string directory;
        std::string name;
    };

    steady_client(io::socket_handle socket, const clock_source& clock, const files& used,
                  std::uint64_t seed = 1)
        : simulated_client(std::move(socket), clock, seed),
          file_name_(smb::wire::utf16_of(used.directory + '\\' + used.name).value()),
          other_name_(smb::wire::utf16_of(used.directory + "\\other " + used.name).value()),
          new_name_(smb::wire::utf16_of(used.directory + "\\new " + used.name).value()),
          directory_name_(smb::wire::utf16_of(used.directory).value()) {}

    using simulated_client::problem;

    /// Logs on, and opens the file.
    io::task<bool> begin() {
        io::task<bool> setting_up = set_up();
        if (not co_await std::move(setting_up)) co_return false;
        signer_.reset();
        io::task<bool> opening = open(for_everything());
        if (not co_await std::move(opening)) co_return false;
        file_ = opened_;
        io::task<bool> writing = write();
        co_return co_await std::move(writing);
    }
    /// Becomes a channel of the session of another client, and uses its open of its file.
    io::task<bool> begin_as_channel_of(const steady_client& first) {
        io::task<bool> negotiating = negotiate();
        if (not co_await std::move(negotiating)) co_return false;
        io::task<bool> binding = bind_to(first);
        if (not co_await std::move(binding)) co_return false;
        signer_.reset();
        file_ = first.file_;
        co_return true;
    }

    io::task<bool> echo() {
        put(smb::wire::command::echo, smb::wire::echo_args{});
        return answered();
    }
    io::task<bool> read() {
        put(smb::wire::command::read, smb::wire::read_args{.file = file_, .length_bytes = read_bytes});
        return answered();
    }
    io::task<bool> write() {
        put(smb::wire::command::write, smb::wire::write_args{.file = file_, .data = data_});
        return answered();
    }
    io::task<bool> ask() {
        put(smb::wire::command::query_info, question(file_));
        return answered();
    }
    io::task<bool> open_and_close() {
        io::task<bool> opening = open(for_everything());
        if (not co_await std::move(opening)) co_return false;
        io::task<bool> close_task = close();
        co_return co_await std::move(close_task);
    }
    io::task<bool> open_with_lease_and_close() {
        smb::wire::create_args how = for_everything();
        how.oplock_level = smb::wire::oplock_level::lease;
        how.contexts.lease = {.key = {},
                              .state = smb::wire::lease_state::read | smb::wire::lease_state::handle};
        io::task<bool> opening = open(how);
        if (not co_await std::move(opening)) co_return false;
        io::task<bool> close_task = close();
        co_return co_await std::move(close_task);
    }
    /// Opens a file that has no other open, one request after the other, as the workload `open` of
    /// `sluice bench smb`.
    io::task<bool> open_then_ask_then_close() {
        smb::wire::create_args how = for_everything();
        how.name = view(other_name_);
        io::task<bool> opening = open(how);
        if (not co_await std::move(opening)) co_return false;
        put(smb::wire::command::query_info, question(opened_));
        io::task<bool> asking = answered();
        if (not co_await std::move(asking)) co_return false;
        io::task<bool> close_task = close();
        co_return co_await std::move(close_task);
    }
    /// All in one frame, like clients that inspect a file.
    io::task<bool> open_ask_and_close() {
        begin_compound();
        put(smb::wire::command::create, for_everything());
        is_related_ = true;
        put(smb::wire::command::query_info, question(smb::wire::file_id_of_previous));
        put(smb::wire::command::close, smb::wire::close_args{.file = smb::wire::file_id_of_previous});
        is_related_ = false;
        end_compound();
        return answered();
    }
    /// Creates a file that does not exist, one request after the other, as the workload `create`.
    io::task<bool> create_and_delete() {
        smb::wire::create_args how = for_everything();
        how.disposition = smb::wire::create_disposition::overwrite_if;
        how.name = view(new_name_);
        io::task<bool> opening = open(how);
        if (not co_await std::move(opening)) co_return false;
        put(smb::wire::command::set_info,
            smb::wire::set_info_args{.information_class = static_cast<std::uint8_t>(
                                         smb::wire::file_information_class::disposition),
                                     .file = opened_,
                                     .input = deletion_});
        io::task<bool> deleting = answered();
        if (not co_await std::move(deleting)) co_return false;
        io::task<bool> close_task = close();
        co_return co_await std::move(close_task);
    }
    io::task<bool> list() {
        smb::wire::create_args how = for_everything();
        how.name = view(directory_name_);
        io::task<bool> opening = open(how);
        if (not co_await std::move(opening)) co_return false;
        do {
            put(smb::wire::command::query_directory,
                smb::wire::query_directory_args{.information_class = static_cast<smb::wire::directory_class>(
                                                    smb::wire::file_information_class::id_both_directory),
                                                .file = opened_,
                                                .pattern = std::as_bytes(std::span(everything_)),
                                                .output_bytes_max = 65536});
            io::task<bool> listing = answered();
            (void)co_await std::move(listing);
        } while (is_good_);
        io::task<bool> close_task = close();
        co_return co_await std::move(close_task);
    }
    void close_connection() { EXPECT_TRUE(socket_.close()); }

private:
    static constexpr std::size_t read_bytes = 4096;
    static constexpr std::size_t write_bytes = 3072;  // the room in a message of this client

    [[nodiscard]] smb::wire::create_args for_everything() const {
        return {.desired_access = smb::wire::file_all_access,
                .share_access = smb::wire::share_access(7),
                .disposition = smb::wire::create_disposition::open_if,
                .name = view(file_name_)};
    }
    [[nodiscard]] static smb::wire::query_info_args question(const smb::wire::file_id& file) {
        return {
            .information_class = static_cast<std::uint8_t>(smb::wire::file_information_class::network_open),
            .output_bytes_max = 1024,
            .file = file};
    }
    io::task<bool> open(const smb::wire::create_args& how) {
        put(smb::wire::command::create, how);
        return answered();
    }
    io::task<bool> close() {
        put(smb::wire::command::close, smb::wire::close_args{.file = opened_});
        return answered();
    }
    io::task<bool> answered() {
        io::task<bool> sending = send();
        if (not co_await std::move(sending)) co_return false;
        io::task<bool> taking = take_reply();
        co_return co_await std::move(taking) and is_good_;
    }
    void take_message(const smb::wire::message_view& message) override {
        // The last reply of a compound; after a failed request, the later ones fail, too.
        is_good_ = message.header().status == smb::wire::nt_status::success;
        if (is_good_ and message.header().command == smb::wire::command::create)
            opened_ = smb::wire::decode_create_reply(message)->file;
    }
    void adjust(smb::wire::header& header) override { header.credits = 4; }

    std::string file_name_;
    std::string other_name_;
    std::string new_name_;
    std::string directory_name_;
    std::array<std::byte, 2> everything_{std::byte{'*'}, {}};
    std::array<std::byte, 1> deletion_{std::byte{1}};  // FileDispositionInformation
    smb::wire::file_id file_{};
    smb::wire::file_id opened_{};
    std::array<std::byte, write_bytes> data_{};
    bool is_good_ = false;
};

}  // namespace sluice::smb_simulation
