-- Queries.

CREATE VIEW seen AS
  SELECT r.run_id, r.public_id, r.parent_id, a.name AS agent, s.key AS session, r.parent, r.idem_key, r.state, r.hold, r.stop, r.error,
    r.attempt, r.lost, r.fence, r.seq, r.unsafe, r.on_crash, r.node_id, to_ms(r.created_at) - (SELECT ahead_ms FROM store_clock) AS created_ms,
    to_ms(r.not_before) - (SELECT ahead_ms FROM store_clock) AS not_before_ms, to_ms(r.deadline) AS deadline_ms,
    least(to_ms(r.deadline), CASE WHEN r.budget_until IS NOT NULL THEN to_ms(budget_end(r)) - (SELECT ahead_ms FROM store_clock) END) AS expires_ms,
    to_ms(r.started_at) - (SELECT ahead_ms FROM store_clock) AS started_ms, to_ms(r.finished_at) - (SELECT ahead_ms FROM store_clock) AS finished_ms, r.tokens, r.cost_micros
  FROM run r JOIN agent a USING (agent_id) LEFT JOIN session s USING (session_id);

CREATE VIEW told AS
  SELECT r.public_id, e.run_id, e.seq, e.fence, e.cause, e.state, e.hold, e.node_id, e.error, e.data, to_ms(e.at) - (SELECT ahead_ms FROM store_clock) AS at_ms, e.xid, e.id
  FROM event e LEFT JOIN run r USING (run_id);

CREATE FUNCTION events(p_id text, p_after bigint, p_most bigint) RETURNS SETOF told
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_run bigint := must_find(p_id); BEGIN
  RETURN QUERY SELECT * FROM told WHERE run_id = v_run AND seq > p_after ORDER BY seq LIMIT p_most; END $$;

-- Below the snapshot's xmin every transaction has ended, so no event can appear behind the cursor later.
-- p_seen: the cursor is that of a snapshot, which has seen some later transactions, too; NULL: none.
CREATE FUNCTION feed(p_xid xid8, p_id bigint, p_most bigint, p_seen pg_snapshot) RETURNS SETOF told
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT * FROM told WHERE (xid, id) > (p_xid, p_id) AND xid < pg_snapshot_xmin(pg_current_snapshot())
    AND (p_seen IS NULL OR NOT pg_visible_in_snapshot(xid, p_seen)) ORDER BY xid, id LIMIT p_most $$;

-- Running runs that hold units of the limit, earliest claim first, by the set that each was claimed with.
CREATE FUNCTION holders(p_limit int, p_most bigint)
RETURNS TABLE (run_id bigint, id text, agent text, weight bigint, since timestamptz) LANGUAGE sql STABLE AS $$
  SELECT r.run_id, r.public_id, a.name, m.weight, coalesce(r.started_at, r.created_at) FROM limit_set_member m
    JOIN run r ON r.set_id = m.set_id AND r.state = 'running' JOIN agent a ON a.agent_id = r.agent_id
    WHERE m.limit_id = p_limit ORDER BY r.started_at, r.run_id LIMIT p_most $$;

-- Since when a run waits: its submission, or its last change if it was claimed before.
CREATE FUNCTION waits_since(r run) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN r.fence = 0 THEN r.created_at ELSE r.changed_at END $$;

-- Ready runs whose agents use the limit, by rank.
CREATE FUNCTION waiters(p_limit int, p_most bigint)
RETURNS TABLE (run_id bigint, id text, agent text, weight bigint, rank timestamptz, since timestamptz) LANGUAGE sql STABLE AS $$
  SELECT r.run_id, r.public_id, a.name, m.weight, r.rank, r.since FROM limit_set_member m JOIN agent a USING (set_id)
    CROSS JOIN LATERAL (SELECT x.run_id, x.public_id, x.rank, waits_since(x) AS since FROM run x
      WHERE x.agent_id = a.agent_id AND x.state = 'queued' AND x.hold IS NULL ORDER BY x.rank, x.run_id LIMIT p_most) r
    WHERE m.limit_id = p_limit ORDER BY r.rank, r.run_id LIMIT p_most $$;

-- How many of them there are before that place, counted up to p_most. NULL: no bound.
CREATE FUNCTION count_waiters(p_limit int, p_rank timestamptz, p_run bigint, p_most bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT count(*) FROM (SELECT FROM limit_set_member m JOIN agent a USING (set_id)
    JOIN run x ON x.agent_id = a.agent_id AND x.state = 'queued' AND x.hold IS NULL AND (x.rank, x.run_id) < (p_rank, p_run)
    WHERE m.limit_id = p_limit LIMIT p_most) y $$;

-- One row per limit or, with p_listed, one per holder and then per waiter, up to that many of each.
CREATE FUNCTION limits(p_listed bigint) RETURNS TABLE (name text, capacity bigint, units bigint, runs bigint, paused boolean,
  paused_until_ms bigint, ramp bigint, paused_ms bigint, waiting bigint, turn_of text, holds boolean, id text, agent text, weight bigint,
  since_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE t timestamptz := clock(); BEGIN
  RETURN QUERY SELECT g.name, g.capacity, h.units, h.runs, coalesce(g.paused_until > t, false),
      CASE WHEN g.paused_until > t THEN shown_ms(g.paused_until) END, g.ramp,
      CASE WHEN g.paused_until > t THEN to_ms(g.paused_until) - to_ms(t) END, count_waiters(g.limit_id, 'infinity', 0, NULL),
      (SELECT s.name FROM agent s WHERE s.agent_id = g.turn_of AND g.turn_until > t
        AND EXISTS (SELECT FROM run r WHERE r.agent_id = g.turn_of AND r.state = 'queued' AND r.hold IS NULL)), x.holds, x.id, x.agent, x.weight, shown_ms(x.since)
    FROM named_limit g CROSS JOIN LATERAL held(g.limit_id) h LEFT JOIN LATERAL (
      SELECT true AS holds, o.run_id, o.id, o.agent, o.weight, o.since, o.since AS place FROM holders(g.limit_id, p_listed) o
      UNION ALL SELECT false, o.run_id, o.id, o.agent, o.weight, o.since, o.rank FROM waiters(g.limit_id, p_listed) o) x ON p_listed > 0
    ORDER BY g.name, x.holds DESC, x.place, x.run_id; END $$;

-- One row per reason, or per holder of the limit that is the reason. NULL: the reason does not use the field.
CREATE FUNCTION why(p_id text, p_listed bigint, p_place_max bigint)
RETURNS TABLE (reason text, "limit" text, until_ms bigint, capacity bigint, held bigint, weight bigint, ramp bigint, turn_of text,
  behind text, behind_state text, place bigint, ahead bigint, id text, agent text, holds bigint, since_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_run bigint := must_find(p_id); r run; v_above int[] := '{}'; t timestamptz := clock(); BEGIN
  SELECT * INTO r FROM run WHERE run_id = v_run;
  IF r.state NOT IN ('queued', 'parked') THEN RETURN; END IF;
  IF r.hold IS NOT NULL THEN
    reason := r.hold; "limit" := r.parked_on; until_ms := shown_ms(r.not_before);
    IF r.hold = 'session' THEN
      SELECT h.public_id, h.state INTO behind, behind_state FROM run h
        WHERE h.session_id = r.session_id AND h.finished_at IS NULL ORDER BY h.run_id LIMIT 1;
    END IF;
    RETURN NEXT; RETURN;
  END IF;
  IF r.kept_for IS NOT NULL THEN v_above := held_above(r.parent_id); END IF;   -- it is claimed by its id
  RETURN QUERY
    SELECT w.reason, g.name, shown_ms(CASE w.reason WHEN 'paused' THEN g.paused_until WHEN 'turn' THEN g.turn_until END),
           g.capacity, h.units, m.weight, CASE w.reason WHEN 'probe' THEN g.ramp END,
           (SELECT s.name FROM agent s WHERE w.reason = 'turn' AND s.agent_id = g.turn_of), NULL::text, NULL::text, NULL::bigint,
           CASE WHEN w.reason IN ('turn', 'limit') THEN count_waiters(g.limit_id, r.rank, r.run_id, p_place_max) END,
           o.id, o.agent, o.weight, shown_ms(o.since)
      FROM agent a JOIN limit_set_member m USING (set_id) JOIN named_limit g USING (limit_id) CROSS JOIN LATERAL held(g.limit_id) h
      CROSS JOIN LATERAL (SELECT CASE WHEN g.paused_until > t THEN 'paused' WHEN g.limit_id = ANY (v_above) THEN NULL
        WHEN is_anothers_turn(g, r.agent_id, t) THEN 'turn'
        WHEN h.runs >= g.ramp THEN 'probe' WHEN g.capacity - h.units < m.weight THEN 'limit' END AS reason) w
      LEFT JOIN LATERAL holders(g.limit_id, p_listed) o ON w.reason <> 'paused'
      WHERE a.agent_id = r.agent_id AND w.reason IS NOT NULL ORDER BY g.limit_id, o.since, o.run_id;
  reason := 'place';
  SELECT count(*) INTO place FROM (
    SELECT FROM run x WHERE x.agent_id = r.agent_id AND x.state = 'queued' AND x.hold IS NULL
      AND (x.run_id = r.run_id OR r.kept_for IS NOT NULL OR x.kept_for IS NULL OR NOT is_kept(x.kept_for, NULL))
      AND (x.rank, x.run_id) <= (r.rank, r.run_id) ORDER BY x.rank, x.run_id LIMIT p_place_max) y;
  RETURN NEXT; END $$;

CREATE FUNCTION output(p_id text, p_head_max bigint) RETURNS TABLE (bytes bigint, head bytea, tail bytea)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_run bigint := must_find(p_id); BEGIN
  RETURN QUERY SELECT coalesce((SELECT o.bytes FROM output o WHERE o.run_id = v_run), 0),
      string_agg(c.body, '' ORDER BY c.at) FILTER (WHERE c.at < p_head_max),
      string_agg(c.body, '' ORDER BY c.at) FILTER (WHERE c.at >= p_head_max)
    FROM output_chunk c WHERE c.run_id = v_run; END $$;

-- As many messages as p_bytes_max allows, but at least one.
CREATE FUNCTION messages(p_id text, p_from bigint, p_bytes_max bigint) RETURNS TABLE (body bytea)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_run bigint := must_find(p_id);
  v_before bigint := coalesce((SELECT m.ends FROM message m WHERE m.run_id = v_run AND m.at = p_from - 1), 0); BEGIN
  RETURN QUERY SELECT m.body FROM message m WHERE m.run_id = v_run AND m.at >= p_from
    AND (m.at = p_from OR m.ends - v_before <= p_bytes_max) ORDER BY m.at; END $$;

CREATE FUNCTION used(p_heads text[]) RETURNS TABLE (head text, tokens bigint, cost_micros bigint)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT h.head, coalesce(d.tokens, f.tokens, r.tokens, 0), coalesce(d.cost_micros, f.cost_micros, r.cost_micros, 0)
  FROM (SELECT hour_of(wall()) / 24 * 24 AS today) t CROSS JOIN unnest(p_heads) WITH ORDINALITY h (head, at)
    LEFT JOIN family f ON f.head = h.head
    LEFT JOIN run_name n ON n.public_id = h.head LEFT JOIN run r ON r.run_id = n.run_id
    LEFT JOIN LATERAL (SELECT sum(s.tokens)::bigint AS tokens, sum(s.cost_micros)::bigint AS cost_micros FROM spent s
      WHERE h.head = 'today' AND s.hour >= t.today AND s.hour < t.today + 24) d ON true ORDER BY h.at $$;
