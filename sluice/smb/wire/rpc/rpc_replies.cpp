#include "sluice/smb/wire/rpc/rpc_replies.hpp"

#include <algorithm>
#include <utility>

#include "sluice/smb/wire/rpc/rpc_pdu.hpp"

namespace sluice::smb::wire {

void rpc_replies::append(std::vector<std::byte>&& fragments) {
    ENSURE(fragments.empty() or fragments.size() >= sizeof(rpc_head), "a fragment has a header");
    if (bytes_.empty())
        bytes_ = std::move(fragments);
    else
        bytes_.insert(bytes_.end(), fragments.begin(), fragments.end());
}

rpc_replies::read_result rpc_replies::read(mutable_bytes room) noexcept {
    if (readable_bytes() == 0) return {};
    if (message_end_ == read_) {
        const rpc_head head = *bytes_view(bytes_).take_at<rpc_head>(read_);
        message_end_ = read_ + head.fragment_length.value();
    }
    ENSURE(message_end_ > read_ and message_end_ <= bytes_.size(), "the replies are complete fragments");
    const std::size_t bytes = std::min(room.size(), message_end_ - read_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(read_), bytes, room.begin());
    read_ += bytes;
    const bool more = read_ != message_end_;
    if (!more) drop_read();
    return {.bytes = bytes, .more = more};
}

// Drops the replies that were read, once they have at least as many bytes as the unread ones: each
// byte is moved once on average.
void rpc_replies::drop_read() noexcept {
    if (read_ < bytes_.size() - read_) return;
    if (read_ == bytes_.size())
        bytes_ = std::vector<std::byte>();
    else
        bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(read_));
    read_ = message_end_ = 0;
}

void rpc_replies::clear() noexcept {
    bytes_ = std::vector<std::byte>();
    read_ = message_end_ = 0;
}

}  // namespace sluice::smb::wire
