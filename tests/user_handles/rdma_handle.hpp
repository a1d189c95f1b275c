#pragma once

#include <semaphore>

#include "sluice/io/sender/user_operation.hpp"
#include "tests/user_handles/rdma_nic.hpp"

namespace sluice::user_handles {

/// Memory that is registered with the card for the lifetime of this object.
class registered_memory {
public:
    registered_memory(rdma_nic& nic, std::span<std::byte> memory)
        : nic_(&nic), memory_(memory), key_(nic.register_memory(memory)) {}
    registered_memory(const registered_memory&) = delete;
    registered_memory& operator=(const registered_memory&) = delete;
    ~registered_memory() { nic_->forget_memory(key_); }

    [[nodiscard]] memory_key key() const noexcept { return key_; }
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_; }

private:
    rdma_nic* nic_;
    std::span<std::byte> memory_;
    memory_key key_;
};

/// The buffer type of the handle: a piece of registered memory, named by its key.
struct rdma_buffer {
    const registered_memory* memory = nullptr;
    std::size_t offset = 0;
    std::size_t length = 0;
};
struct remote_address {
    memory_key key = memory_key::none;
    std::size_t offset = 0;
};
/// Its request types.
struct rdma_transfer {
    rdma_buffer local{};
    remote_address remote{};
};
struct rdma_addition {
    remote_address remote{};
    std::uint64_t addend = 0;
};
/// Its result types.
using transfer_result = result<rdma_buffer>;
using addition_result = result<std::uint64_t>;

class queue_pair_handle;

namespace detail {

struct posted_transfer {
    rdma_nic* nic;
    rdma_verb verb;
    rdma_transfer what;
};
struct posted_addition {
    rdma_nic* nic;
    rdma_addition what;
};

/// A request that the card is processing, as the multiplexer sees it.
class rdma_work : public io::external_work, protected work_request {
protected:
    explicit rdma_work(rdma_nic& nic) noexcept : nic_(nic) {}
    ~rdma_work() = default;

    std::optional<int> begin(bool may_wait) noexcept override {
        if (not may_wait) return ETIMEDOUT;  // the card completes it later, even if it is asked now
        const int refused = nic_.post(*this);
        return refused != 0 ? std::optional(refused) : std::nullopt;
    }
    void end() noexcept override {
        if (nic_.take_back(*this)) complete(ECANCELED);  // otherwise it is about to complete
    }
    void completed(int code) noexcept override { complete(code); }

private:
    rdma_nic& nic_;
};

class transfer_work final : public rdma_work {
public:
    using result_type = transfer_result;
    static constexpr const char* name = "transfer by RDMA";

    explicit transfer_work(const posted_transfer& from) noexcept
        : rdma_work(*from.nic), buffer_(from.what.local) {
        verb = from.verb;
        local_key = buffer_.memory != nullptr ? buffer_.memory->key() : memory_key::none;
        local_offset = buffer_.offset;
        remote_key = from.what.remote.key;
        remote_offset = from.what.remote.offset;
        length = buffer_.length;
    }
    [[nodiscard]] rdma_buffer take() noexcept { return buffer_; }

private:
    rdma_buffer buffer_;
};

class addition_work final : public rdma_work {
public:
    using result_type = addition_result;
    static constexpr const char* name = "fetch and add by RDMA";

    explicit addition_work(const posted_addition& from) noexcept : rdma_work(*from.nic) {
        verb = rdma_verb::fetch_and_add;
        remote_key = from.what.remote.key;
        remote_offset = from.what.remote.offset;
        length = sizeof fetched;
        addend = from.what.addend;
    }
    [[nodiscard]] std::uint64_t take() noexcept { return fetched; }
};

}  // namespace detail

/// One end of a queue pair. Operations complete in the order of the card, not in
/// that of their starts.
class queue_pair_handle {
public:
    queue_pair_handle(rdma_nic& nic, io::io_multiplexer& multiplexer) noexcept
        : nic_(&nic), multiplexer_(&multiplexer) {}

private:
    [[nodiscard]] auto async_transfer(rdma_verb verb, const rdma_transfer& what, deadline within) noexcept {
        return io::work_sender<detail::posted_transfer, detail::transfer_work>(*multiplexer_, within,
                                                                               {nic_, verb, what});
    }

public:
    /// The blocking form of a transfer; another thread must run the card.
    [[nodiscard]] transfer_result read(const rdma_transfer& what) { return transfer(rdma_verb::read, what); }

    [[nodiscard]] auto async_read(const rdma_transfer& what, deadline within = {}) noexcept {
        return async_transfer(rdma_verb::read, what, within);
    }
    [[nodiscard]] auto async_write(const rdma_transfer& what, deadline within = {}) noexcept {
        return async_transfer(rdma_verb::write, what, within);
    }
    [[nodiscard]] auto async_fetch_and_add(const rdma_addition& what, deadline within = {}) noexcept {
        return io::work_sender<detail::posted_addition, detail::addition_work>(*multiplexer_, within,
                                                                               {nic_, what});
    }

private:
    [[nodiscard]] transfer_result transfer(rdma_verb verb, const rdma_transfer& what);

    rdma_nic* nic_;
    io::io_multiplexer* multiplexer_;
};

inline transfer_result queue_pair_handle::transfer(rdma_verb asked, const rdma_transfer& what) {
    struct waiting final : work_request {
        std::binary_semaphore done{0};
        int code = 0;
        void completed(int with) noexcept override {
            code = with;
            done.release();
        }
    } one;
    one.verb = asked;
    one.local_key = what.local.memory->key();
    one.local_offset = what.local.offset;
    one.remote_key = what.remote.key;
    one.remote_offset = what.remote.offset;
    one.length = what.local.length;
    if (const int refused = nic_->post(one); refused != 0)
        return failure({refused, detail::transfer_work::name});
    one.done.acquire();
    if (one.code != 0) return failure({one.code, detail::transfer_work::name});
    return what.local;
}

}  // namespace sluice::user_handles
