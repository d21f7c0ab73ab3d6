#include "cli/each_lines.hpp"

#include "agent/text.hpp"
#include "wire/fleet.hpp"

#include <algorithm>

namespace stint::cli {
namespace {

Result<> put_arguments(std::string_view text, engine::Submission& submission) {
  STINT_TRY(submission.args, wire::read_arguments(text));
  for (const std::string& word : submission.words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || !domain::is_argument_name(word.substr(0, equals))) {
      return fail(Errc::invalid, "a line with a JSON object names its arguments, so write '" + word +
                                     "' before --each as KEY=" + word);
    }
    const std::string name = word.substr(0, equals);
    if (!submission.args.contains(name)) submission.args[name] = {word.substr(equals + 1)};
  }
  submission.words.clear();
  return {};
}

}  // namespace

void LineCutter::end_line() {
  ++number_;
  if (!open_.empty() && open_.back() == '\r') open_.pop_back();
  if (too_long_ || open_.find_first_not_of(" \t") != std::string::npos) {
    ready_.push_back({number_, too_long_ ? std::string() : std::move(open_), too_long_});
  }
  open_.clear();
  too_long_ = any_ = false;
}

void LineCutter::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    any_ = any_ || !part.empty();
    if (open_.size() + part.size() > kEachLineMax) {
      too_long_ = true;
      open_.clear();
    } else if (!too_long_) {
      open_ += part;
    }
    if (end == std::string_view::npos) return;
    end_line();
    bytes.remove_prefix(end + 1);
  }
}

void LineCutter::finish() {
  if (any_) end_line();
}

std::vector<LineCutter::CutLine> LineCutter::take(std::size_t most) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, ready_.size()));
  std::vector<CutLine> out(std::make_move_iterator(ready_.begin()), std::make_move_iterator(ready_.begin() + count));
  ready_.erase(ready_.begin(), ready_.begin() + count);
  return out;
}

Result<engine::Submission> read_submission(const LineCutter::CutLine& line, const engine::Submission& like) {
  if (line.too_long) {
    return fail(Errc::invalid,
                "the line has more than " + std::to_string(kEachLineMax) + " bytes: pass the name of a file instead");
  }
  if (agent::utf8_error(line.text)) return fail(Errc::invalid, "the line is not valid UTF-8");
  engine::Submission submission = like;
  if (!like.key.empty()) submission.key = like.key + ":" + std::to_string(line.number);
  if (like.agent.empty()) {
    submission.prompt = line.text;
  } else if (line.text[line.text.find_first_not_of(" \t")] == '{') {
    STINT_CHECK(put_arguments(line.text, submission));
  } else {
    submission.words.emplace_back("--");
    submission.words.push_back(line.text);
  }
  return submission;
}

}  // namespace stint::cli
