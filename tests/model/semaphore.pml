/*
 * The slow path of stint::Semaphore (core/src/semaphore.cpp) for the model checker spin; check.py runs it.
 *
 * One step here is one atomic operation there, or a stretch under the lock that no other thread can observe. So a fast
 * path is a load and then a compare-and-swap, and anything may happen between the two. Memory is sequentially
 * consistent: wrong memory orders are left to the thread sanitizer. Priorities, bypass and holders are left out.
 *
 * The rules:
 * 1. `word` is 2 × free units (negative: debt) + kSlow. kSlow is set exactly while a thread waits or the semaphore is
 *    closed. While it is set, the word changes only under the lock; while it is clear, only by compare-and-swap.
 * 2. A thread that changes the head of the line, the free units or the capacity settles: it grants from the head, at
 *    most kBatch waiters in one hold of the lock. Then it yields the lock: unlocks, wakes their executors, locks again,
 *    and checks again. Others may have done the rest meanwhile; then kSlow may be clear, and the settler may no longer
 *    store the word.
 * 3. A waiter is posted to its executor under the lock that decided it; only the wake-up comes after the lock.
 * 4. A thread that yields the lock is counted, and the destructor waits for it: the units it returned may have been the
 *    last ones out, so that the owner may destroy the semaphore at any moment.
 *
 * Scenes are chosen with -D: THREADS (each acquires once: the first all of CAPACITY, the others one unit), RESIZES (how
 * often the capacity changes), CLOSES (a thread closes). So are the faults, one at a time. check.py lists both.
 *
 * Bounds. Three threads suffice for every known fault; with four and a capacity of 3, new requests arrive while a
 * settler yields the lock, and a large head that leaves has two followers. A resize goes to any of 0 (pause), 1 (debt,
 * and the large request becomes impossible), 2 and 3; two of them give growth after shrinking. A batch of 1 makes a
 * settler yield as often as possible. The scenes together reach every step below, and check.py fails if they do not.
 */

#ifndef THREADS
#define THREADS 3
#endif
#ifndef RESIZES
#define RESIZES 0
#endif
#ifdef CLOSES
#define CLOSERS 1
#else
#define CLOSERS 0
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif
#define WEIGHT(id) ((id) == 0 -> CAPACITY : 1)
#define kBatch 1
#define kSlow 1

#define FREE (word >> 1)
#define IS_SLOW(value) (((value) & kSlow) != 0)
#define SET_OF(id) (1 << (id))
#define IMPOSSIBLE(id) (capacity != 0 && WEIGHT(id) > capacity)

mtype = { idle, waiting, granted, gave_up, shut, invalid };

/* State of the semaphore. */
short word = 2 * CAPACITY;
byte capacity = CAPACITY;
bool closed;
bool locked;
byte settling;              /* threads that yield the lock */
byte line[THREADS];
byte line_length;
mtype state[THREADS] = idle;

/* State of the executors. Sets of threads are bit masks. */
byte posted;                /* decided, in the queues of their executors */
byte woken;                 /* executors were woken for them */

/* State for the checks only. */
short units_out;            /* granted and not yet returned */
short units_allowed = CAPACITY;
byte in_line;               /* lined up and not decided */
byte ahead[THREADS];        /* those of them that lined up earlier */
byte gone;                  /* frames and waiters are destroyed */
byte inside;                /* threads in the code of the semaphore */
byte finished;              /* finished requests, with their units returned */
byte changers = CLOSERS + (RESIZES > 0 -> 1 : 0);
bool destroyed;

/* ---- Checks ---- */

#define ALIVE assert(!destroyed)
#define BALANCED assert(FREE == units_allowed - units_out)

inline check_grant(id) {
  assert((ahead[id] & in_line) == 0);              /* first in, first out */
  assert(units_out + WEIGHT(id) <= units_allowed); /* never too many out; nothing is granted into a debt */
  assert(!closed);
  units_out = units_out + WEIGHT(id)
}

inline check_fast_grant(id) {
  assert(in_line == 0);                            /* no barging */
  check_grant(id)
}

/* No thread is in the semaphore's code: these hold until the next call. */
inline check_quiet() {
  assert(!locked && settling == 0);
  BALANCED;
  assert(IS_SLOW(word) == (line_length > 0 || closed));
  assert((in_line == 0) == (line_length == 0));
  assert(line_length == 0 || (WEIGHT(line[0]) > FREE && !closed)); /* no lost wake-up: the head has to wait */
  assert(line_length == 0 || !IMPOSSIBLE(line[0]));
  assert((posted & ~woken) == 0)                   /* and no executor sleeps on a decision */
}

inline enter() { inside++ }

inline exit() {
  atomic {
    inside--;
    if
    :: inside == 0 && !destroyed -> check_quiet()
    :: else
    fi
  }
}

/* For a release `back` units return; for a resize `grown` more are allowed than before. */
inline account(back, grown) {
  units_out = units_out - back;
  units_allowed = units_allowed + grown;
  finished = finished + (back > 0 -> 1 : 0)
}

/* ---- Lock, line, executors ---- */

inline lock() { atomic { !locked -> ALIVE; locked = true } }

inline unlock() { atomic { ALIVE; BALANCED; locked = false } }

inline link(id) {
  line[line_length] = id;
  line_length++;
  state[id] = waiting;
  ahead[id] = in_line;
  in_line = in_line | SET_OF(id)
}

inline unlink(id) {
  at = 0;
  do
  :: at < line_length && line[at] != id -> at++
  :: else -> break
  od;
  assert(at < line_length);
  line_length--;
  do
  :: at < line_length -> line[at] = line[at + 1]; at++
  :: else -> break
  od;
  line[at] = 0;
  at = 0
}

/* Decides a wait, exactly once. */
inline decide(id, outcome) {
  assert(state[id] == waiting);
  unlink(id);
  state[id] = outcome;
  in_line = in_line & ~SET_OF(id);
  ahead[id] = 0
}

inline post(set) {
  assert(((set) & gone) == 0);
  posted = posted | (set)
}

inline decide_and_post(id, outcome) {
  decide(id, outcome);
  wakes = wakes | SET_OF(id);
#ifndef POST_UNLOCKED
  post(SET_OF(id))
#endif
}

inline flush_wakes() {
  atomic {
#ifdef POST_UNLOCKED
    post(wakes);
#endif
#ifndef FORGET_WAKE
    woken = woken | wakes;
#endif
    wakes = 0
  }
}

inline yield_lock() {
  atomic { settling++; unlock() };
  flush_wakes();
  atomic { !locked -> ALIVE; locked = true; settling-- }
}

/* ---- The fast paths: `done` is set on success ---- */

#define LOAD ALIVE; seen = word

#ifdef BARGE
#define MAY_TAKE(id) (seen >= 2 * WEIGHT(id))
#else
#define MAY_TAKE(id) (!IS_SLOW(seen) && seen >= 2 * WEIGHT(id))
#endif

inline take_fast(id) {
  atomic { LOAD; done = false };
  do
  :: atomic { !done && MAY_TAKE(id) ->
       ALIVE;
       if
       :: word == seen -> word = seen - 2 * WEIGHT(id); check_fast_grant(id); done = true
       :: else -> seen = word
       fi
     }
  :: atomic { else -> seen = 0; break }
  od
}

#ifdef FORGET_DEBT
#define SUM(units) (seen + 2 * (units) < 0 -> 0 : seen + 2 * (units))
#else
#define SUM(units) (seen + 2 * (units))
#endif

inline add_fast(back, grown) {
  atomic { LOAD; done = false };
  do
  :: atomic { !done && !IS_SLOW(seen) ->
       ALIVE;
       if
       :: word == seen -> word = SUM(back + grown); account(back, grown); done = true
       :: else -> seen = word
       fi
     }
  :: atomic { else -> seen = 0; break }
  od
}

/* ---- The slow paths ---- */

/* With the lock held and kSlow set. */
inline add_slow(back, grown) {
  atomic { LOAD };
  atomic { ALIVE; word = SUM(back + grown); account(back, grown); seen = 0 }
}

#ifdef UNLOCKED_STORE
#define MAY_STORE true
#else
#define MAY_STORE IS_SLOW(seen)
#endif
#ifdef DROP_SLOW
#define STAYS_SLOW closed
#else
#define STAYS_SLOW (closed || line_length > 0)
#endif
#ifdef GRANT_AFTER_CLOSE
#define MAY_GRANT true
#else
#define MAY_GRANT !closed
#endif
#define HEAD_FITS (line_length > 0 && MAY_GRANT && WEIGHT(line[0]) <= free)

inline grant_batch() {
  batch = 0;
  do
  :: HEAD_FITS && batch < kBatch ->
     head = line[0];
     free = free - WEIGHT(head);
     batch++;
     check_grant(head);
     decide_and_post(head, granted)
  :: else -> break
  od;
  more = HEAD_FITS;
  head = 0;
  batch = 0
}

/* With the lock held, also afterwards. */
inline settle() {
  do
  :: atomic { LOAD; free = seen >> 1; more = MAY_STORE; seen = 0 };
     if
     :: atomic { !more -> free = 0; break } /* other threads have done the rest */
     :: atomic { else -> grant_batch() }
     fi;
     atomic { ALIVE; word = 2 * free + (STAYS_SLOW -> kSlow : 0); free = 0 };
     if
     :: atomic { !more -> break }
     :: atomic { else -> more = false }; yield_lock()
     fi
  od
}

/* The waiter ends granted or in the line. */
inline take_or_link(id) {
  atomic { LOAD };
#ifdef STALE_LINE_UP
  atomic { word = word | kSlow; link(id); seen = 0 }
#else
  do
  :: atomic { IS_SLOW(seen) && (line_length > 0 || seen - kSlow < 2 * WEIGHT(id)) -> link(id); seen = 0; break }
  :: atomic { IS_SLOW(seen) && line_length == 0 && seen - kSlow >= 2 * WEIGHT(id) -> /* a resizer has yielded the lock */
       word = seen - 2 * WEIGHT(id);
       check_fast_grant(id);
       state[id] = granted;
       seen = 0;
       break
     }
  :: atomic { else ->
       if
       :: word != seen -> seen = word
       :: word == seen && seen < 2 * WEIGHT(id) -> word = seen | kSlow; seen = word
       :: word == seen && seen >= 2 * WEIGHT(id) ->
          word = seen - 2 * WEIGHT(id);
          check_fast_grant(id);
          state[id] = granted;
          seen = 0;
          break
       fi
     }
  od
#endif
}

inline line_up(id) {
  lock();
  if
  :: atomic { closed -> state[id] = shut }
  :: atomic { !closed && IMPOSSIBLE(id) -> state[id] = invalid }
  :: else ->
     take_or_link(id);
     assert(line_length == 0 || line[0] != id || WEIGHT(id) > FREE) /* a new head has nothing to settle */
  fi;
  unlock()
}

inline give_back(id) {
  add_fast(WEIGHT(id), 0);
  if
  :: done
  :: else ->
     lock();
     add_fast(WEIGHT(id), 0); /* the line may have emptied meanwhile */
     if
     :: done
     :: else -> add_slow(WEIGHT(id), 0); settle()
     fi;
     unlock();
     flush_wakes()
  fi
}

#ifdef FORGET_FOLLOWERS
#define SETTLES_AFTER_LEAVING (line_length == 0)
#else
#define SETTLES_AFTER_LEAVING (first || line_length == 0)
#endif

/* The waiter gives up; no effect if the wait was decided before. */
inline leave(id, why) {
  lock();
  if
#ifndef BLIND_CANCEL
  :: state[id] != waiting
#endif
  :: atomic { else -> first = line[0] == id; decide(id, why) };
     if
     :: atomic { SETTLES_AFTER_LEAVING -> first = false }; settle()
     :: else
     fi
  fi;
  unlock();
  flush_wakes()
}

inline fail_impossible() {
  do
  :: atomic { place < line_length && IMPOSSIBLE(line[place]) -> head = line[place]; decide_and_post(head, invalid) };
     atomic { head = 0; place = 0 };
     yield_lock()
  :: atomic { place < line_length && !IMPOSSIBLE(line[place]) -> place++ }
  :: atomic { else -> place = 0; break }
  od
}

#ifdef KEEP_IMPOSSIBLE
#define MAY_BE_IMPOSSIBLE (change < 0)
#else
#define MAY_BE_IMPOSSIBLE true
#endif

inline set_capacity(target) {
  lock();
  atomic { change = target - capacity; capacity = target };
  add_fast(0, change);
  if
  :: done
  :: else -> add_slow(0, change)
  fi;
  if
  :: line_length > 0 ->
     if
     :: MAY_BE_IMPOSSIBLE -> fail_impossible()
     :: else
     fi;
     settle()
  :: else
  fi;
  unlock();
  flush_wakes()
}

inline close() {
  lock();
  atomic { closed = true; word = word | kSlow };
  do
  :: atomic { line_length > 0 -> head = line[0]; decide_and_post(head, shut); head = 0 };
     if
     :: line_length > 0 -> yield_lock()
     :: else
     fi
  :: else -> break
  od;
  unlock();
  flush_wakes()
}

/* ---- Users ---- */

#define LOCALS short seen, free; byte at, head, batch, wakes; bool done, more

#ifdef LOST_GRANT
#define GIVES_BACK (why != gave_up)
#else
#define GIVES_BACK true
#endif
#ifdef UNCOUNTED_SETTLER
#define NOBODY_BREATHES true
#else
#define NOBODY_BREATHES (settling == 0)
#endif

proctype Acquirer(byte id) {
  LOCALS;
  bool first;
  mtype why;

  enter();
  take_fast(id);
  if
  :: atomic { done -> state[id] = granted; done = false }
  :: !done                  /* it was try_acquire */
  :: !done -> line_up(id)
  fi;
  exit();

  if
  :: state[id] == waiting ->
     if
     :: (posted & SET_OF(id)) != 0
     :: atomic { why = gave_up; enter() }; leave(id, why); exit() /* cancel, timeout, or the executor dies */
     fi
  :: else
  fi;

  /* A permit, or a grant from before the waiter gave up: the same to the semaphore. */
  if
  :: state[id] == granted && GIVES_BACK ->
     atomic { why = 0; gone = gone | SET_OF(id); enter() };
     give_back(id);
     exit()
  :: else -> atomic { why = 0; gone = gone | SET_OF(id); finished++ }
  fi
}

proctype Resizer() {
  LOCALS;
  byte left = RESIZES, place, target;
  short change;

  do
  :: left > 0 ->
     if
     :: capacity != 0 -> target = 0
     :: capacity != 1 -> target = 1
     :: capacity != 2 -> target = 2
     :: capacity != 3 -> target = 3
     fi;
     atomic { left--; enter() };
     set_capacity(target);
     atomic { target = 0; change = 0; done = false; exit() }
  :: else -> break
  od;
  changers--
}

proctype Closer() {
  LOCALS;

  enter();
  close();
  exit();
  changers--
}

/* Destroys the semaphore as soon as no unit is out and no request is left, even if a releaser is still inside. */
proctype Owner() {
  atomic {
    finished == THREADS && changers == 0 && !locked && NOBODY_BREATHES ->
    assert(line_length == 0 && units_out == 0 && FREE == capacity);
    destroyed = true
  }
}

init {
  byte id;
  atomic {
    for (id : 0 .. THREADS - 1) { run Acquirer(id) }
    id = 0;
    if
    :: RESIZES > 0 -> run Resizer()
    :: else
    fi;
    if
    :: CLOSERS > 0 -> run Closer()
    :: else
    fi;
    run Owner()
  }
}
