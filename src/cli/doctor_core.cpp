#include "cli/doctor_core.hpp"

#include "domain/driver_descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace stint::cli {
namespace {

using wire::Check;
using wire::CheckStatus;
using Checks = std::vector<Check>;

Check check(std::string id, CheckStatus status, std::string summary, std::string remedy = {}) {
  std::string category = id.substr(0, id.find('.'));
  return {std::move(id), std::move(category), status, std::move(summary), std::move(remedy)};
}

constexpr std::size_t kLineShownMax = 200;

std::string first_line(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  return std::string(text.substr(0, kLineShownMax));
}

std::string names(const std::vector<std::string>& all) {
  constexpr std::size_t kNamesShown = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), kNamesShown); ++i) out += (i == 0 ? "" : ", ") + all[i];
  return all.size() > kNamesShown ? out + fmt::format(" and {} more", all.size() - kNamesShown) : out;
}

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string to_text(const Version& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

Version version_of(const domain::DriverMilestone& milestone) {
  const auto& [major, minor, patch] = milestone.version;
  return {major, minor, patch};
}

/// Why an answer contains no version.
std::string why_no_version(const os::Answer& answer) {
  using End = os::Answer::End;
  switch (answer.end) {
    case End::late: return "gave no answer in time";
    case End::not_started: return "can't be started: " + first_line(answer.text);
    case End::signalled: return fmt::format("died by signal {}", answer.status);
    case End::exited: break;
  }
  if (answer.status != 0) return fmt::format("exits with {}: {}", answer.status, first_line(answer.text));
  return "printed '" + first_line(answer.text) + "'";
}

void judge_git(const DoctorFacts& facts, Checks& out) {
  const ProgramFacts& git = facts.git;
  if (git.path.empty()) {
    out.push_back(check("git.program", CheckStatus::fail, "git is not on PATH", "install it: apt-get install git"));
  } else if (const auto version = find_version(git.version.text);
             git.version.end == os::Answer::End::exited && version) {
    out.push_back(check("git.program", CheckStatus::ok, fmt::format("git {} at {}", to_text(*version), git.path)));
  } else {
    out.push_back(check("git.program", CheckStatus::fail, fmt::format("{} {}", git.path, why_no_version(git.version)),
                        "run `git --version` by hand; reinstall git if that fails"));
  }
  if (!facts.project_problem.empty()) {
    const bool moved = facts.project_problem.find("git worktree repair") != std::string::npos;
    out.push_back(check("git.repository", CheckStatus::fail, facts.project_problem,
                        moved ? "run `git worktree repair` in this folder or in the main checkout"
                              : "repair it: until then no Stint command works in this folder"));
  } else if (!facts.in_repository) {
    out.push_back(check("git.repository", CheckStatus::warn,
                        facts.folder + " is not in a git repository: agents have no limits of their own here",
                        "git init"));
  } else if (git.path.empty()) {
    out.push_back(
        check("git.repository", CheckStatus::fail, facts.folder + " can't be checked without git", "install git"));
  } else if (facts.repository.end == os::Answer::End::exited && facts.repository.status == 0) {
    out.push_back(check("git.repository", CheckStatus::ok, first_line(facts.repository.text)));
  } else {
    const bool foreign = facts.repository.text.find("dubious ownership") != std::string::npos;
    out.push_back(check("git.repository", CheckStatus::fail,
                        "git can't use the repository: " + first_line(facts.repository.text),
                        foreign ? fmt::format("git config --global --add safe.directory {}", facts.folder)
                                : "run `git status` by hand"));
  }
}

void judge_missing_cli(const ProgramFacts& cli, const domain::DriverDescriptor& driver, Checks& out) {
  const std::string id = "cli." + cli.name;
  const std::string install(driver.install_hint);
  if (!cli.agents.empty()) {
    out.push_back(check(id, CheckStatus::fail,
                        fmt::format("{} is not on PATH, and {} can't run without it", cli.name, names(cli.agents)),
                        install + ", or set another driver"));
  } else if (cli.is_default) {
    out.push_back(check(id, CheckStatus::warn,
                        fmt::format("{} is not on PATH, and agents that name no driver run with it", cli.name),
                        install + ", or set `driver` in stint.toml"));
  } else {
    out.push_back(check(id, CheckStatus::ok, cli.name + " is not installed; nothing here needs it"));
  }
}

void judge_cli(const ProgramFacts& cli, Checks& out) {
  const std::string id = "cli." + cli.name;
  const domain::DriverDescriptor* const driver = domain::find_driver(cli.name);
  if (driver == nullptr) return;
  if (cli.path.empty()) return judge_missing_cli(cli, *driver, out);
  const auto version = find_version(cli.version.text);
  if (cli.version.end != os::Answer::End::exited || cli.version.status != 0 || !version) {
    const auto status = cli.agents.empty() ? CheckStatus::warn : CheckStatus::fail;
    out.push_back(check(id, status, fmt::format("{} --version {}", cli.path, why_no_version(cli.version)),
                        fmt::format("run `{} --version` by hand; reinstall it if that fails", cli.name)));
    return;
  }
  const std::string what = fmt::format("{} {} at {}", cli.name, to_text(*version), cli.path);
  std::string older;
  for (const domain::DriverMilestone& milestone : driver->milestones) {
    if (*version < version_of(milestone)) older += (older.empty() ? "" : "; ") + std::string(milestone.before);
  }
  if (older.empty()) {
    out.push_back(check(id, CheckStatus::ok, what));
  } else {
    const std::string newest = to_text(version_of(driver->milestones.front()));
    const std::string_view update = driver->update_hint.empty() ? driver->install_hint : driver->update_hint;
    out.push_back(check(id, CheckStatus::warn, fmt::format("{} is older than {}: it {}", what, newest, older),
                        std::string(update)));
  }
}

void judge_keys(const DoctorFacts& facts, Checks& out) {
  for (const KeyFacts& key : facts.keys) {
    const std::string id = "keys." + key.name;
    if (key.present) {
      out.push_back(check(id, CheckStatus::ok,
                          key.name + (key.is_file ? " can be read" : " is set: a CLI uses it before its own login")));
    } else if (key.account.empty()) {
      out.push_back(check(id, CheckStatus::ok, key.name + " is not set: a CLI uses its own login"));
    } else {
      out.push_back(
          check(id, CheckStatus::warn,
                fmt::format("{} {}, and the account '{}' needs it", key.name,
                            key.is_file ? "can't be read" : "is not set", key.account),
                fmt::format("{}, or change accounts.{} in stint.toml",
                            key.is_file ? "write the key into that file" : "export " + key.name + "=…", key.account)));
    }
  }
}

void judge_cgroup(const CgroupFacts& cgroup, Checks& out) {
  constexpr const char* kDelegate = "systemd-run --user --scope -p Delegate=yes stint …";
  if (cgroup.delegated.empty() || !cgroup.probe.made) {
    const std::string why = cgroup.own.empty()         ? "no cgroup v2 here"
                            : cgroup.delegated.empty() ? cgroup.own + " is not delegated to this user"
                                                       : "no cgroup can be created in " + cgroup.delegated;
    out.push_back(check("cgroup.delegation", CheckStatus::warn,
                        why + ": Stint ends process trees by scanning /proc, which is slower",
                        cgroup.own.empty() ? "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)" : kDelegate));
    out.push_back(
        check("cgroup.memory", CheckStatus::warn, "memory limits of agents can't be set", "see cgroup.delegation"));
    return;
  }
  if (cgroup.probe.kill) {
    out.push_back(
        check("cgroup.delegation", CheckStatus::ok, cgroup.delegated + " is delegated: a process tree ends at once"));
  } else {
    out.push_back(check("cgroup.delegation", CheckStatus::warn,
                        cgroup.delegated + " is delegated, but the kernel has no cgroup.kill",
                        "upgrade to Linux 5.14 or later, which ends process trees at once"));
  }
  if (cgroup.probe.memory) {
    out.push_back(check("cgroup.memory", CheckStatus::ok, "memory limits of agents work"));
  } else {
    out.push_back(
        check("cgroup.memory", CheckStatus::warn,
              "memory limits of agents can't be set: the memory controller is not delegated to " + cgroup.delegated,
              fmt::format("{} (with the memory controller delegated to the user)", kDelegate)));
  }
}

/// What a file system means for locks and notifications. Those not listed are local and need no advice.
struct FileSystemAdvice {
  const char* name;
  CheckStatus status;
  const char* means;
};
constexpr std::array kFileSystems = {
    FileSystemAdvice{
        "nfs", CheckStatus::warn,
        "locks depend on its server and can be lost when that restarts; closes on other hosts send no notification"},
    FileSystemAdvice{"9p", CheckStatus::warn,
                     "locks may hold only inside this machine or container; closes outside of it send no notification"},
    FileSystemAdvice{"fuse", CheckStatus::warn,
                     "locks and notifications are as good as the program behind it; many keep locks per mount"},
    FileSystemAdvice{"smb", CheckStatus::warn,
                     "locks depend on its server; closes on other hosts send no notification"},
    FileSystemAdvice{"smb2", CheckStatus::warn,
                     "locks depend on its server; closes on other hosts send no notification"},
    FileSystemAdvice{"cifs", CheckStatus::warn,
                     "locks depend on its server; closes on other hosts send no notification"},
    FileSystemAdvice{"vboxsf", CheckStatus::warn,
                     "locks are not shared with the host; its changes send no notification"},
    FileSystemAdvice{"ceph", CheckStatus::warn,
                     "locks are kept by its servers; closes on other hosts send no notification"},
    FileSystemAdvice{"afs", CheckStatus::warn,
                     "locks depend on its server; closes on other hosts send no notification"},
    FileSystemAdvice{"lustre", CheckStatus::warn,
                     "locks depend on the mount option flock; closes on other hosts send no notification"},
    FileSystemAdvice{"gpfs", CheckStatus::warn,
                     "locks depend on its servers; closes on other hosts send no notification"},
    FileSystemAdvice{"gfs2", CheckStatus::warn, "closes on other hosts send no notification"},
    FileSystemAdvice{"ocfs2", CheckStatus::warn, "closes on other hosts send no notification"},
    FileSystemAdvice{
        "overlay", CheckStatus::ok,
        "the container's own: locks and notifications work in it, and processes outside do not share the limits"},
    FileSystemAdvice{"tmpfs", CheckStatus::ok, "in memory: a reboot loses limits that were resized by hand"},
    FileSystemAdvice{"ramfs", CheckStatus::ok, "in memory: a reboot loses limits that were resized by hand"},
};

std::string move_it(const HomeFacts& home) {
  return home.category == "limits" ? "set limits_dir in stint.toml or STINT_LIMITS_DIR to a local directory"
                                   : "keep the repository on a local disk";
}

void judge_space(const HomeFacts& home, Checks& out) {
  const std::string id = home.category + ".space";
  const bool few_files = home.probe.counts_files && home.probe.free_files < kFreeFilesMin;
  const std::string what =
      fmt::format("{} MiB free{}", home.probe.free_bytes >> 20U,
                  home.probe.counts_files ? fmt::format(", room for {} files", home.probe.free_files) : "");
  if (home.probe.free_bytes == 0 || (home.probe.counts_files && home.probe.free_files == 0)) {
    out.push_back(check(id, CheckStatus::fail, what + " at " + home.probe.tried, "make room: df -h, df -i"));
  } else if (home.probe.free_bytes < kFreeBytesMin || few_files) {
    out.push_back(check(id, CheckStatus::warn, what + " at " + home.probe.tried, "make room: df -h, df -i"));
  } else {
    out.push_back(check(id, CheckStatus::ok, what));
  }
}

void judge_home(const HomeFacts& home, Checks& out) {
  const os::DirectoryProbe& probe = home.probe;
  const std::string directory = home.category + ".directory";
  if (!probe.problem.empty()) {
    out.push_back(check(directory, CheckStatus::fail,
                        fmt::format("{} can't be used: {}: {}", home.path, probe.tried, probe.problem),
                        home.category == "limits" ? "make it writable for your user, or " + move_it(home)
                                                  : "make it writable for your user"));
  } else {
    out.push_back(check(directory, CheckStatus::ok,
                        home.path + (probe.exists ? " is writable" : " will be created at its first use")));
  }
  const auto advice = std::ranges::find(kFileSystems, probe.file_system, &FileSystemAdvice::name);
  const std::string what =
      advice == kFileSystems.end() ? probe.file_system : fmt::format("{}: {}", probe.file_system, advice->means);
  const std::string id = home.category + ".filesystem";
  if (!probe.problem.empty()) {
    out.push_back(check(id, advice == kFileSystems.end() ? CheckStatus::ok : advice->status, what,
                        advice == kFileSystems.end() || advice->status == CheckStatus::ok ? "" : move_it(home)));
  } else if (!probe.locks) {
    out.push_back(check(id, CheckStatus::fail, what + ". Locks do not work there (tried)", move_it(home)));
  } else if (advice != kFileSystems.end() && advice->status != CheckStatus::ok) {
    out.push_back(check(id, advice->status, what, move_it(home)));
  } else {
    out.push_back(check(id, CheckStatus::ok, what));
  }
  judge_space(home, out);
  if (!probe.problem.empty()) return;
  const std::string notification = home.category + ".notification";
  if (probe.notices) {
    out.push_back(check(notification, CheckStatus::ok, "inotify works there (tried): waiters are woken at once"));
  } else if (probe.no_more_instances) {
    out.push_back(check(notification, CheckStatus::warn,
                        "this user has no inotify instance left: waiters poll, and are woken late",
                        "raise it: sysctl fs.inotify.max_user_instances=1024"));
  } else {
    out.push_back(check(notification, CheckStatus::warn,
                        "inotify does not work there (tried): waiters poll, and are woken late", move_it(home)));
  }
}

void judge_problems(const std::string& id, const std::vector<agent::Problem>& problems, const std::string& fine,
                    const std::string& lists, Checks& out) {
  if (problems.empty()) {
    out.push_back(check(id, CheckStatus::ok, fine));
    return;
  }
  const bool errors = agent::has_errors(problems);
  const auto first = std::ranges::find(problems, errors ? agent::Severity::error : agent::Severity::warning,
                                       &agent::Problem::severity);
  const std::string more = problems.size() == 1 ? "" : fmt::format(" (and {} more)", problems.size() - 1);
  out.push_back(
      check(id, errors ? CheckStatus::fail : CheckStatus::warn, describe(*first) + more,
            (first->suggestion.empty() ? "correct the file" : first->suggestion) + "; `" + lists + "` lists all"));
}

void judge_dead(const std::vector<limit::Listing>& limits, Checks& out) {
  std::vector<std::string> dead;
  std::string first;
  for (const limit::Listing& limit : limits) {
    for (const limit::Slots::Holder& holder : limit.holders) {
      if (!holder.swept) continue;
      if (first.empty()) first = limit.name;
      const std::string who =
          holder.record ? fmt::format(" ({}, pid {})", holder.record->label, holder.record->pid) : "";
      dead.push_back(fmt::format("{} slot {}{}", limit.name, holder.index, who));
    }
  }
  if (dead.empty()) {
    out.push_back(
        check("limits.keepers", CheckStatus::ok,
              fmt::format("{} used so far; no permit belongs to a killed warden", counted(limits.size(), "limit"))));
  } else {
    out.push_back(check(
        "limits.keepers", CheckStatus::warn,
        "stint and warden of these permits were killed, and their processes may still run: " + names(dead),
        fmt::format("the next process that takes the slot ends them; to do it now: stint with {} -- true", first)));
  }
}

std::string number(std::uint64_t value) {
  return value == std::numeric_limits<std::uint64_t>::max() ? "unlimited" : std::to_string(value);
}

void judge_host(const DoctorFacts& facts, Checks& out) {
  const os::ResourceLimits& resources = facts.resources;
  const std::string open = fmt::format("{} open files per process (at most {})", number(resources.descriptors),
                                       number(resources.descriptors_hard));
  if (resources.descriptors < kDescriptorsMin) {
    out.push_back(check("host.descriptors", CheckStatus::warn, open + fmt::format(", less than {}", kDescriptorsMin),
                        fmt::format("ulimit -n {}", kDescriptorsMin)));
  } else {
    out.push_back(check("host.descriptors", CheckStatus::ok, open));
  }
  const std::string processes = fmt::format("{} processes per user", number(resources.processes));
  if (resources.processes < kProcessesMin) {
    out.push_back(check("host.processes", CheckStatus::warn, processes + fmt::format(", less than {}", kProcessesMin),
                        fmt::format("ulimit -u {}", kProcessesMin)));
  } else {
    out.push_back(check("host.processes", CheckStatus::ok, processes));
  }
  const std::uint64_t instances = facts.inotify_instances_max;
  if (instances < kInotifyInstancesMin) {
    out.push_back(check(
        "host.inotify", CheckStatus::warn,
        instances == 0
            ? "the limit of inotify instances per user is unknown"
            : fmt::format("{} inotify instances per user; each waiting stint takes one, and polls if there is none",
                          instances),
        "sysctl fs.inotify.max_user_instances=1024"));
  } else {
    out.push_back(check("host.inotify", CheckStatus::ok,
                        fmt::format("{} inotify instances per user; each waiting stint takes one", instances)));
  }
}

void judge_trust(const TrustFacts& trust, Checks& out) {
  if (!trust.problem.empty()) {
    out.push_back(check("trust.state", CheckStatus::fail, trust.problem, "stint trust --revoke, then stint trust"));
  } else if (trust.trusted) {
    out.push_back(check("trust.state", CheckStatus::ok,
                        fmt::format("trusted; {} of this project may run", counted(trust.things.size(), "thing"))));
  } else if (trust.things.empty()) {
    out.push_back(check("trust.state", CheckStatus::ok, "not trusted, and nothing in this project needs it"));
  } else {
    out.push_back(
        check("trust.state", CheckStatus::warn,
              fmt::format("not trusted, and {} things in this project need it: {} ({}){}", trust.things.size(),
                          trust.things.front().what, trust.things.front().where, trust.things.size() > 1 ? ", …" : ""),
              "review them, then run `stint trust`"));
  }
}

}  // namespace

std::optional<Version> find_version(std::string_view text) {
  const char* const end = text.data() + text.size();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (const char* at = text.data(); at != end; ++at) {
    if (!is_digit(*at)) continue;
    Version version;
    const char* next = at;
    int parts = 0;
    for (int* const part : {&version.major, &version.minor, &version.patch}) {
      const auto [stop, error] = std::from_chars(next, end, *part);
      if (error != std::errc()) break;
      ++parts;
      next = stop;
      if (next == end || *next != '.') break;
      ++next;
    }
    if (parts >= 2) return version;
    while (at + 1 != end && is_digit(at[1])) ++at;
  }
  return std::nullopt;
}

namespace {

void judge_store(const StoreFacts& store, Checks& out) {
  if (!store.problem.empty()) {
    out.push_back(check("store.open", CheckStatus::fail, store.problem,
                        "run `stint store check`, or name another store with STINT_STORE or `store` in stint.toml"));
  } else if (!store.exists) {
    out.push_back(check("store.open", CheckStatus::ok, store.shown + " does not exist yet: the first run creates it"));
  } else {
    out.push_back(check("store.open", CheckStatus::ok, fmt::format("{}, {}", store.shown, counted(store.runs, "run"))));
  }
}

}  // namespace

std::vector<wire::Check> judge(const DoctorFacts& facts) {
  Checks out;
  judge_git(facts, out);
  for (const ProgramFacts& cli : facts.clis) judge_cli(cli, out);
  judge_keys(facts, out);
  judge_cgroup(facts.cgroup, out);
  if (!facts.homes_problem.empty()) {
    out.push_back(check("limits.directory", CheckStatus::fail, facts.homes_problem, "set HOME or XDG_STATE_HOME"));
  }
  for (const HomeFacts& home : facts.homes) judge_home(home, out);
  judge_dead(facts.limits, out);
  judge_host(facts, out);
  judge_problems("settings.files", facts.settings_problems, "no problems in the settings", "stint config", out);
  judge_problems("agents.files", facts.agents_problems, counted(facts.agents, "agent") + ", no problems in their files",
                 "stint agents", out);
  judge_trust(facts.trust, out);
  judge_store(facts.store, out);
  return out;
}

}  // namespace stint::cli
