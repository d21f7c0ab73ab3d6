#include "agent/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stint::agent {

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
  }
  return "unknown";
}

std::string describe(const Problem& problem) {
  std::string out = problem.file;
  if (problem.line > 0) out += fmt::format(":{}", problem.line);
  if (problem.line > 0 && problem.column > 0) out += fmt::format(":{}", problem.column);
  out += fmt::format(": {}: ", to_string(problem.severity));
  if (!problem.field.empty()) out += problem.field + ": ";
  out += problem.message;
  if (!problem.suggestion.empty()) out += "; " + problem.suggestion;
  return out;
}

bool has_errors(std::span<const Problem> problems) noexcept {
  return std::ranges::any_of(problems, [](const Problem& problem) { return problem.severity == Severity::error; });
}

void ProblemList::error(Place place, std::string field, std::string message, std::string suggestion) {
  errors_ = true;
  add({Severity::error, file_, place.line, place.column, std::move(field), std::move(message), std::move(suggestion)});
}

void ProblemList::warning(Place place, std::string field, std::string message, std::string suggestion) {
  add({Severity::warning, file_, place.line, place.column, std::move(field), std::move(message),
       std::move(suggestion)});
}

void ProblemList::add(Problem problem) {
  if (problems_.size() < kProblemsMax) {
    problems_.push_back(std::move(problem));
  } else {
    ++left_out_;
  }
}

std::vector<Problem> ProblemList::take() {
  std::ranges::sort(problems_, {}, [](const Problem& problem) { return std::pair(problem.line, problem.column); });
  if (left_out_ > 0) {
    problems_.push_back({errors_ ? Severity::error : Severity::warning, file_, 0, 0, "",
                         fmt::format("and {} more problems", left_out_), ""});
  }
  left_out_ = 0;
  return std::exchange(problems_, {});
}

}  // namespace stint::agent
