#include "sluice/smb/wire/create/create_context_data.hpp"

namespace sluice::smb::wire {

decoded<lease> decode_lease(bytes_view data) noexcept {
    const auto v1 = data.take<raw_lease_v1>();
    const auto v2 = data.take<raw_lease_v2>();
    if (!v1 or (data.size() != sizeof(raw_lease_v1) and data.size() != sizeof(raw_lease_v2))) {
        return std::unexpected(decode_error::bad_value);
    }
    lease result{
        .key = v1->key, .state = lease_state(v1->state.value()), .flags = lease_flags(v1->flags.value())};
    if (v2) result.v2 = lease_v2_part{.parent_key = v2->parent_key, .epoch = v2->epoch.value()};
    return result;
}

void named_context_writer::put_lease(const lease& lease) noexcept {
    const raw_lease_v1 v1{.key = lease.key,
                          .state = le32(bits_of(lease.state)),
                          .flags = le32(bits_of(lease.flags)),
                          .duration = {}};
    if (lease.v2) {
        put_raw(context_names::lease, raw_lease_v2{.v1 = v1,
                                                   .parent_key = lease.v2->parent_key,
                                                   .epoch = le16(lease.v2->epoch),
                                                   .reserved = {}});
    } else {
        put_raw(context_names::lease, v1);
    }
}

}  // namespace sluice::smb::wire
