#include "cli/demo_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kArrivalGap = 330ms;  // between the first arrivals: slow enough to see the garage fill up
constexpr Duration kStayMin = 2400ms, kStayMax = 4s;
constexpr Duration kClosingTime = 3s;  // before the end: about as long as a stay
constexpr int kImpatientOneIn = 4;

}  // namespace

std::string worker_name(std::uint32_t worker) {
  static constexpr std::array<std::string_view, 26> kNames = {
      "van",  "cab",  "jeep",  "trike", "ute",   "taxi", "suv", "kart",  "rig",  "pod",  "mini",  "limo", "moped",
      "bike", "quad", "buggy", "coupe", "sedan", "cart", "gig", "hatch", "sled", "tram", "wagon", "dray", "scoot"};
  const std::uint32_t round = worker / kNames.size();
  const std::string_view name = kNames[worker % kNames.size()];
  return round == 0 ? std::string(name) : fmt::format("{}{}", name, round + 1);
}

Habits::Habits(std::uint64_t seed, std::uint32_t worker) : random_(seed * 1000 + worker), worker_(worker) {
  // Many workers arrive in waves of a few seconds, not after the end.
  first_arrival_ = kArrivalGap * (worker % 26) + draw(0ms, 200ms);
}

Duration Habits::draw(Duration least, Duration most) {
  return Duration(std::uniform_int_distribution<Duration::rep>(least.count(), most.count())(random_));
}

Visit Habits::next() {
  Visit visit;
  visit.drive = first_ ? first_arrival_ : draw(700ms, 2500ms);
  visit.stay = draw(kStayMin, kStayMax);
  // Most workers of the first round have no deadline, so that a line forms; a few do, to show a wait that times out.
  const bool impatient = first_ ? worker_ % 8 == 7 : random_() % kImpatientOneIn == 0;
  if (impatient) visit.patience = first_ ? 1200ms : draw(1500ms, 2500ms);
  first_ = false;
  return visit;
}

std::vector<Act> script(const DemoOptions& options) {
  const std::uint32_t full = options.capacity;
  const std::uint32_t small = full / 2;
  const std::uint32_t large = std::max(2U, full * 3 / 4);
  const auto at = [&](double part) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.length - kClosingTime) * part);
  };
  const auto spaces = [](std::uint32_t count) { return fmt::format("{} space{}", count, count == 1 ? "" : "s"); };
  std::vector<Act> acts;
  acts.push_back(
      {at(0), ActKind::say, 0, "", "Each worker needs a permit. A worker that finds a free space parks at once."});
  acts.push_back({at(0.12), ActKind::say, 0, "",
                  "The others wait in line: first come, first served. Some have a deadline, and give up when it "
                  "passes."});
  if (large <= full) {
    acts.push_back(
        {at(0.22), ActKind::large, large, "truck",
         fmt::format("The truck asks for {} at once. No smaller request overtakes it: otherwise it would starve.",
                     spaces(large))});
  }
  acts.push_back({at(0.42), ActKind::cancel_line, 0, "",
                  "A waiting worker is cancelled: it leaves at once, and those behind it move up."});
  acts.push_back({at(0.49), ActKind::cancel_in, 0, "",
                  "A worker inside is cancelled: its permit is released, and the next one enters."});
  acts.push_back(
      {at(0.56), ActKind::resize, small, "",
       small == 0
           ? "The limit drops to 0, a pause: workers inside may finish, and no other enters."
           : fmt::format(
                 "The limit drops from {} to {}. No holder loses its permit: the next ones to leave pay the debt.",
                 full, small)});
  if (small > 0) {
    acts.push_back(
        {at(0.67), ActKind::large, full, "bus",
         fmt::format("The bus asks for {} of {}: refused at once, it could never be granted.", spaces(full), small)});
  }
  acts.push_back({at(0.74), ActKind::resize, full, "",
                  fmt::format("Back to {}: as many enter at once as there is room for.", spaces(full))});
  if (full > 1) {
    acts.push_back(
        {at(0.82), ActKind::whole, full, "coach",
         "The coach wants the whole garage and has priority: it goes to the head, spaces stay free for it …"});
  }
  acts.push_back(
      {at(1), ActKind::close, 0, "", "Closing time: waiting workers are sent home, workers inside may finish."});
  return acts;
}

}  // namespace stint::cli
