#pragma once

#include <memory>

#include "sluice/smb/server/net/path_counters.hpp"
#include "sluice/smb/server/net/splice_pipes.hpp"
#include "sluice/smb/wire/compression/compressed_message.hpp"

namespace sluice::smb::server {

/// The I/O paths of the data of a loop's connections, besides its buffers. Thread safety: one
/// thread.
class data_path {
public:
    splice_pipes pipes;
    path_counters counted;

    /// Returns the memory of the compressor. Allocates: that, once.
    [[nodiscard]] smb::wire::compression_work_area& compression_memory() {
        if (compression_ == nullptr) compression_ = std::make_unique<smb::wire::compression_work_area>();
        return *compression_;
    }

private:
    std::unique_ptr<smb::wire::compression_work_area> compression_;
};

}  // namespace sluice::smb::server
