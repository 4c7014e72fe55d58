insert into certificate (names, ends_at, tried_at, failure)
select c.value ->> 'names', c.value ->> 'ends_at', c.value ->> 'tried_at', c.value ->> 'failure'
from json_each(:certificates) c
where true
on conflict (names) do update set
  ends_at = excluded.ends_at, tried_at = excluded.tried_at, failure = excluded.failure
where ends_at is not excluded.ends_at or tried_at is not excluded.tried_at
  or failure is not excluded.failure
