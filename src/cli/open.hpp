/// `stint open`: opens the dashboard of the daemon in a browser.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>

namespace stint::cli {

/// The dashboard's address with the token in its fragment, which a browser keeps to itself: no request line, log or
/// referrer has it. `run`: the page of that run; empty: the first page.
[[nodiscard]] std::string dashboard_address(const std::string& url, const std::string& token,
                                            const std::string& run = {});

class OpenCommand {
 public:
  explicit OpenCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string id_;
  bool print_ = false;
};

}  // namespace stint::cli
