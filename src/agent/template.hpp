/// Templates of prompts, titles and commands: `{{arg}}`, `{{#if arg}}…{{else}}…{{/if}}`, `{{#unless arg}}`,
/// `{{#each arg}}…{{this}}…{{/each}}`, `{{! a comment }}`. A small part of Handlebars, without its escaping.
///
/// Values are data: they are copied byte for byte and never parsed as a template. The arguments that a template names
/// are known once it is parsed, so a wrong name is found when a file is loaded, not when it runs. `\{{` is a literal
/// `{{`; of the backslashes before `{{`, two make one. A line that holds nothing but one block tag or comment leaves no
/// empty line behind.
#pragma once

#include "domain/agent.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

struct TemplateError {
  int line = 0;  ///< of the template, from 1
  int column = 0;
  std::string message;
  std::string suggestion;
};

class Template {
 public:
  static constexpr int kDepthMax = 16;                          ///< nested blocks
  static constexpr std::size_t kTagMax = 256;                   ///< bytes between {{ and }}, except in comments
  static constexpr std::size_t kTagsMax = 10'000;               ///< in one template
  static constexpr std::size_t kRenderedMax = 4 * 1024 * 1024;  ///< bytes; nested {{#each}} multiply

  [[nodiscard]] static std::expected<Template, TemplateError> parse(std::string_view text);
  /// A template that renders to exactly `text`.
  [[nodiscard]] static std::string escape(std::string_view text);

  struct Name {
    std::string name;
    int line = 0;
    int column = 0;
  };
  /// Every use of an argument, in order of the text.
  [[nodiscard]] const std::vector<Name>& names() const noexcept { return names_; }

  /// An argument without a value is empty and counts as false; so does an empty one. `{{x}}` of several values joins
  /// them with ", ". Fails only if the result would exceed `kRenderedMax`.
  [[nodiscard]] Result<std::string> render(const domain::ArgumentValues& values) const;

 private:
  friend class TemplateParser;
  friend class TemplateRenderer;
  enum class Kind : std::uint8_t { text, value, branch, each };
  struct Node {
    Kind kind = Kind::text;
    std::string text;  ///< the text itself, or the argument's name; "this" within {{#each}}
    bool negated = false;
    std::vector<Node> body;
    std::vector<Node> otherwise;
  };

  std::vector<Node> nodes_;
  std::vector<Name> names_;
};

}  // namespace stint::agent
