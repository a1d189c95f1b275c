#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "sluice/base/random.hpp"
#include "sluice/io/simulated/simulation_options.hpp"
#include "sluice/vfs/change_feed.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::smb_simulation {

/// The slowness of a volume, in simulated time.
struct slow_calls_options {
    io::permille chance = 0;                    // probability that a call is slow
    std::chrono::milliseconds longest{40'000};  // maximum duration of a slow call
    io::permille hung = 0;                      // probability that a slow call
                                                // takes `hung_for` instead
    std::chrono::milliseconds hung_for{3'600'000};
    /// Calls that hang on a worker return when this is true and loop_scheduler::wake() was called
    /// with its address; null: after `hung_for`.
    const bool* is_hang_over = nullptr;
    /// Called for each call that a loop makes.
    std::function<void()> on_inline_call{};
};

/// Draws the duration of each call, and lets that time pass. Thread safety: one thread at a time,
/// as in a simulation.
class slow_calls {
public:
    slow_calls(std::uint64_t seed, const slow_calls_options& how) noexcept : random_(seed), how_(how) {}

    [[nodiscard]] std::chrono::milliseconds draw() noexcept;
    /// Lets time pass if the calling thread makes offloaded calls; a loop never blocks.
    void block() noexcept;
    /// Lets time pass for the transfer of a coroutine: on a worker if the calls of the domain are
    /// offloaded, otherwise on the loop. Errors: ECANCELED if `by` has cancelled it. Suspends.
    [[nodiscard]] io::task<result<void>> transfer(vfs::fs_domain& domain, io::call_cancellation* by) noexcept;

private:
    [[nodiscard]] io::task<void> suspend(io::io_multiplexer& loop) noexcept;

    seeded_random random_;
    slow_calls_options how_;
};

/// A volume whose calls take simulated time: transfers everywhere, and all other calls on the
/// threads that make offloaded calls (loop_scheduler::spawn). Thread safety: that of the inner
/// volume, which must not suspend.
class slow_volume final : public vfs::volume {
public:
    slow_volume(std::unique_ptr<vfs::volume> inner, std::uint64_t seed, const slow_calls_options& how);
    ~slow_volume() override;

    [[nodiscard]] const vfs::volume_features& features() const noexcept override {
        return inner_->features();
    }
    [[nodiscard]] const vfs::volume_identity& identity() const noexcept override {
        return inner_->identity();
    }
    [[nodiscard]] result<vfs::volume_space> space() noexcept override;
    [[nodiscard]] result<vfs::node_ptr> find(std::string_view path,
                                             vfs::follow_links links) noexcept override;
    [[nodiscard]] result<vfs::found_node> find_with_status(std::string_view path, vfs::follow_links links,
                                                           vfs::data_access soon,
                                                           vfs::name_match match) noexcept override;
    [[nodiscard]] result<vfs::found_node> find_directory(std::string_view path) noexcept override;
    [[nodiscard]] result<vfs::node_ptr> create(std::string_view path,
                                               const vfs::creation_request& wanted) noexcept override;
    [[nodiscard]] result<vfs::found_node> create_in(vfs::node& directory, std::string_view name,
                                                    const vfs::creation_request& wanted) noexcept override;
    [[nodiscard]] vfs::fs_domain& domain() noexcept override { return inner_->domain(); }
    void serve_on(std::span<io::io_multiplexer* const> loops) override { inner_->serve_on(loops); }
    [[nodiscard]] vfs::change_feed* changes() noexcept override;

private:
    class slow_feed;

    std::unique_ptr<vfs::volume> inner_;
    slow_calls slowness_;
    std::unique_ptr<slow_feed> feed_;
};

}  // namespace sluice::smb_simulation
