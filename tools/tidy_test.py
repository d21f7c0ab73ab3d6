#!/usr/bin/env python3
"""Shows each rule of tools/tidy.py a bad sample, which it must find, and a good one, which it must leave alone."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tidy
from tidy_rules import cpp

HEADER = "/// Says what it is for.\n#pragma once\n"
LONG_FUNCTION = "int f(int x) {\n" + "  x += 1;\n" * 59 + "  return x;\n}\n"  # 62 lines
LONG_CONSTRUCTOR = "Reader::Reader(int size) : size_{size}, name_(\"x\") {\n" + "  ++size_;\n" * 60 + "}\n"
LONG_SQL = "CREATE FUNCTION f(p int) RETURNS int\nLANGUAGE plpgsql AS $$ BEGIN\n" + "  p := p + 1;\n" * 59 + "END $$;\n"  # 61 lines
LONG_SHELL = "f() {\n" + "  for x in 1 2; do\n    {\n      echo $x\n    }\n  done\n" * 12 + "}\n"  # 62 lines
LONG_PYTHON = "class A:\n    async def f(self):\n" + "        a = 1\n" * 60 + "        return a\n"  # 62 lines
GLOSSARY = {"docs/glossary.md": "| word | what it is | not |\n| --- | --- | --- |\n| submission | what a caller asks for | wish |\n\n| where | not | but | why |\n| --- | --- | --- | --- |\n| `src/store/sql/` | worker | node | a store sees none |\n"}
CODE_IN_DOCS = "<!-- from: examples/fetch.cpp#limit -->\n```cpp\n{}```\n"
FETCH = "int main() {\n  // [limit]\n  Semaphore slots(3);\n    use(slots);\n  // [/limit]\n}\n"

DRIVERS = {"src/domain/driver_descriptor.hpp": HEADER + 'X{.name = "claude"}, X{.name = "command"};\nkPlannedDrivers{"llm"};\n'}

# rule → [(path, text, other files)]
BAD = {
    "layer": [
        ("src/queue/ready.cpp", '#include "limit/slots.hpp"\n', {}),  # a stage and a stage
        ("src/domain/run.cpp", '#include "store/store.hpp"\n', {}),  # upward
        ("src/os/process.cpp", '#include "agent/agent.hpp"\n', {}),  # side by side
        ("core/src/semaphore.cpp", '#include "domain/run.hpp"\n', {}),
        ("src/engine/engine.cpp", '#include "../http/server.hpp"\n', {}),
        ("src/misc/things.cpp", "int x;\n", {}),  # a folder that nobody placed
    ],
    "assembly": [
        ("src/cli/run.cpp", '#include "engine/engine.hpp"\n', {}),
        ("src/cli/run.cpp", '#include "store/memory_store.hpp"\n', {}),
        ("src/loop/loop.cpp", '#include "driver/process_driver.hpp"\n', {}),
        ("src/loop/loop.cpp", '#include "limit/host_permits.hpp"\n', {}),
    ],
    "core-headers": [
        ("core/include/stint/task.hpp", HEADER + "#include <boost/asio.hpp>\n", {}),
        ("core/include/stint/scope.hpp", HEADER + '#include "stint/asio.hpp"\n', {}),
    ],
    "header": [
        ("src/domain/run.hpp", "#pragma once\nint x;\n", {}),
        ("src/domain/run.hpp", "/// Says what it is for.\nint x;\n", {}),
    ],
    "sql": [
        ("src/store/sqlite.cpp", 'auto text = "SELECT id FROM runs";\n', {}),
        ("src/engine/rescue.cpp", 'auto text = R"(\n  UPDATE runs SET state = 1)";\n', {}),
    ],
    "json-names": [
        ("src/http/routes.cpp", 'json::object body;\nbody["queue_size"] = 3;\n', {}),
        ("src/cli/ls.cpp", 'json::value v{{"run_id", 3}};\nuse(v.at("state"));\n', {}),
        ("src/model/failure.cpp", 'void f(const json::object& body) { use(text_at(body, "stop_reason")); }\n', {}),
        ("src/model/answer_reader.cpp", 'json::object body;\nbody["usage"] = 3;\n', {}),
    ],
    "words": [
        ("src/fleet/submit.cpp", "int wish;\n", GLOSSARY),
        ("src/fleet/submit.cpp", "struct WishList;\n", GLOSSARY),
        ("src/fleet/submit.cpp", "int read_wish(int x);\n", GLOSSARY),
        ("src/store/sql/postgres/0001_tables.sql", "CREATE TABLE worker (worker_id int);\n", GLOSSARY),
    ],
    "driver-names": [
        ("src/project/snapshot.cpp", 'if (driver == "claude") return "x";\n', DRIVERS),
        ("src/cli/run.cpp", 'option("--driver", into, "claude or another");\n', DRIVERS),
        ("src/project/snapshot.cpp", 'if (spec.driver != "command") resume();\n', DRIVERS),
        ("src/agent/schema.cpp", 'constexpr auto kText = R"(driver: llm)";\n', DRIVERS),
    ],
    "http-status": [
        ("src/engine/submit.cpp", "reply.status = 503;\n", {}),
        ("src/model/failure.cpp", "note.status = 503;\n", {}),
        ("src/pool/drain.cpp", "return http::status::service_unavailable;\n", {}),
    ],
    "size": [
        ("core/src/semaphore.cpp", "int x;\n" * 601, {}),
        ("core/src/semaphore.cpp", LONG_FUNCTION, {}),
        ("core/src/semaphore.cpp", "namespace stint {\n" + LONG_CONSTRUCTOR + "}\n", {}),
        ("core/src/semaphore_test.cpp", "TEST(Semaphore, does_much) {\n" + "  step();\n" * 60 + "}\n", {}),
        ("src/store/sql/postgres/0001_claim.sql", "SELECT 1;\n" * 601, {}),
        ("src/store/sql/postgres/0001_claim.sql", LONG_SQL, {}),
        ("tests/integration/host_test.py", "a = 1\n" * 601, {}),
        ("tests/integration/host_test.py", LONG_PYTHON, {}),
        ("dev", "#!/bin/sh\n" + LONG_SHELL, {}),
        ("tools/dev/test.sh", LONG_SHELL, {}),
        ("web/src/app.ts", "let a = 1;\n" * 601, {}),
    ],
    "names": [
        ("src/pool/worker.hpp", "Task<Result<int>> async_run(int x);\n", {}),
        ("src/pool/worker.cpp", "Task<void> Worker::carry_async() {}\n", {}),
    ],
    "todo": [("src/pool/worker.cpp", "// TODO: drain\n", {}), ("dev", "# FIXME\n", {})],
    "language": [
        ("core/src/semaphore.cpp", "// Nobody waits.\n", {}),
        ("core/src/semaphore_test.cpp", "TEST(Semaphore, nobody_barges) {}\n", {}),
        ("core/src/queue.cpp", 'STINT_ASSERT(empty() && "somebody still waits");\n', {}),
        ("core/include/stint/queue.hpp", "/// Whoever pops next gets it.\n", {}),
        ("docs/library.md", "The permit was waited for in vain.\n", {}),
    ],
    "blocking": [
        ("src/pool/worker.cpp", "void f() {\n  std::this_thread::sleep_for(1s);\n}\n", {}),
        ("src/engine/rescue.cpp", "void f() { sqlite3_step(statement); }\n", {}),
        ("src/driver/llm.cpp", "void f() { getaddrinfo(host, nullptr, &hints, &found); }\n", {}),
        ("src/driver/warden.cpp", "void f() { waitpid(pid, &status, 0); }\n", {}),
    ],
    "blocking-await": [
        ("src/app/daemon.cpp", "Task<> Daemon::reload() {\n  auto fresh = blocking_read_project(around_);\n  co_await take(fresh);\n}\n", {}),
        ("src/cli/each.cpp", "Task<Result<int>> f() {\n  STINT_CO_TRY(auto bytes, source_.blocking_read());\n}\n", {}),
        ("src/cli/each.cpp", "int f() {\n  auto body = [&](Scope& scope) -> Task<> {\n    for (auto& each : all) { if (each) blocking_look(); }\n    co_return;\n  };\n}\n", {}),
    ],
    "blocking-name": [
        ("src/fleet/location.cpp", "auto find_again(Location where) {\n  return [where] { return blocking_find_daemon(where); };\n}\n", {}),
        ("src/project/planner.cpp", "Result<Spec> Planner::plan(const Order& order) {\n  STINT_TRY(auto folder, blocking_find_folder(order));\n  return folder;\n}\n", {}),
        ("src/app/daemon.cpp", "bool Daemon::is_short() {\n  const auto [used, most] = os::blocking_descriptors();\n  return used == most;\n}\n", {}),
        ("src/pool/worker.cpp", "void run() { blocking_look(); }\n", {}),
    ],
    "test-sleep": [
        ("core/src/semaphore_test.cpp", "TEST(A, b) { std::this_thread::sleep_for(1ms); }\n", {}),
        ("src/pool/worker_test.cpp", "TEST(A, b) { usleep(1000); }\n", {}),
    ],
    "unread-check": [
        ("src/driver/x_test.cpp", "TEST(A, b) {\n  rc::check([](int n) { RC_ASSERT(n == n); });\n}\n", {}),
    ],
    "asio-coroutines": [
        ("src/http/server.cpp", "asio::co_spawn(io, serve(), asio::detached);\n", {}),
        ("src/http/server.cpp", "asio::awaitable<void> serve();\n", {}),
        ("examples/echo.cpp", "co_await socket.async_connect(x, asio::use_awaitable);\n", {}),
    ],
    "std-waiting": [
        ("core/src/semaphore_test.cpp", "std::counting_semaphore<> s(3);\n", {}),
        ("core/src/semaphore_test.cpp", "std::binary_semaphore s(0);\n", {}),
        ("src/pool/worker.cpp", "#include <latch>\n", {}),
        ("src/pool/worker.cpp", "std::barrier sync(3);\n", {}),
        ("src/pool/worker.cpp", "std::atomic<bool> done_ = false;\nvoid f() { done_.wait(false); }\n", {}),
        ("src/pool/worker.cpp", "std::atomic_flag flag;\nvoid f() { flag.notify_one(); }\n", {}),
    ],
    "print": [
        ("src/cli/ls.cpp", 'void f() { fmt::print("{}", 1); }\n', {}),
        ("src/app/main.cpp", 'void f() { std::println("x"); }\n', {}),
    ],
    "clock": [
        ("src/pool/worker.cpp", "auto t = std::chrono::steady_clock::now();\n", {}),
        ("src/queue/ready.cpp", "auto t = Clock::now();\n", {}),
        ("src/store/memory.cpp", "auto t = std::chrono::system_clock::now();\n", {}),
        ("src/engine/ids.cpp", "int x = rand();\n", {}),
        ("src/engine/ids.cpp", "std::random_device seed;\n", {}),
    ],
    "listed": [
        ("core/src/forgotten_test.cpp", "int x;\n", {"core/CMakeLists.txt": "stint_layer(core TESTS src/other_test.cpp)"}),
        ("core/src/a_test.cpp", "int x;\n", {"core/CMakeLists.txt": "# src/a_test.cpp\nstint_layer(core)"}),
        ("core/src/task.cpp", "int x;\n", {"core/CMakeLists.txt": "stint_layer(core SOURCES src/task.cpp.old src/my_task.cpp)"}),
        ("examples/fetch.cpp", "int x;\n", {"examples/CMakeLists.txt": "stint_example(fetch_all)"}),
        ("core/include/stint/new.hpp", HEADER, {"core/CMakeLists.txt": "stint_layer(core)"}),
    ],
    "depends": [
        ("src/queue/CMakeLists.txt", "stint_layer(queue SOURCES a.cpp DEPENDS stint::core)", {"src/queue/a.cpp": '#include "domain/run.hpp"\n'}),
        ("src/queue/CMakeLists.txt", "stint_layer(queue SOURCES a.cpp)", {"src/queue/a.hpp": '#include "stint/task.hpp"\n'}),
        ("src/queue/CMakeLists.txt", "stint_layer(queue SOURCES a.cpp TESTS a_test.cpp DEPENDS stint::core)",
         {"src/queue/a_test.cpp": '#include "stint/task.hpp"\n'}),  # only its test includes it
        ("src/app/CMakeLists.txt", "add_executable(stint main.cpp)\ntarget_link_libraries(stint PRIVATE stint::cli)\n",
         {"src/app/main.cpp": '#include "cli/run.hpp"\n#include "os/process.hpp"\n'}),
    ],
    "docs-code": [
        ("docs/library.md", CODE_IN_DOCS.format("Semaphore slots(4);\n"), {"examples/fetch.cpp": FETCH}),
        ("docs/library.md", CODE_IN_DOCS.format(""), {"examples/fetch.cpp": "int main() {}\n"}),
        ("README.md", CODE_IN_DOCS.format(""), {}),
        ("docs/library.md", "```cpp\nint x;\n```\n", {}),
    ],
    "docs-paths": [
        ("README.md", "See `core/src/gone.cpp`.\n", {}),
        ("docs/library.md", "Include `stint/gone.hpp`.\n", {}),
        ("docs/library.md", "Read `pool/worker.cpp` first.\n", {}),
        ("docs/library.md", "Any of `core/src/*_gone.cpp`.\n", {"core/src/a_test.cpp": ""}),
        ("docs/library.md", "A [link](gone.md).\n", {"gone.md": ""}),
    ],
}

GOOD = {
    "layer": [
        ("src/queue/ready.cpp", '#include "queue/ready_core.hpp"\n#include "domain/run.hpp"\n#include "stint/scope.hpp"\n', {}),
        ("src/agent/agent.cpp", '#include "domain/agent.hpp"\n', {}),
        ("src/app/main.cpp", '#include "http/server.hpp"\n#include "limit/slots.hpp"\n', {}),
        ("src/queue/ready.cpp", '// #include "limit/slots.hpp"\n', {}),
        ("tests/simulation/engine.cpp", '#include "limit/slots.hpp"\n', {}),
        ("core/src/semaphore_test.cpp", '#include "test_support.hpp"\n', {}),
    ],
    "assembly": [
        ("src/cli/run.cpp", '#include "fleet/one_run.hpp"\n#include "engine/views.hpp"\n#include "store/store.hpp"\n', {}),
        ("src/cli/run_test.cpp", '#include "store/memory_store.hpp"\n', {}),
        ("src/fleet/node.cpp", '#include "engine/engine.hpp"\n', {}),
    ],
    "core-headers": [
        ("core/include/stint/asio.hpp", HEADER + "#include <boost/asio.hpp>\n", {}),
        ("core/src/asio.cpp", "#include <boost/asio.hpp>\n", {}),
    ],
    "header": [("src/domain/run.hpp", HEADER, {})],
    "sql": [
        ("src/store/sql/claim.cpp", 'auto text = "SELECT id FROM runs";\n', {}),
        ("src/engine/rescue.cpp", '// SELECT id FROM runs\nauto text = "Please SELECTED an UPDATE";\n', {}),
    ],
    "json-names": [
        ("src/cli/demo.cpp", 'if (form == Form::json && locale.find("utf8") != npos) run();\n', {}),
        ("src/wire/run.cpp", 'json::object body;\nbody["queue_size"] = 3;\n', {}),
        ("src/model/chat_stream.cpp", 'json::object body;\nuse(text_at(body, "model"), body["usage"]);\n', {}),
        ("src/cli/ls.cpp", 'json::value v;\nuse(width_at(v, "state"));\n', {}),
        ("src/cli/ls.cpp", 'std::map<std::string, int> widths{{"state", 8}};\nuse(widths["state"]);\n', {}),
    ],
    "words": [
        ("src/fleet/submit.cpp", "int submission, wishful, worker;\n", GLOSSARY),
        ("src/store/sql/postgres/0001_tables.sql", "CREATE TABLE node (node_id int);\n", GLOSSARY),
    ],
    "driver-names": [
        ("src/driver/registry.cpp", 'DriverEntry{"claude", make_claude};\n', DRIVERS),
        ("src/model/gemini_stream.cpp", 'constexpr auto kName = "claude";\n', DRIVERS),
        ("src/project/snapshot_test.cpp", 'EXPECT_EQ(driver, "claude");\n', DRIVERS),
        ("src/cli/agents.cpp", '// as claude does\nhelp("those in .claude/agents; claude-opus; claude.md");\n', DRIVERS),
        ("src/agent/schema.cpp", 'fields.find("command");\n', DRIVERS),
    ],
    "http-status": [
        ("src/http/routes.cpp", "reply.status = 503;\n", {}),
        ("src/model/anthropic_stream.cpp", "if (note.status == 503) wait();\n", {}),
        ("src/engine/submit.cpp", "// answers 503\nstatus = 3; limit = 500;\n", {}),
    ],
    "size": [
        ("core/src/semaphore.cpp", "int x;\n" * 600, {}),
        ("core/src/semaphore.cpp", LONG_FUNCTION.replace("  x += 1;\n", "", 2), {}),
        ("core/src/semaphore.hpp", "class A {\n" + "  int f() { return 1; }\n" * 200 + "};\n", {}),
        ("core/src/table.cpp", "const int kTable[] = {\n" + "  1'000,\n" * 300 + "};\n", {}),
        ("src/store/sql/postgres/0001_claim.sql", LONG_SQL.replace("  p := p + 1;\n", "", 1) * 3, {}),
        ("tests/integration/host_test.py", LONG_PYTHON.replace("        a = 1\n", "", 2) * 3, {}),
        ("dev", "#!/bin/sh\n" + LONG_SHELL.replace("  for", "  :;for", 1).replace("  done\n", "", 2) * 2, {}),
        ("docs/openapi.json", "{}\n" * 700, {}),
        ("bench/peers/python/pool.py", "a = 1\n" * 700, {}),
    ],
    "names": [("src/pool/worker.hpp", "Task<Result<int>> run(int x);\nauto async_acquire(int x);\n", {})],
    "todo": [("src/pool/worker.cpp", "// The todo list of the loop.\n", {})],
    "language": [
        ("core/src/semaphore.cpp", "// There are no waiters. In vaingloriousness nothing matches.\n", {}),
        ("tests/streams/claude/ok.json", "somebody else's words", {}),
    ],
    "blocking": [
        ("src/pool/worker.cpp", "Task<void> f() {\n  co_await sleep_for(1s);\n}\n", {}),
        ("src/driver/resolve.cpp", "int blocking_resolve(Name name) {\n  return getaddrinfo(name, nullptr, nullptr, &found);\n}\n", {}),
        ("src/os/process.cpp", "void f() { waitpid(pid, &status, 0); }\n", {}),
        ("src/pool/worker.cpp", "// std::this_thread::sleep_for would block\n", {}),
    ],
    "blocking-await": [
        ("src/app/daemon.cpp", "Task<> Daemon::reload() {\n  auto fresh = co_await offload(files_, [this] { return blocking_read_project(around_); });\n}\n", {}),
        ("src/cli/ls.cpp", "int f() {\n  auto around = blocking_look_around();\n  auto body = [&]() -> Task<> { co_await list(around); };\n  return blocking_run(body());\n}\n", {}),
        ("src/agent/files.hpp", "/// Reads.\n#pragma once\nResult<> blocking_read(Path path);\n", {}),
    ],
    "blocking-name": [
        ("src/project/planner.cpp", "Result<Spec> blocking_plan(const Order& order) {\n  return blocking_find_folder(order);\n}\n", {}),
        ("src/app/daemon.cpp", "auto Daemon::list() {\n  return offload(files_, [snapshot = snapshot_] { return blocking_list(*snapshot); });\n}\n", {}),
        ("src/app/writer.cpp", "Writer() : thread_([this] { blocking_write_lines(); }) {}\n", {}),
        ("src/cli/ls.cpp", "int LsCommand::run() {\n  const auto around = blocking_read_environment();\n  return list(around);\n}\n", {}),
        ("src/agent/settings.cpp", "void load() {\n  const auto blocking_add = [&](const Path& path) { return blocking_read_file(path); };\n}\n", {}),
    ],
    "test-sleep": [
        ("core/src/semaphore_test.cpp", "TEST(A, b) { simulator.advance(1s); }\n", {}),
        ("tests/chaos/kill.cpp", "void f() { std::this_thread::sleep_for(1ms); }\n", {}),
    ],
    "unread-check": [
        ("src/driver/x_test.cpp", "TEST(A, b) {\n  EXPECT_TRUE(rc::check([](int n) { RC_ASSERT(n == n); }));\n}\n", {}),
    ],
    "asio-coroutines": [
        ("src/http/server.cpp", "co_await socket.async_connect(x, use_task);\nbool detached = false; // not co_spawn\n", {}),
        ("bench/peers/cpp/asio_sem.cpp", "asio::co_spawn(io, serve(), asio::detached);\n", {}),
    ],
    "std-waiting": [
        ("core/src/semaphore.cpp", "std::atomic<int> count_;\nvoid f() { ready_.wait(lock); count_.load(); }\n", {}),
        ("bench/peers/cpp/threads.cpp", "std::counting_semaphore<> s(3);\n", {}),
    ],
    "print": [
        ("src/cli/ls.cpp", 'void f() { print_out("{}", fmt::format("{}", 1)); }\n', {}),
        ("examples/fetch.cpp", 'void f() { fmt::print("{}", 1); }\n', {"examples/CMakeLists.txt": "stint_example(fetch)"}),
    ],
    "clock": [
        ("src/pool/worker.cpp", "auto t = clock.now();\nint operand = random(3);\n", {}),
        ("core/src/asio.cpp", "auto t = std::chrono::steady_clock::now();\n", {}),
        ("src/app/main.cpp", "auto t = std::chrono::steady_clock::now();\n", {}),
    ],
    "listed": [
        ("core/src/a_test.cpp", "int x;\n", {"core/CMakeLists.txt": "stint_layer(core TESTS\n  src/a_test.cpp)"}),
        ("core/include/stint/task.hpp", HEADER, {"core/CMakeLists.txt": "FILES include/stint/task.hpp)"}),
        ("examples/fetch.cpp", "int x;\n", {"examples/CMakeLists.txt": "stint_example(fetch)"}),
        ("tests/chaos/kill.cpp", "int x;\n", {"tests/CMakeLists.txt": "add_executable(kill chaos/kill.cpp)"}),
    ],
    "depends": [
        ("src/queue/CMakeLists.txt",
         "stint_layer(queue  # DEPENDS stint::os\n  SOURCES a.cpp\n  TESTS a_test.cpp world.cpp\n  DEPENDS stint::core stint::domain ${X} stint_fmt\n  LABELS tsan)",
         {"src/queue/a.cpp": '#include "queue/a.hpp"\n#include "domain/run.hpp"\n', "src/queue/a.hpp": '#include "stint/task.hpp"\n',
          "src/queue/a_test.cpp": '#include "os/process.hpp"\n', "src/queue/world.hpp": '#include "os/fd.hpp"\n',
          "src/queue/test_support.hpp": '#include "os/fd.hpp"\n'}),
        ("src/app/CMakeLists.txt", "add_executable(stint main.cpp)\ntarget_link_libraries(stint PRIVATE stint::cli CLI11::CLI11)\n",
         {"src/app/main.cpp": '#include "cli/run.hpp"\n', "src/app/serve_bench.cpp": '#include "os/fd.hpp"\n'}),
    ],
    "docs-code": [
        ("docs/library.md", CODE_IN_DOCS.format("Semaphore slots(3);\n  use(slots);\n"), {"examples/fetch.cpp": FETCH}),
        ("docs/library.md", "<!-- sketch: shows the shape only -->\n```cpp\nint x;\n```\n", {}),
        ("docs/library.md", "```sh\n./dev test\n```\n", {}),
    ],
    "docs-paths": [
        ("README.md", "See `core/src/a.cpp`, `stint/a.hpp`, `core/src/*.cpp`, `core/`, `docs/decisions/NNNN-title.md`.\n",
         {"core/src/a.cpp": "", "core/include/stint/a.hpp": ""}),
        ("README.md", "Makes `build/release/stint`; asks `POST /v1/runs`; `x_test.cpp`; `and/or`.\n```\ncore/src/gone.cpp\n```\n", {}),
        ("docs/library.md", "A [link](../README.md#top), [another](https://example.org/x).\n", {"README.md": ""}),
    ],
}


def found(rule, sample):
    path, text, others = sample
    tree = tidy.Tree({**others, path: text})
    return [finding for finding in tidy.check(tree, {rule}) if finding.path == path]


class Rules(unittest.TestCase):
    def test_every_rule_has_a_bad_and_a_good_sample(self):
        self.assertEqual(set(tidy.RULES), set(BAD))
        self.assertEqual(set(tidy.RULES), set(GOOD))

    def test_every_bad_sample_is_found(self):
        for rule, samples in BAD.items():
            for sample in samples:
                with self.subTest(rule=rule, sample=sample[:2]):
                    self.assertTrue(found(rule, sample))

    def test_every_good_sample_passes(self):
        for rule, samples in GOOD.items():
            for sample in samples:
                with self.subTest(rule=rule, sample=sample[:2]):
                    self.assertEqual([], [str(finding) for finding in found(rule, sample)])

    def test_every_exemption_names_a_rule_and_a_reason(self):
        for (rule, _), reason in tidy.EXEMPT.items():
            self.assertIn(rule, {"*", *tidy.RULES})
            self.assertTrue(reason)

    def test_every_exemption_names_something_that_exists(self):
        for _, prefix in tidy.EXEMPT:
            self.assertTrue(list(tidy.ROOT.glob(prefix.rstrip("/") + "*")), prefix)

    def test_a_finding_names_the_line(self):
        text = "int a;\nint b;\nauto t = std::chrono::steady_clock::now();\n"
        self.assertEqual([3], [finding.line for finding in found("clock", ("src/pool/a.cpp", text, {}))])


class Reading(unittest.TestCase):
    def test_comments_and_strings_are_blanked_in_place(self):
        text = 'int a = 1\'000; // co_spawn\nauto s = "co_spawn \\" x"; /* a\nb */ auto r = R"x(co_spawn)" )x"; char c = \'"\';\n'
        code = cpp.without(text)
        self.assertNotIn("co_spawn", code)
        self.assertEqual([len(line) for line in text.split("\n")], [len(line) for line in code.split("\n")])
        self.assertIn("int a = 1'000;", code)
        self.assertIn("auto r =", code)
        self.assertIn("char c =", code)

    def test_functions_are_found_by_their_braces(self):
        text = """
namespace stint {
struct Options { int a = 3; Options() = default; };
Semaphore::Semaphore(int n) : n_{n}, name_("x") {
  auto f = [this](int x) { return x; };
}
auto make() -> Result<int> { return 3; }
int Semaphore::count() const noexcept {
  if (n_ > 3) {
    return 3;
  }
  return n_;
}
template <class T> requires Small<T>
void each(T t) { t(); }
TEST(Semaphore, waits) { }
constexpr int kValues[] = {1, 2};
}  // namespace stint
"""
        names = [function.name for function in cpp.functions(cpp.without(text))]
        self.assertEqual(["Options", "Semaphore", "make", "count", "each", "TEST"][1:], names)


class Program(unittest.TestCase):
    def run_on(self, files, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            command = [sys.executable, str(pathlib.Path(tidy.__file__)), "--root", folder, *arguments]
            done = subprocess.run(command, capture_output=True, text=True)
            return done, {path: (root / path).read_text() for path in files}

    def test_fails_and_names_file_line_and_rule(self):
        done, _ = self.run_on({"src/pool/a.cpp": "int x = rand();\n", "src/pool/CMakeLists.txt": "a.cpp"})
        self.assertEqual(1, done.returncode)
        self.assertIn("src/pool/a.cpp:1: [clock] rand", done.stdout)

    def test_passes_on_a_clean_tree_and_ignores_what_is_built(self):
        done, _ = self.run_on({"src/pool/a.cpp": "int x;\n", "src/pool/CMakeLists.txt": "a.cpp", "build/b.cpp": "rand();\n"})
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)

    def test_fix_docs_copies_the_code_and_is_then_content(self):
        files = {
            "docs/a.md": "Before.\n\n" + CODE_IN_DOCS.format("old\n") + "\nAfter.\n",
            "examples/fetch.cpp": FETCH,
            "examples/CMakeLists.txt": "fetch.cpp",
        }
        done, after = self.run_on(files, "--fix-docs")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual("Before.\n\n" + CODE_IN_DOCS.format("Semaphore slots(3);\n  use(slots);\n") + "\nAfter.\n", after["docs/a.md"])
        done, _ = self.run_on(after)
        self.assertEqual(0, done.returncode, done.stdout)


if __name__ == "__main__":
    unittest.main()
