#include "agent/settings.hpp"

#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

using namespace std::chrono_literals;

LoadedSettings project(std::string_view toml, const EnvironmentVariables& environment = {}) {
  return read_settings({{{OriginKind::project, "stint.toml", std::string(toml)}}, environment, {}});
}

std::string said(const LoadedSettings& loaded) {
  std::string out;
  for (const Problem& problem : loaded.problems) out += describe(problem) + "\n";
  return out;
}

constexpr std::string_view kWholeSettings = R"(default_agent = "helper"
entry_agent = "dispatch"
store = "sqlite"
[limits]
gpu = 2
"account:anthropic" = 4
host = "auto"
disk = {capacity = 3, reach = "host"}
[pool]
workers = 5
up = 0.9
[budget]
time = "2h"
attempts = 4
tokens = "400k"
cost_per_day = 50.0
[accounts.anthropic]
key_env = "ANTHROPIC_API_KEY"
[models."anthropic/claude-sonnet"]
endpoint = "https://api.anthropic.com"
price = {input = 3.0, cache_read = 0.3, cache_write = 3.75, output = 15.0}
[land]
gate = ["./dev", "check"]
[retention]
runs = "60d"
)";

TEST(Settings, without_any_file_there_are_defaults) {
  const LoadedSettings loaded = read_settings({});
  EXPECT_EQ(said(loaded), "");
  EXPECT_EQ(loaded.settings.default_agent, "assistant");
  EXPECT_EQ(loaded.settings.entry_agent, "dispatch");
  EXPECT_EQ(loaded.settings.store, "sqlite");
  EXPECT_EQ(loaded.settings.driver, domain::find_driver("claude"));
  EXPECT_EQ(loaded.settings.pool.workers, 10U);
  EXPECT_EQ(loaded.settings.pool.queue, 200U);
  EXPECT_EQ(loaded.settings.pool.stale_after, 120s);
  EXPECT_EQ(loaded.settings.budget.time, 1h);
  EXPECT_EQ(loaded.settings.budget.attempts, 3);
  EXPECT_EQ(loaded.settings.budget.cost_micros, std::nullopt);
  EXPECT_EQ(loaded.settings.retention, 720h);
  EXPECT_TRUE(loaded.settings.limits.empty());
  EXPECT_EQ(describe(loaded.settings.find("store")->origin), "default");
}

TEST(Settings, a_driver_is_one_of_the_table) {
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    const LoadedSettings loaded = project("driver = \"" + std::string(driver.name) + "\"\n");
    EXPECT_EQ(said(loaded), "");
    EXPECT_EQ(loaded.settings.driver, &driver);
  }
  EXPECT_NE(said(project("driver = \"cluade\"\n")).find("did you mean 'claude'?"), std::string::npos);
}

TEST(Settings, the_whole_file_is_read) {
  const LoadedSettings loaded = project(kWholeSettings);
  EXPECT_EQ(said(loaded), "");
  const Settings& settings = loaded.settings;
  EXPECT_EQ(settings.default_agent, "helper");
  EXPECT_EQ(settings.limits.at("gpu").capacity, 2U);
  EXPECT_EQ(settings.limits.at("gpu").origin, (Origin{OriginKind::project, "stint.toml", 5}));
  EXPECT_EQ(settings.limits.at("account:anthropic").capacity, 4U);
  EXPECT_EQ(settings.limits.at("host").capacity, std::nullopt);
  EXPECT_EQ(settings.limits.at("disk").reach, Reach::host);
  EXPECT_EQ(settings.limits.at("disk").capacity, 3U);
  EXPECT_EQ(settings.pool.workers, 5U);
  EXPECT_EQ(settings.pool.up, 0.9);
  EXPECT_EQ(settings.budget.time, 2h);
  EXPECT_EQ(settings.budget.tokens, 400'000);
  EXPECT_EQ(settings.cost_micros_per_day, 50'000'000);
  EXPECT_EQ(settings.accounts.at("anthropic").key_env, "ANTHROPIC_API_KEY");
  EXPECT_EQ(settings.models.at("anthropic/claude-sonnet").price.cache_write, 3'750'000);
  EXPECT_EQ(settings.gate, (std::vector<std::string>{"./dev", "check"}));
  EXPECT_EQ(settings.retention, 1440h);
  EXPECT_EQ(settings.find("limits.account:anthropic.capacity"), settings.find("limits.\"account:anthropic\".capacity"));
}

TEST(Settings, later_layers_win_and_every_value_knows_its_origin) {
  SettingsSources sources;
  sources.files = {
      {OriginKind::project, "stint.toml", "store = \"memory\"\n[pool]\nworkers = 1\nqueue = 1\nmin = 1\nmax = 9\n"},
      {OriginKind::user, "/u/config.toml", "[pool]\nworkers = 2\nqueue = 2\nmin = 2\n"}};
  sources.environment = {{"STINT_POOL_QUEUE", "3"}, {"STINT_POOL_MIN", "3"}, {"STINT_STORE", ""}};
  sources.flags = {{"pool.min", "4", "--min"}};
  const LoadedSettings loaded = read_settings(sources);
  EXPECT_EQ(said(loaded), "");
  const auto origin = [&](std::string_view key) { return describe(loaded.settings.find(key)->origin); };
  EXPECT_EQ(loaded.settings.pool.max, 9U);
  EXPECT_EQ(origin("pool.max"), "stint.toml:6");
  EXPECT_EQ(loaded.settings.pool.workers, 2U);
  EXPECT_EQ(origin("pool.workers"), "/u/config.toml:2");
  EXPECT_EQ(loaded.settings.pool.queue, 3U);
  EXPECT_EQ(origin("pool.queue"), "STINT_POOL_QUEUE");
  EXPECT_EQ(loaded.settings.pool.min, 4U);
  EXPECT_EQ(origin("pool.min"), "--min");
  EXPECT_EQ(origin("store"), "stint.toml:1");  // an empty variable is none
  EXPECT_EQ(origin("pool.drain"), "default");
}

TEST(Settings, a_capacity_of_one_layer_keeps_the_reach_of_another) {
  SettingsSources sources;
  sources.files = {{OriginKind::project, "stint.toml", "[limits]\ngpu = {capacity = 2, reach = \"host\"}\n"},
                   {OriginKind::user, "config.toml", "[limits]\ngpu = 1\n"}};
  const LoadedSettings loaded = read_settings(sources);
  EXPECT_EQ(loaded.settings.limits.at("gpu").capacity, 1U);
  EXPECT_EQ(loaded.settings.limits.at("gpu").reach, Reach::host);
  EXPECT_EQ(loaded.settings.limits.at("gpu").origin.where, "config.toml");
}

TEST(Settings, a_misspelt_key_is_refused_with_a_suggestion) {
  EXPECT_EQ(said(project("stroe = \"sqlite\"\n")),
            "stint.toml:1:1: error: stroe: unknown key; did you mean 'store'?\n");
  EXPECT_EQ(said(project("[pool]\nworker = 1\n")),
            "stint.toml:2:1: error: pool.worker: unknown key; did you mean 'workers'?\n");
  EXPECT_EQ(said(project("[limit]\ngpu = 1\n")),
            "stint.toml:2:1: error: limit.gpu: unknown key; did you mean 'limits'?\n");
  EXPECT_EQ(said(project("[limits]\ngpu = {capacity = 1, reech = \"host\"}\n")).find("stint.toml:2:"), 0U);
  EXPECT_NE(said(project("[store]\nx = 1\n")).find("store.x: unknown key"), std::string::npos);
  EXPECT_EQ(said(project("", {{"STINT_STROE", "x"}})),
            "environment: warning: STINT_STROE: no such setting; did you mean 'STINT_STORE'?\n");
  EXPECT_EQ(said(project("", {{"STINT_RUN", "x"}, {"STINT_FROBNICATE", "x"}, {"STINT_URL", "y"}})), "");
}

TEST(Settings, wrong_values_are_errors_with_the_line_and_leave_the_layer_below) {
  const auto holds = [](std::string_view toml, std::string_view message) {
    const LoadedSettings loaded = project(toml);
    EXPECT_NE(said(loaded).find(message), std::string::npos) << toml << "\n" << said(loaded);
    EXPECT_TRUE(has_errors(loaded.problems)) << toml;
  };
  holds("[limits]\ngpu = 0\n", "stint.toml:2:7: error: limits.gpu: must be at least 1, found 0");
  holds("[limits]\ngpu = -1\n", "limits.gpu: must be at least 1, found -1");
  holds("[limits]\ngpu = 1099511627776\n", "limits.gpu: must be at most 10000");
  holds("[limits]\ngpu = \"2\"\n",
        "limits.gpu: expected a whole number, \"auto\" or {capacity = 2, reach = \"host\"}, found the text \"2\"");
  holds("[limits]\ngpu = 1.5\n", "found 1.5");
  holds("[limits]\ngpu = true\n", "found true");
  holds("[limits]\n\"../x\" = 1\n", "cannot be a limit's name");
  holds("[limits]\ngpu = {capacity = 2, reach = \"galaxy\"}\n", "expected process, host or cluster, found 'galaxy'");
  holds("[limits]\ngpu = {reach = \"host\"}\n", "this limit has no capacity");
  holds("store = \"oracle\"\n", "expected sqlite, memory or postgres, found 'oracle'");
  holds("default_agent = \"Big One\"\n", "'Big One' cannot be an agent's name");
  holds("[budget]\ntime = 20\n", "stint.toml:2:8: error: budget.time: expected a duration such as \"20m\", found 20");
  holds("[budget]\ntime = \"soon\"\n", "budget.time: expected a duration such as");
  holds("[budget]\nattempts = 0\n", "budget.attempts: must be more than 0");
  holds("[pool]\nautoscale = \"yes\"\n", "pool.autoscale: expected true or false, found the text \"yes\"");
  holds("[pool]\nup = 1.5\n", "expected a number from 0 to 1");
  holds("[pool]\nmin = 10\nmax = 5\n", "stint.toml:2: error: pool.min: 10 is more than pool.max, 5");
  holds("[land]\ngate = \"./dev check\"\n", "land.gate: expected a list of program and arguments, found the text");
  holds("[land]\ngate = []\n", "land.gate: names no program");
  holds("[land]\ngate = [1]\n",
        "land.gate: expected a list of program and arguments, found a list with values that are not text");
  holds("store = \n", "stint.toml:1:");
  holds("a = 1\na = 2\n", "not valid TOML");
  EXPECT_EQ(project("[pool]\nworkers = \"x\"\n").settings.pool.workers, 10U);
  EXPECT_TRUE(project("[limits]\ngpu = {reach = \"host\"}\n").settings.limits.empty());
  EXPECT_TRUE(project("[limits]\ngpu = 0\n").settings.limits.empty());
  EXPECT_NE(said(project("", {{"STINT_POOL_WORKERS", "many"}}))
                .find("environment: error: STINT_POOL_WORKERS: expected a whole number"),
            std::string::npos);
  EXPECT_NE(said(read_settings({{}, {}, {{"pool.workers", "x", "--workers"}}}))
                .find("command line: error: --workers: expected"),
            std::string::npos);
}

TEST(Settings, input_that_is_not_text_is_refused) {
  using namespace std::string_literals;
  EXPECT_EQ(said(project("a = 1\n[\0"s)),
            "stint.toml:2: error: contains a NUL byte: this is not a text file; save it as UTF-8\n");
  EXPECT_EQ(said(project("# \xff\n")), "stint.toml:1: error: not valid UTF-8; save it as UTF-8\n");
  EXPECT_TRUE(has_errors(project("[\x01").problems));
  EXPECT_EQ(said(project("store = \"memory\"\n[*]\n")),
            "stint.toml:2: error: not valid TOML; write a table's name between [ and ]\n");
  EXPECT_TRUE(has_errors(project("[").problems));
  EXPECT_EQ(said(project("# ü\n[limits]\nü = 1\n")).find("stint.toml:3:1: error: not valid TOML"), 0U);
  EXPECT_EQ(said(project("[land]\ngate = [\"ü\"]\n")), "");
}

TEST(Settings, deep_and_long_files_are_bounded) {
  EXPECT_TRUE(has_errors(project("a = " + std::string(5000, '[')).problems));
  EXPECT_TRUE(has_errors(project("a.b.c.d.e.f.g.h.i.j.k = 1\n").problems));
}

TEST(Settings, a_password_is_never_shown) {
  const LoadedSettings loaded = project("", {{"STINT_STORE", "postgres://u:geheim@db.example/x?a=b@c"}});
  EXPECT_EQ(loaded.settings.store, "postgres://u:geheim@db.example/x?a=b@c");
  EXPECT_EQ(loaded.settings.find("store")->shown(), "postgres://u:***@db.example/x?a=b@c");
  EXPECT_EQ(without_password("postgres://u@h/x?a=b&password=geheim&sslpassword=auch"),
            "postgres://u@h/x?a=b&password=***&sslpassword=***");
  EXPECT_EQ(without_password("postgres://h/x?password=geheim"), "postgres://h/x?password=***");
  EXPECT_EQ(without_password("/a/password=x"), "/a/password=x");
  EXPECT_NE(said(project("store = \"postgres://u:geheim@db/x\"\n")).find("the file contains a password"),
            std::string::npos);
  EXPECT_EQ(said(project("store = \"postgres://u@db/x\"\n")), "");
  EXPECT_EQ(said(project("store = \"postgres://u:geheim@db/x\"\n")).find("geheim"), std::string::npos);
}

TEST(Settings, are_loaded_from_their_places) {
  const TestFolder folder;
  folder.write("p/stint.toml", "[pool]\nworkers = 1\nqueue = 1\n");
  folder.write("c/stint/config.toml", "[pool]\nqueue = 2\n");
  const EnvironmentVariables environment{{"XDG_CONFIG_HOME", (folder / "c").string()}, {"HOME", "/nowhere"}};
  const LoadedSettings loaded = blocking_load_settings(folder / "p", environment);
  EXPECT_EQ(said(loaded), "");
  EXPECT_EQ(loaded.settings.pool.workers, 1U);
  EXPECT_EQ(loaded.settings.pool.queue, 2U);
  EXPECT_EQ(describe(loaded.settings.find("pool.queue")->origin), (folder / "c/stint/config.toml").string() + ":2");
  folder.write("p2/stint.toml/x", "");
  EXPECT_NE(said(blocking_load_settings(folder / "p2", environment)).find("stint.toml: error: "), std::string::npos);
}

TEST(Settings, automatic_capacity_follows_free_memory) {
  EXPECT_EQ(automatic_capacity(0), 1U);
  EXPECT_EQ(automatic_capacity(std::uint64_t{5} << 30), 5U);
  EXPECT_EQ(automatic_capacity(std::uint64_t{100} << 30), 16U);
}

}  // namespace
}  // namespace stint::agent
