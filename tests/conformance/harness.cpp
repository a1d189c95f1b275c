#include "tests/conformance/harness.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <thread>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

// A write to a pipe without a reader must fail, and not end the tests; the library must not change
// the signal action of the user.
const auto previous_sigpipe = std::signal(SIGPIPE, SIG_IGN);

// Shells permit only 1,024 descriptors by default, and thousands of handles need two each.
const int descriptors_granted = [] {
    rlimit descriptors{};
    (void)::getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_cur = descriptors.rlim_max;
    return ::setrlimit(RLIMIT_NOFILE, &descriptors);
}();

template <class Made>
result<std::unique_ptr<io_multiplexer>> upcast(result<Made> made) {
    if (not made) return failure(made.error());
    return std::unique_ptr<io_multiplexer>(std::move(*made));
}

back_end simulation(std::string_view name, simulation_options options, bool is_exact) {
    const std::uint64_t own_seed = options.seed;
    return {.name = std::string(name) + "_" + std::to_string(own_seed),
            .make =
                [options = std::move(options)](std::uint64_t seed) {
                    simulation_options seeded = options;
                    seeded.seed = seed;
                    return upcast(make_simulated_multiplexer(seeded));
                },
            .is_exact = is_exact,
            .is_simulated = true,
            .seed = own_seed};
}

std::vector<back_end> find_back_ends() {
    std::vector<back_end> found;
    found.push_back({.name = "epoll", .make = [](auto) { return upcast(make_epoll_multiplexer(0)); }});
    found.push_back(
        {.name = "epoll_with_a_worker", .make = [](auto) { return upcast(make_epoll_multiplexer(1)); }});
    found.push_back({.name = "epoll_for_threads",
                     .make = [](auto) { return upcast(make_epoll_multiplexer(1, run_by::several)); }});
    if (try_uring().has_value()) {
        found.push_back({.name = "io_uring", .make = [](auto) { return upcast(make_uring_multiplexer()); }});
        found.push_back({.name = "io_uring_for_threads", .make = [](auto) {
                             return upcast(make_uring_multiplexer({.threads = run_by::several}));
                         }});
    } else {
        std::cerr << "io_uring: refused by this machine, not tested\n";
    }
    for (const std::uint64_t seed : seeds(1))
        found.push_back(simulation("simulated_calm", {.seed = seed}, true));
    for (const std::uint64_t seed : seeds(3))
        found.push_back(simulation("simulated_rough", simulation_options::adversarial(seed), false));
    return found;
}

int checked(int returned, const char* what) {
    if (returned < 0) {
        std::cerr << what << ": " << std::strerror(errno) << "\n";
        std::abort();
    }
    return returned;
}

io_handle adopt_socket(int descriptor) {
    return io_handle(native_handle{.descriptor = descriptor,
                                   .kind = handle_kind::socket,
                                   .readable = true,
                                   .writable = true,
                                   .stream = true});
}

constexpr int small_buffer = 16 * 1024;

void shrink(int descriptor) {
    const int size = small_buffer;
    checked(::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), "SO_SNDBUF");
    checked(::setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), "SO_RCVBUF");
}

stream_ends open_tcp_pair() {
    const int listener = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    shrink(listener);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    checked(::bind(listener, reinterpret_cast<sockaddr*>(&address), length), "bind");
    checked(::listen(listener, 1), "listen");
    checked(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), "getsockname");
    const int one_end = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    shrink(one_end);
    checked(::connect(one_end, reinterpret_cast<sockaddr*>(&address), length), "connect");
    const int other_end = checked(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), "accept4");
    for (const int end : {one_end, other_end}) {
        const int yes = 1;
        checked(::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), "TCP_NODELAY");
    }
    ::close(listener);
    return {adopt_socket(one_end), adopt_socket(other_end)};
}

stream_ends open_unix_pair() {
    std::array<int, 2> ends{};
    checked(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
    for (const int end : ends)
        shrink(end);
    return {adopt_socket(ends[0]), adopt_socket(ends[1])};
}

std::string describe(const signal_record& t) {
    return std::to_string(t.values) + " values, " + std::to_string(t.dones) + " dones, " +
           (t.in_order ? "in order" : "out of order") + ", errno " + std::to_string(t.code) + ", " +
           std::to_string(t.bytes) + " bytes";
}

testing::AssertionResult signalled_once(const signal_record& t) {
    if (t.values == 1 and t.dones == 1 and t.in_order) return testing::AssertionSuccess();
    return testing::AssertionFailure() << describe(t);
}

}  // namespace

const std::vector<back_end>& back_ends() {
    static const std::vector<back_end> found = find_back_ends();
    return found;
}

std::string_view name_of(medium kind) noexcept {
    return kind == medium::pipe ? "pipe" : kind == medium::unix_pair ? "unix_pair" : "tcp_pair";
}

std::string_view name_of(place where) noexcept {
    return where == place::device ? "device" : "memory";
}

stream_ends open_stream(medium kind) {
    if (kind == medium::tcp_pair) return open_tcp_pair();
    if (kind == medium::unix_pair) return open_unix_pair();
    auto pipe = pipe_handle::anonymous(small_buffer).value();
    return {io_handle(pipe.reader.release()), io_handle(pipe.writer.release())};
}

io_handle open_file(place where, bool append_only) {
    const std::string directory = where == place::memory ? "/dev/shm" : testing::TempDir();
    const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC | (append_only ? O_APPEND : 0);
    return io_handle(native_handle{.descriptor = checked(::open(directory.c_str(), flags, 0600), "open"),
                                   .kind = handle_kind::file,
                                   .readable = true,
                                   .writable = true,
                                   .append_only = append_only,
                                   .in_memory = where == place::memory});
}

std::vector<std::byte> pattern(std::size_t size, std::size_t from) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        const std::size_t at = from + i;
        bytes[i] = static_cast<std::byte>((at * 7 + (at >> 8) * 13 + (at >> 16)) & 0xff);
    }
    return bytes;
}

std::span<const std::byte> text(std::string_view s) noexcept {
    return std::as_bytes(std::span(s));
}

std::vector<std::byte> drain(io_handle& reader) {
    std::vector<std::byte> all;
    std::array<std::byte, 4096> some;
    for (;;) {
        const auto got = reader.try_read(io_request<bytes_type>{some});
        if (got.bytes_transferred() == 0) return all;
        all.insert(all.end(), got->begin(), got->end());
    }
}

std::size_t fill_up(io_handle& writer) {
    const std::vector<std::byte> block(4096);
    std::size_t total = 0;
    // A stream that has rejected a block may still accept a byte, but the test must find it full.
    for (const std::size_t size : {block.size(), std::size_t{1}}) {
        for (;;) {
            const auto sent = writer.try_write(io_request<const_bytes_type>{std::span(block).first(size)});
            if (sent.bytes_transferred() == 0) break;
            total += sent.bytes_transferred();
        }
    }
    return total;
}

testing::AssertionResult succeeded(const signal_record& t) {
    if (auto once = signalled_once(t); not once) return once;
    if (t.code == 0) return testing::AssertionSuccess();
    return testing::AssertionFailure() << describe(t);
}

testing::AssertionResult succeeded(const signal_record& t, std::size_t bytes) {
    if (auto once = succeeded(t); not once) return once;
    if (t.bytes == bytes) return testing::AssertionSuccess();
    return testing::AssertionFailure() << describe(t) << "; expected " << bytes;
}

testing::AssertionResult failed(const signal_record& t, int code) {
    if (auto once = signalled_once(t); not once) return once;
    if (t.code == code) return testing::AssertionSuccess();
    return testing::AssertionFailure() << describe(t) << "; expected errno " << code;
}

with_multiplexer::with_multiplexer(const back_end& which) : which_(which) {
    auto made = which.make(which.seed);
    if (not made) {
        std::cerr << which.name << ": " << made.error().message() << '\n';
        std::abort();
    }
    multiplexer_ = std::move(*made);
}

void with_multiplexer::attach(multiplexable_handle& h) const {
    const auto attached = h.set_multiplexer(multiplexer_.get());
    ASSERT_TRUE(attached.has_value());
}

std::deque<stream_read> with_multiplexer::start_reads(std::size_t count, medium kind) const {
    std::deque<stream_read> all(count);
    for (auto& each : all) {
        each.ends = open_stream(kind);
        attach(each.ends.reader);
        each.read = std::make_unique<tracked_read>(reading(each.ends.reader, each.into));
        each.read->state.start(initiation::batched);
    }
    return all;
}

bool with_multiplexer::run_until(const std::function<bool()>& met) const {
    // Simulated time is not the kernel's time: data of TCP may arrive after the simulation has no
    // work left.
    const auto wait_policy = std::chrono::steady_clock::now() + (which_.is_simulated ? 1s : 0s);
    while (not met()) {
        // While a disk writes its journal, a file may wait for seconds.
        if (multiplexer_->try_run_for(30s).value_or(0) > 0) continue;
        if (multiplexer_->pending() == 0 or std::chrono::steady_clock::now() >= wait_policy) return met();
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

void with_multiplexer::run_briefly() const {
    // A simulation needs time to pass; so does a worker thread.
    while (multiplexer_->try_run_for(which_.is_exact ? 1ms : 50ms).value_or(0) > 0) {}
}

testing::AssertionResult with_multiplexer::has_read(const signal_record& t, std::size_t there) const {
    if (which_.is_exact) return succeeded(t, there);
    if (auto once = succeeded(t); not once) return once;
    if (t.bytes >= 1 and t.bytes <= there) return testing::AssertionSuccess();
    return testing::AssertionFailure() << describe(t) << "; expected 1 to " << there;
}

void with_multiplexer::explain_failure() const {
    if (testing::Test::HasFailure() and which_.is_simulated) std::cerr << how_to_replay(which_.seed) << '\n';
}

std::string name_of_back_end(const testing::TestParamInfo<back_end>& info) {
    return info.param.name;
}

std::string name_of_stream(const testing::TestParamInfo<std::tuple<back_end, medium>>& info) {
    return std::get<0>(info.param).name + "_" + std::string(name_of(std::get<1>(info.param)));
}

std::string name_of_file(const testing::TestParamInfo<std::tuple<back_end, place>>& info) {
    return std::get<0>(info.param).name + "_" + std::string(name_of(std::get<1>(info.param)));
}

void PrintTo(const back_end& which, std::ostream* out) {
    *out << which.name;
}

}  // namespace sluice::io::conformance
