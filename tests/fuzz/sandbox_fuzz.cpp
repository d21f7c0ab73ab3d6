// Any bytes as a sandbox and what is done in it: no action, at any step, breaks an assertion of the library, and every
// change is what a replay of it gives. A daemon performs the actions of strangers.
#include "playground/sandbox.hpp"
#include "stint/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

using namespace stint;
using namespace stint::playground;

namespace {

constexpr int kChangesMax = 64;  // each replays all before it

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  std::uint8_t next() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::string name(std::uint8_t count) { return std::string(1, static_cast<char>('a' + next() % count)); }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

Setup draw_setup(Bytes& bytes) {
  Setup setup;
  setup.seed = bytes.next();
  setup.order = bytes.next() % 2 == 0 ? Order::fifo : Order::seeded;
  const int count = bytes.next() % 6;  // 5: too many
  for (int i = 0; i < count; ++i) {
    const Kind kind = kKinds[bytes.next() % std::size(kKinds)];
    setup.resources.push_back({std::string(1, static_cast<char>('a' + i)), kind, bytes.next() % 8U, bytes.next() % 4U});
  }
  return setup;
}

Action draw_action(Bytes& bytes) {
  Action action;
  action.verb = kVerbs[bytes.next() % std::size(kVerbs)];
  action.task = bytes.name(8);
  action.resource = bytes.name(5);
  if (const std::uint8_t of = bytes.next(); of >= 192) action.of = std::string(1, static_cast<char>('a' + of % 8));
  action.units = bytes.next() % 8;
  action.priority = bytes.next() % 10 - 5;
  action.capacity = bytes.next() % 8;
  action.time = std::chrono::milliseconds(bytes.next() % 32);
  if (const std::uint8_t timeout = bytes.next(); timeout >= 128) {
    action.timeout = std::chrono::milliseconds(timeout - 128);
    action.owned = timeout % 2 == 0;
  }
  return action;
}

Result<Played> change(const Sandbox& sandbox, Bytes& bytes) {
  switch (bytes.next() % 8) {
    case 0: return step(sandbox, 1U + bytes.next() % 8U);
    case 1: return back(sandbox, 1U + bytes.next() % 8U);
    case 2: {
      Sandbox longer = sandbox;  // performed later, while it steps
      longer.actions.push_back(draw_action(bytes));
      return step(longer, 1);
    }
    default: return act(sandbox, draw_action(bytes));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  Bytes bytes(data, size);
  Sandbox sandbox;
  sandbox.setup = draw_setup(bytes);
  for (int i = 0; i < kChangesMax && !bytes.empty(); ++i) {
    const auto played = change(sandbox, bytes);
    if (!played) {
      STINT_ASSERT(played.error() == Errc::invalid || played.error() == Errc::conflict);
      STINT_ASSERT(!played.error().describe().empty());
      continue;
    }
    sandbox = played->sandbox;
    STINT_ASSERT(sandbox.step <= kStepsMax && played->view.tasks.size() <= kTasksMax);
    const auto again = look(sandbox);
    STINT_ASSERT(again && again->view == played->view && again->sandbox == sandbox);
  }
  return 0;
}
