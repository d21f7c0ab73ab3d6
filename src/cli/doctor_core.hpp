/// The rules of `stint doctor`: facts in, checks out, each with a remedy if action is needed. Pure, so that tests can
/// judge hosts that are not at hand (NFS, an old CLI, a full disk).
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
  std::vector<std::string> agents;  ///< agents of this project that use it
  bool is_default = false;          ///< agents without a driver use it
};

/// A secret in the environment or a file: only whether it exists.
struct KeyFacts {
  std::string name;  ///< of the variable or the file
  bool present = false;
  std::string account;  ///< the account whose settings name it; empty: none
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
  std::string delegated;  ///< empty: none is delegated to this user
  os::CgroupProbe probe;
};

struct TrustFacts {
  std::vector<agent::TrustedThing> things;  ///< that need trust
  bool trusted = false;
  std::string problem;  ///< why the record of trust is not valid
};

struct StoreFacts {
  std::string shown;    ///< where it is
  bool exists = true;   ///< false: the first run creates it
  std::string problem;  ///< why it can't be used; empty: it was opened and read
  std::uint64_t runs = 0;
};

struct DoctorFacts {
  ProgramFacts git;
  std::string folder;
  bool in_repository = false;
  os::Answer repository;        ///< of `git rev-parse --show-toplevel` in the folder
  std::string project_problem;  ///< a `.git` that leads nowhere

  std::vector<ProgramFacts> clis;
  std::vector<KeyFacts> keys;
  CgroupFacts cgroup;
  std::vector<HomeFacts> homes;
  std::string homes_problem;  ///< why the directories can't be determined
  std::uint64_t inotify_instances_max = 0;
  std::vector<limit::Listing> limits;
  std::vector<agent::Problem> settings_problems;
  std::vector<agent::Problem> agents_problems;
  std::size_t agents = 0;
  os::ResourceLimits resources;
  TrustFacts trust;
  StoreFacts store;
};

// A fleet needs at least these. Each agent CLI has some 30 descriptors and 10 to 50 processes and threads.
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
