#include "cli/complete.hpp"

#include "agent/discovery.hpp"
#include "cli/environment.hpp"
#include "cli/printable.hpp"
#include "limit/host_place.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace stint::cli {
namespace {

/// What kind of name a value is, by command and option.
enum class Kind : std::uint8_t { agent, limit, run };
struct Place {
  std::string_view command, option;
  Kind kind;
};
constexpr std::array kPlaces = {
    Place{"agents", "NAME", Kind::agent}, Place{"run", "AGENT", Kind::agent},    Place{"with", "NAME", Kind::limit},
    Place{"limits", "NAME", Kind::limit}, Place{"submit", "AGENT", Kind::agent}, Place{"ls", "--agent", Kind::agent},
    Place{"pause", "NAME", Kind::agent},  Place{"resume", "NAME", Kind::agent},  Place{"show", "ID", Kind::run},
    Place{"why", "ID", Kind::run},        Place{"logs", "ID", Kind::run},        Place{"cancel", "ID", Kind::run},
    Place{"retry", "ID", Kind::run},      Place{"resolve", "ID", Kind::run},     Place{"answer", "ID", Kind::run},
    Place{"open", "ID", Kind::run},
};

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool is_hidden(const CLI::Option& option) { return option.get_group().empty(); }

/// The positionals of a command, in the order in which they are filled.
std::vector<const CLI::Option*> positionals(const CLI::App& app) {
  std::vector<const CLI::Option*> found;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_positional() && !is_hidden(*option)) found.push_back(option);
  }
  return found;
}

const CLI::Option* find_option(const CLI::App& app, std::string_view word) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->check_name(std::string(word))) return option;
  }
  return nullptr;
}

const CLI::App* find_command(const CLI::App& app, const std::string& word) {
  const auto found = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
  return found.empty() ? nullptr : found.front();
}

/// The values in "{bash,fish}", the type text of an option with a fixed set of values.
std::vector<std::string> members(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{');
  const auto close = type.find('}', open);
  std::vector<std::string> found;
  if (open == std::string::npos || close == std::string::npos) return found;
  for (std::size_t from = open + 1; from < close;) {
    const auto to = std::min(type.find(',', from), close);
    found.push_back(type.substr(from, to - from));
    from = to + 1;
  }
  return found;
}

std::string first_sentence(const std::string& text) { return text.substr(0, text.find('\n')); }

class Collector {
 public:
  explicit Collector(std::string prefix) : prefix_(std::move(prefix)) {}
  void add(Candidate candidate) {
    if (!candidate.word.starts_with(prefix_) || found_.size() >= kCandidatesMax) return;
    if (std::ranges::find(found_, candidate.word, &Candidate::word) == found_.end()) {
      found_.push_back(std::move(candidate));
    }
  }
  std::vector<Candidate> take() { return std::move(found_); }

 private:
  std::string prefix_;
  std::vector<Candidate> found_;
};

void add_commands(const CLI::App& app, Collector& into) {
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) into.add({command->get_name(), first_sentence(command->get_description())});
  }
}

void add_options(const CLI::App& app, std::string_view prefix, Collector& into) {
  for (const CLI::Option* const option : app.get_options()) {
    if (is_hidden(*option)) continue;
    for (const std::string& name : option->get_lnames())
      into.add({"--" + name, first_sentence(option->get_description())});
    if (!prefix.starts_with("--")) {
      for (const std::string& name : option->get_snames())
        into.add({"-" + name, first_sentence(option->get_description())});
    }
  }
}

/// `nth`: how many values the option already has.
void add_values(const CLI::App& command, const CLI::Option& option, std::size_t nth, const Names& names,
                Collector& into, Fallback& fallback) {
  const std::vector<std::string> fixed = members(option);
  for (const std::string& word : fixed) into.add({word, ""});
  for (const Place& place : kPlaces) {
    if (place.command != command.get_name() || place.option != option.get_single_name()) continue;
    if (place.kind == Kind::agent && nth > 0) continue;  // the words after an agent are its arguments
    const auto& source = place.kind == Kind::agent   ? names.agents
                         : place.kind == Kind::limit ? names.limits
                                                     : names.runs;
    if (source) {
      for (Candidate& name : source()) into.add(std::move(name));
    }
    return;
  }
  if (fixed.empty()) fallback = Fallback::files;
}

/// Where the cursor is, derived from the words before it.
struct Cursor {
  const CLI::App* command = nullptr;
  bool commands_fit = true;                 // no subcommand was named yet
  const CLI::Option* value_of = nullptr;    // the option whose value is next
  std::size_t positionals = 0;              // positional words so far
  std::optional<std::size_t> after_dashes;  // words since `--`
};

Cursor walk(const CLI::App& app, const std::vector<std::string>& before) {
  Cursor cursor;
  cursor.command = &app;
  for (const std::string& word : before) {
    if (cursor.after_dashes) {
      ++*cursor.after_dashes;
    } else if (std::exchange(cursor.value_of, nullptr) != nullptr) {
      continue;
    } else if (word == "--") {
      cursor.after_dashes = 0;
    } else if (word.starts_with('-') && word.size() > 1) {
      const auto equals = word.find('=');
      const CLI::Option* const option = find_option(*cursor.command, word.substr(0, equals));
      if (option != nullptr && takes_value(*option) && equals == std::string::npos) cursor.value_of = option;
    } else if (const CLI::App* const next = cursor.commands_fit ? find_command(*cursor.command, word) : nullptr) {
      cursor.command = next;
    } else {
      ++cursor.positionals;
      cursor.commands_fit = false;
    }
  }
  return cursor;
}

/// `--option=val`: completes the part after `=`, and puts the option back before each candidate.
std::optional<Completion> complete_joined(const Cursor& cursor, const std::string& word, const Names& names) {
  const auto equals = word.find('=');
  if (!word.starts_with("--") || equals == std::string::npos) return std::nullopt;
  const CLI::Option* const option = find_option(*cursor.command, word.substr(0, equals));
  if (option == nullptr || !takes_value(*option)) return Completion{};
  Completion completion;
  Collector values(word.substr(equals + 1));
  add_values(*cursor.command, *option, 0, names, values, completion.fallback);
  completion.candidates = values.take();
  for (Candidate& candidate : completion.candidates) candidate.word = word.substr(0, equals + 1) + candidate.word;
  return completion;
}

bool is_plain(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-' || c == ':';
  });
}

}  // namespace

Completion complete(const CLI::App& app, const std::vector<std::string>& words, const Names& names) {
  if (words.empty()) return {};
  const std::string& word = words.back();
  const Cursor cursor = walk(app, {words.begin(), words.end() - 1});
  Completion completion;
  if (cursor.after_dashes) {
    completion.fallback =
        *cursor.after_dashes == 0 && cursor.command->get_name() == "with" ? Fallback::commands : Fallback::files;
    return completion;
  }
  Collector found(word);
  if (cursor.value_of != nullptr) {
    add_values(*cursor.command, *cursor.value_of, 0, names, found, completion.fallback);
  } else if (auto joined = complete_joined(cursor, word, names)) {
    return std::move(*joined);
  } else if (word.starts_with('-')) {
    add_options(*cursor.command, word, found);
  } else {
    if (cursor.commands_fit) add_commands(*cursor.command, found);
    const std::vector<const CLI::Option*> places = positionals(*cursor.command);
    // The last positional takes all further words if it takes several.
    const bool several = !places.empty() && places.back()->get_items_expected_max() > 1;
    const std::size_t at = several ? std::min(cursor.positionals, places.size() - 1) : cursor.positionals;
    if (at < places.size()) {
      add_values(*cursor.command, *places[at], cursor.positionals - at, names, found, completion.fallback);
    }
  }
  completion.candidates = found.take();
  return completion;
}

std::string to_text(const Completion& completion) {
  constexpr std::array kFallbacks = {"none", "files", "commands"};
  std::string text = std::string(kFallbacks[static_cast<std::size_t>(completion.fallback)]) + "\n";
  for (const Candidate& candidate : completion.candidates) {
    text += candidate.word + "\t" + printable(candidate.description) + "\n";
  }
  return text;
}

Names blocking_project_names() {
  Names names;
  names.agents = [] {
    std::vector<Candidate> found;
    const auto project = agent::blocking_find_project(blocking_read_environment().folder);
    if (!project) return found;
    for (const domain::Agent& agent : agent::blocking_discover(project->root).agents) {
      found.push_back({agent.name, agent.description});
    }
    return found;
  };
  names.limits = [] {
    std::vector<Candidate> found;
    const auto place = limit::blocking_find_host_place(blocking_read_environment());
    if (!place) return found;
    for (const limit::HostLimit& limit : limit::blocking_all_limits(place->homes, place->settings)) {
      if (is_plain(limit.name)) found.push_back({limit.name, ""});  // files may have any name
    }
    return found;
  };
  return names;
}

}  // namespace stint::cli
