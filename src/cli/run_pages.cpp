#include "cli/run_pages.hpp"

#include <algorithm>

namespace stint::cli {

RunPages::RunPages(engine::Fleet& fleet, const std::vector<std::string>& states, std::string agent, std::string session)
    : fleet_(fleet) {
  for (const std::string& name : states) {
    const auto state = domain::parse_run_state(name);
    if (state && std::ranges::find(states_, *state) == states_.end()) states_.push_back(*state);
  }
  filter_.agent = std::move(agent);
  filter_.session = std::move(session);
}

Task<Result<std::vector<engine::RunView>>> RunPages::newest(std::uint32_t most) {
  store::Filter filter = filter_;
  filter.before = 0;
  filter.most = most;
  if (states_.empty()) co_return co_await fleet_.list(std::move(filter));
  std::vector<engine::RunView> found;
  for (const domain::RunState state : states_) {
    filter.state = state;
    STINT_CO_TRY(std::vector<engine::RunView> part, co_await fleet_.list(filter));
    std::ranges::move(part, std::back_inserter(found));
  }
  std::ranges::sort(found, std::greater(),
                    [](const engine::RunView& view) { return std::pair(view.run.created_at, view.run.number); });
  if (found.size() > most) found.resize(most);
  co_return found;
}

Task<Result<std::vector<engine::RunView>>> RunPages::next() {
  filter_.most = kPage;
  // One state is the store's business; several are picked here, for the order goes over all of them.
  if (states_.size() == 1) filter_.state = states_.front();
  STINT_CO_TRY(std::vector<engine::RunView> page, co_await fleet_.list(filter_));
  more_ = page.size() == kPage;
  if (!page.empty()) filter_.before = page.back().run.number;
  if (states_.size() > 1) {
    std::erase_if(
        page, [&](const engine::RunView& view) { return std::ranges::find(states_, view.run.state) == states_.end(); });
  }
  co_return page;
}

}  // namespace stint::cli
