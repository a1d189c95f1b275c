#include "sluice/smb/wire/rpc/rpc_fragments.hpp"

#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"

namespace sluice::smb::wire {

void rpc_fragments::append(bytes_view data) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
    bytes_.insert(bytes_.end(), data.begin(), data.end());
}

decoded<std::optional<bytes_view>> rpc_fragments::next() {
    const bytes_view rest = *bytes_view(bytes_).from(taken_);
    const auto head = rest.take<rpc_head>();
    if (!head) return std::nullopt;
    if (const auto good = checked(*head); !good) return std::unexpected(good.error());
    const auto fragment = rest.first(head->fragment_length.value());
    if (!fragment) return std::nullopt;
    taken_ += fragment->size();
    ENSURE(taken_ <= bytes_.size(), "a fragment is a part of the data");
    return *fragment;
}

decoded<bool> rpc_results::append(bytes_view fragment) {
    const auto piece = decode_rpc_response(fragment);
    if (!piece) return std::unexpected(piece.error());
    if (piece->call != call_) return std::unexpected(decode_error::bad_value);
    if (piece->bytes.size() > rpc_results_bytes_max - bytes_.size())
        return std::unexpected(decode_error::too_long);
    // Otherwise results need not end.
    if (piece->bytes.empty() and not piece->last) return std::unexpected(decode_error::bad_value);
    bytes_.insert(bytes_.end(), piece->bytes.begin(), piece->bytes.end());
    return piece->last;
}

}  // namespace sluice::smb::wire
