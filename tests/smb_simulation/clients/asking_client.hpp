#pragma once

#include <poll.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/message/cancel.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/clients/simulated_client.hpp"

namespace sluice::smb_simulation {

inline constexpr smb::wire::share_access shared_by_all{7};

/// Returns a loop for a client on a thread of its own. It uses epoll, because TSan does not see
/// that the ring of one thread is unmapped before that of another is mapped at the same address.
[[nodiscard]] inline std::unique_ptr<io::io_multiplexer> make_client_loop() {
    return io::make_epoll_multiplexer(0).value();
}

/// A client of a server on real loops, on a thread of its own: it sends one request at a time and
/// waits for the reply. Breaks in between are ignored. Blocks: each request.
class asking_client final : private simulated_client {
public:
    /// `number` determines its random numbers, and so its GUID.
    asking_client(io::io_multiplexer& loop, io::socket_handle socket, const clock_source& clock,
                  const std::string& share = "files", std::uint64_t number = 1)
        : simulated_client(std::move(socket), clock, number), loop_(loop) {
        EXPECT_TRUE(socket_.set_multiplexer(&loop));
        EXPECT_TRUE(io::sync_wait(loop_, negotiate()));
        EXPECT_TRUE(io::sync_wait(loop_, log_on()));
        EXPECT_TRUE(io::sync_wait(loop_, connect_tree(share)));
    }

    /// Becomes a channel of the session of another client, which has set it up, and uses its tree.
    /// is_bound() returns false if the session has ended.
    asking_client(io::io_multiplexer& loop, io::socket_handle socket, const clock_source& clock,
                  const asking_client& first)
        : simulated_client(std::move(socket), clock, 1), loop_(loop) {
        EXPECT_TRUE(socket_.set_multiplexer(&loop));
        guid_ = first.guid_;
        EXPECT_TRUE(io::sync_wait(loop_, negotiate()));
        is_bound_ = io::sync_wait(loop_, bind_to(first));
    }
    [[nodiscard]] bool is_bound() const noexcept { return is_bound_; }

    smb::wire::nt_status open(std::string_view name, smb::wire::share_access share,
                              smb::wire::oplock_level level = smb::wire::oplock_level::none) {
        return create(name, {.oplock_level = level,
                             .desired_access = smb::wire::file_all_access,
                             .share_access = share,
                             .disposition = smb::wire::create_disposition::open_if});
    }
    smb::wire::nt_status create(std::string_view name, smb::wire::create_args how) {
        const std::string utf16 = smb::wire::utf16_of(name).value();
        how.name = std::as_bytes(std::span(utf16));
        return answer_to(smb::wire::command::create, how);
    }
    /// The file that was opened last.
    [[nodiscard]] const smb::wire::file_id& file() const noexcept { return file_; }

    /// Writes a byte to the file that was opened last.
    smb::wire::nt_status write() { return write(file_, 0, std::byte{0}); }
    smb::wire::nt_status write(const smb::wire::file_id& to, std::uint64_t offset, std::byte value) {
        const std::array data{value};
        return answer_to(smb::wire::command::write,
                         smb::wire::write_args{.file = to, .offset_bytes = offset, .data = data});
    }
    /// Reads a byte; returns zero if there is none.
    std::byte read(const smb::wire::file_id& from, std::uint64_t offset) {
        const auto status =
            answer_to(smb::wire::command::read,
                      smb::wire::read_args{.file = from, .offset_bytes = offset, .length_bytes = 1});
        if (status != smb::wire::nt_status::success) return {};
        const auto message = smb::wire::message_view::of(last_reply_);
        return smb::wire::decode_read_reply(*message)->data[0];
    }
    smb::wire::nt_status close(const smb::wire::file_id& file) {
        return answer_to(smb::wire::command::close, smb::wire::close_args{.file = file});
    }
    smb::wire::nt_status rename(const smb::wire::file_id& file, const std::string& target, bool replaces) {
        return change(file, smb::wire::file_information_class::rename,
                      smb::wire::rename_information{.replace_if_exists = replaces, .target = target});
    }
    template <class Information>
    smb::wire::nt_status change(const smb::wire::file_id& file, smb::wire::file_information_class what,
                                const Information& wanted) {
        std::array<std::byte, 512> room{};
        byte_writer writer(room);
        (void)encode(writer, wanted);
        return answer_to(smb::wire::command::set_info,
                         smb::wire::set_info_args{.type = smb::wire::info_type::file,
                                                  .information_class = static_cast<std::uint8_t>(what),
                                                  .file = file,
                                                  .input = *writer.finish()});
    }
    /// Sends any request. Returns network_name_deleted if the server has ended the connection.
    template <class Args>
    smb::wire::nt_status answer_to(smb::wire::command code, const Args& args) {
        asked_ = next_message_id_;
        status_ = smb::wire::nt_status::pending;
        put(code, args);
        EXPECT_TRUE(io::sync_wait(loop_, send()));
        while (status_ == smb::wire::nt_status::pending)
            if (not io::sync_wait(loop_, take_reply())) return smb::wire::nt_status::network_name_deleted;
        return status_;
    }
    /// Encodes a request whose reply nothing waits for; flush() sends it.
    template <class Args>
    void put_unawaited(smb::wire::command code, const Args& args) {
        put(code, args);
    }
    /// Encodes a CANCEL of the request that was encoded last, by its message ID.
    void put_cancel_of_last() { put(smb::wire::command::cancel, smb::wire::cancel_args{}); }
    void flush() { EXPECT_TRUE(io::sync_wait(loop_, send())); }
    /// Receives replies until that many are left to come.
    void await_all_but(std::uint64_t left) {
        while (awaited_ > left)
            if (not io::sync_wait(loop_, take_reply())) return;
    }
    [[nodiscard]] std::uint64_t credits() const noexcept { return credits_; }
    [[nodiscard]] std::uint64_t opens() const noexcept { return opens_; }

    /// Returns whether the server has sent something that was not read yet.
    [[nodiscard]] bool has_unread_bytes() const {
        pollfd one{.fd = socket_.native().descriptor, .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, 0) == 1;
    }
    void close_connection() { EXPECT_TRUE(socket_.close()); }

private:
    void take_message(const smb::wire::message_view& message) override {
        const smb::wire::header& header = message.header();
        if (header.message_id == smb::wire::notification_message_id or
            header.status == smb::wire::nt_status::pending)
            return;
        if (header.command == smb::wire::command::create and header.status == smb::wire::nt_status::success) {
            file_ = smb::wire::decode_create_reply(message)->file;
            ++opens_;
        }
        if (header.message_id != asked_) return;
        last_reply_.assign(message.bytes().begin(), message.bytes().end());
        status_ = header.status;
    }
    void adjust(smb::wire::header& header) override {
        header.credits = 64;
        if (header.command == smb::wire::command::cancel) header.message_id = next_message_id_ - 1;
    }

    io::io_multiplexer& loop_;
    bool is_bound_ = true;
    std::uint64_t asked_ = 0;
    smb::wire::nt_status status_ = smb::wire::nt_status::success;
    std::vector<std::byte> last_reply_;
    smb::wire::file_id file_{};
    std::uint64_t opens_ = 0;
};

}  // namespace sluice::smb_simulation
