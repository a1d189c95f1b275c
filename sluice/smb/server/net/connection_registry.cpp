#include "sluice/smb/server/net/connection_registry.hpp"

#include "sluice/smb/server/net/replier.hpp"

namespace sluice::smb::server {

void connection_handle::close(std::string_view why) const noexcept {
    home_.do_here([of = of_, why]() noexcept {
        if (const std::shared_ptr<replier> still = of.lock()) still->close(why);
    });
}

bool connection_registry::take_socket(std::size_t most) noexcept {
    const lock_guard held(mutex_);
    ENSURE(connections_.size() <= sockets_, "a connection has a socket that is counted");
    if (sockets_ >= most) return false;
    ++sockets_;
    return true;
}

void connection_registry::release_socket() noexcept {
    const lock_guard held(mutex_);
    ENSURE(sockets_ > connections_.size(), "a socket is released once, after its connection has left");
    --sockets_;
}

void connection_registry::enter(connection& fresh, std::shared_ptr<connection_handle> handle) {
    ENSURE(handle->home().multiplexer.is_owner(), "a connection enters on its home loop");
    const lock_guard held(mutex_);
    ENSURE(connections_.emplace(&fresh, std::move(handle)).second, "a connection enters once");
    ENSURE(connections_.size() <= sockets_, "a connection has a socket that is counted");
}

void connection_registry::leave(connection& ended, const traffic& last) noexcept {
    std::shared_ptr<connection_handle> unused;
    const lock_guard held(mutex_);
    const auto found = connections_.find(&ended);
    ENSURE(found != connections_.end(), "a connection leaves once");
    ENSURE(found->second->home().multiplexer.is_owner(), "a connection leaves on its home loop");
    unused = std::move(found->second);
    connections_.erase(found);
    of_ended_ += last;
}

std::vector<std::shared_ptr<connection_handle>> connection_registry::stop() {
    std::vector<std::shared_ptr<connection_handle>> all;
    const lock_guard held(mutex_);
    is_stopping_.store(true, std::memory_order_relaxed);
    all.reserve(connections_.size());
    for (const auto& [one, handle] : connections_)
        all.push_back(handle);
    return all;
}

std::vector<connection*> connection_registry::of_loop(const server_loop& home) const {
    ENSURE(home.multiplexer.is_owner(), "a loop asks for its own connections");
    std::vector<connection*> its_own;
    const lock_guard held(mutex_);
    for (const auto& [one, handle] : connections_)
        if (&handle->home() == &home) its_own.push_back(one);
    return its_own;
}

}  // namespace sluice::smb::server
