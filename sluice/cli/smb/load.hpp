#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/tree.hpp"

namespace sluice::cli {

/// What `sluice bench smb` has a server do.
enum class load_kind : std::uint8_t {
    read,          // a big file, from its beginning to its end and again
    write,         // likewise
    random_read,   // somewhere in it
    random_write,  // likewise
    open,          // open, ask for size and times, close
    create,        // create, delete on close
    list,          // a folder of small files
    put,           // small files: create, write, close
    get,           // open, read, close
    remove,        // open, delete on close
    log_on,        // connect, negotiate, log on, connect to the share, log off
    echo,
};

struct load_options {
    load_kind kind = load_kind::read;
    unsigned connections = 1;       // each with a session of its own
    unsigned idle_connections = 0;  // besides, with sessions that do nothing
    unsigned channels = 1;          // connections of each session
    unsigned depth = 8;             // requests under way on each connection
    std::uint32_t size_bytes = 1U << 20;
    std::uint64_t file_bytes = 256U << 20;  // of the big file, in each session
    unsigned files = 1000;                  // small ones, in each session
    std::chrono::milliseconds duration{5000};
    std::string folder;     // in the share, made for this; sessions after the first have one each in it
    bool discards = false;  // what is read, as it comes: see smb::client::request_options
    bool spins = false;     // never sleeps, so that the server need not wake anybody
};

/// What was done. Of put, get and remove, all files, however long it took.
struct load_outcome {
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;
    std::vector<std::uint32_t> latencies_ns_by_256;  // of each operation; in units of 256 ns
    std::string failure;                             // of the first that failed; the rest was given up then
};

/// Who puts load on a server: sessions and their channels, connected before anything is measured.
/// Thread safety: the loop's thread.
class load_generator {
public:
    /// How another connection, session and tree like the first are made; all outlive the generator.
    struct target {
        smb::client::tree* first = nullptr;
        std::vector<io::socket_address> addresses;
        smb::auth::credentials who;
        std::string share;
    };

    load_generator(io::io_multiplexer& loop, target at, load_options how);
    load_generator(const load_generator&) = delete;
    load_generator& operator=(const load_generator&) = delete;
    ~load_generator();

    /// Connects, and makes the files that are needed. Suspends. The text says why it cannot; empty: done.
    [[nodiscard]] io::task<std::string> prepare() noexcept;
    /// Suspends for the duration.
    [[nodiscard]] io::task<load_outcome> run() noexcept;
    /// Removes the files, unless they are to be kept, and disconnects. Suspends.
    [[nodiscard]] io::task<void> clean_up(bool keeps_files) noexcept;

private:
    struct lane;  // a session: its connections, tree and big file
    struct worker;

    [[nodiscard]] io::task<smb::client::outcome<void>> connect(lane& one) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<void>> bind_channels(lane& one) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<void>> fill(lane& one) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<void>> put_missing(lane& one) noexcept;
    [[nodiscard]] io::task<void> remove_files(const std::string& folder) noexcept;
    [[nodiscard]] bool is_idle(const lane& one) const noexcept;
    [[nodiscard]] io::task<void> work(worker who) noexcept;
    [[nodiscard]] io::task<void> work_until_done(worker who) noexcept;
    [[nodiscard]] io::task<void> stay_awake() noexcept;
    [[nodiscard]] io::task<smb::client::outcome<std::uint64_t>> step(worker& who) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<std::uint64_t>> transfer(worker& who) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<std::uint64_t>> with_small_file(worker& who) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<std::uint64_t>> look(worker& who) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<std::uint64_t>> log_on_once() noexcept;
    [[nodiscard]] std::uint64_t next_offset(lane& in) noexcept;
    [[nodiscard]] std::string small_name(const lane& of, std::uint64_t number) const;
    [[nodiscard]] bool counts_files() const noexcept {
        return how_.kind == load_kind::put or how_.kind == load_kind::get or how_.kind == load_kind::remove;
    }
    [[nodiscard]] bool needs_small_files() const noexcept {
        return how_.kind == load_kind::get or how_.kind == load_kind::remove or
               how_.kind == load_kind::list or how_.kind == load_kind::open;
    }
    [[nodiscard]] bool needs_big_file() const noexcept { return how_.kind <= load_kind::random_write; }

    io::io_multiplexer& loop_;
    target at_;
    load_options how_;
    std::vector<std::unique_ptr<lane>> lanes_;
    std::vector<std::byte> payload_;  // of all: what arrives is thrown away
    load_outcome done_;
    std::chrono::steady_clock::time_point until_{};
    unsigned working_ = 0;
    std::uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace sluice::cli
