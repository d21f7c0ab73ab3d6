#include "agent/discovery.hpp"

#include "agent/agent_file.hpp"
#include "agent/files.hpp"
#include "agent/frontmatter.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;
using domain::AgentFormat;

struct Folder {
  AgentFormat format;
  std::string_view path;
};
// In order of precedence.
constexpr std::array kFolders{
    Folder{AgentFormat::stint, ".stint/agents"},       Folder{AgentFormat::coven, ".coven/agents"},
    Folder{AgentFormat::claude, ".claude/agents"},     Folder{AgentFormat::gemini, ".gemini/agents"},
    Folder{AgentFormat::opencode, ".opencode/agents"}, Folder{AgentFormat::github, ".github/agents"}};
constexpr std::array<std::string_view, 2> kSystemFiles{".stint/system.md", ".coven/system.md"};
constexpr std::string_view kEnding = ".md";

/// Whether a file name in such a folder is that of an agent.
bool is_candidate(std::string_view name) {
  return name.ends_with(kEnding) && !name.starts_with('.') && name != "README.md" && name.size() > kEnding.size();
}

std::string stem_of(std::string_view name, AgentFormat format) {
  name.remove_suffix(kEnding.size());
  constexpr std::string_view kGithub = ".agent";
  if (format == AgentFormat::github && name.ends_with(kGithub)) name.remove_suffix(kGithub.size());
  return std::string(name);
}

class Search {
 public:
  explicit Search(const fs::path& root) : root_(root) {}

  void blocking_read_folder(const Folder& folder) {
    const std::string shown(folder.path);
    const auto entries = blocking_list_folder(root_ / folder.path, kFolderEntriesMax);
    if (!entries) return report(Severity::error, shown, std::string(entries.error().what()));
    if (entries->more) {
      report(Severity::error, shown, fmt::format("more than {} entries; the rest is ignored", kFolderEntriesMax));
    }
    std::size_t files = 0;
    for (const std::string& name : entries->names) {
      if (!is_candidate(name)) continue;
      if (++files > kAgentFilesMax) {
        report(Severity::error, shown,
               fmt::format("more than {} agent files; from {} on they are not read", kAgentFilesMax, name));
        return;
      }
      blocking_read_agent(folder, name);
    }
  }

  void blocking_read_system() {
    for (const std::string_view path : kSystemFiles) {
      const auto text = blocking_read_file_within(root_, root_ / path, kAgentFileMax);
      if (text && !utf8_error(*text) && !text->contains('\0')) {
        out_.system_prompt = std::string(trimmed(*text));
        return;
      }
      if (text) return report(Severity::error, std::string(path), "not valid UTF-8");
      if (text.error() != Errc::unavailable)
        return report(Severity::error, std::string(path), std::string(text.error().what()));
    }
  }

  Catalogue take() {
    for (auto& [name, agent] : agents_) out_.agents.push_back(std::move(agent));
    for (const auto& [name, file] : taken_) {
      if (!agents_.contains(name)) out_.broken.push_back(name);
    }
    return std::move(out_);
  }

 private:
  void report(Severity severity, std::string file, std::string message) {
    out_.problems.push_back({severity, std::move(file), 0, 0, "", std::move(message), ""});
  }

  void blocking_read_agent(const Folder& folder, const std::string& name) {
    const std::string shown = fmt::format("{}/{}", folder.path, name);
    const std::string stem = stem_of(name, folder.format);
    const auto text = blocking_read_file_within(root_, root_ / shown, kAgentFileMax);
    if (!text) {
      report(Severity::error, shown, std::string(text.error().what()));
      if (domain::is_agent_name(stem)) taken_.emplace(stem, shown);
      return;
    }
    AgentFile file = parse_agent(*text, {shown, stem, folder.format});
    const std::string agent_name = file.agent ? file.agent->name : stem;
    const auto [place, first] = taken_.emplace(agent_name, shown);
    if (!first) {
      return report(Severity::warning, shown,
                    fmt::format("hidden: the agent '{}' comes from {}", agent_name, place->second));
    }
    for (Problem& problem : file.problems) out_.problems.push_back(std::move(problem));
    if (file.agent) agents_.emplace(agent_name, *std::move(file.agent));
  }

  const fs::path& root_;
  Catalogue out_;
  std::map<std::string, domain::Agent> agents_;
  std::map<std::string, std::string> taken_;  // name → file
};

}  // namespace

const domain::Agent* Catalogue::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(agents, name, &domain::Agent::name);
  return found == agents.end() ? nullptr : &*found;
}

std::string Catalogue::did_you_mean(std::string_view name) const {
  std::vector<std::string> names;
  for (const domain::Agent& agent : agents) names.push_back(agent.name);
  return agent::did_you_mean(name, names);
}

std::vector<std::string> places_of_agents() {
  std::vector<std::string> names;
  for (const Folder& folder : kFolders) names.emplace_back(folder.path.substr(0, folder.path.find('/')));
  return names;
}

Catalogue blocking_discover(const fs::path& root) {
  Search search(root);
  for (const Folder& folder : kFolders) search.blocking_read_folder(folder);
  search.blocking_read_system();
  return search.take();
}

}  // namespace stint::agent
