#include "sluice/cli/message.hpp"

#include <cstdio>
#include <utility>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {
namespace {

std::string& command_of_messages() {
    static std::string command = "sluice";
    return command;
}

// In one call: threads and processes that share standard error do not mix their lines.
void print_line(std::string_view begin, std::string_view why) {
    std::string line = command_of_messages();
    line.append(begin).append(terminal_text(why)).append("\n");
    // There is no other place to report a failure.
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void set_command_of_messages(std::string command) {
    command_of_messages() = std::move(command);
}

void print_error(std::string_view why) {
    print_line(": ", why);
}

void warn(std::string_view why) {
    print_line(": warning: ", why);
}

std::string about(std::string_view subject, const error& why) {
    return std::string(subject).append(": ").append(why.reason());
}

std::string reason_of(const error& why) {
    return why.descriptor() == error::no_descriptor ? why.message() : why.reason();
}

void fail(std::string_view why) {
    print_error(why);
    leave(exit_code::failure);
}

}  // namespace sluice::cli
