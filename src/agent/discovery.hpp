/// Finds the agents of a project: `.stint/agents/*.md`, and the agent files of other tools. One bad file
/// does not hide the others; of two agents of one name our own file wins, also when it is broken, so that a typo never
/// starts another agent than the intended one.
#pragma once

#include "agent/problem.hpp"
#include "agent/project.hpp"
#include "domain/agent.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

inline constexpr std::size_t kAgentFilesMax = 1000;       ///< per folder; further ones are reported, not read
inline constexpr std::size_t kFolderEntriesMax = 20'000;  ///< visited per folder

struct Catalogue {
  std::vector<domain::Agent> agents;  ///< by name, each name once
  std::vector<std::string> broken;    ///< names whose file has errors
  std::vector<Problem> problems;      ///< file names are relative to the project's root
  std::string system_prompt;          ///< `.stint/system.md`, else coven's: for every agent

  [[nodiscard]] const domain::Agent* find(std::string_view name) const noexcept;
  /// Suggests names similar to one that does not exist.
  [[nodiscard]] std::string did_you_mean(std::string_view name) const;
};

/// The names, directly in a project, under which agents and instructions are searched.
[[nodiscard]] std::vector<std::string> places_of_agents();

[[nodiscard]] Catalogue blocking_discover(const std::filesystem::path& root);

}  // namespace stint::agent
