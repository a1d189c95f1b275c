#include "sluice/smb/server/file/peer_claims.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

using wire::bits_of;
using wire::share_access;
using wire::without;
using wire::operator&=;
using wire::operator|=;

namespace {

struct access_kind {
    share_access what;
    share_mode_lock_byte used;
    share_mode_lock_byte denied;
};
constexpr std::array ways{
    access_kind{share_access::read, share_mode_lock_byte::reads, share_mode_lock_byte::denies_reading},
    access_kind{share_access::write, share_mode_lock_byte::writes, share_mode_lock_byte::denies_writing},
    access_kind{share_access::remove, share_mode_lock_byte::removes, share_mode_lock_byte::denies_removing},
};

template <class Visit>
void for_each_bit(share_mode_lock_byte set, Visit&& visit) {
    for (unsigned bit = 0; bit != share_mode_lock_byte_bits; ++bit)
        if ((bits_of(set) >> bit & 1U) != 0) visit(bit);
}

[[nodiscard]] constexpr share_mode_lock_byte lock_byte_of(unsigned bit) noexcept {
    return static_cast<share_mode_lock_byte>(1U << bit);
}

}  // namespace

peer_terms terms_of(const sharing& open) noexcept {
    peer_terms terms{.up = share_mode_lock_byte::has_open, .unless = share_mode_lock_byte::goes};
    const share_access needs = needs_of(open.access);
    // An open that neither reads, writes nor removes conflicts with no other, whatever it denies.
    if (needs == share_access::none) return terms;
    for (const access_kind& way : ways) {
        if (wire::has(needs, way.what)) {
            terms.up |= way.used;
            terms.unless |= way.denied;
        }
        if (not wire::has(open.share, way.what)) {
            terms.up |= way.denied;
            terms.unless |= way.used;
        }
    }
    return terms;
}

peer_terms terms_of_stream_at_file(const sharing& stream) noexcept {
    peer_terms terms{.up = share_mode_lock_byte::has_open, .unless = share_mode_lock_byte::goes};
    if (denies_delete(stream)) {
        terms.up |= share_mode_lock_byte::stream_stays;
        terms.unless |= share_mode_lock_byte::removes;
    }
    return terms;
}

peer_terms terms_of_file(const sharing& file) noexcept {
    peer_terms terms = terms_of(file);
    if (wire::has(needs_of(file.access), share_access::remove))
        terms.unless |= share_mode_lock_byte::stream_stays;
    return terms;
}

result<share_mode_lock_byte> share_mode_lock_bytes::claim(const peer_terms& terms,
                                                          peer_claim& into) noexcept {
    ENSURE(terms.up != share_mode_lock_byte::none, "a claim has a lock byte");
    const result<share_mode_lock_byte> conflicting = file_->raise(terms.up, terms.unless);
    if (not conflicting or *conflicting != share_mode_lock_byte::none) return conflicting;
    for_each_bit(terms.up, [&](unsigned bit) { ++claims_[bit]; });
    into = peer_claim(*this, terms.up);
    return conflicting;
}

void share_mode_lock_bytes::cancel(share_mode_lock_byte down) noexcept {
    share_mode_lock_byte last = share_mode_lock_byte::none;
    for_each_bit(down, [&](unsigned bit) {
        ENSURE(claims_[bit] != 0, "lock byte released without a claim");
        if (--claims_[bit] == 0) last |= lock_byte_of(bit);
    });
    if (last != share_mode_lock_byte::none) file_->lower(last);
}

void peer_claim::keep(share_mode_lock_byte only) noexcept {
    if (of_ == nullptr) return;
    ENSURE(wire::has(held_, only), "a claim keeps lock bytes that it has");
    of_->cancel(without(held_, only));
    held_ &= only;
}

}  // namespace sluice::smb::server
