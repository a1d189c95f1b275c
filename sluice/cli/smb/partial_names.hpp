#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/random.hpp"
#include "sluice/base/result.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::cli {

/// The version of a file that a partial copy belongs to. Two versions of a file differ in at least
/// one field.
struct source_version {
    /// Location of the source: its URL without the port, or its absolute path.
    std::string_view place;
    std::uint64_t bytes = 0;
    std::uint64_t created = 0;
    std::uint64_t written = 0;
    std::uint64_t changed = 0;
    std::uint64_t file_number = 0;  ///< 0 if the server has none
};

/// Names of partial files, which other accounts cannot guess and the same account finds again.
///
/// A name is 128 bits of a keyed hash of the target. The key is 256 random bits in a file that only
/// this account can read, so the name cannot be computed by another account or by a server, and no
/// existing file has it by accident. Thread safety: any thread. Allocates: the strings it returns.
class partial_names {
public:
    using record = std::array<std::byte, 32>;

    /// The account's key at `path`, which is created if it does not exist. With an empty
    /// path, or if the file is not a regular file of this account that others cannot access,
    /// the key is a new one: then a later run computes other names, and cannot resume.
    /// Blocks: for the file system.
    partial_names(secret_random_source& random, const std::string& path);

    /// $XDG_STATE_HOME/sluice/partial-files.key, or the same in ~/.local/state; empty
    /// without a home directory.
    [[nodiscard]] static std::string default_key_path();

    /// Returns why a later run cannot resume; empty if it can.
    [[nodiscard]] const std::string& key_problem() const noexcept { return problem_; }

    /// Returns whether a name has the form of those below. Allocates: nothing.
    [[nodiscard]] static bool is_one(std::string_view name) noexcept;

    /// Returns the name, without a directory, of the partial file of `target`.
    [[nodiscard]] std::string name_of(std::string_view target) const;

    /// Returns a name that no file has, for a partial file whose usual name is taken.
    [[nodiscard]] std::string fresh_name() noexcept;

    /// Returns a proof that a partial file was made by this account from this
    /// version of the source.
    [[nodiscard]] record record_of(const source_version& version) const noexcept;

private:
    secret_random_source& random_;
    smb::auth::secret_bytes<32> key_;
    std::string problem_;
};

}  // namespace sluice::cli
