#include "cli/completions.hpp"

#include "cli/environment.hpp"
#include "cli/print.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

namespace stint::cli {
namespace {

// Bash breaks words at ':' and '=' and replaces only what follows the last of them. So the script splits the line
// itself, and cuts the part before the break off each candidate. It does not parse quotes.
constexpr const char* kBash = R"sh(# stint: completion for bash. For this shell: source <(stint completions bash)
# For every shell: stint completions bash > ~/.local/share/bash-completion/completions/stint
_stint() {
  local line="${COMP_LINE:0:COMP_POINT}" words current kept="" breaks="" word description fallback=none
  read -ra words <<<"$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  current="${words[-1]}"
  [[ "$COMP_WORDBREAKS" == *:* ]] && breaks+=":"
  [[ "$COMP_WORDBREAKS" == *=* ]] && breaks+="="
  [[ -n "$breaks" ]] && kept="${current%"${current##*[$breaks]}"}"
  COMPREPLY=()
  {
    read -r fallback
    while IFS=$'\t' read -r word description; do
      COMPREPLY+=("${word#"$kept"}")
    done
  } < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
  current="${current#"$kept"}"
  case "$fallback" in
    files)
      compopt -o filenames 2>/dev/null
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
      ;;
    commands)
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "$current")
      ;;
  esac
}
complete -F _stint stint
)sh";

constexpr const char* kZsh = R"sh(#compdef stint
# stint: completion for zsh. For this shell: source <(stint completions zsh)
# For every shell: stint completions zsh > a directory of $fpath, as _stint
_stint() {
  local -a answer names shown
  local fallback line
  answer=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  fallback="${answer[1]}"
  for line in "${(@)answer[2,-1]}"; do
    names+=("${line%%$'\t'*}")
    if [[ -n "${line#*$'\t'}" ]]; then
      shown+=("${line%%$'\t'*}  -- ${line#*$'\t'}")
    else
      shown+=("${line%%$'\t'*}")
    fi
  done
  (( $#names )) && compadd -l -d shown -a names
  case "$fallback" in
    files) _files ;;
    commands) _command_names -e ;;
  esac
}
if [[ "${funcstack[1]}" == _stint ]]; then
  _stint "$@"
else
  compdef _stint stint
fi
)sh";

constexpr const char* kFish = R"sh(# stint: completion for fish. For this shell: stint completions fish | source
# For every shell: stint completions fish > ~/.config/fish/completions/stint.fish
function __stint_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($before[1] __complete $before[2..-1] "$current" 2>/dev/null)
    test (count $answer) -gt 0; or return
    if test (count $answer) -gt 1
        printf '%s\n' $answer[2..-1]
    end
    switch $answer[1]
        case files
            __fish_complete_path "$current"
        case commands
            __fish_complete_command
    end
end
complete -c stint -f -a '(__stint_complete)'
)sh";

struct Script {
  const char* shell;
  const char* text;
};
constexpr std::array kScripts = {Script{"bash", kBash}, Script{"zsh", kZsh}, Script{"fish", kFish}};

}  // namespace

CompletionsCommand::CompletionsCommand(CLI::App& app)
    : command_(app, "completions", "Print a script that lets a shell complete stint") {
  command_.footer("Try it: source <(stint completions bash)");
  std::vector<std::string> names;
  for (const Script& script : kScripts) names.emplace_back(script.shell);
  command_.option("SHELL", shell_, "Choose the shell").required().one_of(names);
}

bool CompletionsCommand::chosen() const { return command_.chosen(); }

int CompletionsCommand::run() {
  for (const Script& script : kScripts) {
    if (std::string_view(script.shell) == shell_) print_out("{}", script.text);
  }
  return kExitDone;
}

}  // namespace stint::cli
