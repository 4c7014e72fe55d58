insert into seen (at_ms, client, method, target, status, bytes, micros, route, outcome, is_crawler)
select
  r.value ->> 'at_ms', r.value ->> 'client', r.value ->> 'method', r.value ->> 'target',
  r.value ->> 'status', r.value ->> 'bytes', r.value ->> 'micros', r.value ->> 'route',
  r.value ->> 'outcome', r.value ->> 'is_crawler'
from json_each(:requests) r
order by r.value ->> 'at_ms', r.key
