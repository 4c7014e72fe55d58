insert into clock (id, at, started) values (1, :now, :started)
on conflict (id) do update set at = excluded.at, started = excluded.started
