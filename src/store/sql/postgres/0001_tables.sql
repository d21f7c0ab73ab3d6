-- Tables of the PostgreSQL store. Adjacent program versions share them; each version has its functions in its own
-- schema, the first in stint_v1. A column that is added later has a default.
-- Times are whole milliseconds of the store's clock: the database's, without its jumps. Leases and deadlines use the
-- database's own clock. Durations are milliseconds.
CREATE SCHEMA stint;
SET LOCAL search_path = stint;

CREATE TABLE meta (key text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO meta VALUES ('version', 0), ('oldest_program', 101);  -- the oldest schema version of a compatible program

-- How far the store's clock is ahead of the database's. A process that sees a jump of the latter sets it, so that the
-- store's clock continues; `moved` counts these corrections, so that two processes that see the same jump correct it
-- once. `seen`: the database's clock when a process last found that it had not jumped. If that is recent, a process
-- that believes in a jump has been asleep itself.
CREATE TABLE store_clock (ahead_ms bigint NOT NULL, moved bigint NOT NULL, seen timestamptz NOT NULL) WITH (fillfactor = 20);
INSERT INTO store_clock VALUES (0, 0, date_trunc('milliseconds', clock_timestamp()));

-- The row of one limit. A claim locks it; it contains no counter. The rows of run determine what is held.
CREATE TABLE named_limit (
  limit_id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text COLLATE "C" UNIQUE NOT NULL,
  capacity     bigint CHECK (capacity > 0),           -- NULL: no cap; the limit can still be paused
  shared       boolean NOT NULL DEFAULT false,        -- several agents use it: a claim waits for it. Otherwise it skips it
  paused_until timestamptz,                           -- 'infinity': until resume()
  ramp         bigint,                                -- after a pause: runs allowed at once; 1 is the probe
  turn_of      int, turn_until timestamptz,           -- which agent has the turn, while a heavy request waits for units
  last_turn_of int,                                   -- not again before another agent was served
  -- The last configured capacity: so a manual resize survives a restart, and a limit that the configuration no longer
  -- names can be reset.
  configured   bigint
) WITH (fillfactor = 50);

-- A set never changes: new limits or weights of an agent make a new one. A run keeps the one it was claimed with.
CREATE TABLE limit_set (set_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE limit_set_member (
  set_id int NOT NULL REFERENCES limit_set, limit_id int NOT NULL REFERENCES named_limit,
  weight bigint NOT NULL CHECK (weight > 0), PRIMARY KEY (set_id, limit_id));
CREATE INDEX limit_set_member_by_limit ON limit_set_member (limit_id, set_id, weight);

CREATE TABLE agent (
  agent_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" UNIQUE NOT NULL,
  set_id int NOT NULL REFERENCES limit_set, queued_max bigint NOT NULL, attempts_max bigint NOT NULL, lost_max bigint NOT NULL);
CREATE INDEX agent_by_set ON agent (set_id);
-- How long the budgets of an agent's ready runs have stood still because one of its limits was paused: until `since`,
-- and from then on until `until`, if a limit is paused. A separate row, which is locked after the limits.
CREATE TABLE standstill (
  agent_id int PRIMARY KEY, total_ms bigint NOT NULL DEFAULT 0, since timestamptz, until timestamptz) WITH (fillfactor = 50);

-- One row per node: its lease.
CREATE TABLE node (
  node_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, label text NOT NULL,
  state text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'draining', 'dead')), lease_until timestamptz NOT NULL, beaten_at timestamptz NOT NULL,
  round bigint NOT NULL DEFAULT 0,                     -- claims of an earlier round are refused: see owned()
  one_run boolean NOT NULL DEFAULT false               -- it claims only the run that it has submitted itself
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
CREATE INDEX node_lease ON node (lease_until) WHERE state <> 'dead';

-- The lock of the session: every submit and every end takes it, so that there is one head.
CREATE TABLE session (session_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text COLLATE "C" UNIQUE NOT NULL);

-- Maps public ids to run numbers. Not an index of run: every change of a run would write it again, which was a
-- quarter of the cost of a claim and its settlement.
CREATE TABLE run_name (
  public_id text COLLATE "C" PRIMARY KEY CHECK (public_id ~ '^[a-z2-7]{12}$'), run_id bigint GENERATED ALWAYS AS IDENTITY);

CREATE TABLE run (
  run_id bigint PRIMARY KEY WITH (fillfactor = 40), public_id text COLLATE "C" NOT NULL,  -- as in run_name. The free space is for later versions of the row
  agent_id int NOT NULL, session_id bigint, parent_id bigint, parent text, idem_key text COLLATE "C",
  on_crash text NOT NULL CHECK (on_crash IN ('resume', 'rerun', 'doubt')),
  state text NOT NULL CHECK (state IN
    ('queued', 'running', 'parked', 'succeeded', 'failed', 'cancelled', 'expired', 'in_doubt')),
  hold text CHECK (hold IN ('session', 'delay', 'backoff', 'quota', 'person')),  -- queued and NULL: ready
  stop text CHECK (stop IN ('cancelled', 'expired')),  -- requested of the owner; names the state in which the run will end
  cause text NOT NULL,                                 -- of its last change, with its time: both go into the event
  changed_at timestamptz NOT NULL,
  error text,
  rank timestamptz NOT NULL,                           -- when it is due, minus 10 minutes per step of priority
  created_at timestamptz NOT NULL, not_before timestamptz, deadline timestamptz,
  -- From the first start; stands still while parked. For a ready run `budget_until` is a time of its agent's clock,
  -- which stands still while a limit is paused: the store's clock minus stood().
  budget_ms bigint, budget_left_ms bigint, budget_until timestamptz,
  attempt bigint NOT NULL DEFAULT 0, lost bigint NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0, seq bigint NOT NULL DEFAULT 1,
  unsafe boolean NOT NULL DEFAULT false,               -- an operation that must not be repeated was begun, its outcome is unknown
  last_word bigint,                                    -- the owner's last note, which is not written twice
  node_id bigint, set_id int, parked_on text COLLATE "C",
  started_at timestamptz, finished_at timestamptz,
  tokens bigint NOT NULL DEFAULT 0, cost_micros bigint NOT NULL DEFAULT 0,  -- of all attempts, including what the running one has reported
  reported_tokens bigint NOT NULL DEFAULT 0, reported_cost_micros bigint NOT NULL DEFAULT 0,
  kept_for bigint,                                     -- the node that submitted it and carries it itself: only that one may claim it while alive
  CHECK ((state = 'running') = (node_id IS NOT NULL)),
  CHECK ((state IN ('succeeded', 'failed', 'cancelled', 'expired')) = (finished_at IS NOT NULL)),
  CHECK (hold IS NULL OR state IN ('queued', 'parked'))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
-- Predicates are literal, so that no index that a claim reads contains blocked runs. Only these two indexes that a
-- claim could use begin with agent_id: with another one the planner would use that and sort while the queue is short.
CREATE INDEX run_ready    ON run (agent_id, rank, run_id) INCLUDE (kept_for) WHERE state = 'queued' AND hold IS NULL;
CREATE INDEX run_waiting  ON run (agent_id)               WHERE state = 'queued' AND hold IS NOT NULL;
CREATE INDEX run_held     ON run (set_id)                 WHERE state = 'running';
CREATE INDEX run_owned    ON run (node_id)              WHERE state = 'running';
CREATE INDEX run_asleep   ON run (not_before)             WHERE not_before IS NOT NULL AND hold <> 'session';
CREATE INDEX run_deadline ON run (deadline)               WHERE deadline IS NOT NULL AND stop IS NULL
                                                                AND state IN ('queued', 'running', 'parked');
CREATE INDEX run_budget   ON run (budget_until)           WHERE budget_until IS NOT NULL AND stop IS NULL
                                                                AND (state IN ('running', 'parked') OR state = 'queued' AND hold IS NOT NULL);
CREATE INDEX run_ready_budget ON run (agent_id, budget_until) WHERE state = 'queued' AND hold IS NULL AND budget_until IS NOT NULL;
CREATE INDEX run_session  ON run (session_id, run_id)     WHERE finished_at IS NULL AND session_id IS NOT NULL;
CREATE INDEX run_of_old_session ON run (session_id)       WHERE finished_at IS NOT NULL AND session_id IS NOT NULL;
CREATE INDEX run_parked   ON run (parked_on)              WHERE state = 'parked';
CREATE INDEX run_doubt    ON run (run_id)                 WHERE state = 'in_doubt';  -- for lists: usually empty
CREATE INDEX run_child    ON run (parent_id)              WHERE parent_id IS NOT NULL;
CREATE INDEX run_finished ON run (finished_at, run_id)    WHERE finished_at IS NOT NULL;
CREATE INDEX run_failed   ON run (finished_at, run_id)    WHERE state IN ('failed', 'expired');
CREATE UNIQUE INDEX run_idem ON run (idem_key, agent_id)  WHERE idem_key IS NOT NULL;  -- looked up with and without its agent

-- Data that is written once and read once, kept out of the hot rows. Text, not jsonb: it is returned unchanged.
-- `search`: see search_text.hpp. Stored as it is: a search reads it of many runs.
CREATE TABLE run_input (run_id bigint PRIMARY KEY, search text COLLATE "C" NOT NULL, body text NOT NULL);
ALTER TABLE run_input ALTER search SET STORAGE MAIN;
CREATE TABLE run_result (run_id bigint PRIMARY KEY, body text NOT NULL);
CREATE TABLE output (run_id bigint PRIMARY KEY, bytes bigint NOT NULL, last_word bigint) WITH (fillfactor = 50);
CREATE TABLE output_chunk (run_id bigint NOT NULL, at bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (run_id, at));
-- The conversations that drivers keep here. `ends`: the bytes of all messages up to this one.
CREATE TABLE message (run_id bigint NOT NULL, at bigint NOT NULL, ends bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (run_id, at));

-- What attempts used, by hour since 1970 and agent: the rows of a day in UTC are its sum. Each node has its own rows, so that no settle
-- waits for another's; old rows are merged into one of node 0, and later into the first hour of their day: see prune().
CREATE TABLE spent (
  hour bigint NOT NULL, agent_id int NOT NULL, node_id bigint NOT NULL, runs bigint NOT NULL, tokens bigint NOT NULL,
  cost_micros bigint NOT NULL, PRIMARY KEY (hour, agent_id, node_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- Time series of the fleet (series.hpp): one point per step of so many seconds, and the last reported pools. The one row of series_head
-- says up to where they go: a sample locks it.
CREATE TABLE series_point (
  step bigint NOT NULL, at_ms bigint NOT NULL, startable bigint NOT NULL, held bigint NOT NULL, running bigint NOT NULL,
  busy bigint NOT NULL, pool_size bigint NOT NULL, samples bigint NOT NULL, started bigint, succeeded bigint, failed bigint,
  cancelled bigint, expired bigint, in_doubt bigint, tokens bigint, cost_micros bigint, PRIMARY KEY (step, at_ms)
) WITH (fillfactor = 70);
CREATE TABLE series_head (
  at_ms bigint NOT NULL, xid xid8 NOT NULL, event bigint NOT NULL, hour bigint NOT NULL, tokens bigint NOT NULL, cost_micros bigint NOT NULL
) WITH (fillfactor = 20);
INSERT INTO series_head VALUES (0, '0', 0, 0, 0, 0);
CREATE TABLE series_pool (node_id bigint PRIMARY KEY, at_ms bigint NOT NULL, busy bigint NOT NULL, pool_size bigint NOT NULL)
  WITH (fillfactor = 50);
-- The use of a run and all runs that draw on its budget, or of runs that share a budget of no run. Kept until the last of them is
-- deleted. Few runs have a family.
CREATE TABLE family (
  family_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, head text COLLATE "C" UNIQUE NOT NULL, tokens bigint NOT NULL,
  cost_micros bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE TABLE family_run (run_id bigint, family_id bigint, PRIMARY KEY (run_id, family_id));
CREATE INDEX family_run_by_family ON family_run (family_id);

-- One action on many runs. `batch_runs` has its set in pieces: the ids from place `at` on, without separators. A run is acted on
-- before its place is counted in done, skipped or failed.
CREATE TABLE batch (
  batch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, public_id text COLLATE "C" UNIQUE NOT NULL, idem_key text COLLATE "C",
  action text NOT NULL, filter text NOT NULL,
  state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'stopping', 'stopped', 'done')), matched bigint NOT NULL,
  done bigint NOT NULL DEFAULT 0, skipped bigint NOT NULL DEFAULT 0, failed bigint NOT NULL DEFAULT 0,
  node_id bigint, fence bigint NOT NULL DEFAULT 0, created_at timestamptz NOT NULL, ended_at timestamptz,
  CHECK ((state IN ('stopped', 'done')) = (ended_at IS NOT NULL)), CHECK (done + skipped + failed <= matched)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX batch_idem ON batch (idem_key) WHERE idem_key IS NOT NULL;
CREATE INDEX batch_open  ON batch (batch_id) WHERE ended_at IS NULL;
CREATE INDEX batch_ended ON batch (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE batch_runs (batch_id bigint NOT NULL, at bigint NOT NULL, ids text NOT NULL, PRIMARY KEY (batch_id, at));
CREATE TABLE batch_failure (batch_id bigint NOT NULL, at bigint NOT NULL, run text NOT NULL, error text NOT NULL, PRIMARY KEY (batch_id, at));

-- The feed is ordered by (xid, id): ids alone are not in commit order, and a late one would be missed.
CREATE TABLE event (
  id bigint GENERATED ALWAYS AS IDENTITY, xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  run_id bigint, seq bigint NOT NULL, fence bigint NOT NULL, node_id bigint, set_id int,
  cause text NOT NULL, state text, hold text, error text, data text, at timestamptz NOT NULL);
CREATE UNIQUE INDEX event_of_run ON event (run_id, seq);
CREATE INDEX event_feed ON event (xid, id);
CREATE INDEX event_of_fleet ON event (at) WHERE run_id IS NULL;
-- The newest event that prune() has deleted: a cursor before it has missed some.
CREATE TABLE pruned (xid xid8 NOT NULL, id bigint NOT NULL);
INSERT INTO pruned VALUES ('0', 0);

-- A trigger writes an event for each change that raises seq, so that no statement can omit it; once per statement,
-- however many rows. A note writes its own event with its data, and a run from another store brings its events. No
-- nested loop: a plan made for one row would compare a thousand with a thousand.
CREATE FUNCTION run_event() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off SET enable_hashjoin = on AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO stint.event (run_id, seq, fence, cause, state, hold, at)
      SELECT run_id, seq, fence, cause, state, hold, changed_at FROM fresh WHERE seq = 1 ORDER BY run_id;
  ELSE
    INSERT INTO stint.event (run_id, seq, fence, node_id, set_id, cause, state, hold, error, at)
      SELECT n.run_id, n.seq, n.fence, coalesce(n.node_id, o.node_id), n.set_id, n.cause, n.state, n.hold,
             CASE WHEN n.state <> 'running' THEN n.error END, n.changed_at
      FROM fresh n JOIN old o USING (run_id) WHERE n.seq > o.seq AND n.cause <> 'note' ORDER BY n.run_id;
  END IF;
  RETURN NULL; END $$;
CREATE TRIGGER run_insert AFTER INSERT ON run REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION run_event();
CREATE TRIGGER run_update AFTER UPDATE ON run REFERENCING NEW TABLE AS fresh OLD TABLE AS old
  FOR EACH STATEMENT EXECUTE FUNCTION run_event();
