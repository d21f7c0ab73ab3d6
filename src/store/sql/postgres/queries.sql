-- Statements of the PostgreSQL store: calls of the functions of this program version. `-- name:` begins one; @run@ is
-- the list of columns below, @wanted@ the condition of a list.
-- columns: run_id, public_id, agent, session, parent, idem_key, state, hold, stop, error, attempt, lost, fence, seq, unsafe, on_crash, node_id, created_ms, not_before_ms, deadline_ms, expires_ms, started_ms, finished_ms, tokens, cost_micros
-- wanted: ($1::text[] = '{}' OR state = ANY ($1)) AND ($2::text[] = '{}' OR agent = ANY ($2)) AND ($3 = '' OR session = $3) AND ($6 = '' OR parent_id = (SELECT run_id FROM stint.run_name WHERE public_id = $6)) AND ($4 = 0::bigint OR run_id < $4) AND run_id >= $7::bigint AND ($8::text[] = '{}' OR coalesce(hold, 'none') = ANY ($8)) AND ($9::bigint IS NULL OR created_ms >= $9) AND ($10::bigint IS NULL OR created_ms < $10) AND ($11::text = '' OR left(public_id, length($11)) = $11 OR strpos(lower(error COLLATE "C"), $11) > 0 OR strpos((SELECT search FROM stint.run_input i WHERE i.run_id = s.run_id), $11) > 0) AND ($12::bigint[] = '{}' OR run_id = ANY ($12))

-- name: begin
BEGIN
-- name: begin_read
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
-- name: commit
COMMIT
-- name: roll_back
ROLLBACK
-- name: lock_migrations
SELECT pg_advisory_xact_lock(hashtextextended('stint.migrate', 0))
-- name: has_tables
SELECT to_regclass('stint.meta') IS NOT NULL
-- name: version
SELECT (SELECT value FROM stint.meta WHERE key = 'version'), (SELECT value FROM stint.meta WHERE key = 'oldest_program')
-- name: set_version
UPDATE stint.meta SET value = $1 WHERE key = 'version'

-- name: look_at_clock
SELECT * FROM stint_v1.look_at_clock()
-- name: vouch_for_clock
SELECT stint_v1.vouch_for_clock($1), set_config('synchronous_commit', 'off', true)
-- name: make_up_for_jump
SELECT stint_v1.make_up_for_jump($1, $2)

-- name: define
SELECT stint_v1.define($1, $2, $3, $4, $5, $6)
-- name: resize
SELECT stint_v1.resize($1, $2), stint_v1.announce()
-- name: configure
SELECT stint_v1.configure($1, $2, $3), stint_v1.announce()
-- name: pause
SELECT stint_v1.pause(stint_v1.expect($3::bigint, $1::text), $2)
-- name: resume
SELECT stint_v1.resume(stint_v1.expect($2::bigint, $1::text)), stint_v1.announce()
-- name: limits
SELECT * FROM stint_v1.limits($1)

-- name: enrol
SELECT stint_v1.enrol($1, $2, $3)
-- name: beat
SELECT * FROM stint_v1.beat($1, $2)
-- name: drain
SELECT stint_v1.drain($1)
-- name: leave
SELECT stint_v1.leave($1), stint_v1.announce()
-- name: announce
SELECT stint_v1.add_fleet_event($2, $3, $1)
-- name: nodes
SELECT * FROM stint_v1.nodes()

-- name: enqueue
SELECT e.* FROM stint_v1.enqueue(stint_v1.expect($13::bigint, $1::text[]), $2, $3, $4, $5, $6, $7, stint_v1.deadlines($8, $12), $9, $10, $11, $14) e CROSS JOIN stint_v1.announce()
-- name: enqueue_kept
-- For batches in which some runs are kept, or draw on the budgets of others.
SELECT e.* FROM stint_v1.enqueue(stint_v1.expect($13::bigint, $1::text[]), $2, $3, $4, $5, $6, $7, stint_v1.deadlines($8, $12), $9, $10, $11, $14, $15, $16) e CROSS JOIN stint_v1.announce()
-- name: cancel
SELECT * FROM stint_v1.cancel(stint_v1.expect($2::bigint, $1::text))
-- name: resolve
SELECT stint_v1.resolve(stint_v1.expect($4::bigint, $1::text), $2, $3)
-- name: answer
SELECT stint_v1.answer(stint_v1.expect($2::bigint, $1::text))

-- name: claim
SELECT * FROM stint_v1.claim(stint_v1.expect($7::bigint, $1::bigint), $2, $3, $4, nullif($5, ''), $6)
-- name: ready
SELECT * FROM stint_v1.ready(stint_v1.expect($2::bigint, $1::bigint))
-- name: new_round
SELECT stint_v1.new_round($1)
-- name: owned
SELECT * FROM stint_v1.owned(stint_v1.expect($2::bigint, $1::bigint))
-- name: settle
SELECT * FROM stint_v1.settle(stint_v1.expect($13::bigint, $1::bigint), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
-- name: mark
SELECT stint_v1.mark($1, $2, $3, $4)
-- name: note
SELECT stint_v1.note($1, $2, $3, $4, $5, $6)
-- name: append_output
SELECT stint_v1.append_output($1, $2, $3, $4, $5, $6, $7)
-- name: put_message
SELECT stint_v1.put_message($1, $2, $3, $4, $5, $6, $7)

-- name: provider_answered
SELECT stint_v1.provider_answered($1, $2, $3)

-- name: report
SELECT * FROM stint_v1.report($1, $2, $3, $4, $5)

-- name: wake
SELECT stint_v1.wake(stint_v1.expect($2::bigint, $1::bigint))
-- name: expire
SELECT stint_v1.expire(stint_v1.expect($2::bigint, $1::bigint))
-- name: declare_dead
SELECT * FROM stint_v1.declare_dead($1)
-- name: next_due
SELECT stint_v1.next_due() FROM stint_v1.expect($1::bigint, true) e WHERE e

-- name: listen
LISTEN stint

-- name: by_prefix
SELECT @run@, (SELECT body FROM stint.run_input i WHERE i.run_id = s.run_id), (SELECT body FROM stint.run_result o WHERE o.run_id = s.run_id)
FROM (SELECT run_id FROM stint.run_name WHERE public_id >= $1 AND public_id < $1 || '~' ORDER BY public_id LIMIT 2) n
  JOIN stint_v1.seen s USING (run_id) ORDER BY public_id
-- name: list
-- Planned with its parameters: the planner drops a condition that they make true, and a state uses its index.
SELECT @run@ FROM stint_v1.seen s WHERE @wanted@ ORDER BY run_id DESC LIMIT $5
-- name: list_with_texts
-- Texts longer than $13 bytes are reduced to one member. PostgreSQL cannot parse JSON that contains \u0000.
SELECT @run@,
  (SELECT CASE WHEN $13 = 0::bigint OR octet_length(body) <= $13 THEN body
               ELSE json_build_object('title', replace(body, '\u0000', '')::json -> 'title')::text END FROM stint.run_input i WHERE i.run_id = s.run_id),
  (SELECT CASE WHEN $13 = 0::bigint OR octet_length(body) <= $13 THEN body
               ELSE json_build_object('usage', replace(body, '\u0000', '')::json -> 'usage')::text END FROM stint.run_result o WHERE o.run_id = s.run_id)
FROM stint_v1.seen s WHERE @wanted@ ORDER BY run_id DESC LIMIT $5
-- name: match
SELECT run_id, public_id FROM stint_v1.seen s WHERE @wanted@ ORDER BY run_id DESC LIMIT $5
-- name: newest_before
SELECT max(run_id) FROM stint.run WHERE run_id < $1
-- name: with_key
SELECT @run@, (SELECT body FROM stint.run_input i WHERE i.run_id = s.run_id), (SELECT body FROM stint.run_result o WHERE o.run_id = s.run_id)
FROM stint_v1.seen s WHERE s.idem_key = $2 AND ($1 = '' OR s.agent = $1) ORDER BY run_id
-- name: used
SELECT * FROM stint_v1.used($1)
-- name: events
SELECT * FROM stint_v1.events($1, $2, $3)
-- name: feed
-- One row more than events, if there are none: the newest event that was deleted.
SELECT f.*, p.xid, p.id FROM stint.pruned p LEFT JOIN LATERAL stint_v1.feed($1, $2, $3, nullif($4, '')::pg_snapshot) f ON true ORDER BY f.xid, f.id
-- name: feed_now
SELECT xid::text::bigint - 1, 9223372036854775807 FROM pg_snapshot_xmin(pg_current_snapshot()) xid
-- name: why
SELECT * FROM stint_v1.why(stint_v1.expect($4::bigint, $1::text), $2, $3)
-- name: messages
SELECT * FROM stint_v1.messages($1, $2, $3)
-- name: output
SELECT * FROM stint_v1.output($1, $2)
-- name: spent
SELECT * FROM stint_v1.spent($1, $2)
-- name: sample
SELECT stint_v1.sample(stint_v1.expect($7::bigint, $1::bigint), $2, $3, $4, $5, $6)
-- name: series
SELECT * FROM stint_v1.series(stint_v1.expect($3::bigint, $1::bigint), $2)
-- name: marks
SELECT * FROM stint_v1.marks(stint_v1.expect($3::bigint, $1::bigint), $2)
-- name: ended
SELECT * FROM stint_v1.ended(stint_v1.expect($4::bigint, $1::text), $2, $3)
-- name: sums
SELECT state, count(*) FROM stint.run GROUP BY state
-- name: queues
SELECT name, count(r.run_id), queued_max FROM stint.agent a LEFT JOIN stint.run r ON r.agent_id = a.agent_id AND r.state = 'queued'
GROUP BY a.agent_id ORDER BY name COLLATE "C"
-- name: counts
SELECT (SELECT count(*) FROM stint.run WHERE state = 'queued' AND hold IS NULL
    AND (kept_for IS NULL OR NOT stint_v1.is_kept(kept_for, NULL))), (SELECT count(*) FROM stint.event),
  (SELECT count(*) FROM stint.node WHERE state <> 'dead'),
  (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = 'stint'::regnamespace AND relkind = 'r')
-- name: begin_batch
SELECT * FROM stint_v1.begin_batch(stint_v1.expect($9::bigint, $1::text), $2, $3, $4, $5, $6, $7, $8)
-- name: batch
SELECT * FROM stint_v1.seen_batch WHERE public_id = $1
-- name: batches
SELECT * FROM stint_v1.seen_batch WHERE $1 = 0::bigint OR batch_id < $1 ORDER BY batch_id DESC LIMIT $2
-- name: failures
SELECT run, error FROM stint.batch_failure WHERE batch_id = $1 ORDER BY at
-- name: has_batch
SELECT EXISTS (SELECT FROM stint.batch WHERE ended_at IS NULL)
-- name: claim_batch
SELECT * FROM stint_v1.claim_batch(stint_v1.expect($2::bigint, $1::bigint))
-- name: advance_batch
SELECT * FROM stint_v1.advance_batch(stint_v1.expect($9::bigint, $1::text), $2, $3, $4, $5, $6, $7, $8)
-- name: release_batch
SELECT stint_v1.release_batch($1, $2)
-- name: stop_batch
SELECT stint_v1.stop_batch(stint_v1.expect($2::bigint, $1::text))
-- name: snapshot_moment
SELECT pg_current_snapshot()::text, stint_v1.shown_ms(stint_v1.clock()) FROM stint_v1.expect($1::bigint, true) e WHERE e
-- name: tally_ready
SELECT * FROM stint_v1.tally_ready()
-- name: tally_held
SELECT * FROM stint_v1.tally_held()
-- name: last_ends
SELECT * FROM stint_v1.last_ends($1, $2)
-- name: store_bytes
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = 'stint'::regnamespace AND relkind = 'r'
-- name: list_running
SELECT @run@,
  (SELECT CASE WHEN $2 = 0::bigint OR octet_length(body) <= $2 THEN body
               ELSE json_build_object('title', replace(body, '\u0000', '')::json -> 'title')::text END FROM stint.run_input i WHERE i.run_id = s.run_id),
  (SELECT CASE WHEN $2 = 0::bigint OR octet_length(body) <= $2 THEN body
               ELSE json_build_object('usage', replace(body, '\u0000', '')::json -> 'usage')::text END FROM stint.run_result o WHERE o.run_id = s.run_id)
FROM (SELECT run_id FROM stint.run WHERE state = 'running' ORDER BY started_at, run_id LIMIT $1) n JOIN stint_v1.seen s USING (run_id)
ORDER BY started_ms, run_id
-- name: list_needs
SELECT @run@,
  (SELECT CASE WHEN $2 = 0::bigint OR octet_length(body) <= $2 THEN body
               ELSE json_build_object('title', replace(body, '\u0000', '')::json -> 'title')::text END FROM stint.run_input i WHERE i.run_id = s.run_id),
  (SELECT CASE WHEN $2 = 0::bigint OR octet_length(body) <= $2 THEN body
               ELSE json_build_object('usage', replace(body, '\u0000', '')::json -> 'usage')::text END FROM stint.run_result o WHERE o.run_id = s.run_id)
FROM (SELECT run_id FROM stint.run WHERE state = 'in_doubt' OR state = 'parked' AND hold = 'person' ORDER BY run_id LIMIT $1) n JOIN stint_v1.seen s USING (run_id)
ORDER BY run_id
-- name: list_failures
SELECT @run@,
  (SELECT CASE WHEN $2 = 0::bigint OR octet_length(body) <= $2 THEN body
               ELSE json_build_object('title', replace(body, '\u0000', '')::json -> 'title')::text END FROM stint.run_input i WHERE i.run_id = s.run_id),
  (SELECT CASE WHEN $2 = 0::bigint OR octet_length(body) <= $2 THEN body
               ELSE json_build_object('usage', replace(body, '\u0000', '')::json -> 'usage')::text END FROM stint.run_result o WHERE o.run_id = s.run_id)
FROM (SELECT run_id FROM stint.run WHERE state IN ('failed', 'expired') ORDER BY finished_at DESC, run_id DESC LIMIT $1) n JOIN stint_v1.seen s USING (run_id)
ORDER BY finished_ms DESC, run_id DESC
-- name: prune
SELECT stint_v1.prune(stint_v1.expect($3::bigint, $1::bigint), $2)
-- name: prune_if_due
SELECT stint_v1.prune_if_due(stint_v1.expect($4::bigint, $1::bigint), $2, $3)

-- name: agents
SELECT * FROM stint_v1.agents()
-- name: dump
SELECT @run@, (SELECT body FROM stint.run_input i WHERE i.run_id = s.run_id), (SELECT body FROM stint.run_result o WHERE o.run_id = s.run_id),
  stint_v1.to_ms(r.rank) - (SELECT ahead_ms FROM stint.store_clock), r.budget_ms, r.budget_left_ms,
  stint_v1.to_ms(r.budget_until) - (SELECT ahead_ms FROM stint.store_clock), r.parked_on
FROM stint_v1.seen s JOIN (SELECT x.run_id, x.rank, x.budget_ms, x.budget_left_ms, x.parked_on,
    CASE WHEN x.budget_until IS NOT NULL THEN stint_v1.own_budget(x) END AS budget_until FROM stint.run x) r USING (run_id)
WHERE run_id > $1 ORDER BY run_id LIMIT $2
-- name: dump_events
SELECT * FROM stint_v1.told WHERE run_id BETWEEN $1 AND $2 ORDER BY run_id, seq
-- name: dump_output
SELECT c.run_id, o.bytes, c.at, c.body FROM stint.output_chunk c JOIN stint.output o USING (run_id)
WHERE c.run_id BETWEEN $1 AND $2 ORDER BY c.run_id, c.at
-- name: dump_message_bytes
SELECT run_id, max(ends) FROM stint.message WHERE run_id BETWEEN $1 AND $2 GROUP BY run_id ORDER BY run_id
-- name: dump_messages
SELECT run_id, body FROM stint.message WHERE run_id BETWEEN $1 AND $2 ORDER BY run_id, at
-- name: dump_families
SELECT m.run_id, f.head, f.tokens, f.cost_micros FROM stint.family_run m JOIN stint.family f USING (family_id)
WHERE m.run_id BETWEEN $1 AND $2 ORDER BY m.run_id, f.head
-- name: load
SELECT stint_v1.load($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26,
  $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48,
  $49, $50, $51, $52, $53, $54)
-- name: wrong_indexes
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = 'stint'::regnamespace AND NOT (i.indisvalid AND i.indisready) ORDER BY c.relname
-- name: wrong_names
SELECT coalesce(r.public_id, n.public_id) FROM stint.run r FULL JOIN stint.run_name n ON n.run_id = r.run_id AND n.public_id = r.public_id
WHERE r.run_id IS NULL OR n.run_id IS NULL ORDER BY 1 LIMIT 20
