// Records of slots: Stint's own, and texts of other programs.
#include "os/slot_file.hpp"

#include "os/cgroup.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::os {
namespace {

SlotRecord sample() {
  SlotRecord record;
  record.run = "abcdefghijkl:1";
  record.cgroup = "/sys/fs/cgroup/stint-abcdefghijkl:1";
  record.pid = 4711;
  record.start = 123456789;
  record.capacity = 4;
  record.weight = 2;
  record.since_ms = 1700000000000;
  record.namespace_id = 4026531836;
  record.boot = "b00t";
  record.label = "train model 7";
  return record;
}

void expect_same(const SlotRecord& a, const SlotRecord& b) {
  EXPECT_EQ(a.run, b.run);
  EXPECT_EQ(a.cgroup, b.cgroup);
  EXPECT_EQ(a.pid, b.pid);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.capacity, b.capacity);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.since_ms, b.since_ms);
  EXPECT_EQ(a.namespace_id, b.namespace_id);
  EXPECT_EQ(a.boot, b.boot);
  EXPECT_EQ(a.label, b.label);
}

TEST(SlotRecord, comes_back_as_it_was_written) {
  const auto back = parse_slot_record(to_text(sample()));
  ASSERT_TRUE(back);
  expect_same(*back, sample());
}

TEST(SlotRecord, nothing_in_a_label_is_taken_for_a_field) {
  for (const std::string label : {"a run=x:1 n=7 cgroup=/x boot=y pid=1", " label=b run=c", "= = =", ""}) {
    SlotRecord record;  // fields that are not written must not be found in the label
    record.pid = 5;
    record.label = label;
    const auto back = parse_slot_record(to_text(record));
    ASSERT_TRUE(back);
    expect_same(*back, record);
  }
}

TEST(SlotRecord, is_one_printable_line_within_its_bound) {
  SlotRecord record = sample();
  record.label = "a\nb\x1b[31m\x7f" + std::string(1000, 'x');
  record.run = "with space\n";
  const std::string text = to_text(record);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_LE(text.size(), kSlotRecordMax);
  EXPECT_EQ(parse_slot_record(text)->label.size(), kLabelMax);
  EXPECT_EQ(to_text(record, 20).size(), 20U);
}

TEST(SlotRecord, texts_of_other_programs_are_not_records) {
  for (const std::string_view text : {"", "stint", "stin", "stinted run=a", "4711\n", " stint run=a", "\0\0\0"}) {
    EXPECT_FALSE(parse_slot_record(text)) << text;
  }
}

TEST(SlotRecord, a_cut_one_never_gains_a_field) {
  const std::string whole = to_text(sample());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto cut = parse_slot_record(std::string_view(whole).substr(0, length));
    if (!cut) continue;
    EXPECT_TRUE(sample().run.starts_with(cut->run));
    EXPECT_TRUE(sample().cgroup.starts_with(cut->cgroup));
    EXPECT_LE(cut->capacity, sample().capacity);
  }
}

TEST(SlotRecord, parsing_never_crashes) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    (void)parse_slot_record(text);
    const auto record = parse_slot_record("stint " + text);
    RC_ASSERT(record && record->weight >= 1);
  }));
  const auto extreme = parse_slot_record("stint pid=-9 start=99999999999999999999 n=4294967296 weight=0 label=");
  ASSERT_TRUE(extreme);
  EXPECT_EQ(extreme->start, 0U);
  EXPECT_EQ(extreme->capacity, 0U);
  EXPECT_EQ(extreme->weight, 1U);
}

TEST(SlotRecord, any_label_comes_back_as_its_printable_beginning) {
  EXPECT_TRUE(rc::check([](const std::string& label) {
    SlotRecord record;
    record.label = label;
    const auto back = parse_slot_record(to_text(record));
    RC_ASSERT(back && back->label.size() == std::min(label.size(), kLabelMax));
    RC_ASSERT(back->run.empty() && back->cgroup.empty() && back->capacity == 0U);
  }));
}

TEST(SlotFile, a_release_erases_only_its_own_record) {
  const TestFolder folder;
  const Fd slot = open_shared_file(folder / "x.0.lock", 0600).value();
  ASSERT_TRUE(try_lock_slot(slot.get()));
  ASSERT_TRUE(write_slot_record(slot.get(), sample()));
  release_slot(slot.get(), "another:1");
  EXPECT_TRUE(read_slot_record(slot.get()));
  release_slot(slot.get(), sample().run);
  EXPECT_FALSE(read_slot_record(slot.get()));
  const Fd other = open_shared_file(folder / "x.0.lock", 0600).value();
  EXPECT_TRUE(try_lock_slot(other.get()));
}

TEST(SlotFile, a_release_does_not_touch_a_new_owner) {
  const TestFolder folder;
  const Fd old = open_shared_file(folder / "x.0.lock", 0600).value();
  const Fd owner = open_shared_file(folder / "x.0.lock", 0600).value();
  ASSERT_TRUE(try_lock_slot(owner.get()));
  ASSERT_TRUE(write_slot_record(owner.get(), sample()));
  release_slot(old.get(), sample().run);
  EXPECT_TRUE(read_slot_record(owner.get()));
  EXPECT_FALSE(try_lock_slot(old.get()));
  EXPECT_EQ(std::ranges::count(flocked_inodes(), inode_of(owner.get())), 1);
}

TEST(Sweep, reports_which_work_may_be_alive) {
  SlotRecord record = sample();
  record.cgroup.clear();
  record.boot = boot_id();
  record.namespace_id = pid_namespace();
  EXPECT_EQ(sweep(record), Swept::gone) << "no process carries that mark";
  record.namespace_id = 0;
  EXPECT_EQ(sweep(record), Swept::gone) << "not written by Stint";
  record.boot = "another";
  record.namespace_id = 1;
  EXPECT_EQ(sweep(record), Swept::gone) << "the machine was rebooted";
  record.run.clear();
  EXPECT_EQ(sweep(record), Swept::gone);
}

TEST(Cgroup, a_path_read_from_a_file_is_not_trusted) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "stint-a:1");
  EXPECT_FALSE(is_cgroup_of(folder / "stint-a:1", "a:1")) << "a folder, but not a cgroup";
  EXPECT_FALSE(is_cgroup_of("/sys/fs/cgroup", ""));
  EXPECT_FALSE(is_cgroup_of("stint-a:1", "a:1"));
  EXPECT_FALSE(is_cgroup_of("/sys/fs/cgroup/stint-a/../x", "a/../x"));
  const std::string parent = delegated_cgroup();
  if (parent.empty()) GTEST_SKIP() << "no cgroup is delegated here";
  const std::string real = cgroup_path(parent, "unit-test:" + std::to_string(::getpid()));
  ASSERT_TRUE(make_cgroup(real));
  ASSERT_TRUE(make_cgroup(cgroup_path(real, "inner:1")));
  EXPECT_TRUE(is_cgroup_of(real, "unit-test:" + std::to_string(::getpid())));
  remove_cgroup(real);
  EXPECT_FALSE(std::filesystem::exists(real)) << "including those of nested runs";
}

TEST(ProbeLock, distinguishes_missing_free_and_held_without_side_effects) {
  const TestFolder folder;
  const std::string path = folder / "x.lock";
  EXPECT_EQ(probe_lock(path).value(), LockState::missing);
  const Fd holder = open_shared_file(path, 0600).value();
  EXPECT_EQ(probe_lock(path).value(), LockState::free);
  ASSERT_TRUE(try_lock_slot(holder.get())) << "a probe keeps no lock";
  EXPECT_EQ(probe_lock(path).value(), LockState::held);
  unlock_slot(holder.get());
  EXPECT_EQ(probe_lock(path).value(), LockState::free);
}

TEST(ProbeLock, a_failed_check_is_an_error_and_proves_nothing) {
  const TestFolder folder;
  ASSERT_EQ(::symlink("elsewhere", (folder / "link").c_str()), 0);
  ASSERT_EQ(::mkdir((folder / "folder").c_str(), 0700), 0);
  folder.write("file", "");
  for (const char* const name : {"link", "folder", "file/below"}) {
    const Result<LockState> found = probe_lock(folder / name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().retry(), Retry::safe) << name;
  }
}

}  // namespace
}  // namespace stint::os
