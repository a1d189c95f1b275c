// Any bytes for the decoder of the queue file of atomic_append. Everything it accepts must be equal
// after encoding and decoding.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/queue/queue_format.hpp"
#include "sluice/fsmutex/queue/sip_hash.hpp"

namespace {

using namespace sluice;
using namespace sluice::fsmutex::queue_format;

// Corrects the hash, which the fuzzer cannot guess: the checks after it must also
// hold for forged content.
void set_hash(std::span<std::byte> page, std::size_t covered_end) {
    const auto hash = fsmutex::sip_hash_128(bytes_view(page.data() + 16, covered_end - 16));
    const le64 words[2] = {le64(hash[0]), le64(hash[1])};
    std::memcpy(page.data(), words, sizeof words);
}

void check_slot(bytes_view bytes) {
    const slot read = decode_slot(bytes);
    ENSURE(read.entities().size() <= continuation_entities_max);
    if (not read.is_live()) return;
    std::array<std::byte, slot_bytes> again;
    encode(read, again);
    const slot same = decode_slot(again);
    ENSURE(same.kind == read.kind and same.place == read.place and same.id == read.id and
           same.when_us == read.when_us and same.is_continued == read.is_continued and
           same.process_id == read.process_id and same.host_name() == read.host_name() and
           std::equal(read.entities().begin(), read.entities().end(), same.entities().begin(),
                      same.entities().end()));
}

void check_header(bytes_view page) {
    const auto read = decode_header(page);
    if (not read) return;
    ENSURE(read->live_pages.size() <= live_pages_max);
    std::array<std::byte, page_bytes> again;
    encode(*read, again);
    ENSURE(decode_header(again) == read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view input(reinterpret_cast<const std::byte*>(data), size);
    check_slot(input);
    check_header(input);
    std::array<std::byte, page_bytes> page{};
    std::copy_n(input.begin(), std::min(size, page.size()), page.begin());
    const std::span<std::byte, slot_bytes> slot_in_page = std::span(page).first<slot_bytes>();
    set_place(slot_in_page, input.take_at<le64>(8).value_or(le64(0)).value());
    check_slot(page);
    const auto live_pages =
        std::min<std::size_t>(input.take_at<le32>(56).value_or(le32(0)).value(), live_pages_max);
    set_hash(page, header_bytes + 8 * live_pages);
    check_header(page);
    return 0;
}
