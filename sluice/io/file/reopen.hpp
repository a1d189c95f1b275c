#pragma once

#include "sluice/io/file/file_handle.hpp"

namespace sluice::io {

/// What is known of a regular file that is opened once more, so that the kernel need not be asked.
struct known_file {
    bool in_memory = false;  // as native_handle has it
};

/// Opens the content of what `named` stands for, whatever has become of its name, for reading or for reading
/// and writing: a regular file. As file_handle::open by way of the descriptor, in two system calls rather
/// than five. Errors: EACCES, EPERM, EROFS, ETXTBSY, EMFILE. Allocates: nothing. Blocks: for the file system,
/// and until a lease is given up.
[[nodiscard]] result<file_handle> reopen(const handle& named, mode wanted, known_file known) noexcept;

}  // namespace sluice::io
