/// What `stint doctor` thinks of what it saw: facts in, checks out, each with a remedy where something is to be done.
/// Pure, so that hosts which nobody has at hand (NFS, an old CLI, a full disk) can be judged in tests.
#pragma once

#include "agent/problem.hpp"
#include "agent/trust.hpp"
#include "limit/listing.hpp"
#include "os/probe.hpp"
#include "wire/doctor.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::cli {

/// A program that Stint starts.
struct ProgramFacts {
  std::string name;  ///< `claude`
  std::string path;  ///< empty: not on PATH
  os::Answer version;
  std::vector<std::string> agents;  ///< those of this project that run with it
  bool is_default = false;          ///< agents that name no driver run with it
};

/// A secret in the environment or a file: only whether it is there.
struct KeyFacts {
  std::string name;  ///< of the variable or the file
  bool present = false;
  std::string account;  ///< that is configured to need it; empty: none
  bool is_file = false;
};

/// A directory of lock files.
struct HomeFacts {
  std::string category;  ///< `limits` or `agents`
  std::string path;
  os::DirectoryProbe probe;
};

struct CgroupFacts {
  std::string own;        ///< empty: no cgroup v2
  std::string delegated;  ///< empty: not ours to divide
  os::CgroupProbe probe;
};

struct TrustFacts {
  std::vector<agent::TrustedThing> things;  ///< that need it
  bool trusted = false;
  std::string problem;  ///< the record can't be believed
};

struct StoreFacts {
  std::string shown;    ///< where it is
  bool exists = true;   ///< else the first run makes it
  std::string problem;  ///< why it can't be used; empty: it was opened and read
  std::uint64_t runs = 0;
};

struct DoctorFacts {
  ProgramFacts git;
  std::string folder;
  bool in_repository = false;
  os::Answer repository;        ///< of `git rev-parse --show-toplevel` there
  std::string project_problem;  ///< a `.git` that leads nowhere

  std::vector<ProgramFacts> clis;
  std::vector<KeyFacts> keys;
  CgroupFacts cgroup;
  std::vector<HomeFacts> homes;
  std::string homes_problem;  ///< why nobody can say where they are
  std::uint64_t inotify_instances_max = 0;
  std::vector<limit::Listing> limits;
  std::vector<agent::Problem> settings_problems;
  std::vector<agent::Problem> agents_problems;
  std::size_t agents = 0;
  os::ResourceLimits resources;
  TrustFacts trust;
  StoreFacts store;
};

// Below these a fleet runs into a wall. Each agent CLI has some 30 descriptors and 10 to 50 processes and threads.
inline constexpr std::uint64_t kDescriptorsMin = 1024;
inline constexpr std::uint64_t kProcessesMin = 1024;
inline constexpr std::uint64_t kInotifyInstancesMin = 128;  ///< the kernel's default; each waiting `stint` takes one
inline constexpr std::uint64_t kFreeBytesMin = 64U << 20U;  ///< lock files are tiny; what agents write is not
inline constexpr std::uint64_t kFreeFilesMin = 1000;

/// In a fixed order; ids are unique.
[[nodiscard]] std::vector<wire::Check> judge(const DoctorFacts& facts);

/// The first `1.2.3` in a text.
struct Version {
  int major = 0, minor = 0, patch = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
[[nodiscard]] std::optional<Version> find_version(std::string_view text);

}  // namespace stint::cli
