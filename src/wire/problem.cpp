#include "wire/problem.hpp"

#include "wire/values.hpp"

namespace stint::wire {

std::string to_json(const ProblemText& problem) {
  json::object object{{"type", text_value(problem.type)},
                      {"title", text_value(problem.title)},
                      {"status", problem.status},
                      {"detail", text_value(problem.detail)}};
  if (!problem.list.empty()) object["list"] = text_value(problem.list);
  if (problem.matched) object["matched"] = *problem.matched;
  return json::serialize(object);
}

}  // namespace stint::wire
