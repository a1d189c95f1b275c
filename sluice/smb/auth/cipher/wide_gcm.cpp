#include "sluice/smb/auth/cipher/wide_gcm.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/auth/cipher/gcm_blocks.hpp"
#include "sluice/smb/auth/secret.hpp"

#if defined(__x86_64__)

namespace sluice::smb::auth::detail {
namespace {

constexpr std::size_t block_bytes = gcm_block_bytes;

SLUICE_GCM_BLOCK __m128i times(__m128i a, __m128i b) noexcept {
    const __m128i a_folded = _mm_xor_si128(a, swapped_halves(a));
    const __m128i b_folded = _mm_xor_si128(b, swapped_halves(b));
    return reduced(_mm_clmulepi64_si128(a, b, 0x00), _mm_clmulepi64_si128(a_folded, b_folded, 0x00),
                   _mm_clmulepi64_si128(a, b, 0x11));
}

SLUICE_GCM_BLOCK __m128i times_x(__m128i h) noexcept {
    // Shifted left by one. The bit between the halves is carried; the bit that is shifted out is
    // x^128.
    const __m128i carries = _mm_srai_epi32(_mm_shuffle_epi32(h, 0xd3), 31);
    const __m128i what = _mm_set_epi64x(static_cast<long long>(0xc200'0000'0000'0001), 1);
    return _mm_xor_si128(_mm_add_epi64(h, h), _mm_and_si128(carries, what));
}

// One step of the key expansion (FIPS 197, 5.2). `by` is the transformed last word.
SLUICE_GCM_BLOCK __m128i expanded(__m128i key, __m128i by) noexcept {
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
    return _mm_xor_si128(key, by);
}
template <int RoundConstant>
SLUICE_GCM_BLOCK __m128i next_key(__m128i before, __m128i last) noexcept {
    return expanded(before, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(last, RoundConstant), 0xff));
}
SLUICE_GCM_BLOCK __m128i next_odd_key(__m128i before,
                                      __m128i last) noexcept {  // for 256 bits, without a constant
    return expanded(before, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(last, 0), 0xaa));
}

SLUICE_GCM_BLOCK void encipher(const std::byte* keys, unsigned rounds, const std::byte* from,
                               std::byte* to) noexcept {
    __m128i state = _mm_xor_si128(load(from), load(keys));
    for (unsigned round = 1; round != rounds; ++round)
        state = _mm_aesenc_si128(state, load(keys + block_bytes * round));
    store(to, _mm_aesenclast_si128(state, load(keys + block_bytes * rounds)));
}

// Writes the round keys of AES-128 and AES-256, in order. Returns the number of rounds.
SLUICE_GCM_BLOCK unsigned expand(bytes_view key, std::byte* to) noexcept {
    __m128i even = load(key.data());
    store(to, even);
    if (key.size() == 16) {
        const auto next = [&]<int Constant>(std::size_t at) SLUICE_GCM_BLOCK {
            even = next_key<Constant>(even, even);
            store(to + block_bytes * at, even);
        };
        next.template operator()<0x01>(1);
        next.template operator()<0x02>(2);
        next.template operator()<0x04>(3);
        next.template operator()<0x08>(4);
        next.template operator()<0x10>(5);
        next.template operator()<0x20>(6);
        next.template operator()<0x40>(7);
        next.template operator()<0x80>(8);
        next.template operator()<0x1b>(9);
        next.template operator()<0x36>(10);
        return 10;
    }
    __m128i odd = load(key.data() + block_bytes);
    store(to + block_bytes, odd);
    const auto next = [&]<int Constant>(std::size_t at) SLUICE_GCM_BLOCK {
        even = next_key<Constant>(even, odd);
        store(to + block_bytes * at, even);
        if (at == 14) return;
        odd = next_odd_key(odd, even);
        store(to + block_bytes * (at + 1), odd);
    };
    next.template operator()<0x01>(2);
    next.template operator()<0x02>(4);
    next.template operator()<0x04>(6);
    next.template operator()<0x08>(8);
    next.template operator()<0x10>(10);
    next.template operator()<0x20>(12);
    next.template operator()<0x40>(14);
    return 14;
}

SLUICE_GCM_BLOCK void make_hash_keys(const std::byte* h, std::byte* keys, std::byte* folded,
                                     std::size_t count) noexcept {
    const __m128i first = times_x(reversed(load(h)));
    __m128i power = first;
    for (std::size_t at = count; at-- != 0;) {
        store(keys + block_bytes * at, power);
        store(folded + block_bytes * at, _mm_xor_si128(power, swapped_halves(power)));
        power = times(power, first);
    }
}

// Hashes up to gcm_powers blocks.
SLUICE_GCM_BLOCK void hash_blocks(std::byte* sum, const gcm_keys& keys, const std::byte* from,
                                  std::size_t count) noexcept {
    if (count == 0) return;
    __m128i low = _mm_setzero_si128();
    __m128i middle = low;
    __m128i high = low;
    __m128i before = load(sum);
    for (std::size_t i = 0; i != count; ++i) {
        const std::size_t power_at = (gcm_powers - count + i) * block_bytes;
        const __m128i factor = _mm_xor_si128(before, reversed(load(from + i * block_bytes)));
        const __m128i power = load(keys.powers + power_at);
        low = _mm_xor_si128(low, _mm_clmulepi64_si128(factor, power, 0x00));
        high = _mm_xor_si128(high, _mm_clmulepi64_si128(factor, power, 0x11));
        const __m128i halves = _mm_xor_si128(factor, swapped_halves(factor));
        middle = _mm_xor_si128(middle, _mm_clmulepi64_si128(halves, load(keys.folded + power_at), 0x00));
        before = _mm_setzero_si128();
    }
    store(sum, reduced(low, middle, high));
}

}  // namespace

wide_gcm::wide_gcm(bytes_view key, const gcm_batches& by) noexcept : by_(&by) {
    ENSURE(key.size() == 16 or key.size() == 32);
    rounds_ = expand(key, round_keys_.front().data());
    block h{};
    encipher(round_keys_.front().data(), rounds_, h.data(), h.data());
    make_hash_keys(h.data(), hash_keys_.front().data(), folded_.front().data(), gcm_powers);
    wipe(h);
}

wide_gcm::~wide_gcm() {
    wipe(std::as_writable_bytes(std::span(this, 1)));
}

gcm_keys wide_gcm::keys() const noexcept {
    return {.round_keys = round_keys_.front().data(),
            .rounds = rounds_,
            .powers = hash_keys_.front().data(),
            .folded = folded_.front().data()};
}

void wide_gcm::start(bytes_view nonce) noexcept {
    ENSURE(nonce.size() == 12);
    first_counter_ = {};
    std::ranges::copy(nonce, first_counter_.begin());
    first_counter_[15] = std::byte{1};
    counter_ = 2;  // the first belongs to the tag
    sum_ = {};
    partial_bytes_ = 0;
    authenticated_bytes_ = ciphered_bytes_ = 0;
}

// Hashes a part. Bytes that do not fill a block wait for more of the same kind, or for end_part().
void wide_gcm::hash_bytes(bytes_view part) noexcept {
    std::byte* const sum = sum_.data();
    if (partial_bytes_ != 0) {
        const std::size_t taken = std::min(part.size(), block_bytes - partial_bytes_);
        std::copy_n(part.begin(), taken, partial_.begin() + partial_bytes_);
        partial_bytes_ += taken;
        part = *part.from(taken);
        if (partial_bytes_ != block_bytes) return;
        hash_blocks(sum, keys(), partial_.data(), 1);
        partial_bytes_ = 0;
    }
    const std::size_t batches = part.size() / by_->bytes;
    by_->hash(sum, keys(), part.data(), batches);
    part = *part.from(batches * by_->bytes);
    const std::size_t blocks = part.size() / block_bytes;
    hash_blocks(sum, keys(), part.data(), blocks);
    part = *part.from(blocks * block_bytes);
    std::ranges::copy(part, partial_.begin());
    partial_bytes_ = part.size();
}

void wide_gcm::end_part() noexcept {
    if (partial_bytes_ == 0) return;
    std::fill(partial_.begin() + partial_bytes_, partial_.end(), std::byte{0});
    hash_blocks(sum_.data(), keys(), partial_.data(), 1);
    partial_bytes_ = 0;
}

void wide_gcm::authenticate(bytes_view part) noexcept {
    ENSURE(ciphered_bytes_ == 0, "associated data must precede encrypted data");
    authenticated_bytes_ += part.size();
    hash_bytes(part);
}

template <bool Encrypts>
void wide_gcm::mix(bytes_view from, const std::byte* stream, std::byte* to) noexcept {
    if (not Encrypts) hash_bytes(from);  // the input may be overwritten
    for (std::size_t i = 0; i != from.size(); ++i)
        to[i] = from[i] ^ stream[i];
    if (Encrypts) hash_bytes(bytes_view(to, from.size()));
    ciphered_bytes_ += from.size();
}

// Processes bytes that do not fill a batch: the end of a part, and the start of a part after an
// incomplete block.
template <bool Encrypts>
void wide_gcm::pass_bytes(bytes_view from, std::byte* to) noexcept {
    if (from.empty()) return;
    const std::size_t within = static_cast<std::size_t>(ciphered_bytes_ % block_bytes);
    if (within != 0) {
        mix<Encrypts>(from, key_stream_.data() + within, to);
        return;
    }
    std::array<std::byte, gcm_batch_bytes_max> stream;
    by_->key_stream(keys(), {.nonce = first_counter_.data(), .next = counter_}, stream.data());
    mix<Encrypts>(from, stream.data(), to);
    const std::size_t blocks = (from.size() + block_bytes - 1) / block_bytes;
    counter_ += static_cast<std::uint32_t>(blocks);
    std::copy_n(stream.begin() + (blocks - 1) * block_bytes, block_bytes, key_stream_.begin());
}

template <bool Encrypts>
void wide_gcm::pass(bytes_view from, std::byte* to) noexcept {
    if (ciphered_bytes_ == 0) end_part();
    const std::size_t within = static_cast<std::size_t>(ciphered_bytes_ % block_bytes);
    const std::size_t head = within == 0 ? 0 : std::min(from.size(), block_bytes - within);
    pass_bytes<Encrypts>(*from.first(head), to);
    from = *from.from(head);
    to += head;
    const bytes_view batches = *from.first(from.size() / by_->bytes * by_->bytes);
    const gcm_counter at{.nonce = first_counter_.data(), .next = counter_};
    (Encrypts ? by_->encrypt : by_->decrypt)(sum_.data(), keys(), at, batches, to);
    counter_ += static_cast<std::uint32_t>(batches.size() / block_bytes);
    ciphered_bytes_ += batches.size();
    pass_bytes<Encrypts>(*from.from(batches.size()), to + batches.size());
}

void wide_gcm::encrypt(bytes_view from, std::byte* to) noexcept {
    pass<true>(from, to);
}

void wide_gcm::decrypt(bytes_view from, std::byte* to) noexcept {
    pass<false>(from, to);
}

wide_gcm::block wide_gcm::tag() noexcept {
    end_part();
    block lengths;
    for (std::size_t i = 0; i != 8; ++i) {
        lengths[i] = static_cast<std::byte>(authenticated_bytes_ * 8 >> (56 - 8 * i));
        lengths[8 + i] = static_cast<std::byte>(ciphered_bytes_ * 8 >> (56 - 8 * i));
    }
    hash_blocks(sum_.data(), keys(), lengths.data(), 1);
    block mask;
    encipher(round_keys_.front().data(), rounds_, first_counter_.data(), mask.data());
    for (std::size_t i = 0; i != block_bytes; ++i)
        mask[i] ^= sum_[block_bytes - 1 - i];
    return mask;
}

}  // namespace sluice::smb::auth::detail
#else  // other CPUs

namespace sluice::smb::auth::detail {

wide_gcm::wide_gcm(bytes_view, const gcm_batches& by) noexcept : by_(&by) {
    ENSURE(false, "batches without single blocks on this CPU");
}
wide_gcm::~wide_gcm() = default;
void wide_gcm::start(bytes_view) noexcept {}
void wide_gcm::authenticate(bytes_view) noexcept {}
void wide_gcm::encrypt(bytes_view, std::byte*) noexcept {}
void wide_gcm::decrypt(bytes_view, std::byte*) noexcept {}
wide_gcm::block wide_gcm::tag() noexcept {
    return {};
}

}  // namespace sluice::smb::auth::detail
#endif
