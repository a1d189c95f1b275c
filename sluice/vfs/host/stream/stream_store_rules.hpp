#pragma once

#include <string>

#include "sluice/base/error.hpp"
#include "sluice/io/path/path_handle.hpp"

// For people and tools: the rules that a stream store obeys (docs/formats/streams.md).

namespace sluice::vfs {

/// Returns why the store in a directory cannot be used, with the rule and the remedy, for the error
/// of an attempt. Allocates: the text. Blocks: for the file system.
[[nodiscard]] std::string explain_unusable_store(const io::path_handle& base, const error& why);

/// Returns the outermost of the directories that contain this one and are on its file system, in
/// which the account of the process has a store; empty if there is none. A server that shares both
/// uses that store for the streams of files in either. Resolves symbolic links. Allocates: paths.
/// Blocks: for the file system.
[[nodiscard]] std::string outer_store_of(const std::string& directory);

}  // namespace sluice::vfs
