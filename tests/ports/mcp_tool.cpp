// Our client of MCP for tests in Python: opens a session, prints the tools, calls them, and says what was left.
//
//   mcp_tool stdio PROGRAM ARGUMENT… | mcp_tool http URL      < one call per line: NAME JSON
#include "driver/tool_call.hpp"
#include "driver/warden.hpp"
#include "os/process.hpp"
#include "stint/asio.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace stint;
using namespace stint::driver;

Task<> use(ToolRunner& runner, std::vector<std::string> calls) {
  const Result<> opened = co_await runner.open();
  if (!opened) std::cout << "failed " << opened.error().what() << "\n";
  for (const ToolOffer& offer : runner.offers()) {
    std::cout << "tool " << offer.name << " " << domain::to_string(offer.tool_class) << "\n";
  }
  for (const std::string& note : runner.notes()) std::cout << "note " << note << "\n";
  for (const std::string& call : calls) {
    const std::size_t end = call.find(' ');
    const ToolResult result = co_await runner.call(call.substr(0, end), "call-1", call.substr(end + 1));
    std::cout << to_string(result.state) << (result.is_error ? " error " : " ") << result.text << "\n";
  }
  runner.close();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == kWardenArgument) return warden_main({words.begin() + 1, words.end()});
  if (words.size() < 2) return 2;
  (void)std::signal(SIGPIPE, SIG_IGN);
  os::become_subreaper();
  std::vector<std::string> calls;
  for (std::string line; std::getline(std::cin, line);) calls.push_back(line);
  domain::Tool server;
  server.name = "s";
  server.mcp = domain::McpServer{.trusted = true};
  if (words[0] == "http") {
    server.mcp->url = words[1];
  } else {
    server.mcp->command.assign(words.begin() + 1, words.end());
  }
  Reactor reactor;
  {
    Wardens wardens(reactor);
    net::HttpClient client(reactor);
    Semaphore limit("tools", kToolsAtOnce);
    ToolRunner runner({wardens, client, limit}, {.tools = {server}, .run = "ports:1"});
    RootScope scope(reactor);
    scope.spawn(runner.run());
    scope.spawn(use(runner, calls));
    if (!reactor.run(scope)) return 1;
  }
  std::cout << "left " << os::own_children().size() << "\n";
  return 0;
}
