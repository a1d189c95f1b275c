#pragma once

#include "sluice/io/file/file_handle.hpp"

namespace sluice::io {

/// Known properties of a regular file that is opened once more, so that they need no system call.
struct known_file {
    bool in_memory = false;  // as in native_handle
};

/// Opens the content of the regular file that `named` refers to, for reading or for reading and
/// writing, even if its name was changed or removed. As file_handle::open through the descriptor,
/// in two system calls instead of five. Errors: EACCES, EPERM, EROFS, ETXTBSY, EMFILE. Allocates:
/// nothing. Blocks: for the file system, and until a lease is released.
[[nodiscard]] result<file_handle> reopen(const handle& named, mode wanted, known_file known) noexcept;

}  // namespace sluice::io
