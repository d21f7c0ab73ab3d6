#include "playground/presets/lessons.hpp"
#include "stint/notification.hpp"

namespace stint::playground::lesson {

using namespace std::chrono_literals;

// [show]
static Task<> produce(TokenMeter& meter, Notification& done) {
  for (int i = 0; i < 50; ++i) {
    co_await sleep_for(100ms);
    meter.count();  //@ token
  }
  done.notify();
}

/// The race is lost, but the producer runs elsewhere: it goes on, and every token is paid for.
static Task<> race_a_clock(Scope& elsewhere, TokenMeter& meter, Notification& done) {
  const TokenMeter::Reader reader(meter);
  elsewhere.spawn(produce(meter, done));
  (void)co_await done.wait(done.count(), 1050ms);
}

/// The timeout owns the producer: it ends with it.
static Task<> own_the_producer(TokenMeter& meter, Notification& done) {
  const TokenMeter::Reader reader(meter);
  (void)co_await with_timeout(1050ms, produce(meter, done));
}

void owned_timeout(Stage& stage) {
  Notification done;
  stage.spawn("race", race_a_clock(stage.elsewhere(), stage.tokens(), done));
  stage.advance(6s);
  stage.spawn("owner", own_the_producer(stage.tokens(), done));
  stage.run();
}
// [/show]

}  // namespace stint::playground::lesson
