#include "tests/user_handles/rdma_nic.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::user_handles {

memory_key rdma_nic::register_memory(std::span<std::byte> memory) {
    const std::lock_guard guard(mutex_);
    const memory_key key{++keys_};
    regions_.emplace(key, memory);
    return key;
}

void rdma_nic::forget_memory(memory_key key) {
    const std::lock_guard guard(mutex_);
    regions_.erase(key);
}

int rdma_nic::post(work_request& request) {
    const std::lock_guard guard(mutex_);
    if (queue_.size() == depth_) return ENOMEM;
    queue_.push_back(&request);
    return 0;
}

bool rdma_nic::take_back(work_request& request) {
    const std::lock_guard guard(mutex_);
    return std::erase(queue_, &request) != 0;
}

bool rdma_nic::step() {
    work_request* chosen = nullptr;
    int code = 0;
    {
        const std::lock_guard guard(mutex_);
        if (queue_.empty()) return false;
        const auto at = queue_.begin() + static_cast<std::ptrdiff_t>(random_() % queue_.size());
        chosen = *at;
        queue_.erase(at);
        code = carry_out(*chosen);
    }
    chosen->completed(code);
    return true;
}

std::optional<std::span<std::byte>> rdma_nic::memory_of(memory_key key, std::size_t offset,
                                                        std::size_t length) const {
    const auto found = regions_.find(key);
    if (found == regions_.end() or offset > found->second.size() or length > found->second.size() - offset)
        return std::nullopt;
    return found->second.subspan(offset, length);
}

int rdma_nic::carry_out(work_request& request) {
    const auto local = memory_of(request.local_key, request.local_offset, request.length);
    const auto remote = memory_of(request.remote_key, request.remote_offset, request.length);
    const bool needs_local = request.verb != rdma_verb::fetch_and_add;
    if (not remote or (needs_local and not local)) return EACCES;
    switch (request.verb) {
        case rdma_verb::read:
            std::memcpy(local->data(), remote->data(), request.length);
            return 0;
        case rdma_verb::write:
            std::memcpy(remote->data(), local->data(), request.length);
            return 0;
        case rdma_verb::fetch_and_add: {
            if (request.length != sizeof request.fetched) return EINVAL;
            std::memcpy(&request.fetched, remote->data(), sizeof request.fetched);
            const std::uint64_t sum = request.fetched + request.addend;
            std::memcpy(remote->data(), &sum, sizeof sum);
            return 0;
        }
    }
    return EINVAL;
}

}  // namespace sluice::user_handles
