// The configuration of Samba that `sluice config import` reads. Each file includes itself under
// other names. The result has one line per setting, and no control characters.

#include <algorithm>
#include <string>
#include <string_view>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/migration/smb_conf.hpp"
#include "sluice/cli/migration/smb_import.hpp"
#include "sluice/cli/migration/smb_rows.hpp"

using namespace sluice;
using namespace sluice::cli;

namespace {

// Every setting that a row names, with the type that finds most code.
table_record all_settings_of_rows() {
    table_record all{.settings = {{.key = "name", .kind = setting_kind::text},
                                  {.key = "path", .kind = setting_kind::text},
                                  {.key = "guest", .kind = setting_kind::text},
                                  {.key = "homes", .kind = setting_kind::boolean},
                                  {.key = "previous-versions", .kind = setting_kind::text}}};
    for (const auto rows : {share_rows(), server_rows(), module_rows()})
        for (const smb_row& row : rows)
            if (not row.setting.empty())
                all.settings.push_back({.key = std::string(row.setting), .kind = row.kind});
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const table_record settings = all_settings_of_rows();
    const std::string content(reinterpret_cast<const char*>(data), size);
    const smb_conf read = parse_smb_conf(
        "smb.conf", content,
        [&](const std::string&) -> std::expected<std::string, std::string> { return content; });
    std::size_t parameters = 0;
    for (const smb_section& each : read.sections)
        parameters += each.parameters.size();
    ENSURE(not read.sections.empty() and read.sections.size() <= smb_conf_limits::sections_max);
    ENSURE(parameters <= smb_conf_limits::parameters_max);
    ENSURE(read.problems.size() <= smb_conf_limits::problems_max);
    for (const table_record& known : {table_record(), settings}) {
        const smb_imported imported = import_smb_conf(read, known, known);
        ENSURE(std::ranges::none_of(imported.toml, [](char c) {
            return (static_cast<unsigned char>(c) < 0x20 and c != '\n') or c == 0x7f;
        }));
        ENSURE(imported.shares < smb_conf_limits::sections_max);
    }
    return 0;
}
