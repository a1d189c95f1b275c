#include "tests/smb_simulation/world/history_run.hpp"

#include <array>
#include <memory>

#include "sluice/io/task/awaitable.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/clients/simulated_client.hpp"
#include "tests/smb_simulation/world/loops_world.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::access_mask;
using wire::command;
using kind = operation_seen::kind;

namespace {

struct recorder {
    history all;
    std::uint64_t now = 0;
    std::size_t busy = 0;  // clients with remaining operations
};

// A client that sends one request at a time, each of them recorded.
class recorded_client final : private simulated_client {
public:
    recorded_client(recorder& to, std::size_t number, io::socket_handle socket, const clock_source& clock,
                    std::uint64_t seed)
        : simulated_client(std::move(socket), clock, seed), to_(to), number_(number) {
        ++to_.busy;
    }

    // The end of a connection would close its opens between operations of others: all end together.
    [[nodiscard]] io::task<void> live(io::io_multiplexer& loop, std::size_t operations) {
        io::task<bool> setting_up = set_up();
        bool goes_on = co_await std::move(setting_up);
        for (std::size_t i = 0; i != operations and goes_on; ++i) {
            io::task<bool> doing = do_one();
            goes_on = co_await std::move(doing);
        }
        --to_.busy;
        while (to_.busy != 0) {
            const deadline pause(std::chrono::seconds(1));  // slow calls take up to 40 s
            (void)co_await io::co_sleep(loop, pause);
        }
        (void)socket_.close();
    }

private:
    struct own_open {
        std::size_t index = 0;
        wire::file_id file{};
        bool may_lock = false;
    };

    void take_message(const wire::message_view& message) override {
        if (message.header().message_id != asked_) return;
        is_answered_ = true;
        at_hand_.status = message.header().status;
        if (at_hand_.what != kind::create) return;
        if (const auto reply = wire::decode_create_reply(message)) made_ = reply->file;
    }
    void adjust(wire::header& header) override { header.credits = 4; }

    // The history receives it immediately, so that it has an index.
    [[nodiscard]] io::task<bool> do_one() {
        at_hand_ = {.client = number_};
        const std::size_t index = to_.all.size();
        asked_ = next_message_id_;
        is_answered_ = false;
        put_one();
        at_hand_.sent = ++to_.now;
        to_.all.push_back(at_hand_);
        io::task<bool> sending = send();
        if (not co_await std::move(sending)) co_return false;
        while (not is_answered_) {
            io::task<bool> taking = take_reply();
            if (not co_await std::move(taking)) co_return false;
        }
        at_hand_.answered = ++to_.now;
        to_.all[index] = at_hand_;
        const bool is_open = at_hand_.what == kind::create and at_hand_.status == wire::nt_status::success;
        const bool may_lock =
            wire::has_any(at_hand_.access, access_mask::read_data | access_mask::write_data);
        if (is_open) opens_.push_back({.index = index, .file = made_, .may_lock = may_lock});
        co_return true;
    }

    void put_one() {
        const std::uint64_t drawn = random_.below(opens_.empty() ? 1 : 12);
        if (drawn < 4) return put_create();
        const std::size_t which = random_.below(opens_.size());
        const own_open on = opens_[which];
        at_hand_.open = on.index;
        if (drawn < 7) {
            at_hand_.what = kind::close;
            opens_.erase(opens_.begin() + static_cast<std::ptrdiff_t>(which));
            return put(command::close, wire::close_args{.file = on.file});
        }
        if (drawn >= 10 and on.may_lock) return put_lock(on);
        put_set_info(on);
    }

    void put_create() {
        constexpr std::array masks{access_mask::read_data, access_mask::write_data,
                                   access_mask::read_data | access_mask::delete_object,
                                   access_mask::delete_object};
        constexpr std::array dispositions{wire::create_disposition::open, wire::create_disposition::create,
                                          wire::create_disposition::open_if};
        at_hand_.name = static_cast<std::uint8_t>(random_.below(3));
        at_hand_.access = masks[random_.below(masks.size())];
        at_hand_.share = wire::share_access(random_.below(3) == 0 ? random_.below(8) : 7);
        at_hand_.disposition = dispositions[random_.below(dispositions.size())];
        const bool may_delete = wire::has(at_hand_.access, access_mask::delete_object);
        at_hand_.deletes_on_close = may_delete and random_.below(3) == 0;
        const std::string name = name_of(at_hand_.name);
        const std::string spelled = wire::utf16_of(name).value();
        put(command::create,
            wire::create_args{.desired_access = at_hand_.access,
                              .share_access = at_hand_.share,
                              .disposition = at_hand_.disposition,
                              .options = at_hand_.deletes_on_close ? wire::create_options::delete_on_close
                                                                   : wire::create_options::none,
                              .name = std::as_bytes(std::span(spelled))});
    }

    void put_lock(const own_open& on) {
        const bool releases = random_.below(3) == 0;
        at_hand_.what = releases ? kind::unlock : kind::lock;
        at_hand_.range = static_cast<std::uint8_t>(random_.below(2));
        const auto element = wire::encode_lock_element(
            {.offset_bytes = std::uint64_t{at_hand_.range} * 100,
             .length_bytes = 100,
             .flags = releases ? wire::lock_flags::unlock
                               : wire::lock_flags::exclusive | wire::lock_flags::fail_immediately});
        put(command::lock,
            wire::lock_args{.file = on.file, .elements = wire::lock_list(std::span(&element, 1))});
    }

    void put_set_info(const own_open& on) {
        std::array<std::byte, 256> room{};
        byte_writer writer(room);
        auto what = wire::file_information_class::disposition;
        at_hand_.name = static_cast<std::uint8_t>(random_.below(3));
        at_hand_.replaces = random_.below(2) == 0;
        switch (random_.below(3)) {
            case 0:
                at_hand_.what = kind::dispose;
                at_hand_.replaces = random_.below(4) != 0;
                encode(writer, wire::disposition_information{.delete_on_close = at_hand_.replaces});
                break;
            case 1:
                at_hand_.what = kind::rename;
                what = wire::file_information_class::rename;
                (void)encode(writer, wire::rename_information{.replace_if_exists = at_hand_.replaces,
                                                              .target = name_of(at_hand_.name)});
                break;
            default:
                at_hand_.what = kind::link;
                at_hand_.replaces = false;
                what = wire::file_information_class::link;
                (void)encode(writer, wire::link_information{.target = name_of(at_hand_.name)});
        }
        put(command::set_info, wire::set_info_args{.type = wire::info_type::file,
                                                   .information_class = static_cast<std::uint8_t>(what),
                                                   .file = on.file,
                                                   .input = *writer.finish()});
    }

    [[nodiscard]] static std::string name_of(std::uint8_t number) {
        return std::string(1, static_cast<char>('a' + number));
    }

    recorder& to_;
    std::size_t number_;
    operation_seen at_hand_;
    std::uint64_t asked_ = 0;
    bool is_answered_ = false;
    wire::file_id made_{};
    std::vector<own_open> opens_;
};

}  // namespace

history record_history(std::uint64_t seed) {
    recorder to;
    loops_world_options how{.seed = seed, .network = io::simulation_options::adversarial(seed)};
    how.shares.front().calls = calls_run(seed % 3);
    how.shares.front().slowness.chance = seed % 2 == 0 ? 0U : 300U;
    loops_world simulated(how);
    std::vector<std::unique_ptr<recorded_client>> clients;
    simulated.run([&] {
        seeded_random random(seed);
        const std::uint64_t count = 2 + random.below(5);
        for (std::uint64_t i = 0; i != count; ++i) {
            const auto number = static_cast<std::uint16_t>(i + 1);
            clients.push_back(std::make_unique<recorded_client>(to, number, simulated.connect(number),
                                                                simulated.clock(), seed * 16 + i));
            simulated.clients().spawn(clients.back()->live(simulated.clients_loop(), 3 + random.below(6)));
        }
    });
    return std::move(to.all);
}

}  // namespace sluice::smb_simulation
