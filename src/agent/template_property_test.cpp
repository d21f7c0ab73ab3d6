// Any value is rendered byte for byte; any text can be written as a template.
#include "agent/template.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace stint::agent {
namespace {

/// Text that consists mostly of template syntax.
rc::Gen<std::string> tricky() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
                          "{{", "}}", "{", "}", "\\", "\\{{", "#if x", "{{x}}", "{{/if}}", "{{else}}", "this", " ",
                          "\n", "!", "--", std::string(1, '\0'), "\r\n", "ä", "\xff", "abc")),
                      [](const std::vector<std::string>& parts) {
                        std::string out;
                        for (const std::string& part : parts) out += part;
                        return out;
                      });
}

RC_GTEST_PROP(TemplateProperty, any_value_survives_verbatim, ()) {
  const std::string value = *tricky();
  const std::string other = *tricky();
  const domain::ArgumentValues values{{"x", {value}}, {"y", {other}}, {"xs", {value, other}}};
  const auto render = [&](std::string_view text) { return Template::parse(text).value().render(values).value(); };
  RC_ASSERT(render("<{{x}}>{{y}}") == "<" + value + ">" + other);
  RC_ASSERT(render("{{#each xs}}[{{this}}]{{/each}}") == "[" + value + "][" + other + "]");
  RC_ASSERT(render("{{#if x}}{{x}}{{else}}none{{/if}}") == (value.empty() ? "none" : value));
}

RC_GTEST_PROP(TemplateProperty, any_text_can_be_escaped, ()) {
  const std::string text = *tricky();
  const auto parsed = Template::parse(Template::escape(text));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->names().empty());
  RC_ASSERT(parsed->render({}).value() == text);
}

RC_GTEST_PROP(TemplateProperty, any_text_parses_or_says_where_not, ()) {
  const std::string text = *tricky();
  const auto parsed = Template::parse(text);
  if (parsed) {
    RC_ASSERT(parsed->render({}).has_value());
  } else {
    const auto lines = std::count(text.begin(), text.end(), '\n');
    RC_ASSERT(parsed.error().line >= 1);
    RC_ASSERT(parsed.error().line <= lines + 1);
    RC_ASSERT(parsed.error().column >= 1);
  }
}

}  // namespace
}  // namespace stint::agent
