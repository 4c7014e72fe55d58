insert into duration (grain, at, bound_us, requests)
select g.seconds, :now - :now % g.seconds, d.value ->> 0, d.value ->> 1
from json_each(:durations) d cross join route_grain g
where g.seconds < 86400
on conflict (grain, at, bound_us) do update set requests = requests + excluded.requests
