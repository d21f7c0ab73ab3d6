// Names, files and capacities of host limits.
#include "limit/host_limit.hpp"

#include "domain/agent.hpp"
#include "limit/homes.hpp"
#include "limit/listing.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sys/stat.h>

namespace stint::limit {
namespace {

HostLimit limit_in(const os::TestFolder& folder, std::string name = "x", std::uint32_t capacity = 2) {
  HostLimit limit;
  limit.name = std::move(name);
  limit.directory = folder.path();
  limit.capacity = capacity;
  return limit;
}

TEST(HostLimit, its_file_names_are_a_contract) {
  HostLimit limit;
  limit.directory = "/d";
  limit.name = "agent:review";
  EXPECT_EQ(limit.slot_path(0), "/d/review.0.lock");
  limit.name = "account:anthropic";
  EXPECT_EQ(limit.slot_path(12), "/d/account.anthropic.12.lock");
  EXPECT_EQ(limit.line_path(), "/d/account.anthropic.line");
  EXPECT_EQ(limit.capacity_path(), "/d/account.anthropic.capacity");
}

TEST(HostLimit, unsafe_names_are_refused) {
  for (const char* const name : {"", ".", "..", "a/b", "../x", ".x", "a..b", "a b", "-x", "a\nb", "ä", "a\\b", ":x"}) {
    EXPECT_FALSE(check_name(name)) << name;
  }
  EXPECT_FALSE(check_name(std::string(129, 'a')));
  for (const char* const name : {"x", "model:opus", "a.b-c_d", "0", "X9"}) EXPECT_TRUE(check_name(name)) << name;
}

TEST(HostLimit, no_accepted_name_leads_out_of_its_folder) {
  EXPECT_TRUE(rc::check([](const std::string& name) {
    if (!check_name(name)) return;
    HostLimit limit;
    limit.name = name;
    limit.directory = "/d";
    RC_ASSERT(limit.line_path().rfind('/') == 2U);
  }));
}

TEST(HostLimit, capacities_are_from_1_to_the_most) {
  for (const std::int64_t capacity : {std::int64_t{1}, std::int64_t{domain::kPermitsMax}}) {
    EXPECT_TRUE(check_capacity("x", capacity));
  }
  for (const std::int64_t capacity : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{domain::kPermitsMax} + 1}) {
    EXPECT_FALSE(check_capacity("x", capacity));
  }
}

TEST(SlotIndex, is_parsed_from_own_file_names_only) {
  EXPECT_EQ(slot_index("x.0.lock", "x"), 0);
  EXPECT_EQ(slot_index("x.17.lock", "x"), 17);
  EXPECT_EQ(slot_index("a.b.3.lock", "a.b"), 3);
  for (const char* const file : {"x.lock", "x..lock", "x.a.lock", "x.1a.lock", "x.0.1.lock", "xy.0.lock", "x0.lock",
                                 "x.0.lock2", "x.0", "x", "", "x.99999999999.lock", "x.+1.lock", "x. 1.lock"}) {
    EXPECT_LT(slot_index(file, "x"), 0) << file;
  }
  EXPECT_LT(slot_index("x.-1.lock", "x"), 0);
}

TEST(Capacity, is_read_from_the_file_if_it_contains_a_number) {
  const os::TestFolder folder;
  const HostLimit limit = limit_in(folder);
  EXPECT_EQ(capacity_now(limit), 2U);
  for (const auto& [text, wanted] : std::vector<std::pair<std::string, std::uint32_t>>{{"5\n", 5},
                                                                                       {"0\n", 2},
                                                                                       {"-3", 2},
                                                                                       {"", 2},
                                                                                       {"many", 2},
                                                                                       {"\0\0", 2},
                                                                                       {"99999", domain::kPermitsMax},
                                                                                       {"99999999999999999999", 2}}) {
    folder.write("x.capacity", text);
    EXPECT_EQ(capacity_now(limit), wanted) << text;
  }
}

TEST(Capacity, a_pipe_in_its_place_does_not_block) {
  const os::TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "x.capacity").c_str(), 0600), 0);
  EXPECT_EQ(capacity_now(limit_in(folder)), 2U);
}

TEST(CheckUsable, finds_unwritable_paths_and_creates_nothing) {
  const os::TestFolder folder;
  HostLimit limit = limit_in(folder);
  EXPECT_TRUE(check_usable(limit));
  limit.directory = folder / "not/there/yet";
  EXPECT_TRUE(check_usable(limit));
  EXPECT_FALSE(std::filesystem::exists(folder / "not"));
  folder.write("file", "");
  for (const char* const place : {"file", "file/below", "file/far/below"}) {
    limit.directory = folder / place;
    const Result<> usable = check_usable(limit);
    ASSERT_FALSE(usable) << place;
    EXPECT_NE(usable.error().what().find("Not a directory"), std::string_view::npos) << usable.error().what();
    EXPECT_NE(usable.error().what().find("STINT_LIMITS_DIR"), std::string_view::npos) << usable.error().what();
  }
}

TEST(Resize, writes_and_leaves_no_other_file) {
  const os::TestFolder folder;
  const HostLimit limit = limit_in(folder);
  ASSERT_TRUE(resize(limit, 7));
  EXPECT_EQ(capacity_now(limit), 7U);
  EXPECT_FALSE(resize(limit, 0));
  EXPECT_EQ(capacity_now(limit), 7U);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"x.capacity", "x.line"}));
}

TEST(Homes, agents_live_with_their_repository) {
  Homes homes;
  homes.limits = "/l";
  EXPECT_FALSE(homes.find("agent:a", 1)) << "not in a repository";
  homes.agents = "/a";
  EXPECT_EQ(homes.find("agent:a", 1)->directory, "/a");
  EXPECT_EQ(homes.find("gpu", 1)->directory, "/l");
  EXPECT_FALSE(homes.find("gpu", 0));
  EXPECT_FALSE(homes.find("../gpu", 1));
}

TEST(Listing, creates_nothing) {
  const os::TestFolder folder;
  folder.write("x.0.lock", "garbage");
  ASSERT_EQ(::mkfifo((folder / "x.1.lock").c_str(), 0600), 0);
  const Listing listing = list(limit_in(folder));
  EXPECT_TRUE(listing.holders.empty());
  EXPECT_TRUE(listing.waiters.empty());
  EXPECT_FALSE(std::filesystem::exists(folder / "x.line"));
}

}  // namespace
}  // namespace stint::limit
