#include "cli/command.hpp"

#include "domain/driver_descriptor.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace stint::cli {
namespace {

template <class Number>
CLI::Validator within(Number least, Number most, const std::string& kind) {
  return CLI::Validator(
      [=](const std::string& text) {
        Number value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool number = error == std::errc() && end == text.data() + text.size();
        if (number && value >= least && value <= most) return std::string();
        return fmt::format("'{}' is not {} from {} to {}", text, kind, least, most);
      },
      fmt::format("{}..{}", least, most));
}

}  // namespace

const Option& Option::required() const {
  option_->required();
  return *this;
}

const Option& Option::value(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

const Option& Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}

const Option& Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

const Option& Option::whole(std::uint64_t least, std::uint64_t most) const {
  option_->check(within(least, most, "a whole number"))->type_name("N");
  return *this;
}

const Option& Option::number(double least, double most) const {
  option_->check(within(least, most, "a number"))->type_name("N");
  return *this;
}

const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

CommandLine::CommandLine(const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, "stint")) {
  app_->set_version_flag("--version", "stint " + version);
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

CommandLine::Parsed CommandLine::parse(std::vector<std::string> words) {
  std::ranges::reverse(words);  // CLI11 expects them in reverse order
  try {
    app_->parse(words);
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? Parsed::answered : Parsed::wrong;
  }
  return Parsed::command;
}

std::string CommandLine::help() const { return app_->help(); }

Command::Command(CLI::App& app, const std::string& name, const std::string& summary) {
  CLI::App* above = &app;
  std::size_t begin = 0;
  for (std::size_t space = name.find(' '); space != std::string::npos; space = name.find(' ', begin)) {
    above = above->get_subcommand(name.substr(begin, space - begin));
    begin = space + 1;
  }
  app_ = above->add_subcommand(name.substr(begin), summary);
}

void Command::footer(const std::string& text) { app_->footer(text); }

Option Command::option(const std::string& names, std::string& into, const std::string& text) {
  return Option(app_->add_option(names, into, text));
}
Option Command::option(const std::string& names, std::vector<std::string>& into, const std::string& text) {
  return Option(app_->add_option(names, into, text));
}
Option Command::option(const std::string& names, std::uint32_t& into, const std::string& text) {
  return Option(app_->add_option(names, into, text));
}
Option Command::option(const std::string& names, std::optional<std::int64_t>& into, const std::string& text) {
  return Option(app_->add_option(names, into, text));
}
Option Command::driver_option(std::string& into) {
  const Option added = option("--driver", into, "Choose the driver; default: the agent's");
  added.one_of({domain::kDriverNames.begin(), domain::kDriverNames.end()});
  return added;
}
Option Command::flag(const std::string& names, bool& into, const std::string& text) {
  return Option(app_->add_flag(names, into, text));
}

bool Command::chosen() const { return app_->parsed(); }

}  // namespace stint::cli
