/// A command of the program as it is seen by the code that carries it out: a name, options, help. The parser behind it
/// is known to command.cpp alone (and to completion, which walks it): its header costs seconds in every file that has
/// it.
#pragma once

#include <cstdint>
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
  /// Help says what it is if nobody gives it.
  const Option& shows_default() const;
  const Option& one_of(const std::vector<std::string>& values) const;
  /// Refuses what is no whole number, or out of range, naming both.
  const Option& whole(std::uint64_t least, std::uint64_t most) const;
  const Option& number(double least, double most) const;
  const Option& excludes(const Option& other) const;

 private:
  CLI::Option* option_;
};

class Command {
 public:
  /// Adds itself to the command line. `name` is one word, or the words of the commands above it before its own.
  Command(CLI::App& app, const std::string& name, const std::string& summary);

  /// Stands below the options in its help.
  void footer(const std::string& text);

  /// `names` is `-p,--prompt`, or in capitals for an argument without a name. The variable must outlive the parsing.
  Option option(const std::string& names, std::string& into, const std::string& text);
  Option option(const std::string& names, std::vector<std::string>& into, const std::string& text);
  Option option(const std::string& names, std::uint32_t& into, const std::string& text);
  Option option(const std::string& names, std::optional<std::int64_t>& into, const std::string& text);
  /// `--driver`, with the names in the table of drivers as its choices.
  Option driver_option(std::string& into);
  Option flag(const std::string& names, bool& into, const std::string& text);

  /// Whether the command line names it. After the parsing.
  [[nodiscard]] bool chosen() const;

 private:
  CLI::App* app_;  // owned by the one above it
};

}  // namespace stint::cli
