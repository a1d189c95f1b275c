#include "sluice/smb/client/share_list.hpp"

#include <cerrno>
#include <chrono>

#include "sluice/smb/client/tree.hpp"
#include "sluice/smb/wire/rpc/rpc_fragments.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"

namespace sluice::smb::client {

namespace {

constexpr const char* step = "list shares";
constexpr std::uint32_t bind_call = 1;
constexpr std::uint32_t list_call = 2;
constexpr std::size_t read_bytes = 8192;
// The longest name that a request has room for. The server ignores it ([MS-SRVS] 3.1.4.8).
constexpr std::size_t server_name_max = 255;
// Windows error codes, [MS-ERREF] 2.2.
constexpr std::uint32_t error_access_denied = 5;

// Writes a message and reads until its reply is complete.
class pipe_calls {
public:
    explicit pipe_calls(remote_file& pipe) noexcept
        : pipe_(pipe),
          room_(read_bytes),
          end_(std::chrono::steady_clock::now() + pipe.in().of().first().options().reply_timeout) {}

    io::task<outcome<void>> bind() noexcept {
        const std::vector<std::byte> request = wire::encode_srvsvc_bind(bind_call);
        io::task<outcome<void>> writing = write(request);
        if (const auto written = co_await std::move(writing); not written) co_return failed(written.error());
        io::task<outcome<bytes_view>> reading = next_fragment();
        const auto fragment = co_await std::move(reading);
        if (not fragment) co_return failed(fragment.error());
        if (not wire::decode_srvsvc_bind_ack(*fragment))
            co_return failed(client_error::of_policy(step, "the server does not offer the service srvsvc"));
        co_return outcome<void>{};
    }

    io::task<outcome<wire::share_enum_results>> list(std::string server) noexcept {
        const std::vector<std::byte> request = wire::encode_share_enum_request(list_call, server);
        io::task<outcome<void>> writing = write(request);
        if (const auto written = co_await std::move(writing); not written) co_return failed(written.error());
        wire::rpc_results results(list_call);
        for (bool is_complete = false; not is_complete;) {
            io::task<outcome<bytes_view>> reading = next_fragment();
            const auto fragment = co_await std::move(reading);
            if (not fragment) co_return failed(fragment.error());
            const auto appended = results.append(*fragment);
            if (not appended) co_return failed(invalid());
            is_complete = *appended;
        }
        auto found = wire::decode_share_enum_results(results.bytes());
        if (not found) co_return failed(invalid());
        co_return *std::move(found);
    }

private:
    [[nodiscard]] static client_error invalid() noexcept {
        return client_error::of_protocol(step, "an invalid list of shares");
    }

    io::task<outcome<void>> write(bytes_view message) noexcept {
        io::task<outcome<std::size_t>> writing = pipe_.co_write(message, 0);
        const auto written = co_await std::move(writing);
        if (not written) co_return failed(written.error().of_step(step));
        if (*written != message.size()) co_return failed(invalid());
        co_return outcome<void>{};
    }

    io::task<outcome<bytes_view>> next_fragment() noexcept {
        for (;;) {
            const auto found = fragments_.next();
            if (not found) co_return failed(invalid());
            if (*found) co_return **found;
            if (std::chrono::steady_clock::now() > end_)
                co_return failed(client_error::of_io(step, ETIMEDOUT));
            const mutable_bytes into(room_);
            io::task<outcome<std::size_t>> reading = pipe_.co_read(into, 0);
            const auto got = co_await std::move(reading);
            if (not got) co_return failed(got.error().of_step(step));
            if (*got == 0) co_return failed(invalid());
            fragments_.append(*bytes_view(room_).first(*got));
        }
    }

    remote_file& pipe_;
    std::vector<std::byte> room_;
    std::chrono::steady_clock::time_point end_;  // small pieces do not extend it
    wire::rpc_fragments fragments_;
};

io::task<outcome<wire::share_enum_results>> list_through(remote_file& pipe, std::string server) noexcept {
    pipe_calls calls(pipe);
    io::task<outcome<void>> binding = calls.bind();
    if (const auto bound = co_await std::move(binding); not bound) co_return failed(bound.error());
    io::task<outcome<wire::share_enum_results>> listing = calls.list(std::move(server));
    co_return co_await std::move(listing);
}

}  // namespace

io::task<outcome<std::vector<wire::rpc_share>>> list_shares(session& in) noexcept {
    io::task<outcome<not_null_ptr<tree>>> connecting = tree::connect_to_pipes(in);
    const auto pipes = co_await std::move(connecting);
    if (not pipes) co_return failed(pipes.error().of_step(step));
    const open_options how{.access = wire::file_generic_read | wire::file_generic_write,
                           .shares = wire::share_access::read | wire::share_access::write};
    io::task<outcome<not_null_ptr<remote_file>>> opening = (*pipes)->open("srvsvc", how);
    const auto pipe = co_await std::move(opening);
    outcome<wire::share_enum_results> found = failed(client_error::of_policy(step, ""));
    if (pipe) {
        std::string server = in.first().options().server_name.substr(0, server_name_max);
        io::task<outcome<wire::share_enum_results>> listing = list_through(**pipe, std::move(server));
        found = co_await std::move(listing);
        io::task<outcome<file_status>> close_task = (*pipe)->co_close();
        (void)co_await std::move(close_task);
    } else {
        found = failed(pipe.error().of_step(step));
    }
    io::task<void> leaving = (*pipes)->disconnect();
    co_await std::move(leaving);
    if (not found) co_return failed(found.error());
    if (found->status == error_access_denied)
        co_return failed(client_error::of_status(step, wire::nt_status::access_denied));
    if (found->status != 0)
        co_return failed(client_error::of_policy(step, "the server's service rejected the request"));
    co_return std::move(found->shares);
}

}  // namespace sluice::smb::client
