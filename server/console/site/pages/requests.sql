-- live
-- param: path text = ''
-- param: status text in ('', 2xx, 3xx, 4xx, 5xx) = ''
-- param: outcome text in ('', hit, miss, waited, private, bypass, stale, static, listing, live, write, redirect, refused, error, other, none) = ''
-- param: route text = ''
-- param: who text in (all, people, crawlers) = all

-- name: requests :many
select
  id, at_ms / 1000 as at, client, method, target, status, bytes, micros, route, outcome, is_crawler
from seen
where (:path = '' or instr(lower(target), lower(:path)) > 0)
  and (:status = '' or status / 100 = substr(:status, 1, 1) + 0)
  and (:outcome = '' or outcome = :outcome)
  and (:route = '' or route = :route)
  and case :who when 'people' then not is_crawler when 'crawlers' then is_crawler else 1 end
order by id desc
limit 200;

-- name: held :one
select count(*) as requests, min(at_ms) / 1000 as since from seen;

-- name: routes :many
select distinct route from seen where route is not null order by route limit 200;
