/// Carries one run, and nothing else, with a node of this process: `stint run` where no daemon does. The run is in the
/// store like any other; when the node is lost, others take it up.
#pragma once

#include "fleet/node.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace stint::fleet {

class OneRun {
 public:
  struct Parts {
    Reactor& reactor;
    const domain::System& system;
    store::Store& store;
    std::shared_ptr<const project::Snapshot> snapshot;  ///< shared with the attempts that it plans
  };
  struct Options {
    /// The store is a file of this host: a free lock shows that this process is gone, so that its lease needs no end.
    bool lasting_lease = false;
    driver::SecretMask mask;
    std::string program;                                ///< named on the command line, instead of the CLI's usual name
    std::function<void(const std::string&)> on_output;  ///< masked text, as it comes
    std::function<void(const Error&)> on_failure;       ///< the node itself has failed
  };
  OneRun(const Parts& parts, Options options);
  OneRun(const OneRun&) = delete;
  OneRun& operator=(const OneRun&) = delete;

  /// Submits the run and carries it until `follow`, which is called with its id, returns; then hands back what is left.
  /// Fails if it could not be submitted, else as `follow` does.
  Task<Result<>> carry(engine::Submission submission, std::function<Task<Result<>>(Fleet&, std::string)> follow);

  /// The rest from the call of `follow` on. What the run waits for on this host; none: nothing, or the store knows.
  [[nodiscard]] std::optional<domain::WaitReason> waits_for() const;
  /// Why no attempt can begin here at all.
  [[nodiscard]] const std::optional<Error>& cannot_begin() const { return node_->engine().cannot_begin(); }
  /// Ends its attempt without waiting for the store. A second call hurries.
  void stop(std::string why);
  [[nodiscard]] bool is_work_over() const;
  /// Back-pressure: true pauses the run's output, false resumes it.
  void hold(bool held);

 private:
  void make_node(const std::string& agent);
  Task<Result<>> submit(engine::Submission submission);
  Task<Result<>> size_limits();
  Task<> serve();

  const Parts parts_;
  Options options_;
  std::string id_;
  std::unique_ptr<Node> node_;  // made when the agent's name in the store is known
};

}  // namespace stint::fleet
