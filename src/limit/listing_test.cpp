#include "limit/listing.hpp"

#include "os/owner.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace stint::limit {
namespace {

Slots::Holder holder() {
  os::SlotRecord record;
  record.run = "abc:2";
  record.label = "train";
  record.pid = 7;
  record.capacity = 4;
  record.weight = 3;
  record.namespace_id = os::pid_namespace();
  record.user = ::geteuid();
  record.boot = os::boot_id();
  return {.index = 0, .record = record};
}

TEST(LimitListing, an_entry_names_the_run_and_the_process_of_a_slot) {
  const domain::LimitEntry entry = entry_of(holder(), 4);
  EXPECT_EQ(entry, (domain::LimitEntry{.run = "abc", .label = "train", .pid = 7, .weight = 1}))
      << "a slot is one unit, whatever the weight of its holder, and nothing is unusual about it; its age is unknown";
}

TEST(LimitListing, a_slot_locked_by_another_tool_has_neither_run_nor_process) {
  EXPECT_EQ(entry_of(Slots::Holder{}, 4), domain::LimitEntry());
}

TEST(LimitListing, an_entry_describes_an_unusual_process) {
  Slots::Holder killed = holder();
  killed.swept = true;
  EXPECT_TRUE(entry_of(killed, 4).swept);
  killed.swept = false;
  killed.unjudged = true;
  EXPECT_TRUE(entry_of(killed, 4).unjudged);
  EXPECT_EQ(entry_of(holder(), 3).counts_to, 4U);
  Slots::Holder contained = holder();
  ++contained.record->namespace_id;
  EXPECT_EQ(entry_of(contained, 4).other_container, !os::can_see(*contained.record))
      << "the initial namespace sees those of all containers";
  Slots::Holder foreign = holder();
  ++*foreign.record->user;
  EXPECT_EQ(entry_of(foreign, 4).user, os::is_other_users(*foreign.record) ? os::user_name(::geteuid() + 1) : "")
      << "root may look at every process";
}

}  // namespace
}  // namespace stint::limit
