#pragma once

#include <cstdint>

namespace sluice::smb::wire {

/// The transport of a READ's or WRITE's data, if it is not the message: RDMA, described by the
/// channel information ([MS-SMB2] 2.2.19).
enum class io_channel : std::uint32_t { none = 0, rdma_v1 = 1, rdma_v1_invalidate = 2, rdma_transform = 3 };

}  // namespace sluice::smb::wire
