/// Finds the agents of a project: `.stint/agents/*.md`, and the files that other tools keep theirs in. One bad file
/// does not hide the others; of two agents of one name the own file wins, also when it is broken, so that a typo never
/// starts another agent than the one that was meant.
#pragma once

#include "agent/problem.hpp"
#include "agent/project.hpp"
#include "domain/agent.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

inline constexpr std::size_t kAgentFilesMax = 1000;       ///< per folder; more are reported, not read
inline constexpr std::size_t kFolderEntriesMax = 20'000;  ///< looked at per folder

struct Catalogue {
  std::vector<domain::Agent> agents;  ///< by name, each name once
  std::vector<std::string> broken;    ///< names whose file has errors
  std::vector<Problem> problems;      ///< files are named from the project's root
  std::string system_prompt;          ///< `.stint/system.md`, else coven's: for every agent

  [[nodiscard]] const domain::Agent* find(std::string_view name) const noexcept;
  /// Names that resemble one which does not exist.
  [[nodiscard]] std::string did_you_mean(std::string_view name) const;
};

/// The names, directly in a project, below which agents and instructions are looked for.
[[nodiscard]] std::vector<std::string> places_of_agents();

[[nodiscard]] Catalogue blocking_discover(const std::filesystem::path& root);

}  // namespace stint::agent
