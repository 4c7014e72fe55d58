-- Old figures go at most a hundred times as fast as time passes; a clock may jump.
insert into clock (id, at, started, pruned) values (1, :now, :started, :now)
on conflict (id) do update set
  at = excluded.at, started = excluded.started,
  pruned = min(excluded.at, coalesce(pruned, at) + :span_ms / 10)
