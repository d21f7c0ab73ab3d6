/// Owns all parts of a daemon: engine, fleet, API, server, signals. `stint serve` runs one, `stint demo fleet` another.
#pragma once

#include "app/daemon_files.hpp"
#include "engine/engine.hpp"
#include "fleet/node.hpp"
#include "fleet/read_project.hpp"
#include "http/api.hpp"
#include "http/server.hpp"
#include "stint/asio.hpp"
#include "stint/mutex.hpp"
#include "stint/notification.hpp"
#include "stint/offload.hpp"

#include <boost/asio/signal_set.hpp>

#include <memory>
#include <string>
#include <vector>

namespace stint::app {

struct Listen {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free port
};

/// "127.0.0.1:7717".
[[nodiscard]] Result<Listen> parse_listen(const std::string& text);

/// Options from the settings; `workers`: a pool of that size, without autoscaling.
[[nodiscard]] engine::EngineOptions engine_options(const agent::Settings& settings,
                                                   std::optional<std::int64_t> workers);

class Daemon {
 public:
  /// `cluster`: several hosts share the store, and it counts limits.
  Daemon(Reactor& reactor, const domain::System& system, cli::Environment environment,
         std::shared_ptr<const project::Snapshot> snapshot, bool cluster, domain::Log& log);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// `token` empty: requests need none.
  void open(std::unique_ptr<store::Store> store, engine::EngineOptions options, std::string shown, std::string token);
  /// Call after open().
  Result<> listen(const Listen& where, std::vector<std::string> hosts);
  /// Call after both. Returns when the daemon has drained, after a signal or a request.
  Task<Result<>> serve();
  /// Returns when the store knows the node, its agents and limits: from then on runs are accepted.
  Task<> ready() { co_await ready_.wait(0); }

  [[nodiscard]] const std::string& url() const { return url_; }
  engine::Engine& engine() { return node_->engine(); }
  fleet::Fleet& fleet() { return node_->fleet(); }

 private:
  Task<> flush_subscribers();
  Task<> handle_signals();
  Task<Result<>> report_problems(std::shared_ptr<const project::Snapshot> snapshot);
  Task<> reload();
  struct FilesLook;
  Task<> look_at_files();
  Task<> watch_project();
  Task<> sample_series();
  Task<std::optional<domain::Shortage>> find_shortage();
  std::vector<std::string> environment_of(const domain::WorkOrder& order);
  Task<Result<std::vector<engine::LimitView>>> list_host_limits();
  Task<Result<bool>> resize_host_limit(std::string name, std::uint32_t capacity);

  Reactor& reactor_;
  const domain::System& system_;
  const cli::Environment environment_;
  const bool cluster_;
  domain::Log& log_;
  BlockingPool files_{"files", 2};            // reads the project and the limits of this host
  BlockingPool playground_{"playground", 1};  // replays sandboxes: one core at most, and never a wait for files
  Mutex reloading_{"reload"};                 // one reload at a time: after a signal, or because files have changed
  std::shared_ptr<const project::Snapshot> snapshot_;  // shared with runs that began under it
  asio::signal_set signals_;
  RunTokens run_tokens_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<fleet::Node> node_;
  std::unique_ptr<http::Api> api_;
  std::unique_ptr<http::Server> server_;
  std::string url_, token_;
  Notification ready_;
  bool checkout_gone_ = false;
};

}  // namespace stint::app
