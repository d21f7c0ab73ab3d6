/// What could stand at the cursor of a command line that begins with `stint`: commands, options, their values, names of
/// agents and limits, ids of runs. Read from the tree of commands itself, so that a completion can't differ from what
/// is accepted.
///
/// The scripts of `stint completions` ask the hidden command `stint __complete WORD…`; the last word is the one under
/// the cursor, perhaps empty.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace stint::cli {

inline constexpr char kCompleteArgument[] = "__complete";
inline constexpr std::size_t kCandidatesMax = 500;  ///< a shell shows no more with good grace

struct Candidate {
  std::string word;
  std::string description;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// What else the shell may offer by itself.
enum class Fallback : std::uint8_t { none, files, commands };

struct Completion {
  std::vector<Candidate> candidates;
  Fallback fallback = Fallback::none;
};

/// Asked only where they fit.
struct Names {
  std::function<std::vector<Candidate>()> agents;
  std::function<std::vector<Candidate>()> limits;
  std::function<std::vector<Candidate>()> runs;
};

[[nodiscard]] Completion complete(const CLI::App& app, const std::vector<std::string>& words, const Names& names);

/// The first line names the fallback; then a candidate per line, its description after a tab.
[[nodiscard]] std::string to_text(const Completion& completion);

/// Of the project around the current folder. Empty where there is none, or something is wrong: a completion never
/// complains.
[[nodiscard]] Names blocking_project_names();

}  // namespace stint::cli
