#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace sluice::user_handles {

/// The name of registered memory for the device, like the key of an RDMA memory region.
enum class memory_key : std::uint32_t { none = 0 };

enum class rdma_verb : std::uint8_t { read, write, fetch_and_add };

/// One request in a queue pair. Its owner keeps it alive until completed().
class work_request {
public:
    rdma_verb verb = rdma_verb::read;
    memory_key local_key = memory_key::none;
    std::size_t local_offset = 0;
    memory_key remote_key = memory_key::none;
    std::size_t remote_offset = 0;
    std::size_t length = 0;
    std::uint64_t addend = 0;
    std::uint64_t fetched = 0;  // the outcome of fetch_and_add

    /// Called on the thread that runs the device, with 0 or an errno value. It may destroy the
    /// request.
    virtual void completed(int code) noexcept = 0;

protected:
    ~work_request() = default;
};

/// A simulated network card with remote direct memory access: it knows registered memory only, and
/// carries out requests in step(), in a random order.
/// Owner of all members: `mutex_`, which is not held while a request is completed.
class rdma_nic {
public:
    explicit rdma_nic(std::uint64_t seed, std::size_t depth) : random_(seed), depth_(depth) {}

    [[nodiscard]] memory_key register_memory(std::span<std::byte> memory);
    void forget_memory(memory_key key);

    /// Queues a request. Returns ENOMEM if the queue pair is full, 0 otherwise.
    [[nodiscard]] int post(work_request& request);
    /// Removes a request that the card has not begun. Returns whether it was removed.
    [[nodiscard]] bool take_back(work_request& request);

    /// Carries out and completes one of the queued requests. Returns whether there was one.
    bool step();

private:
    [[nodiscard]] int carry_out(work_request& request);
    [[nodiscard]] std::optional<std::span<std::byte>> memory_of(memory_key key, std::size_t offset,
                                                                std::size_t length) const;

    std::mutex mutex_;
    std::mt19937_64 random_;
    std::size_t depth_;
    std::uint32_t keys_ = 0;
    std::map<memory_key, std::span<std::byte>> regions_;
    std::vector<work_request*> queue_;
};

}  // namespace sluice::user_handles
