#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sluice/io/awaitable.hpp"
#include "sluice/smb/wire/cancel.hpp"
#include "sluice/smb/wire/close.hpp"
#include "sluice/smb/wire/create.hpp"
#include "sluice/smb/wire/echo.hpp"
#include "sluice/smb/wire/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc_information_class.hpp"
#include "sluice/smb/wire/lock.hpp"
#include "sluice/smb/wire/logoff.hpp"
#include "sluice/smb/wire/read.hpp"
#include "sluice/smb/wire/set_info.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/simulated_client.hpp"
#include "tests/smb_simulation/world.hpp"

// Exchanges that no orderly client has, each told message by message.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

constexpr std::uint32_t large_bytes = 8U << 20;

struct answer {
    nt_status status = nt_status::success;
    std::uint64_t async_id = 0;
    std::size_t message_bytes = 0;
};

/// A client that does what a test tells it, and remembers what it was answered.
class scripted_client final : public simulated_client {
public:
    using simulated_client::simulated_client;
    ~scripted_client() = default;

    using simulated_client::begin_compound;
    using simulated_client::connect_tree;
    using simulated_client::credits_;
    using simulated_client::end_compound;
    using simulated_client::log_on;
    using simulated_client::next_message_id_;
    using simulated_client::received_;
    using simulated_client::session_id_;
    using simulated_client::set_up;
    using simulated_client::socket_;
    using simulated_client::tree_id_;

    /// Puts a request and says which message it is.
    template <class Args>
    std::uint64_t ask(command code, const Args& args) {
        const std::uint64_t id = next_message_id_;
        put(code, args);
        return id;
    }
    /// What message `id` was answered at last; waits for it.
    [[nodiscard]] io::task<answer> answer_to(std::uint64_t id) {
        while (not finals_.contains(id)) {
            io::task<bool> taking = settle();
            if (not co_await std::move(taking)) co_return answer{.status = nt_status::unexpected_io_error};
        }
        co_return finals_[id];
    }
    /// The interim answer to message `id`; waits for it.
    [[nodiscard]] io::task<answer> interim_to(std::uint64_t id) {
        while (not interims_.contains(id)) {
            io::task<bool> taking = settle();
            if (not co_await std::move(taking)) co_return answer{.status = nt_status::unexpected_io_error};
        }
        co_return interims_[id];
    }
    [[nodiscard]] bool is_answered(std::uint64_t id) const { return finals_.contains(id); }

    /// Sends what was put and takes one frame.
    [[nodiscard]] io::task<bool> settle() {
        io::task<bool> sending = send();
        if (not co_await std::move(sending)) co_return false;
        io::task<bool> taking = take_reply();
        co_return co_await std::move(taking);
    }
    /// Sends what was put, and returns when all of it has been looked at.
    [[nodiscard]] io::task<void> catch_up() {
        const std::uint64_t echo = ask(command::echo, wire::echo_args{});
        io::task<answer> echoed = answer_to(echo);
        const answer got = co_await std::move(echoed);
        EXPECT_EQ(got.status, nt_status::success);
    }

    std::uint16_t charge = 1;
    std::uint16_t credits_wanted = 16;
    std::optional<std::uint64_t> cancels_async;
    std::optional<std::uint64_t> cancels_message;
    unsigned frames = 0;
    std::optional<wire::file_id> file;  // that the last CREATE made

private:
    void adjust(wire::header& header) override {
        header.credit_charge = charge;
        header.credits = credits_wanted;
        if (header.command != command::cancel) return;
        if (cancels_message) header.message_id = *cancels_message;
        if (not cancels_async) return;
        header.flags |= wire::header_flags::async;
        header.async_id = *cancels_async;
    }
    void take_message(const wire::message_view& message) override {
        const wire::header& header = message.header();
        const answer got{
            .status = header.status, .async_id = header.async_id, .message_bytes = message.bytes().size()};
        (header.status == nt_status::pending ? interims_ : finals_)[header.message_id] = got;
        if (header.command == command::create and header.status == nt_status::success)
            if (const auto made = wire::decode_create_reply(message)) file = made->file;
    }

    std::map<std::uint64_t, answer> interims_;
    std::map<std::uint64_t, answer> finals_;
};

[[nodiscard]] std::string utf16(std::string_view text) {
    return wire::utf16_of(text).value();
}

[[nodiscard]] wire::create_args opening(const std::string& utf16_name) {
    return {.desired_access = wire::file_all_access,
            .share_access = wire::share_access(7),
            .disposition = wire::create_disposition::open_if,
            .name = std::as_bytes(std::span(utf16_name))};
}

io::task<void> tell(scripted_client& client, std::function<io::task<void>(scripted_client&)> story,
                    bool& is_told) {
    io::task<bool> setting_up = client.set_up();
    const bool is_set_up = co_await std::move(setting_up);
    EXPECT_TRUE(is_set_up);
    if (is_set_up) {
        io::task<void> telling = story(client);
        co_await std::move(telling);
    }
    (void)client.socket_.close();
    is_told = true;
}

void play(std::function<io::task<void>(scripted_client&)> story) {
    world simulated(io::simulation_options{}, 1);
    scripted_client client(simulated.connect(), simulated.clock, 1);
    bool is_told = false;
    simulated.clients.spawn(tell(client, std::move(story), is_told));
    simulated.run();
    EXPECT_TRUE(is_told) << simulated.loop->stalled();
    EXPECT_EQ(client.complaint(), "");
    simulated.stop();
}

// Opens `name`, and waits for it.
io::task<void> open_file(scripted_client& client, std::string name) {
    const std::string encoded = utf16(name);
    io::task<answer> opened = client.answer_to(client.ask(command::create, opening(encoded)));
    const answer got = co_await std::move(opened);
    EXPECT_EQ(got.status, nt_status::success);
}

io::task<void> make_large(scripted_client& client) {
    std::array<std::byte, 8> size{};
    byte_writer writer(size);
    encode(writer, wire::end_of_file_information{.end_of_file = large_bytes});
    const auto id =
        client.ask(command::set_info, wire::set_info_args{.type = wire::info_type::file,
                                                          .information_class = static_cast<std::uint8_t>(
                                                              wire::file_information_class::end_of_file),
                                                          .file = *client.file,
                                                          .input = size});
    io::task<answer> changed = client.answer_to(id);
    const answer got = co_await std::move(changed);
    EXPECT_EQ(got.status, nt_status::success);
}

io::task<void> collect_credits(scripted_client& client, std::uint64_t wanted) {
    client.credits_wanted = 512;
    while (client.credits_ < wanted) {
        io::task<void> catching_up = client.catch_up();
        co_await std::move(catching_up);
    }
}

// Reads the first 8 MiB `count` times in one compound, and returns what each was answered.
io::task<std::vector<answer>> read_in_one_frame(scripted_client& client, unsigned count) {
    client.charge = large_bytes / 65536;
    client.begin_compound();
    std::vector<std::uint64_t> ids;
    for (unsigned i = 0; i != count; ++i)
        ids.push_back(
            client.ask(command::read, wire::read_args{.file = *client.file, .length_bytes = large_bytes}));
    client.end_compound();
    client.charge = 1;
    std::vector<answer> answers;
    for (const std::uint64_t id : ids) {
        io::task<answer> reading = client.answer_to(id);
        answers.push_back(co_await std::move(reading));
    }
    co_return answers;
}

TEST(smb_server, answers_a_compound_whose_replies_do_not_fit_one_frame_in_several) {
    play([](scripted_client& client) -> io::task<void> {
        io::task<void> opened = open_file(client, "large");
        co_await std::move(opened);
        io::task<void> grown = make_large(client);
        co_await std::move(grown);
        io::task<void> rich = collect_credits(client, 400);
        co_await std::move(rich);
        io::task<std::vector<answer>> reading = read_in_one_frame(client, 3);
        for (const answer& got : co_await std::move(reading)) {
            EXPECT_EQ(got.status, nt_status::success);
            EXPECT_GE(got.message_bytes, large_bytes);
        }
        io::task<void> alive = client.catch_up();
        co_await std::move(alive);
    });
}

TEST(smb_server, refuses_what_is_left_of_a_compound_whose_replies_grow_beyond_the_limit) {
    play([](scripted_client& client) -> io::task<void> {
        io::task<void> opened = open_file(client, "large");
        co_await std::move(opened);
        io::task<void> grown = make_large(client);
        co_await std::move(grown);
        io::task<void> rich = collect_credits(client, 800);
        co_await std::move(rich);
        io::task<std::vector<answer>> reading = read_in_one_frame(client, 6);
        const std::vector<answer> answers = co_await std::move(reading);
        EXPECT_EQ(answers.front().status, nt_status::success);
        EXPECT_EQ(answers.back().status, nt_status::insufficient_resources);
        io::task<void> alive = client.catch_up();
        co_await std::move(alive);
    });
}

wire::raw_lock_element whole_range(wire::lock_flags flags) {
    return wire::encode_lock_element({.offset_bytes = 0, .length_bytes = 100, .flags = flags});
}

// Locks a range through one open and asks for it through another; returns the message that now waits.
io::task<std::uint64_t> wait_for_a_lock(scripted_client& client) {
    io::task<void> opened = open_file(client, "locked");
    co_await std::move(opened);
    const auto element = whole_range(wire::lock_flags::exclusive);
    const wire::lock_list elements(std::span(&element, 1));
    io::task<answer> locking = client.answer_to(
        client.ask(command::lock, wire::lock_args{.file = *client.file, .elements = elements}));
    const answer locked = co_await std::move(locking);
    EXPECT_EQ(locked.status, nt_status::success);
    io::task<void> opened_again = open_file(client, "locked");
    co_await std::move(opened_again);
    const std::uint64_t id =
        client.ask(command::lock, wire::lock_args{.file = *client.file, .elements = elements});
    io::task<answer> waiting = client.interim_to(id);
    const answer interim = co_await std::move(waiting);
    EXPECT_EQ(interim.status, nt_status::pending);
    client.cancels_async = interim.async_id;
    client.cancels_message = id;
    co_return id;
}

TEST(smb_server, cancels_a_request_for_nobody_but_the_session_that_made_it) {
    play([](scripted_client& client) -> io::task<void> {
        io::task<std::uint64_t> locking = wait_for_a_lock(client);
        const std::uint64_t waiting = co_await std::move(locking);
        const std::uint64_t its_session = client.session_id_;
        client.session_id_ = its_session + 1000;
        client.ask(command::cancel, wire::cancel_args{});
        client.session_id_ = its_session;
        io::task<void> after_unknown = client.catch_up();
        co_await std::move(after_unknown);
        EXPECT_FALSE(client.is_answered(waiting)) << "cancelled for a session there is not";

        io::task<bool> again = client.log_on();
        EXPECT_TRUE(co_await std::move(again));
        EXPECT_NE(client.session_id_, its_session);
        client.ask(command::cancel, wire::cancel_args{});
        io::task<void> after_other = client.catch_up();
        co_await std::move(after_other);
        EXPECT_FALSE(client.is_answered(waiting)) << "cancelled for another session";

        client.session_id_ = its_session;
        client.ask(command::cancel, wire::cancel_args{});
        io::task<answer> cancelling = client.answer_to(waiting);
        const answer got = co_await std::move(cancelling);
        EXPECT_EQ(got.status, nt_status::cancelled);
    });
}

TEST(smb_server, leaves_no_open_behind_when_the_session_of_a_waiting_create_ends) {
    play([](scripted_client& client) -> io::task<void> {
        const std::string name = utf16("shared");
        wire::create_args first = opening(name);
        first.oplock_level = wire::oplock_level::batch;
        io::task<answer> opened = client.answer_to(client.ask(command::create, first));
        const answer held = co_await std::move(opened);
        EXPECT_EQ(held.status, nt_status::success);
        const wire::file_id holder = *client.file;
        const std::uint64_t first_session = client.session_id_;
        const std::uint32_t first_tree = client.tree_id_;

        io::task<bool> again = client.log_on();
        EXPECT_TRUE(co_await std::move(again));
        io::task<bool> connected = client.connect_tree();
        EXPECT_TRUE(co_await std::move(connected));
        const std::uint64_t create = client.ask(command::create, opening(name));
        io::task<answer> waiting = client.interim_to(create);
        const answer interim = co_await std::move(waiting);
        EXPECT_EQ(interim.status, nt_status::pending) << "the oplock of the first open is being broken";
        io::task<answer> leaving = client.answer_to(client.ask(command::logoff, wire::logoff_args{}));
        const answer left = co_await std::move(leaving);
        EXPECT_EQ(left.status, nt_status::success);

        client.session_id_ = first_session;
        client.tree_id_ = first_tree;
        io::task<answer> closing =
            client.answer_to(client.ask(command::close, wire::close_args{.file = holder}));
        const answer closed = co_await std::move(closing);
        EXPECT_EQ(closed.status, nt_status::success);
        io::task<answer> ending = client.answer_to(create);
        const answer ended = co_await std::move(ending);
        EXPECT_TRUE(wire::is_error(ended.status)) << "a session that is gone opens nothing";
    });
}

}  // namespace
}  // namespace sluice::smb_simulation
