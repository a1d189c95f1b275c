// sluice completion prints the script of a shell. The script runs the hidden command
// `sluice complete`, which command_line::run() carries out.

#include <fmt/core.h>

#include <memory>
#include <string>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/completion/completion.hpp"

namespace sluice::cli {

void add_completion(command_syntax app) {
    auto shell = std::make_shared<std::string>();
    auto command = app.add_subcommand("completion", "print the completion script of a shell").group("Tools");
    command.add_option("SHELL", *shell, "bash, zsh, or fish").required().one_of(completion_shells());
    command.example("source <(sluice completion bash)");
    command.example("sluice completion fish > ~/.config/fish/completions/sluice.fish");
    command.on_call([shell] { fmt::print("{}", completion_script(*shell)); });
}

}  // namespace sluice::cli
