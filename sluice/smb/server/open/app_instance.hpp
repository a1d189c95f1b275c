#pragma once

#include <optional>

#include "sluice/smb/wire/create/create_contexts.hpp"
#include "sluice/smb/wire/guid.hpp"

namespace sluice::smb::server {

/// The instance of an application that an open was made for ([MS-SMB2] 3.3.1.10,
/// Open.AppInstanceId). Without a version, an ID of zeros names no instance: clients that never
/// chose an ID would close the opens of each other. Immutable.
struct app_instance {
    wire::guid id{};
    std::optional<wire::app_instance_version> version;  // of SMB 3.1.1 only
};

}  // namespace sluice::smb::server
