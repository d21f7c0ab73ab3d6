#include "wire/problem.hpp"

#include "wire/values.hpp"

namespace stint::wire {

std::string to_json(const ProblemText& problem) {
  return json::serialize(json::object{{"type", text_value(problem.type)},
                                      {"title", text_value(problem.title)},
                                      {"status", problem.status},
                                      {"detail", text_value(problem.detail)}});
}

}  // namespace stint::wire
