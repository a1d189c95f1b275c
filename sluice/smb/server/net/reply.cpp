#include "sluice/smb/server/net/reply.hpp"

namespace sluice::smb::server {

byte_writer* reply::begin(std::size_t bytes_max) noexcept {
    discard();
    head_ = buffers_.take(wire::frame_prefix_bytes + wire::header_bytes + bytes_max);
    if (not head_) return nullptr;
    const mutable_bytes message = *mutable_bytes(head_.bytes()).from(wire::frame_prefix_bytes);
    writer_.emplace(*message.first(wire::header_bytes + bytes_max));
    writer_->put_zeros(wire::header_bytes);
    return &*writer_;
}

void reply::discard() noexcept {
    writer_.reset();
    payload_ = {};
}

bool reply::finish() noexcept {
    ENSURE(writer_.has_value(), "a reply is finished after it has been begun");
    const auto written = writer_->finish();
    if (not written) return false;
    ENSURE(written->size() >= wire::header_bytes, "a reply has its header");
    head_.shrink(wire::frame_prefix_bytes + written->size());
    return true;
}

void reply_batch::add(finished_reply&& one) {
    const std::size_t bytes = one.padded_bytes();
    bytes_ += bytes;
    bytes_of_all_ += bytes;
    ENSURE(bytes_ <= bytes_of_all_, "the replies that are not sent are among all of them");
    ready_.push_back(std::move(one));
}

void reply_batch::clear() noexcept {
    bytes_ = 0;
    ready_.clear();
}

}  // namespace sluice::smb::server
