-- live

-- name: topics :many
select topic from fact group by topic order by min(place);

-- name: facts :many
select topic, name, unit, value from fact order by place;

-- name: alerts :many
select name, meaning, now, is_on, since from alert order by place;

-- name: certificates :many
select
  c.names, c.ends_at, c.tried_at, c.failure,
  (c.ends_at - k.at) / 86400 as days, c.ends_at <= k.at as is_over
from certificate c cross join clock k
order by c.ends_at is not null, c.ends_at, c.names;
