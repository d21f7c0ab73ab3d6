-- What a snapshot reads beside the queries of 0001_look.sql; all of it in one transaction (postgres_snapshot.cpp).

-- Ready runs by agent, once per limit of the agent.
CREATE FUNCTION tally_ready() RETURNS TABLE (agent text, rank_ms bigint, runs bigint, kept bigint, oldest_ms bigint, "limit" text, weight bigint)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT a.name, to_ms(q.rank), q.runs, q.kept, shown_ms(q.oldest), g.name, m.weight
  FROM (SELECT r.agent_id, min(r.rank) AS rank, count(*) AS runs,
          count(*) FILTER (WHERE r.kept_for IS NOT NULL AND is_kept(r.kept_for, NULL)) AS kept, min(waits_since(r)) AS oldest
        FROM run r WHERE r.state = 'queued' AND r.hold IS NULL GROUP BY r.agent_id) q
    JOIN agent a USING (agent_id) LEFT JOIN limit_set_member m USING (set_id) LEFT JOIN named_limit g USING (limit_id)
  ORDER BY q.rank, a.name, g.name $$;

-- Queued runs that are not ready, and parked ones.
CREATE FUNCTION tally_held() RETURNS TABLE (state text, hold text, "limit" text, runs bigint, oldest_ms bigint, until_ms bigint)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT 'queued', r.hold, r.parked_on, count(*), shown_ms(min(waits_since(r))), shown_ms(min(r.not_before) FILTER (WHERE r.hold <> 'session')) FROM run r
    WHERE r.state = 'queued' AND r.hold IS NOT NULL GROUP BY r.hold, r.parked_on
  UNION ALL SELECT 'parked', r.hold, r.parked_on, count(*), shown_ms(min(waits_since(r))), shown_ms(min(r.not_before)) FROM run r
    WHERE r.state = 'parked' GROUP BY r.hold, r.parked_on $$;

-- Among at most p_most runs that ended within p_window_ms: those that succeeded or failed, and how long ago the first ended.
CREATE FUNCTION last_ends(p_window_ms bigint, p_most bigint) RETURNS TABLE (worked bigint, over_ms bigint)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT count(*), to_ms(max(x.now)) - to_ms(min(x.finished_at)) FROM (
    SELECT r.finished_at, r.state, t.now FROM (SELECT clock() AS now) t JOIN LATERAL (
      SELECT f.finished_at, f.state FROM run f WHERE f.finished_at IS NOT NULL AND f.finished_at > later(t.now, -p_window_ms)
      ORDER BY f.finished_at DESC, f.run_id DESC LIMIT p_most) r ON true) x
  WHERE x.state IN ('succeeded', 'failed') $$;
