// Loads the files of docs/agents.md, all together as one project, and compares its messages about wrong ones.
#include "agent/agent_file.hpp"
#include "agent/check.hpp"
#include "agent/files.hpp"
#include "agent/settings_keys.hpp"
#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

#include <regex>

namespace stint::agent {
namespace {

std::string page() {
  return blocking_read_file(std::filesystem::path(STINT_SOURCE_DIR) / "docs/agents.md", 1024 * 1024).value();
}

struct Block {
  std::string kind;  // file, wrong, says
  std::string name;
  std::string text;
};

std::vector<Block> blocks(const std::string& text) {
  static const std::regex kMark("<!-- (file|wrong|says):? ?([^ ]*) ?-->\n```[a-z]*\n");
  std::vector<Block> out;
  for (auto mark = std::sregex_iterator(text.begin(), text.end(), kMark); mark != std::sregex_iterator(); ++mark) {
    const auto begin = static_cast<std::size_t>(mark->position() + mark->length());
    out.push_back({(*mark)[1], (*mark)[2], text.substr(begin, text.find("```", begin) - begin)});
  }
  return out;
}

TEST(DocsAgents, its_files_make_a_project_without_problems) {
  const TestFolder folder;
  std::size_t files = 0;
  for (const Block& block : blocks(page())) {
    if (block.kind != "file") continue;
    folder.write(block.name, block.text);
    ++files;
  }
  EXPECT_EQ(files, 4U);
  const Catalogue catalogue = blocking_discover(folder.path());
  const LoadedSettings loaded = blocking_load_settings(folder.path(), {});
  EXPECT_EQ(catalogue.agents.size(), 3U);
  std::vector<Problem> problems = catalogue.problems;
  problems.insert(problems.end(), loaded.problems.begin(), loaded.problems.end());
  for (const Problem& problem : check_whole(catalogue, loaded.settings)) problems.push_back(problem);
  for (const Problem& problem : problems) ADD_FAILURE() << describe(problem);
}

TEST(DocsAgents, messages_about_wrong_files_match_the_code) {
  std::string said;
  std::size_t compared = 0;
  for (const Block& block : blocks(page())) {
    if (block.kind == "wrong") {
      const std::string stem = std::filesystem::path(block.name).stem().string();
      said.clear();
      for (const Problem& problem : parse_agent(block.text, {block.name, stem, domain::AgentFormat::stint}).problems) {
        said += describe(problem) + "\n";
      }
    } else if (block.kind == "says") {
      EXPECT_EQ(block.text, said);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 1U);
}

TEST(DocsAgents, every_setting_is_described) {
  const std::string text = page();
  for (const SettingKey& key : setting_keys()) {
    EXPECT_NE(text.find("`" + std::string(key.pattern) + "`"), std::string::npos) << key.pattern;
  }
}

}  // namespace
}  // namespace stint::agent
