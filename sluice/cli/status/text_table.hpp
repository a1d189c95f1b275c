#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::cli {

/// The usual maximum width of tables.
inline constexpr std::size_t table_width = 80;

enum class column_kind : unsigned char { text, number, stretched };

/// Rows below a heading, in columns; numbers are right-aligned. If lines would exceed the width,
/// the beginnings of texts in `stretched` columns are cut, the last column first. Empty if there
/// are no rows. Cells may come from clients: they are shown as terminal_text().
class text_table {
public:
    struct column {
        std::string heading;
        column_kind kind = column_kind::text;
    };
    explicit text_table(std::vector<column> columns, std::size_t width = table_width)
        : columns_(std::move(columns)), width_(width) {}

    void add(std::vector<std::string> row);
    [[nodiscard]] std::string text() const;

private:
    [[nodiscard]] std::vector<std::size_t> widths() const;

    std::vector<column> columns_;
    std::size_t width_;
    std::vector<std::vector<std::string>> rows_;
};

/// "0 B", "999 B", "1.2 kB", "3.4 GB": powers of a thousand.
[[nodiscard]] std::string bytes_text(double bytes);

}  // namespace sluice::cli
