-- A program of the version before neither reads nor writes what is new here.

-- What attempts used: of a run in its row, of an agent by day.
ALTER TABLE run ADD COLUMN tokens INT NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN money_micros INT NOT NULL DEFAULT 0;

CREATE TABLE spent (
  day TEXT NOT NULL, agent_id INT NOT NULL, runs INT NOT NULL, tokens INT NOT NULL, money_micros INT NOT NULL,
  PRIMARY KEY (day, agent_id)) STRICT, WITHOUT ROWID;  -- the day in UTC

-- The worker that submitted it and carries it itself: while that lives, no other claims it. Nearly always NULL. In the
-- index, so that what anyone may claim is counted from that alone.
ALTER TABLE run ADD COLUMN kept_for INT;
DROP INDEX run_ready;
CREATE INDEX run_ready ON run (agent_id, rank, run_id, kept_for) WHERE state = 'queued' AND hold IS NULL;

-- For lists, runs in doubt share an index with the parked: each index more is opened by each change of a run.
DROP INDEX run_parked;
CREATE INDEX run_parked ON run (state, parked_on) WHERE state = 'parked' OR state = 'in_doubt';
