// What a server spends per operation when the client is not the limit: logs on once, keeps `depth` requests
// under way on one connection, and throws the answers away in the kernel (MSG_TRUNC), so that nearly all of
// what a client costs is left out. bench/smb.py runs it; by hand:
//
//     smb_load PORT SHARE USER PASSWORD WORKLOAD [--protection unsigned|signed|encrypted] [--bytes N]
//              [--depth N] [--count N] [--spin yes] [--pid SERVER]
//
// WORKLOAD: read, write (of the file "load", from its begin to its end and again), echo, open_close. Prints
// how many operations there were, how long they took, and, of a SERVER named by its process id, its CPU time.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/negotiator.hpp"
#include "sluice/smb/auth/sealing.hpp"
#include "sluice/smb/auth/signing.hpp"
#include "sluice/smb/wire/close.hpp"
#include "sluice/smb/wire/compound.hpp"
#include "sluice/smb/wire/create.hpp"
#include "sluice/smb/wire/echo.hpp"
#include "sluice/smb/wire/frame.hpp"
#include "sluice/smb/wire/negotiate.hpp"
#include "sluice/smb/wire/read.hpp"
#include "sluice/smb/wire/session_setup.hpp"
#include "sluice/smb/wire/transform_header.hpp"
#include "sluice/smb/wire/tree_connect.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/smb/wire/write.hpp"

namespace sluice::bench {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;

enum class protection { unsigned_, signed_, encrypted };

struct options {
    std::uint16_t port = 0;
    std::string share;
    std::string user;
    std::string password;
    std::string workload;
    protection protects = protection::unsigned_;
    std::uint32_t bytes = 1U << 20;
    unsigned depth = 4;
    std::uint64_t count = 1000;
    pid_t pid = 0;
    bool spins = false;
};

[[noreturn]] void give_up(const char* what) {
    std::fprintf(stderr, "smb_load: %s\n", what);
    std::exit(1);
}

void require(bool holds, const char* what) {
    if (not holds) give_up(what);
}

constexpr std::uint64_t file_bytes = 256U << 20;  // eight times what a large L3 cache holds
constexpr std::uint32_t write_bytes = 64U << 10;  // of the file to be read
constexpr std::uint16_t credits_wanted = 2048;

/// A client that waits for its answers, one connection. Requests may be sent ahead.
class client {
public:
    explicit client(const options& chosen)
        : chosen_(chosen), room_(std::max(chosen.bytes, write_bytes) + 4096) {
        socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
        const sockaddr_in where{.sin_family = AF_INET,
                                .sin_port = htons(chosen.port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                                .sin_zero = {}};
        const int on = 1;
        (void)::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        require(::connect(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0, "connect");
        negotiate();
        log_on();
        const std::string path = wire::utf16_of("\\\\127.0.0.1\\" + chosen.share).value();
        call(command::tree_connect, wire::tree_connect_args{.path = view(path)});
        tree_id_ = reply().header().tree_id;
    }
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    ~client() { ::close(socket_); }

    [[nodiscard]] wire::create_reply open(const char* name) {
        send_open(name);
        take();
        const auto made = wire::decode_create_reply(reply());
        require(made.has_value(), "create");
        return *made;
    }
    void send_open(const char* name) {
        const std::string spelled = wire::utf16_of(name).value();
        const wire::create_args how{
            .desired_access = wire::access_mask::read_data | wire::access_mask::write_data,
            .share_access = wire::share_access::read | wire::share_access::write,
            .disposition = wire::create_disposition::open_if,
            .name = view(spelled)};
        send(command::create, how);
    }

    template <class Args>
    void send(command code, const Args& args, std::uint16_t charge = 1) {
        const std::size_t before = is_sealed_ ? wire::transform_header_bytes : 0;
        byte_writer writer(mutable_bytes(room_.data() + wire::frame_prefix_bytes + before,
                                         room_.size() - wire::frame_prefix_bytes - before));
        wire::header header;
        header.command = code;
        header.credits = credits_wanted;
        header.credit_charge = charge;
        header.session_id = session_id_;
        header.tree_id = tree_id_;
        header.message_id = next_message_id_;
        next_message_id_ += charge;
        if (is_signed_) header.flags |= wire::header_flags::signed_message;
        encode(writer, header);
        encode(writer, args);
        const auto message = writer.finish();
        require(message.has_value(), "a request without room");
        if (preauth_open_) preauth_.add(*message);
        if (is_signed_) sign(*message, header.message_id);
        std::size_t bytes = message->size();
        if (is_sealed_) {
            const bytes_view part = *message;
            const mutable_bytes sealed(room_.data() + wire::frame_prefix_bytes, before + bytes);
            require(sealer_->seal(session_id_, std::span(&part, 1), sealed).has_value(), "seal");
            bytes += before;
        }
        byte_writer prefix(room_);
        wire::encode_frame_prefix(prefix, bytes);
        put(std::span(room_).first(wire::frame_prefix_bytes + bytes));
    }
    template <class Args>
    void call(command code, const Args& args) {
        send(code, args);
        take();
    }

    /// The reply that take() took.
    [[nodiscard]] wire::message_view reply() const { return *wire::message_view::of(received_); }

    /// Takes a reply, whole.
    void take() {
        received_.resize(take_length());
        fill(received_);
        if (is_sealed_) open_sealed();
        if (preauth_open_ and reply().header().status != wire::nt_status::success) preauth_.add(received_);
    }
    /// Takes a reply and looks at its status only; what is sealed is not even looked at.
    void drop() {
        std::size_t left = take_length();
        if (not is_sealed_) {
            fill(std::span(head_));
            left -= head_.size();
            const auto header = wire::decode_header(head_);
            require(header and header->status == wire::nt_status::success, "an answer is an error");
        }
        while (left != 0) {
            const int how = chosen_.spins ? MSG_TRUNC | MSG_DONTWAIT : MSG_TRUNC | MSG_WAITALL;
            const ssize_t got = ::recv(socket_, nullptr, left, how);
            if (got < 0 and errno == EAGAIN) continue;
            require(got > 0, "the server has hung up");
            left -= static_cast<std::size_t>(got);
        }
    }
    /// From here on requests are protected as chosen.
    void protect() {
        is_signed_ = chosen_.protects == protection::signed_;
        is_sealed_ = chosen_.protects == protection::encrypted;
    }

private:
    static bytes_view view(const std::string& text) { return std::as_bytes(std::span(text)); }

    void negotiate() {
        preauth_open_ = true;
        const le16 dialect(static_cast<std::uint16_t>(wire::dialect::smb_3_1_1));
        const le16 hash(1);
        const le16 cipher(static_cast<std::uint16_t>(wire::cipher::aes_128_gcm));
        const le16 signing(static_cast<std::uint16_t>(wire::signing_algorithm::aes_gmac));
        std::array<std::byte, 32> salt{};
        wire::negotiate_args hello{
            .security_mode = wire::security_mode::signing_enabled,
            .capabilities = wire::capabilities::large_mtu | wire::capabilities::encryption,
            .client_guid = {},
            .dialects = wire::code_list<wire::dialect>(std::span(&dialect, 1)),
            .contexts = {}};
        hello.contexts.preauth = wire::preauth_integrity{
            .hashes = wire::code_list<wire::hash_algorithm>(std::span(&hash, 1)), .salt = salt};
        hello.contexts.ciphers = wire::code_list<wire::cipher>(std::span(&cipher, 1));
        hello.contexts.signing = wire::code_list<wire::signing_algorithm>(std::span(&signing, 1));
        call(command::negotiate, hello);
        preauth_.add(received_);
        const auto agreed = wire::decode_negotiate_reply(reply());
        require(agreed and agreed->contexts.ciphers and
                    agreed->contexts.ciphers->contains(wire::cipher::aes_128_gcm),
                "no AES-128-GCM");
        if (agreed->contexts.signing and
            agreed->contexts.signing->contains(wire::signing_algorithm::aes_gmac))
            signing_ = auth::signing_algorithm::aes_gmac;
    }

    void log_on() {
        const auth::credentials who{.user = chosen_.user,
                                    .domain = {},
                                    .workstation = {},
                                    .target_name = {},
                                    .hash = auth::nt_hash::of_password(chosen_.password).value()};
        auth::initiating_negotiator initiator(who, secrets_, clock_);
        std::vector<std::byte> token;
        for (;;) {
            auto step = initiator.step(token);
            if (const auto* done = std::get_if<auth::step_done>(&step)) {
                make_keys(*done);
                return;
            }
            const auto* const next = std::get_if<auth::step_continue>(&step);
            require(next != nullptr, "log on");
            call(command::session_setup,
                 wire::session_setup_args{.security_mode = wire::security_mode::signing_enabled,
                                          .security_blob = next->token});
            const auto said = wire::decode_session_setup_reply(reply());
            require(said.has_value(), "the server refuses the log-on");
            session_id_ = reply().header().session_id;
            token.assign(said->security_blob.begin(), said->security_blob.end());
        }
    }

    void make_keys(const auth::step_done& done) {
        preauth_open_ = false;
        auth::session_keys keys = auth::derive_session_keys({.full_session_key = done.key.view(),
                                                             .cipher = auth::cipher_algorithm::aes_128_gcm,
                                                             .preauth_hash = preauth_.value()});
        signer_.emplace(auth::signer::create(signing_, keys.signing).value());
        sealing_.emplace(std::move(keys.client_to_server));
        sealer_.emplace(sealing_->make_sealer(secrets_).value());
        opener_.emplace(auth::opener::create(keys.server_to_client).value());
    }

    void sign(mutable_bytes message, std::uint64_t message_id) {
        const auth::signed_message which{
            .message_id = message_id, .sender = auth::message_sender::client, .is_cancel = false};
        const bytes_view part = message;
        const auto made = signer_->sign(std::span(&part, 1), which);
        std::memcpy(message.data() + wire::header_signature_offset, made.data(), made.size());
    }

    void open_sealed() {
        const bytes_view header(received_.data(), wire::transform_header_bytes);
        const mutable_bytes plain(received_.data() + wire::transform_header_bytes,
                                  received_.size() - wire::transform_header_bytes);
        const bytes_view part = plain;
        require(opener_->open(header, std::span(&part, 1), plain), "an answer cannot be opened");
        received_.erase(received_.begin(), received_.begin() + wire::transform_header_bytes);
    }

    void put(std::span<const std::byte> bytes) const {
        while (not bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            require(sent > 0, "the server has hung up");
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
        }
    }
    void fill(std::span<std::byte> room) const {
        while (not room.empty()) {
            const ssize_t got =
                ::recv(socket_, room.data(), room.size(), chosen_.spins ? MSG_DONTWAIT : MSG_WAITALL);
            if (got < 0 and errno == EAGAIN) continue;
            require(got > 0, "the server has hung up");
            room = room.subspan(static_cast<std::size_t>(got));
        }
    }
    [[nodiscard]] std::size_t take_length() const {
        std::array<std::byte, wire::frame_prefix_bytes> prefix{};
        fill(prefix);
        const auto length = wire::decode_frame_prefix(prefix, wire::frame_bytes_max);
        require(length.has_value() and *length >= wire::header_bytes, "a frame without a length");
        return *length;
    }

    const options& chosen_;
    int socket_ = -1;
    std::vector<std::byte> room_;
    std::vector<std::byte> received_;
    std::array<std::byte, wire::header_bytes> head_{};
    system_random secrets_;
    system_clock_source clock_;
    auth::preauth_integrity preauth_;
    bool preauth_open_ = false;
    auth::signing_algorithm signing_ = auth::signing_algorithm::aes_cmac;
    std::optional<auth::signer> signer_;
    std::optional<auth::sealing_key> sealing_;
    std::optional<auth::sealer> sealer_;
    std::optional<auth::opener> opener_;
    bool is_signed_ = false;
    bool is_sealed_ = false;
    std::uint64_t next_message_id_ = 0;
    std::uint64_t session_id_ = 0;
    std::uint32_t tree_id_ = 0;
};

/// One kind of operation: sends the n-th, takes an answer.
class load {
public:
    load(client& through, const options& chosen)
        : through_(through), chosen_(chosen), data_(chosen.workload == "write" ? chosen.bytes : 0) {
        if (chosen.workload != "read" and chosen.workload != "write") return;
        const wire::create_reply made = through.open("load");
        file_ = made.file;
        if (made.information.end_of_file_bytes < file_bytes) fill_file();
    }

    void begin(std::uint64_t n) {
        const std::uint64_t offset = n % (file_bytes / chosen_.bytes) * chosen_.bytes;
        const auto charge = static_cast<std::uint16_t>(wire::credit_charge_of(chosen_.bytes));
        if (chosen_.workload == "read")
            through_.send(
                command::read,
                wire::read_args{.file = file_, .offset_bytes = offset, .length_bytes = chosen_.bytes},
                charge);
        else if (chosen_.workload == "write")
            through_.send(command::write,
                          wire::write_args{.file = file_, .offset_bytes = offset, .data = data_}, charge);
        else if (chosen_.workload == "echo")
            through_.send(command::echo, wire::echo_args{});
        else
            through_.send_open("load");
    }
    void end() {
        if (chosen_.workload != "open_close") {
            through_.drop();
            return;
        }
        through_.take();
        const auto made = wire::decode_create_reply(through_.reply());
        require(made.has_value(), "create");
        through_.call(command::close, wire::close_args{.file = made->file});
    }

private:
    void fill_file() {
        const std::vector<std::byte> piece(write_bytes, std::byte{7});
        for (std::uint64_t offset = 0; offset != file_bytes; offset += piece.size()) {
            through_.send(command::write,
                          wire::write_args{.file = file_, .offset_bytes = offset, .data = piece});
            through_.take();
        }
    }

    client& through_;
    const options& chosen_;
    std::vector<std::byte> data_;
    wire::file_id file_{};
};

double cpu_seconds_of(pid_t process) {
    if (process == 0) return 0;
    timespec used{};
    const auto clock = static_cast<clockid_t>(~static_cast<unsigned>(process) << 3U | 2U);
    require(::clock_gettime(clock, &used) == 0, "no such server process");
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

template <class Number>
Number number_in(const char* text) {
    Number number{};
    const std::string_view digits(text);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    require(problem == std::errc{} and end == digits.data() + digits.size(), "a number that is none");
    return number;
}

options parse(int argc, char** argv) {
    if (argc < 6) give_up("PORT SHARE USER PASSWORD WORKLOAD are needed; see the source");
    options chosen{.port = number_in<std::uint16_t>(argv[1]),
                   .share = argv[2],
                   .user = argv[3],
                   .password = argv[4],
                   .workload = argv[5]};
    for (int i = 6; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const std::string_view value = argv[i + 1];
        if (name == "--protection")
            chosen.protects = value == "signed"      ? protection::signed_
                              : value == "encrypted" ? protection::encrypted
                                                     : protection::unsigned_;
        else if (name == "--bytes")
            chosen.bytes = number_in<std::uint32_t>(argv[i + 1]);
        else if (name == "--depth")
            chosen.depth = number_in<unsigned>(argv[i + 1]);
        else if (name == "--count")
            chosen.count = number_in<std::uint64_t>(argv[i + 1]);
        else if (name == "--pid")
            chosen.pid = number_in<pid_t>(argv[i + 1]);
        else if (name == "--spin")
            chosen.spins = value == "yes";
        else
            give_up("an option that is none");
    }
    if (chosen.workload == "open_close") chosen.depth = 1;
    return chosen;
}

int run(const options& chosen) {
    client through(chosen);
    load work(through, chosen);
    through.protect();
    const double cpu_before = cpu_seconds_of(chosen.pid);
    const auto began = std::chrono::steady_clock::now();
    std::uint64_t sent = 0;
    for (std::uint64_t done = 0; done != chosen.count; ++done) {
        while (sent != chosen.count and sent - done < chosen.depth)
            work.begin(sent++);
        work.end();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const double cpu = cpu_seconds_of(chosen.pid) - cpu_before;
    std::printf("{\"operations\": %llu, \"bytes\": %u, \"seconds\": %.6f, \"server_cpu\": %.6f}\n",
                static_cast<unsigned long long>(chosen.count), chosen.bytes, took.count(), cpu);
    return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    return sluice::bench::run(sluice::bench::parse(argc, argv));
}
