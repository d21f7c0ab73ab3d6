#include "playground/shown_code.hpp"

#include "stint/assert.hpp"

#include <algorithm>
#include <ranges>

namespace stint::playground {
namespace {

Mark read_mark(std::uint32_t line, std::string_view words) {
  Mark mark;
  mark.line = line;
  for (const auto part : std::views::split(words, ' ')) {
    const std::string_view word(part);
    const auto kind = std::ranges::find(kEventKinds, word, [](EventKind each) { return to_string(each); });
    if (kind != std::end(kEventKinds)) {
      mark.kinds.push_back(*kind);
    } else if (word.ends_with(':')) {
      mark.task = word.substr(0, word.size() - 1);
    } else if (!word.empty()) {
      mark.resources.emplace_back(word);
    }
  }
  STINT_ASSERT(!mark.kinds.empty() && "a mark names the events that it stands for");
  return mark;
}

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::ranges::find(values, value) != values.end();
}

std::string_view shown_part(std::string_view source) {
  constexpr std::string_view kBegin = "// [show]\n", kEnd = "// [/show]";
  const std::size_t begin = source.find(kBegin);
  const std::size_t end = source.find(kEnd);
  STINT_ASSERT(begin != source.npos && end != source.npos);
  return source.substr(begin + kBegin.size(), end - begin - kBegin.size());
}

}  // namespace

std::optional<std::uint32_t> ShownCode::line_of(const Event& event) const {
  const auto found = std::ranges::find_if(marks, [&](const Mark& mark) {
    return contains(mark.kinds, event.kind) && event.task.starts_with(mark.task) &&
           (mark.resources.empty() || contains(mark.resources, event.resource));
  });
  return found == marks.end() ? std::nullopt : std::optional(found->line);
}

ShownCode show(std::string_view source) {
  constexpr std::string_view kMark = "//@";
  ShownCode shown;
  std::uint32_t number = 0;
  std::string_view rest = shown_part(source);
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    ++number;
    if (const std::size_t at = line.find(kMark); at != line.npos) {
      shown.marks.push_back(read_mark(number, line.substr(at + kMark.size())));
      line = line.substr(0, at);
      line = line.substr(0, line.find_last_not_of(' ') + 1);
    }
    shown.text.append(line).push_back('\n');
  }
  return shown;
}

}  // namespace stint::playground
