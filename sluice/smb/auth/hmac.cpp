// The low-level SHA-256. It is deprecated, but its replacement allocates for every hash.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "sluice/smb/auth/hmac.hpp"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <memory>

namespace sluice::smb::auth {
namespace {

constexpr std::size_t block_bytes = 64;  // for MD5 and SHA-256
constexpr std::byte inner_mask{0x36};
constexpr std::byte outer_mask{0x5c};

// Returns one block: the key padded with zeros, each byte combined with `mask`.
secret_bytes<block_bytes> padded(bytes_view key, std::byte mask) noexcept {
    ENSURE(key.size() <= block_bytes);
    secret_bytes<block_bytes> block;
    std::copy(key.begin(), key.end(), block.mutable_view().begin());
    for (std::byte& each : block.mutable_view())
        each ^= mask;
    return block;
}

unsigned char* chars_of(mutable_bytes bytes) noexcept {
    return reinterpret_cast<unsigned char*>(bytes.data());
}

void save(SHA256_CTX& hash, mutable_bytes state) noexcept {
    static_assert(std::is_trivially_copyable_v<SHA256_CTX>);
    ENSURE(state.size() == sizeof(hash));
    std::memcpy(state.data(), &hash, sizeof(hash));
    OPENSSL_cleanse(&hash, sizeof(hash));
}

struct context_deleter {
    void operator()(EVP_MD_CTX* hash) const noexcept { EVP_MD_CTX_free(hash); }
};

struct algorithm_deleter {
    void operator()(EVP_MD* algorithm) const noexcept { EVP_MD_free(algorithm); }
};

std::unique_ptr<EVP_MD, algorithm_deleter> find_md5() noexcept {
    return std::unique_ptr<EVP_MD, algorithm_deleter>(EVP_MD_fetch(nullptr, "MD5", nullptr));
}

}  // namespace

hmac_sha256::hmac_sha256(bytes_view key) noexcept {
    static_assert(state_bytes == sizeof(SHA256_CTX));
    SHA256_CTX hash;
    secret_bytes<32> shortened;
    if (key.size() > block_bytes) {
        SHA256_Init(&hash);
        SHA256_Update(&hash, key.data(), key.size());
        SHA256_Final(chars_of(shortened.mutable_view()), &hash);
        key = shortened.view();
    }
    SHA256_Init(&hash);
    SHA256_Update(&hash, padded(key, inner_mask).view().data(), block_bytes);
    save(hash, inner_.mutable_view());
    SHA256_Init(&hash);
    SHA256_Update(&hash, padded(key, outer_mask).view().data(), block_bytes);
    save(hash, outer_.mutable_view());
}

secret_bytes<32> hmac_sha256::code(std::span<const bytes_view> parts) const noexcept {
    SHA256_CTX hash;
    secret_bytes<32> code;
    std::memcpy(&hash, inner_.view().data(), sizeof(hash));
    for (const bytes_view part : parts)
        SHA256_Update(&hash, part.data(), part.size());
    SHA256_Final(chars_of(code.mutable_view()), &hash);
    std::memcpy(&hash, outer_.view().data(), sizeof(hash));
    SHA256_Update(&hash, code.view().data(), code.size);
    SHA256_Final(chars_of(code.mutable_view()), &hash);  // this also wipes the state
    return code;
}

bool has_md5() noexcept {
    return find_md5() != nullptr;
}

secret_bytes<16> md5(std::span<const bytes_view> parts) noexcept {
    const auto algorithm = find_md5();
    const std::unique_ptr<EVP_MD_CTX, context_deleter> hash(EVP_MD_CTX_new());
    ENSURE(algorithm and hash, "has_md5() is a precondition");
    ENSURE(EVP_DigestInit_ex2(hash.get(), algorithm.get(), nullptr) == 1);
    for (const bytes_view part : parts)
        ENSURE(EVP_DigestUpdate(hash.get(), part.data(), part.size()) == 1);
    secret_bytes<16> digest;
    ENSURE(EVP_DigestFinal_ex(hash.get(), chars_of(digest.mutable_view()), nullptr) == 1);
    return digest;
}

secret_bytes<16> hmac_md5(bytes_view key, std::span<const bytes_view> parts) noexcept {
    const secret_bytes<16> shortened =
        key.size() > block_bytes ? md5(std::span(&key, 1)) : secret_bytes<16>();
    const bytes_view short_key = key.size() > block_bytes ? shortened.view() : key;
    const auto algorithm = find_md5();
    const std::unique_ptr<EVP_MD_CTX, context_deleter> hash(EVP_MD_CTX_new());
    ENSURE(algorithm and hash, "has_md5() is a precondition");
    ENSURE(EVP_DigestInit_ex2(hash.get(), algorithm.get(), nullptr) == 1);
    ENSURE(EVP_DigestUpdate(hash.get(), padded(short_key, inner_mask).view().data(), block_bytes) == 1);
    for (const bytes_view part : parts)
        ENSURE(EVP_DigestUpdate(hash.get(), part.data(), part.size()) == 1);
    secret_bytes<16> inner;
    ENSURE(EVP_DigestFinal_ex(hash.get(), chars_of(inner.mutable_view()), nullptr) == 1);

    const auto outer = padded(short_key, outer_mask);
    const std::array<bytes_view, 2> outer_parts = {outer.view(), inner.view()};
    return md5(outer_parts);
}

}  // namespace sluice::smb::auth
