#include "playground/sandboxes.hpp"

#include <algorithm>

namespace stint::playground {

void Sandboxes::drop_idle(Duration now) {
  std::erase_if(kept_, [&](const auto& each) { return now - each.second.used >= kSandboxIdleMax; });
}

Sandboxes::Handle Sandboxes::add(std::string id, Sandbox sandbox, Duration now) {
  drop_idle(now);
  if (kept_.size() >= kSandboxesMax) {
    kept_.erase(std::ranges::min_element(kept_, {}, [](const auto& each) { return each.second.used; }));
  }
  auto handle = std::make_shared<const Sandbox>(std::move(sandbox));
  kept_.insert_or_assign(std::move(id), Kept{handle, now});
  return handle;
}

Sandboxes::Handle Sandboxes::find(std::string_view id, Duration now) {
  drop_idle(now);
  const auto found = kept_.find(id);
  if (found == kept_.end()) return nullptr;
  found->second.used = now;
  return found->second.sandbox;
}

bool Sandboxes::replace(std::string_view id, const Handle& before, Sandbox after, Duration now) {
  const auto found = kept_.find(id);
  if (found == kept_.end() || found->second.sandbox != before) return false;
  found->second = Kept{std::make_shared<const Sandbox>(std::move(after)), now};
  return true;
}

bool Sandboxes::remove(std::string_view id) {
  const auto found = kept_.find(id);
  if (found == kept_.end()) return false;
  kept_.erase(found);
  return true;
}

std::size_t Sandboxes::count(Duration now) {
  drop_idle(now);
  return kept_.size();
}

}  // namespace stint::playground
