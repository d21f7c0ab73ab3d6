// The dialects for tests in Python: prints how an attempt is started and ended, and the outcome of a stream.
//
//   dialect_tool launch DRIVER read|edit|full PROMPT [CONVERSATION]
//   dialect_tool finish DRIVER STATUS killed|alone < stdout-of-the-CLI      (STATUS: as in Python, -15 is a signal)
#include "driver/dialect.hpp"
#include "driver/registry.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <iostream>
#include <string>

namespace {

namespace json = boost::json;
using namespace stint;
using namespace stint::driver;

int launch(Dialect& dialect, const std::vector<std::string>& arguments) {
  Invocation invocation;
  invocation.permissions = arguments.at(0) == "read"   ? Permissions::read
                           : arguments.at(0) == "full" ? Permissions::full
                                                       : Permissions::edit;
  invocation.prompt = arguments.at(1);
  invocation.reads_checkout = true;
  if (arguments.size() > 2) invocation.conversation = arguments[2];
  const Launch launch = dialect.launch(invocation);
  const PoliteEnd end = dialect.polite_end();
  json::array argv;
  for (const std::string& argument : launch.argv) argv.push_back(json::string(argument));
  json::object env;
  for (const auto& [name, value] : launch.env)
    env[name] = value ? json::value(json::string(*value)) : json::value(nullptr);
  std::cout << json::serialize(json::object{
                   {"argv", std::move(argv)},
                   {"env", std::move(env)},
                   {"stdin", launch.stdin_text},
                   {"close_stdin", launch.close_stdin},
                   {"end", {{"stdin", end.stdin_bytes}, {"close_stdin", end.close_stdin}, {"signal", end.signal}}}})
            << "\n";
  return 0;
}

int finish(Dialect& dialect, const std::vector<std::string>& arguments) {
  ProcessEnd end;
  const int status = std::stoi(arguments.at(0));
  if (status < 0) {
    end.signal = -status;
  } else {
    end.exit_status = status;
  }
  end.killed_by_us = arguments.at(1) == "killed";
  (void)dialect.launch(Invocation());
  std::vector<Progress> progress;
  for (std::string line; std::getline(std::cin, line);) dialect.read(line, progress);
  const bool seen = dialect.result_seen();
  const Outcome outcome = dialect.finish(end);
  json::array kinds;
  for (const Progress& item : progress) kinds.push_back(json::string(to_string(item.kind)));
  json::array allow;
  for (const Denial& denial : outcome.denials) allow.push_back(json::string(denial.allow));
  std::cout << json::serialize(json::object{{"kind", to_string(outcome.kind)},
                                            {"text", outcome.text},
                                            {"message", outcome.message},
                                            {"conversation", outcome.conversation},
                                            {"tokens", outcome.usage.tokens()},
                                            {"cost_micros", outcome.usage.cost_micros},
                                            {"http_status", outcome.http_status.value_or(0)},
                                            {"result_seen", seen},
                                            {"progress", std::move(kinds)},
                                            {"allow", std::move(allow)}})
            << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto dialect = make_dialect(arguments.at(1));
  if (!dialect) {
    std::cerr << dialect.error().what() << "\n";
    return 2;
  }
  const std::vector<std::string> rest(arguments.begin() + 2, arguments.end());
  return arguments[0] == "launch" ? launch(**dialect, rest) : finish(**dialect, rest);
}
