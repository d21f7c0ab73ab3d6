/// Completes a `stint` command line: commands, options, their values, names of agents and limits, ids of runs. Reads
/// the parser's own tree of commands, so that completion can't differ from what is accepted.
///
/// The scripts of `stint completions` call the hidden command `stint __complete WORD…`; the last word, possibly empty,
/// is the one under the cursor.
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
inline constexpr std::size_t kCandidatesMax = 500;  ///< more is unreadable in a shell

struct Candidate {
  std::string word;
  std::string description;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// What the shell may offer in addition.
enum class Fallback : std::uint8_t { none, files, commands };

struct Completion {
  std::vector<Candidate> candidates;
  Fallback fallback = Fallback::none;
};

/// Each is called only where its names fit.
struct Names {
  std::function<std::vector<Candidate>()> agents;
  std::function<std::vector<Candidate>()> limits;
  std::function<std::vector<Candidate>()> runs;
};

[[nodiscard]] Completion complete(const CLI::App& app, const std::vector<std::string>& words, const Names& names);

/// The first line is the fallback; then one candidate per line, its description after a tab.
[[nodiscard]] std::string to_text(const Completion& completion);

/// Names of the project around the current folder. Empty on any error: completion prints none.
[[nodiscard]] Names blocking_project_names();

}  // namespace stint::cli
