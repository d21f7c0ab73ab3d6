#include "driver/process_driver.hpp"

#include "driver/process_work.hpp"
#include "driver/registry.hpp"
#include "os/cgroup.hpp"

#include <utility>

namespace stint::driver {

ProcessDriver::ProcessDriver(Reactor& reactor, Options options)
    : options_(std::move(options)), survivors_(reactor, options_.grace), wardens_(reactor) {}

void ProcessDriver::hold(bool held) {
  held_ = held;
  for (domain::Work* const work : works_) work->hold(held);
}

std::string ProcessDriver::choose_conversation(const domain::WorkOrder& order) {
  const DriverEntry* const entry = find_entry(order.spec.driver);
  return entry != nullptr && entry->choose_conversation != nullptr ? entry->choose_conversation(order.mark()) : "";
}

Result<std::unique_ptr<domain::Work>> ProcessDriver::begin(domain::WorkOrder order, domain::WorkContext& context) {
  domain::AttemptSpec& spec = order.spec;
  ProcessWork::Options options;
  STINT_TRY(options.dialect, make_dialect(spec.driver));
  options.invocation = std::move(spec.invocation);
  options.invocation.new_conversation = order.new_conversation;
  options.process.run = order.mark();
  options.process.cgroup = os::cgroup_path(os::delegated_cgroup(), options.process.run);
  options.process.memory_bytes_max = spec.memory_bytes_max;
  options.process.slots = std::move(order.descriptors);
  options.process.directory = std::move(spec.directory);
  options.process.environment = std::move(spec.environment);
  options.process.idle_timeout = spec.idle_timeout.value_or(options.process.idle_timeout);
  options.process.grace = options_.grace;
  for (const std::string& secret : spec.secrets) options.mask.add(secret);
  if (order.after_loss) options.lost = {order.run, domain::Fence{order.fence.value - 1}};
  options.conversation_may_not_exist = order.conversation_may_not_exist;
  options.note = std::move(spec.note);
  auto work = std::make_unique<ProcessWork>(
      ProcessWork::Parts{wardens_, survivors_, context, works_, options_.mask, options_.on_output}, std::move(options));
  if (held_) work->hold(true);
  return work;
}

}  // namespace stint::driver
