// Any bytes as JSON of the fleet's API: requests that a daemon reads, and answers that a command reads. Reading,
// writing and reading again gives the same value.
#include "stint/assert.hpp"
#include "wire/fleet.hpp"
#include "wire/fleet_read.hpp"
#include "wire/run_codec.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace stint;

namespace {

/// A failed read must carry an error text.
template <class T>
bool is_read(const Result<T>& value) {
  STINT_ASSERT(value || !value.error().describe().empty());
  return value.has_value();
}

template <class Read, class Write>
void expect_the_same(std::string_view text, Read read, Write write) {
  const auto first = read(text);
  if (!is_read(first)) return;
  const std::string once = write(*first);
  const auto second = read(once);
  STINT_ASSERT(is_read(second) && write(*second) == once);
}

void read_as_daemon(std::string_view text) {
  const auto write_submission = [](const wire::SubmitRequest& request) {
    return wire::submit_to_json(request.submission);
  };
  expect_the_same(text, wire::read_submit, write_submission);
  (void)is_read(wire::read_arguments(text));
  (void)is_read(wire::read_resolve(text));
  (void)is_read(wire::read_scale(text));
  (void)is_read(wire::read_capacity(text));
  (void)is_read(wire::read_length(text, "for_ms"));
  const wire::RunCodec run_codec;
  expect_the_same(
      text, [&](std::string_view each) { return run_codec.read_input(each); },
      [&](const domain::RunInput& input) { return run_codec.write(input); });
  expect_the_same(
      text, [&](std::string_view each) { return run_codec.read_memo(each); },
      [&](const domain::RunMemo& memo) { return run_codec.write(memo); });
}

void read_as_command(std::string_view text) {
  const auto write = [](const auto& value) { return wire::to_json(value); };
  expect_the_same(text, wire::read_run, write);
  expect_the_same(text, wire::read_why, write);
  expect_the_same(text, wire::read_agents, write);
  expect_the_same(text, wire::read_limits, write);
  expect_the_same(text, wire::read_health, write);
  expect_the_same(text, wire::read_status, write);
  expect_the_same(text, wire::read_output, write);
  (void)is_read(wire::read_runs(text));
  (void)is_read(wire::read_events(text));
  (void)is_read(wire::read_receipt(text));
  (void)is_read(wire::read_submitted(text));
  (void)is_read(wire::read_resolved(text));
  (void)is_read(wire::read_resumed(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_daemon(text);
  read_as_command(text);
  return 0;
}
