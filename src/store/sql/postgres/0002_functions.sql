-- The statements of the store of a fleet, as functions: one round trip and one transaction each, READ COMMITTED, also
-- behind a pooler that gives each transaction another connection. They behave as store/ledger.cpp does on one machine.
--
-- Locks are taken in this order: worker, sessions, runs, gates, standstills, each by id. Only a claim takes gates before runs, and it
-- skips runs that are locked. So nothing waits in a circle.
-- In READ COMMITTED each statement of a volatile function has a snapshot of its own. Wherever a lock decides, what it
-- protects is read by a later statement than the one that locks.
--
-- SQLSTATE: ST400 invalid, ST401 the lease is over, ST409 conflict, ST503 full.
CREATE SCHEMA stint_v1;
SET LOCAL search_path = stint_v1, stint;

-- ---- time ----------------------------------------------------------------------------------------------------------

-- The database's clock, for leases and deadlines. It may jump.
CREATE FUNCTION wall() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT date_trunc('milliseconds', clock_timestamp()) $$;
-- Stable, as what they call is: immutable ones would not be inlined, and a call for each row is dear.
CREATE FUNCTION later(p_time timestamptz, p_ms bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT p_time + p_ms * interval '1 millisecond' $$;
CREATE FUNCTION from_ms(p_ms bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT timestamptz '1970-01-01 00:00:00+00' + p_ms * interval '1 millisecond' $$;
CREATE FUNCTION to_ms(p_time timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$   -- NULL: never
  SELECT CASE WHEN isfinite(p_time) THEN (extract(epoch FROM p_time) * 1000)::bigint END $$;

-- A time of the store's clock as people see it, by the database's. Where there are many rows, in the views, it is written out: so the
-- subquery is run once for a statement.
CREATE FUNCTION shown_ms(p_time timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT stint_v1.to_ms(p_time) - (SELECT ahead_ms FROM stint.store_clock) $$;

CREATE FUNCTION is_moment_ago(p_time timestamptz, p_wall timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT p_time <= p_wall AND p_time > p_wall - interval '10 seconds' $$;

-- The store's clock, for all else. Asked after the locks: a time from before a wait could be past already.
-- A process that has looked at it before knows where it should be (expect()). If it is far from there, and nobody has seen it a
-- moment ago, the database's clock has just jumped: then what the process knows is right.
CREATE FUNCTION clock() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
DECLARE t timestamptz; v_vouched boolean; v_expected text := current_setting('stint.expected', true); BEGIN
  SELECT stint_v1.later(w, c.ahead_ms), stint_v1.is_moment_ago(c.seen, w) INTO t, v_vouched FROM stint.store_clock c, stint_v1.wall() w;
  IF v_expected <> '' AND NOT v_vouched AND abs(stint_v1.to_ms(t) - v_expected::bigint) > 10000 THEN
    RETURN stint_v1.from_ms(v_expected::bigint);
  END IF;
  RETURN t; END $$;
-- Where the caller expects the clock to be, for this transaction; NULL: it does not know. Answers its second argument, so that it
-- stands in the call that it is for.
CREATE FUNCTION expect(p_now_ms bigint, p_what anyelement) RETURNS anyelement LANGUAGE plpgsql VOLATILE AS $$ BEGIN
  PERFORM set_config('stint.expected', coalesce(p_now_ms::text, ''), true);
  RETURN p_what; END $$;
CREATE FUNCTION look_at_clock() RETURNS TABLE (wall_ms bigint, ahead_ms bigint, moved bigint, vouched boolean, stale boolean)
LANGUAGE sql VOLATILE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT to_ms(w), c.ahead_ms, c.moved, is_moment_ago(c.seen, w), c.seen > w OR c.seen <= w - interval '1 second'
  FROM store_clock c, wall() w $$;
-- The database's clock has jumped by so much since it was looked at. False: another was quicker.
CREATE FUNCTION make_up_for_jump(p_moved bigint, p_jump_ms bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  UPDATE store_clock SET ahead_ms = ahead_ms - p_jump_ms, moved = moved + 1, seen = wall() WHERE moved = p_moved;
  RETURN FOUND; END $$;
-- It has not. The caller need not wait for the disk: if it is lost, the next one says it. Who finds it being said already leaves it.
CREATE FUNCTION vouch_for_clock(p_moved bigint) RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  UPDATE store_clock SET seen = wall() WHERE moved = (SELECT moved FROM store_clock WHERE moved = p_moved FOR NO KEY UPDATE SKIP LOCKED); END $$;

-- How long budgets of the agent's ready runs have stood still until then.
CREATE FUNCTION stood(p_agent int, p_now timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT s.total_ms + CASE WHEN s.until IS NULL THEN 0
      ELSE greatest(stint_v1.to_ms(least(p_now, s.until)) - stint_v1.to_ms(s.since), 0) END
    FROM stint.standstill s WHERE s.agent_id = p_agent), 0) $$;
-- Of a run that becomes ready: its budget by its agent's clock.
CREATE FUNCTION by_agents_clock(p_until timestamptz, p_agent int, p_now timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_until IS NOT NULL THEN stint_v1.later(p_until, -stint_v1.stood(p_agent, p_now)) END $$;
-- Of a run that is claimed: what is left of it, or of its parent's. Its own begins with its first start.
CREATE FUNCTION begun_budget(p_until timestamptz, p_stood bigint, p_started timestamptz, p_now timestamptz, p_budget_ms bigint)
RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT least(stint_v1.later(p_until, p_stood),
    CASE WHEN p_until IS NULL OR p_started IS NULL THEN stint_v1.later(p_now, p_budget_ms) END) $$;
-- When its budget ends if nothing is paused. Stable, as is the next, so that a view that calls it is a part of its query's plan.
CREATE FUNCTION own_budget(r run) RETURNS timestamptz LANGUAGE plpgsql STABLE SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  IF r.budget_until IS NULL OR r.state <> 'queued' OR r.hold IS NOT NULL THEN RETURN r.budget_until; END IF;
  RETURN later(r.budget_until, stood(r.agent_id, clock())); END $$;
-- When its budget ends as things stand; NULL: no one knows, or never.
CREATE FUNCTION budget_end(r run) RETURNS timestamptz LANGUAGE plpgsql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_until timestamptz; BEGIN
  IF r.budget_until IS NULL OR r.state <> 'queued' OR r.hold IS NOT NULL THEN RETURN r.budget_until; END IF;
  SELECT s.until INTO v_until FROM standstill s WHERE s.agent_id = r.agent_id;
  IF NOT isfinite(v_until) THEN RETURN NULL; END IF;
  RETURN later(r.budget_until, stood(r.agent_id, greatest(clock(), v_until))); END $$;
-- Whether its deadline or its budget has passed.
CREATE FUNCTION is_over(r run, p_wall timestamptz, p_now timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce(r.deadline <= p_wall, false) OR coalesce(r.budget_until <= CASE WHEN r.state = 'queued' AND r.hold IS NULL
    THEN stint_v1.later(p_now, -stint_v1.stood(r.agent_id, p_now)) ELSE p_now END, false) $$;
-- After a limit of these agents was paused or resumed, or they have other limits. What decides is read after the lock.
CREATE FUNCTION note_pauses(p_agents int[]) RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz; BEGIN
  PERFORM FROM standstill WHERE agent_id = ANY (p_agents) ORDER BY agent_id FOR NO KEY UPDATE;
  t := clock();
  UPDATE standstill s SET total_ms = stood(s.agent_id, t), since = CASE WHEN n.until IS NOT NULL THEN t END, until = n.until
  FROM (SELECT a.agent_id, max(g.paused_until) FILTER (WHERE g.paused_until > t) AS until
        FROM agent a LEFT JOIN limit_set_gate m USING (set_id) LEFT JOIN gate g USING (gate_id)
        WHERE a.agent_id = ANY (p_agents) GROUP BY a.agent_id) n
  WHERE s.agent_id = n.agent_id AND (s.until IS NOT NULL OR n.until IS NOT NULL); END $$;
CREATE FUNCTION note_pauses(p_limits text[]) RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM note_pauses(array_agg(DISTINCT a.agent_id)) FROM gate g JOIN limit_set_gate m USING (gate_id) JOIN agent a USING (set_id)
    WHERE g.name = ANY (p_limits); END $$;

-- ---- what all share ------------------------------------------------------------------------------------------------

CREATE FUNCTION must_find(p_id text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE v bigint; BEGIN
  SELECT run_id INTO v FROM run_name WHERE public_id = p_id;
  IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = 'ST400', MESSAGE = format('there is no run ''%s''', p_id); END IF;
  RETURN v; END $$;

CREATE FUNCTION lock_sessions(p_sessions bigint[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  PERFORM FROM session WHERE session_id = ANY (p_sessions) ORDER BY session_id FOR NO KEY UPDATE; END $$;

-- Whatever changes the state of a run comes through here, except a claim. Answers the sessions touched, for promote().
CREATE FUNCTION lock_runs(p_runs bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE v bigint[]; BEGIN
  SELECT array_agg(DISTINCT session_id) INTO v FROM run WHERE run_id = ANY (p_runs) AND session_id IS NOT NULL;
  IF v IS NOT NULL THEN PERFORM lock_sessions(v); END IF;
  PERFORM FROM run WHERE run_id = ANY (p_runs) ORDER BY run_id FOR NO KEY UPDATE;
  RETURN v; END $$;

-- The oldest unfinished run of a session is its head, whatever its state; if it still waits for that, its turn has come.
CREATE FUNCTION promote(p_sessions bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t timestamptz := clock(); BEGIN
  UPDATE run u SET hold = CASE WHEN u.not_before > t THEN 'delay' END, cause = 'promoted', changed_at = t, seq = u.seq + 1,
                   not_before = CASE WHEN u.not_before > t THEN u.not_before END,
                   budget_until = CASE WHEN u.not_before > t THEN u.budget_until ELSE by_agents_clock(u.budget_until, u.agent_id, t) END
  FROM unnest(p_sessions) s CROSS JOIN LATERAL (
    SELECT r.run_id FROM run r WHERE r.session_id = s AND r.finished_at IS NULL ORDER BY r.run_id LIMIT 1) h
  WHERE u.run_id = h.run_id AND u.state = 'queued' AND u.hold = 'session'; END $$;

-- Makes and locks them. Made in the order of their keys and locked in that of their ids, so that two submits never wait
-- for each other; again, if one of them was pruned meanwhile.
CREATE FUNCTION open_sessions(p_keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_locked bigint; BEGIN
  LOOP
    INSERT INTO session (key) SELECT k FROM unnest(p_keys) k
      WHERE NOT EXISTS (SELECT FROM session s WHERE s.key = k) ORDER BY k COLLATE "C" ON CONFLICT DO NOTHING;
    SELECT count(*) INTO v_locked FROM (
      SELECT FROM session s WHERE s.key = ANY (p_keys) ORDER BY s.session_id FOR NO KEY UPDATE) x;
    EXIT WHEN v_locked = cardinality(p_keys);
  END LOOP; END $$;

CREATE FUNCTION make_gates(p_names text[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO gate (name) SELECT DISTINCT n COLLATE "C" FROM unnest(p_names) n
    WHERE NOT EXISTS (SELECT FROM gate g WHERE g.name = n) ORDER BY 1 ON CONFLICT DO NOTHING; END $$;

CREATE FUNCTION held(p_gate int, OUT units bigint, OUT runs bigint) LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(c.n * m.weight), 0)::bigint, coalesce(sum(c.n), 0)::bigint FROM limit_set_gate m
    CROSS JOIN LATERAL (SELECT count(*) AS n FROM run r WHERE r.state = 'running' AND r.set_id = m.set_id) c
    WHERE m.gate_id = p_gate $$;

CREATE FUNCTION owns(r run, p_worker bigint, p_fence bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT r.state = 'running' AND r.fence = p_fence AND r.worker_id = p_worker $$;

-- ---- agents and limits ---------------------------------------------------------------------------------------------

-- One agent of define(): its limits are given as two lists. One definer at a time: `shared` depends on all agents.
CREATE FUNCTION define(p_name text, p_limits text[], p_weights bigint[], p_queued_max bigint, p_attempts_max bigint,
  p_lost_max bigint, p_backoff_base_ms bigint, p_backoff_cap_ms bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_set int; v_before int; v_gates int[]; v_agent int; BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('stint.define', 0));
  PERFORM make_gates(p_limits);
  SELECT set_id INTO v_before FROM agent WHERE name = p_name;
  v_set := v_before;
  IF v_before IS NULL OR EXISTS (
      SELECT FROM (SELECT g.gate_id, l.weight FROM unnest(p_limits, p_weights) l (name, weight) JOIN gate g USING (name)) n
        FULL JOIN (SELECT gate_id, weight FROM limit_set_gate WHERE set_id = v_before) o USING (gate_id, weight)
        WHERE n.gate_id IS NULL OR o.gate_id IS NULL) THEN
    INSERT INTO limit_set DEFAULT VALUES RETURNING set_id INTO v_set;
    INSERT INTO limit_set_gate (set_id, gate_id, weight)
      SELECT v_set, g.gate_id, l.weight FROM unnest(p_limits, p_weights) l (name, weight) JOIN gate g USING (name);
  END IF;
  INSERT INTO agent AS a (name, set_id, queued_max, attempts_max, lost_max, backoff_base_ms, backoff_cap_ms)
    VALUES (p_name, v_set, p_queued_max, p_attempts_max, p_lost_max, p_backoff_base_ms, p_backoff_cap_ms)
    ON CONFLICT (name) DO UPDATE SET set_id = excluded.set_id, queued_max = excluded.queued_max,
      attempts_max = excluded.attempts_max, lost_max = excluded.lost_max,
      backoff_base_ms = excluded.backoff_base_ms, backoff_cap_ms = excluded.backoff_cap_ms
    RETURNING a.agent_id INTO v_agent;
  INSERT INTO standstill (agent_id) VALUES (v_agent) ON CONFLICT DO NOTHING;
  IF v_set IS NOT DISTINCT FROM v_before THEN RETURN; END IF;
  SELECT array_agg(DISTINCT gate_id) INTO v_gates FROM limit_set_gate WHERE set_id IN (v_set, v_before);
  PERFORM FROM gate WHERE gate_id = ANY (v_gates) ORDER BY gate_id FOR NO KEY UPDATE;
  UPDATE gate g SET shared = n.many FROM (
    SELECT m.gate_id, count(*) > 1 AS many FROM limit_set_gate m JOIN agent USING (set_id) GROUP BY m.gate_id) n
    WHERE n.gate_id = g.gate_id AND g.gate_id = ANY (v_gates) AND g.shared <> n.many;
  PERFORM note_pauses(ARRAY[v_agent]); END $$;

CREATE FUNCTION resize(p_limit text, p_capacity bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM make_gates(ARRAY[p_limit]);
  UPDATE gate SET capacity = p_capacity WHERE name = p_limit AND capacity IS DISTINCT FROM p_capacity;
  IF NOT FOUND THEN RETURN; END IF;
  INSERT INTO event (seq, fence, cause, data, at) VALUES (0, 0, 'resized',
    format('{"limit":%s,"capacity":%s}', to_json(p_limit), coalesce(p_capacity::text, 'null')), clock()); END $$;

CREATE FUNCTION pause(p_limit text, p_length_ms bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM make_gates(ARRAY[p_limit]);
  UPDATE gate SET paused_until = greatest(paused_until, coalesce(later(clock(), p_length_ms), 'infinity')), ramp = 1
    WHERE name = p_limit;
  PERFORM note_pauses(ARRAY[p_limit]); END $$;

-- What was parked on it keeps its rank; the first to be claimed is the probe.
CREATE FUNCTION resume(p_limit text) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz := clock(); v_woken bigint; BEGIN
  UPDATE run u SET state = 'queued', hold = NULL, not_before = NULL, parked_on = NULL, cause = 'resumed', changed_at = t,
         seq = u.seq + 1, budget_until = by_agents_clock(later(t, u.budget_left_ms), u.agent_id, t), budget_left_ms = NULL
  FROM (SELECT run_id FROM run WHERE parked_on = p_limit AND state = 'parked' ORDER BY run_id FOR NO KEY UPDATE) l
  WHERE u.run_id = l.run_id;
  GET DIAGNOSTICS v_woken = ROW_COUNT;
  PERFORM make_gates(ARRAY[p_limit]);
  UPDATE gate SET paused_until = NULL WHERE name = p_limit;
  PERFORM note_pauses(ARRAY[p_limit]);
  RETURN v_woken; END $$;

CREATE FUNCTION limits() RETURNS TABLE (name text, capacity bigint, units bigint, runs bigint, paused boolean,
  paused_until_ms bigint, ramp bigint, paused_ms bigint) LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz := clock(); BEGIN
  RETURN QUERY SELECT g.name, g.capacity, h.units, h.runs, coalesce(g.paused_until > t, false),
      CASE WHEN g.paused_until > t THEN shown_ms(g.paused_until) END, g.ramp,
      CASE WHEN g.paused_until > t THEN to_ms(g.paused_until) - to_ms(t) END
    FROM gate g CROSS JOIN LATERAL held(g.gate_id) h ORDER BY g.name; END $$;

-- ---- workers -------------------------------------------------------------------------------------------------------

CREATE FUNCTION enrol(p_label text, p_lease_ms bigint) RETURNS bigint
LANGUAGE sql SET search_path = stint_v1, stint, pg_temp AS $$
  INSERT INTO worker (label, lease_until) VALUES (p_label, later(wall(), p_lease_ms)) RETURNING worker_id $$;

-- At least one row. Not alive: the runs have been taken back. Stops travel here, so that nothing needs to listen.
CREATE FUNCTION beat(p_worker bigint, p_lease_ms bigint) RETURNS TABLE (alive boolean, run_id bigint, fence bigint, stop text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_alive boolean; BEGIN
  UPDATE worker w SET lease_until = later(wall(), p_lease_ms) WHERE w.worker_id = p_worker AND w.state <> 'dead';
  v_alive := FOUND;
  RETURN QUERY SELECT v_alive, r.run_id, r.fence, r.stop FROM (VALUES (1)) one
    LEFT JOIN run r ON r.worker_id = p_worker AND r.state = 'running' AND r.stop IS NOT NULL ORDER BY r.run_id; END $$;

CREATE FUNCTION drain(p_worker bigint) RETURNS void
LANGUAGE sql SET search_path = stint_v1, stint, pg_temp AS $$
  UPDATE worker SET state = 'draining' WHERE worker_id = p_worker AND state = 'live' $$;

-- For update: no claim is under way.
CREATE FUNCTION leave(p_worker bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM FROM worker WHERE worker_id = p_worker AND state <> 'dead' FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF EXISTS (SELECT FROM run WHERE worker_id = p_worker AND state = 'running') THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409', MESSAGE = 'the worker still owns runs';
  END IF;
  UPDATE worker SET state = 'dead' WHERE worker_id = p_worker; END $$;

-- ---- submit --------------------------------------------------------------------------------------------------------

-- Deadlines as moments of the database's clock, of moments and of lengths from now: the earlier one holds.
CREATE FUNCTION deadlines(p_moments_ms bigint[], p_lengths_ms bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_now bigint := to_ms(wall()); BEGIN
  RETURN ARRAY(SELECT least(d.moment, v_now + d.length) FROM unnest(p_moments_ms, p_lengths_ms)
    WITH ORDINALITY AS d (moment, length, at) ORDER BY d.at); END $$;

-- How many more may be queued. Soft by the number of those who submit at once: an exact bound would make all submits of
-- an agent wait for each other. Its cost is the bound.
CREATE FUNCTION room(a agent) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT a.queued_max - count(*) FROM (
    (SELECT FROM run WHERE agent_id = a.agent_id AND state = 'queued' AND hold IS NULL LIMIT a.queued_max)
    UNION ALL
    (SELECT FROM run WHERE agent_id = a.agent_id AND state = 'queued' AND hold IS NOT NULL LIMIT a.queued_max)) q $$;

-- The common case, all at once: runs without session, parent and key, all of them new, and room for all. False: nothing
-- was done, they have to be looked at one by one.
CREATE FUNCTION enqueue_all(p_ids text[], p_agents text[], p_priorities int[], p_delays_ms bigint[], p_deadlines_ms bigint[],
  p_budgets_ms bigint[], p_on_crash text[], p_inputs text[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE v_runs bigint[]; t timestamptz; BEGIN
  PERFORM FROM (SELECT u.agent, count(*) AS n FROM unnest(p_agents) u (agent) GROUP BY u.agent) w
    LEFT JOIN agent a ON a.name = w.agent WHERE a.agent_id IS NULL OR room(a) < w.n;
  IF FOUND THEN RETURN false; END IF;
  WITH named AS (
    INSERT INTO run_name (public_id) SELECT u.id FROM unnest(p_ids) WITH ORDINALITY u (id, at) ORDER BY u.at
      ON CONFLICT DO NOTHING RETURNING run_id)
  SELECT array_agg(run_id ORDER BY run_id) INTO v_runs FROM named;
  IF cardinality(v_runs) IS DISTINCT FROM cardinality(p_ids) THEN
    DELETE FROM run_name WHERE public_id = ANY (p_ids) AND run_id = ANY (v_runs);
    RETURN false;
  END IF;
  t := clock();
  INSERT INTO run (run_id, public_id, agent_id, on_crash, state, hold, cause, changed_at, rank, created_at, not_before,
                   deadline, budget_ms)
    SELECT u.run_id, u.id, a.agent_id, u.on_crash, 'queued', CASE WHEN u.delay_ms > 0 THEN 'delay' END, 'enqueued', t,
           later(t, u.delay_ms) - u.priority * interval '10 minutes', t, CASE WHEN u.delay_ms > 0 THEN later(t, u.delay_ms) END,
           from_ms(u.deadline_ms), u.budget_ms
    FROM unnest(v_runs, p_ids, p_agents, p_priorities, p_delays_ms, p_deadlines_ms, p_budgets_ms, p_on_crash)
      AS u (run_id, id, agent, priority, delay_ms, deadline_ms, budget_ms, on_crash) JOIN agent a ON a.name = u.agent
    ORDER BY u.run_id;
  INSERT INTO run_input (run_id, body) SELECT * FROM unnest(v_runs, p_inputs) u (run_id, body) WHERE u.body <> '';
  RETURN true; END $$;

-- The run that holds the session and is above a child of p_parent; NULL: none. The child and it would wait for each other.
-- One that has ended holds nothing, and waits for nothing below it: the search ends there.
CREATE FUNCTION holder_above(p_parent bigint, p_session bigint) RETURNS text LANGUAGE sql STABLE AS $$
  WITH RECURSIVE above AS (
    SELECT r.run_id, r.parent_id, r.session_id, r.public_id FROM run r WHERE r.run_id = p_parent AND r.finished_at IS NULL
    UNION SELECT r.run_id, r.parent_id, r.session_id, r.public_id FROM above a JOIN run r ON r.run_id = a.parent_id
      WHERE r.finished_at IS NULL)
  SELECT public_id FROM above WHERE session_id = p_session LIMIT 1 $$;

-- One answer for each, in their order; a NULL `error` is success. Sessions and parents are locked for all of them before
-- the first is written. The share lock on a parent orders its children against its end and its cancel.
CREATE FUNCTION enqueue(p_ids text[], p_agents text[], p_sessions text[], p_parents text[], p_keys text[], p_priorities int[],
  p_delays_ms bigint[], p_deadlines_ms bigint[], p_budgets_ms bigint[], p_on_crash text[], p_inputs text[])
RETURNS TABLE (id text, created boolean, error text, message text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE n record; a agent; v_parent run; v_session bigint; v_holder text; v_behind boolean; v_run bigint; v_keys text[];
  v_room jsonb := '{}'; t timestamptz; BEGIN             -- the room of each agent is counted once
  IF '' = ALL (p_sessions || p_parents || p_keys) AND
      enqueue_all(p_ids, p_agents, p_priorities, p_delays_ms, p_deadlines_ms, p_budgets_ms, p_on_crash, p_inputs) THEN
    RETURN QUERY SELECT u.id, true, NULL::text, NULL::text FROM unnest(p_ids) u (id);
    RETURN;
  END IF;
  SELECT array_agg(DISTINCT s) INTO v_keys FROM unnest(p_sessions) s WHERE s <> '';
  IF v_keys IS NOT NULL THEN PERFORM open_sessions(v_keys); END IF;
  PERFORM FROM run WHERE run_id IN (SELECT run_id FROM run_name WHERE public_id = ANY (p_parents)) ORDER BY run_id FOR SHARE;
  t := clock();
  FOR n IN SELECT * FROM unnest(p_ids, p_agents, p_sessions, p_parents, p_keys, p_priorities, p_delays_ms, p_deadlines_ms,
        p_budgets_ms, p_on_crash, p_inputs)
      WITH ORDINALITY AS u (id, agent, session, parent, key, priority, delay_ms, deadline_ms, budget_ms, on_crash, input, at)
      ORDER BY u.at LOOP
    created := false; error := NULL; message := NULL; v_parent := NULL; v_session := NULL; v_behind := false;
    SELECT * INTO a FROM agent WHERE name = n.agent;
    IF NOT FOUND THEN
      error := 'ST400'; message := format('there is no agent ''%s''', n.agent); RETURN NEXT; CONTINUE;
    END IF;
    SELECT public_id INTO id FROM run_name WHERE public_id = n.id;
    IF NOT FOUND AND n.key <> '' THEN SELECT public_id INTO id FROM run WHERE agent_id = a.agent_id AND idem_key = n.key; END IF;
    IF id IS NOT NULL THEN RETURN NEXT; CONTINUE; END IF;
    id := n.id;
    IF NOT v_room ? n.agent THEN v_room := v_room || jsonb_build_object(n.agent, room(a)); END IF;
    IF (v_room ->> n.agent)::bigint < 1 THEN
      error := 'ST503'; message := format('the queue of ''%s'' is full', n.agent); RETURN NEXT; CONTINUE;
    END IF;
    IF n.session <> '' THEN
      SELECT session_id INTO v_session FROM session WHERE key = n.session;
      v_behind := EXISTS (SELECT FROM run WHERE session_id = v_session AND finished_at IS NULL);
    END IF;
    IF n.parent <> '' THEN
      SELECT r.* INTO v_parent FROM run_name p JOIN run r USING (run_id)
        WHERE p.public_id = n.parent AND r.state = 'running' AND r.stop IS NULL;
      IF NOT FOUND THEN
        error := 'ST409'; message := format('its parent ''%s'' does not run', n.parent); RETURN NEXT; CONTINUE;
      END IF;
      IF v_session IS NOT NULL THEN
        v_holder := holder_above(v_parent.run_id, v_session);
        IF v_holder IS NOT NULL THEN                       -- store/words.cpp has the same words
          error := 'ST400'; message := format('session ''%s'' is held by run ''%s'', which is above this one: each would wait for the '
            'other. Use another session', n.session, v_holder); RETURN NEXT; CONTINUE;
        END IF;
      END IF;
    END IF;
    INSERT INTO run_name (public_id) VALUES (n.id) ON CONFLICT DO NOTHING RETURNING run_id INTO v_run;
    IF NOT FOUND THEN RETURN NEXT; CONTINUE; END IF;     -- a twin was quicker, and has committed
    INSERT INTO run (run_id, public_id, agent_id, session_id, parent_id, parent, idem_key, on_crash, state, hold, cause,
                     changed_at, rank, created_at, not_before, deadline, budget_ms, budget_until)
      VALUES (v_run, n.id, a.agent_id, v_session, v_parent.run_id, nullif(n.parent, ''), nullif(n.key, ''), n.on_crash, 'queued',
              CASE WHEN v_behind THEN 'session' WHEN n.delay_ms > 0 THEN 'delay' END, 'enqueued', t,
              later(t, n.delay_ms) - n.priority * interval '10 minutes', t,
              CASE WHEN n.delay_ms > 0 THEN later(t, n.delay_ms) END, least(from_ms(n.deadline_ms), v_parent.deadline), n.budget_ms,
              CASE WHEN v_behind OR n.delay_ms > 0 THEN v_parent.budget_until
                   ELSE by_agents_clock(v_parent.budget_until, a.agent_id, t) END)
      ON CONFLICT DO NOTHING;
    IF FOUND THEN
      created := true;
      v_room := v_room || jsonb_build_object(n.agent, (v_room ->> n.agent)::bigint - 1);
      IF n.input <> '' THEN INSERT INTO run_input (run_id, body) VALUES (v_run, n.input); END IF;
    ELSE                                                 -- a twin by its key
      DELETE FROM run_name WHERE public_id = n.id;
      SELECT public_id INTO id FROM run WHERE agent_id = a.agent_id AND idem_key = n.key;
    END IF;
    RETURN NEXT;
  END LOOP; END $$;

-- Wakes who waits for work. A commit that notifies waits for the others that do, of the whole database: so only one at
-- a time does; what another commits just after that is found by a poll.
CREATE FUNCTION announce() RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  IF pg_try_advisory_xact_lock(hashtextextended('stint.announce', 0)) THEN PERFORM pg_notify('stint', ''); END IF; END $$;

-- ---- claim ---------------------------------------------------------------------------------------------------------

-- The gates locked. NULL: another claim of this agent is under way and takes a batch; leave it to that one. Own gates
-- first and never waited for, then all by id: a gate that was shared until now is not missed.
CREATE FUNCTION lock_gates(p_set int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE v_all int[]; v_own int[]; v_got int; BEGIN
  SELECT coalesce(array_agg(g.gate_id), '{}'), coalesce(array_agg(g.gate_id) FILTER (WHERE NOT g.shared), '{}') INTO v_all, v_own
    FROM limit_set_gate m JOIN gate g USING (gate_id)
    WHERE m.set_id = p_set AND (g.capacity IS NOT NULL OR g.paused_until IS NOT NULL OR g.ramp IS NOT NULL);
  SELECT count(*) INTO v_got FROM (SELECT FROM gate WHERE gate_id = ANY (v_own) FOR NO KEY UPDATE SKIP LOCKED) x;
  IF v_got < cardinality(v_own) THEN RETURN NULL; END IF;
  PERFORM FROM gate WHERE gate_id = ANY (v_all) ORDER BY gate_id FOR NO KEY UPDATE;
  RETURN v_all; END $$;

-- How many runs of the set may start now; NULL: no limit. The rule is domain/gate.cpp's. Exact, because every claim on
-- these gates holds their locks. Takes and gives back turns.
CREATE FUNCTION free_permits(p_agent int, p_set int, p_locked int[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE v record; t timestamptz := clock(); BEGIN
  SELECT min(CASE WHEN g.paused_until > t THEN 0 WHEN g.turn_of <> p_agent AND g.turn_until > t THEN 0
                  ELSE least((g.capacity - h.units) / m.weight, g.ramp - h.runs) END) AS free,
         array_agg(g.gate_id) FILTER (WHERE m.weight > 1 AND g.shared AND g.capacity - h.units < m.weight) AS short,
         bool_or(g.paused_until > t OR (g.turn_of <> p_agent AND g.turn_until > t) OR g.last_turn_of = p_agent) AS blocked,
         bool_or(g.turn_of = p_agent OR g.last_turn_of <> p_agent) AS turned INTO v
    FROM limit_set_gate m JOIN gate g USING (gate_id) CROSS JOIN LATERAL held(g.gate_id) h
    WHERE m.set_id = p_set AND (g.gate_id = ANY (p_locked) OR g.paused_until IS NOT NULL);
  IF v.free < 1 THEN
    IF v.short IS NOT NULL AND NOT coalesce(v.blocked, false) THEN
      UPDATE gate SET turn_of = p_agent, turn_until = later(t, 2000) WHERE gate_id = ANY (v.short);
    END IF;
  ELSIF v.turned THEN
    UPDATE gate SET last_turn_of = CASE WHEN turn_of = p_agent THEN p_agent END, turn_of = NULL, turn_until = NULL
      WHERE gate_id = ANY (p_locked) AND (turn_of = p_agent OR last_turn_of <> p_agent);
  END IF;
  RETURN v.free; END $$;

-- In milliseconds, of a run that has begun; NULL: it has neither.
CREATE FUNCTION time_left(p_deadline timestamptz, p_budget_until timestamptz, p_wall timestamptz, p_now timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT least(to_ms(p_deadline) - to_ms(p_wall), to_ms(p_budget_until) - to_ms(p_now)) $$;

-- lock_timeout (55P03): a shared gate is busy, come back later. A plan from when the queue was short must not sort a long
-- one: only run_ready gives the order, whatever the statistics say. jit: the price that the planner puts on what is off
-- would make it compile each statement (measured: 1 ms became 200).
CREATE FUNCTION claim(p_worker bigint, p_round bigint, p_agent text, p_most bigint)
RETURNS TABLE (run_id bigint, id text, fence bigint, attempt bigint, lost bigint, expires_ms bigint, input text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp SET lock_timeout = '200ms'
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE v_worker worker; v_agent int; v_set int; v_gates int[]; v_most bigint; t timestamptz; w timestamptz; v_stood bigint; BEGIN
  -- Key share: it neither waits for beats nor holds them up, but no one buries the worker meanwhile.
  SELECT * INTO v_worker FROM worker w WHERE w.worker_id = p_worker FOR KEY SHARE;
  IF v_worker.worker_id IS NULL OR v_worker.state = 'dead' OR v_worker.lease_until < wall() THEN
    RAISE EXCEPTION USING ERRCODE = 'ST401', MESSAGE = 'the lease of this worker is over';
  END IF;
  IF v_worker.state <> 'live' OR v_worker.round <> p_round THEN RETURN; END IF;
  SELECT agent_id, set_id INTO v_agent, v_set FROM agent WHERE name = p_agent;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM FROM run r WHERE r.agent_id = v_agent AND r.state = 'queued' AND r.hold IS NULL ORDER BY r.rank, r.run_id LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;      -- who has nothing takes no turn
  v_gates := lock_gates(v_set);
  IF v_gates IS NULL THEN RETURN; END IF;
  v_most := least(p_most, free_permits(v_agent, v_set, v_gates));
  IF v_most < 1 THEN RETURN; END IF;
  t := clock(); w := wall(); v_stood := stood(v_agent, t);
  RETURN QUERY
  WITH next AS MATERIALIZED (
    SELECT r.run_id FROM run r
    WHERE r.agent_id = v_agent AND r.state = 'queued' AND r.hold IS NULL AND (r.deadline IS NULL OR r.deadline > w)
      AND (r.budget_until IS NULL OR r.budget_until > later(t, -v_stood))
    ORDER BY r.rank, r.run_id LIMIT v_most FOR NO KEY UPDATE SKIP LOCKED),
  taken AS (
    UPDATE run u SET state = 'running', cause = 'claimed', changed_at = t, worker_id = p_worker, set_id = v_set,
           fence = u.fence + 1, attempt = u.attempt + 1, seq = u.seq + 1, started_at = t,
           budget_until = begun_budget(u.budget_until, v_stood, u.started_at, t, u.budget_ms)
    FROM next WHERE u.run_id = next.run_id
    RETURNING u.run_id, u.public_id, u.fence, u.attempt, u.lost, u.deadline, u.budget_until, u.rank)
  SELECT k.run_id, k.public_id, k.fence, k.attempt, k.lost, to_ms(w) + time_left(k.deadline, k.budget_until, w, t), i.body
    FROM taken k LEFT JOIN run_input i USING (run_id) ORDER BY k.rank, k.run_id; END $$;

-- A claim whose answer was lost may have happened, or may even be about to: its process keeps its lease alive, so nobody
-- would take the runs back. A new round waits for what is under way and refuses what comes late; then it is sure.
CREATE FUNCTION new_round(p_worker bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v bigint; BEGIN
  PERFORM FROM worker WHERE worker_id = p_worker FOR UPDATE;
  UPDATE worker SET round = round + 1 WHERE worker_id = p_worker RETURNING round INTO v;
  RETURN v; END $$;

CREATE FUNCTION owned(p_worker bigint)
RETURNS TABLE (run_id bigint, id text, fence bigint, attempt bigint, lost bigint, expires_ms bigint, input text)
LANGUAGE sql VOLATILE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT r.run_id, r.public_id, r.fence, r.attempt, r.lost, to_ms(wall()) + time_left(r.deadline, r.budget_until, wall(), clock()), i.body
    FROM run r LEFT JOIN run_input i USING (run_id) WHERE r.worker_id = p_worker AND r.state = 'running' ORDER BY r.run_id $$;

-- ---- the end of an attempt -----------------------------------------------------------------------------------------

-- domain::after_settle, word for word.
CREATE FUNCTION next_state(p_settle text, p_stop text, p_unsafe boolean, p_on_crash text, p_attempt bigint,
  p_attempts_max bigint, p_lost bigint, p_lost_max bigint, p_expires_first boolean, p_deadline_first boolean)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_settle = 'succeeded'                              THEN 'succeeded'  -- also after a late cancel
    WHEN p_settle = 'failed'                                 THEN coalesce(p_stop, 'failed')
    WHEN p_unsafe                                            THEN 'in_doubt'   -- unknown effects outrank a cancel
    WHEN p_stop IS NOT NULL OR p_settle = 'cancelled'        THEN coalesce(p_stop, 'cancelled')
    WHEN p_settle = 'lost' AND p_on_crash = 'doubt'          THEN 'in_doubt'
    WHEN p_settle = 'lost' AND p_lost + 1 >= p_lost_max      THEN 'failed'     -- it kills its owners
    WHEN p_settle = 'retry' AND p_attempt >= p_attempts_max  THEN 'failed'
    WHEN p_settle = 'park' AND p_deadline_first              THEN 'expired'
    WHEN p_settle = 'park'                                   THEN 'parked'
    WHEN p_expires_first                                     THEN 'expired'    -- what can't fit ends now
    ELSE 'queued' END $$;

-- domain::error_of_loss, word for word.
CREATE FUNCTION error_of_loss(p_next text, p_times bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_next WHEN 'in_doubt' THEN 'the process that carried it was lost: what it did until then is unknown'
    WHEN 'failed' THEN format('the process that carried it was lost %s: the run may be the cause. `stint retry` runs it again',
      CASE p_times WHEN 1 THEN 'once' ELSE p_times || ' times' END) END $$;

-- After the runs: pauses what a park named, and widens the ramps of what succeeded. All gates are locked first.
CREATE FUNCTION settle_gates(p_runs bigint[], p_settles text[], p_park_on text[], p_park_ms bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE v_paused text[]; v_ramped int[]; BEGIN
  SELECT array_agg(DISTINCT i.name) INTO v_paused FROM unnest(p_settles, p_park_on) i (settle, name)
    WHERE i.settle = 'park' AND i.name <> '';
  IF v_paused IS NOT NULL THEN PERFORM make_gates(v_paused); END IF;
  IF 'succeeded' = ANY (p_settles) AND EXISTS (SELECT FROM gate WHERE ramp IS NOT NULL) THEN
    SELECT array_agg(DISTINCT g.gate_id) INTO v_ramped FROM unnest(p_runs, p_settles) i (run_id, settle)
      JOIN run r USING (run_id) JOIN limit_set_gate m USING (set_id) JOIN gate g USING (gate_id)
      WHERE i.settle = 'succeeded' AND g.ramp IS NOT NULL;
  END IF;
  IF v_paused IS NULL AND v_ramped IS NULL THEN RETURN; END IF;
  PERFORM FROM gate WHERE gate_id = ANY (v_ramped) OR name = ANY (v_paused) ORDER BY gate_id FOR NO KEY UPDATE;
  -- Each success doubles it, up to the capacity or 64: then it is over.
  UPDATE gate g SET ramp = CASE WHEN g.ramp * 2 ^ n.times < least(g.capacity, 64) THEN (g.ramp * 2 ^ n.times)::bigint END
    FROM (SELECT m.gate_id, count(*) AS times FROM unnest(p_runs, p_settles) i (run_id, settle)
            JOIN run r USING (run_id) JOIN limit_set_gate m USING (set_id) WHERE i.settle = 'succeeded' GROUP BY m.gate_id) n
    WHERE g.gate_id = n.gate_id AND g.gate_id = ANY (v_ramped) AND g.ramp IS NOT NULL;
  UPDATE gate g SET paused_until = greatest(g.paused_until, n.until), ramp = 1
    FROM (SELECT i.name, max(coalesce(later(clock(), i.park_ms), 'infinity')) AS until
            FROM unnest(p_settles, p_park_on, p_park_ms) i (settle, name, park_ms)
            WHERE i.settle = 'park' AND i.name <> '' GROUP BY i.name) n
    WHERE g.name = n.name;
  IF v_paused IS NOT NULL THEN PERFORM note_pauses(v_paused); END IF; END $$;

-- All ends of attempts, of whatever kind. What is missing in the answer was stale: it counts for nothing. The settings are
-- claim()'s: each run is looked up by its number, whatever the statistics say, and nothing is planned anew.
CREATE FUNCTION settle(p_worker bigint, p_runs bigint[], p_fences bigint[], p_settles text[], p_errors text[], p_results text[],
  p_retry_ms bigint[], p_park_on text[], p_park_ms bigint[])
RETURNS TABLE (at bigint, state text) LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE v_sessions bigint[]; v_at bigint[]; v_states text[]; t timestamptz; w timestamptz; BEGIN
  v_sessions := lock_runs(p_runs);
  t := clock(); w := wall();
  -- OFFSET: the runs are looked up one by one. Else a plan may compare all that the worker owns with all that it settles.
  WITH due AS MATERIALIZED (
    SELECT DISTINCT ON (r.run_id) r.*, i.at, i.settle, i.error, i.result, i.park_on, later(t, i.park_ms) AS until, later(w, i.park_ms) AS wall_until,
           CASE i.settle WHEN 'retry' THEN later(t, greatest(i.retry_ms,
             ceil(random() * least(a.backoff_cap_ms, a.backoff_base_ms * 2.0 ^ least(r.attempt, 20)))::bigint)) ELSE t END AS again,
           a.attempts_max, a.lost_max
    FROM unnest(p_runs, p_fences, p_settles, p_errors, p_results, p_retry_ms, p_park_on, p_park_ms)
      WITH ORDINALITY AS i (run_id, fence, settle, error, result, retry_ms, park_on, park_ms, at)
      CROSS JOIN LATERAL (SELECT x.run_id, x.agent_id, x.stop, x.unsafe, x.on_crash, x.attempt, x.lost, x.budget_until, x.deadline,
          owns(x, p_worker, i.fence) AS owned FROM run x WHERE x.run_id = i.run_id OFFSET 0) r
      JOIN agent a USING (agent_id)
    WHERE r.owned ORDER BY r.run_id, i.at),
  decided AS MATERIALIZED (
    SELECT d.run_id, d.lost, d.at, d.settle, d.error, d.result, d.park_on, d.until, d.again,
      next_state(d.settle, d.stop, d.unsafe, d.on_crash, d.attempt, d.attempts_max, d.lost, d.lost_max,
        coalesce(time_left(d.deadline, d.budget_until, w, t) <= to_ms(d.again) - to_ms(t), false),
        coalesce(d.settle = 'park' AND d.deadline <= d.wall_until, false)) AS next
    FROM due d),
  ended AS (
    UPDATE run u SET state = n.next, cause = n.settle, changed_at = t,
      error = coalesce(nullif(n.error, ''), CASE n.settle WHEN 'lost' THEN error_of_loss(n.next, n.lost + 1) END,
        CASE WHEN n.next <> 'succeeded' THEN u.error END),
      seq = u.seq + 1, worker_id = NULL,
      hold = CASE WHEN n.next = 'queued' AND n.settle = 'retry' THEN 'backoff'
                  WHEN n.next = 'parked' THEN CASE WHEN n.until IS NULL THEN 'person' ELSE 'quota' END END,
      not_before = CASE WHEN n.next = 'queued' AND n.settle = 'retry' THEN n.again WHEN n.next = 'parked' THEN n.until END,
      attempt = u.attempt - (n.settle IN ('park', 'hand_back', 'lost'))::int, lost = u.lost + (n.settle = 'lost')::int,
      parked_on = CASE WHEN n.next = 'parked' THEN nullif(n.park_on, '') END,
      budget_left_ms = CASE WHEN n.next = 'parked' THEN to_ms(u.budget_until) - to_ms(t) END,
      budget_until = CASE WHEN n.next = 'queued' AND n.settle <> 'retry' THEN by_agents_clock(u.budget_until, u.agent_id, t)
                          WHEN n.next <> 'parked' THEN u.budget_until END,
      unsafe = n.next = 'in_doubt' AND u.unsafe,
      finished_at = CASE WHEN n.next IN ('succeeded', 'failed', 'cancelled', 'expired') THEN t END
    FROM decided n WHERE u.run_id = n.run_id),
  kept AS (
    INSERT INTO run_result (run_id, body) SELECT n.run_id, n.result FROM decided n WHERE n.result <> ''
      ON CONFLICT (run_id) DO UPDATE SET body = excluded.body)
  SELECT array_agg(n.at ORDER BY n.at), array_agg(n.next ORDER BY n.at) INTO v_at, v_states
    FROM decided n;
  IF v_at IS NULL THEN RETURN; END IF;
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF;
  IF 'park' = ANY (p_settles) OR EXISTS (SELECT FROM gate WHERE ramp IS NOT NULL) THEN
    PERFORM settle_gates(array_agg(p_runs[i]), array_agg(p_settles[i]), array_agg(p_park_on[i]), array_agg(p_park_ms[i]))
      FROM unnest(v_at) i;
  END IF;
  RETURN QUERY SELECT * FROM unnest(v_at, v_states); END $$;

-- Before a call that may not be repeated is begun, and when its outcome is known.
CREATE FUNCTION mark(p_worker bigint, p_run bigint, p_fence bigint, p_unsafe boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  UPDATE run r SET unsafe = p_unsafe, cause = CASE WHEN p_unsafe THEN 'unsafe' ELSE 'safe' END, changed_at = clock(), seq = r.seq + 1
    WHERE r.run_id = p_run AND owns(r, p_worker, p_fence) AND r.unsafe <> p_unsafe;
  RETURN FOUND OR EXISTS (SELECT FROM run r WHERE r.run_id = p_run AND owns(r, p_worker, p_fence)); END $$;

-- Asked again under the same word, it is not written again: an answer may have been lost.
CREATE FUNCTION note(p_worker bigint, p_run bigint, p_fence bigint, p_word bigint, p_cause text, p_data text) RETURNS boolean
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  WITH u AS (UPDATE run r SET seq = r.seq + 1, cause = 'note', changed_at = clock(), last_word = p_word
    WHERE r.run_id = p_run AND owns(r, p_worker, p_fence) AND r.last_word IS DISTINCT FROM p_word RETURNING r.*)
  INSERT INTO event (run_id, seq, fence, worker_id, set_id, cause, state, data, at)
    SELECT run_id, seq, fence, worker_id, set_id, p_cause, state, p_data, changed_at FROM u;
  RETURN FOUND OR EXISTS (SELECT FROM run r WHERE r.run_id = p_run AND owns(r, p_worker, p_fence)); END $$;

-- The head of an output and its tail are kept, in chunks; what falls out of the tail goes.
CREATE FUNCTION append_output(p_worker bigint, p_run bigint, p_fence bigint, p_word bigint, p_text bytea, p_head_max bigint,
  p_tail_max bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_at bigint; v_end bigint; v_head int; v_tail int; BEGIN
  PERFORM FROM run r WHERE r.run_id = p_run AND owns(r, p_worker, p_fence) FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  IF length(p_text) = 0 THEN RETURN true; END IF;
  INSERT INTO output AS o (run_id, bytes, last_word) VALUES (p_run, length(p_text), p_word)
    ON CONFLICT (run_id) DO UPDATE SET bytes = o.bytes + excluded.bytes, last_word = p_word
    WHERE o.last_word IS DISTINCT FROM p_word RETURNING bytes INTO v_end;
  IF NOT FOUND THEN RETURN true; END IF;                 -- it is there already
  v_at := v_end - length(p_text);
  v_head := least(greatest(p_head_max - v_at, 0), length(p_text));
  v_tail := least(p_tail_max, length(p_text) - v_head);
  INSERT INTO output_chunk (run_id, at, body)
    SELECT p_run, c.at, c.body FROM (VALUES (v_at, substring(p_text FROM 1 FOR v_head)),
      (v_end - v_tail, substring(p_text FROM length(p_text) - v_tail + 1))) c (at, body) WHERE length(c.body) > 0;
  DELETE FROM output_chunk c WHERE c.run_id = p_run AND c.at >= p_head_max AND c.at + length(c.body) <= v_end - p_tail_max;
  RETURN true; END $$;

-- ---- from outside --------------------------------------------------------------------------------------------------

-- Ends what waits and asks the owners of what runs.
CREATE FUNCTION stop(p_runs bigint[], p_stop text, p_now timestamptz) RETURNS TABLE (run_id bigint, id text, state text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY UPDATE run u SET stop = p_stop, seq = u.seq + 1, changed_at = p_now, hold = NULL, not_before = NULL, parked_on = NULL,
      state = CASE u.state WHEN 'running' THEN 'running' ELSE p_stop END,
      cause = CASE u.state WHEN 'running' THEN 'cancel_asked' ELSE p_stop END,
      finished_at = CASE WHEN u.state <> 'running' THEN p_now END
    WHERE u.run_id = ANY (p_runs) AND u.state IN ('queued', 'running', 'parked') AND u.stop IS NULL
      AND (p_stop <> 'expired' OR is_over(u, wall(), p_now))
    RETURNING u.run_id, u.public_id, u.state; END $$;

-- The whole tree, also through those that ended. Asked again until it answers nothing: a child that was submitted meanwhile
-- is found by the second call, and a parent that is being cancelled takes no more.
CREATE FUNCTION cancel(p_id text) RETURNS TABLE (id text, state text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_root bigint := must_find(p_id); v_runs bigint[]; v_sessions bigint[]; BEGIN
  WITH RECURSIVE tree AS (SELECT v_root AS run_id UNION SELECT r.run_id FROM tree JOIN run r ON r.parent_id = tree.run_id)
  SELECT array_agg(r.run_id) INTO v_runs FROM tree JOIN run r USING (run_id)
    WHERE r.state IN ('queued', 'running', 'parked') AND r.stop IS NULL;
  IF v_runs IS NULL THEN RETURN; END IF;
  v_sessions := lock_runs(v_runs);
  RETURN QUERY SELECT s.id, s.state FROM stop(v_runs, 'cancelled', clock()) s ORDER BY s.run_id;
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF; END $$;

CREATE FUNCTION resolve(p_id text, p_how text, p_state text) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_run bigint := must_find(p_id); v_sessions bigint[]; v_state text; t timestamptz; BEGIN
  v_sessions := lock_runs(ARRAY[v_run]);
  SELECT state INTO v_state FROM run WHERE run_id = v_run;
  IF v_state <> 'in_doubt' THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409', MESSAGE = format('''%s'' is %s, not in doubt', p_id, v_state);
  END IF;
  t := clock();
  UPDATE run SET state = p_state, finished_at = CASE WHEN p_how <> 'rerun' THEN t END, unsafe = false,
      error = CASE WHEN p_state <> 'succeeded' THEN error END,
      cause = 'resolved_' || p_how, changed_at = t, stop = CASE WHEN p_how <> 'rerun' THEN stop END, budget_until = NULL, seq = seq + 1
    WHERE run_id = v_run;
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF; END $$;

CREATE FUNCTION answer(p_id text) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_run bigint := must_find(p_id); t timestamptz := clock(); BEGIN
  UPDATE run SET state = 'queued', hold = NULL, not_before = NULL, parked_on = NULL, cause = 'resumed', changed_at = t, seq = seq + 1,
      budget_until = by_agents_clock(later(t, budget_left_ms), agent_id, t), budget_left_ms = NULL
    WHERE run_id = v_run AND state = 'parked' AND hold = 'person';
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409', MESSAGE = format('''%s'' does not wait for a person', p_id);
  END IF; END $$;

-- ---- what is due: each of these is a transaction of its own, so that none takes locks out of their order ----------------

CREATE FUNCTION wake(p_most bigint) RETURNS bigint LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz := clock(); v_woken bigint; BEGIN
  UPDATE run u SET state = 'queued', hold = NULL, not_before = NULL, parked_on = NULL, cause = 'woken', changed_at = t, seq = u.seq + 1,
         budget_until = by_agents_clock(coalesce(later(t, u.budget_left_ms), u.budget_until), u.agent_id, t), budget_left_ms = NULL
  FROM (SELECT run_id FROM run WHERE not_before <= t AND not_before IS NOT NULL AND hold <> 'session'
        ORDER BY not_before LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED) d WHERE u.run_id = d.run_id;
  GET DIAGNOSTICS v_woken = ROW_COUNT;
  RETURN v_woken; END $$;

-- The agents that have ready runs with a budget that has begun: the first that ends, by the agent's clock, and how that stands.
CREATE FUNCTION ready_budgets(p_now timestamptz) RETURNS TABLE (agent_id int, first timestamptz, drawn timestamptz)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT x.agent_id, x.first, later(p_now, -stood(x.agent_id, p_now)) FROM (
    SELECT r.agent_id, min(r.budget_until) AS first FROM run r
    WHERE r.state = 'queued' AND r.hold IS NULL AND r.budget_until IS NOT NULL GROUP BY r.agent_id) x $$;

CREATE FUNCTION expire(p_most bigint) RETURNS bigint LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz := clock(); v_runs bigint[]; v_sessions bigint[]; v_expired bigint; BEGIN
  SELECT array_agg(run_id) INTO v_runs FROM (
    (SELECT run_id FROM run WHERE deadline <= wall() AND deadline IS NOT NULL AND state IN ('queued', 'running', 'parked') AND stop IS NULL
      ORDER BY deadline LIMIT p_most)
    UNION
    (SELECT run_id FROM run WHERE budget_until <= t AND budget_until IS NOT NULL AND stop IS NULL
      AND (state IN ('running', 'parked') OR state = 'queued' AND hold IS NOT NULL) ORDER BY budget_until LIMIT p_most)
    UNION
    (SELECT r.run_id FROM ready_budgets(t) b JOIN run r ON r.agent_id = b.agent_id AND r.state = 'queued' AND r.hold IS NULL
      AND r.budget_until IS NOT NULL AND r.budget_until <= b.drawn WHERE b.first <= b.drawn LIMIT p_most)) x;
  IF v_runs IS NULL THEN RETURN 0; END IF;
  v_sessions := lock_runs(v_runs);
  SELECT count(*) INTO v_expired FROM stop(v_runs, 'expired', clock());
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF;
  RETURN v_expired; END $$;

-- One dead worker, or no row: two would take the locks of their sessions out of order. A lease that ends further away
-- than any can was given before the clock was set back.
CREATE FUNCTION bury(p_far_ms bigint) RETURNS TABLE (worker bigint, lost bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_runs bigint[]; v_fences bigint[]; v_none text[]; BEGIN
  SELECT worker_id INTO worker FROM worker
    WHERE state <> 'dead' AND (lease_until < wall() OR lease_until > later(wall(), p_far_ms))
    ORDER BY lease_until, worker_id LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE worker w SET state = 'dead' WHERE w.worker_id = bury.worker;
  SELECT coalesce(array_agg(run_id), '{}'), array_agg(fence) INTO v_runs, v_fences
    FROM run r WHERE r.worker_id = bury.worker AND r.state = 'running';
  v_none := array_fill(''::text, ARRAY[cardinality(v_runs)]);
  SELECT count(*) INTO lost FROM settle(worker, v_runs, v_fences, array_fill('lost'::text, ARRAY[cardinality(v_runs)]), v_none, v_none,
    array_fill(0::bigint, ARRAY[cardinality(v_runs)]), v_none, array_fill(NULL::bigint, ARRAY[cardinality(v_runs)]));
  RETURN NEXT; END $$;

-- How long until then.
CREATE FUNCTION next_due() RETURNS bigint LANGUAGE sql VOLATILE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT least(
    (SELECT to_ms(min(not_before)) FROM run WHERE not_before IS NOT NULL AND hold <> 'session') - to_ms(t),
    (SELECT to_ms(min(deadline)) FROM run WHERE deadline IS NOT NULL AND stop IS NULL AND state IN ('queued', 'running', 'parked')) - to_ms(wall()),
    (SELECT to_ms(min(budget_until)) FROM run WHERE budget_until IS NOT NULL AND stop IS NULL
      AND (state IN ('running', 'parked') OR state = 'queued' AND hold IS NOT NULL)) - to_ms(t),
    (SELECT min(to_ms(b.first) - to_ms(b.drawn) + CASE WHEN s.until > t THEN to_ms(s.until) - to_ms(t) ELSE 0 END)
      FROM ready_budgets(t) b JOIN standstill s USING (agent_id)))
  FROM clock() t $$;

-- ---- looking -------------------------------------------------------------------------------------------------------

CREATE VIEW seen AS
  SELECT r.run_id, r.public_id, a.name AS agent, s.key AS session, r.parent, r.idem_key, r.state, r.hold, r.stop, r.error,
    r.attempt, r.lost, r.fence, r.seq, r.unsafe, r.on_crash, r.worker_id, to_ms(r.created_at) - (SELECT ahead_ms FROM store_clock) AS created_ms,
    to_ms(r.not_before) - (SELECT ahead_ms FROM store_clock) AS not_before_ms, to_ms(r.deadline) AS deadline_ms,
    least(to_ms(r.deadline), CASE WHEN r.budget_until IS NOT NULL THEN to_ms(budget_end(r)) - (SELECT ahead_ms FROM store_clock) END) AS expires_ms,
    to_ms(r.started_at) - (SELECT ahead_ms FROM store_clock) AS started_ms, to_ms(r.finished_at) - (SELECT ahead_ms FROM store_clock) AS finished_ms
  FROM run r JOIN agent a USING (agent_id) LEFT JOIN session s USING (session_id);

CREATE VIEW told AS
  SELECT r.public_id, e.run_id, e.seq, e.fence, e.cause, e.state, e.hold, e.worker_id, e.error, e.data, to_ms(e.at) - (SELECT ahead_ms FROM store_clock) AS at_ms, e.xid, e.id
  FROM event e LEFT JOIN run r USING (run_id);

CREATE FUNCTION events(p_id text, p_after bigint, p_most bigint) RETURNS SETOF told
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_run bigint := must_find(p_id); BEGIN
  RETURN QUERY SELECT * FROM told WHERE run_id = v_run AND seq > p_after ORDER BY seq LIMIT p_most; END $$;

-- Below the snapshot's xmin every transaction has ended, so nothing can appear behind the cursor later.
CREATE FUNCTION feed(p_xid xid8, p_id bigint, p_most bigint) RETURNS SETOF told
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT * FROM told WHERE (xid, id) > (p_xid, p_id) AND xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY xid, id LIMIT p_most $$;

CREATE FUNCTION why(p_id text) RETURNS TABLE (reason text, detail text, until_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_run bigint := must_find(p_id); r run; t timestamptz := clock(); BEGIN
  SELECT * INTO r FROM run WHERE run_id = v_run;
  IF r.state NOT IN ('queued', 'parked') THEN RETURN; END IF;
  IF r.hold IS NOT NULL THEN
    RETURN QUERY SELECT r.hold, coalesce((SELECT format('behind %s (%s)', h.public_id, h.state) FROM run h
        WHERE r.hold = 'session' AND h.session_id = r.session_id AND h.finished_at IS NULL ORDER BY h.run_id LIMIT 1), r.parked_on),
      shown_ms(r.not_before);
    RETURN;
  END IF;
  RETURN QUERY
    SELECT w.reason, CASE WHEN w.reason = 'paused' THEN g.name
             ELSE format('%s: %s of %s held', g.name, h.units, coalesce(g.capacity::text, 'any')) END,
           shown_ms(CASE w.reason WHEN 'paused' THEN g.paused_until WHEN 'turn' THEN g.turn_until END)
      FROM agent a JOIN limit_set_gate m USING (set_id) JOIN gate g USING (gate_id) CROSS JOIN LATERAL held(g.gate_id) h
      CROSS JOIN LATERAL (SELECT CASE WHEN g.paused_until > t THEN 'paused' WHEN g.turn_of <> r.agent_id AND g.turn_until > t THEN 'turn'
        WHEN g.capacity - h.units < m.weight OR h.runs >= g.ramp THEN 'limit' END AS reason) w
      WHERE a.agent_id = r.agent_id AND w.reason IS NOT NULL ORDER BY g.gate_id;
  RETURN QUERY SELECT 'place', count(*)::text, NULL::bigint FROM (                 -- a person needs no more than 1000
    SELECT FROM run x WHERE x.agent_id = r.agent_id AND x.state = 'queued' AND x.hold IS NULL
      AND (x.rank, x.run_id) <= (r.rank, r.run_id) ORDER BY x.rank, x.run_id LIMIT 1000) y; END $$;

CREATE FUNCTION output(p_id text, p_head_max bigint) RETURNS TABLE (bytes bigint, head bytea, tail bytea)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_run bigint := must_find(p_id); BEGIN
  RETURN QUERY SELECT coalesce((SELECT o.bytes FROM output o WHERE o.run_id = v_run), 0),
      string_agg(c.body, '' ORDER BY c.at) FILTER (WHERE c.at < p_head_max),
      string_agg(c.body, '' ORDER BY c.at) FILTER (WHERE c.at >= p_head_max)
    FROM output_chunk c WHERE c.run_id = v_run; END $$;

-- Runs that ended, with all that belongs to them; then sessions without a run, and the rows of workers long dead.
CREATE FUNCTION prune(p_age_ms bigint, p_most bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_before timestamptz := later(clock(), -p_age_ms); v_runs bigint[]; v_sessions bigint[]; BEGIN
  DELETE FROM worker WHERE worker_id IN (
    SELECT worker_id FROM worker WHERE state = 'dead' AND lease_until < later(wall(), -p_age_ms) LIMIT p_most FOR UPDATE SKIP LOCKED);
  SELECT array_agg(run_id), array_agg(DISTINCT session_id) FILTER (WHERE session_id IS NOT NULL) INTO v_runs, v_sessions
    FROM (SELECT run_id, session_id FROM run WHERE finished_at < v_before AND finished_at IS NOT NULL
          ORDER BY finished_at LIMIT p_most FOR UPDATE SKIP LOCKED) x;
  IF v_runs IS NULL THEN RETURN 0; END IF;
  DELETE FROM run_input WHERE run_id = ANY (v_runs);
  DELETE FROM run_result WHERE run_id = ANY (v_runs);
  DELETE FROM output WHERE run_id = ANY (v_runs);
  DELETE FROM output_chunk WHERE run_id = ANY (v_runs);
  DELETE FROM event WHERE run_id = ANY (v_runs);
  WITH gone AS (DELETE FROM family_run WHERE run_id = ANY (v_runs) RETURNING family_id)
  DELETE FROM family f USING gone WHERE f.family_id = gone.family_id
    AND NOT EXISTS (SELECT FROM family_run o WHERE o.family_id = f.family_id AND o.run_id <> ALL (v_runs));
  DELETE FROM run_name n USING run r WHERE r.run_id = ANY (v_runs) AND n.public_id = r.public_id;
  DELETE FROM run WHERE run_id = ANY (v_runs);
  SELECT array_agg(session_id) INTO v_sessions FROM (
    SELECT session_id FROM session WHERE session_id = ANY (v_sessions) FOR UPDATE SKIP LOCKED) s;
  DELETE FROM session s WHERE s.session_id = ANY (v_sessions)
    AND NOT EXISTS (SELECT FROM run r WHERE r.session_id = s.session_id AND r.finished_at IS NULL)
    AND NOT EXISTS (SELECT FROM run r WHERE r.session_id = s.session_id AND r.finished_at IS NOT NULL);
  RETURN cardinality(v_runs); END $$;

-- ---- from one store to another -------------------------------------------------------------------------------------

CREATE FUNCTION agents() RETURNS TABLE (name text, queued_max bigint, attempts_max bigint, lost_max bigint,
  backoff_base_ms bigint, backoff_cap_ms bigint, "limit" text, weight bigint)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT a.name, a.queued_max, a.attempts_max, a.lost_max, a.backoff_base_ms, a.backoff_cap_ms, g.name, m.weight
  FROM agent a LEFT JOIN limit_set_gate m USING (set_id) LEFT JOIN gate g USING (gate_id) ORDER BY a.name, g.name $$;

-- Runs with their events and outputs; those that are here already stay as they are. The arrays of one kind are as long as
-- each other. A run of seq 1 has one event, which the trigger writes.
CREATE FUNCTION load(p_ids text[], p_agents text[], p_sessions text[], p_parents text[], p_keys text[], p_on_crash text[],
  p_states text[], p_holds text[], p_stops text[], p_errors text[], p_parked_on text[], p_inputs text[], p_results text[],
  p_causes text[], p_ranks_ms bigint[], p_created_ms bigint[], p_not_before_ms bigint[], p_deadlines_ms bigint[],
  p_budgets_ms bigint[], p_left_ms bigint[], p_until_ms bigint[], p_started_ms bigint[], p_finished_ms bigint[],
  p_changed_ms bigint[], p_attempts bigint[], p_lost bigint[], p_fences bigint[], p_seqs bigint[], p_unsafe bigint[],
  e_ids text[], e_seqs bigint[], e_fences bigint[], e_workers bigint[], e_causes text[], e_states text[], e_holds text[],
  e_errors text[], e_data text[], e_at_ms bigint[],
  o_ids text[], o_bytes bigint[], o_at bigint[], o_bodies text[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_keys text[]; v_sessions bigint[]; v_wrong record; v_added bigint; v_runs bigint[]; t timestamptz;
  v_ahead interval := (SELECT ahead_ms FROM store_clock) * interval '1 millisecond'; BEGIN
  SELECT array_agg(DISTINCT s) INTO v_keys FROM unnest(p_sessions) s WHERE s <> '';
  IF v_keys IS NOT NULL THEN PERFORM open_sessions(v_keys); END IF;
  SELECT u.agent INTO v_wrong FROM unnest(p_agents) u (agent) WHERE NOT EXISTS (SELECT FROM agent a WHERE a.name = u.agent);
  IF FOUND THEN RAISE EXCEPTION USING ERRCODE = 'ST400', MESSAGE = format('there is no agent ''%s''', v_wrong.agent); END IF;
  SELECT u.id, u.key, r.public_id INTO v_wrong FROM unnest(p_ids, p_agents, p_keys) u (id, agent, key)
    JOIN agent a ON a.name = u.agent JOIN run r ON r.agent_id = a.agent_id AND r.idem_key = u.key
    WHERE u.key <> '' AND r.public_id <> u.id LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409',
      MESSAGE = format('run %s has the key ''%s'', which run %s has here', v_wrong.id, v_wrong.key, v_wrong.public_id);
  END IF;
  t := clock();
  WITH named AS (
    INSERT INTO run_name (public_id) SELECT u.id FROM unnest(p_ids) WITH ORDINALITY u (id, at) ORDER BY u.at
      ON CONFLICT DO NOTHING RETURNING run_id, public_id),
  added AS (
    INSERT INTO run (run_id, public_id, agent_id, session_id, parent, idem_key, on_crash, state, hold, stop, error, parked_on,
        cause, rank, created_at, not_before, deadline, budget_ms, budget_left_ms, budget_until, started_at, finished_at,
        changed_at, attempt, lost, fence, seq, unsafe)
      SELECT m.run_id, n.id, a.agent_id, s.session_id, nullif(n.parent, ''), nullif(n.key, ''), n.on_crash, n.state,
        nullif(n.hold, 'none'), nullif(n.stop, 'none'), nullif(n.error, ''), nullif(n.parked_on, ''), n.cause,
        from_ms(n.rank_ms) + v_ahead, from_ms(n.created_ms) + v_ahead, from_ms(n.not_before_ms) + v_ahead, from_ms(n.deadline_ms),
        n.budget_ms, n.left_ms,
        CASE WHEN n.state = 'queued' AND n.hold = 'none' THEN by_agents_clock(from_ms(n.until_ms) + v_ahead, a.agent_id, t)
             ELSE from_ms(n.until_ms) + v_ahead END,
        from_ms(n.started_ms) + v_ahead, from_ms(n.finished_ms) + v_ahead, from_ms(n.changed_ms) + v_ahead, n.attempt, n.lost, n.fence,
        n.seq, n.unsafe <> 0
      FROM unnest(p_ids, p_agents, p_sessions, p_parents, p_keys, p_on_crash, p_states, p_holds, p_stops, p_errors, p_parked_on,
          p_causes, p_ranks_ms, p_created_ms, p_not_before_ms, p_deadlines_ms, p_budgets_ms, p_left_ms, p_until_ms, p_started_ms,
          p_finished_ms, p_changed_ms, p_attempts, p_lost, p_fences, p_seqs, p_unsafe)
        AS n (id, agent, session, parent, key, on_crash, state, hold, stop, error, parked_on, cause, rank_ms, created_ms,
          not_before_ms, deadline_ms, budget_ms, left_ms, until_ms, started_ms, finished_ms, changed_ms, attempt, lost, fence,
          seq, unsafe)
      JOIN named m ON m.public_id = n.id JOIN agent a ON a.name = n.agent
      LEFT JOIN session s ON s.key = nullif(n.session, '') ORDER BY m.run_id
    RETURNING run_id)
  SELECT count(*), array_agg(run_id) INTO v_added, v_runs FROM added;
  IF v_added = 0 THEN RETURN 0; END IF;
  UPDATE run r SET parent_id = p.run_id FROM run_name p WHERE r.run_id = ANY (v_runs) AND p.public_id = r.parent;
  INSERT INTO run_input (run_id, body) SELECT m.run_id, u.body FROM unnest(p_ids, p_inputs) u (id, body)
    JOIN run_name m ON m.public_id = u.id WHERE u.body <> '' AND m.run_id = ANY (v_runs);
  INSERT INTO run_result (run_id, body) SELECT m.run_id, u.body FROM unnest(p_ids, p_results) u (id, body)
    JOIN run_name m ON m.public_id = u.id WHERE u.body <> '' AND m.run_id = ANY (v_runs);
  INSERT INTO event (run_id, seq, fence, worker_id, cause, state, hold, error, data, at)
    SELECT r.run_id, u.seq, u.fence, u.worker_id, u.cause, nullif(u.state, ''), nullif(u.hold, 'none'), nullif(u.error, ''),
      nullif(u.data, ''), from_ms(u.at_ms) + v_ahead
    FROM unnest(e_ids, e_seqs, e_fences, e_workers, e_causes, e_states, e_holds, e_errors, e_data, e_at_ms)
      WITH ORDINALITY AS u (id, seq, fence, worker_id, cause, state, hold, error, data, at_ms, at)
    JOIN run_name m ON m.public_id = u.id JOIN run r ON r.run_id = m.run_id
    WHERE m.run_id = ANY (v_runs) AND r.seq > 1 ORDER BY u.at;
  INSERT INTO output (run_id, bytes) SELECT m.run_id, max(u.bytes) FROM unnest(o_ids, o_bytes) u (id, bytes)
    JOIN run_name m ON m.public_id = u.id WHERE m.run_id = ANY (v_runs) GROUP BY m.run_id;
  INSERT INTO output_chunk (run_id, at, body) SELECT m.run_id, u.at, decode(u.body, 'hex')
    FROM unnest(o_ids, o_at, o_bodies) u (id, at, body) JOIN run_name m ON m.public_id = u.id WHERE m.run_id = ANY (v_runs);
  -- Behind a session that was here already.
  UPDATE run u SET hold = 'session', cause = 'loaded', changed_at = t, seq = u.seq + 1,
      budget_until = later(u.budget_until, CASE WHEN u.hold IS NULL THEN stood(u.agent_id, t) ELSE 0 END)
    WHERE u.run_id = ANY (v_runs) AND u.state = 'queued' AND u.hold IS DISTINCT FROM 'session' AND u.session_id IS NOT NULL
      AND EXISTS (SELECT FROM run h WHERE h.session_id = u.session_id AND h.finished_at IS NULL AND h.run_id < u.run_id);
  SELECT array_agg(DISTINCT session_id) INTO v_sessions FROM run WHERE run_id = ANY (v_runs) AND session_id IS NOT NULL;
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF;
  RETURN v_added; END $$;
