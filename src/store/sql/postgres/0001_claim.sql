-- Claim.

-- Whether the run is kept for a living node other than p_node; p_node NULL: for any living node. Not inlined, so that
-- only kept runs pay for it.
CREATE FUNCTION is_kept(p_keeper bigint, p_node bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT p_keeper IS DISTINCT FROM p_node
    AND EXISTS (SELECT FROM stint.node w WHERE w.node_id = p_keeper AND w.state <> 'dead') $$;

-- The limits that p_parent and its ancestors hold, as far up as they run.
CREATE FUNCTION held_above(p_parent bigint) RETURNS int[] LANGUAGE sql STABLE AS $$
  WITH RECURSIVE above AS (
    SELECT r.run_id, r.parent_id, r.set_id FROM run r WHERE r.run_id = p_parent AND r.state = 'running'
    UNION SELECT r.run_id, r.parent_id, r.set_id FROM above a JOIN run r ON r.run_id = a.parent_id WHERE r.state = 'running')
  SELECT coalesce(array_agg(DISTINCT m.limit_id), '{}') FROM above JOIN limit_set_member m USING (set_id) $$;

-- A set like p_set without these limits; NULL: nothing is left. Two concurrent calls may create two sets, which is
-- harmless.
CREATE FUNCTION set_without(p_set int, p_limits int[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE v_limits int[]; v_weights bigint[]; v_set int; BEGIN
  PERFORM FROM limit_set_member WHERE set_id = p_set AND limit_id = ANY (p_limits);
  IF NOT FOUND THEN RETURN p_set; END IF;
  SELECT array_agg(limit_id ORDER BY limit_id), array_agg(weight ORDER BY limit_id) INTO v_limits, v_weights
    FROM limit_set_member WHERE set_id = p_set AND limit_id <> ALL (p_limits);
  IF v_limits IS NULL THEN RETURN NULL; END IF;
  SELECT m.set_id INTO v_set FROM limit_set_member m
    WHERE m.set_id IN (SELECT c.set_id FROM limit_set_member c WHERE c.limit_id = v_limits[1])
    GROUP BY m.set_id HAVING array_agg(m.limit_id ORDER BY m.limit_id) = v_limits
      AND array_agg(m.weight ORDER BY m.limit_id) = v_weights ORDER BY m.set_id LIMIT 1;
  IF FOUND THEN RETURN v_set; END IF;
  INSERT INTO limit_set DEFAULT VALUES RETURNING set_id INTO v_set;
  INSERT INTO limit_set_member (set_id, limit_id, weight) SELECT v_set, * FROM unnest(v_limits, v_weights);
  RETURN v_set; END $$;

-- Whether the limit is in another agent's turn. An expired turn does not count, nor that of an agent with nothing to
-- start; a kept run counts, because its node claims it.
CREATE FUNCTION is_anothers_turn(g named_limit, p_agent int, p_now timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT g.turn_of <> p_agent AND g.turn_until > p_now
    AND EXISTS (SELECT FROM run r WHERE r.agent_id = g.turn_of AND r.state = 'queued' AND r.hold IS NULL) $$;

-- Locks the limits. NULL: another claim of this agent is under way and takes a batch; leave it to that one. Locks
-- unshared limits first, without waiting, then all by id: so a limit that was shared until now is not missed.
CREATE FUNCTION lock_limits(p_set int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE v_all int[]; v_own int[]; v_got int; BEGIN
  SELECT coalesce(array_agg(g.limit_id), '{}'), coalesce(array_agg(g.limit_id) FILTER (WHERE NOT g.shared), '{}') INTO v_all, v_own
    FROM limit_set_member m JOIN named_limit g USING (limit_id)
    WHERE m.set_id = p_set AND (g.capacity IS NOT NULL OR g.paused_until IS NOT NULL OR g.ramp IS NOT NULL);
  SELECT count(*) INTO v_got FROM (SELECT FROM named_limit WHERE limit_id = ANY (v_own) FOR NO KEY UPDATE SKIP LOCKED) x;
  IF v_got < cardinality(v_own) THEN RETURN NULL; END IF;
  PERFORM FROM named_limit WHERE limit_id = ANY (v_all) ORDER BY limit_id FOR NO KEY UPDATE;
  RETURN v_all; END $$;

-- How many runs of the set may start now; NULL: no limit. The rule is domain/limit_rule.cpp's. Exact, because every
-- claim on these limits holds their locks. Takes and returns turns.
CREATE FUNCTION free_permits(p_agent int, p_set int, p_locked int[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE v record; t timestamptz := clock(); BEGIN
  SELECT min(CASE WHEN g.paused_until > t OR o.turn THEN 0
                  ELSE least((g.capacity - h.units) / m.weight, g.ramp - h.runs) END) AS free,
         array_agg(g.limit_id) FILTER (WHERE m.weight > 1 AND g.shared AND g.capacity - h.units < m.weight) AS short,
         bool_or(g.paused_until > t OR o.turn OR g.last_turn_of = p_agent) AS blocked,
         bool_or(g.turn_of = p_agent OR g.last_turn_of <> p_agent) AS turned INTO v
    FROM limit_set_member m JOIN named_limit g USING (limit_id) CROSS JOIN LATERAL held(g.limit_id) h
    CROSS JOIN LATERAL (SELECT CASE WHEN g.turn_of IS NOT NULL THEN is_anothers_turn(g, p_agent, t) END AS turn) o
    WHERE m.set_id = p_set AND (g.limit_id = ANY (p_locked) OR g.paused_until IS NOT NULL);
  IF v.free < 1 THEN
    IF v.short IS NOT NULL AND NOT coalesce(v.blocked, false) THEN
      UPDATE named_limit SET turn_of = p_agent, turn_until = later(t, 2000) WHERE limit_id = ANY (v.short);
    END IF;
  ELSIF v.turned THEN
    UPDATE named_limit SET last_turn_of = CASE WHEN turn_of = p_agent THEN p_agent END, turn_of = NULL, turn_until = NULL
      WHERE limit_id = ANY (p_locked) AND (turn_of = p_agent OR last_turn_of <> p_agent);
  END IF;
  RETURN v.free; END $$;

-- In milliseconds, for a run that has begun; NULL: it has neither.
CREATE FUNCTION time_left(p_deadline timestamptz, p_budget_until timestamptz, p_wall timestamptz, p_now timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT least(to_ms(p_deadline) - to_ms(p_wall), to_ms(p_budget_until) - to_ms(p_now)) $$;

-- lock_timeout (55P03): a shared limit is busy, retry later. A plan made for a short queue must not sort a long one:
-- only run_ready gives the order, whatever the statistics. jit is off: the planner's penalty for the disabled plans
-- would make it compile each statement (measured: 1 ms became 200).
-- p_only: the one wanted run; NULL: the first. Only a run claimed by id is exempt from limits held above it.
-- p_waited: data of the claims' events; '': none.
CREATE FUNCTION claim(p_node bigint, p_round bigint, p_agent text, p_most bigint, p_only text, p_waited text)
RETURNS TABLE (run_id bigint, id text, fence bigint, attempt bigint, lost bigint, expires_ms bigint, input text, agent text,
  session text, on_crash text, unsafe boolean, left_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp SET lock_timeout = '200ms'
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE v_node node; v_agent int; v_set int; v_parent bigint; v_limits int[]; v_most bigint; t timestamptz; w timestamptz; v_stood bigint;
  BEGIN
  SELECT * INTO v_node FROM node w WHERE w.node_id = p_node FOR KEY SHARE;
  IF v_node.node_id IS NULL OR v_node.state = 'dead' OR v_node.lease_until < wall() THEN
    RAISE EXCEPTION USING ERRCODE = 'ST401', MESSAGE = 'the lease of this node is over';
  END IF;
  IF v_node.state <> 'live' OR v_node.round <> p_round THEN RETURN; END IF;
  SELECT agent_id, set_id INTO v_agent, v_set FROM agent WHERE name = p_agent;
  IF NOT FOUND THEN RETURN; END IF;
  IF p_only IS NULL THEN
    PERFORM FROM run r WHERE r.agent_id = v_agent AND r.state = 'queued' AND r.hold IS NULL
      AND (r.kept_for IS NULL OR NOT is_kept(r.kept_for, p_node)) ORDER BY r.rank, r.run_id LIMIT 1;
  ELSE
    SELECT r.parent_id INTO v_parent FROM run_name n JOIN run r USING (run_id) WHERE n.public_id = p_only AND r.agent_id = v_agent
      AND r.state = 'queued' AND r.hold IS NULL AND NOT is_over(r, wall(), clock())
      AND (r.kept_for IS NULL OR NOT is_kept(r.kept_for, p_node));
  END IF;
  IF NOT FOUND THEN RETURN; END IF;      -- an agent without ready runs takes no turn
  IF v_parent IS NOT NULL THEN
    PERFORM FROM limit_set_member m JOIN named_limit g USING (limit_id) WHERE m.set_id = v_set AND g.paused_until > clock();
    IF FOUND THEN RETURN; END IF;
    v_set := set_without(v_set, held_above(v_parent));
  END IF;
  v_limits := lock_limits(v_set);
  IF v_limits IS NULL THEN RETURN; END IF;
  v_most := least(p_most, free_permits(v_agent, v_set, v_limits));
  IF v_most < 1 THEN RETURN; END IF;
  t := clock(); w := wall(); v_stood := stood(v_agent, t);
  RETURN QUERY
  WITH next AS MATERIALIZED (
    SELECT r.run_id FROM run r
    WHERE r.agent_id = v_agent AND r.state = 'queued' AND r.hold IS NULL AND (r.deadline IS NULL OR r.deadline > w)
      AND (r.budget_until IS NULL OR r.budget_until > later(t, -v_stood))
      AND (p_only IS NULL OR r.public_id = p_only) AND (r.kept_for IS NULL OR NOT is_kept(r.kept_for, p_node))
    ORDER BY r.rank, r.run_id LIMIT v_most FOR NO KEY UPDATE SKIP LOCKED),
  taken AS (
    -- Not before its last event: the run may have been promoted by a settlement that was committed after `t` was read.
    UPDATE run u SET state = 'running', cause = 'claimed', changed_at = greatest(t, u.changed_at), node_id = p_node, set_id = v_set,
           fence = u.fence + 1, attempt = u.attempt + 1, seq = u.seq + 1, started_at = t, reported_tokens = 0, reported_cost_micros = 0,
           budget_until = begun_budget(u.budget_until, v_stood, u.started_at, t, u.budget_ms)
    FROM next WHERE u.run_id = next.run_id
    RETURNING u.run_id, u.public_id, u.fence, u.attempt, u.lost, u.deadline, u.budget_until, u.rank, u.session_id, u.on_crash, u.unsafe)
  SELECT k.run_id, k.public_id, k.fence, k.attempt, k.lost, to_ms(w) + l.left_ms, i.body, p_agent, s.key, k.on_crash, k.unsafe, l.left_ms
    FROM taken k CROSS JOIN LATERAL (SELECT time_left(k.deadline, k.budget_until, w, t) AS left_ms) l LEFT JOIN run_input i USING (run_id) LEFT JOIN session s USING (session_id) ORDER BY k.rank, k.run_id;
  IF p_waited <> '' THEN  -- after the trigger has written the events, in the same transaction
    UPDATE event e SET data = p_waited FROM run r
      WHERE r.node_id = p_node AND r.state = 'running' AND r.cause = 'claimed' AND e.run_id = r.run_id AND e.seq = r.seq
        AND e.xid = pg_current_xact_id();
  END IF; END $$;

-- A claim whose answer was lost may have happened, or may still be about to: its process keeps its lease alive, so no
-- other node would take the runs back. A new round waits for claims under way and refuses late ones; then the answer
-- is final.
CREATE FUNCTION new_round(p_node bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v bigint; BEGIN
  PERFORM FROM node WHERE node_id = p_node FOR UPDATE;
  UPDATE node SET round = round + 1 WHERE node_id = p_node RETURNING round INTO v;
  RETURN v; END $$;

CREATE FUNCTION owned(p_node bigint)
RETURNS TABLE (run_id bigint, id text, fence bigint, attempt bigint, lost bigint, expires_ms bigint, input text, agent text,
  session text, on_crash text, unsafe boolean, left_ms bigint)
LANGUAGE sql VOLATILE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT r.run_id, r.public_id, r.fence, r.attempt, r.lost, to_ms(n.wall) + l.left_ms, i.body, a.name, s.key, r.on_crash, r.unsafe, l.left_ms
    FROM (SELECT wall() AS wall, clock() AS now) n CROSS JOIN run r
    CROSS JOIN LATERAL (SELECT time_left(r.deadline, r.budget_until, n.wall, n.now) AS left_ms) l JOIN agent a USING (agent_id) LEFT JOIN run_input i USING (run_id) LEFT JOIN session s USING (session_id)
    WHERE r.node_id = p_node AND r.state = 'running' ORDER BY r.run_id $$;

-- The agents that have something to claim. Held units are counted once, however many agents share a limit; the queue
-- of each agent is counted up to p_most, from its index alone: hence claim()'s settings.
CREATE FUNCTION ready(p_most bigint) RETURNS TABLE (agent text, runs bigint, startable bigint, rank_ms bigint, takes_turn boolean, blocked_by text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE t timestamptz := clock(); BEGIN
  RETURN QUERY
  WITH waiting AS MATERIALIZED (
    SELECT a.agent_id, a.name, a.set_id, q.n, q.rank FROM agent a CROSS JOIN LATERAL (
      SELECT count(*) AS n, min(x.rank) AS rank FROM (
        SELECT r.rank FROM run r WHERE r.agent_id = a.agent_id AND r.state = 'queued' AND r.hold IS NULL
          AND (r.kept_for IS NULL OR NOT is_kept(r.kept_for, NULL))
          ORDER BY r.rank, r.run_id LIMIT p_most) x) q
    WHERE q.n > 0),
  carried AS MATERIALIZED (SELECT r.set_id, count(*) AS n FROM run r WHERE r.state = 'running' GROUP BY r.set_id),
  used AS MATERIALIZED (
    SELECT m.limit_id, sum(c.n * m.weight)::bigint AS units, sum(c.n)::bigint AS runs
    FROM carried c JOIN limit_set_member m USING (set_id) GROUP BY m.limit_id)
  SELECT w.name, w.n, CASE WHEN f.free IS NOT NULL THEN least(w.n, greatest(f.free, 0)) END, to_ms(w.rank),
      coalesce(f.free < 1 AND f.short AND NOT f.blocked, false), f.by
  FROM waiting w CROSS JOIN LATERAL (
    SELECT min(l.free) AS free,
           (array_agg(g.name ORDER BY l.free, g.limit_id) FILTER (WHERE l.free < 1))[1] AS by,
           bool_or(m.weight > 1 AND g.shared AND g.capacity - coalesce(u.units, 0) < m.weight) AS short,
           bool_or(o.closed OR coalesce(g.last_turn_of = w.agent_id, false)) AS blocked
    FROM limit_set_member m JOIN named_limit g USING (limit_id) LEFT JOIN used u USING (limit_id)
    CROSS JOIN LATERAL (SELECT coalesce(g.paused_until > t, false)
        OR CASE WHEN g.turn_of IS NOT NULL THEN coalesce(is_anothers_turn(g, w.agent_id, t), false) ELSE false END AS closed) o
    CROSS JOIN LATERAL (SELECT CASE WHEN o.closed THEN 0
        ELSE least((g.capacity - coalesce(u.units, 0)) / m.weight, g.ramp - coalesce(u.runs, 0)) END AS free) l
    WHERE m.set_id = w.set_id) f
  ORDER BY w.rank, w.name; END $$;
