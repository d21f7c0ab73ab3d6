-- Batches: the rules of Ledger (ledger_batch.cpp).

CREATE VIEW seen_batch AS
  SELECT batch_id, public_id, idem_key, action, filter, state, matched, done, skipped, failed, node_id, shown_ms(created_at) AS created_ms,
    shown_ms(ended_at) AS ended_ms FROM batch;

CREATE FUNCTION tell_batch(b batch, p_cause text) RETURNS void LANGUAGE sql VOLATILE AS $$
  INSERT INTO event (seq, fence, cause, data, at) VALUES (0, 0, p_cause,
    format('{"batch":"%s","action":"%s","state":"%s","matched":%s,"done":%s,"skipped":%s,"failed":%s}',
      b.public_id, b.action, b.state, b.matched, b.done, b.skipped, b.failed), clock()) $$;

CREATE FUNCTION known_batch(p_id text, p_key text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT public_id FROM batch WHERE public_id = p_id OR (p_key <> '' AND idem_key = p_key) ORDER BY public_id <> p_id LIMIT 1 $$;

-- p_at and p_ids: the pieces of its set.
CREATE FUNCTION begin_batch(p_id text, p_key text, p_action text, p_filter text, p_matched bigint, p_at bigint[], p_ids text[],
  p_open_max bigint) RETURNS TABLE (id text, created boolean)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE b batch; t timestamptz := clock(); BEGIN
  id := known_batch(p_id, p_key); created := false;
  IF id IS NOT NULL THEN RETURN NEXT; RETURN; END IF;
  IF (SELECT count(*) FROM batch WHERE ended_at IS NULL) >= p_open_max THEN           -- store/errors.cpp has the same text
    RAISE EXCEPTION USING ERRCODE = 'ST503', MESSAGE = format('there are already %s batches that have not ended', p_open_max);
  END IF;
  INSERT INTO batch (public_id, idem_key, action, filter, state, matched, created_at, ended_at)
    VALUES (p_id, nullif(p_key, ''), p_action, p_filter, CASE WHEN p_matched = 0 THEN 'done' ELSE 'running' END, p_matched, t,
            CASE WHEN p_matched = 0 THEN t END) ON CONFLICT DO NOTHING RETURNING * INTO b;
  IF NOT FOUND THEN                                                                   -- another call was faster
    id := known_batch(p_id, p_key); RETURN NEXT; RETURN;
  END IF;
  INSERT INTO batch_runs (batch_id, at, ids) SELECT b.batch_id, u.at, u.ids FROM unnest(p_at, p_ids) u (at, ids);
  PERFORM tell_batch(b, 'batch_began');
  IF p_matched = 0 THEN PERFORM tell_batch(b, 'batch_ended'); END IF;
  id := p_id; created := true;
  RETURN NEXT; END $$;

-- The next runs of the batch: the piece that has its place, and the place where that begins. A batch that must stop has none.
CREATE FUNCTION next_of_batch(b batch) RETURNS TABLE (id text, action text, fence bigint, at bigint, piece_at bigint, ids text)
LANGUAGE sql STABLE AS $$
  SELECT b.public_id, b.action, b.fence, b.done + b.skipped + b.failed, p.at, p.ids FROM (SELECT) one LEFT JOIN LATERAL (
    SELECT r.at, r.ids FROM batch_runs r WHERE b.state = 'running' AND r.batch_id = b.batch_id AND r.at <= b.done + b.skipped + b.failed
      ORDER BY r.at DESC LIMIT 1) p ON true $$;

CREATE FUNCTION claim_batch(p_node bigint) RETURNS TABLE (id text, action text, fence bigint, at bigint, piece_at bigint, ids text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE b batch; BEGIN
  PERFORM FROM node WHERE node_id = p_node AND state = 'live';
  IF NOT FOUND THEN RETURN; END IF;
  SELECT * INTO b FROM batch x WHERE x.ended_at IS NULL AND (x.node_id IS NULL OR x.node_id = p_node
      OR NOT EXISTS (SELECT FROM node n WHERE n.node_id = x.node_id AND n.state <> 'dead' AND n.lease_until >= wall()))
    ORDER BY x.batch_id LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE batch x SET node_id = p_node, fence = x.fence + 1 WHERE x.batch_id = b.batch_id RETURNING x.* INTO b;
  RETURN QUERY SELECT * FROM next_of_batch(b); END $$;

CREATE FUNCTION end_batch(p_batch bigint, p_state text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE b batch; BEGIN
  UPDATE batch SET state = p_state, ended_at = clock(), node_id = NULL WHERE batch_id = p_batch RETURNING * INTO b;
  PERFORM tell_batch(b, 'batch_ended'); END $$;

CREATE FUNCTION advance_batch(p_id text, p_fence bigint, p_at bigint, p_done bigint, p_skipped bigint, p_runs text[], p_errors text[],
  p_failures_max bigint) RETURNS TABLE (id text, action text, fence bigint, at bigint, piece_at bigint, ids text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE b batch; BEGIN
  SELECT * INTO b FROM batch x WHERE x.public_id = p_id AND x.fence = p_fence AND x.ended_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF b.done + b.skipped + b.failed = p_at THEN          -- otherwise it is repeated
    IF p_at + p_done + p_skipped + cardinality(p_runs) > b.matched THEN
      RAISE EXCEPTION USING ERRCODE = 'ST400', MESSAGE = 'a batch has no so many runs';
    END IF;
    INSERT INTO batch_failure (batch_id, at, run, error)
      SELECT b.batch_id, b.failed + u.at - 1, u.run, u.error FROM unnest(p_runs, p_errors) WITH ORDINALITY u (run, error, at)
      WHERE b.failed + u.at <= p_failures_max;
    UPDATE batch x SET done = x.done + p_done, skipped = x.skipped + p_skipped, failed = x.failed + cardinality(p_runs)
      WHERE x.batch_id = b.batch_id RETURNING x.* INTO b;
  END IF;
  IF b.done + b.skipped + b.failed = b.matched THEN
    PERFORM end_batch(b.batch_id, 'done');
  ELSIF b.state = 'stopping' THEN
    PERFORM end_batch(b.batch_id, 'stopped');
  ELSE
    RETURN QUERY SELECT * FROM next_of_batch(b);
  END IF; END $$;

CREATE FUNCTION release_batch(p_id text, p_fence bigint) RETURNS void LANGUAGE sql SET search_path = stint_v1, stint, pg_temp AS $$
  UPDATE batch SET node_id = NULL, fence = fence + 1 WHERE public_id = p_id AND fence = p_fence AND ended_at IS NULL $$;

CREATE FUNCTION stop_batch(p_id text) RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE b batch; BEGIN
  SELECT * INTO b FROM batch WHERE public_id = p_id AND state = 'running' FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF b.node_id IS NULL THEN
    PERFORM end_batch(b.batch_id, 'stopped');
  ELSE
    UPDATE batch SET state = 'stopping' WHERE batch_id = b.batch_id;
  END IF; END $$;

CREATE FUNCTION forget_batches(p_before timestamptz, p_most bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_old bigint[]; BEGIN
  SELECT array_agg(batch_id) INTO v_old FROM (SELECT batch_id FROM batch WHERE ended_at < p_before AND ended_at IS NOT NULL
    ORDER BY ended_at LIMIT p_most FOR UPDATE SKIP LOCKED) x;
  IF v_old IS NULL THEN RETURN; END IF;
  DELETE FROM batch_runs WHERE batch_id = ANY (v_old);
  DELETE FROM batch_failure WHERE batch_id = ANY (v_old);
  DELETE FROM batch WHERE batch_id = ANY (v_old); END $$;
