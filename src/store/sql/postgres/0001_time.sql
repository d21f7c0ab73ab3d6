-- The operations of the PostgreSQL store as functions: one round trip and one transaction each, READ COMMITTED, also
-- behind a pooler that assigns each transaction another connection. They behave like store/ledger.cpp on one machine.
--
-- Lock order: node, sessions, runs, limits, standstills, each by id. Only a claim takes limits before runs, and it
-- skips locked runs. So there is no deadlock.
-- In READ COMMITTED each statement of a volatile function has its own snapshot. What a lock protects is read by a
-- later statement than the one that locks.
--
-- SQLSTATE: ST400 invalid, ST401 the lease is over, ST409 conflict, ST503 full.
CREATE SCHEMA stint_v1;
SET LOCAL search_path = stint_v1, stint;

-- This file: time.

-- The database's clock, for leases and deadlines. It may jump.
CREATE FUNCTION wall() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT date_trunc('milliseconds', clock_timestamp()) $$;

-- Stable, like the functions they call: immutable ones would not be inlined, and a call per row is expensive.
CREATE FUNCTION later(p_time timestamptz, p_ms bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT p_time + p_ms * interval '1 millisecond' $$;

CREATE FUNCTION from_ms(p_ms bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT timestamptz '1970-01-01 00:00:00+00' + p_ms * interval '1 millisecond' $$;

CREATE FUNCTION to_ms(p_time timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$   -- NULL: never
  SELECT CASE WHEN isfinite(p_time) THEN (extract(epoch FROM p_time) * 1000)::bigint END $$;

-- Since 1970.
CREATE FUNCTION hour_of(p_time timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT floor(extract(epoch FROM p_time) / 3600)::bigint $$;

-- Converts a time of the store's clock to the database's, for display. The views, which have many rows, write it out
-- instead: so the subquery runs once per statement.
CREATE FUNCTION shown_ms(p_time timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT stint_v1.to_ms(p_time) - (SELECT ahead_ms FROM stint.store_clock) $$;

CREATE FUNCTION is_moment_ago(p_time timestamptz, p_wall timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT p_time <= p_wall AND p_time > p_wall - interval '10 seconds' $$;

-- The store's clock, for everything else. Read after the locks: a time from before a wait could already be past. A
-- process that has read it before expects a value (expect()). If the clock is far from that, and no process has seen
-- it a moment ago, the database's clock has just jumped: then the expected value is right.
CREATE FUNCTION clock() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
DECLARE t timestamptz; v_vouched boolean; v_expected text := current_setting('stint.expected', true); BEGIN
  SELECT stint_v1.later(w, c.ahead_ms), stint_v1.is_moment_ago(c.seen, w) INTO t, v_vouched FROM stint.store_clock c, stint_v1.wall() w;
  IF v_expected <> '' AND NOT v_vouched AND abs(stint_v1.to_ms(t) - v_expected::bigint) > 10000 THEN
    RETURN stint_v1.from_ms(v_expected::bigint);
  END IF;
  RETURN t; END $$;

-- Sets the value that the caller expects of the clock, for this transaction; NULL: unknown. Returns its second
-- argument, so that it can be used inside the call that it is for.
CREATE FUNCTION expect(p_now_ms bigint, p_what anyelement) RETURNS anyelement LANGUAGE plpgsql VOLATILE AS $$ BEGIN
  PERFORM set_config('stint.expected', coalesce(p_now_ms::text, ''), true);
  RETURN p_what; END $$;

CREATE FUNCTION look_at_clock() RETURNS TABLE (wall_ms bigint, ahead_ms bigint, moved bigint, vouched boolean, stale boolean)
LANGUAGE sql VOLATILE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT to_ms(w), c.ahead_ms, c.moved, is_moment_ago(c.seen, w), c.seen > w OR c.seen <= w - interval '1 second'
  FROM store_clock c, wall() w $$;

-- The database's clock has jumped by this much since it was read. False: another process has corrected it.
CREATE FUNCTION make_up_for_jump(p_moved bigint, p_jump_ms bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  UPDATE store_clock SET ahead_ms = ahead_ms - p_jump_ms, moved = moved + 1, seen = wall() WHERE moved = p_moved;
  RETURN FOUND; END $$;

-- It has not jumped. Asynchronous commit: if this is lost, the next call repeats it. Skips a row that another process
-- is just writing.
CREATE FUNCTION vouch_for_clock(p_moved bigint) RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  UPDATE store_clock SET seen = wall() WHERE moved = (SELECT moved FROM store_clock WHERE moved = p_moved FOR NO KEY UPDATE SKIP LOCKED); END $$;

-- How long the budgets of the agent's ready runs had stood still at that time.
CREATE FUNCTION stood(p_agent int, p_now timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT s.total_ms + CASE WHEN s.until IS NULL THEN 0
      ELSE greatest(stint_v1.to_ms(least(p_now, s.until)) - stint_v1.to_ms(s.since), 0) END
    FROM stint.standstill s WHERE s.agent_id = p_agent), 0) $$;

-- For a run that becomes ready: its budget by its agent's clock.
CREATE FUNCTION by_agents_clock(p_until timestamptz, p_agent int, p_now timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_until IS NOT NULL THEN stint_v1.later(p_until, -stint_v1.stood(p_agent, p_now)) END $$;

-- For a run that is claimed: what is left of its budget, or of its parent's. Its own begins with its first start.
CREATE FUNCTION begun_budget(p_until timestamptz, p_stood bigint, p_started timestamptz, p_now timestamptz, p_budget_ms bigint)
RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT least(stint_v1.later(p_until, p_stood),
    CASE WHEN p_until IS NULL OR p_started IS NULL THEN stint_v1.later(p_now, p_budget_ms) END) $$;

-- When its budget ends if nothing is paused. Stable, like the next one, so that it is inlined into the plan of a view
-- that calls it.
CREATE FUNCTION own_budget(r run) RETURNS timestamptz LANGUAGE plpgsql STABLE SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  IF r.budget_until IS NULL OR r.state <> 'queued' OR r.hold IS NOT NULL THEN RETURN r.budget_until; END IF;
  RETURN later(r.budget_until, stood(r.agent_id, clock())); END $$;

-- When its budget ends as of now; NULL: unknown, or never.
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

-- After a limit of these agents was paused or resumed, or their limits changed. Reads the deciding rows after the
-- lock.
CREATE FUNCTION note_pauses(p_agents int[]) RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz; BEGIN
  PERFORM FROM standstill WHERE agent_id = ANY (p_agents) ORDER BY agent_id FOR NO KEY UPDATE;
  t := clock();
  UPDATE standstill s SET total_ms = stood(s.agent_id, t), since = CASE WHEN n.until IS NOT NULL THEN t END, until = n.until
  FROM (SELECT a.agent_id, max(g.paused_until) FILTER (WHERE g.paused_until > t) AS until
        FROM agent a LEFT JOIN limit_set_member m USING (set_id) LEFT JOIN named_limit g USING (limit_id)
        WHERE a.agent_id = ANY (p_agents) GROUP BY a.agent_id) n
  WHERE s.agent_id = n.agent_id AND (s.until IS NOT NULL OR n.until IS NOT NULL); END $$;

CREATE FUNCTION note_pauses(p_limits text[]) RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM note_pauses(array_agg(DISTINCT a.agent_id)) FROM named_limit g JOIN limit_set_member m USING (limit_id) JOIN agent a USING (set_id)
    WHERE g.name = ANY (p_limits); END $$;
