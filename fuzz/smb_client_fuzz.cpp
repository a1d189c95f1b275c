// A client and a hostile server, whose messages are the input. The client may reject them and
// disconnect. It must not read or write outside of its memory, and it ends.

#include <array>

#include "fuzz/smb_client_answer.hpp"
#include "fuzz/smb_client_life.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "tests/smb_client/receive_all.hpp"

namespace {

using namespace sluice;

class hostile_server {
public:
    hostile_server(io::socket_handle socket, bytes_view script)
        : socket_(std::move(socket)), script_(script) {}

    io::task<void> live() {
        while (const auto answer = fuzz::take_answer(script_)) {
            if (answer->waits) {
                auto hearing = hear();
                if (not co_await std::move(hearing)) break;
            }
            out_.clear();
            if (answer->takes_its_time) say(*answer, true);
            say(*answer, false);
            const io::io_request<io::const_bytes_type> all{std::span(std::as_const(out_))};
            if (const auto sent = co_await io::co_write(socket_, all); not sent) break;
        }
        (void)socket_.close();
    }

private:
    // Receives one frame. Only the header of the request is used.
    io::task<bool> hear() {
        std::array<std::byte, smb::wire::frame_prefix_bytes> prefix{};
        auto receiving_prefix = smb_client_testing::receive_all(socket_, prefix);
        if (not co_await std::move(receiving_prefix)) co_return false;
        std::vector<std::byte> frame(
            smb::wire::decode_frame_prefix(prefix, smb::wire::frame_bytes_max).value());
        auto receiving = smb_client_testing::receive_all(socket_, frame);
        if (not co_await std::move(receiving)) co_return false;
        const auto header = smb::wire::decode_header(frame);
        if (header) asked_ = *header;
        co_return true;
    }

    void say(const fuzz::answer& one, bool is_interim) {
        std::array<std::byte, smb::wire::header_bytes> header{};
        if (not one.is_frame) {
            byte_writer writer{mutable_bytes(header)};
            encode(writer, header_of(one, is_interim));
        }
        const std::size_t length = (one.is_frame ? 0 : header.size()) + one.body.size() + one.zeros;
        std::array<std::byte, smb::wire::frame_prefix_bytes> prefix{};
        byte_writer writer{mutable_bytes(prefix)};
        smb::wire::encode_frame_prefix(writer, length);
        out_.insert(out_.end(), prefix.begin(), prefix.end());
        if (not one.is_frame) out_.insert(out_.end(), header.begin(), header.end());
        out_.insert(out_.end(), one.body.begin(), one.body.end());
        out_.resize(out_.size() + one.zeros);
    }

    [[nodiscard]] smb::wire::header header_of(const fuzz::answer& one, bool is_interim) const {
        using smb::wire::header_flags;
        smb::wire::header header = asked_;
        header.flags = header_flags::response;
        header.status = one.status;
        header.credits = one.credits;
        if (header.session_id == 0) header.session_id = 1;
        if (header.tree_id == 0) header.tree_id = 1;
        if (one.is_signed) header.flags |= header_flags::signed_message;
        if (is_interim) {
            header.flags |= header_flags::async;
            header.status = smb::wire::nt_status::pending;
        }
        return header;
    }

    io::socket_handle socket_;
    bytes_view script_;
    smb::wire::header asked_;
    std::vector<std::byte> out_;
};

io::task<void> record_end(io::task<void> of, bool& has_ended) {
    co_await std::move(of);
    has_ended = true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    bytes_view script(reinterpret_cast<const std::byte*>(data), size);
    if (script.empty()) return 0;
    const auto choice = std::to_integer<unsigned>(script[0]);
    script = *script.from(1);
    const auto newest = smb::client::client_life::dialects[choice & 3U];
    const io::permille short_transfers = (choice & 4U) != 0 ? 500 : 0;
    const auto loop = io::make_simulated_multiplexer({.seed = 1, .short_transfers = short_transfers}).value();
    auto pair = io::socket_handle::pair().value();
    ENSURE(pair.first.set_multiplexer(loop.get()).has_value());
    ENSURE(pair.second.set_multiplexer(loop.get()).has_value());
    hostile_server server(std::move(pair.first), script);
    smb::client::client_life client(*loop, loop->clock_of_simulation(), newest);
    bool has_client_ended = false;
    bool has_server_ended = false;
    io::task_group both(*loop);
    both.spawn(record_end(server.live(), has_server_ended));
    both.spawn(record_end(client.live(std::move(pair.second)), has_client_ended));
    while (loop->run().value_or(0) > 0) {}
    ENSURE(has_client_ended, "a client that hangs, whatever its server does");
    ENSURE(has_server_ended);
    return 0;
}
