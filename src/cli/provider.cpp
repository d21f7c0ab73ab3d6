#include "cli/provider.hpp"

#include "cli/environment.hpp"
#include "cli/print.hpp"
#include "provider/server.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <memory>

namespace stint::cli {
namespace {

int complain(int status, std::string_view what) {
  print_error("stint provider: {}\n", what);
  return status;
}

/// Reads a whole file; call before the reactor runs.
Result<std::string> blocking_read(const std::string& name) {
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(name.c_str(), "rb"));
  if (!file) return fail(Errc::invalid, fmt::format("{}: can't be read; check the name", name));
  std::string text(provider::Script::kBytesMax + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return fail(Errc::invalid, fmt::format("{}: can't be read", name));
  return text;
}

wire::ProviderListening describe(const std::string& address) {
  const std::string url = "http://" + address;
  return {.address = address,
          .url = url,
          .environment = {{"ANTHROPIC_BASE_URL", url},
                          {"ANTHROPIC_API_KEY", "simulated"},
                          {"OPENAI_BASE_URL", url + "/v1"},
                          {"OPENAI_API_KEY", "simulated"},
                          {"GOOGLE_GEMINI_BASE_URL", url},
                          {"GEMINI_API_KEY", "simulated"},
                          // Gemini CLI 0.61 refuses to start with a base URL for its own API, but takes one for
                          // Vertex AI. Without GEMINI_MODEL it first asks a model which one to use, expecting JSON.
                          {"GOOGLE_GENAI_USE_VERTEXAI", "true"},
                          {"GOOGLE_VERTEX_BASE_URL", url},
                          {"GOOGLE_API_KEY", "simulated"},
                          {"GEMINI_MODEL", "gemini-2.5-flash"}}};
}

void announce(const wire::ProviderListening& listening, bool json) {
  if (json) {
    print_out("{}\n", wire::to_json(listening));
  } else {
    print_out("Simulated provider on {}. It accepts any key. Ctrl-C ends it.\n\n", listening.url);
    for (const auto& [name, value] : listening.environment) print_out("export {}={}\n", name, value);
    print_out("\nstats {}/_/stats   requests {}/_/requests   new script: POST {}/_/script\n", listening.url,
              listening.url, listening.url);
  }
  flush_out();
}

void report(const wire::ProviderStats& stats, bool json) {
  if (json) {
    print_out("{}\n", wire::to_json(stats));
  } else {
    print_out("\n{} requests, {} with a fault, {} tokens; {} clients disconnected early, {} tokens not delivered\n",
              stats.requests, stats.faults, stats.tokens, stats.closed_early, stats.tokens_after_gone);
  }
}

/// Ends `work` at the first signal.
Task<> end_on_signal(asio::signal_set& signals, Scope& work) {
  const auto [error, number] = co_await signals.async_wait(use_task);
  if (!error) work.cancel(Reason::user, "stopped by a signal");
}

}  // namespace

ProviderCommand::ProviderCommand(CLI::App& app)
    : command_(app, "provider", "Run a simulated model provider, for demos and tests without a key") {
  command_.footer(
      "Speaks Anthropic Messages, OpenAI Chat Completions and Responses, and Gemini, and answers every request.\n"
      "A line in the prompt controls the reply:\n"
      "  @provider: delay=2s tokens=200 rate=40/s fault=429 retry_after=3 times=2\n"
      "docs/provider.md has every key, the script file and the faults.");
  command_.option("--listen", listen_, "Listen here, on loopback only (default 127.0.0.1:0: any free port)")
      .value("ADDRESS:PORT");
  command_.option("--script", script_file_, "Choose replies by prompt; TOML or JSON").value("FILE");
  command_.option("--log", log_file_, "Append one line of JSON per request").value("FILE");
  command_.flag("--json", json_, "Print the address, and the totals at the end, as JSON");
}

bool ProviderCommand::chosen() const { return command_.chosen(); }

int ProviderCommand::run() {
  provider::Script script;
  if (!script_file_.empty()) {
    const Result<std::string> text = blocking_read(script_file_);
    if (!text) return complain(kExitUsage, text.error().what());
    Result<provider::Script> parsed = provider::Script::parse(*text);
    if (!parsed) return complain(kExitUsage, fmt::format("{}: {}", script_file_, parsed.error().what()));
    script = std::move(*parsed);
  }
  std::FILE* log = nullptr;
  if (!log_file_.empty()) {
    log = std::fopen(log_file_.c_str(), "ab");
    if (log == nullptr) return complain(kExitUsage, fmt::format("{}: can't be written to", log_file_));
  }
  provider::Journal journal(log);
  Reactor reactor;
  provider::Server server(reactor, std::move(script), journal);
  if (const Result<> listening = server.listen(listen_); !listening) {
    return complain(listening.error() == Errc::invalid ? kExitUsage : kExitFailed, listening.error().what());
  }
  // Before the address is printed: the reader of that line may send a signal at once.
  asio::signal_set signals(reactor.io(), SIGINT, SIGTERM, SIGHUP);
  announce(describe(server.address()), json_);
  {
    ScopeOptions options;
    options.cancel_on_error = false;  // a failed connection does not end the others
    RootScope connections(reactor, options);
    RootScope helpers(reactor);
    connections.spawn(server.accept(connections));
    helpers.spawn(end_on_signal(signals, connections));
    (void)reactor.run(connections);  // ends by a signal; failures of single connections are ignored
    helpers.cancel(Reason::shutdown);
    (void)reactor.run(helpers);  // cancelled here
  }
  report(journal.stats(), json_);
  return 0;
}

}  // namespace stint::cli
