#include "cli/doctor_core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

namespace stint::cli {
namespace {

using wire::Check;
using enum wire::CheckStatus;

os::Answer said(std::string text, int status = 0) { return {os::Answer::End::exited, status, std::move(text)}; }

/// A healthy host.
DoctorFacts healthy() {
  DoctorFacts facts;
  facts.git = {.name = "git", .path = "/usr/bin/git", .version = said("git version 2.39.5\n"), .agents = {}};
  facts.folder = "/work";
  facts.in_repository = true;
  facts.repository = said("/work\n");
  for (const char* const name : {"claude", "codex", "gemini"}) {
    facts.clis.push_back(
        {.name = name, .path = std::string("/usr/bin/") + name, .version = said("2.1.300 (x)\n"), .agents = {}});
  }
  facts.clis[0].is_default = true;
  facts.keys = {{"ANTHROPIC_API_KEY", true, ""}, {"OPENAI_API_KEY", false, ""}};
  facts.cgroup = {"/sys/fs/cgroup/a", "/sys/fs/cgroup/a", {.made = true, .kill = true, .memory = true}};
  os::DirectoryProbe probe;
  probe.tried = "/home/u/.local/state/stint/limits";
  probe.exists = true;
  probe.file_system = "ext4";
  probe.free_bytes = std::uint64_t{10} << 30U;
  probe.free_files = 100'000;
  probe.counts_files = probe.locks = probe.notices = true;
  facts.homes = {{"limits", probe.tried, probe}, {"agents", "/work/.git/stint/semaphores", probe}};
  facts.inotify_instances_max = 128;
  facts.agents = 2;
  facts.resources = {1024, 4096, std::numeric_limits<std::uint64_t>::max()};
  return facts;
}

Check find(const DoctorFacts& facts, std::string_view id) {
  for (const Check& check : judge(facts)) {
    if (check.id == id) return check;
  }
  ADD_FAILURE() << "no check " << id;
  return {};
}

/// Every check that is not ok must have a remedy.
void expect_remedies(const DoctorFacts& facts) {
  std::set<std::string> ids;
  for (const Check& check : judge(facts)) {
    EXPECT_TRUE(ids.insert(check.id).second) << check.id << " twice";
    EXPECT_FALSE(check.summary.empty()) << check.id;
    EXPECT_TRUE(check.id.starts_with(check.category + ".")) << check.id;
    EXPECT_EQ(check.status == ok, check.remedy.empty()) << check.id << ": " << check.remedy;
  }
}

TEST(Doctor, a_healthy_host_passes_all_checks) {
  for (const Check& check : judge(healthy())) EXPECT_EQ(check.status, ok) << check.id << ": " << check.summary;
  expect_remedies(healthy());
}

TEST(Doctor, an_empty_host_gets_a_remedy_for_each_finding) {
  DoctorFacts facts;
  facts.clis = {{.name = "claude", .path = "", .version = {}, .agents = {"review"}, .is_default = true}};
  facts.homes = {{"limits", "/limits", {}}};
  expect_remedies(facts);
  EXPECT_EQ(worst(judge(facts)), fail);
}

TEST(Doctor, git_that_is_missing_or_broken_fails) {
  DoctorFacts facts = healthy();
  facts.git.path.clear();
  EXPECT_EQ(find(facts, "git.program").status, fail);
  EXPECT_EQ(find(facts, "git.repository").status, fail);
  facts = healthy();
  facts.git.version = {os::Answer::End::late, 0, ""};
  EXPECT_EQ(find(facts, "git.program").status, fail);
}

TEST(Doctor, a_folder_outside_a_repository_is_a_warning) {
  DoctorFacts facts = healthy();
  facts.in_repository = false;
  EXPECT_EQ(find(facts, "git.repository").status, warn);
}

TEST(Doctor, a_repository_of_another_user_fails_and_names_the_command) {
  DoctorFacts facts = healthy();
  facts.repository = said("fatal: detected dubious ownership in repository at '/work'\nmore", 128);
  const Check check = find(facts, "git.repository");
  EXPECT_EQ(check.status, fail);
  EXPECT_EQ(check.remedy, "git config --global --add safe.directory /work");
}

TEST(Doctor, a_missing_cli_fails_only_if_an_agent_uses_it) {
  DoctorFacts facts = healthy();
  for (ProgramFacts& cli : facts.clis) cli.path.clear();
  facts.clis[1].agents = {"review"};
  EXPECT_EQ(find(facts, "cli.claude").status, warn);  // the default driver
  EXPECT_EQ(find(facts, "cli.codex").status, fail);
  EXPECT_NE(find(facts, "cli.codex").summary.find("review"), std::string::npos);
  EXPECT_EQ(find(facts, "cli.gemini").status, ok);
}

TEST(Doctor, an_old_claude_is_named_with_its_defects) {
  DoctorFacts facts = healthy();
  facts.clis[0].version = said("2.1.212 (Claude Code)\n");
  const Check check = find(facts, "cli.claude");
  EXPECT_EQ(check.status, warn);
  EXPECT_NE(check.summary.find("cuts its output short"), std::string::npos);
  EXPECT_EQ(check.summary.find("leaves the commands"), std::string::npos) << "fixed in 2.1.212 itself";
  facts.clis[0].version = said("2.1.221 (Claude Code)\n");
  EXPECT_EQ(find(facts, "cli.claude").status, ok);
  facts.clis[1].version = said("codex-cli 0.1.0\n");
  EXPECT_EQ(find(facts, "cli.codex").status, ok) << "Claude's versions are not Codex's";
}

TEST(Doctor, a_cli_that_does_not_answer_fails_only_where_it_is_used) {
  DoctorFacts facts = healthy();
  facts.clis[2].version = {os::Answer::End::late, 0, ""};
  EXPECT_EQ(find(facts, "cli.gemini").status, warn);
  facts.clis[2].agents = {"a", "b", "c", "d"};
  EXPECT_EQ(find(facts, "cli.gemini").status, fail);
  facts.clis[2].version = said("node: not found\n", 127);
  EXPECT_NE(find(facts, "cli.gemini").summary.find("exits with 127: node: not found"), std::string::npos);
}

TEST(Doctor, a_key_is_needed_only_by_an_account) {
  DoctorFacts facts = healthy();
  facts.keys = {{"OPENAI_API_KEY", false, ""}, {"TEAM_KEY", false, "team"}};
  EXPECT_EQ(find(facts, "keys.OPENAI_API_KEY").status, ok);
  const Check check = find(facts, "keys.TEAM_KEY");
  EXPECT_EQ(check.status, warn);
  EXPECT_NE(check.summary.find("'team'"), std::string::npos);
  facts.keys = {{.name = "/run/key", .account = "team", .is_file = true}};
  EXPECT_NE(find(facts, "keys./run/key").remedy.find("write the key into that file"), std::string::npos);
}

TEST(Doctor, cgroups_are_optional) {
  DoctorFacts facts = healthy();
  facts.cgroup.probe.memory = false;
  EXPECT_EQ(find(facts, "cgroup.delegation").status, ok);
  EXPECT_EQ(find(facts, "cgroup.memory").status, warn);
  facts.cgroup.probe = {};
  EXPECT_EQ(find(facts, "cgroup.delegation").status, warn);
  facts.cgroup = {};
  EXPECT_NE(find(facts, "cgroup.delegation").summary.find("no cgroup v2"), std::string::npos);
}

TEST(Doctor, warns_of_every_file_system_with_unreliable_locks) {
  for (const char* const name : {"nfs", "9p", "fuse", "smb", "smb2", "cifs"}) {
    DoctorFacts facts = healthy();
    facts.homes[0].probe.file_system = name;
    const Check check = find(facts, "limits.filesystem");
    EXPECT_EQ(check.status, warn) << name;
    EXPECT_TRUE(check.summary.starts_with(std::string(name) + ": ")) << check.summary;
    EXPECT_NE(check.summary.find("lock"), std::string::npos) << name;
    EXPECT_NE(check.remedy.find("limits_dir"), std::string::npos);
    EXPECT_EQ(find(facts, "agents.filesystem").status, ok);
  }
  DoctorFacts facts = healthy();
  facts.homes[0].probe.file_system = "overlay";
  EXPECT_EQ(find(facts, "limits.filesystem").status, ok);
  EXPECT_NE(find(facts, "limits.filesystem").summary.find("processes outside"), std::string::npos);
}

TEST(Doctor, locks_that_do_not_hold_fail_on_any_file_system) {
  DoctorFacts facts = healthy();
  facts.homes[1].probe.locks = false;
  EXPECT_EQ(find(facts, "agents.filesystem").status, fail);
}

TEST(Doctor, a_directory_that_can_not_be_written_fails_and_says_where) {
  DoctorFacts facts = healthy();
  facts.homes[0].probe.problem = "Permission denied";
  facts.homes[0].probe.tried = "/home";
  const Check check = find(facts, "limits.directory");
  EXPECT_EQ(check.status, fail);
  EXPECT_NE(check.summary.find("/home: Permission denied"), std::string::npos);
  expect_remedies(facts);
}

TEST(Doctor, room_that_runs_out_is_a_warning_and_a_full_disk_a_failure) {
  DoctorFacts facts = healthy();
  facts.homes[0].probe.free_bytes = kFreeBytesMin;
  EXPECT_EQ(find(facts, "limits.space").status, ok);
  facts.homes[0].probe.free_bytes = kFreeBytesMin - 1;
  EXPECT_EQ(find(facts, "limits.space").status, warn);
  facts.homes[0].probe.free_bytes = 0;
  EXPECT_EQ(find(facts, "limits.space").status, fail);
  facts = healthy();
  facts.homes[0].probe.free_files = 0;
  EXPECT_EQ(find(facts, "limits.space").status, fail);
  facts.homes[0].probe.counts_files = false;
  EXPECT_EQ(find(facts, "limits.space").status, ok) << "it has no such number";
}

TEST(Doctor, waiters_that_poll_are_a_warning_with_the_cause) {
  DoctorFacts facts = healthy();
  facts.homes[0].probe.notices = false;
  EXPECT_EQ(find(facts, "limits.notification").status, warn);
  facts.homes[0].probe.no_more_instances = true;
  EXPECT_NE(find(facts, "limits.notification").remedy.find("max_user_instances"), std::string::npos);
  facts.inotify_instances_max = 16;
  EXPECT_EQ(find(facts, "host.inotify").status, warn);
}

TEST(Doctor, a_permit_of_a_killed_warden_is_named_with_the_remedy) {
  DoctorFacts facts = healthy();
  limit::Listing listing;
  listing.name = "gpu";
  os::SlotRecord record;
  record.label = "train";
  record.pid = 4711;
  listing.holders = {{0, record, false}, {1, record, true}};
  facts.limits = {listing};
  const Check check = find(facts, "limits.keepers");
  EXPECT_EQ(check.status, warn);
  EXPECT_NE(check.summary.find("gpu slot 1 (train, pid 4711)"), std::string::npos);
  EXPECT_EQ(check.summary.find("slot 0"), std::string::npos);
  EXPECT_NE(check.remedy.find("stint with gpu -- true"), std::string::npos);
}

TEST(Doctor, few_descriptors_or_processes_are_warnings) {
  DoctorFacts facts = healthy();
  facts.resources = {256, 1024, 100};
  EXPECT_EQ(find(facts, "host.descriptors").status, warn);
  EXPECT_EQ(find(facts, "host.processes").status, warn);
}

TEST(Doctor, the_first_error_is_shown_before_warnings) {
  using agent::Severity;
  DoctorFacts facts = healthy();
  facts.agents_problems = {{Severity::warning, "a.md", 1, 0, "x", "odd", ""},
                           {Severity::error, "b.md", 2, 0, "y", "wrong", "right"}};
  facts.settings_problems = {{Severity::warning, "stint.toml", 1, 0, "z", "unknown", ""}};
  const Check agents = find(facts, "agents.files");
  EXPECT_EQ(agents.status, fail);
  EXPECT_TRUE(agents.summary.starts_with("b.md:2")) << agents.summary;
  EXPECT_NE(agents.summary.find("1 more"), std::string::npos);
  EXPECT_EQ(find(facts, "settings.files").status, warn);
  expect_remedies(facts);
}

TEST(Doctor, trust_matters_when_something_needs_it) {
  DoctorFacts facts = healthy();
  facts.trust.things = {{"./review.sh", "review.md"}};
  const Check check = find(facts, "trust.state");
  EXPECT_EQ(check.status, warn);
  EXPECT_NE(check.summary.find("./review.sh"), std::string::npos);
  facts.trust.trusted = true;
  EXPECT_EQ(find(facts, "trust.state").status, ok);
  facts.trust.problem = "the record is another user's";
  EXPECT_EQ(find(facts, "trust.state").status, fail);
}

TEST(Doctor, finds_versions_in_the_output_of_programs) {
  EXPECT_EQ(find_version("2.1.300 (Claude Code)"), (Version{2, 1, 300}));
  EXPECT_EQ(find_version("codex-cli 0.42.0\n"), (Version{0, 42, 0}));
  EXPECT_EQ(find_version("git version 2.39"), (Version{2, 39, 0}));
  EXPECT_EQ(find_version("node 22: v0.9.1-rc.2"), (Version{0, 9, 1}));
  EXPECT_EQ(find_version("99999999999999999999.1 1.2.3"), (Version{1, 2, 3}));
  EXPECT_EQ(find_version("error"), std::nullopt);
  EXPECT_EQ(find_version(""), std::nullopt);
}

}  // namespace
}  // namespace stint::cli
