#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/edit/format.hpp"
#include "sluice/fat/engine/file_system.hpp"

namespace sluice::bench {

/// A device that counts the requests to the one below; a file makes one system call for each.
class counting_device final : public fat::device {
public:
    explicit counting_device(fat::file_device below) noexcept : below_(std::move(below)) {}

    /// Returns the number of reads, writes and holes so far.
    [[nodiscard]] std::uint64_t calls() const noexcept { return calls_.load(std::memory_order_relaxed); }

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return below_.is_writable(); }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override {
        return below_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    bool discard(byte_extent range) noexcept override { return below_.discard(range); }
    using fat::device::read_at;
    using fat::device::write_at;

private:
    fat::file_device below_;
    std::atomic<std::uint64_t> calls_ = 0;  // relaxed: a tally
};

/// An image without a name, on tmpfs unless another directory is given: it is freed with the
/// program, however that ends. All its pages are allocated before the measurements, so that no
/// subject pays for them; so mounts discard nothing.
class fat_image {
public:
    fat_image(std::uint64_t bytes, const fat::format_options& how, const char* directory = "/dev/shm");

    [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }
    /// Returns a path for other programs, valid while this object exists.
    [[nodiscard]] std::string path() const;
    [[nodiscard]] const fat::geometry& shape() const noexcept { return shape_; }
    [[nodiscard]] fat::file_device device() const;

private:
    io::file_handle file_;
    fat::geometry shape_;
};

/// A mounted volume. Its handles are destroyed first.
class mounted_fat {
public:
    explicit mounted_fat(const fat_image& image, fat::lookup_strategy strategy = fat::lookup_strategy::runs);

    [[nodiscard]] fat::file_system& operator*() const noexcept { return *system_; }
    [[nodiscard]] fat::file_system* operator->() const noexcept { return system_.get(); }
    [[nodiscard]] std::uint64_t device_calls() const noexcept { return device_.calls(); }
    [[nodiscard]] std::uint64_t steps() const noexcept { return system_->counters().steps.load(); }

    [[nodiscard]] fat::inode_handle make(const std::string& path) const;
    /// Creates a file of `bytes` bytes, which is_at() recognises, by requests of `request_bytes`.
    fat::inode_handle put(const std::string& path, std::uint64_t bytes, std::size_t request_bytes) const;
    void remove(const std::string& path) const;
    /// Makes the volume search its table for free clusters, as the first write does.
    void look_for_free() const;

private:
    static constexpr sluice::system_clock_source clock_{};
    counting_device device_;
    std::unique_ptr<fat::file_system> system_;
};

/// Returns the buffer of all transfers: 1 MiB, aligned to pages.
[[nodiscard]] std::span<std::byte> transfer_buffer() noexcept;

/// The state shared by the subjects of one workload: created by the first of them, destroyed when
/// another workload begins.
template <class Stage, class... Arguments>
Stage& stage_of(const std::string& workload, const Arguments&... arguments) {
    static std::string of;
    static std::unique_ptr<Stage> stage;
    if (of != workload) {
        stage.reset();
        stage = std::make_unique<Stage>(arguments...);
        of = workload;
    }
    return *stage;
}

/// Runs a program to its end and discards its output, as the work that a repeat measures: the
/// program's own CPU time counts. Skips the subject if the program is not installed; a failure of
/// the program is a failure of the benchmark.
void measure_program(run& repeat, const std::vector<std::string>& command);
/// Runs it without a measurement. Returns its exit status.
int run_program(const std::vector<std::string>& command);

}  // namespace sluice::bench
