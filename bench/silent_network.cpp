#include "bench/silent_network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "bench/io/pipe_source.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench {
namespace {

constexpr std::uint32_t first_sent = 1000;  // sequence numbers
constexpr std::uint32_t first_received = 2000;
constexpr std::uint16_t peer_port = 6000;
const in_addr here{htonl(0x0a000001)};  // 10.0.0.1
const in_addr peer{htonl(0x0a000002)};

template <class T>
void set(int socket, int option, const T& value) {
    ENSURE(::setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value) == 0);
}

int open_tun() {
    const int tun = ::open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    ifreq request{};
    constexpr std::string_view name = "acks";
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (tun < 0 or ::ioctl(tun, TUNSETIFF, &request) != 0) return -1;
    return tun;
}

// Called once for the process, which has its own network from then on.
int tun_of_own_network() {
    static const int tun = [] {
        if (::unshare(CLONE_NEWNET) != 0) return -1;
        const int made = open_tun();
        if (made < 0) return -1;
        const bool is_up = std::system(
                               "ip link set acks up && ip link add silent type ifb && "
                               "ip addr add 10.0.0.1/24 dev silent && ip link set silent up && "
                               "ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev silent && "
                               "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done") == 0;
        return is_up ? made : -1;
    }();
    return tun;
}

std::uint32_t sum_of(const void* words, std::size_t bytes) {
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at != bytes; at += 2) {
        std::uint16_t word = 0;
        std::memcpy(&word, static_cast<const char*>(words) + at, sizeof word);
        sum += word;
    }
    return sum;
}

std::uint16_t folded(std::uint32_t sum) {
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

void send_acknowledgement(std::uint16_t port, std::uint32_t up_to) {
    struct {
        iphdr ip;
        tcphdr tcp;
    } packet{};
    packet.ip.version = 4;
    packet.ip.ihl = 5;
    packet.ip.tot_len = htons(sizeof packet);
    packet.ip.ttl = 64;
    packet.ip.protocol = IPPROTO_TCP;
    packet.ip.saddr = peer.s_addr;
    packet.ip.daddr = here.s_addr;
    packet.ip.check = folded(sum_of(&packet.ip, sizeof packet.ip));
    packet.tcp.source = htons(peer_port);
    packet.tcp.dest = htons(port);
    packet.tcp.seq = htonl(first_received);
    packet.tcp.ack_seq = htonl(up_to);
    packet.tcp.doff = sizeof packet.tcp / 4;
    packet.tcp.ack = 1;
    packet.tcp.window = 0xffff;
    const std::uint32_t pseudo_header =
        sum_of(&packet.ip.saddr, 8) + htons(IPPROTO_TCP) + htons(sizeof packet.tcp);
    packet.tcp.check = folded(pseudo_header + sum_of(&packet.tcp, sizeof packet.tcp));
    ENSURE(::write(tun_of_own_network(), &packet, sizeof packet) == sizeof packet);
}

void number(int socket, int queue, std::uint32_t from) {
    set(socket, TCP_REPAIR_QUEUE, queue);
    set(socket, TCP_QUEUE_SEQ, from);
}

sockaddr_in address(in_addr of, std::uint16_t port) {
    return {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = of, .sin_zero = {}};
}

// Establishes the connection, as far as this kernel knows.
void establish(int socket, std::uint16_t port) {
    set(socket, TCP_REPAIR, int{TCP_REPAIR_ON});
    number(socket, TCP_SEND_QUEUE, first_sent);
    number(socket, TCP_RECV_QUEUE, first_received);
    const sockaddr_in from = address(here, port);
    const sockaddr_in to = address(peer, peer_port);
    ENSURE(::bind(socket, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0);
    ENSURE(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    constexpr std::uint32_t option_segment = 2;
    constexpr std::uint32_t option_window_scale = 3;
    set(socket, TCP_REPAIR_OPTIONS,
        std::array<tcp_repair_opt, 2>{{{option_segment, 1460}, {option_window_scale, 10U | 10U << 16}}});
    constexpr std::uint32_t window_bytes = 32U << 20;
    set(socket, TCP_REPAIR_WINDOW,
        tcp_repair_window{.snd_wl1 = first_received,
                          .snd_wnd = window_bytes,
                          .max_window = window_bytes,
                          .rcv_wnd = 65536,
                          .rcv_wup = first_received});
    set(socket, TCP_REPAIR, int{TCP_REPAIR_OFF_NO_WP});
    set(socket, TCP_NODELAY, 1);
    // The size to which a socket's buffer grows by default (net.ipv4.tcp_wmem), but from the
    // beginning.
    constexpr int room_bytes = 4 << 20;
    ENSURE(::setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &room_bytes, sizeof room_bytes) == 0);
    constexpr char control[] = "cubic";  // others pace
    ENSURE(::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, control, sizeof control - 1) == 0);
}

}  // namespace

bool silent_connection::is_possible() {
    return tun_of_own_network() >= 0;
}

silent_connection::silent_connection() {
    ENSURE(is_possible());
    static std::uint16_t next_port = 10'000;
    port_ = next_port++;
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    establish(socket_, port_);
    // The segment size is recomputed when the device's changes.
    ENSURE(std::system(port_ % 2 == 0 ? "ip link set silent mtu 1499" : "ip link set silent mtu 1500") == 0);
    thread_ = std::thread([this] {
        pin_to(-1);
        acknowledge();
    });
    pin_to(0);
}

silent_connection::~silent_connection() {
    is_over_.store(true, std::memory_order_relaxed);
    thread_.join();
    set(socket_, TCP_REPAIR, int{TCP_REPAIR_ON});  // so that closing it sends nothing
    (void)::close(socket_);
}

// As long as possible without the socket's lock: a sender that holds it would have to wake the
// waiter.
void silent_connection::acknowledge() noexcept {
    std::uint64_t acknowledged = 0;
    for (int quiet = 0; not is_over_.load(std::memory_order_relaxed);) {
        const std::uint64_t taken = sent_.load(std::memory_order_relaxed);
        int not_sent = 0;
        ENSURE(::ioctl(socket_, SIOCOUTQNSD, &not_sent) == 0);
        std::uint64_t up_to = acknowledged;
        constexpr std::uint64_t segment_bytes = 64U << 10;
        if (taken >= acknowledged + static_cast<std::uint64_t>(not_sent) + segment_bytes) {
            up_to = taken - static_cast<std::uint64_t>(not_sent);
        } else if (++quiet > 300) {
            quiet = 0;
            tcp_info about{};
            socklen_t bytes = sizeof about;
            ENSURE(::getsockopt(socket_, IPPROTO_TCP, TCP_INFO, &about, &bytes) == 0);
            up_to = about.tcpi_bytes_sent - about.tcpi_bytes_retrans;
        }
        if (up_to > acknowledged) {
            acknowledged = up_to;
            send_acknowledgement(port_, first_sent + static_cast<std::uint32_t>(acknowledged));
        }
        const auto next = std::chrono::steady_clock::now() + std::chrono::microseconds(10);
        while (std::chrono::steady_clock::now() < next) {}
    }
}

}  // namespace sluice::bench
