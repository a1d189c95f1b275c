#include "sluice/fat/check/repair.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/check/boot_trust.hpp"
#include "sluice/fat/check/repair_stages.hpp"

namespace sluice::fat {
namespace {

// The earliest stage that has something to do.
repair_stage next_stage(const check_report& report) noexcept {
    repair_stage first = repair_stage::never;
    for (const problem& one : report.problems)
        first = std::min(first, stage_of(one.kind));
    return first;
}

result<void> clear_dirty(device& image, const geometry& shape) {
    auto table = table_editor::load(image, shape);
    if (not table) return failure(table.error());
    table->set(1, table->value(1) | clean_bit(shape.type));
    if (const auto done = table->flush(); not done) return done;
    std::array<std::byte, 1> mark{};
    if (const auto done = image.read_at(shape.dirty_byte_offset(), std::span<std::byte>(mark)); not done)
        return done;
    mark[0] &= ~std::byte{1};
    if (shape.has_extended_fields) {
        const auto bytes = std::span<const std::byte>(mark);
        if (const auto done = image.write_at(shape.dirty_byte_offset(), bytes); not done) return done;
    }
    return image.barrier();
}

bool is_only_dirty(const check_report& report) noexcept {
    return std::ranges::all_of(report.problems, [](const problem& one) {
        return one.kind == problem_kind::dirty or one.weight() == severity::unusual;
    });
}

}  // namespace

result<repair_report> repair(device& image, const repair_options& options) {
    auto found = check(image, {.page = options.page, .boot = options.boot});
    if (not found) return failure(found.error());
    return repair(image, *std::move(found), options);
}

result<repair_report> repair(device& image, check_report first, const repair_options& options) {
    // Evidence is weighed once: what a stage changes must not change the decision.
    const check_options looking{.page = options.page, .boot = boot_source::first};
    repair_report report;
    result<check_report> found = std::move(first);
    report.before = *found;
    if (options.boot == boot_source::first and found->has(problem_kind::backup_differs)) {
        const auto copied = copy_to_backup(image);
        if (not copied) return failure(copied.error());
        if (*copied) report.actions.emplace_back("copied the boot sector over its backup");
    }
    std::set<std::uint64_t> renamed;
    const bool is_believed = not found->has(problem_kind::boot_sector_doubtful);
    for (unsigned round = 0; is_believed and round != limits::repair_rounds and found->shape; ++round) {
        repair_round remedies(image, *found, options, report.actions);
        unsigned applied = 0;
        for (auto stage = next_stage(*found); stage != repair_stage::never and applied == 0;
             stage = static_cast<repair_stage>(static_cast<unsigned>(stage) + 1)) {
            const auto done = remedies.run(stage, renamed);
            if (not done) return failure(done.error());
            applied = *done;
        }
        ENSURE(applied <= found->problems.size(), "a remedy is for a problem");
        if (applied == 0) break;
        if (const auto done = image.barrier(); not done) return failure(done.error());
        found = check(image, looking);
        if (not found) return failure(found.error());
    }
    if (is_believed and found->shape and found->has(problem_kind::dirty) and is_only_dirty(*found)) {
        if (const auto done = clear_dirty(image, *found->shape); not done) return failure(done.error());
        report.actions.emplace_back("cleared the dirty mark");
        found = check(image, looking);
        if (not found) return failure(found.error());
    }
    report.after = *std::move(found);
    return report;
}

}  // namespace sluice::fat
