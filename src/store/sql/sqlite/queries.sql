-- Statements of the SQLite store. `-- name:` begins one; @run@ is the list of columns below, @wanted@ the condition of a list.
-- columns: run_id, public_id, agent_id, session, parent_id, parent, idem_key, on_crash, rank, created_at, deadline, budget, state, hold, stop, error, not_before, budget_left, budget_until, attempt, lost, fence, seq, unsafe, node_id, set_id, parked_on, started_at, finished_at, tokens, cost_micros, kept_for, reported_tokens, reported_cost_micros
-- wanted: (?1 IS NULL OR instr(?1, ',' || state || ',') > 0) AND (?2 IS NULL OR instr(?2, ',' || agent_id || ',') > 0) AND (?3 IS NULL OR session = ?3) AND (?4 = 0 OR run_id < ?4) AND run_id >= ?7 AND (?8 IS NULL OR instr(?8, ',' || coalesce(hold, 'none') || ',') > 0) AND (?9 IS NULL OR created_at >= ?9) AND (?10 IS NULL OR created_at < ?10) AND (?11 IS NULL OR instr((SELECT search FROM run_input i WHERE i.run_id = run.run_id), ?11) > 0 OR substr(public_id, 1, length(?11)) = ?11 OR instr(lower(error), ?11) > 0)

-- name: settings
PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;
-- name: settings_of_writer
PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
-- name: begin
BEGIN IMMEDIATE
-- name: begin_read
BEGIN
-- name: commit
COMMIT
-- name: roll_back
ROLLBACK
-- name: step
SAVEPOINT step
-- name: keep_step
RELEASE step
-- name: undo_step
ROLLBACK TO step
-- name: data_version
PRAGMA data_version
-- name: version
PRAGMA user_version
-- name: application
PRAGMA application_id
-- name: triggers
SELECT name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view');
-- name: count_tables
SELECT count(*) FROM sqlite_schema
-- name: clock
SELECT boot, elapsed, awake, now, awake_now, seen_wall, seen_now, seen_awake_now FROM clock;
-- name: put_clock
INSERT INTO clock (one, boot, elapsed, awake, now, awake_now, seen_wall, seen_now, seen_awake_now) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO UPDATE SET boot = excluded.boot, elapsed = excluded.elapsed, awake = excluded.awake, now = excluded.now,
  awake_now = excluded.awake_now, seen_wall = excluded.seen_wall, seen_now = excluded.seen_now, seen_awake_now = excluded.seen_awake_now;
-- name: see_clock
UPDATE clock SET seen_wall = ?1, seen_now = ?2, seen_awake_now = ?3;
-- name: oldest_program
SELECT value FROM meta WHERE key = 'oldest_program'
-- name: set_version
PRAGMA user_version =
-- name: set_application
PRAGMA application_id =

-- name: agent_by_name
SELECT agent_id, name, set_id, queued_max, attempts_max, lost_max,
  stood_total, stood_paused, stood_until, stood_since, stood_awake FROM agent WHERE name = ?1;
-- name: agent_by_number
SELECT agent_id, name, set_id, queued_max, attempts_max, lost_max,
  stood_total, stood_paused, stood_until, stood_since, stood_awake FROM agent WHERE agent_id = ?1;
-- name: agents
SELECT agent_id, name, set_id, queued_max, attempts_max, lost_max,
  stood_total, stood_paused, stood_until, stood_since, stood_awake FROM agent ORDER BY name;
-- name: put_agent
INSERT INTO agent (name, set_id, queued_max, attempts_max, lost_max) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET set_id = excluded.set_id, queued_max = excluded.queued_max, attempts_max = excluded.attempts_max,
  lost_max = excluded.lost_max
RETURNING agent_id;

-- name: put_standstill
UPDATE agent SET stood_total = ?2, stood_paused = ?3, stood_until = ?4, stood_since = ?5, stood_awake = ?6 WHERE agent_id = ?1;

-- name: make_set
INSERT INTO limit_set DEFAULT VALUES RETURNING set_id;
-- name: sets_with
SELECT set_id FROM limit_set_member WHERE limit_id = ?1 ORDER BY set_id;
-- name: add_to_set
INSERT INTO limit_set_member (set_id, limit_id, weight) VALUES (?1, ?2, ?3);

-- name: limit_by_name
SELECT limit_id, name, capacity, paused, paused_until, ramp, turn_of, last_turn_of, turn_until, configured FROM named_limit WHERE name = ?1;
-- name: make_limit
INSERT INTO named_limit (name) VALUES (?1) RETURNING limit_id;
-- name: put_limit
UPDATE named_limit SET capacity = ?2, paused = ?3, paused_until = ?4, ramp = ?5, turn_of = ?6, last_turn_of = ?7, turn_until = ?8, configured = ?9 WHERE limit_id = ?1;
-- name: limits_of_set
SELECT g.limit_id, g.name, g.capacity, g.paused, g.paused_until, g.ramp, g.turn_of, g.last_turn_of, g.turn_until, g.configured, m.weight,
  (SELECT coalesce(sum(h.weight), 0) FROM limit_set_member h CROSS JOIN run r ON r.set_id = h.set_id AND r.state = 'running' WHERE h.limit_id = g.limit_id),
  (SELECT count(*) FROM limit_set_member h CROSS JOIN run r ON r.set_id = h.set_id AND r.state = 'running' WHERE h.limit_id = g.limit_id),
  (SELECT count(*) FROM limit_set_member h CROSS JOIN agent a ON a.set_id = h.set_id WHERE h.limit_id = g.limit_id)
FROM limit_set_member m CROSS JOIN named_limit g ON g.limit_id = m.limit_id WHERE m.set_id = ?1 ORDER BY g.limit_id;
-- name: members
SELECT limit_id, weight FROM limit_set_member WHERE set_id = ?1 ORDER BY limit_id;
-- name: ramping
SELECT g.limit_id, g.name, g.capacity, g.paused, g.paused_until, g.ramp, g.turn_of, g.last_turn_of, g.turn_until, g.configured
FROM limit_set_member m CROSS JOIN named_limit g ON g.limit_id = m.limit_id WHERE m.set_id = ?1 AND g.ramp IS NOT NULL;
-- name: limits
SELECT g.limit_id, g.name, g.capacity, g.paused, g.paused_until, g.ramp, g.turn_of, g.last_turn_of, g.turn_until, g.configured, 1,
  (SELECT coalesce(sum(h.weight), 0) FROM limit_set_member h CROSS JOIN run r ON r.set_id = h.set_id AND r.state = 'running' WHERE h.limit_id = g.limit_id),
  (SELECT count(*) FROM limit_set_member h CROSS JOIN run r ON r.set_id = h.set_id AND r.state = 'running' WHERE h.limit_id = g.limit_id),
  (SELECT count(*) FROM limit_set_member h CROSS JOIN agent a ON a.set_id = h.set_id WHERE h.limit_id = g.limit_id)
FROM named_limit g ORDER BY g.name;

-- name: holders
SELECT r.public_id, r.agent_id, h.weight, coalesce(r.started_at, r.created_at) FROM limit_set_member h
  CROSS JOIN run r ON r.set_id = h.set_id AND r.state = 'running' WHERE h.limit_id = ?1 ORDER BY r.started_at, r.run_id LIMIT ?2;
-- name: agents_using
SELECT a.agent_id, m.weight FROM limit_set_member m CROSS JOIN agent a ON a.set_id = m.set_id WHERE m.limit_id = ?1;
-- name: first_ready
SELECT public_id, rank, run_id, CASE WHEN fence = 0 THEN created_at
  ELSE (SELECT e.at FROM event e WHERE e.run_id = r.run_id AND e.run_id IS NOT NULL AND e.seq = r.seq) END
FROM run r WHERE agent_id = ?1 AND state = 'queued' AND hold IS NULL ORDER BY rank, run_id LIMIT ?2;
-- name: count_waiters
SELECT count(*) FROM (SELECT 1 FROM limit_set_member m CROSS JOIN agent a ON a.set_id = m.set_id
  CROSS JOIN run r INDEXED BY run_ready ON r.agent_id = a.agent_id AND r.state = 'queued' AND r.hold IS NULL AND (r.rank, r.run_id) < (?2, ?3)
  WHERE m.limit_id = ?1 LIMIT ?4);

-- name: add_node
INSERT INTO node (label, one_run) VALUES (?1, ?2) RETURNING node_id;
-- name: node
SELECT node_id, label, state, one_run FROM node WHERE node_id = ?1;
-- name: put_node
UPDATE node SET state = ?2 WHERE node_id = ?1;
-- name: remove_node
DELETE FROM node WHERE node_id = ?1;
-- name: remove_dead_nodes
-- Rows that a program of an earlier version left when it declared nodes dead.
DELETE FROM node WHERE state = 'dead';
-- name: nodes
SELECT node_id, label, state, one_run FROM node WHERE state <> 'dead' ORDER BY node_id;
-- name: node_states
SELECT w.node_id, w.label, w.state, w.one_run, (SELECT count(*) FROM run r WHERE r.node_id = w.node_id AND r.state = 'running')
FROM node w WHERE w.state <> 'dead' ORDER BY w.node_id;

-- name: run_by_number
SELECT @run@ FROM run WHERE run_id = ?1;
-- name: run_by_id
SELECT @run@ FROM run WHERE public_id = ?1;
-- name: run_by_key
SELECT @run@ FROM run WHERE agent_id = ?1 AND idem_key = ?2;
-- name: ready
SELECT @run@ FROM run WHERE agent_id = ?1 AND state = 'queued' AND hold IS NULL AND (deadline IS NULL OR deadline > ?2)
  AND (budget_until IS NULL OR budget_until > ?5)
  AND (kept_for IS NULL OR kept_for = ?4 OR kept_for NOT IN (SELECT node_id FROM node WHERE state <> 'dead'))
ORDER BY rank, run_id LIMIT ?3;
-- name: owned
SELECT @run@ FROM run WHERE node_id = ?1 AND state = 'running' ORDER BY run_id;
-- name: head_of
SELECT @run@ FROM run WHERE session = ?1 AND session IS NOT NULL AND finished_at IS NULL ORDER BY run_id LIMIT 1;
-- name: children
SELECT run_id FROM run WHERE parent_id = ?1 ORDER BY run_id;
-- name: parked_on
SELECT @run@ FROM run WHERE parked_on = ?1 AND state = 'parked' ORDER BY run_id;
-- name: asleep
SELECT @run@ FROM run WHERE not_before <= ?1 AND not_before IS NOT NULL AND hold IS NOT NULL AND hold <> 'session' ORDER BY not_before LIMIT ?2;
-- name: past_deadline
SELECT @run@ FROM run WHERE deadline <= ?1 AND deadline IS NOT NULL AND stop IS NULL AND finished_at IS NULL AND state <> 'in_doubt'
ORDER BY deadline LIMIT ?2;
-- name: past_budget
SELECT @run@ FROM run INDEXED BY run_budget WHERE budget_until <= ?1 AND budget_until IS NOT NULL AND stop IS NULL AND finished_at IS NULL
  AND state <> 'in_doubt' AND (state <> 'queued' OR hold IS NOT NULL) ORDER BY budget_until LIMIT ?2;
-- name: ready_budgets
SELECT agent_id, min(budget_until) FROM run INDEXED BY run_ready_budget WHERE state = 'queued' AND hold IS NULL AND budget_until IS NOT NULL
GROUP BY agent_id;
-- name: ready_past_budget
SELECT @run@ FROM run INDEXED BY run_ready_budget WHERE agent_id = ?1 AND state = 'queued' AND hold IS NULL AND budget_until IS NOT NULL
  AND budget_until <= ?2 ORDER BY budget_until LIMIT ?3;
-- name: next_due
SELECT (SELECT min(not_before) FROM run WHERE not_before IS NOT NULL AND hold IS NOT NULL AND hold <> 'session'),
  (SELECT min(deadline) FROM run WHERE deadline IS NOT NULL AND stop IS NULL AND finished_at IS NULL AND state <> 'in_doubt'),
  (SELECT min(budget_until) FROM run INDEXED BY run_budget WHERE budget_until IS NOT NULL AND stop IS NULL AND finished_at IS NULL
    AND state <> 'in_doubt' AND (state <> 'queued' OR hold IS NOT NULL));
-- name: has_queued
SELECT 1 FROM queue_size WHERE agent_id = ?1 AND n >= ?2;
-- name: has_ready
SELECT 1 FROM run WHERE agent_id = ?1 AND state = 'queued' AND hold IS NULL LIMIT 1;
-- name: has_ready_for
SELECT 1 FROM run WHERE agent_id = ?1 AND state = 'queued' AND hold IS NULL
  AND (kept_for IS NULL OR kept_for = ?2 OR kept_for NOT IN (SELECT node_id FROM node WHERE state <> 'dead')) LIMIT 1;
-- name: queue
SELECT count(*), min(rank) FROM (SELECT rank FROM run WHERE agent_id = ?1 AND state = 'queued' AND hold IS NULL
  AND (kept_for IS NULL OR kept_for NOT IN (SELECT node_id FROM node WHERE state <> 'dead')) ORDER BY rank, run_id LIMIT ?2);
-- OR FAIL: a failed statement keeps its changes, and the rollback of its step removes them. Otherwise SQLite would
-- copy every page before each statement, to be able to roll back that one alone.
-- name: add_run
INSERT OR FAIL INTO run (public_id, agent_id, session, parent_id, parent, idem_key, on_crash, rank, created_at, deadline, budget, state, hold,
  not_before, kept_for, budget_until, attempt, lost, fence, seq, unsafe)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 0, 0, 0, 1, 0) RETURNING run_id;
-- name: put_run
UPDATE OR FAIL run SET state = ?2, hold = ?3, stop = ?4, error = ?5, not_before = ?6, budget_left = ?7, budget_until = ?8,
  attempt = ?9, lost = ?10, fence = ?11, seq = ?12, unsafe = ?13, node_id = ?14, set_id = ?15, parked_on = ?16, started_at = ?17,
  finished_at = ?18, tokens = ?19, cost_micros = ?20, reported_tokens = ?21, reported_cost_micros = ?22 WHERE run_id = ?1;
-- name: add_input
INSERT INTO run_input (run_id, search, body) VALUES (?1, ?2, ?3);
-- name: input
SELECT body FROM run_input WHERE run_id = ?1;
-- name: put_result
INSERT INTO run_result (run_id, body) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET body = excluded.body;
-- name: result
SELECT body FROM run_result WHERE run_id = ?1;
-- name: add_event
INSERT OR FAIL INTO event (run_id, seq, fence, node_id, cause, state, hold, error, data, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);
-- name: add_events
-- Sixteen at once: one statement takes a third of the time of sixteen.
INSERT OR FAIL INTO event (run_id, seq, fence, node_id, cause, state, hold, error, data, at) VALUES
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?),
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_spent
INSERT INTO spent (hour, agent_id, runs, tokens, cost_micros) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET runs = runs + excluded.runs, tokens = tokens + excluded.tokens, cost_micros = cost_micros + excluded.cost_micros;
-- name: used_between
SELECT coalesce(sum(tokens), 0), coalesce(sum(cost_micros), 0) FROM spent WHERE hour >= ?1 AND hour < ?2;
-- name: spent
-- By the hour, or by ?2 hours.
SELECT s.hour / ?2, a.name, sum(s.runs), sum(s.tokens), sum(s.cost_micros) FROM spent s JOIN agent a USING (agent_id)
WHERE s.hour >= ?1 GROUP BY 1, 2 ORDER BY 1, 2;
-- name: merge_hours
-- Into the first hour of their day.
INSERT INTO spent (hour, agent_id, runs, tokens, cost_micros)
SELECT hour / 24 * 24, agent_id, sum(runs), sum(tokens), sum(cost_micros) FROM spent WHERE hour < ?1 AND hour % 24 <> 0 GROUP BY 1, 2
ON CONFLICT DO UPDATE SET runs = runs + excluded.runs, tokens = tokens + excluded.tokens, cost_micros = cost_micros + excluded.cost_micros;
-- name: forget_hours
DELETE FROM spent WHERE hour < ?1 AND hour % 24 <> 0;

-- name: series_head
SELECT at, event, hour, tokens, cost_micros FROM series_head;
-- name: put_series_head
INSERT INTO series_head (one, at, event, hour, tokens, cost_micros) VALUES (1, ?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET at = excluded.at, event = excluded.event, hour = excluded.hour, tokens = excluded.tokens,
  cost_micros = excluded.cost_micros;
-- name: point
SELECT at, startable, held, running, busy, pool_size, samples, started, succeeded, failed, cancelled, expired, in_doubt, tokens, cost_micros
FROM series_point WHERE step = ?1 AND at = ?2;
-- name: points
SELECT at, startable, held, running, busy, pool_size, samples, started, succeeded, failed, cancelled, expired, in_doubt, tokens, cost_micros
FROM series_point WHERE step = ?1 AND at > ?2 ORDER BY at;
-- name: put_point
INSERT OR REPLACE INTO series_point (step, at, startable, held, running, busy, pool_size, samples, started, succeeded, failed, cancelled, expired,
  in_doubt, tokens, cost_micros) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16);
-- name: forget_points
DELETE FROM series_point WHERE step = ?1 AND at <= ?2;
-- name: forget_pools
DELETE FROM series_pool WHERE node_id NOT IN (SELECT node_id FROM node WHERE state <> 'dead');
-- name: put_pool
INSERT OR REPLACE INTO series_pool (node_id, at, busy, pool_size) VALUES (?1, ?2, ?3, ?4);
-- name: pools
SELECT coalesce(sum(busy), 0), coalesce(sum(pool_size), 0) FROM series_pool WHERE at >= ?1;
-- name: count_step
-- Events of runs after ?1 that are not older than ?2, and the number of the last event there is.
SELECT (SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0)),
  count(*) FILTER (WHERE cause = 'claimed'), count(*) FILTER (WHERE state = 'succeeded'), count(*) FILTER (WHERE state = 'failed'),
  count(*) FILTER (WHERE state = 'cancelled'), count(*) FILTER (WHERE state = 'expired'), count(*) FILTER (WHERE state = 'in_doubt')
FROM event WHERE event_id > ?1 AND run_id IS NOT NULL AND at >= ?2;
-- name: fleet_events
SELECT seq, node_id, cause, data, at FROM (SELECT event_id, seq, node_id, cause, data, at FROM event INDEXED BY event_of_fleet
  WHERE run_id IS NULL AND at >= ?1 ORDER BY at DESC, event_id DESC LIMIT ?2) ORDER BY at, event_id;
-- name: ended
SELECT state, attempt, created_at, finished_at, started_at FROM run INDEXED BY run_finished
WHERE finished_at IS NOT NULL AND finished_at >= ?2 AND agent_id = ?1 ORDER BY finished_at DESC, run_id DESC LIMIT ?3;

-- name: output_bytes
SELECT bytes FROM output WHERE run_id = ?1;
-- name: put_output_bytes
INSERT INTO output (run_id, bytes) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET bytes = excluded.bytes;
-- name: add_chunk
INSERT INTO output_chunk (run_id, at, body) VALUES (?1, ?2, ?3);
-- name: drop_chunks
-- Chunks of the middle: after the head, and completely before the tail.
DELETE FROM output_chunk WHERE run_id = ?1 AND at >= ?2 AND at + length(body) <= ?3;
-- name: chunks
SELECT at, body FROM output_chunk WHERE run_id = ?1 ORDER BY at;

-- name: message_end
SELECT ends FROM message WHERE run_id = ?1 AND at = ?2;
-- name: cut_messages
DELETE FROM message WHERE run_id = ?1 AND at >= ?2;
-- name: add_message
INSERT INTO message (run_id, at, ends, body) VALUES (?1, ?2, ?3, ?4);
-- name: messages
SELECT length(body), body FROM message WHERE run_id = ?1 AND at >= ?2 ORDER BY at;

-- name: finished_before
SELECT run_id FROM run WHERE finished_at < ?1 AND finished_at IS NOT NULL ORDER BY finished_at LIMIT ?2;
-- name: mark_pruned
-- The newest event that was deleted: a cursor before it has missed some.
INSERT INTO meta (key, value) SELECT 'pruned_event', last FROM (SELECT max(event_id) AS last FROM event WHERE run_id = ?1 AND run_id IS NOT NULL)
  WHERE last IS NOT NULL ON CONFLICT DO UPDATE SET value = max(value, excluded.value);
-- name: mark_pruned_fleet
INSERT INTO meta (key, value) SELECT 'pruned_event', last FROM (SELECT max(event_id) AS last FROM event INDEXED BY event_of_fleet WHERE run_id IS NULL AND at < ?1)
  WHERE last IS NOT NULL ON CONFLICT DO UPDATE SET value = max(value, excluded.value);
-- name: forget_fleet_events
DELETE FROM event WHERE event_id IN (SELECT event_id FROM event INDEXED BY event_of_fleet WHERE run_id IS NULL AND at < ?1);
-- name: pruned_event
SELECT coalesce((SELECT value FROM meta WHERE key = 'pruned_event'), 0);
-- name: forget_run
DELETE FROM run WHERE run_id = ?1;
-- name: forget_input
DELETE FROM run_input WHERE run_id = ?1;
-- name: forget_result
DELETE FROM run_result WHERE run_id = ?1;
-- name: forget_output
DELETE FROM output WHERE run_id = ?1;
-- name: forget_chunks
DELETE FROM output_chunk WHERE run_id = ?1;
-- name: forget_messages
DELETE FROM message WHERE run_id = ?1;
-- name: forget_events
DELETE FROM event WHERE run_id = ?1 AND run_id IS NOT NULL;

-- name: family
SELECT family_id, head, tokens, cost_micros FROM family WHERE head = ?1;
-- name: make_family
INSERT INTO family (head, tokens, cost_micros) VALUES (?1, ?2, ?3) RETURNING family_id;
-- name: join_family
INSERT OR IGNORE INTO family_run (family_id, run_id) VALUES (?1, ?2);
-- name: families_of
SELECT f.family_id, f.head, f.tokens, f.cost_micros FROM family_run r CROSS JOIN family f ON f.family_id = r.family_id
WHERE r.run_id = ?1 ORDER BY f.head;
-- name: add_use
UPDATE family SET tokens = tokens + ?2, cost_micros = cost_micros + ?3 WHERE family_id = ?1;
-- name: forget_families
-- Families of which the run is the last.
DELETE FROM family WHERE family_id IN (SELECT r.family_id FROM family_run r WHERE r.run_id = ?1
  AND NOT EXISTS (SELECT 1 FROM family_run o WHERE o.family_id = r.family_id AND o.run_id <> ?1));
-- name: leave_families
DELETE FROM family_run WHERE run_id = ?1;
-- name: add_batch
INSERT INTO batch (public_id, idem_key, action, filter, state, matched, created_at, ended_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
RETURNING batch_id;
-- name: add_batch_runs
INSERT INTO batch_runs (batch_id, at, ids) VALUES (?1, ?2, ?3);
-- name: put_batch
UPDATE batch SET state = ?2, done = ?3, skipped = ?4, failed = ?5, node_id = ?6, fence = ?7, ended_at = ?8 WHERE batch_id = ?1;
-- name: batch
SELECT batch_id, public_id, idem_key, action, filter, state, matched, done, skipped, failed, node_id, fence, created_at, ended_at
FROM batch WHERE public_id = ?1;
-- name: batch_of_key
SELECT batch_id, public_id, idem_key, action, filter, state, matched, done, skipped, failed, node_id, fence, created_at, ended_at
FROM batch WHERE idem_key = ?1 AND idem_key IS NOT NULL;
-- name: batches
SELECT batch_id, public_id, idem_key, action, filter, state, matched, done, skipped, failed, node_id, fence, created_at, ended_at
FROM batch WHERE ?1 = 0 OR batch_id < ?1 ORDER BY batch_id DESC LIMIT ?2;
-- name: open_batches
SELECT batch_id, public_id, idem_key, action, filter, state, matched, done, skipped, failed, node_id, fence, created_at, ended_at
FROM batch WHERE ended_at IS NULL ORDER BY batch_id;
-- name: batch_runs
SELECT at, ids FROM batch_runs WHERE batch_id = ?1 AND at <= ?2 ORDER BY at DESC LIMIT 1;
-- name: add_failure
INSERT OR IGNORE INTO batch_failure (batch_id, at, run, error) VALUES (?1, ?2, ?3, ?4);
-- name: failures
SELECT run, error FROM batch_failure WHERE batch_id = ?1 ORDER BY at;
-- name: batches_ended_before
SELECT batch_id FROM batch WHERE ended_at < ?1 AND ended_at IS NOT NULL ORDER BY ended_at LIMIT ?2;
-- name: forget_batch
DELETE FROM batch WHERE batch_id = ?1;
-- name: forget_batch_runs
DELETE FROM batch_runs WHERE batch_id = ?1;
-- name: forget_failures
DELETE FROM batch_failure WHERE batch_id = ?1;

-- name: pruned_at
SELECT value FROM meta WHERE key = 'pruned_at';
-- name: put_pruned_at
INSERT INTO meta (key, value) VALUES ('pruned_at', ?1) ON CONFLICT DO UPDATE SET value = excluded.value;

-- name: by_prefix
SELECT @run@ FROM run WHERE public_id >= ?1 AND public_id < ?2 ORDER BY public_id LIMIT 2;
-- name: list
-- ?1, ?2 and ?8 contain each value between commas. ?7: only runs with this number or a higher one.
SELECT @run@ FROM run WHERE @wanted@ ORDER BY run_id DESC LIMIT ?5;
-- name: newest_before
SELECT max(run_id) FROM run WHERE run_id < ?1;
-- name: with_key
SELECT @run@ FROM run WHERE idem_key = ?1 AND idem_key IS NOT NULL AND (?2 IS NULL OR agent_id = ?2) ORDER BY run_id;
-- name: list_children
SELECT @run@ FROM run WHERE parent_id = ?6 AND parent_id IS NOT NULL AND @wanted@ ORDER BY run_id DESC LIMIT ?5;
-- name: list_unfinished
-- Only for states that are not final. Each kind has its own index, which a million finished runs do not lengthen.
SELECT @run@ FROM (
  SELECT run_id AS n FROM run INDEXED BY run_owned WHERE state = 'running' AND instr(?1, ',running,') > 0
  UNION ALL SELECT run_id FROM run INDEXED BY run_parked WHERE state = 'parked' AND instr(?1, ',parked,') > 0
  UNION ALL SELECT run_id FROM run INDEXED BY run_parked WHERE state = 'in_doubt' AND instr(?1, ',in_doubt,') > 0
  UNION ALL SELECT run_id FROM run INDEXED BY run_ready WHERE state = 'queued' AND hold IS NULL AND instr(?1, ',queued,') > 0
  UNION ALL SELECT run_id FROM run INDEXED BY run_asleep
    WHERE not_before IS NOT NULL AND hold IS NOT NULL AND hold <> 'session' AND state = 'queued' AND instr(?1, ',queued,') > 0
  UNION ALL SELECT run_id FROM run INDEXED BY run_session
    WHERE finished_at IS NULL AND session IS NOT NULL AND hold = 'session' AND instr(?1, ',queued,') > 0) CROSS JOIN run ON run_id = n
WHERE @wanted@ ORDER BY run_id DESC LIMIT ?5;
-- name: events
SELECT seq, fence, node_id, cause, state, hold, error, data, at FROM event WHERE run_id = ?1 AND run_id IS NOT NULL AND seq > ?2 ORDER BY seq LIMIT ?3;
-- name: feed
SELECT e.seq, e.fence, e.node_id, e.cause, e.state, e.hold, e.error, e.data, e.at, e.event_id, r.public_id
FROM event e LEFT JOIN run r ON r.run_id = e.run_id WHERE e.event_id > ?1 ORDER BY e.event_id LIMIT ?2;
-- name: last_event
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0);
-- name: place
SELECT count(*) FROM (SELECT 1 FROM run WHERE agent_id = ?1 AND state = 'queued' AND hold IS NULL AND (rank, run_id) <= (?2, ?3)
  AND (run_id = ?3 OR ?5 OR kept_for IS NULL OR kept_for NOT IN (SELECT node_id FROM node WHERE state <> 'dead'))
  ORDER BY rank, run_id LIMIT ?4);
-- name: sums
SELECT state, count(*) FROM run GROUP BY state;
-- name: queues
SELECT name, coalesce(n, 0), queued_max FROM agent LEFT JOIN queue_size USING (agent_id) ORDER BY name;
-- name: count_queued
SELECT coalesce(sum(n), 0) FROM queue_size;
-- name: count_ready
SELECT count(*) FROM run WHERE state = 'queued' AND hold IS NULL
  AND (kept_for IS NULL OR kept_for NOT IN (SELECT node_id FROM node WHERE state <> 'dead'));
-- name: count_events
SELECT count(*) FROM event;
-- name: count_running
SELECT count(*) FROM run INDEXED BY run_owned WHERE state = 'running';
-- name: count_parked
SELECT count(*) FROM run INDEXED BY run_parked WHERE state = 'parked';
-- name: count_in_doubt
SELECT count(*) FROM run INDEXED BY run_parked WHERE state = 'in_doubt';
-- name: tally_ended
SELECT state, n FROM ended_runs;
-- name: tally_ready
-- A run that was never claimed waits since it was submitted, any other since its last event.
SELECT agent_id, min(rank), count(*), sum(kept_for IS NOT NULL AND kept_for IN (SELECT node_id FROM node WHERE state <> 'dead')),
  min(CASE WHEN fence = 0 THEN created_at ELSE (SELECT e.at FROM event e WHERE e.run_id = r.run_id AND e.run_id IS NOT NULL AND e.seq = r.seq) END)
FROM run r INDEXED BY run_ready WHERE state = 'queued' AND hold IS NULL GROUP BY agent_id;
-- name: tally_held
SELECT state, hold, parked_on, count(*),
  min(CASE WHEN fence = 0 THEN created_at ELSE (SELECT e.at FROM event e WHERE e.run_id = r.run_id AND e.run_id IS NOT NULL AND e.seq = r.seq) END),
  min(CASE WHEN hold <> 'session' THEN not_before END)
FROM (SELECT run_id AS n FROM run INDEXED BY run_parked WHERE state = 'parked'
  UNION ALL SELECT run_id FROM run INDEXED BY run_asleep WHERE not_before IS NOT NULL AND hold IS NOT NULL AND hold <> 'session' AND state = 'queued'
  UNION ALL SELECT run_id FROM run INDEXED BY run_session WHERE finished_at IS NULL AND session IS NOT NULL AND hold = 'session') CROSS JOIN run r ON r.run_id = n
GROUP BY state, hold, parked_on;
-- name: last_ends
SELECT count(*), min(finished_at) FROM (SELECT finished_at, state FROM run WHERE finished_at > ?1 AND finished_at IS NOT NULL
  ORDER BY finished_at DESC LIMIT ?2) WHERE state = 'succeeded' OR state = 'failed';
-- name: list_running
SELECT @run@ FROM run INDEXED BY run_owned WHERE state = 'running' ORDER BY started_at, run_id LIMIT ?1;
-- name: list_needs
SELECT @run@ FROM run INDEXED BY run_parked WHERE (state = 'parked' OR state = 'in_doubt') AND (state = 'in_doubt' OR hold = 'person') ORDER BY run_id LIMIT ?1;
-- name: list_failures
SELECT @run@ FROM run INDEXED BY run_failed WHERE state = 'failed' OR state = 'expired' ORDER BY finished_at DESC, run_id DESC LIMIT ?1;
-- name: count_nodes
SELECT count(*) FROM node WHERE state <> 'dead';
-- name: count_bytes
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size();

-- name: dump
SELECT @run@ FROM run WHERE run_id > ?1 ORDER BY run_id LIMIT ?2;
-- name: integrity
PRAGMA integrity_check(20);
-- name: wrong_ended
SELECT e.state, e.n, coalesce(r.n, 0) FROM ended_runs e
  LEFT JOIN (SELECT state, count(*) AS n FROM run WHERE finished_at IS NOT NULL GROUP BY state) r USING (state)
  WHERE e.n <> coalesce(r.n, 0) ORDER BY e.state;
-- name: wrong_counts
SELECT a.name, coalesce(q.n, 0), coalesce(r.n, 0) FROM agent a LEFT JOIN queue_size q USING (agent_id)
  LEFT JOIN (SELECT agent_id, count(*) AS n FROM run WHERE state = 'queued' GROUP BY agent_id) r USING (agent_id)
  WHERE coalesce(q.n, 0) <> coalesce(r.n, 0) ORDER BY a.name;
