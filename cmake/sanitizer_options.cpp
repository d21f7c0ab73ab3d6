// The sanitizers' settings, compiled into every program of a sanitizer build. Their variables (ASAN_OPTIONS, …) still
// override them.
extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): these names are the sanitizers' interface.
const char* __asan_default_options();
const char* __ubsan_default_options();
const char* __tsan_default_options();
const char* __tsan_default_suppressions();

const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_init_order=1:check_initialization_order=1:detect_leaks=1:"
         "external_symbolizer_path=/usr/lib/llvm-19/bin/llvm-symbolizer";
}

const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

const char* __tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1:external_symbolizer_path=/usr/lib/llvm-19/bin/llvm-symbolizer";
}

// TSan does not model the fence in Asio's reference count (its issues 1193 and 1760).
const char* __tsan_default_suppressions() { return "race:*ref_count_down*\n"; }
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
