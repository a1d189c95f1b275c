#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "tests/interleave/scheduler.hpp"
#include "tests/interleave/simulated_kernel.hpp"

// Processes that lock entities through a mutex file, each step of theirs a step of the scheduler,
// and a judge with global knowledge: the current holders, the order of the requests, and the
// deaths.

namespace sluice::interleave {

/// A word that an attacker writes into the file.
struct forgery {
    std::uint64_t offset;
    std::uint32_t word;
};

/// One lock and unlock, or a forgery.
struct visit {
    std::vector<fsmutex::entity> wanted;
    std::chrono::milliseconds within{-1};  // a deadline; none if negative
    std::chrono::milliseconds stays{0};
    bool tries = false;
    std::optional<forgery> forges = std::nullopt;
};

struct plan {
    using open_function =
        std::function<std::unique_ptr<fsmutex::shared_fs_mutex>(const fsmutex::dependencies&)>;
    /// Returns whether a process has a place in the order of requests, according to the content of
    /// the file.
    using order_probe = std::function<bool(const std::byte* file, std::size_t bytes, unsigned process)>;

    open_function open;
    order_probe is_in_order;  // empty: order is not judged
    std::vector<std::vector<visit>> processes;
    unsigned mortals = 0;          // this number of processes, from the first on, may be killed
    unsigned deaths_before = 0;    // earlier deaths, not yet reported
    bool reports_deaths = true;    // of exclusive holders
    std::size_t leaves_files = 0;  // after the end of all processes
    bool is_attacked = false;      // exclusion is not judged, and EBADMSG is expected
    bool opens_in_time = false;    // while others take steps; otherwise all have opened it before
    std::chrono::nanoseconds passes_at_most = std::chrono::hours(1);  // limit on the elapsed time
    // Bytes, until the others have ended.
    std::uint64_t has_room_for = ~std::uint64_t{0};
    std::function<void(simulated_kernel&)> prepare = {};  // before the first step
    /// Inspects the file at each request and each grant. Returns the problem, or null.
    std::function<const char*(const std::byte* file, std::size_t bytes)> inspect = {};
};

class fs_mutex_scenario final : public scenario {
public:
    explicit fs_mutex_scenario(const plan& what)
        : plan_(what), parties_(what.processes.size()), deaths_(what.deaths_before) {}

    std::vector<std::function<void()>> threads() override;
    std::string verdict() override;
    bool is_mortal(unsigned thread) const override {
        return thread < plan_.mortals and kernel_.may_be_killed(thread);
    }
    void killed(unsigned thread) override;

private:
    using entities = std::vector<fsmutex::entity>;
    enum class news : unsigned char { none, perhaps, surely };
    enum class phase : unsigned char { away, asks, holds, leaves };
    struct party {
        phase where = phase::away;
        bool is_dead = false;
        unsigned visits = 0;
        const visit* now = nullptr;
        std::array<unsigned, 4> behind{};  // the last earlier visit of each other process, plus one
    };

    void open(unsigned process);
    void run(unsigned process);
    void make(unsigned process, const visit& one);
    void forge(unsigned process, const forgery& what);
    [[nodiscard]] bool is_of_damage(const error& why) const {
        return plan_.is_attacked and why == std::errc::bad_message;
    }
    void clean_up();
    void asks(unsigned process, const visit& one);
    void got(unsigned process, bool owner_died);
    void end_of_wait(unsigned process, const error& why, std::uint64_t began_ns);
    void inspect() {
        if (not plan_.inspect) return;
        const char* const problem = plan_.inspect(kernel_.content(), kernel_.content_bytes());
        expect(problem == nullptr, problem);
    }
    void expect(bool holds, const char* problem) {
        if (not holds and problem_ == nullptr) problem_ = problem;
    }
    [[nodiscard]] bool conflicts(const party& one, const party& other) const {
        return one.now != nullptr and other.now != nullptr and
               fsmutex::conflict(one.now->wanted, other.now->wanted);
    }
    void record_news(const party& of, news what);

    const plan& plan_;
    simulated_kernel kernel_;
    std::vector<party> parties_;
    std::vector<std::unique_ptr<fsmutex::shared_fs_mutex>> mutexes_;
    std::array<news, 32> news_{};
    unsigned at_work_ = 0;
    unsigned deaths_ = 0;
    std::uint64_t work_ended_ns_ = 0;
    const char* problem_ = nullptr;
};

[[nodiscard]] report explore(const plan& what, const limits& within);

}  // namespace sluice::interleave
