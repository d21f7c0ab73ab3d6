/// Everything a daemon is made of, in one struct: engine, fleet, API, server, signals. `stint serve` runs one, and the
/// demo another.
#pragma once

#include "app/daemon_files.hpp"
#include "cli/book.hpp"
#include "cli/host_parts.hpp"
#include "engine/local_fleet.hpp"
#include "http/api.hpp"
#include "http/server.hpp"
#include "stint/asio.hpp"
#include "wire/scribe.hpp"

#include <boost/asio/signal_set.hpp>

#include <memory>
#include <string>
#include <vector>

namespace stint::app {

struct Listen {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the system picks one
};

/// "127.0.0.1:7717".
[[nodiscard]] Result<Listen> parse_listen(const std::string& text);

/// As the settings say; `workers`: a pool of that size, without autoscaling.
[[nodiscard]] engine::EngineOptions engine_options(const agent::Settings& settings,
                                                   std::optional<std::int64_t> workers);

class Daemon {
 public:
  /// `cluster`: the store is shared between machines, and counts limits.
  Daemon(Reactor& reactor, const domain::Ambient& ambient, cli::Surroundings around,
         std::shared_ptr<const cli::Reading> reading, bool cluster, domain::Log& log);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// `token` empty: none is asked for.
  void open(std::unique_ptr<store::Store> store, engine::EngineOptions options, std::string shown, std::string token);
  /// After open().
  Result<> listen(const Listen& where, std::vector<std::string> hosts);
  /// After both, until it has drained: by a signal, or by whoever asks.
  Task<Result<>> serve();

  [[nodiscard]] const std::string& url() const { return url_; }
  engine::Engine& engine() { return *engine_; }
  engine::Fleet& fleet() { return *fleet_; }

 private:
  Task<> hear_out_followers();
  Task<> hear_signals();
  Task<> reload();
  Task<> watch_surroundings();
  Task<std::string> why_held_up();
  std::vector<std::string> environment_of(const domain::WorkOrder& order);
  Result<bool> resize_limit(const std::string& name, std::uint32_t capacity) const;

  Reactor& reactor_;
  const domain::Ambient& ambient_;
  const cli::Surroundings around_;
  const bool cluster_;
  domain::Log& log_;
  std::shared_ptr<const cli::Reading> reading_;  // shared with runs that were begun under it
  asio::signal_set signals_;
  wire::Scribe scribe_;
  RunTokens run_tokens_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<cli::HostPermits> permits_;
  std::unique_ptr<cli::ProcessDriver> driver_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::LocalFleet> fleet_;
  std::unique_ptr<http::Api> api_;
  std::unique_ptr<http::Server> server_;
  std::string url_, token_;
};

}  // namespace stint::app
