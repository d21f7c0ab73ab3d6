// Any bytes as an agent file of any format: the result is an agent, or errors that name a line, never both or neither.
#include "agent/agent_file.hpp"
#include "agent/arguments.hpp"
#include "stint/assert.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace stint;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  using enum domain::AgentFormat;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  for (const domain::AgentFormat format : std::array{stint, coven, claude, gemini, opencode, github}) {
    const agent::AgentFile file = agent::parse_agent(text, {"x.md", "x", format});
    STINT_ASSERT(file.agent.has_value() != agent::has_errors(file.problems));
    STINT_ASSERT(file.problems.size() <= agent::ProblemList::kProblemsMax + 1);
    for (const agent::Problem& problem : file.problems) {
      STINT_ASSERT(problem.line >= 0 && problem.line <= lines + 1);
      STINT_ASSERT(!problem.message.empty());
    }
    if (!file.agent) continue;
    STINT_ASSERT(domain::is_agent_name(file.agent->name));
    STINT_ASSERT(!file.agent->max_concurrency || *file.agent->max_concurrency >= 1);
    domain::ArgumentValues values;
    for (const domain::ArgumentSpec& spec : file.agent->args) values[spec.name] = {"{{" + spec.name + "}}", "b"};
    STINT_ASSERT(agent::check_arguments(*file.agent, values));
    const auto rendered = agent::render(*file.agent, values);
    STINT_ASSERT(rendered);  // no input is long enough to exceed the bound of rendered text
    STINT_ASSERT(rendered->command.size() == file.agent->command.size());
  }
  return 0;
}
