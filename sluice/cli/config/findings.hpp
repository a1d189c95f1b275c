#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/cli/serve/setting_records.hpp"

namespace sluice::cli {

/// The errors and warnings about one configuration file. Thread safety: a value. Allocates: texts.
class findings {
public:
    explicit findings(std::string path) : path_(std::move(path)) {}

    /// `line` is where the file has the cause; 0: the whole file.
    void add_error(unsigned line, std::string text) { add({line, std::move(text), true}); }
    void add_warning(unsigned line, std::string text) { add({line, std::move(text), false}); }

    /// Prints all, in the order of their lines: "FILE: line N: TEXT".
    void print() &&;
    [[nodiscard]] std::size_t errors() const noexcept { return errors_; }
    [[nodiscard]] std::size_t warnings() const noexcept { return all_.size() - errors_; }

private:
    struct finding {
        unsigned line = 0;
        std::string text;
        bool is_error = false;
    };
    void add(finding one);

    std::string path_;
    std::vector<finding> all_;
    std::size_t errors_ = 0;
};

/// Returns the line of a setting, or of one element of its list; that of the table if the file does
/// not have it. Blocks: nothing.
[[nodiscard]] unsigned line_of(const table_record& table, std::string_view key) noexcept;
[[nodiscard]] unsigned line_of(const table_record& table, std::string_view key,
                               std::string_view element) noexcept;

}  // namespace sluice::cli
