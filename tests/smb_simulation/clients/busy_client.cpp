#include "tests/smb_simulation/clients/busy_client.hpp"

#include <poll.h>
#include <sys/ioctl.h>

#include <array>

#include "sluice/io/task/awaitable.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/message/cancel.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;

namespace {

constexpr std::uint64_t in_flight_max = 4;

}  // namespace

// --- a connection
// -------------------------------------------------------------------------------------------------

busy_channel::busy_channel(busy_client& of, io::socket_handle socket, std::uint64_t seed)
    : simulated_client(std::move(socket), of.clock_, seed),
      client_(of),
      number_(of.seen_.connect(of.how_.number)),
      news_(of.loop_),
      listening_(of.loop_),
      leaving_(of.loop_) {}

void busy_channel::notify() noexcept {
    news_.set(true);
}

void busy_channel::before_send(bytes_view frames) {
    client_.seen_.sent(number_, frames);
}

void busy_channel::adjust(wire::header& header) {
    header.credits = 8;
    if (header.command != command::cancel) return;
    header.flags |= wire::header_flags::async;
    header.async_id = *waiting_.begin();
}

io::task<bool> busy_channel::begin() {
    const bool is_first = client_.channels_.front().get() == this;
    guid_.bytes.fill(static_cast<std::byte>(client_.how_.number));
    if (is_first) {
        io::task<bool> setting_up = set_up();
        co_return co_await std::move(setting_up);
    }
    io::task<bool> negotiating = negotiate();
    if (not co_await std::move(negotiating)) co_return false;
    io::task<bool> binding = bind_to(*client_.channels_.front());
    co_return co_await std::move(binding);
}

io::task<void> busy_channel::live() {
    if (client_.how_.stays_at_most.count() != 0)
        leaving_.spawn(leave_after(client_.loop_, client_.how_.stays_at_most));
    io::task<bool> beginning = begin();
    if (co_await std::move(beginning)) {
        hears_ = true;
        listening_.spawn(listen());
        io::task<void> acting = act();
        co_await std::move(acting);
    } else {
        is_cut_ = true;
    }
    is_done_ = true;
    ++client_.done_;
    for (const auto& each : client_.channels_)
        each->notify();
    io::task<void> ending = end();
    co_await std::move(ending);
}

io::task<void> busy_channel::listen() noexcept {
    for (;;) {
        frame_begin_ = bytes_taken_;
        io::task<bool> taking = take_reply();
        const bool is_taken = co_await std::move(taking);
        if (not is_taken) break;
        news_.set(true);
    }
    is_cut_ = true;
    news_.set(true);
}

void busy_channel::take_message(const wire::message_view& message) {
    const wire::header& header = message.header();
    client_.seen_.received(number_, message, frame_begin_, bytes_taken_);
    client_.seen_.reached(number_, reach_of_others());
    if (header.message_id == wire::notification_message_id) {
        const auto broken = wire::decode_oplock_break_reply(message);
        if (not broken or (not client_.how_.is_polite and random_.below(4) == 0)) return;
        if (const auto* const lease = std::get_if<wire::lease_break_notification>(&broken->sent)) {
            if (wire::has(lease->flags, wire::lease_break_flags::acknowledgement_required))
                acknowledgements_.push_back(
                    {wire::lease_break{.key = lease->key, .state = lease->new_state}});
        } else if (const auto* const oplock = std::get_if<wire::oplock_break>(&broken->sent)) {
            acknowledgements_.push_back({*oplock});
        }
        return;
    }
    if (header.status == wire::nt_status::pending) {
        waiting_.insert(header.async_id);
        async_of_[header.message_id] = header.async_id;
        return;
    }
    if (const auto asked = async_of_.extract(header.message_id)) waiting_.erase(asked.mapped());
    const bool is_register = registers_asked_.erase(header.message_id) != 0;
    if (wire::is_error(header.status)) return;
    ++successes_;
    if (header.command != command::create) return;
    if (const auto reply = wire::decode_create_reply(message))
        files_.push_back({.file = reply->file, .is_register = is_register});
}

std::vector<reach> busy_channel::reach_of_others() const {
    std::vector<reach> all;
    for (const auto& each : client_.channels_) {
        if (each.get() == this or not each->hears_ or each->is_cut_ or not each->socket_.is_valid()) continue;
        int unread = 0;
        (void)::ioctl(each->socket_.native().descriptor, FIONREAD, &unread);
        // The read in flight may have taken bytes already.
        const std::uint64_t taken = each->bytes_taken_ + each->bytes_read_;
        all.push_back({.connection = each->number_,
                       .taken = each->bytes_taken_,
                       .arrived = taken + static_cast<std::uint64_t>(unread),
                       .has_unread = unread != 0});
    }
    return all;
}

// Sends all queued requests, then waits until the server has sent something.
io::task<bool> busy_channel::flush_and_wait() {
    put_acknowledgements();
    if (not outgoing_.empty()) {
        io::task<bool> sending = send();
        const bool is_sent = co_await std::move(sending);
        if (not is_sent) co_return false;
    }
    if (is_cut_) co_return false;
    if (not acknowledgements_.empty()) co_return true;
    (void)co_await news_.wait();
    news_.reset();
    co_return not is_cut_;
}

io::task<void> busy_channel::act() {
    for (unsigned done = 0; done != client_.how_.requests and problem_.empty() and not logged_off_; ++done) {
        put_acknowledgements();
        if (credits_ > 4) put_one();
        io::task<bool> sending = send();
        if (not co_await std::move(sending)) co_return;
        const std::uint64_t wanted = random_.below(in_flight_max);
        while (awaited_ > wanted + waiting_.size() or credits_ <= 4) {
            io::task<bool> waiting = flush_and_wait();
            if (not co_await std::move(waiting)) co_return;
        }
        if (random_.below(10) == 0) {
            const deadline pause(std::chrono::microseconds(random_.below(5000)));
            (void)co_await io::co_sleep(client_.loop_, pause);
        }
        if (waiting_.size() > 3) put_cancels();
    }
}

// A polite client leaves only after all requests have been answered, on all channels.
io::task<void> busy_channel::end() {
    const bool is_orderly = client_.how_.is_polite or random_.below(3) == 0;
    while (is_orderly and hears_ and not is_cut_ and problem_.empty()) {
        if (awaited_ == 0 and acknowledgements_.empty() and client_.done_ == client_.channels_.size()) break;
        if (not waiting_.empty()) put_cancels();
        io::task<bool> waiting = flush_and_wait();
        if (not co_await std::move(waiting)) break;
    }
    const bool by_server = not has_left() and (is_cut_ or is_ended_by_server());
    if (is_orderly and hears_ and not by_server and not has_left())
        client_.seen_.expect_all_answered(number_);
    client_.seen_.closed(number_, by_server);
    (void)socket_.shutdown(io::direction::out);
    (void)socket_.shutdown(io::direction::in);
    co_await listening_.join();
    leaving_.cancel();
    co_await leaving_.join();
    (void)socket_.close();
}

bool busy_channel::is_ended_by_server() const noexcept {
    pollfd one{.fd = socket_.native().descriptor, .events = POLLRDHUP, .revents = 0};
    return ::poll(&one, 1, 0) == 1;
}

// --- requests
// -------------------------------------------------------------------------------------------------

busy_channel::open_name busy_channel::some_file() {
    return files_.empty() ? open_name{} : files_[random_.below(files_.size())];
}

void busy_channel::put_acknowledgements() {
    while (not acknowledgements_.empty() and credits_ > 0) {
        put(command::oplock_break, acknowledgements_.back());
        acknowledgements_.pop_back();
    }
}

void busy_channel::put_cancels() {
    while (not waiting_.empty()) {
        put(command::cancel, wire::cancel_args{});
        waiting_.erase(waiting_.begin());
    }
}

void busy_channel::put_one() {
    switch (random_.below(16)) {
        case 0:
        case 1:
        case 2:
        case 3:
            return put_create();
        case 4:
        case 5:
        case 6:
        case 7:
            return put_data_request();
        case 8:
        case 9:
            return put_lock();
        case 10: {
            if (files_.empty()) return;
            const std::size_t which = random_.below(files_.size());
            put(command::close, wire::close_args{.file = files_[which].file});
            files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(which));
            return;
        }
        case 11:
            return put_set_info();
        case 12:
            return put_watch();
        case 13:
            return put_compound();
        case 14:
            if (not waiting_.empty() and random_.below(2) == 0) return put_cancels();
            return put(command::echo, wire::echo_args{});
        default:
            if (client_.how_.is_polite or random_.below(12) != 0)
                return put(command::echo, wire::echo_args{});
            logged_off_ = true;
            return put(command::logoff, wire::logoff_args{});
    }
}

void busy_channel::put_create() {
    constexpr std::array registers{"r1", "r2"};
    constexpr std::array others{"a", "b", "d", "d\\c", "a:s"};
    const bool is_register = random_.below(2) == 0;
    const char* const name =
        is_register ? registers[random_.below(registers.size())] : others[random_.below(others.size())];
    const std::string spelled = wire::utf16_of(name).value();
    wire::create_args args{.desired_access = wire::file_all_access,
                           .share_access = wire::share_access(7),
                           .disposition = wire::create_disposition::open_if,
                           .name = view(spelled)};
    args.contexts.on_disk_id = true;
    if (is_register) {
        registers_asked_.insert(next_message_id_);
        if (random_.below(3) == 0) args.desired_access = wire::file_generic_read;
    } else {
        args.disposition = wire::create_disposition(random_.below(6));
        if (random_.below(3) == 0) args.desired_access = wire::file_generic_read;
        if (random_.below(3) == 0) args.share_access = wire::share_access(random_.below(8));
        if (random_.below(6) == 0) args.options |= wire::create_options::delete_on_close;
        if (std::string_view(name) == "d") args.options |= wire::create_options::directory_file;
    }
    switch (random_.below(4)) {
        case 0:
            args.oplock_level =
                random_.below(2) == 0 ? wire::oplock_level::batch : wire::oplock_level::level_2;
            break;
        case 1:
            args.oplock_level = wire::oplock_level::lease;
            args.contexts.lease.emplace();
            args.contexts.lease->key.bytes[0] = static_cast<std::byte>(name[0]);
            args.contexts.lease->key.bytes[1] = static_cast<std::byte>(name[1]);
            args.contexts.lease->key.bytes[2] = static_cast<std::byte>(random_.below(2));
            // One key in two clients of a user would mean one cache.
            std::copy_n(guid_.bytes.begin(), 8, args.contexts.lease->key.bytes.begin() + 8);
            args.contexts.lease->state = wire::lease_state(1 + random_.below(7));
            break;
        default:
            break;
    }
    put(command::create, args);
}

void busy_channel::put_data_request() {
    const open_name which = some_file();
    std::array<std::byte, 8> data{};
    // Each value is written once: it contains the client, the channel and the message.
    data[0] = static_cast<std::byte>(number_ + 1);
    const std::uint64_t id = next_message_id_;
    std::memcpy(data.data() + 1, &id, 6);
    const std::uint64_t offset = which.is_register ? 0 : random_.below(40);
    if (random_.below(3) == 0)
        put(command::write, wire::write_args{.file = which.file, .offset_bytes = offset, .data = data});
    else
        put(command::read, wire::read_args{.file = which.file, .offset_bytes = offset, .length_bytes = 8});
}

void busy_channel::put_lock() {
    const open_name which = some_file();
    if (which.is_register) return put(command::echo, wire::echo_args{});
    const wire::raw_lock_element element = random_lock(3);
    put(command::lock,
        wire::lock_args{.file = which.file, .elements = wire::lock_list(std::span(&element, 1))});
}

void busy_channel::put_set_info() {
    const open_name which = some_file();
    if (which.is_register) return put(command::echo, wire::echo_args{});
    constexpr std::array targets{"a", "b", "d\\c", "e"};
    const std::string target = targets[random_.below(targets.size())];
    std::array<std::byte, 256> room{};
    byte_writer writer(room);
    auto what = wire::file_information_class::disposition;
    const std::uint64_t drawn = random_.below(3);
    const bool replaces = random_.below(2) == 0;
    if (drawn == 0) {
        what = wire::file_information_class::rename;
        (void)encode(writer, wire::rename_information{.replace_if_exists = replaces, .target = target});
    } else if (drawn == 1) {
        what = wire::file_information_class::link;
        (void)encode(writer, wire::link_information{.replace_if_exists = replaces, .target = target});
    } else {
        encode(writer, wire::disposition_information{.delete_on_close = random_.below(3) != 0});
    }
    put(command::set_info, wire::set_info_args{.type = wire::info_type::file,
                                               .information_class = static_cast<std::uint8_t>(what),
                                               .file = which.file,
                                               .input = *writer.finish()});
}

void busy_channel::put_watch() {
    put(command::change_notify,
        wire::change_notify_args{
            .output_bytes_max = 1024, .file = some_file().file, .filter = wire::completion_filter(0xfff)});
}

// CREATE, WRITE and CLOSE in one frame.
void busy_channel::put_compound() {
    const std::string name = wire::utf16_of(random_.below(2) == 0 ? "b" : "d\\c").value();
    const std::array<std::byte, 8> data{};
    begin_compound();
    wire::create_args args{.desired_access = wire::file_all_access,
                           .share_access = wire::share_access(7),
                           .disposition = wire::create_disposition::open_if,
                           .name = view(name)};
    args.contexts.on_disk_id = true;
    put(command::create, args);
    is_related_ = true;
    put(command::write, wire::write_args{.file = wire::file_id_of_previous, .data = data});
    if (random_.below(3) != 0) put(command::close, wire::close_args{.file = wire::file_id_of_previous});
    is_related_ = false;
    end_compound();
}

// --- the client
// -------------------------------------------------------------------------------------------------

busy_client::busy_client(io::io_multiplexer& loop, const clock_source& clock, exchanges& seen, habits how)
    : loop_(loop), clock_(clock), seen_(seen), how_(std::move(how)) {
    for (std::size_t i = 0; i != how_.channels; ++i)
        channels_.push_back(std::make_unique<busy_channel>(*this, how_.dial(), how_.seed * 8 + i));
}

// The other channels join the session that the first one has set up.
io::task<void> busy_client::live() {
    io::task_group living(loop_);
    living.spawn(channels_.front()->live());
    while (channels_.size() > 1 and not channels_.front()->hears_ and not channels_.front()->is_cut_) {
        const deadline pause(std::chrono::milliseconds(1));
        (void)co_await io::co_sleep(loop_, pause);
    }
    for (std::size_t i = 1; i != channels_.size(); ++i)
        living.spawn(channels_[i]->live());
    co_await living.join();
}

std::string busy_client::problem() const {
    std::string all;
    for (const auto& each : channels_)
        all += each->problem();
    return all;
}

unsigned busy_client::successes() const {
    unsigned all = 0;
    for (const auto& each : channels_)
        all += each->successes();
    return all;
}

}  // namespace sluice::smb_simulation
