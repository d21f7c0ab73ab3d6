-- Tables of the SQLite store. Times are milliseconds of the store's own clock (store_clock.hpp), except a deadline,
-- which is wall time; time budgets use a clock that stops while the machine sleeps. Durations are milliseconds.
-- The single writer serializes everything: no row locks, and nothing is counted in a column.
-- Ids are never reused (AUTOINCREMENT). A column that is added later goes to the end of a table, with a default.

CREATE TABLE meta (key TEXT PRIMARY KEY, value INT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('oldest_program', 101);  -- the oldest schema version of a compatible program

-- The store's clocks at the moment when those of a boot showed `elapsed` and `awake`; and their last reading, for the
-- next boot.
CREATE TABLE clock (
  one INTEGER PRIMARY KEY CHECK (one = 1), boot TEXT NOT NULL, elapsed INT NOT NULL, awake INT NOT NULL, now INT NOT NULL,
  awake_now INT NOT NULL, seen_wall INT NOT NULL, seen_now INT NOT NULL, seen_awake_now INT NOT NULL) STRICT;

CREATE TABLE named_limit (
  limit_id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, capacity INT CHECK (capacity > 0),
  paused INT NOT NULL DEFAULT 0, paused_until INT, ramp INT,
  turn_of INT, last_turn_of INT, turn_until INT NOT NULL DEFAULT 0,
  -- The last configured capacity: so a manual resize survives a restart, and a limit that the configuration no longer
  -- names can be reset.
  configured INT) STRICT;

-- A set never changes: new limits or weights of an agent make a new one. A run keeps the one it was claimed with.
CREATE TABLE limit_set (set_id INTEGER PRIMARY KEY AUTOINCREMENT) STRICT;
CREATE TABLE limit_set_member (
  set_id INT NOT NULL, limit_id INT NOT NULL, weight INT NOT NULL CHECK (weight > 0),
  PRIMARY KEY (set_id, limit_id)) STRICT, WITHOUT ROWID;
CREATE INDEX limit_set_member_by_limit ON limit_set_member (limit_id, set_id, weight);

CREATE TABLE agent (
  agent_id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, set_id INT NOT NULL, queued_max INT NOT NULL,
  attempts_max INT NOT NULL, lost_max INT NOT NULL,
  -- How long the budgets of its ready runs have stood still because a limit was paused; and since when one is paused,
  -- until when.
  stood_total INT NOT NULL DEFAULT 0, stood_paused INT NOT NULL DEFAULT 0, stood_until INT, stood_since INT NOT NULL DEFAULT 0,
  stood_awake INT NOT NULL DEFAULT 0) STRICT;
CREATE INDEX agent_by_set ON agent (set_id);

CREATE TABLE node (
  node_id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'draining', 'dead')),
  one_run INT NOT NULL DEFAULT 0) STRICT;  -- it claims only the run that it has submitted itself
CREATE INDEX node_alive ON node (node_id) WHERE state <> 'dead';

-- No IN in checks of every write: SQLite builds an in-memory table of each such list each time (measured: half of a
-- write).
CREATE TABLE run (
  run_id INTEGER PRIMARY KEY AUTOINCREMENT, public_id TEXT UNIQUE NOT NULL CHECK (length(public_id) = 12),
  agent_id INT NOT NULL, session TEXT, parent_id INT, parent TEXT, idem_key TEXT,
  on_crash TEXT NOT NULL CHECK (on_crash = 'resume' OR on_crash = 'rerun' OR on_crash = 'doubt'),
  rank INT NOT NULL, created_at INT NOT NULL, deadline INT, budget INT,
  state TEXT NOT NULL CHECK (state = 'queued' OR state = 'running' OR state = 'succeeded' OR state = 'parked' OR
    state = 'failed' OR state = 'cancelled' OR state = 'expired' OR state = 'in_doubt'),
  hold TEXT CHECK (hold = 'session' OR hold = 'delay' OR hold = 'backoff' OR hold = 'quota' OR hold = 'person'),  -- queued and NULL: ready
  stop TEXT CHECK (stop = 'cancelled' OR stop = 'expired'),
  error TEXT, not_before INT, budget_left INT, budget_until INT,
  attempt INT NOT NULL, lost INT NOT NULL, fence INT NOT NULL, seq INT NOT NULL, unsafe INT NOT NULL,
  node_id INT, set_id INT, parked_on TEXT, started_at INT, finished_at INT,
  tokens INT NOT NULL DEFAULT 0, cost_micros INT NOT NULL DEFAULT 0,  -- of all attempts, including what the running one has reported
  kept_for INT,  -- the node that submitted it and carries it itself: only that one may claim it while alive. Nearly always NULL
  reported_tokens INT NOT NULL DEFAULT 0, reported_cost_micros INT NOT NULL DEFAULT 0,
  CHECK ((state = 'running') = (node_id IS NOT NULL)),
  CHECK ((state = 'succeeded' OR state = 'failed' OR state = 'cancelled' OR state = 'expired') = (finished_at IS NOT NULL)),
  CHECK (hold IS NULL OR state = 'queued' OR state = 'parked')) STRICT;
-- A partial index is used only for a literal predicate: never bind a state as a parameter.
-- Includes the keeper, so that the runs any node may claim are counted from the index alone.
CREATE INDEX run_ready    ON run (agent_id, rank, run_id, kept_for) WHERE state = 'queued' AND hold IS NULL;
CREATE INDEX run_held     ON run (set_id)                 WHERE state = 'running';
CREATE INDEX run_owned    ON run (node_id)              WHERE state = 'running';
CREATE INDEX run_asleep   ON run (not_before)             WHERE not_before IS NOT NULL AND hold IS NOT NULL AND hold <> 'session';
CREATE INDEX run_deadline ON run (deadline)               WHERE deadline IS NOT NULL AND stop IS NULL
                                                            AND finished_at IS NULL AND state <> 'in_doubt';
-- For a ready run `budget_until` is a time of its agent's clock, which stands still while a limit is paused.
CREATE INDEX run_budget   ON run (budget_until)           WHERE budget_until IS NOT NULL AND stop IS NULL AND finished_at IS NULL
                                                            AND state <> 'in_doubt' AND (state <> 'queued' OR hold IS NOT NULL);
CREATE INDEX run_ready_budget ON run (agent_id, budget_until) WHERE state = 'queued' AND hold IS NULL AND budget_until IS NOT NULL;
CREATE INDEX run_session  ON run (session, run_id)        WHERE finished_at IS NULL AND session IS NOT NULL;
-- For lists, runs in doubt share an index with the parked: each further index is opened by every change of a run.
CREATE INDEX run_parked   ON run (state, parked_on)       WHERE state = 'parked' OR state = 'in_doubt';
CREATE INDEX run_child    ON run (parent_id)              WHERE parent_id IS NOT NULL;
CREATE INDEX run_finished ON run (finished_at)            WHERE finished_at IS NOT NULL;
CREATE INDEX run_failed   ON run (finished_at)            WHERE state = 'failed' OR state = 'expired';
-- A key is looked up with and without its agent.
CREATE UNIQUE INDEX run_idem ON run (idem_key, agent_id)  WHERE idem_key IS NOT NULL;

-- The number of queued runs, for the bound of the queue: counting them would cost the bound. Triggers keep it in the
-- transaction of the change, so that no statement can omit it.
CREATE TABLE queue_size (agent_id INTEGER PRIMARY KEY, n INT NOT NULL CHECK (n >= 0)) STRICT;
CREATE TRIGGER run_came AFTER INSERT ON run WHEN new.state = 'queued' BEGIN
  INSERT INTO queue_size VALUES (new.agent_id, 1) ON CONFLICT DO UPDATE SET n = n + 1; END;
CREATE TRIGGER run_moved AFTER UPDATE OF state ON run WHEN (new.state = 'queued') <> (old.state = 'queued') BEGIN
  UPDATE queue_size SET n = n + CASE new.state WHEN 'queued' THEN 1 ELSE -1 END WHERE agent_id = new.agent_id; END;
CREATE TRIGGER run_went AFTER DELETE ON run WHEN old.state = 'queued' BEGIN
  UPDATE queue_size SET n = n - 1 WHERE agent_id = old.agent_id; END;

-- How many runs ended in each state: a snapshot would have to read all of them. Kept like queue_size; a run that has
-- ended changes no more.
CREATE TABLE ended_runs (state TEXT PRIMARY KEY, n INT NOT NULL CHECK (n >= 0)) STRICT, WITHOUT ROWID;
INSERT INTO ended_runs VALUES ('succeeded', 0), ('failed', 0), ('cancelled', 0), ('expired', 0);
CREATE TRIGGER run_came_ended AFTER INSERT ON run WHEN new.finished_at IS NOT NULL BEGIN
  UPDATE ended_runs SET n = n + 1 WHERE state = new.state; END;
CREATE TRIGGER run_ended AFTER UPDATE OF finished_at ON run WHEN new.finished_at IS NOT NULL AND old.finished_at IS NULL BEGIN
  UPDATE ended_runs SET n = n + 1 WHERE state = new.state; END;
CREATE TRIGGER run_forgotten AFTER DELETE ON run WHEN old.finished_at IS NOT NULL BEGIN
  UPDATE ended_runs SET n = n - 1 WHERE state = old.state; END;

-- Data that is written once and read once, kept out of the hot rows.
-- `search` (search_text.hpp) comes first: a search does not read the pages of a long body.
CREATE TABLE run_input (run_id INTEGER PRIMARY KEY, search TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE run_result (run_id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE output (run_id INTEGER PRIMARY KEY, bytes INT NOT NULL) STRICT;
CREATE TABLE output_chunk (run_id INT NOT NULL, at INT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run_id, at)) STRICT;
-- The conversations that drivers keep here. `ends`: the bytes of all messages up to this one.
CREATE TABLE message (run_id INT NOT NULL, at INT NOT NULL, ends INT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run_id, at)) STRICT;

-- What attempts used, by agent and hour since 1970: the rows of a day in UTC are its sum. Old hours are merged into the first
-- one of their day.
CREATE TABLE spent (
  hour INT NOT NULL, agent_id INT NOT NULL, runs INT NOT NULL, tokens INT NOT NULL, cost_micros INT NOT NULL,
  PRIMARY KEY (hour, agent_id)) STRICT, WITHOUT ROWID;

-- Time series of the fleet (series.hpp): one point per step of so many seconds, up to where they go, and the last reported pools.
CREATE TABLE series_point (
  step INT NOT NULL, at INT NOT NULL, startable INT NOT NULL, held INT NOT NULL, running INT NOT NULL, busy INT NOT NULL,
  pool_size INT NOT NULL, samples INT NOT NULL,
  started INT, succeeded INT, failed INT, cancelled INT, expired INT, in_doubt INT, tokens INT, cost_micros INT,  -- NULL: unknown
  PRIMARY KEY (step, at)) STRICT, WITHOUT ROWID;
CREATE TABLE series_head (
  one INTEGER PRIMARY KEY CHECK (one = 1), at INT NOT NULL, event INT NOT NULL, hour INT NOT NULL, tokens INT NOT NULL,
  cost_micros INT NOT NULL) STRICT;
CREATE TABLE series_pool (node_id INTEGER PRIMARY KEY, at INT NOT NULL, busy INT NOT NULL, pool_size INT NOT NULL) STRICT;

-- The use of a run and all runs that draw on its budget, or of runs that share a budget of no run. Kept until the last of them is
-- deleted. Few runs have a family.
CREATE TABLE family (
  family_id INTEGER PRIMARY KEY AUTOINCREMENT, head TEXT UNIQUE NOT NULL, tokens INT NOT NULL, cost_micros INT NOT NULL) STRICT;
CREATE TABLE family_run (run_id INT NOT NULL, family_id INT NOT NULL, PRIMARY KEY (run_id, family_id)) STRICT, WITHOUT ROWID;
CREATE INDEX family_run_by_family ON family_run (family_id);

-- One writer at a time: ids are in commit order, so the feed's cursor is the id alone.
CREATE TABLE event (
  event_id INTEGER PRIMARY KEY AUTOINCREMENT, run_id INT, seq INT NOT NULL, fence INT NOT NULL, node_id INT,
  cause TEXT NOT NULL, state TEXT, hold TEXT, error TEXT, data TEXT, at INT NOT NULL) STRICT;
CREATE UNIQUE INDEX event_of_run ON event (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX event_of_fleet ON event (at) WHERE run_id IS NULL;

-- One action on many runs. `batch_runs` has its set in pieces: the ids from place `at` on, without separators. A run is acted on
-- before its place is counted in done, skipped or failed.
CREATE TABLE batch (
  batch_id INTEGER PRIMARY KEY AUTOINCREMENT, public_id TEXT UNIQUE NOT NULL, idem_key TEXT, action TEXT NOT NULL, filter TEXT NOT NULL,
  state TEXT NOT NULL, matched INT NOT NULL, done INT NOT NULL DEFAULT 0, skipped INT NOT NULL DEFAULT 0, failed INT NOT NULL DEFAULT 0,
  node_id INT, fence INT NOT NULL DEFAULT 0, created_at INT NOT NULL, ended_at INT) STRICT;
CREATE UNIQUE INDEX batch_idem ON batch (idem_key) WHERE idem_key IS NOT NULL;
CREATE INDEX batch_open  ON batch (batch_id) WHERE ended_at IS NULL;
CREATE INDEX batch_ended ON batch (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE batch_runs (batch_id INT NOT NULL, at INT NOT NULL, ids TEXT NOT NULL, PRIMARY KEY (batch_id, at)) STRICT, WITHOUT ROWID;
CREATE TABLE batch_failure (
  batch_id INT NOT NULL, at INT NOT NULL, run TEXT NOT NULL, error TEXT NOT NULL, PRIMARY KEY (batch_id, at)) STRICT, WITHOUT ROWID;
