#pragma once

#include <cstdint>

namespace sluice::smb::wire {

/// Where the data of a READ or WRITE travels, if not in the message: by RDMA, described by the channel
/// information ([MS-SMB2] 2.2.19).
enum class io_channel : std::uint32_t { none = 0, rdma_v1 = 1, rdma_v1_invalidate = 2, rdma_transform = 3 };

}  // namespace sluice::smb::wire
