#pragma once

#include <array>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "tests/smb_simulation/clients/simulated_client.hpp"
#include "tests/smb_simulation/world/loops_world.hpp"

namespace sluice::smb_simulation {

/// A moment that several scripts wait for. Thread safety: the clients' loop.
class script_signal {
public:
    explicit script_signal(io::io_multiplexer& loop) noexcept : loop_(loop) {}

    void give() {
        is_given_ = true;
        for (smb::server::one_shot_event<bool>* const each : waiting_)
            each->set(true);
    }
    /// Suspends until it is given.
    [[nodiscard]] io::task<void> wait() {
        if (is_given_) co_return;
        smb::server::one_shot_event<bool> given(loop_);
        waiting_.push_back(&given);
        (void)co_await given.wait();
        std::erase(waiting_, &given);
    }

private:
    io::io_multiplexer& loop_;
    bool is_given_ = false;
    std::vector<smb::server::one_shot_event<bool>*> waiting_;
};

/// A client of a script: a coroutine that sends requests, and waits for their replies in turn or
/// later. So several of them meet in a server of several loops, in an order that the seed decides.
///
///     const std::uint64_t opening = one.send_create("f", how);
///     const nt_status status = co_await one.answer_to(opening);
///
/// Requests are encoded at once and sent by the next answer_to() or flush(). Thread safety: the
/// clients' loop.
class scripted_client final : public simulated_client {
public:
    /// `number` determines its address and its GUID.
    scripted_client(loops_world& in, std::uint16_t number, std::uint64_t seed = 1);

    /// Negotiates, logs on and connects to a share. Returns false if the server has refused that.
    /// Suspends.
    [[nodiscard]] io::task<bool> join(std::string_view share = "files");
    /// Negotiates, becomes a channel of the session of `first`, and uses its tree. Suspends.
    [[nodiscard]] io::task<bool> join_session_of(const scripted_client& first);
    /// Negotiates and logs on; the session with the ID `previous_session`, if any, ends. Suspends.
    [[nodiscard]] io::task<bool> log_on_again(std::uint64_t previous_session);
    /// Gives a signal before the last request of a logon is sent.
    void signal_proof(script_signal& by) noexcept { proves_ = &by; }
    /// Connects to a share. Suspends.
    [[nodiscard]] io::task<bool> use(std::string_view share);
    /// Offers SMB 3.1.1 instead of 3.0.2. Before it negotiates.
    void offer_newest_dialect() { signing_offers_ = {smb::wire::signing_algorithm::aes_cmac}; }
    [[nodiscard]] std::uint64_t session() const noexcept { return session_id_; }

    /// Encodes a request. Returns its message ID.
    template <class Args>
    std::uint64_t send(smb::wire::command code, const Args& args) {
        const std::uint64_t id = next_message_id_;
        put(code, args);
        return id;
    }
    std::uint64_t send_create(std::string_view name, smb::wire::create_args how = for_everything());
    std::uint64_t send_close(const smb::wire::file_id& file) {
        return send(smb::wire::command::close, smb::wire::close_args{.file = file});
    }
    template <class Information>
    std::uint64_t send_change(const smb::wire::file_id& file, smb::wire::file_information_class what,
                              const Information& wanted) {
        std::array<std::byte, 512> room{};
        byte_writer writer(room);
        (void)encode(writer, wanted);
        return send(smb::wire::command::set_info,
                    smb::wire::set_info_args{.type = smb::wire::info_type::file,
                                             .information_class = static_cast<std::uint8_t>(what),
                                             .file = file,
                                             .input = *writer.finish()});
    }
    /// Requests the cancellation of a request, by its async ID if there is one.
    void send_cancel(std::uint64_t message_id);
    /// Sends the encoded requests. Suspends.
    [[nodiscard]] io::task<bool> flush() { return simulated_client::send(); }

    /// Sends the encoded requests, and returns the status of the final reply to a request;
    /// network_name_deleted if the server has ended the connection. Suspends.
    [[nodiscard]] io::task<smb::wire::nt_status> answer_to(std::uint64_t message_id);
    /// The open of a CREATE that has succeeded.
    struct open_file {
        smb::wire::file_id file{};
        smb::wire::oplock_level oplock{};
    };
    /// Sends a request, and returns the status of its final reply. Suspends.
    template <class Args>
    [[nodiscard]] io::task<smb::wire::nt_status> call(smb::wire::command code, const Args& args) {
        return answer_to(send(code, args));
    }
    /// Opens or creates a file, which succeeds. Suspends.
    [[nodiscard]] io::task<open_file> create(std::string name, smb::wire::create_args how = for_everything());
    /// Returns the open of a CREATE that has succeeded, after answer_to().
    [[nodiscard]] const open_file& opened_by(std::uint64_t message_id) const {
        return opened_.at(message_id);
    }
    [[nodiscard]] smb::wire::nt_status status_of(std::uint64_t message_id) const {
        return statuses_.at(message_id);
    }
    /// Returns whether the final reply has been received.
    [[nodiscard]] bool has_answer_to(std::uint64_t message_id) const {
        return statuses_.contains(message_id);
    }
    /// Returns the message after its header, for a READ or a control.
    [[nodiscard]] const std::vector<std::byte>& last_message() const noexcept { return last_message_; }
    /// Receives replies and breaks until the server ends the connection, or fall_silent() is
    /// called; then closes it. Suspends.
    [[nodiscard]] io::task<void> listen();
    void fall_silent();
    /// Waits for a random time of less than `most`. Suspends.
    [[nodiscard]] io::task<void> pause(std::chrono::microseconds most);
    /// Waits for that time. Suspends.
    [[nodiscard]] io::task<void> stay(std::chrono::seconds time);
    /// Closes the connection: the end of a script.
    void leave() { (void)socket_.close(); }
    [[nodiscard]] unsigned breaks() const noexcept { return breaks_; }

    [[nodiscard]] static smb::wire::create_args for_everything();
    /// The same without sharing.
    [[nodiscard]] static smb::wire::create_args alone();

private:
    void take_message(const smb::wire::message_view& message) override;
    void adjust(smb::wire::header& header) override;
    void before_proof() override {
        if (proves_ != nullptr) proves_->give();
    }
    void acknowledge(const smb::wire::message_view& message);

    loops_world& world_;
    std::map<std::uint64_t, smb::wire::nt_status> statuses_;  // by message ID
    std::map<std::uint64_t, open_file> opened_;               // the same
    std::map<std::uint64_t, std::uint64_t> async_ids_;        // the same
    std::vector<std::byte> last_message_;
    std::uint64_t cancelled_ = 0;
    unsigned breaks_ = 0;
    script_signal* proves_ = nullptr;
};

}  // namespace sluice::smb_simulation
