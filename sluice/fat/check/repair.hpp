#pragma once

#include "sluice/fat/check/check.hpp"
#include "sluice/fat/check/repair_options.hpp"

// The repair of a damaged volume. It loses no data that can be reached.
//
// Rules:
//   1. Data that a path leads to stays at that path. If two files share clusters, the second gets a
//      copy of them while there is room.
//   2. Clusters that are removed from a chain, and clusters of no file, are saved as FSCK0000.REC
//      and so on in the root directory. They do not become free.
//   3. A size is only changed to the length of the chain. A name is changed only if it cannot stay;
//      the new name has the number of its slot, as 0000A1B2.REN.
//   4. If FAT copies differ, the one with fewer problems is used.
//   5. The repair has stages, with a check after each, so that no remedy relies on something that
//      another has just changed: boot sector, FAT copies, root, chains, lengths, entries, lost
//      clusters, counts and marks.
//   6. If the volume contradicts its boot sector, and there is no backup that it agrees with,
//      nothing is changed.
//   7. The dirty marks are cleared last, after a barrier, and only if no other problem remains.

namespace sluice::fat {

struct repair_report {
    std::vector<std::string> actions;  // the changes, a sentence each, in order
    check_report before;
    check_report after;  // no damage, or the problems that have no remedy
};

/// Repairs a volume. Errors: as check, and those of writes; the volume is then partly repaired, and
/// can be repaired again. Allocates: as check, and the table twice, two bits for each cluster and,
/// for `save_lost`, a list of the chains. Blocks: for the device. Ends after at most
/// limits::repair_rounds checks.
[[nodiscard]] result<repair_report> repair(device& image, const repair_options& options = {});

/// The same for a volume that was just checked, with the same code page and boot source: `found` is
/// the report.
[[nodiscard]] result<repair_report> repair(device& image, check_report found, const repair_options& options);

}  // namespace sluice::fat
