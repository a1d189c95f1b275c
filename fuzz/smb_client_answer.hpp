#pragma once

// The input format of the fuzz target smb_client: a byte that selects the client's newest dialect,
// then the replies of the server.
//
//   u8   form          1  waits for a request and answers it; otherwise answers the last one again
//                      2  is the complete frame; otherwise with a generated header that matches
//                      4  is preceded by STATUS_PENDING
//                      8  has the flag of a signature
//   u32  status        u16  credits
//   u8   zeros         hundreds of zero bytes that follow the body
//   u16  length        of the following bytes: the body, or the frame

#include <algorithm>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::fuzz {

struct answer {
    bool waits = true;
    bool is_frame = false;
    bool takes_its_time = false;
    bool is_signed = false;
    smb::wire::nt_status status = smb::wire::nt_status::success;
    std::uint16_t credits = 0;
    std::size_t zeros = 0;
    bytes_view body{};
};

struct answer_head {
    le8 form;
    le32 status;
    le16 credits;
    le8 hundreds_of_zeros;
    le16 length;
};
static_assert(sizeof(answer_head) == 10 and alignof(answer_head) == 1);

/// Removes the first reply from `script` and returns it; std::nullopt at its end.
[[nodiscard]] inline std::optional<answer> take_answer(bytes_view& script) noexcept {
    const auto head = script.take_at<answer_head>(0);
    if (not head) return std::nullopt;
    script = *script.from(sizeof(answer_head));
    const unsigned form = head->form.value();
    const bytes_view body = *script.first(std::min<std::size_t>(head->length.value(), script.size()));
    script = *script.from(body.size());
    return answer{.waits = (form & 1U) != 0,
                  .is_frame = (form & 2U) != 0,
                  .takes_its_time = (form & 4U) != 0,
                  .is_signed = (form & 8U) != 0,
                  .status = static_cast<smb::wire::nt_status>(head->status.value()),
                  .credits = head->credits.value(),
                  .zeros = head->hundreds_of_zeros.value() * std::size_t{100},
                  .body = body};
}

}  // namespace sluice::fuzz
