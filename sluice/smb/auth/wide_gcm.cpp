#include "sluice/smb/auth/wide_gcm.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/auth/secret.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

// Compiled for these whatever the rest is compiled for; called only where the processor has them.
#define SLUICE_WIDE __attribute__((target("avx2,aes,vaes,pclmul,vpclmulqdq")))

namespace sluice::smb::auth::detail {
namespace {

constexpr std::size_t block_bytes = 16;
constexpr std::size_t batch_bytes = 256;  // 16 blocks, 8 registers of two

// The field's polynomial as a reduction wants it: what x^128 is, and one to carry from half to half.
SLUICE_WIDE __m128i polynomial() noexcept {
    return _mm_set_epi64x(static_cast<long long>(0xc200'0000'0000'0000), 1);
}
SLUICE_WIDE __m128i reversed(__m128i bytes) noexcept {
    return _mm_shuffle_epi8(bytes, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
SLUICE_WIDE __m256i reversed(__m256i bytes) noexcept {
    return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
                                                                               10, 11, 12, 13, 14, 15)));
}
SLUICE_WIDE __m128i load(const std::byte* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
SLUICE_WIDE __m256i load_two(const std::byte* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
SLUICE_WIDE void store(std::byte* to, __m128i what) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), what);
}
SLUICE_WIDE void store_two(std::byte* to, __m256i what) noexcept {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), what);
}
SLUICE_WIDE __m128i swapped_halves(__m128i of) noexcept {
    return _mm_shuffle_epi32(of, 0x4e);
}

// A product of 256 bits, the middle part as the sum of the four half products: Karatsuba's three
// multiplications for two halves each.
struct product {
    __m256i low, middle, high;
};

// 256 bits made 128: two foldings of 64 bits each. What comes out lacks a factor x, which the stored keys
// have too much of.
SLUICE_WIDE __m128i reduced(__m128i low, __m128i middle, __m128i high) noexcept {
    const __m128i sum = _mm_xor_si128(middle, _mm_xor_si128(low, high));
    const __m128i once =
        _mm_xor_si128(sum, _mm_xor_si128(swapped_halves(low), _mm_clmulepi64_si128(polynomial(), low, 0x01)));
    return _mm_xor_si128(high,
                         _mm_xor_si128(swapped_halves(once), _mm_clmulepi64_si128(polynomial(), once, 0x01)));
}

SLUICE_WIDE __m128i times(__m128i a, __m128i b) noexcept {
    const __m128i a_folded = _mm_xor_si128(a, swapped_halves(a));
    const __m128i b_folded = _mm_xor_si128(b, swapped_halves(b));
    return reduced(_mm_clmulepi64_si128(a, b, 0x00), _mm_clmulepi64_si128(a_folded, b_folded, 0x00),
                   _mm_clmulepi64_si128(a, b, 0x11));
}

SLUICE_WIDE __m128i times_x(__m128i h) noexcept {
    // Shifted left by one; the bit between the halves is carried, the one that falls out is x^128.
    const __m128i carries = _mm_srai_epi32(_mm_shuffle_epi32(h, 0xd3), 31);
    const __m128i what = _mm_set_epi64x(static_cast<long long>(0xc200'0000'0000'0001), 1);
    return _mm_xor_si128(_mm_add_epi64(h, h), _mm_and_si128(carries, what));
}

SLUICE_WIDE void add_product(product& sum, __m256i two, const std::byte* key,
                             const std::byte* folded) noexcept {
    const __m256i by = load_two(key);
    const __m256i halves = _mm256_xor_si256(two, _mm256_shuffle_epi32(two, 0x4e));
    sum.low = _mm256_xor_si256(sum.low, _mm256_clmulepi64_epi128(two, by, 0x00));
    sum.high = _mm256_xor_si256(sum.high, _mm256_clmulepi64_epi128(two, by, 0x11));
    sum.middle = _mm256_xor_si256(sum.middle, _mm256_clmulepi64_epi128(halves, load_two(folded), 0x00));
}

SLUICE_WIDE __m128i both(__m256i of) noexcept {
    return _mm_xor_si128(_mm256_castsi256_si128(of), _mm256_extracti128_si256(of, 1));
}

// One step of the key's expansion (FIPS 197, 5.2): `by` is what the last word has become.
SLUICE_WIDE __m128i expanded(__m128i key, __m128i by) noexcept {
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
    return _mm_xor_si128(key, by);
}
template <int RoundConstant>
SLUICE_WIDE __m128i next_key(__m128i before, __m128i last) noexcept {
    return expanded(before, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(last, RoundConstant), 0xff));
}
SLUICE_WIDE __m128i next_odd_key(__m128i before, __m128i last) noexcept {  // of 256 bits, without a constant
    return expanded(before, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(last, 0), 0xaa));
}

// A batch of 16 blocks, as 8 registers of two.
struct batch {
    __m256i two[8];
};

SLUICE_WIDE __m128i hashed(__m128i sum, const batch& blocks, const std::byte* keys,
                           const std::byte* folded) noexcept {
    product all{_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    // The sum so far belongs to the first block.
    const __m256i first = _mm256_xor_si256(reversed(blocks.two[0]), _mm256_zextsi128_si256(sum));
    add_product(all, first, keys, folded);
#pragma GCC unroll 8
    for (std::size_t i = 1; i != 8; ++i)
        add_product(all, reversed(blocks.two[i]), keys + 32 * i, folded + 32 * i);
    return reduced(both(all.low), both(all.middle), both(all.high));
}

SLUICE_WIDE batch load_batch(const std::byte* from) noexcept {
    batch all;
#pragma GCC unroll 8
    for (std::size_t i = 0; i != 8; ++i)
        all.two[i] = load_two(from + 32 * i);
    return all;
}

// What a batch is encrypted with: the cipher of 16 counters in a row.
SLUICE_WIDE batch stream_of(std::uint32_t counter, const std::byte* nonce, const std::byte* keys,
                            unsigned rounds) noexcept {
    // Counters stand big-endian behind the nonce; they are counted in the processor's order.
    const __m256i base = _mm256_broadcastsi128_si256(reversed(load(nonce)));
    const auto number = static_cast<int>(counter);
    __m256i next = _mm256_blend_epi32(base, _mm256_set_epi32(0, 0, 0, number + 1, 0, 0, 0, number), 0x11);
    const __m256i two = _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 2);
    const __m256i first_key = _mm256_broadcastsi128_si256(load(keys));
    batch all;
#pragma GCC unroll 8
    for (std::size_t i = 0; i != 8; ++i) {
        all.two[i] = _mm256_xor_si256(reversed(next), first_key);
        next = _mm256_add_epi32(next, two);
    }
    for (unsigned round = 1; round != rounds; ++round) {
        const __m256i key = _mm256_broadcastsi128_si256(load(keys + block_bytes * round));
#pragma GCC unroll 8
        for (std::size_t i = 0; i != 8; ++i)
            all.two[i] = _mm256_aesenc_epi128(all.two[i], key);
    }
    const __m256i last_key = _mm256_broadcastsi128_si256(load(keys + block_bytes * rounds));
#pragma GCC unroll 8
    for (std::size_t i = 0; i != 8; ++i)
        all.two[i] = _mm256_aesenclast_epi128(all.two[i], last_key);
    return all;
}

SLUICE_WIDE batch mixed(const batch& a, const batch& b) noexcept {
    batch all;
#pragma GCC unroll 8
    for (std::size_t i = 0; i != 8; ++i)
        all.two[i] = _mm256_xor_si256(a.two[i], b.two[i]);
    return all;
}

SLUICE_WIDE void store_batch(std::byte* to, const batch& all) noexcept {
#pragma GCC unroll 8
    for (std::size_t i = 0; i != 8; ++i)
        store_two(to + 32 * i, all.two[i]);
}

SLUICE_WIDE void encipher(const std::byte* keys, unsigned rounds, const std::byte* from,
                          std::byte* to) noexcept {
    __m128i state = _mm_xor_si128(load(from), load(keys));
    for (unsigned round = 1; round != rounds; ++round)
        state = _mm_aesenc_si128(state, load(keys + block_bytes * round));
    store(to, _mm_aesenclast_si128(state, load(keys + block_bytes * rounds)));
}

// The round keys of AES-128 and AES-256, in order; how many rounds.
SLUICE_WIDE unsigned expand(bytes_view key, std::byte* to) noexcept {
    __m128i even = load(key.data());
    store(to, even);
    if (key.size() == 16) {
        const auto next = [&]<int Constant>(std::size_t at) SLUICE_WIDE {
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
    const auto next = [&]<int Constant>(std::size_t at) SLUICE_WIDE {
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

SLUICE_WIDE void make_hash_keys(const std::byte* h, std::byte* keys, std::byte* folded,
                                std::size_t count) noexcept {
    const __m128i first = times_x(reversed(load(h)));
    __m128i power = first;
    for (std::size_t at = count; at-- != 0;) {
        store(keys + block_bytes * at, power);
        store(folded + block_bytes * at, _mm_xor_si128(power, swapped_halves(power)));
        power = times(power, first);
    }
}

SLUICE_WIDE void hash_batches(std::byte* sum, const std::byte* keys, const std::byte* folded,
                              const std::byte* from, std::size_t batches) noexcept {
    __m128i now = load(sum);
    for (; batches != 0; --batches, from += batch_bytes)
        now = hashed(now, load_batch(from), keys, folded);
    store(sum, now);
}

SLUICE_WIDE void hash_block(std::byte* sum, const std::byte* key, const std::byte* from) noexcept {
    store(sum, times(_mm_xor_si128(load(sum), reversed(load(from))), load(key)));
}

struct cipher_of_batches {
    const std::byte* round_keys;
    unsigned rounds;
    const std::byte* nonce;
    std::uint32_t counter;
};

template <bool Encrypts>
SLUICE_WIDE void pass_batches(std::byte* sum, const std::byte* keys, const std::byte* folded,
                              const cipher_of_batches& by, bytes_view from, std::byte* to) noexcept {
    __m128i now = load(sum);
    std::uint32_t counter = by.counter;
    for (std::size_t at = 0; at != from.size(); at += batch_bytes, counter += 16) {
        const batch given = load_batch(from.data() + at);
        const batch made = mixed(given, stream_of(counter, by.nonce, by.round_keys, by.rounds));
        now = hashed(now, Encrypts ? made : given, keys, folded);
        store_batch(to + at, made);
    }
    store(sum, now);
}

}  // namespace

bool wide_gcm::is_available() noexcept {
    return __builtin_cpu_supports("avx2") and __builtin_cpu_supports("aes") and
           __builtin_cpu_supports("vaes") and __builtin_cpu_supports("pclmul") and
           __builtin_cpu_supports("vpclmulqdq");
}

wide_gcm::wide_gcm(bytes_view key) noexcept {
    ENSURE(is_available() and (key.size() == 16 or key.size() == 32));
    rounds_ = expand(key, round_keys_.front().data());
    block h{};
    encipher(round_keys_.front().data(), rounds_, h.data(), h.data());
    make_hash_keys(h.data(), hash_keys_.front().data(), folded_.front().data(), powers);
    wipe(h);
}

wide_gcm::~wide_gcm() {
    wipe(std::as_writable_bytes(std::span(this, 1)));
}

void wide_gcm::start(bytes_view nonce) noexcept {
    ENSURE(nonce.size() == 12);
    first_counter_ = {};
    std::ranges::copy(nonce, first_counter_.begin());
    first_counter_[15] = std::byte{1};
    counter_ = 2;  // the first is the tag's
    sum_ = {};
    partial_bytes_ = 0;
    authenticated_bytes_ = ciphered_bytes_ = 0;
}

// What does not fill a block waits for more of its kind, or for end_part().
void wide_gcm::hash_bytes(bytes_view part) noexcept {
    std::byte* const sum = sum_.data();
    if (partial_bytes_ != 0) {
        const std::size_t taken = std::min(part.size(), block_bytes - partial_bytes_);
        std::copy_n(part.begin(), taken, partial_.begin() + partial_bytes_);
        partial_bytes_ += taken;
        part = *part.from(taken);
        if (partial_bytes_ != block_bytes) return;
        hash_block(sum, hash_keys_.back().data(), partial_.data());
        partial_bytes_ = 0;
    }
    const std::size_t batches = part.size() / batch_bytes;
    hash_batches(sum, hash_keys_.front().data(), folded_.front().data(), part.data(), batches);
    part = *part.from(batches * batch_bytes);
    for (; part.size() >= block_bytes; part = *part.from(block_bytes))
        hash_block(sum, hash_keys_.back().data(), part.data());
    std::ranges::copy(part, partial_.begin());
    partial_bytes_ = part.size();
}

void wide_gcm::end_part() noexcept {
    if (partial_bytes_ == 0) return;
    std::fill(partial_.begin() + partial_bytes_, partial_.end(), std::byte{0});
    hash_block(sum_.data(), hash_keys_.back().data(), partial_.data());
    partial_bytes_ = 0;
}

void wide_gcm::authenticate(bytes_view part) noexcept {
    ENSURE(ciphered_bytes_ == 0, "what is only authenticated comes first");
    authenticated_bytes_ += part.size();
    hash_bytes(part);
}

wide_gcm::block wide_gcm::key_stream() noexcept {
    block counter = first_counter_;
    for (std::size_t i = 0; i != 4; ++i)
        counter[12 + i] = static_cast<std::byte>(counter_ >> (24 - 8 * i));
    ++counter_;
    block stream;
    encipher(round_keys_.front().data(), rounds_, counter.data(), stream.data());
    return stream;
}

// The long way: the ends of parts, and what follows a part that ended within a block.
template <bool Encrypts>
void wide_gcm::pass_bytes(bytes_view from, std::byte* to) noexcept {
    while (not from.empty()) {
        const std::size_t within = static_cast<std::size_t>(ciphered_bytes_ % block_bytes);
        if (within == 0) key_stream_ = key_stream();
        const std::size_t count = std::min(from.size(), block_bytes - within);
        block made;
        for (std::size_t i = 0; i != count; ++i)
            made[i] = from[i] ^ key_stream_[within + i];
        hash_bytes(Encrypts ? bytes_view(made.data(), count) : *from.first(count));
        std::copy_n(made.begin(), count, to);
        ciphered_bytes_ += count;
        from = *from.from(count);
        to += count;
    }
}

template <bool Encrypts>
void wide_gcm::pass(bytes_view from, std::byte* to) noexcept {
    if (ciphered_bytes_ == 0) end_part();
    const std::size_t within = static_cast<std::size_t>(ciphered_bytes_ % block_bytes);
    const std::size_t head = within == 0 ? 0 : std::min(from.size(), block_bytes - within);
    pass_bytes<Encrypts>(*from.first(head), to);
    from = *from.from(head);
    to += head;
    const bytes_view batches = *from.first(from.size() / batch_bytes * batch_bytes);
    const cipher_of_batches by{.round_keys = round_keys_.front().data(),
                               .rounds = rounds_,
                               .nonce = first_counter_.data(),
                               .counter = counter_};
    pass_batches<Encrypts>(sum_.data(), hash_keys_.front().data(), folded_.front().data(), by, batches, to);
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
    hash_block(sum_.data(), hash_keys_.back().data(), lengths.data());
    block mask;
    encipher(round_keys_.front().data(), rounds_, first_counter_.data(), mask.data());
    for (std::size_t i = 0; i != block_bytes; ++i)
        mask[i] ^= sum_[block_bytes - 1 - i];
    return mask;
}

}  // namespace sluice::smb::auth::detail
#else  // other processors

namespace sluice::smb::auth::detail {

bool wide_gcm::is_available() noexcept {
    return false;
}
wide_gcm::wide_gcm(bytes_view) noexcept {
    ENSURE(false, "this processor is another");
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
