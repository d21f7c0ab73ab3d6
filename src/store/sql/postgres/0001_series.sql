-- Time series of the fleet, and sums by hour: like store/ledger_series.cpp.

-- What happened since the head, and where the head moves: events of runs below the snapshot's xmin, as in feed(). Not
-- those that are older than p_from: another store brought them.
CREATE FUNCTION count_step(h series_head, p_from timestamptz)
RETURNS TABLE (xid xid8, started bigint, succeeded bigint, failed bigint, cancelled bigint, expired bigint, in_doubt bigint)
LANGUAGE sql STABLE AS $$
  SELECT s.xmin, count(*) FILTER (WHERE e.cause = 'claimed'), count(*) FILTER (WHERE e.state = 'succeeded'),
      count(*) FILTER (WHERE e.state = 'failed'), count(*) FILTER (WHERE e.state = 'cancelled'),
      count(*) FILTER (WHERE e.state = 'expired'), count(*) FILTER (WHERE e.state = 'in_doubt')
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin) s LEFT JOIN stint.event e
      ON (e.xid, e.id) > (h.xid, h.event) AND e.xid < s.xmin AND e.run_id IS NOT NULL AND e.at >= p_from
    GROUP BY s.xmin $$;

CREATE FUNCTION used_since(p_hour bigint, OUT tokens bigint, OUT cost_micros bigint) LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(s.tokens), 0)::bigint, coalesce(sum(s.cost_micros), 0)::bigint FROM stint.spent s WHERE s.hour >= p_hour $$;

-- Returns how long the step still takes, in ms. The first call of a step locks the head, moves it, and counts.
CREATE FUNCTION sample(p_node bigint, p_startable bigint, p_held bigint, p_running bigint, p_busy bigint, p_pool_size bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE h series_head; c record; v_since record; v_now_used record; t bigint; v_at bigint; v_first boolean; v_known boolean;
  v_hour bigint; v_busy bigint; v_pool_size bigint; v_tokens bigint; v_cost bigint; BEGIN
  SELECT * INTO h FROM series_head FOR UPDATE;
  t := to_ms(clock()); v_at := t / 10000 * 10000;
  INSERT INTO series_pool AS p (node_id, at_ms, busy, pool_size) VALUES (p_node, v_at, p_busy, p_pool_size)
    ON CONFLICT (node_id) DO UPDATE SET at_ms = excluded.at_ms, busy = excluded.busy, pool_size = excluded.pool_size;
  DELETE FROM series_pool p WHERE NOT EXISTS (SELECT FROM node w WHERE w.node_id = p.node_id AND w.state <> 'dead');
  SELECT coalesce(sum(busy), 0)::bigint, coalesce(sum(pool_size), 0)::bigint INTO v_busy, v_pool_size
    FROM series_pool WHERE at_ms >= v_at - 10000;
  v_first := h.at_ms < v_at; v_known := h.at_ms = v_at - 10000;
  IF v_first THEN
    v_hour := hour_of(wall());
    SELECT * INTO c FROM count_step(h, from_ms(CASE WHEN v_known THEN v_at - 20000 ELSE v_at + 20000 END));
    SELECT * INTO v_since FROM used_since(h.hour);
    SELECT * INTO v_now_used FROM used_since(v_hour);
    v_tokens := greatest(v_since.tokens - h.tokens, 0); v_cost := greatest(v_since.cost_micros - h.cost_micros, 0);
    UPDATE series_head SET at_ms = v_at, xid = (c.xid::text::bigint - 1)::text::xid8, event = 9223372036854775807, hour = v_hour,
      tokens = v_now_used.tokens - CASE WHEN v_known THEN v_since.tokens - h.tokens - v_tokens ELSE 0 END,
      cost_micros = v_now_used.cost_micros - CASE WHEN v_known THEN v_since.cost_micros - h.cost_micros - v_cost ELSE 0 END;
  END IF;
  IF NOT (v_first AND v_known) THEN
    SELECT NULL::xid8 AS xid, NULL::bigint AS started, NULL::bigint AS succeeded, NULL::bigint AS failed, NULL::bigint AS cancelled,
      NULL::bigint AS expired, NULL::bigint AS in_doubt INTO c;
    v_tokens := NULL; v_cost := NULL;
  END IF;
  INSERT INTO series_point AS k (step, at_ms, startable, held, running, busy, pool_size, samples, started, succeeded, failed, cancelled,
      expired, in_doubt, tokens, cost_micros)
    SELECT s.step, (v_at + s.step * 1000 - 1) / (s.step * 1000) * s.step * 1000, p_startable, p_held, p_running, v_busy, v_pool_size,
      v_first::int, c.started, c.succeeded, c.failed, c.cancelled, c.expired, c.in_doubt, v_tokens, v_cost
    FROM (VALUES (10::bigint), (60), (3600)) s (step)
    ON CONFLICT (step, at_ms) DO UPDATE SET startable = greatest(k.startable, excluded.startable), held = greatest(k.held, excluded.held),
      running = greatest(k.running, excluded.running), busy = greatest(k.busy, excluded.busy), pool_size = greatest(k.pool_size, excluded.pool_size),
      samples = k.samples + excluded.samples, started = coalesce(k.started + excluded.started, k.started, excluded.started),
      succeeded = coalesce(k.succeeded + excluded.succeeded, k.succeeded, excluded.succeeded),
      failed = coalesce(k.failed + excluded.failed, k.failed, excluded.failed),
      cancelled = coalesce(k.cancelled + excluded.cancelled, k.cancelled, excluded.cancelled),
      expired = coalesce(k.expired + excluded.expired, k.expired, excluded.expired),
      in_doubt = coalesce(k.in_doubt + excluded.in_doubt, k.in_doubt, excluded.in_doubt),
      tokens = coalesce(k.tokens + excluded.tokens, k.tokens, excluded.tokens),
      cost_micros = coalesce(k.cost_micros + excluded.cost_micros, k.cost_micros, excluded.cost_micros);
  IF v_first THEN  -- as kSeriesSteps says
    DELETE FROM series_point k USING (VALUES (10::bigint, 21600000::bigint), (60, 259200000), (3600, 3024000000)) s (step, kept_ms)
      WHERE k.step = s.step AND k.at_ms <= (v_at + s.step * 1000 - 1) / (s.step * 1000) * s.step * 1000 - s.kept_ms;
  END IF;
  RETURN v_at + 10000 - t; END $$;

-- The first row is the time of the answer; the others are points.
CREATE FUNCTION series(p_step bigint, p_span_ms bigint) RETURNS TABLE (at_ms bigint, startable bigint, held bigint, running bigint,
  busy bigint, pool_size bigint, samples bigint, started bigint, succeeded bigint, failed bigint, cancelled bigint, expired bigint,
  in_doubt bigint, tokens bigint, cost_micros bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE t bigint := to_ms(clock()); v_ahead bigint := (SELECT ahead_ms FROM store_clock); BEGIN
  RETURN QUERY SELECT t - v_ahead, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
    NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint;
  RETURN QUERY SELECT k.at_ms - v_ahead, k.startable, k.held, k.running, k.busy, k.pool_size, k.samples, k.started, k.succeeded, k.failed,
      k.cancelled, k.expired, k.in_doubt, k.tokens, k.cost_micros
    FROM series_point k WHERE k.step = p_step AND k.at_ms > t - p_span_ms AND k.at_ms <= t ORDER BY k.at_ms; END $$;

-- The newest events of the fleet in that time, by time.
CREATE FUNCTION marks(p_span_ms bigint, p_most bigint) RETURNS SETOF told
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_from timestamptz := later(clock(), -p_span_ms); BEGIN
  RETURN QUERY SELECT m.* FROM (SELECT o.* FROM told o WHERE o.run_id IS NULL AND o.at_ms >= shown_ms(v_from)
    ORDER BY o.at_ms DESC, o.id DESC LIMIT p_most) m ORDER BY m.at_ms, m.id; END $$;

-- Finished runs of the agent, the last first.
CREATE FUNCTION ended(p_agent text, p_within_ms bigint, p_most bigint)
RETURNS TABLE (state text, attempt bigint, created_ms bigint, finished_ms bigint, started_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_from timestamptz := later(clock(), -p_within_ms); v_agent int := (SELECT a.agent_id FROM agent a WHERE a.name = p_agent); BEGIN
  RETURN QUERY SELECT r.state, r.attempt, to_ms(r.created_at), to_ms(r.finished_at), to_ms(r.started_at) FROM run r
    WHERE r.finished_at IS NOT NULL AND r.finished_at >= v_from AND r.agent_id = v_agent
    ORDER BY r.finished_at DESC, r.run_id DESC LIMIT p_most; END $$;

-- By the hour, or by p_hours hours.
CREATE FUNCTION spent(p_since_ms bigint, p_hours bigint) RETURNS TABLE (hour bigint, agent text, runs bigint, tokens bigint, cost_micros bigint)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT s.hour / p_hours * p_hours, a.name, sum(s.runs)::bigint, sum(s.tokens)::bigint, sum(s.cost_micros)::bigint
  FROM spent s JOIN agent a USING (agent_id) WHERE s.hour >= hour_of(from_ms(p_since_ms)) / p_hours * p_hours
  GROUP BY 1, a.name ORDER BY 1, a.name $$;
