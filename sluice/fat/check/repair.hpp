#pragma once

#include "sluice/fat/check/check.hpp"
#include "sluice/fat/check/repair_options.hpp"

// Making a damaged volume sound again, losing nothing that can be reached.
//
// Rules:
//   1. Data that a path leads to stays under that path: of two files that share clusters the second gets a
//      copy of them, while there is room.
//   2. What is cut off a chain, and what belonged to no file, becomes FSCK0000.REC and so on in the root
//      directory, not free clusters.
//   3. A size is only changed to what the chain holds; a name only where it cannot stay, to the number of its
//      slot, as 0000A1B2.REN.
//   4. Of FAT copies that differ the one with fewer problems is believed.
//   5. Stage by stage, with a check after each, so that no remedy relies on what another has just changed:
//      boot sector, FAT copies, root, chains, lengths, entries, lost clusters, counts and marks.
//   6. If the volume contradicts its boot sector, and there is no backup that it agrees with, nothing is
//   changed.
//   7. The dirty marks are cleared last, behind a barrier, and only if nothing else is left.

namespace sluice::fat {

struct repair_report {
    std::vector<std::string> actions;  // what was done, a sentence each, in order
    check_report before;
    check_report after;  // sound, or what is left and has no remedy
};

/// Repairs a volume. Errors: as check, and of writing; the volume is then somewhere between before and after,
/// and may be repaired again. Allocates: as check. Blocks: for the device. Ends: after limits::repair_rounds
/// checks at the latest.
[[nodiscard]] result<repair_report> repair(device& image, const repair_options& options = {});

/// The same for a volume that was just checked, with the same code page and boot source: `found` is the
/// report.
[[nodiscard]] result<repair_report> repair(device& image, check_report found, const repair_options& options);

}  // namespace sluice::fat
