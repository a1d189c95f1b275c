// BLOBs that are stored in pieces are read as one piece: workers reserve a range of a shared area,
// copy the pieces of a BLOB to it, check the BLOB, and release the range. (LeanStore does the same
// with its aliasing area, Nguyen and Leis, ICDE 2024, but maps the pieces instead of copying them.)

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/sync/range_lock.hpp"

using sluice::sync::byte_range;
using sluice::sync::range_guard;
using sluice::sync::range_lock;

namespace {

constexpr std::size_t extent_bytes = 64 << 10;
constexpr std::size_t extents_per_blob = 16;
constexpr std::size_t blob_bytes = extents_per_blob * extent_bytes;  // 1 MiB
constexpr std::size_t blob_count = 32;
// Three at a time, without fragmentation.
constexpr std::size_t area_extents = 3 * extents_per_blob;

// A BLOB in one piece, for the lifetime of this object.
struct blob_view {
    std::span<const std::byte> bytes;
    range_guard reserved;
};

// 32 BLOBs of 1 MiB, their extents anywhere. Thread safety: any thread reads.
class blob_store {
public:
    explicit blob_store(std::mt19937_64 random)
        : extents_(blob_count * blob_bytes), places_(blob_count * extents_per_blob) {
        for (std::size_t i = 0; i != places_.size(); ++i)
            places_[i] = i * extent_bytes;
        std::ranges::shuffle(places_, random);
        for (std::size_t i = 0; i != places_.size(); ++i)
            std::memset(&extents_[places_[i]], static_cast<int>(i / extents_per_blob), extent_bytes);
    }

    // Reserves a free place, or waits for the first one it tried.
    [[nodiscard]] blob_view read(std::size_t blob, std::mt19937_64& random) {
        const std::size_t places = area_extents - extents_per_blob + 1;
        const std::size_t first_choice = random() % places;
        range_guard reserved;
        for (std::size_t i = 0; i < places and not reserved; i += extents_per_blob / 2)
            reserved = lock_.try_lock({.where = place_of((first_choice + i) % places)});
        if (not reserved) {
            waits.fetch_add(1, std::memory_order_relaxed);
            reserved = lock_.lock({.where = place_of(first_choice)});
        }
        std::byte* const begin = &area_[reserved.where().first()];
        for (std::size_t i = 0; i != extents_per_blob; ++i)
            std::memcpy(begin + i * extent_bytes, &extents_[places_[blob * extents_per_blob + i]],
                        extent_bytes);
        return {.bytes = {begin, blob_bytes}, .reserved = std::move(reserved)};
    }

    std::atomic<std::uint64_t> waits{0};

private:
    [[nodiscard]] static byte_range place_of(std::size_t extent) {
        return *byte_range::of({.offset = extent * extent_bytes, .length = blob_bytes});
    }

    std::vector<std::byte> extents_;
    std::vector<std::size_t> places_;  // positions of the extents, BLOB by BLOB
    std::vector<std::byte> area_ = std::vector<std::byte>(area_extents * extent_bytes);
    range_lock lock_;  // locks the bytes of the area
};

// Returns whether every byte is the BLOB's number: the first one is, and each equals the next.
[[nodiscard]] bool is_whole(std::span<const std::byte> bytes, std::size_t blob) {
    return bytes.front() == static_cast<std::byte>(blob) and
           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

[[nodiscard]] int number(std::string_view digits) {
    int value = 0;
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

}  // namespace

int main(int argc, char** argv) {
    const int workers = argc > 1 ? number(argv[1]) : 4;
    const std::chrono::milliseconds duration(argc > 2 ? number(argv[2]) : 1000);
    blob_store store(std::mt19937_64(42));
    std::atomic<std::uint64_t> blobs{0};
    std::atomic<std::uint64_t> torn{0};
    const auto began = std::chrono::steady_clock::now();
    {
        std::vector<std::jthread> threads;
        for (int worker = 0; worker < workers; ++worker)
            threads.emplace_back([&, worker] {
                std::mt19937_64 random(static_cast<std::uint64_t>(worker));
                while (std::chrono::steady_clock::now() - began < duration) {
                    const std::size_t blob = random() % blob_count;
                    const blob_view view = store.read(blob, random);
                    if (not is_whole(view.bytes, blob)) torn.fetch_add(1, std::memory_order_relaxed);
                    blobs.fetch_add(1, std::memory_order_relaxed);
                }
            });
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::printf("%d workers: %.0f BLOBs/s, %.2f GiB/s, waited for a range %llu times of %llu, torn: %llu\n",
                workers, static_cast<double>(blobs) / took.count(),
                static_cast<double>(blobs) / took.count() * blob_bytes / (1 << 30),
                static_cast<unsigned long long>(store.waits), static_cast<unsigned long long>(blobs),
                static_cast<unsigned long long>(torn));
    return torn == 0 and blobs != 0 ? 0 : 1;
}
