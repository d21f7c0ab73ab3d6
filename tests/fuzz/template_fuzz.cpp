// Any bytes as a template, and as a value: it renders or reports the position of an error; values are copied unchanged;
// every text can be escaped.
#include "agent/template.hpp"
#include "stint/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace stint;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parsed = agent::Template::parse(text);
  if (parsed) {
    const domain::ArgumentValues values{{"x", {"1", "2"}}, {"y", {text}}};
    (void)parsed->render(values);
    STINT_ASSERT(parsed->render({}));
  } else {
    STINT_ASSERT(parsed.error().line >= 1 && parsed.error().column >= 1 && !parsed.error().message.empty());
  }
  const auto escaped = agent::Template::parse(agent::Template::escape(text));
  STINT_ASSERT(escaped && escaped->render({}).value() == text);
  const auto value = agent::Template::parse("<{{x}}>").value().render({{"x", {text}}});
  STINT_ASSERT(value.value() == "<" + text + ">");
  return 0;
}
