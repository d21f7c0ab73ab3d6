#include "cli/init.hpp"

#include "agent/files.hpp"
#include "agent/project.hpp"
#include "cli/environment.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::cli {
namespace {

namespace fs = std::filesystem;

/// A checkout may contain a symbolic link `.stint` that leads out of it: nothing is written there.
bool leads_out(const fs::path& root, const fs::path& file) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(file.parent_path(), error);
  const auto [end, _] = std::ranges::mismatch(root, folder);
  return error || end != root.end();
}

wire::InitFile blocking_write(const fs::path& root, const InitTemplate& wanted, bool dry_run) {
  wire::InitFile out{std::string(wanted.path), "made", std::string(wanted.purpose)};
  const fs::path path = root / wanted.path;
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) {
    out.action = "kept";
    return out;
  }
  if (leads_out(root, path)) {
    out.action = "failed";
    out.purpose = fmt::format("{} leads out of the checkout", path.parent_path().string());
    return out;
  }
  if (dry_run) return out;
  const Result<> made = agent::blocking_create_file(path, wanted.text);
  if (!made && made.error() == Errc::conflict) {
    out.action = "kept";
  } else if (!made) {
    out.action = "failed";
    out.purpose = made.error().what();
  }
  return out;
}

void print_files(const std::vector<wire::InitFile>& files, bool dry_run, bool colour) {
  for (const wire::InitFile& file : files) {
    const bool made = file.action == "made";
    const bool failed = file.action == "failed";
    Line line;
    line.add(fmt::format("{:12}", made && dry_run ? "would make" : file.action), failed ? Style::red
                                                                                 : made ? Style::green
                                                                                        : Style::dim);
    line.add(
        fmt::format("{:29}{}", file.path, printable(file.action == "kept" ? "exists, left unchanged" : file.purpose)));
    print_out("{}\n", line.str(colour));
  }
}

}  // namespace

std::vector<wire::InitFile> blocking_write_templates(const fs::path& root, bool dry_run) {
  std::vector<wire::InitFile> out;
  for (const InitTemplate& wanted : init_templates()) out.push_back(blocking_write(root, wanted, dry_run));
  return out;
}

InitCommand::InitCommand(CLI::App& app)
    : command_(app, "init", "Write the first agents and settings into this git repository") {
  command_.footer("Never overwrites a file: to write one again, remove it first.");
  command_.flag("--dry-run", dry_run_, "Print what would be written, and write nothing");
  command_.flag("--json", json_, "Print one JSON object: what was done with each file");
}

bool InitCommand::chosen() const { return command_.chosen(); }

int InitCommand::run() {
  const Environment environment = blocking_read_environment();
  const auto project = agent::blocking_find_project(environment.folder);
  if (!project) return complain(project.error());
  if (!project->is_repository()) {
    return complain(
        {Errc::invalid, fmt::format("{} is not in a git repository, and agents commit their work to one. Run "
                                    "`git init`, then `stint init` again",
                                    environment.folder.string())});
  }
  const std::vector<wire::InitFile> files = blocking_write_templates(project->root, dry_run_);
  const bool failed = std::ranges::any_of(files, [](const wire::InitFile& file) { return file.action == "failed"; });
  if (json_) {
    print_out("{}\n", wire::init_to_json(files, dry_run_));
    return failed ? kExitFailed : kExitDone;
  }
  print_out("{}\n\n", printable(project->root.string()));
  print_files(files, dry_run_, environment.colour);
  if (failed) return kExitFailed;
  print_out("\n{}\n", dry_run_ ? "Nothing was written. After a run without --dry-run, try:" : "Try next:");
  print_out(
      "  stint agents                          list the agents, and problems of their files\n"
      "  stint config                          show every setting and where it comes from\n"
      "  stint run implement \"fix the tests\"   run one agent in this checkout\n"
      "  stint run review                      run another\n"
      "Write what you want done into brief.md; `stint run dispatch` then names the next task.\n");
  return kExitDone;
}

}  // namespace stint::cli
