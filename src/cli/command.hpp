/// The command line and its commands: name, options, help. Hides the parser (CLI11), whose header costs seconds in
/// every file that includes it: only command.cpp and completion, which walks the tree of commands, do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
class Option;
}  // namespace CLI

namespace stint::cli {

/// One option or argument of a command; a handle, valid as long as the command line.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& required() const;
  /// How help writes its value: `--time DURATION`.
  const Option& value(const std::string& name) const;
  /// Help shows the default value.
  const Option& shows_default() const;
  const Option& one_of(const std::vector<std::string>& values) const;
  /// Accepts whole numbers within the bounds; the error names the value and the bounds.
  const Option& whole(std::uint64_t least, std::uint64_t most) const;
  const Option& number(double least, double most) const;
  const Option& excludes(const Option& other) const;

 private:
  CLI::Option* option_;
};

/// The whole command line, to which the commands add themselves.
class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  [[nodiscard]] CLI::App& app() noexcept { return *app_; }
  enum class Parsed : std::uint8_t { command, answered, wrong };
  /// `answered`: help or version was asked for, and is printed. `wrong`: the error is printed.
  [[nodiscard]] Parsed parse(std::vector<std::string> words);
  [[nodiscard]] std::string help() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

class Command {
 public:
  /// Adds itself to the command line. `name` is one word, or the words of the commands above it before its own.
  Command(CLI::App& app, const std::string& name, const std::string& summary);

  /// Text below the options in the command's help.
  void footer(const std::string& text);

  /// `names` is `-p,--prompt`, or in capitals for an argument without a name. The variable must outlive the parsing.
  Option option(const std::string& names, std::string& into, const std::string& text);
  Option option(const std::string& names, std::vector<std::string>& into, const std::string& text);
  Option option(const std::string& names, std::uint32_t& into, const std::string& text);
  Option option(const std::string& names, std::optional<std::int64_t>& into, const std::string& text);
  /// `--driver`, with the names in the table of drivers as its choices.
  Option driver_option(std::string& into);
  Option flag(const std::string& names, bool& into, const std::string& text);

  /// Whether the command line names this command. Valid after parsing.
  [[nodiscard]] bool chosen() const;

 private:
  CLI::App* app_;  // owned by the parent command
};

}  // namespace stint::cli
