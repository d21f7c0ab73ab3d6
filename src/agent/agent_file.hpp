/// One agent file: its text becomes a `domain::Agent`, or problems that name line, field and remedy. Pure; reading
/// files is `agent/discovery.hpp`. The format is described in docs/agents.md.
#pragma once

#include "agent/problem.hpp"
#include "domain/agent.hpp"
#include "stint/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

inline constexpr std::size_t kArgumentSpecsMax = 64;
inline constexpr std::size_t kLimitRequestsMax = 32;
inline constexpr int kPriorityMax = 1000;  ///< also the bound of its negative

struct AgentSource {
  std::string file;  ///< the name to use in messages
  std::string stem;  ///< of the file's name: the agent's name
  domain::AgentFormat format = domain::AgentFormat::stint;
};

struct AgentFile {
  std::optional<domain::Agent> agent;  ///< nothing if a problem is an error
  std::vector<Problem> problems;
};

/// Never throws; runs in time linear in the text.
[[nodiscard]] AgentFile parse_agent(std::string_view text, const AgentSource& source);

/// What a driver gets: the templates rendered.
struct RenderedAgent {
  std::string prompt;
  std::string title;
  std::vector<std::string> command;  ///< as many elements as in the file: a value never becomes two
};
[[nodiscard]] Result<RenderedAgent> render(const domain::Agent& agent, const domain::ArgumentValues& values);

}  // namespace stint::agent
