#include "sluice/smb/server/file/peer_claims.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

using wire::bits_of;
using wire::share_access;
using wire::without;
using wire::operator&=;
using wire::operator|=;

namespace {

struct way_of_access {
    share_access what;
    peer_sign used;
    peer_sign denied;
};
constexpr std::array ways{
    way_of_access{share_access::read, peer_sign::reads, peer_sign::denies_reading},
    way_of_access{share_access::write, peer_sign::writes, peer_sign::denies_writing},
    way_of_access{share_access::remove, peer_sign::removes, peer_sign::denies_removing},
};

template <class Visit>
void for_each_bit(peer_sign set, Visit&& visit) {
    for (unsigned bit = 0; bit != peer_sign_bits; ++bit)
        if ((bits_of(set) >> bit & 1U) != 0) visit(bit);
}

[[nodiscard]] constexpr peer_sign sign_of(unsigned bit) noexcept {
    return static_cast<peer_sign>(1U << bit);
}

}  // namespace

peer_terms terms_of(const sharing& open) noexcept {
    peer_terms terms{.up = peer_sign::has_open, .unless = peer_sign::goes};
    const share_access needs = needs_of(open.access);
    // An open that neither reads, writes nor removes conflicts with no other, whatever it denies.
    if (needs == share_access::none) return terms;
    for (const way_of_access& way : ways) {
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
    peer_terms terms{.up = peer_sign::has_open, .unless = peer_sign::goes};
    const bool lets_go =
        needs_of(stream.access) == share_access::none or wire::has(stream.share, share_access::remove);
    if (not lets_go) terms.up |= peer_sign::stream_stays;
    return terms;
}

peer_terms terms_of_file(const sharing& file) noexcept {
    peer_terms terms = terms_of(file);
    if (wire::has(needs_of(file.access), share_access::remove)) terms.unless |= peer_sign::stream_stays;
    return terms;
}

result<peer_sign> peer_signs::claim(const peer_terms& terms, peer_claim& into) noexcept {
    ENSURE(terms.up != peer_sign::none, "a claim shows a sign");
    const result<peer_sign> in_the_way = file_->raise(terms.up, terms.unless);
    if (not in_the_way or *in_the_way != peer_sign::none) return in_the_way;
    for_each_bit(terms.up, [&](unsigned bit) { ++claims_[bit]; });
    into = peer_claim(*this, terms.up);
    return in_the_way;
}

void peer_signs::give_up(peer_sign down) noexcept {
    peer_sign last = peer_sign::none;
    for_each_bit(down, [&](unsigned bit) {
        ENSURE(claims_[bit] != 0, "lock byte released without a claim");
        if (--claims_[bit] == 0) last |= sign_of(bit);
    });
    if (last != peer_sign::none) file_->lower(last);
}

void peer_claim::keep(peer_sign only) noexcept {
    if (of_ == nullptr) return;
    ENSURE(wire::has(signs_, only), "a claim keeps signs that it has");
    of_->give_up(without(signs_, only));
    signs_ &= only;
}

}  // namespace sluice::smb::server
