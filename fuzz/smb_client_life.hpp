#pragma once

// A complete session of a client, with requests of each kind. The fuzz target smb_client
// connects it to a hostile server; the program that writes the inputs of fuzz/seeds/smb_client
// connects it to our own.

#include <vector>

#include "sluice/smb/client/directory.hpp"
#include "sluice/smb/client/transfer.hpp"

namespace sluice::smb::client {

/// One client with seeded random numbers, so that each run sends the same bytes.
class client_life {
public:
    static constexpr wire::dialect dialects[] = {wire::dialect::smb_2_1, wire::dialect::smb_3_0,
                                                 wire::dialect::smb_3_0_2, wire::dialect::smb_3_1_1};

    client_life(io::io_multiplexer& loop, const clock_source& clock, wire::dialect newest)
        : loop_(loop), clock_(clock), newest_(newest) {}

    io::task<void> live(io::socket_handle socket) {
        const connection_options options{.server_name = "server",
                                         .dialect_max = newest_,
                                         .signs = false,
                                         .credits_wanted = 64,
                                         .compresses = true};
        auto opening = connection::open({loop_, secrets_, clock_}, std::move(socket), options);
        auto opened = co_await std::move(opening);
        if (not opened) co_return;
        auto using_it = use(**opened);
        co_await std::move(using_it);
        auto close_task = (*opened)->close();
        co_await std::move(close_task);
    }

    /// Returns the number of successful steps.
    [[nodiscard]] unsigned steps() const noexcept { return steps_; }

private:
    io::task<void> use(connection& over) {
        const auth::credentials who{.user = "u",
                                    .domain = {},
                                    .workstation = {},
                                    .target_name = "cifs/server",
                                    .hash = auth::nt_hash::of_password("p").value()};
        auto logging_on = session::log_on(over, who);
        const auto logged_on = co_await std::move(logging_on);
        if (not logged_on) co_return;
        ++steps_;
        auto connecting = tree::connect(**logged_on, "files");
        const auto connected = co_await std::move(connecting);
        if (not connected) co_return;
        ++steps_;
        tree& in = **connected;
        auto asking = in.interfaces(445);
        count(co_await std::move(asking));
        auto with_files = use_file(in);
        co_await std::move(with_files);
        auto with_directories = use_directory(in);
        co_await std::move(with_directories);
        auto leaving = in.disconnect();
        co_await std::move(leaving);
        auto logging_off = (*logged_on)->log_off();
        co_await std::move(logging_off);
    }

    io::task<void> use_file(tree& in) {
        const open_options how{.access = wire::file_generic_read | wire::file_generic_write,
                               .disposition = wire::create_disposition::open_if};
        auto opening = in.open("f", how);
        const auto file = co_await std::move(opening);
        if (not file) co_return;
        ++steps_;
        const byte_source give = [](mutable_bytes into, std::uint64_t at) -> result<std::size_t> {
            const std::size_t bytes =
                std::min<std::size_t>(into.size(), at < file_bytes ? file_bytes - at : 0);
            std::fill_n(into.begin(), bytes, std::byte{7});
            return bytes;
        };
        auto uploading = upload(**file, 0, file_bytes, give);
        count(co_await std::move(uploading));
        const byte_taker take = [](bytes_view, std::uint64_t) -> result<void> { return {}; };
        auto downloading = download(**file, 0, file_bytes, take);
        count(co_await std::move(downloading));
        std::array<std::byte, 100> few;
        auto reading = (*file)->co_read(few, 10);
        count(co_await std::move(reading));
        auto asking = (*file)->co_status();
        count(co_await std::move(asking));
        auto flushing = (*file)->co_flush();
        count(co_await std::move(flushing));
        auto sizing = (*file)->set_size(5);
        count(co_await std::move(sizing));
        auto close_task = (*file)->co_close();
        count(co_await std::move(close_task));
    }

    io::task<void> use_directory(tree& in) {
        auto making = in.create_directory("d");
        count(co_await std::move(making));
        auto renaming = in.rename("f", "d/g", true);
        count(co_await std::move(renaming));
        auto listing = list(in, "d");
        count(co_await std::move(listing));
        auto removing = in.remove("d/g", false);
        count(co_await std::move(removing));
    }

    template <class T, class E>
    void count(const std::expected<T, E>& one) {
        if (one) ++steps_;
    }

    static constexpr std::uint64_t file_bytes = 20'000;  // more than the staging buffer holds

    io::io_multiplexer& loop_;
    const clock_source& clock_;
    wire::dialect newest_;
    predictable_secrets_for_simulation secrets_{1};
    unsigned steps_ = 0;
};

}  // namespace sluice::smb::client
