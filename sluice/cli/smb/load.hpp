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

/// The operations that `sluice bench smb` can measure.
enum class load_kind : std::uint8_t {
    read,          // a large file, repeatedly from start to end
    write,         // likewise
    random_read,   // at random offsets
    random_write,  // likewise
    open,          // open, query size and times, close
    create,        // create, delete on close
    list,          // list a directory of small files
    put,           // small files: create, write, close
    get,           // open, read, close
    remove,        // open, delete on close
    log_on,        // connect, negotiate, log on, connect to the share, log off
    echo,
};

struct load_options {
    load_kind kind = load_kind::read;
    unsigned connections = 1;       // each with its own session
    unsigned idle_connections = 0;  // in addition, with idle sessions
    unsigned channels = 1;          // connections of each session
    unsigned depth = 8;             // requests in flight on each connection
    std::uint32_t size_bytes = 1U << 20;
    std::uint64_t file_bytes = 256U << 20;  // size of the large file of each session
    unsigned files = 1000;                  // small files per session
    std::chrono::milliseconds duration{5000};
    std::string directory;  // on the share, created for this; later sessions have subdirectories
    bool discards = false;  // discards received data on arrival: see smb::client::request_options
    bool spins = false;     // polls instead of sleeping, so that the server need not wake a thread
};

/// The result of a run. For put, get and remove: of all files, independent of the duration.
struct load_outcome {
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;
    std::vector<std::uint32_t> latencies_ns_by_256;  // one per operation, in units of 256 ns
    std::string failure;                             // the first failure, which ended the run
};

/// Generates load on a server with sessions and channels that are connected before the measurement.
/// Thread safety: the loop's thread.
class load_generator {
public:
    /// The parameters of further connections, sessions and trees, which are like the first; all
    /// outlive the generator.
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

    /// Connects, and creates the files. Suspends. Returns the reason of a failure; empty: success.
    [[nodiscard]] io::task<std::string> prepare() noexcept;
    /// Suspends for the duration.
    [[nodiscard]] io::task<load_outcome> run() noexcept;
    /// Removes the files, unless `keeps_files`, and disconnects. Suspends.
    [[nodiscard]] io::task<void> clean_up(bool keeps_files) noexcept;

private:
    struct lane;  // a session: its connections, tree and large file
    struct worker;

    [[nodiscard]] io::task<smb::client::outcome<void>> connect(lane& one) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<void>> bind_channels(lane& one) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<void>> fill(lane& one) noexcept;
    [[nodiscard]] io::task<smb::client::outcome<void>> put_missing(lane& one) noexcept;
    [[nodiscard]] io::task<void> remove_files(const std::string& directory) noexcept;
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
    std::vector<std::byte> payload_;  // shared: received data is discarded
    load_outcome done_;
    std::chrono::steady_clock::time_point until_{};
    unsigned working_ = 0;
    std::uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace sluice::cli
