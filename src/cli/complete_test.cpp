#include "cli/complete.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace stint::cli {
namespace {

using Words = std::vector<std::string>;

/// A small tree with one of each kind.
class Complete : public testing::Test {
 protected:
  Complete() : app_("x", "stint") {
    app_.set_version_flag("--version", "1");
    CLI::App* const with = app_.add_subcommand("with", "Run a command");
    with->add_option("NAME", names_)->required();
    with->add_option("--label", text_, "Who holds it\nmore");
    with->add_flag("-n,--no-wait", flag_, "Say no");
    with->add_option("--mode", mode_)->check(CLI::IsMember({"fast", "slow"}));
    with->add_flag("--secret", flag_)->group("");
    CLI::App* const agents = app_.add_subcommand("agents", "The agents");
    agents->add_option("NAME", text_);
    app_.add_subcommand("run", "Run an agent")->add_option("AGENT", names_);
    app_.add_subcommand("__hidden", "Not for people")->group("");
    app_.add_subcommand("nothing", "Takes nothing");
    names_of_.agents = [] { return std::vector<Candidate>{{"review", "Reviews"}, {"dispatch", ""}}; };
    names_of_.limits = [] { return std::vector<Candidate>{{"gpu", ""}, {"model:opus", ""}}; };
  }
  Completion at(const Words& words) const { return complete(app_, words, names_of_); }
  Words words_at(const Words& words) const {
    Words found;
    for (const Candidate& candidate : at(words).candidates) found.push_back(candidate.word);
    return found;
  }
  CLI::App app_;
  Names names_of_;
  std::vector<std::string> names_;
  std::string text_, mode_;
  bool flag_ = false;
};

TEST_F(Complete, commands_by_prefix_without_the_hidden_ones) {
  EXPECT_EQ(words_at({""}), (Words{"with", "agents", "run", "nothing"}));
  EXPECT_EQ(at({"w"}).candidates, (std::vector<Candidate>{{"with", "Run a command"}}));
  EXPECT_EQ(words_at({"x"}), Words{});
}

TEST_F(Complete, options_of_the_command_that_was_named) {
  EXPECT_EQ(words_at({"with", "--l"}), Words{"--label"});
  EXPECT_EQ(words_at({"--"}), (Words{"--help", "--version"}));
  EXPECT_EQ(words_at({"with", "-"}), (Words{"--help", "-h", "--label", "--no-wait", "-n", "--mode"}));
  EXPECT_EQ(at({"with", "--la"}).candidates[0].description, "Who holds it");
}

TEST_F(Complete, values_of_an_option) {
  EXPECT_EQ(words_at({"with", "--mode", ""}), (Words{"fast", "slow"}));
  EXPECT_EQ(words_at({"with", "--mode=s"}), Words{"--mode=slow"});
  EXPECT_EQ(words_at({"with", "--label", "g"}), Words{}) << "a label is not a limit";
  EXPECT_EQ(at({"with", "--label", ""}).fallback, Fallback::files);
  EXPECT_EQ(words_at({"with", "--no-wait", "g"}), Words{"gpu"}) << "a flag takes no value";
  EXPECT_EQ(words_at({"with", "--label=a", "g"}), Words{"gpu"});
}

TEST_F(Complete, names_where_they_fit) {
  EXPECT_EQ(words_at({"with", ""}), (Words{"gpu", "model:opus"}));
  EXPECT_EQ(words_at({"with", "gpu", "mod"}), Words{"model:opus"}) << "several may be named";
  EXPECT_EQ(words_at({"agents", "r"}), Words{"review"});
  EXPECT_EQ(words_at({"agents", "review", ""}), Words{}) << "one only";
  EXPECT_EQ(words_at({"run", "r"}), Words{"review"});
  EXPECT_EQ(words_at({"run", "review", "r"}), Words{}) << "its arguments";
  EXPECT_EQ(words_at({"nothing", ""}), Words{});
  EXPECT_EQ(at({"nothing", ""}).fallback, Fallback::none);
}

TEST_F(Complete, after_the_dashes_come_a_command_and_then_files) {
  EXPECT_EQ(at({"with", "gpu", "--", "tr"}).fallback, Fallback::commands);
  EXPECT_EQ(at({"with", "gpu", "--", "cat", ""}).fallback, Fallback::files);
  EXPECT_TRUE(words_at({"with", "gpu", "--", "--l"}).empty()) << "not our options";
}

TEST_F(Complete, reads_names_only_where_they_fit) {
  names_of_.agents = names_of_.limits = [] {
    ADD_FAILURE() << "reads the disk without need";
    return std::vector<Candidate>();
  };
  EXPECT_EQ(words_at({"wi"}), Words{"with"});
  EXPECT_EQ(words_at({"with", "--no"}), Words{"--no-wait"});
}

TEST_F(Complete, prints_one_line_per_candidate) {
  EXPECT_EQ(to_text(at({"w"})), "none\nwith\tRun a command\n");
  EXPECT_EQ(to_text(complete(app_, {}, names_of_)), "none\n");
}

}  // namespace
}  // namespace stint::cli
