/// `stint init`: writes the first agents and settings into a git repository, with the purpose of each file. Never
/// overwrites.
#pragma once

#include "cli/command.hpp"
#include "wire/agents.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::cli {

struct InitTemplate {
  std::string_view path;  ///< from the project's root
  std::string_view purpose;
  std::string_view text;
};
/// In the order in which they are written.
[[nodiscard]] std::span<const InitTemplate> init_templates() noexcept;

/// Writes the missing files below `root`. With `dry_run` it only reports what it would write.
[[nodiscard]] std::vector<wire::InitFile> blocking_write_templates(const std::filesystem::path& root, bool dry_run);

class InitCommand {
 public:
  /// Adds itself to the command line. Must outlive the parsing.
  explicit InitCommand(CLI::App& app);
  InitCommand(const InitCommand&) = delete;
  InitCommand& operator=(const InitCommand&) = delete;

  [[nodiscard]] bool chosen() const;
  /// 1 outside a git repository, and if a file could not be written.
  int run();

 private:
  Command command_;
  bool dry_run_ = false;
  bool json_ = false;
};

}  // namespace stint::cli
