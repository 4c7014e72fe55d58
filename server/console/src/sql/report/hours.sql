-- The hours of the last day, and of the day before.
with last as (
  select max(at) / 86400 * 86400 as day from sample where grain = 3600 and at >= :from and at < :till
)
select json_object(
  'hour', t.n, 'requests', here.requests, 'requests_before', past.requests,
  'errors', here.server_errors, 'errors_before', past.server_errors
)
from last
join tick t on t.n < 24
left join sample here on here.grain = 3600 and here.at = last.day + t.n * 3600 and here.at < :till
left join sample past on past.grain = 3600 and past.at = last.day + (t.n - 24) * 3600
where last.day is not null
order by t.n
